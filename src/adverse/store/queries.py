"""The Parquet files of detections, queried through DuckDB: only those files that can hold the wanted rows."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import cached_property

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from adverse.errors import StoreError
from adverse.store.folder import RunFolder
from adverse.store.records import SCHEMA


class DetectionFiles:
    """The detections of a run; a table of cells says which setting and SUT each file has rows of."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self.cells = pq.read_table(folder.cells)

    def cells_of(
        self,
        *,
        sut: str | None = None,
        settings: Iterable[str] | None = None,
        frames: Sequence[str] | None = None,
    ) -> pa.Table:
        """Return the cells of a SUT, of some settings, or whose files can hold one of some frames."""
        cells = self.cells
        if sut is not None:
            cells = cells.filter(pc.equal(cells["sut"], sut))
        if settings is not None:
            cells = cells.filter(pc.is_in(cells["setting"], value_set=pa.array(list(settings), pa.string())))
        return cells if frames is None else self._with_frames(cells, frames)

    def select(
        self, columns: str, cells: pa.Table | None = None, tail: str = "", **named: str | list[str]
    ) -> pa.Table | None:
        """Query the rows of the given cells, or of all; None when there are no cells."""
        cells = self.cells if cells is None else cells
        files = sorted(set(cells["file"].to_pylist()))
        if not files:
            return None
        try:
            with self._database.cursor() as connection:  # of its own: pages ask from several threads
                _hide_progress(connection)
                connection.register("cells", cells)
                connection.register("no_rows", SCHEMA.empty_table())  # so that files of earlier versions,
                # which lack a column, have nothing in it
                paths = [str(self.folder.detections / name) for name in files]
                sql = f"""SELECT {columns} FROM (
                        SELECT * FROM read_parquet($paths, filename = true, union_by_name = true)
                        UNION ALL BY NAME FROM no_rows) d
                    SEMI JOIN cells c ON c.setting = d.setting AND c.sut = d.sut
                                      AND c.file = parse_filename(d.filename) {tail}"""  # noqa: S608 - ours
                return connection.sql(sql, params={"paths": paths, **named}).to_arrow_table()
        except duckdb.Error as error:
            raise StoreError(
                "the detections cannot be read",
                where=str(self.folder.detections),
                got=str(error).partition("\n")[0],
                fix=f"Run adverse verify {self.folder.path} to find the damaged file.",
            ) from error

    @cached_property
    def _database(self) -> duckdb.DuckDBPyConnection:
        """One for all queries: to open it takes longer than most of them."""
        return duckdb.connect()

    @cached_property
    def _spans(self) -> dict[str, tuple[str, str]]:
        """The first and last frame id, by their text, of every file of detections."""
        columns = "parse_filename(d.filename) AS file, min(d.frame) AS first, max(d.frame) AS last"
        try:
            table = self.select(columns, tail="GROUP BY d.filename")
        except StoreError:
            return {}  # who reads the damaged file itself says what is wrong with it
        rows = [] if table is None else table.to_pylist()
        return {row["file"]: (row["first"], row["last"]) for row in rows}

    def _with_frames(self, cells: pa.Table, frames: Sequence[str]) -> pa.Table:
        """Return the cells whose files can hold one of some frames: few of many, where logs are long."""
        wanted = sorted(frames)
        files = [
            file
            for file in dict.fromkeys(cells["file"].to_pylist())
            if file not in self._spans or _between(wanted, *self._spans[file])
        ]
        return cells.filter(pc.is_in(cells["file"], value_set=pa.array(files, pa.string())))


def _hide_progress(connection: duckdb.DuckDBPyConnection) -> None:
    """Switch off what would print between our lines; where it is off, a notebook refuses even this."""
    if connection.execute("SELECT current_setting('enable_progress_bar')").fetchall() != [(False,)]:
        connection.execute("SET enable_progress_bar = false")


def _between(ordered: Sequence[str], first: str, last: str) -> bool:
    """Return whether one of some sorted names lies between two others."""
    at = bisect_left(ordered, first)
    return at < len(ordered) and ordered[at] <= last

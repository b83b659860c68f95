"""What the grid holds: the frames of a run under mutations, filtered, sorted, and walked through one by one.

DuckDB does the work, over the tables of the results: one query for a selection, whose rows are then kept. The
grid shows a page of them, and the frame page finds its neighbours in them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode

import duckdb
import numpy as np
import pyarrow as pa

from adverse.errors import StoreError
from adverse.pages.view.pick import named_in_run
from adverse.pages.view.session import ExploredRun, readable
from adverse.store.tables import positions

SELECTIONS = 8
"""Selections whose rows are kept: somebody walks through one, and compares a few."""
SUTS = 2
"""SUTs whose tables are kept."""
EVERY_MUTATION = "every mutation"
EVERYBODY = "everybody"
SHOWS = {
    "all": "TRUE",
    "lost": "lost > 0",
    "missed": "missed > 0",
    "hit": "hits > 0",
    "false": "false_positives > 0",
    "trouble": "status <> 'ok'",
}
"""What may be filtered for. Lost: found on the clean frame, and missed under the mutation."""
SORTS = {
    "loss": "lost DESC, fall DESC NULLS LAST",
    "change": "visual_change NULLS LAST, lost DESC, fall DESC NULLS LAST",
    "score": "lowest NULLS LAST",
    "false": "surest_false DESC NULLS LAST",
    "order": "frame",
}
"""By what may be sorted; what is equal stands in the order of the data set."""
LOWEST = {"hit": "o.found", "missed": "NOT o.found", "lost": "o.found_before AND NOT o.found"}
"""Whose scores the lowest of a frame is chosen from, where it is not everybody's."""
ROWS = """SELECT f.setting, f.frame, f.status, f.false_positives, f.surest_false, f.visual_change,
        coalesce(p.objects, 0) AS objects, coalesce(p.hits, 0) AS hits, coalesce(p.missed, 0) AS missed,
        coalesce(p.lost, 0) AS lost, p.fall, p.lowest
    FROM frames f LEFT JOIN (
        SELECT o.setting, o.frame, count(*) AS objects, count(*) FILTER (o.found) AS hits,
            count(*) FILTER (NOT o.found) AS missed,
            count(*) FILTER (o.found_before AND NOT o.found) AS lost,
            max(coalesce(o.score_before, 0) - coalesce(o.score, 0)) AS fall,
            min({score}) FILTER ({lowest}) AS lowest
        FROM objects o {members} GROUP BY o.setting, o.frame
    ) p ON p.setting = f.setting AND p.frame = f.frame
    WHERE {mutation}"""
OF_SLICE = "(objects > 0 OR (status = 'quarantined' AND frame IN (SELECT frame FROM members)))"
"""A frame that was left out counts nobody, but somebody of the slice is there."""
MEMBERS = "SEMI JOIN members m ON m.frame = o.frame AND m.object = o.object"


def slice_name(kind: str, part: str) -> str:
    r"""Return the name that a slice is picked by.

    >>> slice_name("a", "b: c"), slice_name("a: b", "c")
    ('a: b: c', 'a\\: b: c')
    """
    escaped = kind.replace("\\", "\\\\").replace(":", "\\:")
    return f"{escaped}: {part}"


@dataclass(frozen=True)
class Selection:
    """What is filtered for, and in which order: names that the run has, or the words for all of them."""

    sut: str
    mutation: str
    show: str
    slice: str
    sort: str

    def query(self, **more: str | int) -> str:
        """Return the selection as the query of an address, with something changed or added."""
        return urlencode({**asdict(self), **more})


@dataclass(frozen=True, eq=False)
class SelectedRows:
    """The rows of a selection, in order; `frame` and `setting` are places among those of the run."""

    table: pa.Table
    total: int
    """How many there are without the filters, of the same mutations."""

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def rows(self, start: int, count: int) -> list[dict[str, Any]]:
        """Return some of the rows."""
        return list(self.table.slice(start, count).to_pylist())


class Selections:
    """Runs the queries; the tables of a SUT are read once."""

    def __init__(self, run: ExploredRun) -> None:
        if run.store.result("objects.parquet") is None:
            raise StoreError(
                "these results are from before there was a grid: run adverse analyze on the run folder again",
                where=str(run.store.folder.results),
            )
        self.run = run
        self.settings = list(run.settings)
        self.of = lru_cache(SELECTIONS)(self._of)
        self.tables = lru_cache(SUTS)(self._tables)
        self.slices = self._slices()
        measured = self._query("frames", "SELECT count(visual_change) AS n FROM read_parquet($path)")
        detects, self.finds = run.detection, run.store.task != "segmentation"
        self.measured = bool(measured["n"][0].as_py())
        self.shows = [
            name
            for name in SHOWS
            if name in ("all", "trouble") or (detects if name == "false" else self.finds)
        ]
        self.sorts = [
            name for name in SORTS if (self.measured or name != "change") and (detects or name != "false")
        ]
        self.mutations = [EVERY_MUTATION, *self.settings] if len(self.settings) > 1 else self.settings

    def picked(self, query: Mapping[str, str]) -> Selection:
        """Return the selection that is asked for; what is not said is everything, the worst first."""
        return Selection(
            sut=named_in_run("sut", query, self.run.suts, self.run.suts[0]),
            mutation=named_in_run("mutation", query, self.mutations, self.mutations[0]),
            show=named_in_run("show", query, self.shows, "all"),
            slice=named_in_run("slice", query, [EVERYBODY, *self.slices], EVERYBODY),
            sort=named_in_run("sort", query, self.sorts, "loss"),
        )

    def frame(self, sut: str, setting: str, frame: int) -> tuple[dict[int, bool | None], list[float] | None]:
        """Return which true objects of a frame are found under a setting, and the surest false positive."""
        place = {"setting": self.settings.index(setting), "frame": frame}
        where = "WHERE setting = $setting AND frame = $frame"
        with self._open(sut) as connection:
            found = connection.execute(f"SELECT object, found FROM objects {where}", place).fetchall()  # noqa: S608
            false = connection.execute(f"SELECT surest_false_box FROM frames {where}", place).fetchone()  # noqa: S608
        return dict(found), None if false is None or false[0] is None else list(false[0])

    def _of(self, selection: Selection) -> SelectedRows:
        every, whole = selection.mutation == EVERY_MUTATION, selection.slice == EVERYBODY
        mutation = "f.setting > 0" if every else "f.setting = $setting"
        names = {} if every else {"setting": self.settings.index(selection.mutation)}
        rows = ROWS.format(
            score="coalesce(o.score, 0)" if self.finds else "o.score",
            lowest=LOWEST.get(selection.show, "TRUE"),
            members="" if whole else MEMBERS,
            mutation=mutation,
        )
        wanted = f"{SHOWS[selection.show]} AND {'TRUE' if whole else OF_SLICE}"
        sql = f"SELECT * FROM ({rows}) WHERE {wanted} ORDER BY {SORTS[selection.sort]}, frame, setting"  # noqa: S608
        with self._open(selection.sut) as connection:
            if not whole:
                connection.register("members", self._members(selection.slice))
            total = connection.execute(f"SELECT count(*) FROM frames f WHERE {mutation}", names).fetchall()  # noqa: S608
            return SelectedRows(connection.sql(sql, params=names).to_arrow_table(), int(total[0][0]))

    def _open(self, sut: str) -> duckdb.DuckDBPyConnection:
        connection = duckdb.connect()
        connection.execute("SET enable_progress_bar = false")  # it would print between our lines
        for name, table in self.tables(sut).items():
            connection.register(name, table)
        return connection

    def _tables(self, sut: str) -> dict[str, pa.Table]:
        """Return the tables of a SUT; frames and settings are numbers there, their places in the run."""
        sql = "SELECT * EXCLUDE (sut) FROM read_parquet($path) WHERE sut = $sut"
        return {name: self._numbered(self._query(name, sql, sut=sut)) for name in ("objects", "frames")}

    def _members(self, name: str) -> pa.Table:
        kind, part = self.slices[name]
        sql = "SELECT frame, object FROM read_parquet($path) WHERE slice = $kind AND part = $part"
        return self._numbered(self._query("slice_members", sql, kind=kind, part=part))

    def _slices(self) -> dict[str, tuple[str, str]]:
        """Return the slices that the run has, by the name they are picked by.

        A colon in the name of an attribute is escaped, so no two slices have the same name.
        """
        sql = """SELECT slice, part FROM read_parquet($path, file_row_number = true)
            GROUP BY slice, part ORDER BY min(file_row_number)"""
        rows = self._query("slice_members", sql).to_pylist()
        return {slice_name(row["slice"], row["part"]): (row["slice"], row["part"]) for row in rows}

    def _numbered(self, table: pa.Table) -> pa.Table:
        known = {"frame": self.run.store.frames.ids, "setting": tuple(self.settings)}
        for at, name in enumerate(table.column_names):
            if name in known:
                numbers = positions(table[name], known[name]).astype(np.int32)
                table = table.set_column(at, name, pa.array(numbers))
        return table

    def _query(self, name: str, sql: str, **names: str) -> pa.Table:
        """Query a table of the results."""
        path = self.run.result_file(name)
        with readable(path), duckdb.connect() as connection:
            connection.execute("SET enable_progress_bar = false")
            return connection.sql(sql, params={"path": str(path), **names}).to_arrow_table()

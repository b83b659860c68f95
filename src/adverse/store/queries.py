"""The Parquet files of detections, queried through DuckDB: only those files that can hold the wanted rows."""

from __future__ import annotations

import contextlib
import copy
import functools
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

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
        """Return the cells of a SUT, of some settings, or whose files hold one of some frames."""
        cells = self.cells
        if sut is not None:
            cells = cells.filter(pc.equal(cells["sut"], sut))
        if settings is not None:
            cells = cells.filter(pc.is_in(cells["setting"], value_set=pa.array(list(settings), pa.string())))
        return cells if frames is None else self._with_frames(cells, frames)

    def of_frames(self, frames: Sequence[str]) -> DetectionFiles:
        """Return the same of some frames; files hold either such frames alone or none of them."""
        part = copy.copy(self)
        part.__dict__.pop("frames", None)
        part.cells = self._with_frames(self.cells, frames)
        return part

    def select(
        self, columns: str, cells: pa.Table | None = None, tail: str = "", **named: str | list[str]
    ) -> pa.Table | None:
        """Query the rows of the given cells, or of all; None when there are no cells."""
        cells = self.cells if cells is None else cells
        files = sorted(set(cells["file"].to_pylist()))
        if not files:
            return None

        def sql(reading: str) -> str:
            return f"""SELECT {columns} FROM {reading} d
                SEMI JOIN cells c ON c.setting = d.setting AND c.sut = d.sut
                                  AND c.file = parse_filename(d.filename) {tail}"""  # noqa: S608 - ours

        return self._query(sql, files, cells, named)

    @functools.cached_property
    def frames(self) -> pa.Table:
        """The file, frame and pixels of all rows, each once, and the cells that name them.

        `cells` are places in the table of cells, one for each row: none for rows that no cell names.
        """

        def sql(reading: str) -> str:
            file = "parse_filename(d.filename)"
            return f"""SELECT {file} AS file, d.frame, d.pixels,
                    list(c.number) FILTER (c.number IS NOT NULL) AS cells
                FROM {reading} d LEFT JOIN cells c
                ON c.setting = d.setting AND c.sut = d.sut AND c.file = {file}
                GROUP BY ALL"""  # noqa: S608 - ours

        files = sorted(set(self.cells["file"].to_pylist()))
        numbers = pa.array(range(self.cells.num_rows), pa.int32())
        if not files:
            columns = {name: pa.array([], pa.string()) for name in ("file", "frame", "pixels")}
            return pa.table({**columns, "cells": pa.array([], pa.list_(pa.int32()))})
        return self._query(sql, files, self.cells.append_column("number", numbers), {})

    def frames_of_two_images(self) -> list[str]:
        """Return the frames of which there are rows with different hashes of the pixels before mutation."""
        hashed = self.frames.filter(pc.is_valid(self.frames["pixels"]))
        hashes = hashed.group_by("frame").aggregate([("pixels", "count_distinct")])["pixels_count_distinct"]
        if not pc.any(pc.greater(hashes, 1)).as_py():
            return []  # nearly always; without looking whether a cell names the rows
        grouped = "GROUP BY d.frame HAVING count(DISTINCT d.pixels) > 1 ORDER BY d.frame"
        table = self.select("d.frame", tail=grouped)
        return [] if table is None else list(table["frame"].to_pylist())

    def misfiled(self, settings: Sequence[str], suts: Sequence[str]) -> list[str]:
        """Say for which settings and SUTs there is not exactly one row for each frame of the plan.

        The first setting is the baseline, which is run on all frames; the others are run on those to test;
        where a search chose what is run, all of what it asked for.
        """
        found = self._counts(settings, suts)
        numbers = self._numbers(settings, suts)
        wrong = []
        for setting in settings:
            for sut in suts:
                wanted = numbers.get((setting, sut), 0)
                number, frames, planned = found.get((setting, sut), [0, 0, 0])
                if not number == frames == planned == wanted:
                    rows = f"{number} rows, {number - planned} of them not planned"
                    wrong.append(f"{sut}, {setting}: {rows}, of {frames} of the {wanted} planned frames")
        return wrong

    def _counts(self, settings: Sequence[str], suts: Sequence[str]) -> dict[tuple[str, str], list[int]]:
        """Return, by setting and SUT, the rows that cells name, the planned frames and the planned rows."""
        pairs = [(setting, sut) for setting in settings for sut in suts]
        ids = self._planned["frame"].unique()
        plan = self._pairs(self._planned, settings, suts) if self._selected is not None else None
        of_cell = self._pairs(self.cells, settings, suts)
        named = self.frames["cells"].combine_chunks()
        frame = pc.fill_null(pc.index_in(self.frames["frame"], value_set=ids), -1).to_numpy()
        frame = np.repeat(frame.astype(np.int64), pc.fill_null(pc.list_value_length(named), 0).to_numpy())
        pair = of_cell[named.flatten().to_numpy()]
        frame, pair = frame[pair >= 0], pair[pair >= 0]
        if plan is None:
            tested = pc.equal(self._planned["split"], "test").to_numpy()
            planned = (frame >= 0) & (tested[frame] | (pair < len(suts)))
        else:
            wanted = plan * len(ids) + pc.index_in(self._planned["frame"], value_set=ids).to_numpy()
            planned = (frame >= 0) & np.isin(pair * len(ids) + frame, wanted)
        places = np.unique((pair * len(ids) + frame)[planned]) // max(len(ids), 1)
        counts = (np.bincount(part, minlength=len(pairs)) for part in (pair, places, pair[planned]))
        rows = np.stack(list(counts), axis=1).tolist()
        return dict(zip(pairs, rows, strict=True))

    @staticmethod
    def _pairs(table: pa.Table, settings: Sequence[str], suts: Sequence[str]) -> NDArray[np.int64]:
        """Return which pair of setting and SUT each row has, counted setting by setting; -1: none of them."""
        setting, sut = (
            pc.fill_null(pc.index_in(table[name], value_set=pa.array(values, pa.string())), -1).to_numpy()
            for name, values in (("setting", settings), ("sut", suts))
        )
        pair: NDArray[np.int64] = setting.astype(np.int64) * len(suts) + sut
        return np.where((setting < 0) | (sut < 0), -1, pair)

    def _numbers(self, settings: Sequence[str], suts: Sequence[str]) -> dict[tuple[str, str], int]:
        """Return how many frames are planned under each setting by each SUT."""
        if self._selected is not None:
            pairs = zip(*(self._selected[name].to_pylist() for name in ("setting", "sut")), strict=True)
            return dict(Counter(pairs))
        tested = pc.sum(pc.equal(self._planned["split"], "test")).as_py() or 0
        whole = self._planned.num_rows
        return {(one, sut): tested if place else whole for place, one in enumerate(settings) for sut in suts}

    @functools.cached_property
    def _selected(self) -> pa.Table | None:
        """What a search asked for; None where everything is run."""
        path = self.folder.selection
        if not path.exists():
            return None
        table = pq.read_table(path)  # written with a dictionary for each column
        return pa.table({name: table[name].cast(pa.string()) for name in ("frame", "setting", "sut")})

    @functools.cached_property
    def _planned(self) -> pa.Table:
        """The frames of the plan and their splits; where a search chose, also settings and SUTs."""
        if self._selected is not None:
            return self._selected
        return pq.read_table(self.folder.frames, columns=["frame", "split"])

    def _query(
        self,
        sql: Callable[[str], str],
        files: list[str],
        cells: pa.Table,
        named: Mapping[str, str | list[str]],
    ) -> pa.Table:
        """Run a query over some files; `sql` takes how they are read.

        Where the first has all our columns, the others are taken to have them too, which saves that each is
        opened twice. One of an earlier version, which lacks a column, makes the query fail: then all are
        opened first, and have nothing in it, nor has any where none has it.
        """
        paths = [str(self.folder.detections / name) for name in files]
        by_name = """(SELECT * FROM read_parquet($paths, filename = true, union_by_name = true)
            UNION ALL BY NAME FROM no_rows)"""
        try:
            if pq.read_schema(paths[0]).equals(SCHEMA):
                with contextlib.suppress(duckdb.Error):
                    return self._run(sql("read_parquet($paths, filename = true)"), paths, cells, named)
            return self._run(sql(by_name), paths, cells, named)
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            raise StoreError(
                "the detections cannot be read",
                where=str(self.folder.detections),
                got=str(error).partition("\n")[0],
                fix=f"Run adverse verify {self.folder.path} to find the damaged file.",
            ) from error

    def _run(
        self, sql: str, paths: list[str], cells: pa.Table, named: Mapping[str, str | list[str]]
    ) -> pa.Table:
        with _database(os.getpid()).cursor() as connection:  # of its own: pages ask from several threads
            _hide_progress(connection)
            connection.register("cells", cells)
            if " no_rows" in sql:
                connection.register("no_rows", SCHEMA.empty_table())
            return connection.sql(sql, params={"paths": paths, **named}).to_arrow_table()

    def _with_frames(self, cells: pa.Table, frames: Sequence[str]) -> pa.Table:
        """Return the cells whose files hold one of some frames."""
        try:
            there = self.frames
        except StoreError:
            return cells  # who reads the damaged file itself says what is wrong with it
        rows = pc.is_in(there["frame"], value_set=pa.array(frames, pa.string()))
        files = there["file"].filter(rows).combine_chunks()
        return cells.filter(pc.is_in(cells["file"], value_set=files))


@functools.cache
def _database(process: int) -> duckdb.DuckDBPyConnection:  # noqa: ARG001 - a fork cannot use its parent's
    """Return one for all queries of a process: to open it takes longer than most of them."""
    return duckdb.connect()


def _hide_progress(connection: duckdb.DuckDBPyConnection) -> None:
    """Switch off what would print between our lines; where it is off, a notebook refuses even this."""
    if connection.execute("SELECT current_setting('enable_progress_bar')").fetchall() != [(False,)]:
        connection.execute("SET enable_progress_bar = false")

"""A run opened to be looked at: what can be picked from it, and what was read of it lately.

Whatever a request names is looked up here, among the names that the run's own tables hold; nothing that a
request says ever becomes part of a path.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from adverse.analysis.results import no_results, read_summary
from adverse.analysis.score import ANY, ANY_MILD
from adverse.errors import StoreError
from adverse.levels.context import Context, PlacedDetections, run_context
from adverse.levels.match import MatchedDetections, match_detections
from adverse.report.pictures import Looker
from adverse.report.tradeoffs import POINT, TradeOff
from adverse.store.read import finished

ANSWERS = 32
"""Answers of one SUT under one setting to one log that are kept: two are shown, the rest are likely next."""


@dataclass(frozen=True, eq=False)
class LoggedFrames:
    """A log of the test split: its frames as rows of the run's frames, in order."""

    name: str
    number: int
    rows: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Grid:
    """The sensitivities of the run and, for one SUT, the score from which a detection counts at each."""

    levels: NDArray[np.float64]
    thresholds: NDArray[np.float32]
    resolved: NDArray[np.bool_]


class ExploredRun:
    """Reads a run when asked, and remembers what is likely to be asked for again."""

    def __init__(self, run: Path, *, trust: bool = False) -> None:
        self.store = finished(run)
        self.summary = read_summary(self.store)
        self.looker = Looker(self.store, trust=trust)
        self.suts = self.store.suts
        self.settings = self.store.groups
        self.baseline = next(iter(self.settings))
        self.detection = self.store.task == "detection"
        for name in ("curves", "outcomes", "sensitivity") if self.detection else ():
            self._result(name)  # raises where it is missing
        self.levels = list(dict.fromkeys(str(row["level"]) for row in self.summary.rows if "level" in row))
        self.judged = lru_cache(ANSWERS)(self._judged)
        self.pixel_hashes = lru_cache(ANSWERS)(self._pixel_hashes)
        self.context = lru_cache(ANSWERS)(self._context)
        self.seen = lru_cache(ANSWERS)(self._seen)
        self.all_curves = lru_cache(ANSWERS)(self._all_curves)
        self.grid = lru_cache(None)(self._grid)
        self.pixel_counts = lru_cache(1)(self.store.pixel_counts)

    @cached_property
    def logs(self) -> dict[str, LoggedFrames]:
        """The logs of the test split, in the order of the data set."""
        frames = self.store.frames
        rows = np.flatnonzero(frames.test)
        numbers = frames.log[rows]
        return {
            frames.logs[number]: LoggedFrames(frames.logs[number], number, rows[numbers == number])
            for number in dict.fromkeys(numbers.tolist())
        }

    @cached_property
    def troubles(self) -> dict[tuple[str, str, str], tuple[str, str]]:
        """What went wrong, by SUT, setting and frame: the status and the reason."""
        path = self.store.result("troubles.parquet")
        rows = [] if path is None else pq.read_table(path).to_pylist()
        return {
            (row["sut"], row["setting"], row["frame"]): (row["status"], row["reason"] or "") for row in rows
        }

    def rows_of(self, level: str, sut: str) -> dict[str, dict[str, Any]]:
        """Return the figures of the results, by setting, of one SUT at one level."""
        return {
            str(row["setting"]): row
            for row in self.summary.rows
            if row["sut"] == sut and row.get("level", level) == level
        }

    def outcome(self, pick: tuple[str, str, str, str]) -> dict[str, Any] | None:
        """Return what the results say of (SUT, level, setting, log), by point of the curve; None: nothing."""
        names = dict(zip(("sut", "level", "setting", "log"), pick, strict=True))
        sql = """SELECT truths, hits, exposure, cost FROM read_parquet($path)
            WHERE sut = $sut AND level = $level AND setting = $setting AND log = $log"""
        path = self._result("outcomes")
        with _readable(path), duckdb.connect() as connection:
            found = connection.execute(sql, {"path": str(path), **names}).fetchone()
        return (
            None if found is None else dict(zip(("truths", "hits", "exposure", "cost"), found, strict=True))
        )

    def _result(self, name: str) -> Path:
        """Return a table of the results; looked at again when it changed while the page is open."""
        path = self.store.result(f"{name}.parquet")
        if path is None:
            raise no_results(self.store)
        return path

    def _ids(self, log: str) -> list[str]:
        return [self.store.frames.ids[row] for row in self.logs[log].rows.tolist()]

    def _pixel_hashes(self, log: str) -> dict[str, str]:
        """Return the hash of each frame's pixels before mutation, as the run saw them."""
        return self.store.pixel_hashes(self._ids(log))

    def _judged(self, sut: str, setting: str, log: str) -> MatchedDetections:
        answers = self.store.answers(sut, settings=[setting], frames=self._ids(log))
        return match_detections(answers[setting], self.store.truth)

    def _seen(self, sut: str, setting: str, log: str) -> PlacedDetections:
        return self.context(log).place(self.judged(sut, setting, log).answers)

    def words_of(self, level: str) -> dict[str, Any]:
        """Return how a level (or a row of it, `level/variant`) describes itself."""
        words: dict[str, Any] = self.summary.data["levels"][level.partition("/")[0]]
        return words

    @cached_property
    def located(self) -> bool:
        """Whether the study has a level that needs detections on the ground."""
        return any("depth" in level["needs"] for level in self.summary.data["levels"].values())

    def _context(self, log: str) -> Context:
        """Return what the levels with context know of one log."""
        return run_context(self.store, [self.logs[log].number])

    @property
    def sensitivity_ends(self) -> tuple[float, float]:
        """The least and the highest of the shared sensitivities."""
        shared = self.store.run.sensitivity
        return shared.lowest, shared.highest

    def _grid(self, sut: str) -> Grid:
        path = self._result("sensitivity")
        with _readable(path):
            table = pq.read_table(path, filters=[("sut", "==", sut)])
        return Grid(
            table["sensitivity"].to_numpy(),
            table["threshold"].to_numpy().astype(np.float32),
            table["resolved"].to_numpy(zero_copy_only=False).astype(np.bool_),
        )

    def places(self, sut: str, level: str) -> NDArray[np.int64]:
        """Return where the shared sensitivities are among the points of the curves of a SUT at a level."""
        grid = self.grid(sut)
        return self.all_curves(sut, level)[self.baseline].places(grid.thresholds.astype(np.float64))

    def curves(self, sut: str, level: str) -> dict[str, TradeOff]:
        """Return the curves of a SUT at a level that the data could answer, by setting."""
        return {
            setting: curve
            for setting, curve in self.all_curves(sut, level).items()
            if np.isfinite([curve.safety, curve.efficiency]).all()
        }

    def _all_curves(self, sut: str, level: str) -> dict[str, TradeOff]:
        columns = self._columns(sut, level)
        found = {}
        for setting in (*self.settings, ANY_MILD, ANY):
            rows = columns["setting"] == setting
            if rows.any():
                found[setting] = TradeOff(
                    setting, *(columns[name][rows].astype(np.float64) for name in POINT)
                )
        return found

    def _columns(self, sut: str, level: str) -> dict[str, NDArray[Any]]:
        path = self._result("curves")
        with _readable(path):
            table = pq.read_table(path, filters=[("sut", "==", sut), ("level", "==", level)])
        return {name: table[name].to_numpy() for name in table.column_names}


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Say which of the results cannot be read, and how to have it again."""
    try:
        yield
    except (OSError, duckdb.Error, pa.ArrowException) as error:
        raise StoreError(
            "a part of the results cannot be read",
            where=str(path),
            got=str(error).partition("\n")[0],
            fix="Run adverse analyze on the run folder to have it again.",
        ) from error

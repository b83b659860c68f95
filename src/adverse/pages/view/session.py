"""A run opened to be looked at: what can be picked from it, and what was read of it lately."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from adverse.analysis.detections import SharedSensitivity, shared_sensitivity
from adverse.analysis.failures import places_in_logs
from adverse.analysis.results import no_results, read_summary
from adverse.analysis.score import ANY, ANY_MILD
from adverse.analysis.stopped import opened
from adverse.analysis.tradeoffs import POINT, TradeOff, left_out_frames
from adverse.errors import StoreError
from adverse.levels.context import Context, PlacedDetections, run_context
from adverse.levels.match import MatchedDetections, match_detections
from adverse.levels.outcomes import first_level
from adverse.report.pictures import Looker
from adverse.report.tradeoffs import level_words

ANSWERS = 32
"""Answers of one SUT under one setting to one log that are kept: two are shown, the rest are likely next."""


@dataclass(frozen=True, eq=False)
class LoggedFrames:
    """A log of the test split: its frames as rows of the run's frames, in order."""

    name: str
    number: int
    rows: NDArray[np.int64]


class ExploredRun:
    """Reads a run when asked, and remembers what is likely to be asked for again."""

    def __init__(self, run: Path, *, trust: bool = False) -> None:
        self.store = opened(run)
        self.summary = read_summary(self.store)
        self.looker = Looker(self.store, trust=trust)
        self.suts = self.store.suts
        self.settings = self.store.groups
        self.baseline = next(iter(self.settings))
        self.detection = self.store.task == "detection"
        for name in ("curves", "outcomes", "sensitivity") if self.detection else ():
            self.result_file(name)  # raises where it is missing
        self.levels = list(dict.fromkeys(str(row["level"]) for row in self.summary.rows if "level" in row))
        self.judged = lru_cache(ANSWERS)(self._judged)
        self.pixel_hashes = lru_cache(ANSWERS)(self._pixel_hashes)
        self.context = lru_cache(ANSWERS)(self._context)
        self.seen = lru_cache(ANSWERS)(self._seen)
        self.all_curves = lru_cache(ANSWERS)(self._all_curves)
        self.grid = lru_cache(None)(self._grid)
        self.operating_level = lru_cache(None)(self._operating_level)
        self.pixel_counts = lru_cache(1)(self.store.pixel_counts)

    @cached_property
    def logs(self) -> dict[str, LoggedFrames]:
        """The logs of the test split, in the order of the data set."""
        frames = self.store.frames
        rows = np.flatnonzero(frames.test)
        rows = rows[np.argsort(frames.log[rows], kind="stable")]
        numbers, starts = np.unique(frames.log[rows], return_index=True)
        parts = dict(zip(numbers.tolist(), np.split(rows, starts[1:]), strict=True))
        first = sorted(parts, key=lambda number: int(parts[number][0]))
        return {
            frames.logs[number]: LoggedFrames(frames.logs[number], number, parts[number]) for number in first
        }

    @cached_property
    def log_names(self) -> list[str]:
        """The names of the logs of the test split, in the order of the data set."""
        return list(self.logs)

    @cached_property
    def places(self) -> NDArray[np.int64]:
        """The place of every test frame among those of its log; -1 for other frames."""
        return places_in_logs(self.store)

    @cached_property
    def first_log(self) -> str:
        """The first test log with something to find, or else the first."""
        if self.detection:
            there = set(self.store.frames.log[self.store.truth.frame].tolist())
            for log in self.logs.values():
                if log.number in there:
                    return log.name
        return self.log_names[0]

    def beside(self, log: str, by: int) -> LoggedFrames | None:
        """Return the log so many places after another one, or before it; None beyond the ends."""
        place = self._log_places[log] + by
        return self.logs[self.log_names[place]] if 0 <= place < len(self.log_names) else None

    @cached_property
    def _log_places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.log_names)}

    @cached_property
    def troubles(self) -> dict[tuple[str, str, str], tuple[str, str]]:
        """What went wrong, by SUT, setting and frame: the status and the reason."""
        path = self.store.result("troubles.parquet")
        rows = [] if path is None else pq.read_table(path).to_pylist()
        return {
            (row["sut"], row["setting"], row["frame"]): (row["status"], row["reason"] or "") for row in rows
        }

    @cached_property
    def left_out(self) -> dict[tuple[str, str], frozenset[str]]:
        """The test frames that could not be used, by SUT and setting."""
        return left_out_frames(self.store)

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
        path = self.result_file("outcomes")
        with readable(path), duckdb.connect() as connection:
            row = connection.execute(sql, {"path": str(path), **names}).fetchone()
        return None if row is None else dict(zip(("truths", "hits", "exposure", "cost"), row, strict=True))

    def result_file(self, name: str) -> Path:
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
        masks = self.store.run.masks
        answers = self.store.answers(sut, settings=[setting], frames=self._ids(log), masks=masks)
        return match_detections(answers[setting], self.store.truth)

    def _seen(self, sut: str, setting: str, log: str) -> PlacedDetections:
        return self.context(log).place(self.judged(sut, setting, log).answers)

    def words_of(self, level: str) -> Mapping[str, Any]:
        """Return how a level (or a row of it, `level/variant`) describes itself."""
        return level_words(self.summary, level)

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

    def _grid(self, sut: str) -> SharedSensitivity:
        with readable(self.result_file("sensitivity")):
            return shared_sensitivity(self.store, sut)

    def operating_score(self, sut: str) -> float | None:
        """Return the score from which a detection counts in the report; None: there is no such score."""
        score: float | None = self.summary.data["sensitivity"][sut]["operating_point"]["score"]
        return score

    def _operating_level(self, sut: str) -> int:
        """Return the place of the first sensitivity at which all counts that does at the operating point."""
        thresholds, last = self.grid(sut).thresholds, len(self.grid(sut).levels) - 1
        score = self.operating_score(sut)
        return last if score is None else min(int(first_level(np.array([score]), thresholds)[0]), last)

    def curve_places(self, sut: str, level: str, setting: str) -> NDArray[np.int64]:
        """Return where the shared sensitivities are among the points of the curve of a setting."""
        grid = self.grid(sut)
        return self.all_curves(sut, level)[setting].places(grid.thresholds.astype(np.float64))

    def curves(self, sut: str, level: str) -> dict[str, TradeOff]:
        """Return the curves of a SUT at a level that the data could answer, by setting."""
        return {setting: curve for setting, curve in self.all_curves(sut, level).items() if curve.defined}

    def _all_curves(self, sut: str, level: str) -> dict[str, TradeOff]:
        columns = self._columns(sut, level)
        curves = {}
        for setting in (*self.settings, ANY_MILD, ANY):
            rows = columns["setting"] == setting
            if rows.any():
                points = (columns[name][rows].astype(np.float64) for name in POINT)
                curves[setting] = TradeOff(setting, *points)
        return curves

    def _columns(self, sut: str, level: str) -> dict[str, NDArray[Any]]:
        path = self.result_file("curves")
        with readable(path):
            table = pq.read_table(path, filters=[("sut", "==", sut), ("level", "==", level)])
        return {name: table[name].to_numpy() for name in table.column_names}


@contextlib.contextmanager
def readable(path: Path) -> Iterator[None]:
    """Say which of the results cannot be read, and how to have it again."""
    try:
        yield
    except (OSError, duckdb.Error, pa.ArrowException) as error:
        raise StoreError(
            "part of the results cannot be read",
            where=str(path),
            got=str(error).partition("\n")[0],
            fix="Run adverse analyze on the run folder to restore it.",
        ) from error

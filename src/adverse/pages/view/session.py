"""A run opened to be looked at: what can be picked from it, what a request picks, what was read of it lately.

Whatever a request names is looked up here, among the names that the run's own tables hold; numbers are
checked, the rest is refused. Nothing that a request says ever becomes part of a path.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from starlette.exceptions import HTTPException

from adverse.analysis.detections import SharedSensitivity, shared_sensitivity
from adverse.analysis.results import no_results, read_summary
from adverse.analysis.score import ANY, ANY_MILD
from adverse.analysis.tradeoffs import POINT, TradeOff
from adverse.errors import StoreError
from adverse.levels.context import Context, PlacedDetections, run_context
from adverse.levels.match import MatchedDetections, match_detections
from adverse.report.pictures import Looker
from adverse.report.tradeoffs import level_words
from adverse.store.read import finished

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
            row = connection.execute(sql, {"path": str(path), **names}).fetchone()
        return None if row is None else dict(zip(("truths", "hits", "exposure", "cost"), row, strict=True))

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
        with _readable(self._result("sensitivity")):
            return shared_sensitivity(self.store, sut)

    def places(self, sut: str, level: str) -> NDArray[np.int64]:
        """Return where the shared sensitivities are among the points of the curves of a SUT at a level."""
        grid = self.grid(sut)
        return self.all_curves(sut, level)[self.baseline].places(grid.thresholds.astype(np.float64))

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
            "part of the results cannot be read",
            where=str(path),
            got=str(error).partition("\n")[0],
            fix="Run adverse analyze on the run folder to restore it.",
        ) from error


FIRST_SENSITIVITY = 0.01
"""Expected false positives per image at which the page opens."""
MOST_DIGITS = 9
HALF, WHOLE = 50, 100
"""The divider, in percent of the picture's width."""


@dataclass(frozen=True)
class Pick:
    """One view: a SUT at a level, two settings of a frame of a log, at one of the run's sensitivities.

    `k` is the place of the sensitivity among those of the run, `frame` that of the frame in its log, `at`
    where the divider stands.
    """

    sut: str
    level: str
    left: str
    right: str
    log: str
    frame: int
    k: int
    at: int = HALF

    @property
    def sides(self) -> dict[str, str]:
        """The settings that are looked at, by the side of the divider; one if both are the same."""
        return {"both": self.left} if self.left == self.right else {"left": self.left, "right": self.right}

    def query(self, **changes: str | int) -> str:
        """Return the view as the query of an address, with some of it changed."""
        return urlencode(asdict(replace(self, **changes)))  # type: ignore[arg-type]


def picked(run: ExploredRun, query: Mapping[str, str]) -> Pick:
    """Return the view that is asked for; what is not said is chosen for it.

    Names that the run does not have raise 404, numbers that are none 400.
    """
    log = run.logs[_named_in_run("log", query, run.logs, _with_truth(run))]
    settings = list(run.settings)
    levels = run.levels or [""]
    return Pick(
        sut=_named_in_run("sut", query, run.suts, run.suts[0]),
        level=_named_in_run("level", query, levels, levels[0]),
        left=_named_in_run("left", query, settings, run.baseline),
        right=_named_in_run("right", query, settings, settings[min(1, len(settings) - 1)]),
        log=log.name,
        frame=_number("frame", query, len(log.rows) - 1, lambda: _first_frame(run, log)),
        k=_number("k", query, _most(run), lambda: _first_level(run)),
        at=_number("at", query, WHOLE, lambda: HALF),
    )


def _named_in_run(name: str, query: Mapping[str, str], names: Iterable[str], default: str) -> str:
    if name not in query:
        return default
    value = query[name]
    for option in names:
        as_forms_send_it = option.replace("\r\n", "\n").replace("\n", "\r\n")
        if value in (option, as_forms_send_it):
            return option
    raise HTTPException(404, f"The run has no such {name}.")


def _number(name: str, query: Mapping[str, str], most: int, default: Callable[[], int]) -> int:
    """Return a whole number from 0; one beyond the end is the end, so that a shorter log can be picked."""
    value = query.get(name, "")
    if not value:
        return default()
    if not (value.isascii() and value.isdigit() and len(value) <= MOST_DIGITS):
        raise HTTPException(400, f"{name} is a whole number from 0 to {most}.")
    return min(int(value), most)


def _most(run: ExploredRun) -> int:
    return len(run.grid(run.suts[0]).levels) - 1 if run.detection else 0


def _first_level(run: ExploredRun) -> int:
    if not run.detection:
        return 0
    levels = run.grid(run.suts[0]).levels
    return int(np.argmin(np.abs(np.log(levels) - np.log(FIRST_SENSITIVITY))))


def _with_truth(run: ExploredRun) -> str:
    """Return the first test log with something to find, or else the first."""
    if run.detection:
        there = set(run.store.frames.log[run.store.truth.frame].tolist())
        for log in run.logs.values():
            if log.number in there:
                return log.name
    return next(iter(run.logs))


def _first_frame(run: ExploredRun, log: LoggedFrames) -> int:
    """Return the frame with the largest true object, or the first."""
    if not run.detection:
        return 0
    truth = run.store.truth
    mine = np.flatnonzero(np.isin(truth.frame, log.rows) & ~truth.ignore)
    if not len(mine):
        return 0
    return int(np.searchsorted(log.rows, truth.frame[mine[np.argmax(truth.area[mine])]]))

"""The closed loop: safety at other tolerances, how often somebody came too close, and single runs of a log.

Safety counts the logs in which the robot stops no later than the truth would have made it, but for
`stop_tolerance_m`. Beside it stand the same with no tolerance at all (`at_0`) and with that of the buffer
between control and safety radius (`at_buffer`), and the share of logs in which the robot entered somebody's
safety radius while it moved (`violations`). A single log can be driven step by step, by a SUT at one
sensitivity and by the truth.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from adverse.analysis.confidence import Confidence, plain_interval
from adverse.analysis.detections import sensitivity_of
from adverse.analysis.score import ScoredCurve
from adverse.curves.curve import area
from adverse.curves.interval import Interval, korn_graubard
from adverse.errors import AdverseError, StudyError, suggestion
from adverse.levels.context import Context, PlacedDetections, level_input, run_context
from adverse.levels.loop import input_obstacles_m, input_playbacks
from adverse.levels.match import MatchedDetections, match_detections
from adverse.levels.outcomes import Outcomes, grid, nearest
from adverse.levels.places import ROUNDING_M
from adverse.robot.playback import Trace, trace
from adverse.store.read import Store

EXAMPLE_SENSITIVITY = 0.01
"""Expected false positives per image at which the logs that a report shows are driven."""
SHOWN = (0.001, 0.01, 0.1)
"""Expected false positives per image at which rates are told in the summary."""


def loop_rows(scored: Sequence[ScoredCurve], sure: Confidence | None) -> list[dict[str, Any]]:
    """Return the areas at the other tolerances, and all rates at a few sensitivities."""
    rows = []
    for one in scored:
        if one.outcomes is None or one.curve is None or not one.outcomes.beside:
            continue
        row, outcomes, known = one.row, one.outcomes, one.curve.sensitivity
        found: dict[str, Any] = {"sut": row.sut, "level": row.level, "setting": row.setting}
        found |= {"status": row.status, "logs": int(outcomes.truths.sum())}
        for name in ("at_0", "at_buffer"):
            safety = _share(outcomes.beside[name], outcomes)
            defined = row.area is not None
            found[f"area_{name}"] = area(safety, one.curve.efficiency) if defined else None
            key = (row.level, row.setting, name)
            found[f"area_{name}_interval"] = plain_interval(sure.beside.get(key) if sure else None)
        if row.area is not None:
            places = dict.fromkeys(nearest(known, sensitivity) for sensitivity in SHOWN)
            found["at"] = [_at(one, outcomes, k) for k in places]
        rows.append(found)
    return rows


def rate_rows(scored: Sequence[ScoredCurve]) -> list[dict[str, Any]]:
    """Return all rates at every sensitivity, each with its interval."""
    return [
        {"sut": one.row.sut, "level": one.row.level, "setting": one.row.setting, **_at(one, one.outcomes, k)}
        for one in scored
        if one.outcomes is not None and one.curve is not None
        if one.outcomes.beside and one.row.area is not None
        for k in range(len(one.curve.sensitivity))
    ]


def _at(one: ScoredCurve, outcomes: Outcomes, k: int) -> dict[str, Any]:
    found: dict[str, Any] = {} if one.curve is None else {"sensitivity": float(one.curve.sensitivity[k])}
    found["logs"] = int(outcomes.truths.sum())
    counts = {"safety": outcomes.hits, **{f"safety_{n}": outcomes.beside[n] for n in ("at_0", "at_buffer")}}
    for name, hits in {**counts, "violations": outcomes.beside["violations"]}.items():
        interval = _interval(int(hits[:, k].sum()), found["logs"])
        found[name] = interval.value
        found[f"{name}_interval"] = interval.plain()
    return found


@functools.lru_cache(maxsize=4096)
def _interval(hits: int, logs: int) -> Interval:
    """Return the interval of a share of logs; each is one trial, so only their number matters."""
    return korn_graubard(np.arange(logs) < hits, np.ones(logs))


def _share(hits: NDArray[np.int64], outcomes: Outcomes) -> NDArray[np.float64]:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(hits.sum(axis=0) / outcomes.truths.sum())


class Driver(NamedTuple):
    """What the robot is driven by: a SUT under a setting, at which sensitivity, so from which score on."""

    sut: str
    setting: str
    level: float
    threshold: float


@dataclass(frozen=True)
class Driven:
    """The two runs, and whether the SUT's was safe (None on a negative log)."""

    log: str
    sut: str
    setting: str
    level: float
    threshold: float
    by_sut: Trace
    by_truth: Trace
    positive: bool
    tolerance_m: float = 0.0
    """How much later than the truth it may stop."""

    @property
    def safe(self) -> bool | None:
        """Whether the SUT stopped no later than the truth; None where there is nothing to stop for."""
        if not self.positive or not self.by_truth.stopped[-1]:
            return None
        latest = self.by_truth.position_m[-1] + ROUNDING_M + self.tolerance_m
        return bool(self.by_sut.stopped[-1] and self.by_sut.position_m[-1] <= latest)


def drive_log(store: Store, *, log: str, sut: str, sensitivity: float, setting: str | None = None) -> Driven:
    """Drive one log of a run at the level nearest to a sensitivity (expected false positives per image)."""
    _known("SUT", sut, store.suts)
    chosen = setting or store.run.baseline.id
    _known("mutation", chosen, list(store.groups))
    _known("log", log, sorted({store.frames.logs[i] for i in store.frames.log[store.frames.test]}))
    context = run_context(store, [store.frames.logs.index(log)])
    answers = store.answers(sut, settings=dict.fromkeys((store.run.baseline.id, chosen)))
    baseline = match_detections(answers[store.run.baseline.id], store.truth)
    shared, _ = sensitivity_of(store, baseline)
    k = nearest(shared.levels, sensitivity)
    driver = Driver(sut, chosen, float(shared.levels[k]), float(shared.thresholds[k]))
    matched = match_detections(answers[chosen], store.truth)
    return drive_detections(context, matched, driver, log)


def drive_detections(
    context: Context,
    matched: MatchedDetections,
    driver: Driver,
    log: str,
    *,
    kind: str | None = None,
    placed: PlacedDetections | None = None,
) -> Driven:
    """Drive one log by detections, against one kind of truth (None: the first); `placed` are their places."""
    if context.robot is None:
        raise StudyError(
            "the run has no robot to drive",
            where=f"log {log!r}",
            fix="Add loop to levels: and robot: to the study, and run it again.",
        )
    frames = context.frames
    threshold = np.array([driver.threshold], np.float32)
    place = None if placed is None else lambda: placed
    given = level_input(context, matched, threshold, frames.test, place=place)
    true = context.truths[kind or next(iter(context.truths))]
    runs, left_out = input_playbacks(given, input_obstacles_m(given), true)
    number = frames.logs.index(log)
    if number not in runs:
        raise StudyError("this log cannot be played back", where=f"log {log!r}", got=str(dict(left_out)))
    run = runs[number]
    by_sut, by_truth = (
        trace(run.stations, column, run.too_close_m, run.end_m, context.robot, positive=run.positive)
        for column in (run.obstacles_m[:, 0], run.true_m)
    )
    tolerance_m = context.robot.stop_tolerance_m
    return Driven(log, *driver, by_sut, by_truth, run.positive, tolerance_m)


def example_drives(store: Store, levels: Sequence[str]) -> list[Driven]:
    """Return, for the first SUT that has them, a safe and an unsafe log, un-mutated where there is one.

    `levels` are those that drive; logs are driven at `EXAMPLE_SENSITIVITY`.
    """
    path = store.result("outcomes.parquet")
    if not levels or path is None:
        return []
    shared = store.run.sensitivity
    k = nearest(grid(shared.levels, shared.lowest, shared.highest), EXAMPLE_SENSITIVITY)
    table = pq.read_table(path, columns=["sut", "level", "setting", "log", "truths", "hits"])
    base = pc.list_element(pc.split_pattern(table["level"], "/"), 0)
    table = table.filter(pc.and_(pc.is_in(base, pa.array(levels)), pc.greater(table["truths"], 0)))
    safe = pc.equal(pc.list_element(table["hits"], k), table["truths"])
    examples = []
    for wanted in (True, False):
        for row in table.filter(pc.equal(safe, wanted)).drop_columns(["hits"]).to_pylist():
            try:
                driven = drive_log(
                    store,
                    log=row["log"],
                    sut=row["sut"],
                    sensitivity=EXAMPLE_SENSITIVITY,
                    setting=row["setting"],
                )
            except AdverseError:
                continue
            if driven.safe is wanted:
                examples.append(driven)
                break
    return examples


def _known(noun: str, name: str, names: list[str]) -> None:
    if name not in names:
        raise StudyError(f"the run has no {noun} called {name!r}", fix=suggestion(name, names))

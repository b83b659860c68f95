"""The closed loop: how late, how near and how fast the robot was, and single runs of a log.

Safety counts the logs in which the robot stops no later than the truth would have made it, or later by no
more than its tolerance, which is the buffer between control and safety radius unless the study says
otherwise. Beside it stand the same at tolerance 0 (`at_0`), the share of logs in which the robot moved inside
somebody's safety radius (`violations`) and in which it never stops, and the distributions of lateness,
clearance and speed at the safety radius: a stop 2 mm late is not the same as no stop. A single log can be
driven step by step, by a SUT at one sensitivity and by the truth.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from adverse.analysis.detections import shared_sensitivity
from adverse.analysis.score import ScoredCurve
from adverse.analysis.thresholds import MARKED
from adverse.curves.operating_point import share_of_logs
from adverse.errors import AdverseError, StudyError, suggestion
from adverse.levels.context import Context, PlacedDetections, level_input, run_context
from adverse.levels.loop import STOPS, Playback, input_obstacles_m, input_playbacks
from adverse.levels.match import MatchedDetections, match_detections
from adverse.levels.outcomes import AT_0, Outcomes, grid, nearest
from adverse.levels.places import ROUNDING_M
from adverse.robot.playback import Trace, trace
from adverse.robot.profile import Robot
from adverse.store.read import Store
from adverse.text import CLEAN, setting_id

EXAMPLE_SENSITIVITY = 0.01
"""Expected false positives per image at which the logs that a report shows are driven."""
QUANTILES = {"min": 0.0, "p05": 0.05, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p95": 0.95, "max": 1.0}
STOPS_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("sut", "level", "setting", "log")),
        *((name, pa.list_(pa.float64())) for name in STOPS),
    ]
)


def loop_rows(scored: Sequence[ScoredCurve], sure: float) -> list[dict[str, Any]]:
    """Return rates, with intervals as sure as asked for, and distributions at a few sensitivities.

    A quantile is null where, at that place of the distribution, the robot never stops (lateness) or nobody
    was in sight (clearance).
    """
    rows = []
    for one, outcomes, sensitivity in _driven(scored):
        for k in dict.fromkeys(nearest(sensitivity, shown) for shown in MARKED):
            found: dict[str, Any] = {"sut": one.row.sut, "level": one.row.level, "setting": one.row.setting}
            found |= {"status": one.row.status, **_rates(outcomes, sensitivity, k, sure)}
            found |= _lost_stops(one, k)
            said = outcomes.truths > 0
            for name in STOPS:
                found |= _distribution(name, outcomes.measured[name][said, k])
            rows.append(found)
    return rows


def _lost_stops(one: ScoredCurve, k: int) -> dict[str, int]:
    """Return in how many logs fewer the robot stops in time than un-mutated, of those driven both times."""
    before, after = one.compared[0], one.compared[-1]
    both = (before.truths > 0) & (after.truths > 0)
    lost = int(before.hits[both, k].sum() - after.hits[both, k].sum())
    return {"stops_lost": lost, "logs_compared": int(both.sum())}


def rate_rows(scored: Sequence[ScoredCurve], sure: float) -> list[dict[str, Any]]:
    """Return all rates at every sensitivity, each with its interval."""
    return [
        {
            "sut": one.row.sut,
            "level": one.row.level,
            "setting": one.row.setting,
            **_rates(outcomes, sensitivity, k, sure),
        }
        for one, outcomes, sensitivity in _driven(scored)
        for k in range(len(sensitivity))
    ]


def stops_table(scored: Sequence[ScoredCurve]) -> pa.Table:
    """Return lateness, clearance and speed at the safety radius of every positive log, at all sensitivities.

    Infinite where the robot never stops, or nobody was in sight.
    """
    tables = [STOPS_SCHEMA.empty_table()]
    for one, outcomes, sensitivity in _driven(scored):
        said = np.flatnonzero(outcomes.truths)
        offsets = np.arange(len(said) + 1, dtype=np.int32) * len(sensitivity)
        columns = [
            *(pa.repeat(name, len(said)) for name in (one.row.sut, one.row.level, one.row.setting)),
            pa.array([outcomes.logs[log] for log in said], pa.string()),
            *(
                pa.ListArray.from_arrays(offsets, pa.array(outcomes.measured[name][said].ravel()))
                for name in STOPS
            ),
        ]
        tables.append(pa.table(columns, schema=STOPS_SCHEMA))
    return pa.concat_tables(tables)


def _driven(
    scored: Sequence[ScoredCurve],
) -> Iterator[tuple[ScoredCurve, Outcomes, NDArray[np.float64]]]:
    """Yield the figures of levels that drive, where there is a log to stop in, with their sensitivities."""
    for one in scored:
        if one.outcomes is None or one.curve is None or STOPS[0] not in one.outcomes.measured:
            continue
        if one.outcomes.truths.any():
            yield one, one.outcomes, one.curve.sensitivity


def _rates(outcomes: Outcomes, sensitivity: NDArray[np.float64], k: int, sure: float) -> dict[str, Any]:
    logs = int(outcomes.truths.sum())
    found: dict[str, Any] = {"sensitivity": float(sensitivity[k]), "logs": logs}
    counts = {
        "safety": outcomes.hits[:, k],
        "safety_at_0": outcomes.beside[AT_0][:, k],
        "violations": outcomes.beside["violations"][:, k],
        "never_stops": np.isposinf(outcomes.measured[STOPS[0]][:, k]),
    }
    for name, hits in counts.items():
        interval = share_of_logs(int(hits.sum()), logs, sure)
        found[name] = interval.value
        found[f"{name}_interval"] = interval.plain()
    return found


def _distribution(name: str, values: NDArray[np.float64]) -> dict[str, float | None]:
    parts = quantiles(values)
    return {f"{name}_{part}": value if math.isfinite(value) else None for part, value in parts.items()}


def quantiles(values: NDArray[np.float64]) -> dict[str, float]:
    """Return values of a distribution by name, each one that was measured, be it infinite.

    >>> quantiles(np.array([0.5, -1.0, np.inf, 0.25]))["p50"], quantiles(np.array([0.0, np.inf]))["p75"]
    (0.25, inf)
    """
    rising = np.sort(values)
    return {part: float(rising[max(math.ceil(q * len(rising)) - 1, 0)]) for part, q in QUANTILES.items()}


def stop_rule(store: Store) -> dict[str, float] | None:
    """Return the robot's radii, the buffer between them and the tolerance of stops; None without a robot."""
    if not store.run.robot:
        return None
    robot = Robot(**store.run.robot)
    return {
        "control_radius_m": robot.control_radius_m,
        "safety_radius_m": robot.safety_radius_m,
        "buffer_m": robot.buffer_m,
        "tolerance_m": robot.tolerance_m,
    }


class Stops(NamedTuple):
    """How the positive logs of one SUT and level ended under each setting, at one sensitivity.

    `measured` holds for each setting the arrays (N,) of `STOPS`.
    """

    sut: str
    level: str
    measured: Mapping[str, tuple[NDArray[np.float64], ...]]


def read_stops(store: Store, sensitivity: float = EXAMPLE_SENSITIVITY) -> list[Stops]:
    """Return how every positive log ended at the level nearest to a sensitivity; nothing without a loop."""
    table = stops_at(store, sensitivity)
    keys = table.select(["sut", "level"]).group_by(["sut", "level"], use_threads=False).aggregate([])
    found = []
    for key in keys.to_pylist():
        mine = table.filter((pc.field("sut") == key["sut"]) & (pc.field("level") == key["level"]))
        measured = {}
        for setting in mine["setting"].unique().to_pylist():
            rows = mine.filter(pc.field("setting") == setting)
            measured[setting] = tuple(np.asarray(rows[name].to_numpy()) for name in STOPS)
        found.append(Stops(key["sut"], key["level"], measured))
    return found


def stops_at(store: Store, sensitivity: float = EXAMPLE_SENSITIVITY) -> pa.Table:
    """Return sut, level, setting, log and `STOPS` at the level nearest to a sensitivity; no rows without."""
    path = store.result("stops.parquet")
    names = ["sut", "level", "setting", "log"]
    if path is None:
        return pa.schema(
            [*((name, pa.string()) for name in names), *((name, pa.float64()) for name in STOPS)]
        ).empty_table()
    shared = store.run.sensitivity
    k = nearest(grid(shared.levels, shared.lowest, shared.highest), sensitivity)
    table = pq.read_table(path, columns=names)
    for name in STOPS:  # one by one: whole, they are large
        column = pq.read_table(path, columns=[name])[name]
        table = table.append_column(name, pc.list_element(column, k))
    return table


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
    tolerance_m: float
    """How much later than the truth it may stop."""
    playback: Playback
    """The log that both drove: where its images were taken, and who was where."""
    frames: tuple[str, ...]
    """The ids of those images."""

    @property
    def lateness_m(self) -> float | None:
        """How far behind the truth's place of stop it stops, inf if never; None without such a place."""
        if not self.positive or not self.by_truth.stopped[-1]:
            return None
        if not self.by_sut.stopped[-1]:
            return math.inf
        return float(self.by_sut.position_m[-1] - self.by_truth.position_m[-1])

    @property
    def safe(self) -> bool | None:
        """Whether it stops soon enough, by the tolerance; None where there is nothing to stop for."""
        late = self.lateness_m
        return None if late is None else late <= self.tolerance_m + ROUNDING_M


def drive_log(store: Store, *, log: str, sut: str, sensitivity: float, setting: str | None = None) -> Driven:
    """Drive one log of a run at the level nearest to a sensitivity (expected false positives per image)."""
    _known("SUT", sut, store.suts)
    chosen = setting_id(setting or CLEAN, store.groups)
    _known("mutation", chosen, list(store.groups))
    _known("log", log, sorted({store.frames.logs[i] for i in store.frames.log[store.frames.test]}))
    context = run_context(store, [store.frames.logs.index(log)])
    shared = shared_sensitivity(store, sut)
    k = nearest(shared.levels, sensitivity)
    driver = Driver(sut, chosen, float(shared.levels[k]), float(shared.thresholds[k]))
    rows = np.flatnonzero(store.frames.log == store.frames.logs.index(log))
    frames = [store.frames.ids[row] for row in rows.tolist()]
    matched = match_detections(store.answers(sut, settings=[chosen], frames=frames)[chosen], store.truth)
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
        trace(
            run.stations,
            column,
            run.too_close_m,
            run.end_m,
            context.robot,
            positive=run.positive,
            arrives=arrives,
        )
        for column, arrives in ((run.obstacles_m[:, 0], run.arrives), (run.true_m, None))
    )
    rows = context.paths.found[number].rows
    images = tuple(frames.ids[row] for row in rows[given.counted[rows]].tolist())
    return Driven(log, *driver, by_sut, by_truth, run.positive, context.robot.tolerance_m, run, images)


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

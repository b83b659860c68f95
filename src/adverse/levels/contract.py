"""The contracts of levels and metrics, as checks that can be run on any of them (`adverse check-plugin`).

They are tried on a small made-up run: logs with people and without, true and false detections, tied scores,
depth, poses, a camera and a robot, so that whatever a level says it needs is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from adverse.errors import AdverseError, PluginError
from adverse.levels.context import (
    Context,
    LevelInput,
    LogScores,
    evaluate,
    evaluate_all,
    evaluate_metric,
    level_input,
)
from adverse.levels.match import match_detections
from adverse.levels.outcomes import Events, Outcomes
from adverse.plugins import ContractFinding, Plugin
from adverse.robot.profile import Robot
from adverse.store.tables import Answers, Frames, TruthTable

LOGS, FRAMES = 6, 8
"""Logs of the made-up run, every second one with people, and frames of each."""
CAMERA = (60.0, 60.0, 47.5, 35.5, 96.0, 72.0, np.nan)
THRESHOLDS = np.array([np.inf, 0.9, 0.7, 0.5, 0.3, 0.1, -np.inf], np.float32)
METRIC_THRESHOLD = THRESHOLDS[3:4]
FPR_MAX = 0.1


def check_level(level: Plugin) -> list[ContractFinding]:
    """Run every check on a level; never raises for what the level does wrong."""
    return findings(level, _level_checks)


def check_metric(metric: Plugin) -> list[ContractFinding]:
    """Run every check on a metric; never raises for what the metric does wrong."""
    return findings(metric, _metric_checks)


Check = Callable[[Plugin], object]


def findings(plugin: Plugin, checks: Callable[[], Iterator[tuple[str, Check]]]) -> list[ContractFinding]:
    """Run checks on a plug-in; what it raises is a finding."""
    found = []
    for name, check in checks():
        error: AdverseError | None = None
        try:
            check(plugin)
        except AdverseError as refusal:
            error = refusal
        except Exception as crash:  # noqa: BLE001 - a plug-in may raise anything
            error = PluginError(
                f"the {plugin.kind} crashes", where=plugin.name, got=f"{type(crash).__name__}: {crash}"
            )
        found.append(ContractFinding(plugin.name, name, error))
    return found


def _level_checks() -> Iterator[tuple[str, Check]]:
    yield "a row for each log and a column for each threshold", _has_the_right_shapes
    yield "hits lie between 0 and the truths, costs are not negative", _counts_are_counts
    yield "safety and efficiency lie from 0 to 1", _lies_within_bounds
    yield "a lower threshold never means fewer hits", _never_loses_hits
    yield "no detections, no hits", _sees_nothing_without_detections
    yield "the same twice", _level_repeats
    yield "the order of detections does not matter", _level_ignores_order
    yield "frames that do not count do not matter", _counts_only_counted_frames
    yield "a threshold alone gives the same as among others", _thresholds_are_independent
    yield "its input is left as it is", _level_leaves_input


def _metric_checks() -> Iterator[tuple[str, Check]]:
    yield (
        "a total and a weight for each log, within its range",
        lambda metric: _scores(metric, made_up_input()),
    )
    yield "no detections", lambda metric: _scores(metric, without_detections(made_up_input()))
    yield "no truth", lambda metric: _scores(metric, _without_truth())
    yield "the same twice", _metric_repeats
    yield "the order of detections does not matter", _metric_ignores_order
    yield "its input is left as it is", _metric_leaves_input


def _outcomes(level: Plugin, given: LevelInput) -> dict[str, Outcomes]:
    return evaluate_all([level], given)


def _has_the_right_shapes(level: Plugin) -> None:
    given = made_up_input()
    for name, part in evaluate(level, given).items():
        if level.level is not None and level.level.exact and not isinstance(part, Events):
            raise PluginError(f"{name}: a level with exact=True returns Events", got=type(part).__name__)
    size = (LOGS, len(THRESHOLDS))
    for name, outcomes in _outcomes(level, given).items():
        shapes = {
            "hits": (outcomes.hits.shape, size),
            "truths": (outcomes.truths.shape, size[:1]),
            "cost": (outcomes.cost.shape, size),
            "exposure": (outcomes.exposure.shape, size[:1]),
        }
        for field, (got, wanted) in shapes.items():
            if got != wanted:
                raise PluginError(f"{name}: {field} has the wrong shape", got=str(got), wanted=str(wanted))
        if outcomes.logs != given.frames.logs:
            raise PluginError(f"{name}: its logs are not those of the run", got=", ".join(outcomes.logs))
        if level.level is not None and outcomes.kind != level.level.cost:
            raise PluginError(
                f"{name}: its cost is not what its decorator says", got=outcomes.kind, wanted=level.level.cost
            )


def _counts_are_counts(level: Plugin) -> None:
    for name, outcomes in _outcomes(level, made_up_input()).items():
        finite = np.isfinite(outcomes.cost).all() and np.isfinite(outcomes.exposure).all()
        if not finite or (outcomes.cost < 0).any() or (outcomes.exposure < 0).any():
            raise PluginError(f"{name}: cost and exposure are not finite numbers from 0 up")
        if (outcomes.hits < 0).any() or (outcomes.hits > outcomes.truths[:, None]).any():
            raise PluginError(f"{name}: a log has fewer than 0 hits, or more than it has truths")


def _lies_within_bounds(level: Plugin) -> None:
    for name, outcomes in _outcomes(level, made_up_input()).items():
        for axis, values in (("safety", outcomes.safety()), ("efficiency", outcomes.efficiency(FPR_MAX))):
            defined = values[~np.isnan(values)]
            if ((defined < 0) | (defined > 1)).any():
                raise PluginError(f"{name}: {axis} leaves the range from 0 to 1", got=str(values.tolist()))


def _never_loses_hits(level: Plugin) -> None:
    for name, outcomes in _outcomes(level, made_up_input()).items():
        if (np.diff(outcomes.hits, axis=1) < 0).any():
            raise PluginError(
                f"{name}: a log has fewer hits at a lower threshold",
                wanted="hits that never fall as more detections count",
            )


def _sees_nothing_without_detections(level: Plugin) -> None:
    for name, outcomes in _outcomes(level, without_detections(made_up_input())).items():
        if outcomes.hits.any():
            raise PluginError(f"{name}: it counts hits where there is no detection")


def _level_repeats(level: Plugin) -> None:
    _same_outcomes(_outcomes(level, made_up_input()), _outcomes(level, made_up_input()), "two calls differ")


def _level_ignores_order(level: Plugin) -> None:
    _same_outcomes(
        _outcomes(level, made_up_input()),
        _outcomes(level, made_up_input(order=reversed_detections)),
        "the outcomes depend on the order in which detections are stored",
    )


def _counts_only_counted_frames(level: Plugin) -> None:
    given = made_up_input()
    counted = given.counted & (given.frames.log != 0)
    for name, outcomes in _outcomes(level, replace(given, counted=counted)).items():
        if outcomes.hits[0].any() or outcomes.truths[0] or outcomes.exposure[0]:
            raise PluginError(
                f"{name}: a log counts none of whose frames do",
                fix="Leave out frames where counted is False.",
            )


def _thresholds_are_independent(level: Plugin) -> None:
    together = _outcomes(level, made_up_input())
    for k in range(len(THRESHOLDS)):
        alone = _outcomes(level, replace(made_up_input(), thresholds=THRESHOLDS[k : k + 1]))
        for name, outcomes in together.items():
            part = alone.get(name)
            if part is None or not (
                np.array_equal(part.hits[:, 0], outcomes.hits[:, k])
                and np.array_equal(part.cost[:, 0], outcomes.cost[:, k])
            ):
                raise PluginError(
                    f"{name}: the outcome at a threshold depends on the other thresholds",
                    where=f"threshold {THRESHOLDS[k]:g}",
                )


def _level_leaves_input(level: Plugin) -> None:
    _leaves_input(lambda given: _outcomes(level, given))


def _same_outcomes(first: dict[str, Outcomes], second: dict[str, Outcomes], what: str) -> None:
    if first.keys() != second.keys():
        raise PluginError(what, got=f"{', '.join(first)} and {', '.join(second)}")
    for name, outcomes in first.items():
        for field in ("hits", "truths", "cost", "exposure"):
            if not np.array_equal(getattr(outcomes, field), getattr(second[name], field)):
                raise PluginError(what, where=name, got=f"different {field}")


def _scores(metric: Plugin, given: LevelInput) -> LogScores:
    return evaluate_metric(metric, replace(given, thresholds=METRIC_THRESHOLD))


def _metric_repeats(metric: Plugin) -> None:
    _same_scores(_scores(metric, made_up_input()), _scores(metric, made_up_input()), "two calls differ")


def _metric_ignores_order(metric: Plugin) -> None:
    _same_scores(
        _scores(metric, made_up_input()),
        _scores(metric, made_up_input(order=reversed_detections)),
        "the values depend on the order in which detections are stored",
    )


def _metric_leaves_input(metric: Plugin) -> None:
    _leaves_input(lambda given: _scores(metric, given))


def _same_scores(first: LogScores, second: LogScores, what: str) -> None:
    if not all(np.allclose(a, b, rtol=1e-9, atol=0) for a, b in zip(first, second, strict=True)):
        raise PluginError(what, got=f"{first.total.tolist()} and {second.total.tolist()}"[:300])


def _leaves_input(call: Callable[[LevelInput], object]) -> None:
    given = made_up_input()
    answers = given.answers
    arrays = {"scores": answers.scores, "boxes": answers.boxes, "counted": given.counted}
    before = {name: array.copy() for name, array in arrays.items()}
    call(given)
    for name, array in arrays.items():
        if not np.array_equal(array, before[name]):
            raise PluginError(f"it writes into its input: {name}", fix=f"Start with {name}.copy().")


def made_up_input(
    *, order: Callable[[Answers], Answers] | None = None, truth: TruthTable | None = None
) -> LevelInput:
    """Return the input of a made-up run: a robot that drives up to somebody, or to nobody, in every log."""
    frames, everybody, answers = _frames(), _truth() if truth is None else truth, _answers()
    chosen = answers if order is None else order(answers)
    robot = Robot(control_radius_m=2.0, safety_radius_m=1.0)
    context = Context(frames, everybody, _depths_m(everybody), robot)
    counted = np.ones(len(frames.ids), np.bool_)
    return level_input(context, match_detections(chosen, everybody), THRESHOLDS, counted)


def without_detections(given: LevelInput) -> LevelInput:
    """Return an input whose frames have no detection."""
    answers = given.answers
    none = replace(
        answers,
        offsets=np.zeros_like(answers.offsets),
        boxes=answers.boxes[:0],
        scores=answers.scores[:0],
        labels=answers.labels[:0],
        depths_m=answers.depths_m[:0],
    )
    return level_input(given.context, match_detections(none, given.truth), given.thresholds, given.counted)


def _without_truth() -> LevelInput:
    everybody = _truth()
    nobody = TruthTable(
        everybody.frame[:0],
        everybody.boxes[:0],
        everybody.labels[:0],
        everybody.ignore[:0],
        everybody.positions_m[:0],
        everybody.place[:0],
        everybody.area[:0],
        everybody.crowd[:0],
    )
    return made_up_input(truth=nobody)


STEP_M, PERSON_M, WALL_M = 1.0, 10.0, 3.0


def _frames() -> Frames:
    count = LOGS * FRAMES
    number = np.tile(np.arange(FRAMES), LOGS)
    pose = np.array([[0.0, 0, 1, 0], [-1, 0, 0, 0], [0, -1, 0, 1], [0, 0, 0, 1]])
    poses = np.tile(pose, (count, 1, 1))
    poses[:, 0, 3] = STEP_M * number
    return Frames(
        tuple(f"log{n // FRAMES}/{n % FRAMES}" for n in range(count)),
        tuple(f"log{n}" for n in range(LOGS)),
        np.repeat(np.arange(LOGS), FRAMES),
        np.ones(count, np.bool_),
        poses,
        np.tile(np.array(CAMERA), (count, 1)),
        number / 7.5,
    )


def _people() -> NDArray[np.int64]:
    """Return the frames that show somebody: those of every second log."""
    return np.flatnonzero((np.arange(LOGS * FRAMES) // FRAMES) % 2 == 0)


def _truth() -> TruthTable:
    frame = _people()
    count = len(frame)
    away_m = PERSON_M - STEP_M * (frame % FRAMES)
    half = 0.4 * CAMERA[0] / away_m
    boxes = np.stack([48 - half, 36 - half, 48 + half, 36 + half], axis=1)
    return TruthTable(
        frame,
        boxes,
        np.zeros(count, np.int64),
        frame % FRAMES == 0,
        np.tile([PERSON_M, 0.0, 1.0], (count, 1)),
        np.zeros(count, np.int64),
        np.zeros(count),
        np.zeros(count, np.bool_),
    )


def _depths_m(truth: TruthTable) -> NDArray[np.float64]:
    return PERSON_M - STEP_M * (truth.frame % FRAMES).astype(np.float64)


def _answers() -> Answers:
    """Return detections of most people, and of a wall on every fourth frame; some scores are equal."""
    truth = _truth()
    rows: list[tuple[int, NDArray[np.float64], float, float]] = []
    rows += [
        (frame, box + 0.25 * (n % 3), 0.2 + 0.2 * (n % 4), float(_depths_m(truth)[n]))
        for n, (frame, box) in enumerate(zip(truth.frame.tolist(), truth.boxes, strict=True))
        if n % 5
    ]
    rows += [
        (frame, np.array([10.0, 2, 40, 20]), 0.2 + 0.2 * (frame // 4 % 4), WALL_M)
        for frame in range(0, LOGS * FRAMES, 4)
    ]
    rows.sort(key=lambda row: row[0])
    counts = np.bincount([row[0] for row in rows], minlength=LOGS * FRAMES)
    return Answers(
        np.arange(LOGS * FRAMES),
        np.zeros(LOGS * FRAMES, np.int8),
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        np.array([row[1] for row in rows], np.float32),
        np.array([row[2] for row in rows], np.float32),
        np.zeros(len(rows), np.int64),
        np.array([row[3] for row in rows], np.float32),
    )


def reversed_detections(answers: Answers) -> Answers:
    """Return the same answers with the detections of every frame in the opposite order."""
    spans = zip(answers.offsets[:-1].tolist(), answers.offsets[1:].tolist(), strict=True)
    order = np.concatenate([np.arange(start, end)[::-1] for start, end in spans]).astype(np.int64)
    return replace(
        answers,
        boxes=answers.boxes[order],
        scores=answers.scores[order],
        labels=answers.labels[order],
        depths_m=answers.depths_m[order],
    )

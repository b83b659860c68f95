"""What a level is computed from: detections matched with the truth, placed on the ground and along a path.

Truth can be had in two ways: places that people annotated, and the Localizer applied to the true boxes, which
fails where it fails for the SUT too. Whatever is there is reported, as `located/annotated` and so on.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.errors import AdverseError, PluginError, one_line
from adverse.levels.match import MatchedDetections
from adverse.levels.outcomes import Events, Outcomes, first_level
from adverse.levels.places import (
    LogPaths,
    Places,
    by_answer,
    by_depth,
    by_position,
    log_paths,
    path_distances_m,
    stations_m,
)
from adverse.plugins import Plugin, origin
from adverse.robot.profile import Robot
from adverse.seeds import generator
from adverse.store.read import Store
from adverse.store.tables import Answers, Frames, TruthTable

ANNOTATED, LOCALIZED = "annotated", "localized"


@dataclass(frozen=True, eq=False)
class PlacedDetections:
    """The detections of one SUT under one setting, on the ground and along the path."""

    answers: Answers
    places: Places
    distance_m: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TruePlaces:
    """Where the true objects are, and how far along the path the robot must stop and is too close."""

    places: Places
    distance_m: NDArray[np.float64]
    too_close_m: NDArray[np.float64]


class Context:
    """What is known of a run, or of some of its logs (their numbers), beyond its images."""

    def __init__(
        self,
        frames: Frames,
        truth: TruthTable,
        localized_m: NDArray[np.float64],
        robot: Robot | None = None,
        *,
        logs: Collection[int] | None = None,
        seed: int = 0,
    ) -> None:
        self.seed = seed
        self.frames = frames
        self.truth = truth
        self.robot = robot
        self.paths = log_paths(frames, logs) if robot else LogPaths({}, {})
        self.stations = stations_m(frames, self.paths)
        self.localized_m = localized_m
        self.truths = {kind: self._truth(places) for kind, places in self._kinds().items()}

    @cached_property
    def lost_frames(self) -> NDArray[np.bool_]:
        """The frames (F,) that are lost before the robot's controller knows of them, drawn by their log.

        They are the same for all SUTs and settings; those of a lower rate are among those of a higher one.
        """
        rate = self.robot.drop_rate if self.robot else 0.0
        lost = np.zeros(len(self.frames.ids), np.bool_)
        for log, name in enumerate(self.frames.logs if rate else ()):
            rows = np.flatnonzero(self.frames.log == log)
            lost[rows] = generator(self.seed, name, "lost frames").random(len(rows)) < rate
        return lost

    def place(self, answers: Answers) -> PlacedDetections:
        """Place the detections of one SUT under one setting."""
        frame = np.repeat(answers.frame, np.diff(answers.offsets))
        places = by_answer(self.frames, frame, answers)
        radius_m = self.robot.control_radius_m if self.robot else 0.0
        return PlacedDetections(answers, places, self._along(places, radius_m))

    def _kinds(self) -> dict[str, Places]:
        frames, truth = self.frames, self.truth
        annotated = by_position(frames, truth.frame, truth.positions_m)
        localized = by_depth(frames, truth.frame, truth.boxes, self.localized_m)
        kinds = {ANNOTATED: annotated, LOCALIZED: localized}
        known = {name: places for name, places in kinds.items() if np.isfinite(places.points_m).any()}
        return known or {LOCALIZED: localized}

    def _truth(self, places: Places) -> TruePlaces:
        if self.robot is None:
            nowhere = np.full(len(places.frame), np.nan)
            return TruePlaces(places, nowhere, nowhere)
        return TruePlaces(
            places,
            self._along(places, self.robot.control_radius_m),
            self._along(places, self.robot.safety_radius_m),
        )

    def _along(self, places: Places, radius_m: float) -> NDArray[np.float64]:
        return path_distances_m(self.frames, self.paths, places, radius_m)


def run_context(store: Store, logs: Collection[int] | None = None) -> Context:
    """Return the context of a run, or of some of its logs (their numbers)."""
    robot = Robot(**store.run.robot) if store.run.robot else None
    depths_m = store.truth_depths_m().astype(np.float64)
    return Context(store.frames, store.truth, depths_m, robot, logs=logs, seed=store.run.seed)


@dataclass(frozen=True, eq=False)
class LevelInput:
    """One SUT under one setting: what the function of a level or of a metric takes.

    `thresholds` (K,) fall from one sensitivity to the next; a detection counts where its score is no lower
    than the threshold. A metric gets one threshold. `counted` (F,) marks the frames to evaluate.
    """

    matched: MatchedDetections
    thresholds: NDArray[np.float32]
    counted: NDArray[np.bool_]
    context: Context
    place: Callable[[], PlacedDetections]

    @property
    def answers(self) -> Answers:
        """The detections, with their frames."""
        return self.matched.answers

    @property
    def frames(self) -> Frames:
        """All frames of the run, with their logs."""
        return self.context.frames

    @property
    def truth(self) -> TruthTable:
        """The true objects."""
        return self.context.truth

    @cached_property
    def first_levels(self) -> NDArray[np.int64]:
        """The first threshold at which each detection counts; the number of thresholds if at none."""
        return first_level(self.answers.scores, self.thresholds)

    @cached_property
    def placed(self) -> PlacedDetections:
        """The detections on the ground; for levels that need depth."""
        return self.place()

    @property
    def true_places(self) -> Mapping[str, TruePlaces]:
        """Where the true objects are, as annotated and as localized by depth, whichever is there."""
        return self.context.truths

    @property
    def robot(self) -> Robot | None:
        """The robot of the study, for levels that need one."""
        return self.context.robot


class LogScores(NamedTuple):
    """What a metric comes to by log: the sum of its values (L,) and how many there are (L,), or their weight.

    The metric of a run is the sum of all totals over the sum of all weights.
    """

    total: NDArray[np.float64]
    weight: NDArray[np.float64]


def level_input(
    context: Context,
    matched: MatchedDetections,
    thresholds: NDArray[np.float32],
    counted: NDArray[np.bool_],
    *,
    place: Callable[[], PlacedDetections] | None = None,
) -> LevelInput:
    """Return what levels are worked out from; `place` can share the places with other calls."""
    return LevelInput(
        matched,
        thresholds,
        counted,
        context,
        place or (lambda: context.place(matched.answers)),
    )


def evaluate(level: Plugin, given: LevelInput) -> dict[str, Events | Outcomes]:
    """Return what a level comes to, by the names of its rows: `level/variant`, or the level alone."""
    result = call_plugin(level, given)
    variants = level.level.variants if level.level is not None else ()
    if isinstance(result, Events | Outcomes) and not variants:
        return {level.name: result}
    if not isinstance(result, Mapping) or not set(result) <= set(variants):
        names = ", ".join(map(str, result)) if isinstance(result, Mapping) else type(result).__name__
        raise PluginError(
            f"the level {level.name} does not return what its decorator says",
            got=names,
            wanted=f"a dict by {', '.join(variants)}" if variants else "Events or Outcomes",
        )
    return {f"{level.name}/{variant}": part for variant, part in result.items()}


def evaluate_all(levels: Collection[Plugin], given: LevelInput) -> dict[str, Outcomes]:
    """Return the outcomes of levels per log and sensitivity, by the names of their rows."""
    rows = {name: part for level in levels for name, part in evaluate(level, given).items()}
    count = len(given.thresholds)
    return {name: part.outcomes(count) if isinstance(part, Events) else part for name, part in rows.items()}


def call_plugin(plugin: Plugin, given: Any) -> Any:
    """Call a level, metric or relation; whatever it raises is its own error, not an internal one."""
    try:
        return plugin.function(given)
    except AdverseError:
        raise
    except Exception as error:
        file = origin(plugin)
        lines = [
            frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file
        ]
        raise PluginError(
            f"the {plugin.kind} {plugin.name} crashes",
            where=f"{file}, line {lines[-1]}" if lines else file,
            got=one_line(error),
            fix="Try it with adverse check-plugin; the detections are kept, so analyze is enough afterwards.",
        ) from error


def evaluate_metric(metric: Plugin, given: LevelInput) -> LogScores:
    """Return what a metric comes to by log, or say what is wrong with it."""
    result = call_plugin(metric, given)
    logs = len(given.frames.logs)
    if not isinstance(result, LogScores):
        raise PluginError(
            f"the metric {metric.name} returns no LogScores", got=type(result).__name__, wanted="LogScores"
        )
    total, weight = (np.asarray(part, np.float64) for part in result)
    if total.shape != (logs,) or weight.shape != (logs,):
        raise PluginError(
            f"the metric {metric.name} does not return a number for each log",
            got=f"{total.shape} and {weight.shape}",
            wanted=f"({logs},) for total and weight",
        )
    low, high = (metric.metric.lowest, metric.metric.highest) if metric.metric else (0.0, 1.0)
    slack = 1e-9 * (1 + np.abs(total))
    there = np.where(weight > 0, weight, 1.0)  # of a range without end, 0 times the end is no number
    lowest, highest = (np.where(weight > 0, end * there, 0.0) for end in (low, high))
    inside = (total >= lowest - slack) & (total <= highest + slack)
    if not (np.isfinite(total).all() and np.isfinite(weight).all() and (weight >= 0).all() and inside.all()):
        raise PluginError(
            f"the metric {metric.name} has values that it cannot have",
            got=f"total {total.tolist()}, weight {weight.tolist()}"[:300],
            wanted=f"finite numbers, weights from 0 up, total / weight from {low:g} to {high:g}",
        )
    return LogScores(total, weight)

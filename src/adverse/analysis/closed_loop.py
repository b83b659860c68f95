"""The closed loop of one SUT at any thresholds: at its operating point, or at all that it might have.

The robot may be another than the study's: slower, with a wider control radius, or one that stops only for
what several images in a row show.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from adverse.analysis.detections import SutDetections
from adverse.curves.interval import Interval, korn_graubard
from adverse.errors import StudyError
from adverse.levels.context import Context, LevelInput, level_input
from adverse.levels.loop import input_obstacles_m, input_playbacks, loop_outcomes
from adverse.levels.outcomes import Outcomes
from adverse.robot.profile import Robot
from adverse.store.read import Store
from adverse.store.tables import QUARANTINED

LEVEL = "loop"
VIOLATIONS, STOPS_IN_TIME = "violations", "stops_in_time"


@dataclass(frozen=True, eq=False)
class DrivenSettings:
    """How the logs of a SUT ended under each setting at K thresholds, against one kind of truth.

    `incomplete` are the settings under which more frames could not be used than the study allows.
    """

    level: str
    settings: Mapping[str, Outcomes]
    incomplete: frozenset[str]


@dataclass(frozen=True)
class Operation:
    """How a robot is driven: its top speed, its control radius, and how many images in a row it believes."""

    max_speed_mps: float
    control_radius_m: float
    confirm: int = 1

    @classmethod
    def of(cls, robot: Robot) -> Operation:
        """Return how the study's robot is driven: it stops for what a single image shows."""
        return cls(robot.max_speed_mps, robot.control_radius_m)

    def robot(self, base: Robot) -> Robot:
        """Return a robot that is driven so; what else it is, and its tolerance, stay as they are."""
        return replace(
            base,
            max_speed_mps=self.max_speed_mps,
            control_radius_m=self.control_radius_m,
            stop_tolerance_m=base.tolerance_m,
        )

    def words(self) -> str:
        """Say it in few words.

        >>> Operation(3.0, 2.0).words(), Operation(2.5, 2.0, 2).words()
        ('3 m/s, 2 m, 1 image', '2.5 m/s, 2 m, 2 images')
        """
        images = f"{self.confirm} image{'' if self.confirm == 1 else 's'}"
        return f"{self.max_speed_mps:g} m/s, {self.control_radius_m:g} m, {images}"


def drive_settings(
    store: Store,
    detections: SutDetections,
    context: Context,
    thresholds: NDArray[np.float32],
    operation: Operation | None = None,
) -> list[DrivenSettings]:
    """Drive every setting of a SUT at some thresholds, falling; one result for each kind of truth.

    `operation` is how the robot is driven; None: as the study says.
    """
    if context.robot is None:
        raise StudyError(
            "the run has no robot to drive",
            where=str(store.folder.path),
            fix="Add loop to levels: and robot: to the study, and run it again.",
        )
    if operation is not None:
        robot = operation.robot(context.robot)
        context = Context(context.frames, context.truth, context.localized_m, robot)
    confirm = 1 if operation is None else operation.confirm
    by_kind: dict[str, dict[str, Outcomes]] = {}
    incomplete = set()
    for setting, matched in detections.settings.items():
        given = level_input(context, matched, thresholds, detections.counted(setting))
        for kind, outcomes in _loop(given, confirm).items():
            by_kind.setdefault(kind, {})[setting] = outcomes
        tested = matched.answers.status[store.frames.test[matched.answers.frame]]
        if (tested == QUARANTINED).sum() > store.run.quarantine_budget * len(tested):
            incomplete.add(setting)
    return [
        DrivenSettings(f"{LEVEL}/{kind}", settings, frozenset(incomplete))
        for kind, settings in by_kind.items()
    ]


def _loop(given: LevelInput, confirm: int) -> dict[str, Outcomes]:
    """Return what the level `loop` does, of a robot that believes `confirm` images in a row."""
    obstacles = confirmed(input_obstacles_m(given), given, confirm)
    outcomes = {}
    for kind, true in given.true_places.items():
        runs, left_out = input_playbacks(given, obstacles, true)
        if given.robot is not None:
            count = len(given.thresholds)
            outcomes[kind] = loop_outcomes(runs, left_out, given.frames, count, given.robot)
    return outcomes


def confirmed(obstacles: NDArray[np.float64], given: LevelInput, confirm: int) -> NDArray[np.float64]:
    """Return the obstacles (F, K) that count where a robot stops only for `confirm` images in a row.

    An image counts where it and those before it in its log, of the images that could be used, all show
    something in the way; wherever that is.
    """
    if confirm == 1:
        return obstacles
    kept = obstacles.copy()
    for path in given.context.paths.found.values():
        rows = path.rows[given.counted[path.rows]]
        seen = np.isfinite(obstacles[rows])
        alike = seen.copy()
        for back in range(1, confirm):
            alike[back:] &= seen[:-back]
            alike[:back] = False
        kept[rows] = np.where(alike, obstacles[rows], np.inf)
    return kept


def bad_logs(outcomes: Outcomes, measure: str) -> NDArray[np.int64]:
    """Return which logs end badly (L, K): with a violation, or without a stop in time."""
    if measure == VIOLATIONS:
        return outcomes.beside[VIOLATIONS]
    return outcomes.truths[:, None] - outcomes.hits


def closed_loop_rate(
    settings: Mapping[str, Outcomes],
    measure: str,
    chances: Mapping[str, float],
    k: int = 0,
    *,
    confidence: float = 0.95,
) -> Interval:
    """Return `violations` or `stops_in_time` at a threshold, to be expected of conditions with such chances.

    Only logs that were driven under all of them count; each is one trial.
    """
    there = np.logical_and.reduce([settings[name].truths > 0 for name in chances])
    share = np.zeros(int(there.sum()))
    for name, chance in chances.items():
        share += chance * bad_logs(settings[name], measure)[there, k]
    share = np.clip(share, 0.0, 1.0)
    bad = share if measure == VIOLATIONS else 1.0 - share
    return korn_graubard(bad, np.ones(len(share)), confidence=confidence)

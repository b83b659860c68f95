"""The closed loop of one SUT at any thresholds: at its operating point, or at all that it might have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adverse.analysis.detections import SutDetections
from adverse.curves.interval import Interval, korn_graubard
from adverse.errors import StudyError
from adverse.levels.context import Context, level_input
from adverse.levels.loop import loop
from adverse.levels.outcomes import Outcomes
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


def drive_settings(
    store: Store, detections: SutDetections, context: Context, thresholds: NDArray[np.float32]
) -> list[DrivenSettings]:
    """Drive every setting of a SUT at some thresholds, falling; one result for each kind of truth."""
    if context.robot is None:
        raise StudyError(
            "the run has no robot to drive",
            where=str(store.folder.path),
            fix="Add loop to levels: and robot: to the study, and run it again.",
        )
    by_kind: dict[str, dict[str, Outcomes]] = {}
    incomplete = set()
    for setting, matched in detections.settings.items():
        given = level_input(context, matched, thresholds, detections.counted(setting))
        for kind, outcomes in loop(given).items():
            by_kind.setdefault(kind, {})[setting] = outcomes
        tested = matched.answers.status[store.frames.test[matched.answers.frame]]
        if (tested == QUARANTINED).sum() > store.run.quarantine_budget * len(tested):
            incomplete.add(setting)
    return [
        DrivenSettings(f"{LEVEL}/{kind}", settings, frozenset(incomplete))
        for kind, settings in by_kind.items()
    ]


def bad_logs(outcomes: Outcomes, measure: str) -> NDArray[np.int64]:
    """Return which logs end badly (L, K): with a violation, or without a stop in time."""
    if measure == VIOLATIONS:
        return outcomes.beside[VIOLATIONS]
    return outcomes.truths[:, None] - outcomes.hits


def closed_loop_rate(
    settings: Mapping[str, Outcomes], measure: str, chances: Mapping[str, float], k: int = 0
) -> Interval:
    """Return `violations` or `stops_in_time` at a threshold, to be expected of conditions with such chances.

    Only logs that were driven under all of them count; each is one trial.
    """
    there = np.logical_and.reduce([settings[name].truths > 0 for name in chances])
    share = np.zeros(int(there.sum()))
    for name, chance in chances.items():
        share += chance * bad_logs(settings[name], measure)[there, k]
    share = np.clip(share, 0.0, 1.0)
    return korn_graubard(share if measure == VIOLATIONS else 1.0 - share, np.ones(len(share)))

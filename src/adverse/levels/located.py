"""The located level: detections as places on the ground, not boxes (Pezzementi et al. 2021, 8.2.1).

A detection is right within 1 m of a true place, one detection for each person, the strongest first. Only
people up to 10 m away count for safety, only detections located there for efficiency: further away neither
would make the robot do anything.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from adverse.levels.context import ANNOTATED, LOCALIZED, LevelInput
from adverse.levels.match import strongest_first
from adverse.levels.outcomes import Events, Outcomes, as_float, first_level, first_per_frame, positive_logs
from adverse.levels.places import Places
from adverse.plugins import level
from adverse.store.tables import Answers, Frames, TruthTable

RANGE_M = 10.0
RIGHT_WITHIN_M = 1.0


@level(
    title="people as places on the ground",
    sentence="This level judges places on the ground within reach of the robot, not boxes.",
    needs=("depth", "pose", "camera"),
    variants=(ANNOTATED, LOCALIZED),
    safety="targets in reach found",
    efficiency="false alarms avoided",
    exact=True,
)
def located(given: LevelInput) -> dict[str, Events]:
    """Evaluate detections as places on the ground, up to 10 m away; needs depth, poses and a camera."""
    return {
        kind: located_events(
            given.answers,
            given.placed.places,
            given.truth,
            true.places,
            given.frames,
            given.first_levels,
            given.counted,
        )
        for kind, true in given.true_places.items()
    }


def located_outcomes(
    answers: Answers,
    detected: Places,
    truth: TruthTable,
    true: Places,
    frames: Frames,
    thresholds: NDArray[np.float32],
    counted: NDArray[np.bool_],
) -> Outcomes:
    """Return the outcomes over the frames that count (a mask over all frames)."""
    first = first_level(answers.scores, thresholds)
    events = located_events(answers, detected, truth, true, frames, first, counted)
    return events.outcomes(len(thresholds))


def located_events(
    answers: Answers,
    detected: Places,
    truth: TruthTable,
    true: Places,
    frames: Frames,
    level: NDArray[np.int64],
    counted: NDArray[np.bool_],
) -> Events:
    """Return the hits and false alarms, and the level each begins at.

    `level` (N,) is the first level at which each detection counts.
    """
    groups = len(frames.logs)
    near = (detected.range_m <= RANGE_M) & counted[detected.frame]
    meant = (true.range_m <= RANGE_M) & counted[truth.frame] & ~truth.ignore
    hit = _right(answers, detected, truth, true, meant) & counted[detected.frame]
    positive = positive_logs(truth, frames)
    false = near & ~positive[frames.log[detected.frame]]
    seen, strongest = first_per_frame(detected.frame[false], level[false])
    images = as_float(np.bincount(frames.log[counted], minlength=groups))
    return Events(
        frames.logs,
        frames.log[detected.frame[hit]],
        level[hit],
        np.bincount(frames.log[truth.frame[meant]], minlength=groups),
        frames.log[seen],
        strongest,
        np.where(positive, 0.0, images),
    )


def _right(
    answers: Answers, detected: Places, truth: TruthTable, true: Places, meant: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return which detections are the first within 1 m of a person; ties go by place, never by storage."""
    order = strongest_first(answers.offsets, answers.scores, detected.points_m)
    chosen = np.flatnonzero(meant)
    ordered = chosen[np.lexsort((*true.points_m[chosen].T[::-1], truth.frame[chosen]))]
    right: NDArray[np.bool_] = _match_points(
        order,
        answers.offsets,
        detected.points_m,
        answers.labels,
        np.searchsorted(truth.frame[ordered], answers.frame, side="left"),
        np.searchsorted(truth.frame[ordered], answers.frame, side="right"),
        true.points_m[ordered],
        truth.labels[ordered],
    )
    return right


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _match_points(
    order: Any,
    offsets: Any,
    points: Any,
    labels: Any,
    first: Any,
    last: Any,
    true_points: Any,
    true_labels: Any,
) -> Any:  # pragma: no cover - compiled
    right = np.zeros(len(order), np.bool_)
    taken = np.zeros(len(true_points), np.bool_)
    for row in range(len(first)):
        for d in order[offsets[row] : offsets[row + 1]]:
            best, nearest = -1, RIGHT_WITHIN_M
            for t in range(first[row], last[row]):
                if taken[t] or true_labels[t] != labels[d]:
                    continue
                away = np.hypot(points[d, 0] - true_points[t, 0], points[d, 1] - true_points[t, 1])
                if away < nearest or (away == nearest and best < 0):
                    best, nearest = t, away
            if best >= 0:
                taken[best] = True
                right[d] = True
    return right

"""The path level: only what is in the way counts, and how soon (Pezzementi et al. 2021, section 8.2.2).

An image with a person less than 2 m of path away (strict) is a miss unless some detection asks for a stop no
later than the person does, or later by no more than the robot's tolerance: the buffer between its control and
safety radius (3.1). The hits at tolerance 0 stand beside (`at_0`). From 2 to 5 m (lenient) there is time for
a second look: a miss is forgiven if the image before had seen the person, and a false alarm counts only when
the image before raised one in that range too, at the strength of the weaker of the two. (The paper counts a
miss "if there was also a miss in the previous frame"; where the previous frame had nobody in the way, or
there is none, nothing was seen, and nothing is forgiven: a blind detector scores 0.)
"""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from adverse.levels.context import ANNOTATED, LOCALIZED, LevelInput
from adverse.levels.outcomes import AT_0, Events, as_float, first_level, positive_logs
from adverse.levels.places import ROUNDING_M, LogPaths
from adverse.plugins import level
from adverse.store.tables import Answers, Frames, TruthTable

STRICT_M = 2.0
LENIENT_M = 5.0


@level(
    title="people in the robot's way",
    sentence="This level judges whole images: whether what is in the robot's way is seen in time.",
    needs=("depth", "pose", "camera", "robot"),
    variants=(ANNOTATED, LOCALIZED),
    hits="images see what is in the way",
    safety="images that see what is in the way",
    efficiency="false alarms avoided",
    exact=True,
)
def path(given: LevelInput) -> dict[str, Events]:
    """Evaluate only what is in the robot's way, and how soon; needs what located needs, and robot:."""
    return {
        kind: path_events(
            given.answers,
            given.placed.distance_m,
            given.truth,
            true.distance_m,
            given.frames,
            given.thresholds,
            given.counted,
            given.context.paths,
            tolerance_m=given.robot.tolerance_m if given.robot else 0.0,
        )
        for kind, true in given.true_places.items()
    }


def path_events(
    answers: Answers,
    detected_m: NDArray[np.float64],
    truth: TruthTable,
    true_m: NDArray[np.float64],
    frames: Frames,
    thresholds: NDArray[np.float32],
    counted: NDArray[np.bool_],
    paths: LogPaths,
    *,
    tolerance_m: float,
) -> Events:
    """Return the images that end well and those with a false alarm, and the level each begins at.

    Only frames that count (a mask over all frames) and whose log has a path are evaluated. `detected_m` and
    `true_m` are the pathified distances of detections and true objects; a detection may ask for a stop
    `tolerance_m` later than the truth.
    """
    count, levels = len(frames.ids), len(thresholds)
    counted = counted & np.isin(frames.log, list(paths.found))
    frame = np.repeat(answers.frame, np.diff(answers.offsets))
    first = first_level(answers.scores, thresholds)
    needed = _least(count, truth.frame[~truth.ignore], true_m[~truth.ignore])
    with np.errstate(invalid="ignore"):
        strict = detected_m < STRICT_M
        lenient = (detected_m >= STRICT_M) & (detected_m < LENIENT_M)
    soon = _earliest(count, frame[strict], first[strict], levels)
    later = _earliest(count, frame[lenient], first[lenient], levels)
    before = _previous(frames, counted)
    positive = positive_logs(truth, frames)[frames.log]
    evaluated = counted & (needed < LENIENT_M)

    def hit_level(tolerance_m: float) -> NDArray[np.int64]:
        with np.errstate(invalid="ignore"):
            enough = detected_m <= needed[frame] + tolerance_m + ROUNDING_M
        right = _earliest(count, frame[enough], first[enough], levels)
        return np.where(needed < STRICT_M, right, _forgiving(right, needed, before))[evaluated]

    alarm_level = np.minimum(soon, np.where(before >= 0, np.maximum(later, later[before]), levels))
    negative = counted & ~positive
    groups = len(frames.logs)
    tested = set(frames.log[frames.test].tolist())
    lost = Counter(reason for log, reason in paths.refused.items() if log in tested)
    silent = {*frames.log[counted & positive].tolist()} - {*frames.log[evaluated].tolist()}
    if silent:
        lost[f"nobody within {LENIENT_M:g} m of its way"] += len(silent)
    return Events(
        frames.logs,
        frames.log[evaluated],
        hit_level(tolerance_m),
        np.bincount(frames.log[evaluated], minlength=groups),
        frames.log[negative],
        alarm_level[negative],
        as_float(np.bincount(frames.log[negative], minlength=groups)),
        dict(lost),
        {AT_0: hit_level(0.0)},
    )


def _forgiving(
    right: NDArray[np.int64], needed: NDArray[np.float64], before: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the level from which a lenient image is no miss: its own, or that of the image before."""
    somebody_before = (before >= 0) & np.isfinite(needed[before])
    return np.where(somebody_before, np.minimum(right, right[before]), right)


def _least(count: int, frame: NDArray[np.int64], distance_m: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the smallest distance of each frame; inf where there is none."""
    found = np.full(count, np.inf)
    np.fmin.at(found, frame, distance_m)
    return found


def _earliest(
    count: int, frame: NDArray[np.int64], level: NDArray[np.int64], levels: int
) -> NDArray[np.int64]:
    """Return the first level at which something in each frame counts; `levels` where nothing does."""
    found = np.full(count, levels, np.int64)
    np.minimum.at(found, frame, level)
    return found


def _previous(frames: Frames, counted: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return for each frame the one before it in its log that counts; -1 for the first."""
    before = np.full(len(frames.ids), -1, np.int64)
    rows = np.flatnonzero(counted)
    same = frames.log[rows[1:]] == frames.log[rows[:-1]]
    before[rows[1:][same]] = rows[:-1][same]
    return before

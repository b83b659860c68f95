"""The image level: one image at a time, without any context (Pezzementi et al. 2021, section 6.1).

ROC_A: safety is recall; efficiency falls with all false positives over all images. ROC_B: recall on
positive logs; efficiency falls with the share of images of NEGATIVE logs on which anything fires, so that a
false alarm beside a real person, which would stop the robot anyway, costs nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from adverse.levels.context import LevelInput
from adverse.levels.match import FALSE, HIT, IGNORED, MatchedDetections
from adverse.levels.outcomes import Events, Outcomes, as_float, first_level, first_per_frame, positive_logs
from adverse.plugins import level
from adverse.store.tables import Frames, TruthTable

ROC_A, ROC_B = "ROC_A", "ROC_B"


@level(
    title="single images",
    sentence="This level judges boxes on single images; ROC_B has false alarms only where nobody is.",
    variants=(ROC_A, ROC_B),
    safety="targets found",
    efficiency="false alarms avoided",
    exact=True,
)
def image(given: LevelInput) -> dict[str, Events]:
    """Evaluate the detections alone, per image: ROC_A and ROC_B."""
    return image_events(given.matched, given.truth, given.frames, given.first_levels, given.counted)


def image_outcomes(
    matched: MatchedDetections,
    truth: TruthTable,
    frames: Frames,
    thresholds: NDArray[np.float32],
    counted: NDArray[np.bool_],
) -> dict[str, Outcomes]:
    """Return the outcomes of ROC_A and ROC_B over the frames that count (a mask over all frames)."""
    first = first_level(matched.answers.scores, thresholds)
    events = image_events(matched, truth, frames, first, counted)
    return {variant: part.outcomes(len(thresholds)) for variant, part in events.items()}


def image_events(
    matched: MatchedDetections,
    truth: TruthTable,
    frames: Frames,
    level: NDArray[np.int64],
    counted: NDArray[np.bool_],
) -> dict[str, Events]:
    """Return the hits and false alarms of ROC_A and ROC_B, and the level each begins at.

    `level` (N,) is the first level at which each detection counts.
    """
    groups = len(frames.logs)
    log_of = frames.log
    frame = matched.frame
    on = counted[frame]

    positive = positive_logs(truth, frames)
    real = counted[truth.frame] & ~truth.ignore
    truths = np.bincount(log_of[truth.frame[real]], minlength=groups)
    images = as_float(np.bincount(log_of[counted], minlength=groups))
    hit, false = on & (matched.outcome == HIT), on & (matched.outcome == FALSE)
    negative = on & ~positive[log_of[frame]] & (matched.outcome != IGNORED)
    seen, strongest = first_per_frame(frame[negative], level[negative])
    hits = log_of[frame[hit]], level[hit]
    return {
        ROC_A: Events(frames.logs, *hits, truths, log_of[frame[false]], level[false], images),
        ROC_B: Events(frames.logs, *hits, truths, log_of[seen], strongest, np.where(positive, 0.0, images)),
    }

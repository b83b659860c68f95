"""The detections of two answers to the same frame, paired: which object of one is which of the other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from adverse.levels.context import LevelInput
from adverse.levels.match import HIT, above, as_truth, match
from adverse.relations.relation import Checks, RelationInput
from adverse.store.tables import Answers


def kept_objects(given: RelationInput) -> Checks:
    """Check that the objects of the clean frame are those of the changed one.

    Each object that is detected on either holds where it is detected on both: one to one, of one class, by an
    overlap of at least one half, the surest first. An object of one of them alone is a violation.
    """
    clean, changed = (counting(part, given.counted) for part in (given.clean, given.changed))
    matched = match(changed, as_truth(clean))
    again = np.zeros(len(clean.scores), np.bool_)
    again[matched.truth[matched.outcome == HIT]] = True
    before = Checks(frame_of(clean), clean.boxes.astype(np.float64), again, clean.scores.astype(np.float64))
    new = matched.outcome != HIT
    scores = changed.scores[new].astype(np.float64)
    boxes = changed.boxes[new].astype(np.float64)
    return before.and_also(Checks(frame_of(changed)[new], boxes, np.zeros(len(scores), np.bool_), scores))


def frame_of(answers: Answers) -> NDArray[np.int64]:
    """Return the frame that each detection is on."""
    return np.repeat(answers.frame, np.diff(answers.offsets))


def counting(given: LevelInput, counted: NDArray[np.bool_]) -> Answers:
    """Return the detections at or above the threshold on the frames that count; none without a size."""
    return above(given.answers, given.thresholds[0], counted=counted)

"""Monotone loss over strength: who is lost under a mutation is not found again when there is more of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from adverse.levels.context import LevelInput
from adverse.levels.match import HIT
from adverse.plugins import relation
from adverse.relations.relation import Checks, RelationInput


@relation(title="objects lost at the next lower strength and found again at this one", beside="weaker")
def monotone_loss(given: RelationInput) -> Checks | None:
    """Check that no object comes back as a mutation gets stronger.

    Objects are the true ones, or the clean answers that stand in for them, that are found on the clean frame.
    One is a violation where the next weaker setting of the same mutation loses it and this one does not: any
    way back has such a step. The weakest setting of each mutation is not checked.
    """
    if not given.weaker:
        return None
    truth, weaker = given.clean.truth, given.weaker[-1]
    usable = given.counted & weaker.counted
    rows = np.flatnonzero(usable[truth.frame] & ~truth.ignore & found(given.clean))
    back = found(given.changed) & ~found(weaker)
    score = np.zeros(len(truth.frame))
    matched = given.changed.matched
    hit = matched.outcome == HIT
    score[matched.truth[hit]] = given.changed.answers.scores[hit]
    return Checks(truth.frame[rows], truth.boxes[rows], ~back[rows], score[rows])


def found(given: LevelInput) -> NDArray[np.bool_]:
    """Return which true objects (T,) are found at the threshold."""
    hit = (given.matched.outcome == HIT) & (given.answers.scores >= given.thresholds[0])
    rows = np.zeros(len(given.truth.frame), np.bool_)
    rows[given.matched.truth[hit]] = True
    return rows

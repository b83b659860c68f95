"""The thresholds of a curve: every one that makes a difference to its area.

A lower threshold gains hits and costs alarms, so all that matters of a curve, or of the worst of several, is
how many hits there are just before each alarm; once efficiency is 0 nothing matters any more. The thresholds
just above the alarms of all settings of a SUT are thus enough for every area that is made from them, exactly.
Where there are many of them, most add next to nothing: they are taken in by what they add, until what is
left out adds up to less than `SLACK` in every area. A curve with fewer points never has a larger area.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from adverse.analysis.detections import SutDetections
from adverse.levels.outcomes import Events, Sensitivity, standardize

MARKED = (0.001, 0.01, 0.1)
"""Sensitivities (expected false positives per image) that are marked on every curve."""
SLACK = 0.0005
"""The most that any area may lack because thresholds were left out."""
ROUNDING = 1e-9

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


def every_threshold(detections: SutDetections) -> NDArray[np.float32]:
    """Return infinity, where nothing is detected, and every score on the test images, falling."""
    scores = [found.answers.scores[detections.test[found.frame]] for found in detections.settings.values()]
    return np.unique(np.concatenate([*scores, np.array([np.inf], np.float32)]))[::-1]


def shown_thresholds(shared: Sensitivity) -> NDArray[np.float32]:
    """Return the thresholds of the shared sensitivities and of those that are marked on curves."""
    marked = standardize(shared.false_scores, shared.images, np.array(MARKED)).thresholds
    return np.concatenate([shared.thresholds, marked])


def chosen_thresholds(
    size: int, compared: Sequence[Sequence[Events]], fpr_max: float, *, keep: Indices, slack: float = SLACK
) -> Indices:
    """Return which of `size` thresholds are needed for the areas that are made from events, rising.

    Each of `compared` is the curve of some events or, of several, the worst of their curves. `keep` are taken
    in any case, and so are both ends.
    """
    events = list({id(one): one for curves in compared for one in curves}.values())
    defined = [one for one in events if one.truths.any() and one.exposure.any()]
    above = [_above_alarms(one, size, fpr_max) for one in defined]
    candidates = np.unique(np.concatenate([np.array([0, size - 1]), keep, *above]))
    curves = {id(one): _curve(one, candidates, fpr_max) for one in defined}
    wanted = [
        [curves[id(one)] for one in group] for group in compared if all(id(one) in curves for one in group)
    ]
    if not wanted:
        return np.unique(np.concatenate([np.array([0, size - 1]), keep]))
    safety, efficiency = (
        np.array([np.min([curve[axis] for curve in group], axis=0) for group in wanted]) for axis in (0, 1)
    )
    order = sorted(range(len(safety)), key=lambda q: (safety[q].tobytes(), efficiency[q].tobytes()))
    safety, efficiency = safety[order], efficiency[order]  # whatever the order of settings
    fixed = np.searchsorted(candidates, np.unique(np.concatenate([np.array([0, size - 1]), keep])))
    return candidates[_needed(safety, efficiency, fixed, slack)]


def _above_alarms(events: Events, size: int, fpr_max: float) -> Indices:
    """Return the thresholds just above each alarm, up to the one that leaves no efficiency."""
    alarms = np.sort(events.alarm_level[events.alarm_level < size])
    allowed = int(fpr_max * events.exposure.sum() * (1 + ROUNDING)) + 1
    above = np.unique(alarms[:allowed]) - 1
    return above[above >= 0]


def _curve(events: Events, thresholds: Indices, fpr_max: float) -> tuple[Array, Array]:
    """Return safety and efficiency over all logs at some of the thresholds."""
    hits, alarms = (
        np.searchsorted(np.sort(levels), thresholds, side="right")
        for levels in (events.hit_level, events.alarm_level)
    )
    rate = alarms / events.exposure.sum()
    return hits / events.truths.sum(), 1.0 - np.minimum(rate / fpr_max, 1.0)


def _needed(safety: Array, efficiency: Array, fixed: Indices, slack: float) -> Indices:
    """Return the points (of M) that the areas of Q curves (Q, M) need, those in `fixed` among them, rising.

    Safety never falls and efficiency never rises from one point to the next. Between two chosen points a
    curve lacks what its staircase has above the first of them; the next point is the one that adds most,
    where most is lacking.
    """
    steps = safety[:, :-1] * -np.diff(efficiency, axis=1)
    upto = np.concatenate([np.zeros((len(safety), 1)), np.cumsum(steps, axis=1)], axis=1)

    def lack(first: int, last: int) -> Array:
        wide = efficiency[:, first] - efficiency[:, last]
        missing: Array = upto[:, last] - upto[:, first] - safety[:, first] * wide
        return missing

    parts = [(lack(i, k), i, k) for i, k in zip(fixed[:-1].tolist(), fixed[1:].tolist(), strict=True)]
    lacking = np.sum([part[0] for part in parts], axis=0) if parts else np.zeros(len(safety))
    heap = [(-float(missing.max()), first, last) for missing, first, last in parts]
    heapq.heapify(heap)
    chosen = fixed.tolist()
    while heap and lacking.max() > slack:
        _, first, last = heapq.heappop(heap)
        if last - first < 2:
            continue
        before = lack(first, last)
        worst = int(np.argmax(np.where(lacking > slack, before, -1.0)))
        inside = slice(first + 1, last)
        gains = (safety[worst, inside] - safety[worst, first]) * (
            efficiency[worst, inside] - efficiency[worst, last]
        )
        middle = first + 1 + int(np.argmax(gains))
        chosen.append(middle)
        halves = lack(first, middle), lack(middle, last)
        lacking += halves[0] + halves[1] - before
        heapq.heappush(heap, (-float(halves[0].max()), first, middle))
        heapq.heappush(heap, (-float(halves[1].max()), middle, last))
    return np.sort(np.array(chosen, np.int64))

"""Pascal VOC's average precision at an overlap of one half, per class.

VOC matches otherwise than COCO: each detection, the surest first, is held against the true object that it
overlaps most, taken or not. At least one half: a hit, or a false alarm if that object was found before, or
nothing at all if it is ignored (VOC's "difficult"). What is below one half is a false alarm.

Two averages are in use: `area` under the precision-recall curve (VOC from 2010 on), and the mean of the best
precision at `11-point` recalls 0, 0.1, ... 1 (VOC 2007). Boxes are half-open here, so widths are plain
differences.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numba import njit
from numpy.typing import NDArray

from adverse.benchmarks.boxes import FoundObjects, TrueObjects, check

Average = Literal["area", "11-point"]
OVERLAP = 0.5
FALSE, HIT, IGNORED = 0, 1, 2


def voc_ap50(
    truth: TrueObjects, found: FoundObjects, *, images: int, classes: int, average: Average
) -> list[float]:
    """Return the average precision of each class; NaN for those without truth. Ties stay in the given order.

    >>> two, box = np.zeros(2, np.int64), np.array([[0.0, 0, 10, 10], [50, 50, 60, 60]])
    >>> no = np.zeros(2, np.bool_)
    >>> truth = TrueObjects(two, box, two, np.full(2, 100.0), no, no)
    >>> found = FoundObjects(two[:1], box[:1], two[:1], np.array([0.9]))
    >>> voc_ap50(truth, found, images=1, classes=1, average="area")
    [0.5]
    >>> voc_ap50(truth, found, images=1, classes=1, average="11-point")  # 6 of 11 recalls are reached
    [0.5454545454545454]
    """
    check(truth, found, images, classes)
    order = np.lexsort((-found.scores, found.labels))
    outcome, label = voc_outcomes(truth, found, images, order), found.labels[order]
    averages = []
    for number in range(classes):
        positives = int(((truth.labels == number) & ~truth.ignore).sum())
        mine = outcome[label == number]
        averages.append(_average(mine[mine != IGNORED] == HIT, positives, average))
    return averages


def voc_outcomes(
    truth: TrueObjects, found: FoundObjects, images: int, order: NDArray[np.int64]
) -> NDArray[np.int8]:
    """Return FALSE, HIT or IGNORED for the detections in the given order."""
    place = truth.labels * images + truth.images
    known = np.argsort(place, kind="stable")
    wanted = (found.labels * images + found.images)[order]
    outcome: NDArray[np.int8] = _match(
        found.boxes[order],
        np.searchsorted(place[known], wanted, side="left"),
        np.searchsorted(place[known], wanted, side="right"),
        truth.boxes[known],
        truth.ignore[known],
        OVERLAP,
    )
    return outcome


def _average(hits: NDArray[np.bool_], positives: int, average: Average) -> float:
    if not positives:
        return float("nan")
    reached = np.cumsum(hits)
    precision = reached / np.arange(1, len(hits) + 1)
    best = np.maximum.accumulate(precision[::-1])[::-1]  # the best precision from here on
    if average == "area":
        return float(best[hits].sum() / positives)
    levels = [best[10 * reached >= tenths * positives] for tenths in range(11)]  # in whole numbers: exact
    return float(np.mean([level[0] if level.size else 0.0 for level in levels]))


@njit(cache=True)  # type: ignore[untyped-decorator, unused-ignore]
def _match(  # type: ignore[no-untyped-def] # pragma: no cover - compiled  # noqa: ANN202
    boxes: Any, first: Any, last: Any, truth_boxes: Any, truth_ignore: Any, least: float
):
    outcome = np.zeros(len(boxes), np.int8)
    taken = np.zeros(len(truth_boxes), np.bool_)
    for d in range(len(boxes)):
        area = (boxes[d, 2] - boxes[d, 0]) * (boxes[d, 3] - boxes[d, 1])
        best = -1
        most = 0.0
        for t in range(first[d], last[d]):
            width = min(boxes[d, 2], truth_boxes[t, 2]) - max(boxes[d, 0], truth_boxes[t, 0])
            height = min(boxes[d, 3], truth_boxes[t, 3]) - max(boxes[d, 1], truth_boxes[t, 1])
            if width <= 0 or height <= 0:
                continue
            shared = width * height
            true_area = (truth_boxes[t, 2] - truth_boxes[t, 0]) * (truth_boxes[t, 3] - truth_boxes[t, 1])
            overlap = shared / (area + true_area - shared)
            if overlap > most:
                best = t
                most = overlap
        if best < 0 or most < least:
            continue
        if truth_ignore[best]:
            outcome[d] = 2
        elif not taken[best]:
            taken[best] = True
            outcome[d] = 1
    return outcome

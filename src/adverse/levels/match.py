"""Which detection is which true object, in the image plane.

Greedy by descending score, IoU >= 0.5, one detection per object, real objects before ignored ones. An
ignored object absorbs any number of detections by the share of the DETECTION it covers; those count
neither way. Ties are broken by the boxes' coordinates, so storage order never matters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from adverse.store.tables import Answers, TruthTable


def strongest_first(
    offsets: NDArray[np.int64], scores: NDArray[np.float32], ties: NDArray[np.floating]
) -> NDArray[np.int64]:
    """Return the order of detections by falling score within each row, those of row r before those of r+1.

    The detections of row r are `offsets[r]:offsets[r+1]`. Equal scores go by their columns of `ties` (N,M),
    smallest first, NaN last.

    >>> strongest_first(np.array([0, 3]), np.float32([1, 2, 1]), np.array([[5.0], [0], [4]]))
    array([1, 2, 0])
    """
    if len(scores) and np.diff(offsets).max() > MANY:
        row = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        return np.lexsort((*ties.T[::-1], -scores, row))
    order: NDArray[np.int64] = _strongest_first(offsets, scores, np.ascontiguousarray(ties))
    return order


MANY = 200
"""Detections of a frame from which sorting all of them beats inserting one by one."""


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _strongest_first(offsets: Any, scores: Any, ties: Any) -> Any:  # pragma: no cover - compiled
    order = np.arange(len(scores))
    for row in range(len(offsets) - 1):
        for place in range(offsets[row] + 1, offsets[row + 1]):
            i = place
            while i > offsets[row] and _before(place, order[i - 1], scores, ties):
                order[i] = order[i - 1]
                i -= 1
            order[i] = place
    return order


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _before(a: int, b: int, scores: Any, ties: Any) -> bool:  # pragma: no cover - compiled
    if scores[a] != scores[b]:
        return bool(scores[a] > scores[b])
    for m in range(ties.shape[1]):
        first, second = ties[a, m], ties[b, m]
        if first == second or (np.isnan(first) and np.isnan(second)):
            continue
        return bool(first < second or np.isnan(second))
    return False


IOU = 0.5
FALSE, HIT, IGNORED = 0, 1, 2


class Matched(NamedTuple):
    """For each detection whether it is FALSE, a HIT or IGNORED; the row of the truth it hits (-1: none)."""

    outcome: NDArray[np.int8]
    truth: NDArray[np.int64]


def match(answers: Answers, truth: TruthTable) -> Matched:
    """Match detections with true objects."""
    order = strongest_first(answers.offsets, answers.scores, answers.boxes)
    known = np.lexsort((*truth.boxes.T[::-1], truth.frame))
    first = np.searchsorted(truth.frame[known], answers.frame, side="left")
    last = np.searchsorted(truth.frame[known], answers.frame, side="right")
    outcome, which = _match(
        order,
        answers.offsets,
        answers.boxes.astype(np.float64),
        answers.labels,
        first,
        last,
        truth.boxes[known],
        truth.labels[known],
        truth.ignore[known],
        IOU,
    )
    return Matched(outcome, np.where(which >= 0, known[which] if len(known) else -1, -1))


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _match(  # type: ignore[no-untyped-def] # pragma: no cover - compiled  # noqa: ANN202
    order: Any,
    offsets: Any,
    boxes: Any,
    labels: Any,
    first: Any,
    last: Any,
    truth_boxes: Any,
    truth_labels: Any,
    truth_ignore: Any,
    iou: float,
):
    outcome = np.zeros(len(order), np.int8)
    which = np.full(len(order), -1, np.int64)
    taken = np.zeros(len(truth_boxes), np.bool_)
    for row in range(len(first)):
        for place in range(offsets[row], offsets[row + 1]):
            d = order[place]
            best = -1
            best_iou = iou
            absorbed = False
            area = (boxes[d, 2] - boxes[d, 0]) * (boxes[d, 3] - boxes[d, 1])
            for t in range(first[row], last[row]):
                if truth_labels[t] != labels[d] or taken[t]:
                    continue
                width = min(boxes[d, 2], truth_boxes[t, 2]) - max(boxes[d, 0], truth_boxes[t, 0])
                height = min(boxes[d, 3], truth_boxes[t, 3]) - max(boxes[d, 1], truth_boxes[t, 1])
                if width <= 0 or height <= 0:
                    continue
                shared = width * height
                if truth_ignore[t]:
                    absorbed = absorbed or shared / area >= iou
                    continue
                true_area = (truth_boxes[t, 2] - truth_boxes[t, 0]) * (truth_boxes[t, 3] - truth_boxes[t, 1])
                overlap = shared / (area + true_area - shared)
                if overlap > best_iou or (overlap == best_iou and best < 0):
                    best = t
                    best_iou = overlap
            if best >= 0:
                taken[best] = True
                outcome[d] = 1
                which[d] = best
            elif absorbed:
                outcome[d] = 2
    return outcome, which


@dataclass(frozen=True, eq=False)
class MatchedDetections:
    """The detections of one SUT under one setting, each with its outcome."""

    answers: Answers
    outcome: NDArray[np.int8]
    """HIT, FALSE or IGNORED."""
    truth: NDArray[np.int64]
    """The row of the truth that each detection hits; -1: none."""
    row: NDArray[np.int64]
    """The row of `answers` that each detection belongs to."""

    @property
    def frame(self) -> NDArray[np.int64]:
        """The frame that each detection is on."""
        return self.answers.frame[self.row]


def match_detections(answers: Answers, truth: TruthTable) -> MatchedDetections:
    """Match the detections of one SUT under one setting with the truth."""
    row = np.repeat(np.arange(len(answers.frame)), np.diff(answers.offsets))
    return MatchedDetections(answers, *match(answers, truth), row)


def above(answers: Answers, threshold: np.floating, *, counted: NDArray[np.bool_] | None = None) -> Answers:
    """Return the answers with the detections that count: from a score on, and with a size.

    With `counted`, a mask over all frames, only those of its frames do.
    """
    row = np.repeat(np.arange(len(answers.frame)), np.diff(answers.offsets))
    boxes = answers.boxes
    kept = answers.scores >= threshold
    if counted is not None:
        kept &= counted[answers.frame[row]] & (boxes[:, 2] > boxes[:, 0]) & (boxes[:, 3] > boxes[:, 1])
    counts = np.bincount(row[kept], minlength=len(answers.frame))
    return Answers(
        answers.frame,
        answers.status,
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        boxes[kept],
        answers.scores[kept],
        answers.labels[kept],
        answers.depths_m[kept],
        None if answers.positions_m is None else answers.positions_m[kept],
    )


def as_truth(answers: Answers) -> TruthTable:
    """Return detections in the place of true objects, to match other ones with."""
    frame = np.repeat(answers.frame, np.diff(answers.offsets))
    boxes = answers.boxes.astype(np.float64)
    none = np.zeros(len(frame), np.bool_)
    return TruthTable(
        frame,
        boxes,
        answers.labels,
        none,
        np.full((len(frame), 3), np.nan),
        np.zeros(len(frame), np.int64),
        (boxes[:, 2:] - boxes[:, :2]).prod(axis=1),
        none,
    )


def false_scores(matched: MatchedDetections, counted: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Return the scores of the false positives on the frames that count (a mask over all frames)."""
    chosen = (matched.outcome == FALSE) & counted[matched.frame]
    scores: NDArray[np.float32] = matched.answers.scores[chosen]
    return scores

"""Non-maximum suppression within each class, whose result depends on nothing but the set of boxes.

Candidates are taken by falling score; equal scores by class, then by coordinates. So neither the order
in which a model lists its boxes nor the threads that found them can change an answer.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def nms(
    boxes: NDArray[np.float32],
    scores: NDArray[np.float32],
    labels: NDArray[np.int64],
    *,
    iou: float | None,
    limit: int | None = None,
) -> NDArray[np.int64]:
    """Return the indexes of the boxes to keep, best first, at most `limit`.

    A box goes when a better one of its class overlaps it by more than `iou`; with `iou=None` none goes,
    they are only put in order and cut off at the limit.

    >>> boxes = np.array([[0, 0, 10, 10], [1, 0, 10, 10], [50, 0, 60, 10]], np.float32)
    >>> nms(boxes, np.array([0.5, 0.9, 0.2], np.float32), np.zeros(3, np.int64), iou=0.5)
    array([1, 2])
    """
    order = np.lexsort((*boxes.T[::-1], labels, -scores)).astype(np.int64)
    if iou is None:
        return order[:limit]
    corner = boxes[order].astype(np.float64)
    label = labels[order]
    area = (corner[:, 2] - corner[:, 0]) * (corner[:, 3] - corner[:, 1])
    waiting = np.arange(len(order))
    kept: list[int] = []
    while len(waiting) and (limit is None or len(kept) < limit):
        best, waiting = waiting[0], waiting[1:]
        kept.append(int(best))
        overlap = _intersection(corner[best], corner[waiting])
        union = area[best] + area[waiting] - overlap
        waiting = waiting[(overlap <= iou * union) | (label[waiting] != label[best])]
    return order[kept]


def _intersection(box: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the areas that one box has in common with each of the others."""
    size = np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2])
    inside: NDArray[np.float64] = np.maximum(size, 0)
    return inside[:, 0] * inside[:, 1]

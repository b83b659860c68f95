"""From the candidates of a detector to its detections: threshold, back to the image, clipping, NMS.

Non-maximum suppression is within each class, and its result depends on nothing but the set of boxes:
candidates are taken by falling score; equal scores by class, then by coordinates. So neither the order in
which a model lists its boxes nor the threads that found them can change an answer.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from adverse.errors import SutError
from adverse.suts.decoders import Candidates
from adverse.suts.network_masks import Kept
from adverse.suts.preprocess import Placement
from adverse.types import Detections

BLOCK = 128
"""So many candidates are compared at once: few enough to stop soon, many enough to be quick."""


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
    corner, label = boxes[order].T.astype(np.float64, order="C"), labels[order]
    area = (corner[2] - corner[0]) * (corner[3] - corner[1])
    keep = np.zeros(0, np.int64)
    for start in range(0, len(order), BLOCK):
        if limit is not None and len(keep) >= limit:
            break
        some = np.arange(start, min(start + BLOCK, len(order)))
        some = some[~_goes(corner, area, label, some, keep, iou).any(axis=1)]
        beats = _goes(corner, area, label, some, some, iou)
        stays = np.ones(len(some), np.bool_)
        for place in range(len(some)):
            if stays[place]:
                stays[place + 1 :] &= ~beats[place + 1 :, place]
        keep = np.concatenate([keep, some[stays]])
    return order[keep[:limit]]


def _goes(
    corner: NDArray[np.float64],
    area: NDArray[np.float64],
    label: NDArray[np.int64],
    some: NDArray[np.int64],
    better: NDArray[np.int64],
    iou: float,
) -> NDArray[np.bool_]:
    """Return (N, M): which of some boxes overlap which better one of their class by more than `iou`."""
    mine, other = corner[:, some], corner[:, better]
    overlap = np.ones((len(some), len(better)))
    for low, high in ((0, 2), (1, 3)):
        side = np.minimum.outer(mine[high], other[high])
        side -= np.maximum.outer(mine[low], other[low])
        overlap *= np.maximum(side, 0, out=side)
    union = np.add.outer(area[some], area[better])
    union -= overlap
    union *= iou
    over: NDArray[np.bool_] = overlap > union
    if len(label) and (label != label[0]).any():
        over &= np.equal.outer(label[some], label[better])
    return over


class Finish:
    """Turns the candidates of one image into its answer."""

    def __init__(self, score_threshold: float, nms_iou: float | None, max_detections: int) -> None:
        self._score_threshold = score_threshold
        self._nms_iou = nms_iou
        self._max_detections = max_detections

    def __call__(
        self, candidates: Candidates, placed: Placement, size: tuple[int, int] = (0, 0)
    ) -> Detections:
        """Return the answer for one image; NaN anywhere that counts is an error, never a 'no'.

        `size` is that of the model's input, for masks.
        """
        good = candidates.scores >= self._score_threshold
        if not (np.isfinite(candidates.scores).all() and np.isfinite(candidates.boxes[good]).all()):
            raise SutError(
                "the model gives scores or boxes that are not finite numbers",
                got=f"{int((~np.isfinite(candidates.scores)).sum())} of {len(good)} scores are not finite",
                fix="Find out why the model gives them; if it always does, check scale:, mean: and std:.",
            )
        edges = np.tile([placed.image_width, placed.image_height], 2)
        rows = np.flatnonzero(good)
        whole = placed.to_image(candidates.boxes[good])
        boxes = np.clip(whole, 0, edges).astype(np.float32)
        scores, labels = candidates.scores[good].astype(np.float32), candidates.labels[good]
        solid = (boxes[:, 2:] > boxes[:, :2]).all(axis=1)
        boxes, scores, labels = boxes[solid], scores[solid], labels[solid]
        keep = nms(boxes, scores, labels, iou=self._nms_iou, limit=self._max_detections)
        positions = None if candidates.positions_m is None else candidates.positions_m[good][solid][keep]
        masks = None
        if candidates.masks is not None:
            kept = Kept(rows[solid][keep], whole[solid][keep], boxes[keep])
            masks = candidates.masks.of(kept, size, placed)
        return Detections(boxes[keep], scores[keep], labels[keep], positions_m=positions, masks=masks)

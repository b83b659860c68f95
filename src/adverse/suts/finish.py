"""What happens to the candidates of every detector: threshold, back to the image, clipping, NMS."""

from __future__ import annotations

import numpy as np

from adverse.errors import SutError
from adverse.suts.decoders import Candidates
from adverse.suts.nms import nms
from adverse.suts.preprocess import Placement
from adverse.types import Detections


class Finish:
    """Turns the candidates of one image into its answer."""

    def __init__(self, score_threshold: float, nms_iou: float | None, max_detections: int) -> None:
        self._score_threshold = score_threshold
        self._nms_iou = nms_iou
        self._max_detections = max_detections

    def __call__(self, found: Candidates, placed: Placement) -> Detections:
        """Return the answer for one image; NaN anywhere that counts is an error, never a 'no'."""
        good = found.scores >= self._score_threshold
        if not (np.isfinite(found.scores).all() and np.isfinite(found.boxes[good]).all()):
            raise SutError(
                "the model gives scores or boxes that are not finite numbers",
                got=f"{int((~np.isfinite(found.scores)).sum())} of {len(good)} scores are NaN or infinite",
                fix="Find out why the model gives them; if it always does, check scale:, mean: and std:.",
            )
        edges = np.tile([placed.image_width, placed.image_height], 2)
        boxes = np.clip(placed.to_image(found.boxes[good]), 0, edges).astype(np.float32)
        scores, labels = found.scores[good].astype(np.float32), found.labels[good]
        solid = (boxes[:, 2:] > boxes[:, :2]).all(axis=1)
        boxes, scores, labels = boxes[solid], scores[solid], labels[solid]
        keep = nms(boxes, scores, labels, iou=self._nms_iou, limit=self._max_detections)
        return Detections(boxes[keep], scores[keep], labels[keep])

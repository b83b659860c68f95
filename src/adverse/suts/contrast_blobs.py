"""A plain detector that needs no model: upright blobs that stand out from what is around them.

It is meant to be weak, to be quick, and to fail as real detectors do: haze takes its contrast away,
blur melts its outlines, noise gives it blobs that are not there. Demonstrations and tests use it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from adverse.plugins import Fraction, sut
from adverse.suts.nms import nms
from adverse.types import Detections, Detector, Image

LEVELS = (16, 28, 44, 64)
"""Differences of grey, of 255, at which blobs are cut out."""
SURROUND = 0.35
"""Side of the window that says what is around a pixel, as a part of the image's shorter side."""
FULL_CONTRAST = 110.0
"""Difference of grey, of 255, that is as good as any."""
PERSON_ASPECT = 2.4
"""Height over width of a person standing."""
ASPECT_SPREAD = 0.5
"""How fast, in log(aspect), a blob stops looking like a person: e^-1/2 at 1.5 and 4."""
MAX_BLOBS = 400
"""Candidates kept for each level, the largest first."""


@sut(name="contrast-blobs", libraries=("numpy", "opencv-python-headless"))
def contrast_blobs(
    *,
    min_height_px: Annotated[int, Field(gt=1)] = 14,
    nms_iou: Fraction = 0.45,
    max_detections: Annotated[int, Field(gt=0)] = 100,
) -> Detector:
    """Find upright blobs that stand out from their background; weak on purpose, needs no model.

    The score, 0 to 1, is the blob's contrast times how much its outline is that of a person.
    """
    return ContrastBlobs(min_height_px, nms_iou, max_detections)


class ContrastBlobs:
    """The detector behind `contrast-blobs`; knows the one class person."""

    classes = ("person",)

    def __init__(self, min_height_px: int, nms_iou: float, max_detections: int) -> None:
        self._min_height_px = min_height_px
        self._nms_iou = nms_iou
        self._max_detections = max_detections

    def detect(self, images: Sequence[Image]) -> list[Detections]:
        """Return one answer for each image, in order."""
        return [self._look(image) for image in images]

    def _look(self, image: Image) -> Detections:
        grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
        side = max(3, int(min(grey.shape) * SURROUND)) | 1
        contrast = np.asarray(cv2.absdiff(grey, cv2.blur(grey, (side, side))), np.uint8)
        blobs = [self._blobs(contrast, level) for level in LEVELS]
        boxes = np.concatenate([boxes for boxes, _ in blobs])
        scores = np.concatenate([scores for _, scores in blobs])
        labels = np.zeros(len(scores), np.int64)
        keep = nms(boxes, scores, labels, iou=self._nms_iou, limit=self._max_detections)
        return Detections(boxes[keep], scores[keep], labels[keep])

    def _blobs(
        self, contrast: NDArray[np.uint8], level: int
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return boxes and scores of the connected pixels that stand out by more than a level."""
        _, standing_out = cv2.threshold(contrast, level, 255, cv2.THRESH_TOZERO)
        stats = cv2.connectedComponentsWithStats(standing_out, connectivity=4)[2]
        width, height, area = (stats[:, k] for k in (cv2.CC_STAT_WIDTH, cv2.CC_STAT_HEIGHT, cv2.CC_STAT_AREA))
        fits = (height >= self._min_height_px) & (height > width) & (area * 4 > width * height)
        fits[0] = False  # the background
        chosen = np.flatnonzero(fits)
        chosen = chosen[np.argsort(-area[chosen], kind="stable")][:MAX_BLOBS]
        left, top = stats[chosen, cv2.CC_STAT_LEFT], stats[chosen, cv2.CC_STAT_TOP]
        right, bottom = left + width[chosen], top + height[chosen]
        sums = cv2.integral(standing_out)
        total = sums[bottom, right] - sums[top, right] - sums[bottom, left] + sums[top, left]
        strength = np.minimum(total / (width[chosen] * height[chosen] * FULL_CONTRAST), 1.0)
        shape = np.log(height[chosen] / width[chosen] / PERSON_ASPECT) / ASPECT_SPREAD
        scores = strength * np.exp(-0.5 * shape**2)
        boxes = np.stack([left, top, right, bottom], axis=1)
        return boxes.astype(np.float32), scores.astype(np.float32)

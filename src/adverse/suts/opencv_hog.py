"""OpenCV's classical person detector: histograms of oriented gradients and a linear SVM (Dalal, Triggs 2005).

Weak beside today's models, but everywhere, and it fails in its own way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import cv2
import numpy as np
from pydantic import Field

from adverse.errors import SutError
from adverse.plugins import Fraction, sut
from adverse.suts.nms import nms
from adverse.types import Detections, Detector, Image

WINDOW_PX = (64, 128)
PERSON_WIDTH = 0.6
PERSON_HEIGHT = 0.75
"""The part of the window that a person fills: 96 of its 128 rows, with a margin as in the training images,
and as wide as a walking person is on average, 0.4 of the height."""


@sut(name="opencv-hog", libraries=("numpy", "opencv-python-headless"))
def opencv_hog(
    *,
    hit_threshold: Annotated[float, Field(allow_inf_nan=False)] = -1.0,
    win_stride: Literal[8, 16, 32] = 8,
    padding: Annotated[int, Field(ge=0, le=64, multiple_of=8)] = 8,
    scale: Annotated[float, Field(gt=1, le=2)] = 1.05,
    nms_iou: Fraction = 0.45,
    max_detections: Annotated[int, Field(gt=0)] = 300,
) -> Detector:
    """Find people with OpenCV's built-in HOG detector; needs no model file.

    The score is the distance to the SVM's border, which may be negative. The threshold of -1 is the
    SVM's own margin, where training put what is clearly no person, so curves reach far beyond its usual 0.
    """
    if not hasattr(cv2, "HOGDescriptor"):
        raise SutError(
            "this OpenCV has no HOG detector",
            where="opencv-hog",
            got=f"OpenCV {cv2.__version__}",
            wanted="OpenCV 4",
            fix='pip install "opencv-python-headless<5", or take opencv-hog out of the study.',
        )
    return HogDetector(hit_threshold, win_stride, padding, scale, nms_iou, max_detections)


class HogDetector:
    """The detector behind `opencv-hog`; knows the one class person."""

    classes = ("person",)

    def __init__(
        self,
        hit_threshold: float,
        win_stride: int,
        padding: int,
        scale: float,
        nms_iou: float,
        max_detections: int,
    ) -> None:
        self._hog = cv2.HOGDescriptor()
        self._hog.setSVMDetector(np.asarray(cv2.HOGDescriptor.getDefaultPeopleDetector()))
        self._hit_threshold = hit_threshold
        self._win_stride = (win_stride, win_stride)
        self._padding = (padding, padding)
        self._scale = scale
        self._nms_iou = nms_iou
        self._max_detections = max_detections

    def detect(self, images: Sequence[Image]) -> list[Detections]:
        """Return one answer for each image, in order; nothing is found in one smaller than 64x128."""
        return [self._look(image) for image in images]

    def _look(self, image: Image) -> Detections:
        height, width = image.shape[:2]
        if width < WINDOW_PX[0] or height < WINDOW_PX[1]:
            return Detections.none()  # OpenCV writes outside its memory here (seen with 4.14)
        windows, weights = self._hog.detectMultiScale(
            np.ascontiguousarray(image[:, :, ::-1]),
            hitThreshold=self._hit_threshold,
            winStride=self._win_stride,
            padding=self._padding,
            scale=self._scale,
            groupThreshold=0,
        )
        x, y, w, h = np.asarray(windows, np.float32).reshape(-1, 4).T
        scores = np.asarray(weights, np.float32).reshape(-1)
        half_w, half_h = w * (PERSON_WIDTH / 2), h * (PERSON_HEIGHT / 2)
        centre_x, centre_y = x + w / 2, y + h / 2
        sides = (centre_x - half_w, centre_y - half_h, centre_x + half_w, centre_y + half_h)
        boxes = np.clip(np.stack(sides, axis=1), 0, [width, height, width, height]).astype(np.float32)
        solid = (boxes[:, 2:] > boxes[:, :2]).all(axis=1)
        boxes, scores = boxes[solid], scores[solid]
        labels = np.zeros(len(scores), np.int64)
        keep = nms(boxes, scores, labels, iou=self._nms_iou, limit=self._max_detections)
        return Detections(boxes[keep], scores[keep], labels[keep])

"""The classical person detector: histograms of oriented gradients and a linear SVM (Dalal, Triggs 2005).

Weak beside today's models, but everywhere, and it fails in its own way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Literal

import cv2
import numpy as np
from pydantic import Field

from adverse.errors import SutError
from adverse.plugins import Fraction, sut
from adverse.suts.hog_views import Floats, HogModel, HogViews, ViewFinder, built_in, read_hog_model
from adverse.suts.nms import nms
from adverse.types import Detections, Detector, Image

Search = Callable[[Image, float], tuple[Floats, Floats]]
"""From an image and a threshold to boxes (N, 4) and scores (N,), repeats included."""


@sut(name="opencv-hog", libraries=("numpy", "opencv-python-headless"))
def opencv_hog(
    *,
    model: Path | None = None,
    enlarge: Annotated[float, Field(ge=1, le=4)] = 1.0,
    hit_threshold: Annotated[float, Field(allow_inf_nan=False)] = -1.0,
    win_stride: Literal[4, 8, 16, 32] = 8,
    padding: Annotated[int, Field(ge=0, le=64, multiple_of=8)] = 8,
    scale: Annotated[float, Field(gt=1, le=2)] = 1.05,
    nms_iou: Fraction = 0.45,
    max_detections: Annotated[int, Field(gt=0)] = 300,
) -> Detector:
    """Find people with a HOG detector: OpenCV's built-in one, or `model`, a file of weights (JSON).

    `enlarge` scales images up first, so that people smaller than the window can be found. `scale` is the
    ratio of the sizes searched. A model of several views is searched cell by cell, so `win_stride` and
    `padding` say nothing to it.
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
    learnt = built_in() if model is None else read_hog_model(model)
    search: Search
    if isinstance(learnt, HogViews):
        search = ViewFinder(learnt, enlarge, scale).people
    else:
        search = WindowFinder(learnt, enlarge, win_stride, padding, scale).people
    return HogDetector(search, hit_threshold, nms_iou, max_detections)


class HogDetector:
    """The detector behind `opencv-hog`; knows the one class person."""

    classes = ("person",)

    def __init__(self, search: Search, hit_threshold: float, nms_iou: float, max_detections: int) -> None:
        self._search = search
        self._hit_threshold = hit_threshold
        self._nms_iou = nms_iou
        self._max_detections = max_detections

    def detect(self, images: Sequence[Image]) -> list[Detections]:
        """Return one answer for each image, in order; nothing is found in one smaller than the window."""
        return [self._look(image) for image in images]

    def _look(self, image: Image) -> Detections:
        height, width = image.shape[:2]
        candidates, scores = self._search(image, self._hit_threshold)
        boxes = np.clip(candidates, 0, [width, height, width, height]).astype(np.float32)
        solid = (boxes[:, 2:] > boxes[:, :2]).all(axis=1)
        boxes, scores = boxes[solid], scores[solid]
        labels = np.zeros(len(scores), np.int64)
        keep = nms(boxes, scores, labels, iou=self._nms_iou, limit=self._max_detections)
        return Detections(boxes[keep], scores[keep], labels[keep])


class WindowFinder:
    """Slides one window over an image by OpenCV's own search."""

    def __init__(self, model: HogModel, enlarge: float, win_stride: int, padding: int, scale: float) -> None:
        self._model = model
        self._hog = model.descriptor()
        self._enlarge = enlarge
        self._win_stride = (win_stride, win_stride)
        self._padding = (padding, padding)
        self._scale = scale

    def people(self, image: Image, threshold: float) -> tuple[Floats, Floats]:
        """Return boxes (N, 4) and scores (N,) of the windows that score at least `threshold`."""
        if self._enlarge != 1:
            image = cv2.resize(image, None, fx=self._enlarge, fy=self._enlarge).astype(np.uint8, copy=False)
        if image.shape[1] < self._model.window[0] or image.shape[0] < self._model.window[1]:
            # OpenCV writes outside its memory here (seen with 4.14)
            return np.zeros((0, 4), np.float32), np.zeros(0, np.float32)
        windows, weights = self._hog.detectMultiScale(
            np.ascontiguousarray(image[:, :, ::-1]),
            hitThreshold=threshold,
            winStride=self._win_stride,
            padding=self._padding,
            scale=self._scale,
            groupThreshold=0,
        )
        boxes = np.asarray(windows, np.float32).reshape(-1, 4)
        order = np.lexsort(boxes.T)  # OpenCV's threads hand windows over in any order
        x, y, w, h = boxes[order].T / np.float32(self._enlarge)
        half_w, half_h = w * (self._model.person[0] / 2), h * (self._model.person[1] / 2)
        centre_x, centre_y = x + w / 2, y + h / 2
        sides = (centre_x - half_w, centre_y - half_h, centre_x + half_w, centre_y + half_h)
        return np.stack(sides, axis=1), np.asarray(weights, np.float32).reshape(-1)[order]

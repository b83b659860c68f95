"""Batches to train on: crops around people and anywhere else, then whole frames; shaken in light and colour.

A crop costs a quarter of a frame and is as good a lesson, so most of the training is done on crops.
"""

from __future__ import annotations

from typing import NamedTuple

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from scenes import HEIGHT, SMALL_PX, WIDTH, Frames

CROP = (160, 128)
ZOOM = (0.55, 1.3)
"""The least and the most that a crop is enlarged."""
TALLEST = 112
"""People are shrunk to this height in a crop, as far as ZOOM goes."""
WITH_PEOPLE = 0.6
"""The share of crops that are drawn around a person."""
CUT = 0.35
"""A person of whom less than this share is left in a crop is not asked for."""


class Batch(NamedTuple):
    """Images (B,3,H,W) in 0..1, boxes (B,8,4) xyxy padded with zeros, and which of them do not count."""

    images: Tensor
    boxes: Tensor
    ignore: Tensor


class Sampler:
    """Draws batches from frames, by one generator."""

    def __init__(self, data: Frames, rng: np.random.Generator) -> None:
        self._data, self._rng = data, rng
        self._people = np.argwhere((data.boxes[:, :, 2] > 0) & ~data.ignore)
        self.empty = np.flatnonzero(~(data.boxes[:, :, 2] > 0).any(axis=1))
        self.peopled = np.unique(self._people[:, 0])

    def crops(self, count: int) -> Batch:
        """Return crops, most of them around people, the others from frames without any."""
        return _joined([self._shaken(*self._crop()) for _ in range(count)])

    def whole(self, rows: NDArray[np.int64]) -> Batch:
        """Return whole frames."""
        data = self._data
        return _joined([self._shaken(data.images[i], data.boxes[i].copy(), data.ignore[i]) for i in rows])

    def _crop(self) -> tuple[NDArray[np.uint8], NDArray[np.float32], NDArray[np.bool_]]:
        rng, (wide, high) = self._rng, CROP
        zoom = float(np.exp(rng.uniform(*np.log(ZOOM))))
        if rng.random() < WITH_PEOPLE:
            row, which = self._people[rng.integers(len(self._people))]
            x0, y0, x1, y1 = self._data.boxes[row, which]
            zoom = max(min(zoom, TALLEST / (y1 - y0)), ZOOM[0])
            middle = (x0 + x1) / 2, (y0 + y1) / 2
        else:
            row = self.empty[rng.integers(len(self.empty))]
            middle = rng.uniform(0, WIDTH), rng.uniform(0.2 * HEIGHT, 0.9 * HEIGHT)
        w, h = min(round(wide / zoom), WIDTH), min(round(high / zoom), HEIGHT)
        left = int(np.clip(middle[0] - w * rng.uniform(0.15, 0.85), 0, WIDTH - w))
        top = int(np.clip(middle[1] - h * rng.uniform(0.3, 0.7), 0, HEIGHT - h))
        how = cv2.INTER_AREA if zoom < 1 else cv2.INTER_LINEAR
        image = cv2.resize(self._data.images[row][top : top + h, left : left + w], CROP, interpolation=how)
        before = self._data.boxes[row]
        scale = np.array([wide / w, high / h] * 2, np.float32)
        moved = (before - np.array([left, top] * 2, np.float32)) * scale
        after = np.clip(moved, 0, [wide, high, wide, high]).astype(np.float32)
        size, whole = after[:, 2:] - after[:, :2], moved[:, 2:] - moved[:, :2]
        gone = (before[:, 2] <= 0) | (size.min(axis=1) < 1)
        unfair = (size[:, 1] < SMALL_PX) | (size.prod(axis=1) < CUT * whole.prod(axis=1))
        after[gone] = 0
        return image, after, self._data.ignore[row] | unfair

    def _shaken(
        self, image: NDArray[np.uint8], boxes: NDArray[np.float32], ignore: NDArray[np.bool_]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_]]:
        """Return an image that is mirrored half of the time and differs in light, contrast and colour."""
        rng = self._rng
        shown = image.astype(np.float32) / 255
        if rng.random() < 0.5:
            shown = shown[:, ::-1]
            real = boxes[:, 2] > 0
            wide = image.shape[1]
            boxes[real] = boxes[real][:, [2, 1, 0, 3]] * [-1, 1, -1, 1] + [wide, 0, wide, 0]
        tint = rng.uniform(0.92, 1.08, 3).astype(np.float32)
        middle, contrast = float(shown.mean()), float(rng.uniform(0.8, 1.2))
        shown = (shown - middle) * (contrast * tint) + (middle + float(rng.uniform(-0.06, 0.06)))
        return np.clip(shown, 0, 1), boxes, ignore


def _joined(
    made: list[tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_]]],
) -> Batch:
    images, boxes, ignore = (np.stack(column) for column in zip(*made, strict=True))
    shown = torch.from_numpy(images).permute(0, 3, 1, 2)  # stays channels-last in memory
    return Batch(shown, torch.from_numpy(boxes), torch.from_numpy(ignore))

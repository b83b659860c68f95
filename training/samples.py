"""Batches to train on: crops around people, things and anywhere else, or whole frames.

All are shaken in light and colour, and a chosen share of them is put under adverse conditions. A crop costs
a quarter of a frame and is as good a lesson, so most of the training is done on crops.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from conditions import spoilt
from pasting import THINGS, View, view, with_person, with_things
from scenes import HEIGHT, SMALL_PX, WIDTH, Frames, depth_m

CROP = (160, 128)
ZOOM = (0.55, 1.3)
"""The least and the most that a crop is enlarged."""
TALLEST = 112
"""People are shrunk to this height in a crop, as far as ZOOM goes."""
WITH_PEOPLE, WITH_THINGS = 0.55, 0.25
"""The share of crops that are drawn around a person, and around a thing that is nobody."""
PASTED = 0.35
"""The share of pictures into which a person, or things, of another frame are pasted."""
CUT = 0.35
"""A person of whom less than this share is left in a crop is not asked for."""


class Batch(NamedTuple):
    """Images (B,3,H,W) in 0..1, boxes (B,8,4) xyxy padded with zeros, and which of them do not count."""

    images: Tensor
    boxes: Tensor
    ignore: Tensor


class Sampler:
    """Draws batches from frames, by one generator; `adverse` is the share under adverse conditions."""

    def __init__(
        self,
        data: Frames,
        rng: np.random.Generator,
        mild: float,
        severe: float,
    ) -> None:
        self._data, self.rng, self._mild, self._severe = data, rng, mild, severe
        self._people = np.argwhere((data.boxes[:, :, 2] > 0) & ~data.ignore)
        self.empty = np.flatnonzero(~(data.boxes[:, :, 2] > 0).any(axis=1))
        self.peopled = np.unique(self._people[:, 0])

    def crops(self, count: int) -> Batch:
        """Return crops, most of them around people, the others from frames without any."""
        return _joined([self._shaken(self._crop()) for _ in range(count)])

    def whole(self, rows: NDArray[np.int64]) -> Batch:
        """Return whole frames; those without people stay so."""
        made = []
        for row in rows:
            shown = view(self._data, row)
            if self.rng.random() < PASTED:
                if (shown.boxes[:, 2] > 0).any():
                    with_person(shown, self._data, *self._somebody(), self.rng)
                else:
                    with_things(shown, self._data, self._nobody(), self.rng)
            made.append(self._shaken(shown))
        return _joined(made)

    def _somebody(self) -> tuple[int, int]:
        row, which = self._people[self.rng.integers(len(self._people))]
        return int(row), int(which)

    def _nobody(self) -> int:
        return int(self.empty[self.rng.integers(len(self.empty))])

    def _crop(self) -> View:
        rng, (wide, high) = self.rng, CROP
        zoom = float(np.exp(rng.uniform(*np.log(ZOOM))))
        chosen, pasted = rng.random(), rng.random() < PASTED
        if chosen < WITH_PEOPLE:
            row, which = self._somebody()
            place = None
            if pasted:
                shown = view(self._data, int(rng.integers(len(self._data.images))))
                place = with_person(shown, self._data, row, which, rng)
            if place is None:
                shown, place = view(self._data, row), which
            x0, y0, x1, y1 = shown.boxes[place]
            zoom = max(min(zoom, TALLEST / (y1 - y0)), ZOOM[0])
            middle = (x0 + x1) / 2, (y0 + y1) / 2
        else:
            row = self._nobody()
            shown = view(self._data, row)
            if pasted:
                with_things(shown, self._data, self._nobody(), rng)
            thing = self._thing(row) if chosen < WITH_PEOPLE + WITH_THINGS else None
            middle = thing or (rng.uniform(0, WIDTH), rng.uniform(0.2 * HEIGHT, 0.9 * HEIGHT))
        w, h = min(round(wide / zoom), WIDTH), min(round(high / zoom), HEIGHT)
        left = int(np.clip(middle[0] - w * rng.uniform(0.15, 0.85), 0, WIDTH - w))
        top = int(np.clip(middle[1] - h * rng.uniform(0.3, 0.7), 0, HEIGHT - h))
        how = cv2.INTER_AREA if zoom < 1 else cv2.INTER_LINEAR
        part = slice(top, top + h), slice(left, left + w)
        image = cv2.resize(shown.image[part], CROP, interpolation=how)
        depth = cv2.resize(shown.depth[part], CROP, interpolation=cv2.INTER_NEAREST)
        before = shown.boxes
        scale = np.array([wide / w, high / h] * 2, np.float32)
        moved = (before - np.array([left, top] * 2, np.float32)) * scale
        after = np.clip(moved, 0, [wide, high, wide, high]).astype(np.float32)
        size, whole = after[:, 2:] - after[:, :2], moved[:, 2:] - moved[:, :2]
        gone = (before[:, 2] <= 0) | (size.min(axis=1) < 1)
        unfair = (size[:, 1] < SMALL_PX) | (size.prod(axis=1) < CUT * whole.prod(axis=1))
        after[gone] = 0
        return View(image, depth, after, shown.ignore | unfair)

    def _thing(self, row: int) -> tuple[float, float] | None:
        """Return a pixel of a thing that is nobody, or None where there is none."""
        found = np.argwhere(THINGS[self._data.labels[row, ::4, ::4]])
        if not len(found):
            return None
        y, x = found[self.rng.integers(len(found))] * 4
        return float(x), float(y)

    def _shaken(self, shown: View) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_]]:
        """Return an image that is mirrored half of the time and differs in light, contrast and colour.

        At times it is taken under adverse conditions.
        """
        rng, (image, depth, boxes, ignore) = self.rng, shown
        if rng.random() < 0.5:
            image, depth = image[:, ::-1], depth[:, ::-1]
            real = boxes[:, 2] > 0
            wide = image.shape[1]
            boxes[real] = boxes[real][:, [2, 1, 0, 3]] * [-1, 1, -1, 1] + [wide, 0, wide, 0]
        tint, light = rng.uniform(0.88, 1.12, 3), rng.uniform(-0.08, 0.08)
        middle, contrast = np.mean(cv2.mean(image)[:3]) / 255, rng.uniform(0.75, 1.25)
        table = (np.arange(256)[:, None] / 255 - middle) * (contrast * tint) + (middle + light)
        picture = cv2.LUT(image, np.clip(table, 0, 1).astype(np.float32)[None])
        drawn = rng.random()
        if drawn < self._mild + self._severe:
            strength: Literal["mild", "any"] = "mild" if drawn < self._mild else "any"
            picture = spoilt(picture, depth_m(depth), rng, strength)
        return picture, boxes, ignore


def _joined(
    made: list[tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_]]],
) -> Batch:
    images, boxes, ignore = (np.stack(column) for column in zip(*made, strict=True))
    shown = torch.from_numpy(images).permute(0, 3, 1, 2)  # stays channels-last in memory
    return Batch(shown, torch.from_numpy(boxes), torch.from_numpy(ignore))

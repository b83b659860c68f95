"""Which object lies behind what is seen, by the order in which the polygons of Cityscapes were drawn.

Annotators draw from back to front, and a polygon goes on under what is drawn over it. So where a later one
covers an earlier one, the earlier is hidden, and the later nearer: no depth is needed for that. Polygons that
were traced from finished maps never overlap but where one lies in a hole of another; they have no order.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from adverse.data.cityscapes_truth import OBJECTS, read_polygons
from adverse.data.images import ImageFile

NEVER_DRAWN = ("license plate",)
"""Annotated, but on no map: a plate is part of its car."""
NO_ORDER = -1
LEAST_SHARE = 0.05
"""A polygon lies on an earlier one if it shares this much of its inside with it."""
NUMBERS = {name: number for number, name in OBJECTS.items()}


@dataclass(frozen=True)
class PolygonLayers:
    """A polygon file; call it to get (H,W) int32: the object next behind what is seen, 0 where none is.

    Objects are numbered as in instance maps: class * 1000 + how many of the class were drawn before. All
    are NO_ORDER where the polygons have no order.
    """

    path: Path
    image: ImageFile

    @property
    def recipe(self) -> str:
        """How the polygons become layers."""
        return f"layers {self.image.recipe}"

    def __call__(self) -> NDArray[np.int32]:
        """Read the file and draw it."""
        size = self.image.measure()
        shape = size[1], size[0]
        seen, behind = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
        layers = np.zeros(shape, np.int32)
        drawn: Counter[str] = Counter()
        ordered = False
        for layer, polygon in enumerate(read_polygons(self.path, size), start=1):
            if polygon.deleted or polygon.label in NEVER_DRAWN:
                continue
            number = 0
            if polygon.label in NUMBERS:
                number = NUMBERS[polygon.label] * 1000 + drawn[polygon.label]
                drawn[polygon.label] += 1
            corners = np.rint(np.array(polygon.polygon)).astype(np.int32)
            x0, y0 = np.clip(corners.min(axis=0), 0, size).tolist()
            x1, y1 = np.clip(corners.max(axis=0) + 1, 0, size).tolist()
            if x0 >= x1 or y0 >= y1:
                continue  # beyond the border
            mask = np.zeros((y1 - y0, x1 - x0), np.uint8)
            cv2.fillPoly(mask, [corners - np.array([x0, y0], np.int32)], 1)
            inside, there = np.s_[y0:y1, x0:x1], mask > 0
            ordered = ordered or _overlaps(layers[inside], mask)
            hidden = there & (seen[inside] > 0)
            behind[inside][hidden] = seen[inside][hidden]
            seen[inside][there] = number
            layers[inside][there] = layer
        return behind if ordered else np.full(shape, NO_ORDER, np.int32)


def _overlaps(layers: NDArray[np.int32], mask: NDArray[np.uint8]) -> bool:
    """Return whether a polygon lies partly on an earlier one and partly not, beyond a line of two pixels."""
    inner = layers[cv2.erode(mask, np.ones((5, 5), np.uint8), borderValue=0) > 0]
    if not inner.size:
        return False
    shares = np.unique(inner, return_counts=True)[1] / inner.size
    return int((shares >= LEAST_SHARE).sum()) > 1

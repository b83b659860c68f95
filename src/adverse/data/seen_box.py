"""What an image shows of a solid: the box around the part of its outline that lies in the image."""

from __future__ import annotations

from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from adverse.data.depth import NEAREST_M
from adverse.data.images import Size
from adverse.data.truth import Box

Matrix = NDArray[np.float64]
EDGES = [(a, b) for a in range(8) for b in range(a) if (a ^ b).bit_count() == 1]
"""Corners of a box whose numbers differ in one bit are joined by an edge."""


class SeenBox(NamedTuple):
    """The box around what an image shows of a solid, and the share of its outline that lies outside."""

    box: Box
    outside: float


def corners_of(length: float, width: float, bottom: float, top: float) -> Matrix:
    """Return the corners (8,3) of a solid around the origin, x along its length; one bit for each axis.

    >>> corners_of(4, 2, 0, 1.5)[[0, 7]].tolist()
    [[-2.0, -1.0, 0.0], [2.0, 1.0, 1.5]]
    """
    sides = ((-length / 2, length / 2), (-width / 2, width / 2), (bottom, top))
    return np.array([[sides[axis][n >> axis & 1] for axis in range(3)] for n in range(8)], np.float64)


def seen_box(corners_m: Matrix, intrinsic: Matrix, size: Size) -> SeenBox | None:
    """Return what an image of `size` (width, height) shows of a solid; None: nothing.

    `corners_m` (8,3) are its corners in the frame of the camera, numbered by one bit for each axis. What is
    behind the camera is cut off. The outline of the rest is cut at the borders of the image, so the box is
    around what is inside. Calibration calls the middle of the first pixel (0, 0), boxes its corner.
    """
    deep = corners_m[:, 2]
    points = [corner for corner in corners_m if corner[2] >= NEAREST_M]
    for a, b in EDGES:
        if (deep[a] < NEAREST_M) != (deep[b] < NEAREST_M):
            part = (NEAREST_M - deep[a]) / (deep[b] - deep[a])
            points.append(corners_m[a] + part * (corners_m[b] - corners_m[a]))
    if len(points) < 3:
        return None
    seen = np.array(points) @ intrinsic.T
    pixels = seen[:, :2] / seen[:, 2:] + 0.5
    outline = cv2.convexHull(pixels.astype(np.float32))[:, 0].astype(np.float64)
    whole = _area(outline)
    for axis, end in enumerate(size):
        outline = _cut(_cut(outline, axis, 0.0, 1.0), axis, float(end), -1.0)
    if len(outline) < 3:
        return None
    (x0, y0), (x1, y1) = outline.min(axis=0), outline.max(axis=0)
    if x1 <= x0 or y1 <= y0:
        return None
    outside = max(1 - _area(outline) / whole, 0.0) if whole > 0 else 0.0
    return SeenBox((float(x0), float(y0), float(x1), float(y1)), outside)


def _area(outline: Matrix) -> float:
    """Return the area inside an outline, by the shoelace formula."""
    x, y = outline.T
    return abs(float(x @ np.roll(y, -1) - y @ np.roll(x, -1))) / 2


def _cut(outline: Matrix, axis: int, end: float, side: float) -> Matrix:
    """Return the part of a convex outline on one side of a line along an axis."""
    away = side * (outline[:, axis] - end)
    kept: list[Matrix] = []
    for n in range(len(outline)):
        m = (n + 1) % len(outline)
        if away[n] >= 0:
            kept.append(outline[n])
        if (away[n] >= 0) != (away[m] >= 0):
            kept.append(outline[n] + away[n] / (away[n] - away[m]) * (outline[m] - outline[n]))
    return np.array(kept).reshape(-1, 2)

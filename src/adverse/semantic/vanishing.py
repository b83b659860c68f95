"""The vanishing point of a street: where most of its straight edges meet.

Edges are found on a small copy of the image, their lines by the Hough transform. Every pair of lines is a
candidate, and the one through which most length of edges goes wins (ties: the longer pair of lines).
Nothing is drawn at random, so an image always has the same vanishing point.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from adverse.types import Image

WORK_WIDTH = 512
"""Images are made this wide before lines are looked for."""
MOST_LINES = 80
LEAST_LINES = 4
"""Lines that must go through a point before it counts."""
STEEP_DEG = (8.0, 82.0)
"""Edges that are about level or upright say nothing about where the street goes."""
MISS_PX = 3.0
"""How far, in pixels of the small copy, a line may pass by the point and still go through it."""


class VanishingPoint(NamedTuple):
    """A point in fractions of the image's width and height, and the share of edge length that goes to it."""

    x: float
    y: float
    support: float

    def cell(self, columns: int, rows: int) -> int:
        """Return the number of the cell it is in, row by row.

        >>> VanishingPoint(0.6, 0.4, 1).cell(2, 2)
        1
        """
        return min(int(self.y * rows), rows - 1) * columns + min(int(self.x * columns), columns - 1)


def vanishing_point(image: Image) -> VanishingPoint | None:
    """Find the vanishing point of an image (H,W,3); None where too few lines agree on one inside it."""
    height, width = image.shape[:2]
    scale = min(WORK_WIDTH / width, 1.0)
    small_size = max(round(width * scale), 1), max(round(height * scale), 1)
    gray = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
    if scale < 1:
        gray = cv2.resize(gray, small_size, interpolation=cv2.INTER_AREA)
    segments = _segments(np.asarray(gray, np.uint8))
    return None if len(segments) < LEAST_LINES else _meeting(segments, small_size)


def _segments(gray: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return the longest slanting edges, (N,4) x0 y0 x1 y1."""
    calm = cv2.GaussianBlur(gray, (0, 0), 1.0)
    edges = cv2.Canny(calm, 40, 120)
    shortest = max(gray.shape[1] // 24, 8)
    hough = cv2.HoughLinesP(
        edges, 1, math.pi / 180, threshold=shortest, minLineLength=shortest, maxLineGap=shortest / 5
    )
    if hough is None:
        return np.zeros((0, 4))
    lines = hough.reshape(-1, 4).astype(np.float64)
    along = np.abs(lines[:, 2:] - lines[:, :2])
    slant = np.degrees(np.arctan2(along[:, 1], along[:, 0]))
    lines = lines[(slant > STEEP_DEG[0]) & (slant < STEEP_DEG[1])]
    return lines[np.argsort(-_lengths(lines), kind="stable")][:MOST_LINES]


def _lengths(lines: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.hypot(lines[:, 2] - lines[:, 0], lines[:, 3] - lines[:, 1])


def _meeting(segments: NDArray[np.float64], size: tuple[int, int]) -> VanishingPoint | None:
    lengths = _lengths(segments)
    direction = (segments[:, 2:] - segments[:, :2]) / lengths[:, None]
    normal = np.stack([-direction[:, 1], direction[:, 0]], axis=1)
    offset = (normal * segments[:, :2]).sum(axis=1)  # a line is normal . point = offset
    first, second = np.triu_indices(len(segments), 1)
    cross = normal[first, 0] * normal[second, 1] - normal[first, 1] * normal[second, 0]
    crossing = np.abs(cross) > math.sin(math.radians(5))  # lines nearly alike meet anywhere
    first, second, cross = first[crossing], second[crossing], cross[crossing]
    points = np.stack(
        [
            (offset[first] * normal[second, 1] - offset[second] * normal[first, 1]) / cross,
            (offset[second] * normal[first, 0] - offset[first] * normal[second, 0]) / cross,
        ],
        axis=1,
    )
    inside = ((points >= 0) & (points < size)).all(axis=1)
    points = points[inside]
    if not len(points):
        return None
    through = np.abs(points @ normal.T - offset) <= MISS_PX
    # an edge counts only if it leads to the point from a distance: one that lies on it shows no direction
    ends = segments.reshape(-1, 2, 2)
    away = np.hypot(*np.moveaxis(points[:, None, None] - ends[None], -1, 0)).min(axis=2)
    through &= away > lengths / 2
    weight = through @ lengths
    best = int(np.argmax(weight))
    leaning = np.sign(direction[:, 0] * direction[:, 1])[through[best]]
    if through[best].sum() < LEAST_LINES or len(set(leaning.tolist())) < 2:
        return None
    x, y = _refined(normal[through[best]], offset[through[best]], lengths[through[best]], points[best])
    return VanishingPoint(
        min(max(x / size[0], 0.0), 1.0), min(max(y / size[1], 0.0), 1.0), float(weight[best] / lengths.sum())
    )


def _refined(
    normal: NDArray[np.float64],
    offset: NDArray[np.float64],
    lengths: NDArray[np.float64],
    point: NDArray[np.float64],
) -> tuple[float, float]:
    """Return the point nearest to all the lines that go to it, or the point itself if that runs away."""
    weight = np.sqrt(lengths)[:, None]
    solution = np.linalg.lstsq(normal * weight, offset * weight[:, 0], rcond=None)[0]
    near = solution if np.hypot(*(solution - point)) <= 4 * MISS_PX else point
    return float(near[0]), float(near[1])

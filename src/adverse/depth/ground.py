"""Nothing lies below the ground: matches that would put a surface there are wrong.

Over flat ground disparity grows evenly with the row. A line through the rows' medians in the lower half of
the image, where one fits, is the ground; a disparity of far less than the line's would be deep below it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

EVERY = 4
"""Rows that are looked at: every fourth."""
LEAST_PIXELS = 0.2
"""A row counts if at least this share of it is measured."""
FITS, LEAST_FITTING = 0.15, 0.7
"""The line is the ground if so large a share of rows is within this ratio of it."""
BELOW, LEAST_PX = 0.5, 4.0
"""A match is wrong if its disparity is below this share of the ground's, where that is so many pixels."""
MOST_BELOW = 0.02
"""If more than this share of the lower half lies below it, the line is not the ground."""

Mask = NDArray[np.bool_]


class GroundLine(NamedTuple):
    """The disparity of the ground: `slope` pixels more in each row, `start` in row 0."""

    slope: float
    start: float


def below_ground(disparity: NDArray[np.float32], measured: Mask) -> Mask:
    """Return where (H,W) disparity would put a surface deep below the ground; nowhere if no ground is found.

    >>> ground = np.repeat(np.linspace(-20, 20, 80, dtype=np.float32)[:, None].clip(0), 50, axis=1)
    >>> ground[70, 10] = 0.5
    >>> np.argwhere(below_ground(ground, np.ones((80, 50), bool)))
    array([[70, 10]])
    """
    rows = len(disparity)
    nothing = np.zeros(disparity.shape, np.bool_)
    ground = ground_line(disparity, measured)
    if ground is None:
        return nothing
    line = (ground.slope * np.arange(rows) + ground.start)[:, None]
    below: Mask = (line > LEAST_PX) & (disparity < BELOW * line)
    lower = measured[rows // 2 :]
    if (below[rows // 2 :] & lower).sum() > MOST_BELOW * lower.sum():
        return nothing
    return below


def ground_line(disparity: NDArray[np.float32], measured: Mask) -> GroundLine | None:
    """Return the line through the medians of the lower rows of disparity (H,W); None where none fits."""
    rows, columns = disparity.shape
    at, middle = [], []
    for y in range(rows // 2, rows, EVERY):
        found = disparity[y][measured[y]]
        if len(found) >= LEAST_PIXELS * columns:
            at.append(y)
            middle.append(float(np.median(found)))
    if len(at) < max(rows // (4 * EVERY), 2):
        return None
    row, shift = np.array(at, float), np.array(middle)
    one, other = np.triu_indices(len(row), 1)
    slope = float(np.median((shift[other] - shift[one]) / (row[other] - row[one])))
    start = float(np.median(shift - slope * row))
    fits = np.abs(slope * row + start - shift) <= FITS * np.maximum(shift, LEAST_PX)
    return GroundLine(slope, start) if slope > 0 and fits.mean() >= LEAST_FITTING else None

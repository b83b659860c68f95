"""Steps of a disparity map made sharp: a pixel on the ramp between two surfaces belongs to one of them.

Smoothing along the image's edges turns a step into a ramp of some pixels where both sides look alike, as a
dark pole before dark leaves; haze and defocus by such depth have a rim. No surface lies between the two: each
pixel of the ramp takes the disparity of the side that its colour is closer to.
"""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numba import njit
from numpy.typing import NDArray

from adverse.types import Image

RADIUS_PX = 5
"""Half the side of the window in which both surfaces of a step are looked for."""
STEP_PX, STEP_SHARE = 6.0, 0.5
"""A step is at least so many pixels of disparity, and this share of the nearer side's."""
PLATEAU = 0.2
"""What is within this share of a step of its ends is of the surface there; the rest is ramp."""
COLOUR_LEVELS = 9.0
"""A pixel that differs by so many levels, in the channel that differs most, counts e times less."""
_BEYOND = np.float32(1e6)
"""More than any disparity."""

Floats = NDArray[np.float32]


def sharpened(disparity: Floats, guide: Image, sky: NDArray[np.bool_]) -> Floats:
    """Return disparity (H,W) without ramps at its steps, by the colours of a guide (H,W,3) or (H,W).

    The sky has no disparity: it counts as no side of a step, and its values stay.

    >>> ramp = np.array([[10, 10, 20, 30, 40, 40]], np.float32)
    >>> guide = np.array([[90, 90, 90, 90, 30, 30]], np.uint8)
    >>> sharpened(ramp, guide, np.zeros(ramp.shape, bool))
    array([[10., 10., 10., 10., 40., 40.]], dtype=float32)
    """
    square = np.ones((2 * RADIUS_PX + 1, 2 * RADIUS_PX + 1), np.uint8)
    nearest = cv2.dilate(np.where(sky, -_BEYOND, disparity), square)
    farthest = cv2.erode(np.where(sky, _BEYOND, disparity), square)
    height = nearest - farthest
    ramp = (height >= STEP_PX) & (height >= STEP_SHARE * nearest) & ~sky
    ramp &= (disparity < nearest - PLATEAU * height) & (disparity > farthest + PLATEAU * height)
    colour = guide if guide.ndim == 3 else guide[..., None]
    alike = np.exp(-np.arange(256) / COLOUR_LEVELS).astype(np.float32)
    sharp = disparity.astype(np.float32)
    _choose_sides(disparity, np.argwhere(ramp), nearest, farthest, colour, sky, alike, sharp)
    return sharp


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _choose_sides(  # pragma: no cover - compiled
    values: Any, places: Any, nearest: Any, farthest: Any, colour: Any, sky: Any, alike: Any, sharp: Any
) -> None:
    """Write the mean of the side that looks more alike to each place (N,2), by likeness, into `sharp`."""
    rows, columns, channels = colour.shape
    weight, total, count = np.zeros(2), np.zeros(2), np.zeros(2, np.int64)
    for y, x in places:
        margin = PLATEAU * (nearest[y, x] - farthest[y, x])
        weight[:], total[:], count[:] = 0, 0, 0
        for v in range(max(y - RADIUS_PX, 0), min(y + RADIUS_PX + 1, rows)):
            for u in range(max(x - RADIUS_PX, 0), min(x + RADIUS_PX + 1, columns)):
                if sky[v, u]:
                    continue
                if values[v, u] >= nearest[y, x] - margin:
                    side = 1
                elif values[v, u] <= farthest[y, x] + margin:
                    side = 0
                else:
                    continue
                unlike = np.int64(0)
                for channel in range(channels):
                    here, there = np.int64(colour[y, x, channel]), np.int64(colour[v, u, channel])
                    unlike = max(unlike, abs(here - there))
                weight[side] += alike[unlike]
                total[side] += alike[unlike] * values[v, u]
                count[side] += 1
        side = 1 if weight[1] * count[0] > weight[0] * count[1] else 0
        if weight[side] > 0:
            sharp[y, x] = total[side] / weight[side]

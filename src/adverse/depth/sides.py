"""On which side of a step of disparity a pixel lies, by what the two images show around it.

Semi-global matching makes near things too wide where the background has no texture (in both images alike, so
that the check from left to right and back agrees), and loses thin ones before a background that is as bright.
At its steps each pixel is therefore matched again, with both surfaces and with adaptive support weights (Yoon
and Kweon 2006): in a window only what has the pixel's colour counts. It takes the disparity of a neighbour
that fits clearly better in both images, so that a pole goes on along its edge and fog does not stick to it.
On the nearer side of a high step, what fits no better than the farther side is doubted: refinement then
decides by colour.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import cv2
import numpy as np
from numba import njit
from numpy.typing import NDArray

from adverse.types import Image

RADIUS_PX = 4
"""Half the side of the window in which a disparity is compared."""
LOOK_PX = 8
"""How far from a pixel the other side of a step is looked for."""
STEP_PX, STEP_SHARE = 3.0, 0.2
"""A step is at least so many pixels of disparity, and this share of the nearer side's."""
DOUBT_PX, DOUBT_SHARE = 6.0, 0.5
"""The same, where the nearer side is doubted: smaller ones show little, and refinement needs what is sure."""
COLOUR_LEVELS = 10.0
"""A pixel that differs by so many levels, in the channel that differs most, counts e times less."""
MOST_LEVELS = 30.0
"""What differs between the images by more than this is hidden or a highlight: it counts as this."""
CLEARLY, CLEARLY_RIGHT, AS_WELL = 2.0, 1.0, 1.0
"""A neighbour's disparity is taken if it fits by so many levels better than the pixel's own, and by so many
better than what the right image's pixel has; a pixel is doubted if its own fits less than the last better."""
SAME_PX = 1.5
"""Two disparities of one surface."""
HIDDEN_LEVELS = 3.0
"""What is hidden in the right image cannot be compared: it may fit as well as this."""
LEAST_INSIDE = 0.7
"""A disparity is compared if so much of the window's weight is inside of the other image."""

Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]


class Sides(NamedTuple):
    """Disparity (H,W), where it was measured, and where of that the farther side would fit as well."""

    disparity: Floats
    measured: Mask
    doubted: Mask


def sides_of_steps(
    left: Image, right: Image, filled: Floats, of_right: Floats, measured: Mask, fixed: Mask
) -> Sides:
    """Choose the side of each pixel at a step of disparity.

    `filled` is the disparity (H,W) of the left image (H,W,3), known everywhere, `of_right` that of the right
    one as matched. Pixels that are `fixed`, such as sky, neither change nor pass on what they have.
    """
    one, other = _colour(left), _colour(right)
    table = np.exp(-np.arange(256) / COLOUR_LEVELS).astype(np.float32)
    disparity = np.ascontiguousarray(filled, np.float32).copy()
    moved = np.zeros(disparity.shape, np.bool_)
    for step in (1, -1):
        _propagate(one, other, disparity, np.ascontiguousarray(of_right), fixed, table, step, moved)
    known = (measured | moved) & ~fixed
    square = np.ones((2 * LOOK_PX + 1, 2 * LOOK_PX + 1), np.uint8)
    far = cv2.erode(np.where(known, disparity, np.inf).astype(np.float32), square)
    before = known & (disparity - far >= np.maximum(DOUBT_PX, DOUBT_SHARE * disparity))
    doubted = np.zeros(disparity.shape, np.bool_)
    _doubt(one, other, disparity, far, np.argwhere(before), table, doubted)
    return Sides(disparity, measured | moved, doubted)


def _colour(image: Image) -> Image:
    wide = image if image.ndim == 3 else cv2.cvtColor(image, cv2.COLOR_GRAY2RGB)
    return np.ascontiguousarray(wide, np.uint8)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _misfit(  # pragma: no cover - compiled
    base: Any, target: Any, table: Any, y: int, x: int, shift: Any
) -> Any:
    """Return by how many levels the base's window differs from the target's, `shift` pixels to the right."""
    rows, columns, _ = base.shape
    whole = math.floor(shift)
    after = np.float32(shift - whole)
    before = np.float32(1) - after
    here = base[y, x]
    total, inside, weights = np.float32(0), np.float32(0), np.float32(0)
    for v in range(max(y - RADIUS_PX, 0), min(y + RADIUS_PX + 1, rows)):
        for u in range(max(x - RADIUS_PX, 0), min(x + RADIUS_PX + 1, columns)):
            unlike = np.int64(0)
            for channel in range(3):
                unlike = max(unlike, abs(np.int64(base[v, u, channel]) - np.int64(here[channel])))
            weights += table[unlike]
            at = u + whole
            if at < 0 or at + 1 >= columns:
                continue
            off = np.float32(0)
            for channel in range(3):
                there = before * target[v, at, channel] + after * target[v, at + 1, channel]
                off += abs(np.float32(base[v, u, channel]) - there)
            inside += table[unlike]
            total += table[unlike] * min(off / np.float32(3), np.float32(MOST_LEVELS))
    return total / inside if inside > LEAST_INSIDE * weights else np.float32(MOST_LEVELS)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _propagate(  # pragma: no cover - compiled
    left: Any, right: Any, disparity: Any, of_right: Any, fixed: Any, table: Any, step: int, moved: Any
) -> None:
    """Carry disparity from row to row (down: `step` 1), and in each row to the right and back."""
    rows, columns = disparity.shape
    for turn in range(1, rows):
        y = turn if step > 0 else rows - 1 - turn
        for beside in (-1, 1):
            for count in range(1, columns - 1):
                x = count if beside < 0 else columns - 1 - count
                if fixed[y, x]:
                    continue
                own = disparity[y, x]
                best = _best(left, right, disparity, of_right, fixed, table, y, x, y - step, beside)
                if best != own:
                    disparity[y, x], moved[y, x] = best, True


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _best(  # pragma: no cover - compiled
    left: Any,
    right: Any,
    disparity: Any,
    of_right: Any,
    fixed: Any,
    table: Any,
    y: int,
    x: int,
    before: int,
    beside: int,
) -> Any:
    """Return the disparity of a pixel, or that of a neighbour that fits clearly better.

    Neighbours are the one beside it and, on the way right, the three of the row before.
    """
    own, misfit = disparity[y, x], np.float32(-1)
    for neighbour in range(-1 if beside < 0 else 2, 3):
        row, column = (before, x + neighbour) if neighbour < 2 else (y, x + beside)
        value = disparity[row, column]
        if fixed[row, column] or abs(value - own) < max(STEP_PX, STEP_SHARE * max(value, own)):
            continue
        if misfit < 0:
            misfit = _misfit(left, right, table, y, x, -own)
        if misfit < CLEARLY:
            break
        better = _misfit(left, right, table, y, x, -value)
        if better + CLEARLY < misfit and _fits_right(right, left, table, y, x, value, of_right):
            own, misfit = value, better
    return own


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _fits_right(  # pragma: no cover - compiled
    right: Any, left: Any, table: Any, y: int, x: int, value: Any, of_right: Any
) -> bool:
    """Return whether a disparity fits where it points in the right image, and better than what is there."""
    at = int(x - value + np.float32(0.5))
    if at < 0:
        return False
    there = of_right[y, at]
    if abs(there - value) <= SAME_PX:
        return True
    return bool(
        _misfit(right, left, table, y, at, value) + CLEARLY_RIGHT <= _misfit(right, left, table, y, at, there)
    )


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _doubt(  # pragma: no cover - compiled
    left: Any, right: Any, disparity: Any, far: Any, places: Any, table: Any, doubted: Any
) -> None:
    """Mark the places (N,2) on the nearer side of a step where the farther one fits about as well."""
    columns = disparity.shape[1]
    for y, x in places:
        own = disparity[y, x]
        other = _misfit(left, right, table, y, x, -far[y, x])
        hides = int(x + own - far[y, x] + np.float32(0.5))
        if hides < columns and abs(disparity[y, hides] - own) < SAME_PX:
            other = min(other, np.float32(HIDDEN_LEVELS))
        doubted[y, x] = other - _misfit(left, right, table, y, x, -own) < AS_WELL

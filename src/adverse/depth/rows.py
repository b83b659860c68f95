"""By how many rows the images of a pair are off: distinct points followed from the left image to the right.

Matching along rows cannot tell: on trunks, on ground and on leaves something alike is a few rows away too.
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from adverse.types import Image

POINTS, APART_PX, QUALITY = 200, 12, 0.01
"""Corners that are followed: at most so many, so far apart, at least this share of the best one."""
WINDOW_PX, LEVELS = 15, 2
"""Window of the search by gradient, and how many times the images are halved: some twenty rows are found."""
RETURN_PX = 0.5
"""The way back must end this near to where it began."""
LEAST_POINTS = 20


def row_offsets_px(
    left: Image, right: Image, disparity: NDArray[np.float32], sure: NDArray[np.bool_]
) -> NDArray[np.float32]:
    """Return how many rows lower (N,) distinct points of a gray left image are in the right one.

    They are looked for where the disparity (H,W) says, up to some ten rows around. Empty: there are too few.
    """
    nothing = np.zeros(0, np.float32)
    corners = cv2.goodFeaturesToTrack(left, POINTS, QUALITY, APART_PX, mask=sure.astype(np.uint8))
    if corners is None or len(corners) < LEAST_POINTS:
        return nothing
    start = corners.astype(np.float32)
    column, row = np.rint(start[:, 0]).astype(np.int64).T
    guess = start.copy()
    guess[:, 0, 0] -= disparity[row, column]
    there, found = _followed(left, right, start, guess)
    back, returned = _followed(right, left, there, start)
    sure_of = found & returned & (np.abs(back - start).max(axis=(1, 2)) <= RETURN_PX)
    offsets: NDArray[np.float32] = (there - start)[sure_of, 0, 1]
    return offsets if len(offsets) >= LEAST_POINTS else nothing


def _followed(
    before: Image, after: Image, points: NDArray[np.float32], guess: NDArray[np.float32]
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    there, found, _ = cv2.calcOpticalFlowPyrLK(
        before,
        after,
        points,
        guess.copy(),
        winSize=(WINDOW_PX, WINDOW_PX),
        maxLevel=LEVELS,
        flags=cv2.OPTFLOW_USE_INITIAL_FLOW,
    )
    return np.asarray(there, np.float32), np.asarray(found)[:, 0] > 0

"""By how many rows the images of a pair are off: distinct points followed from the left image to the right.

Matching along rows cannot tell: on trunks, on ground and on leaves something alike is a few rows away too.
From where points are off follows whether the cameras moved between the two images: a camera that went ahead
sees what is near and low still lower, what is near and high still higher, and what is far where it was.
"""

from __future__ import annotations

from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from adverse.types import Camera, Image

POINTS, APART_PX, QUALITY = 200, 12, 0.01
"""Corners that are followed: at most so many, so far apart, at least this share of the best one."""
WINDOW_PX, LEVELS = 15, 2
"""Window of the search by gradient, and how many times the images are halved: some twenty rows are found."""
MOTION_LEVELS = 4
"""The same from one frame to the next, where points move farther."""
RETURN_PX = 0.5
"""The way back must end this near to where it began."""
LEAST_POINTS = 20
ROUNDS, OUTLIER, LEAST_SPREAD_PX = 12, 2.0, 0.05
"""Rounds of the robust fit; points farther off it than so many standard deviations count little."""
LEVERAGE_SHARE = 0.05
"""What rests on this share of the points, or on two, is not believed: where all others are equally far away,
one that was followed wrongly decides the fit."""


class FollowedPoints(NamedTuple):
    """Distinct points (N,2) of the left image; how far left (N,) and lower (N,) they are in the right one.

    Empty where there are too few.
    """

    points: NDArray[np.float32]
    disparity: NDArray[np.float32]
    rows_lower: NDArray[np.float32]


class Advance(NamedTuple):
    """How far the right camera was ahead of the left one, in baselines, and the standard error of that."""

    baselines: float
    error: float


def advance(followed: FollowedPoints, camera: Camera, offset_px: float = 0.0) -> Advance | None:
    """Return how far ahead the right camera was by the rows of followed points; None: there are too few.

    Rows that are off by a constant, a roll or a zoom do not count, which only a calibration makes. Focal
    length times baseline over depth is the disparity plus `offset_px`.
    """
    if not len(followed.points):
        return None
    x = (followed.points[:, 0] - camera.cx) / camera.fx
    y = (followed.points[:, 1] - camera.cy) / camera.fx
    disparity = followed.disparity.astype(np.float64) + offset_px
    terms = np.stack([np.ones_like(x), x, y, disparity / camera.fx, y * disparity], axis=1).astype(np.float64)
    rows = followed.rows_lower.astype(np.float64)
    spread_out = np.linalg.qr(terms / np.linalg.norm(terms, axis=0)).Q
    leverage = (spread_out**2).sum(axis=1)
    low = np.argsort(leverage, kind="stable")[: -max(round(LEVERAGE_SHARE * len(rows)), 2)]
    fits = _last_coefficient(terms, rows), _last_coefficient(terms[low], rows[low])
    return min(fits, key=lambda fit: abs(fit.baselines) / max(fit.error, 1e-9))


def _last_coefficient(terms: NDArray[np.float64], rows: NDArray[np.float64]) -> Advance:
    """Fit rows (N,) by terms (N,K) so that outliers count little, and return the last coefficient."""
    weight = np.ones_like(rows)
    spread = LEAST_SPREAD_PX
    fit: NDArray[np.float64] = np.zeros(terms.shape[1])
    for _ in range(ROUNDS):
        root = np.sqrt(weight)
        solved = np.linalg.lstsq(terms * root[:, None], rows * root, rcond=None)[0]
        fit = np.asarray(solved, np.float64)
        missed = rows - terms @ fit
        spread = max(1.4826 * float(np.median(np.abs(missed))), LEAST_SPREAD_PX)
        weight = 1 / (1 + (missed / (OUTLIER * spread)) ** 2)
    covariance = spread**2 * np.linalg.pinv((terms * weight[:, None]).T @ terms)
    return Advance(float(fit[-1]), float(np.sqrt(covariance[-1, -1])))


def follow(
    left: Image, right: Image, disparity: NDArray[np.float32], sure: NDArray[np.bool_]
) -> FollowedPoints:
    """Follow distinct points of a gray left image to the right one.

    They are looked for where the disparity (H,W) says, up to some ten rows around.
    """
    nothing = FollowedPoints(np.zeros((0, 2), np.float32), np.zeros(0, np.float32), np.zeros(0, np.float32))
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
    if sure_of.sum() < LEAST_POINTS:
        return nothing
    moved = (there - start)[sure_of, 0]
    return FollowedPoints(start[sure_of, 0], -moved[:, 0], moved[:, 1])


def followed_both_ways(
    before: Image, after: Image, sure: NDArray[np.bool_]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return distinct points (N,2) of a gray image and where (N,2) they are in a later one; maybe none."""
    corners = cv2.goodFeaturesToTrack(before, POINTS, QUALITY, APART_PX, mask=sure.astype(np.uint8))
    if corners is None or len(corners) < LEAST_POINTS:
        return np.zeros((0, 2), np.float32), np.zeros((0, 2), np.float32)
    start = corners.astype(np.float32)
    there, found = _followed(before, after, start, start, MOTION_LEVELS)
    back, returned = _followed(after, before, there, start, MOTION_LEVELS)
    good = found & returned & (np.abs(back - start).max(axis=(1, 2)) <= RETURN_PX)
    return start[good, 0], there[good, 0]


def _followed(
    before: Image,
    after: Image,
    points: NDArray[np.float32],
    guess: NDArray[np.float32],
    levels: int = LEVELS,
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    there, found, _ = cv2.calcOpticalFlowPyrLK(
        before,
        after,
        points,
        guess.copy(),
        winSize=(WINDOW_PX, WINDOW_PX),
        maxLevel=levels,
        flags=cv2.OPTFLOW_USE_INITIAL_FLOW,
    )
    return np.asarray(there, np.float32), np.asarray(found)[:, 0] > 0

"""Where a small piece of one image is in another: along a row of the right image, or anywhere near a guess.

Points are (x, y) in the pixels of boxes: the middle of the first pixel is (0.5, 0.5). Pieces are compared by
their correlation, which light and exposure do not change, then placed to a fraction of a pixel by the image
gradient. A place that is not the only good one, or that the way back does not confirm, is said to be unsure.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from adverse.types import Image

Gray = NDArray[np.float32]
Point = tuple[float, float]

LEAST_CONTRAST = 2.0
"""Standard deviation of gray levels in a piece; below it there is nothing to hold on to."""
LEAST_SCORE = 0.75
"""Correlation of what is the same thing."""
LEAST_LEAD = 0.04
"""By how much the best place must be better than the next one."""
APART_PX = 2
"""Places nearer than this to the best one are the same."""
RETURN_PX = 1.0
"""The way back must end this near to where it began."""
STEPS, STILL_PX, FARTHEST_PX = 12, 0.002, 1.5
"""Gradient steps: at most so many, until they are smaller than this, and never farther than this in all."""


class Match(NamedTuple):
    """Where a piece is, how well it correlates (-1 to 1), and why that is not sure (empty: it is)."""

    point: Point
    score: float
    why: str = ""


def gray(image: Image) -> Gray:
    """Return an RGB image (H,W,3) as gray levels (H,W)."""
    levels: Gray = cv2.cvtColor(np.ascontiguousarray(image), cv2.COLOR_RGB2GRAY).astype(np.float32)
    return levels


def match_in_row(
    left: Gray, right: Gray, point: Point, *, half_px: int, disparity_px: tuple[float, float]
) -> Match:
    """Return the partner of a point of the left image, in the same row of the right one.

    `half_px` is half the width of the piece that is compared; `disparity_px` the least and the greatest
    distance to the left that is searched.
    """
    x, y = point
    piece = _piece(left, point, half_px)
    if piece.std() < LEAST_CONTRAST:
        return Match(point, 0.0, "there is too little texture around this point")
    low = max(math.floor(disparity_px[0]), math.ceil(x - right.shape[1]))
    high = min(math.ceil(disparity_px[1]), math.floor(x))
    if high < low:
        return Match(point, 0.0, "its partner lies outside the right image")
    middle = x - (low + high) / 2
    strip = cv2.getRectSubPix(
        right, (high - low + 2 * half_px + 1, 2 * half_px + 1), (middle - 0.5, y - 0.5)
    )
    scores = cv2.matchTemplate(strip, piece, cv2.TM_CCOEFF_NORMED)[0]
    at = int(scores.argmax())
    start = x - high + at + _peak(scores, at)
    placed = refined(right, piece, (start, y), across=True)
    score = max(float(scores[at]), _correlation(piece, _piece(right, placed, half_px)))
    others = np.concatenate([scores[: max(at - APART_PX, 0)], scores[at + APART_PX + 1 :]])
    return Match(placed, score, _doubt(score, float(others.max()) if len(others) else -1.0))


def match_near(
    before: Gray, after: Gray, point: Point, guess: Point, *, half_px: int, scale: float, reach_px: float
) -> Match:
    """Return where a point of one image is in another, within reach of a guess.

    What is around the point appears `scale` times as large in the second image.
    """
    piece = _piece(before, point, half_px, scale)
    if piece.std() < LEAST_CONTRAST:
        return Match(guess, 0.0, "there is too little texture around the point")
    reach = math.ceil(reach_px)
    side = 2 * (reach + half_px) + 1
    around = _piece(after, guess, side // 2)
    scores = cv2.matchTemplate(around, piece, cv2.TM_CCOEFF_NORMED)
    row, column = np.unravel_index(int(scores.argmax()), scores.shape)
    best = float(scores[row, column])
    start = (
        guess[0] + float(column) - reach + _peak(scores[row], int(column)),
        guess[1] + float(row) - reach + _peak(scores[:, column], int(row)),
    )
    placed = refined(after, piece, start)
    score = max(best, _correlation(piece, _piece(after, placed, half_px)))
    rest = scores.copy()
    apart = max(APART_PX, half_px // 2)
    rest[max(row - apart, 0) : row + apart + 1, max(column - apart, 0) : column + apart + 1] = -1
    return Match(placed, score, _doubt(score, float(rest.max())))


def refined(image: Gray, piece: Gray, start: Point, *, across: bool = False) -> Point:
    """Return where a piece fits best near a place, to a fraction of a pixel; `across`: in this row only.

    Gauss-Newton on the weighted squared difference, with brightness and contrast free. The weights fall
    from the middle of the piece, so that what is beside a person counts little.
    """
    half = piece.shape[0] // 2
    weight = _weights(half)
    x, y = start
    for _ in range(STEPS):
        around = _piece(image, (x, y), half + 1)
        here = around[1:-1, 1:-1]
        slope_x = (around[1:-1, 2:] - around[1:-1, :-2]) / 2
        slope_y = (around[2:, 1:-1] - around[:-2, 1:-1]) / 2
        parts = [slope_x, here, np.ones_like(here)] if across else [slope_x, here, np.ones_like(here), slope_y]
        columns = np.stack([part.ravel() for part in parts], axis=1).astype(np.float64) * weight[:, None]
        fit, *_ = np.linalg.lstsq(columns, piece.ravel().astype(np.float64) * weight, rcond=None)
        gain = fit[1]
        if not gain > 0.2:
            break
        step_x, step_y = fit[0] / gain, 0.0 if across else fit[3] / gain
        x, y = x + float(np.clip(step_x, -0.5, 0.5)), y + float(np.clip(step_y, -0.5, 0.5))
        if math.hypot(x - start[0], y - start[1]) > FARTHEST_PX:
            return start
        if max(abs(step_x), abs(step_y)) < STILL_PX:
            break
    return x, y


def _doubt(score: float, next_best: float) -> str:
    if score < LEAST_SCORE:
        return f"nothing matches well (score {score:.2f}, {LEAST_SCORE:g} needed)"
    if score - next_best < LEAST_LEAD:
        return f"several places match alike (scores {score:.2f} and {next_best:.2f})"
    return ""


def _piece(image: Gray, point: Point, half: int, scale: float = 1.0) -> Gray:
    """Return the (2 half + 1) pixels square around a point, enlarged by `scale`; borders are repeated."""
    side = 2 * half + 1
    if scale == 1.0:
        return cv2.getRectSubPix(image, (side, side), (point[0] - 0.5, point[1] - 0.5))
    zoom = 1 / scale
    matrix = np.array([[zoom, 0, point[0] - 0.5 - half * zoom], [0, zoom, point[1] - 0.5 - half * zoom]])
    piece: Gray = cv2.warpAffine(
        image,
        matrix,
        (side, side),
        flags=cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP,
        borderMode=cv2.BORDER_REPLICATE,
    ).astype(np.float32)
    return piece


def _weights(half: int) -> NDArray[np.float64]:
    """Return the square roots of the weights of a piece's pixels, from its middle outwards."""
    away = np.arange(-half, half + 1) / max(half, 1)
    line = np.exp(-0.5 * (away / 0.7) ** 2)
    return np.sqrt(np.outer(line, line)).ravel()


def _correlation(one: Gray, other: Gray) -> float:
    return float(cv2.matchTemplate(one, other, cv2.TM_CCOEFF_NORMED)[0, 0])


def _peak(scores: NDArray[np.float32], at: int) -> float:
    """Return how far beside its best sample the peak of a curve lies, by the parabola through three."""
    if not 0 < at < len(scores) - 1:
        return 0.0
    before, here, after = (float(value) for value in scores[at - 1 : at + 2])
    bend = before - 2 * here + after
    return 0.0 if bend >= 0 else float(np.clip((before - after) / (2 * bend), -0.5, 0.5))

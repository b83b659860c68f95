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
Half = tuple[int, int]
"""Half the width and half the height of a piece, its middle pixel apart."""

BLUR_PX = 1.0
"""Standard deviation of the blur before matching: the camera's noise and errors of interpolation shrink."""
LEAST_CONTRAST = 2.0
"""Standard deviation of gray levels in a piece; below it there is nothing to hold on to."""
LEAST_SCORE = 0.75
"""Correlation of what is the same thing."""
LEAST_LEAD = 0.04
"""By how much the best place must be better than the next one."""
APART_PX = 2
"""Places nearer than this to the best one are the same."""
FAR = 0.1
"""What a place at the end of the reach must correlate better than one at the guess."""
RETURN_PX = 1.0
"""The way back must end this near to where it began."""
LEAST_GAIN = 0.2
"""Contrast of a piece may differ down to this ratio."""
MIDDLE = 0.7
"""How fast weights fall from the middle of a piece: a standard deviation, in halves of it."""
STEPS, STILL_PX, FARTHEST_PX = 15, 0.002, 1.5
"""Gradient steps: at most so many, until they are smaller than this, and never farther than this in all."""


BEST = 0.999
"""A correlation above this counts as this: noise makes better ones chance."""


FINE_STEP_PX = 0.25
"""Steps in which partners are tried by the pixels right around a point."""
MOST_OPEN = 0.6
"""They tell nothing if the error that is left is more than this share of that of any place within reach."""


class Fine(NamedTuple):
    """The x of a partner by the pixels right around a point, and its standard deviation, in pixels."""

    x: float
    error_px: float


class Match(NamedTuple):
    """Where a piece is, how well it correlates (-1 to 1), and why that is not sure (empty: it is)."""

    point: Point
    score: float
    why: str = ""


def gray(image: Image) -> Gray:
    """Return an RGB image (H,W,3) as gray levels (H,W), a little blurred."""
    levels = cv2.cvtColor(np.ascontiguousarray(image), cv2.COLOR_RGB2GRAY).astype(np.float32)
    return np.asarray(cv2.GaussianBlur(levels, (0, 0), BLUR_PX), np.float32)


def match_in_row(
    left: Gray, right: Gray, point: Point, *, half_px: Half, disparity_px: tuple[float, float]
) -> Match:
    """Return the partner of a point of the left image, in the same row of the right one.

    `half_px` is half the width and the height of the piece that is compared; `disparity_px` the least and
    the greatest distance to the left that is searched.
    """
    x, y = point
    patch = piece(left, point, half_px)
    if patch.std() < LEAST_CONTRAST:
        return Match(point, 0.0, "there is too little texture around this point")
    low = max(math.floor(disparity_px[0]), math.ceil(x - right.shape[1]))
    high = min(math.ceil(disparity_px[1]), math.floor(x))
    if high < low:
        return Match(point, 0.0, "its partner lies outside the right image")
    middle = x - (low + high) / 2
    size = high - low + 2 * half_px[0] + 1, 2 * half_px[1] + 1
    strip = np.asarray(cv2.getRectSubPix(right, size, (middle - 0.5, y - 0.5)), np.float32)
    scores = _scores(strip, patch)[0]
    at = int(scores.argmax())
    start = x - high + at + _peak(scores, at)
    there = refined(right, patch, (start, y), across=True)
    back = refined(left, piece(right, there, half_px), point, across=True)
    placed = there[0] - (back[0] - x) / 2, y  # errors of interpolation have opposite signs either way
    score = max(float(scores[at]), correlation(patch, piece(right, placed, half_px)))
    return Match(placed, score, _doubt(score, _next_peak(scores, at)))


def match_near(
    before: Gray, after: Gray, point: Point, guess: Point, *, half_px: Half, scale: float, reach_px: float
) -> Match:
    """Return where a point of one image is in another, within reach of a guess.

    What is around the point appears `scale` times as large in the second image.
    """
    patch = piece(before, point, half_px, scale)
    if patch.std() < LEAST_CONTRAST:
        return Match(guess, 0.0, "there is too little texture around the point")
    reach = math.ceil(reach_px)
    around = piece(after, guess, (reach + half_px[0], reach + half_px[1]))
    scores = _scores(around, patch)
    away = (np.arange(-reach, reach + 1) / max(reach, 1)) ** 2
    scores -= FAR * (away[:, None] + away[None, :]).astype(np.float32)
    row, column = np.unravel_index(int(scores.argmax()), scores.shape)
    start = (
        guess[0] + float(column) - reach + _peak(scores[row], int(column)),
        guess[1] + float(row) - reach + _peak(scores[:, column], int(row)),
    )
    placed = refined(after, patch, start)
    score = correlation(patch, piece(after, placed, half_px))
    best = float(scores[row, column])
    across, down = (max(APART_PX, half // 2) for half in half_px)
    scores[max(row - down, 0) : row + down + 1, max(column - across, 0) : column + across + 1] = -1
    return Match(placed, score, _doubt(score, score - best + float(scores.max())))


def refined(image: Gray, patch: Gray, start: Point, *, across: bool = False) -> Point:
    """Return where a piece fits best near a place, to a fraction of a pixel; `across`: in this row only.

    Gauss-Newton on the squared difference, with brightness and contrast free. Pixels count by how near they
    are to the middle of the piece, since what is beside a person moves otherwise.
    """
    half = patch.shape[1] // 2, patch.shape[0] // 2
    weight = _weights(half)
    wanted = patch.ravel().astype(np.float64) * weight
    x, y = start
    for _ in range(STEPS):
        around = piece(image, (x, y), (half[0] + 1, half[1] + 1)).astype(np.float64)
        here = around[1:-1, 1:-1]
        parts = [here, np.ones_like(here), (around[1:-1, 2:] - around[1:-1, :-2]) / 2]
        if not across:
            parts.append((around[2:, 1:-1] - around[:-2, 1:-1]) / 2)
        columns = np.stack([part.ravel() for part in parts], axis=1)
        fit, *_ = np.linalg.lstsq(columns * weight[:, None], wanted, rcond=None)
        if not fit[0] > LEAST_GAIN:
            return start
        step = fit[2:] / fit[0]
        x += float(np.clip(step[0], -0.5, 0.5))
        y += 0.0 if across else float(np.clip(step[1], -0.5, 0.5))
        if math.hypot(x - start[0], y - start[1]) > FARTHEST_PX:
            return start
        if np.abs(step).max() < STILL_PX:
            break
    return x, y


def at_point(
    left: Gray, right: Gray, point: Point, right_x: float, half_px: int, reach_px: float
) -> Fine | None:
    """Return the partner of a point by the pixels right around it alone; None: they do not tell.

    A partner within reach of `right_x` is the more likely the better a square around it correlates: for
    pixels with normal noise, brightness and contrast free, as many as the blur leaves independent. Returned
    are mean and standard deviation of that, so that on plain clothes little is claimed.
    """
    patch = piece(left, point, (half_px, half_px))
    if not patch.std() > 0:
        return None
    reach = math.ceil(reach_px)
    places, scores = [], []
    for part in np.arange(0, 1, FINE_STEP_PX):
        strip = piece(right, (right_x + part, point[1]), (half_px + reach, half_px))
        places.append(np.arange(-reach, reach + 1) + part)
        scores.append(_scores(strip, patch)[0].astype(np.float64))
    away, likeness = np.concatenate(places), np.clip(np.concatenate(scores), 0.0, BEST)
    near = np.abs(away) <= reach_px
    away, likeness = away[near], likeness[near]
    logs = -0.5 * patch.size / (4 * math.pi * BLUR_PX**2) * np.log(1 - likeness**2)
    chance = np.exp(logs - logs.max())
    chance /= chance.sum()
    mean = float(chance @ away)
    error = math.sqrt(float(chance @ (away - mean) ** 2) + FINE_STEP_PX**2 / 12)
    return Fine(right_x + mean, error) if error < MOST_OPEN * reach_px / math.sqrt(3) else None


def _doubt(score: float, next_best: float) -> str:
    if score < LEAST_SCORE:
        return f"nothing matches well (score {score:.2f}, {LEAST_SCORE:g} needed)"
    if score - next_best < LEAST_LEAD:
        return f"several places match alike (scores {score:.2f} and {next_best:.2f})"
    return ""


def piece(image: Gray, point: Point, half: Half, scale: float = 1.0) -> Gray:
    """Return the pixels around a point, enlarged by `scale`; borders of the image are repeated."""
    size = 2 * half[0] + 1, 2 * half[1] + 1
    if scale == 1.0:
        return np.asarray(cv2.getRectSubPix(image, size, (point[0] - 0.5, point[1] - 0.5)), np.float32)
    zoom = 1 / scale
    x, y = point[0] - 0.5 - half[0] * zoom, point[1] - 0.5 - half[1] * zoom
    flags = cv2.INTER_CUBIC | cv2.WARP_INVERSE_MAP
    matrix = np.array([[zoom, 0, x], [0, zoom, y]])
    enlarged = cv2.warpAffine(image, matrix, size, flags=flags, borderMode=cv2.BORDER_REPLICATE)
    return np.asarray(enlarged, np.float32)


def _weights(half: Half) -> NDArray[np.float64]:
    """Return the square roots of the weights of a piece's pixels, from its middle outwards."""
    across, down = (np.exp(-0.25 * (np.linspace(-1, 1, 2 * size + 1) / MIDDLE) ** 2) for size in half)
    return np.outer(down, across).ravel()


def _scores(image: Gray, patch: Gray) -> Gray:
    """Return the correlation of a patch with every place of an image that holds it."""
    scores: Gray = np.asarray(cv2.matchTemplate(image, patch, cv2.TM_CCOEFF_NORMED), np.float32)
    return scores


def _next_peak(scores: NDArray[np.float32], at: int) -> float:
    """Return the best score outside the hill whose top is `at`: its own slopes are no second place."""
    first, last = at, at
    while first > 0 and (at - first < APART_PX or scores[first - 1] <= scores[first]):
        first -= 1
    while last < len(scores) - 1 and (last - at < APART_PX or scores[last + 1] <= scores[last]):
        last += 1
    others = np.concatenate([scores[:first], scores[last + 1 :]])
    return float(others.max()) if len(others) else -1.0


def correlation(one: Gray, other: Gray) -> float:
    """Return how alike two pieces of one size are, from -1 to 1, whatever their brightness and contrast."""
    return float(_scores(one, other)[0, 0])


def _peak(scores: NDArray[np.float32], at: int) -> float:
    """Return how far beside its best sample the peak of a curve lies, by the parabola through three."""
    if not 0 < at < len(scores) - 1:
        return 0.0
    before, here, after = (float(value) for value in scores[at - 1 : at + 2])
    bend = before - 2 * here + after
    return 0.0 if bend >= 0 else float(np.clip((before - after) / (2 * bend), -0.5, 0.5))

"""At steps of disparity each pixel is on the side that both images show; what they do not show is doubted."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from adverse.depth import sides
from adverse.depth.sides import sides_of_steps
from adverse.types import Image

FAR, NEAR, POLE, ROWS, COLUMNS = 2, 12, slice(30, 36), 40, 64
Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]


def pole(background: int = 120) -> tuple[Image, Image, Floats]:
    """Return a pair with a pole (disparity 12) before noise of so many levels (2), and the disparity."""
    random = np.random.default_rng(5)
    wall = random.integers(0, background + 1, (ROWS, COLUMNS + NEAR, 3))
    left, right = wall[:, FAR:][:, :COLUMNS].copy(), wall[:, 2 * FAR :][:, :COLUMNS].copy()
    surface = random.integers(180, 255, (ROWS, POLE.stop - POLE.start, 3))
    left[:, POLE], right[:, POLE.start - NEAR : POLE.stop - NEAR] = surface, surface
    disparity = np.full((ROWS, COLUMNS), FAR, np.float32)
    disparity[:, POLE] = NEAR
    return left.astype(np.uint8), right.astype(np.uint8), disparity


def of_right(disparity: Floats) -> Floats:
    """Return the disparity of the right image: the nearest surface that is seen there."""
    seen = np.zeros_like(disparity)
    for y, x in np.ndindex(disparity.shape):
        at = int(x - disparity[y, x])
        if at >= 0:
            seen[y, at] = max(seen[y, at], disparity[y, x])
    return np.where(seen > 0, seen, FAR).astype(np.float32)


def test_a_pole_that_matching_made_too_wide_is_as_wide_as_it_is_and_a_gap_in_it_is_closed() -> None:
    left, right, truth = pole()
    matched = truth.copy()
    matched[:12, POLE.start : POLE.stop + 5] = NEAR
    matched[20:34] = FAR
    everywhere = np.ones(truth.shape, np.bool_)
    hidden = ~everywhere
    hidden[:, POLE.start - (NEAR - FAR) : POLE.start] = True
    for right_way in (of_right(truth), of_right(matched)):
        made = sides_of_steps(left, right, matched, right_way, ~hidden, ~everywhere)
        assert np.array_equal(made.disparity, truth)
        assert made.measured[20:34, POLE].all()
        assert not made.measured[hidden].any()  # nothing in the right image says what is there
        assert not made.doubted[:, POLE].any()


def test_before_a_background_without_texture_what_is_too_wide_is_doubted() -> None:
    left, right, truth = pole(background=0)
    matched = truth.copy()
    matched[:, POLE.stop : POLE.stop + 4] = NEAR
    everywhere = np.ones(truth.shape, np.bool_)
    made = sides_of_steps(left, right, matched, of_right(matched), everywhere, ~everywhere)
    assert np.array_equal(np.unique(np.nonzero(made.doubted)[1]), np.arange(POLE.stop, POLE.stop + 4))
    assert made.doubted[:, POLE.stop : POLE.stop + 4].all()


def test_what_is_fixed_neither_changes_nor_passes_on_what_it_has() -> None:
    left, right, truth = pole()
    matched = np.full_like(truth, FAR)
    matched[0] = truth[0]
    top = np.zeros(truth.shape, np.bool_)
    top[0] = True
    made = sides_of_steps(left, right, matched, of_right(truth), ~top, top)
    assert np.array_equal(made.disparity, matched)
    open_top = sides_of_steps(left, right, matched, of_right(truth), ~top, np.zeros_like(top))
    assert np.array_equal(open_top.disparity, truth)


def test_it_is_as_a_slow_reference_says() -> None:
    random = np.random.default_rng(7)
    left, right, truth = pole(background=40)
    left, right, truth = left[:18, 14:46], right[:18, 14:46], truth[:18, 14:46]
    matched = np.where(random.random(truth.shape) < 0.15, random.uniform(0, 14, truth.shape), truth)
    right_way = np.where(random.random(truth.shape) < 0.2, NEAR + 0.4, FAR)
    measured, fixed = random.random(truth.shape) < 0.8, random.random(truth.shape) < 0.1
    start, there = matched.astype(np.float32), right_way.astype(np.float32)
    made = sides_of_steps(left, right, start, there, measured, fixed)
    values, moved = propagated(left, right, start, there, fixed)
    assert moved.sum() > 20
    assert made.doubted.sum() > 5
    np.testing.assert_allclose(made.disparity, values)
    assert np.array_equal(made.measured, measured | moved)
    assert np.array_equal(made.doubted, doubts(left, right, values, (measured | moved) & ~fixed))


def step_px(one: float, other: float) -> float:
    return max(sides.STEP_PX, sides.STEP_SHARE * max(one, other))


def propagated(
    left: Image, right: Image, filled: Floats, of_right: Floats, fixed: Mask
) -> tuple[NDArray[np.float64], Mask]:
    """Let pixels take neighbours' disparity, one by one, as the module's docstring and its constants say."""
    values = filled.astype(float)
    rows, columns = values.shape
    moved = np.zeros_like(fixed)

    def better(y: int, x: int, value: float) -> bool:
        own = values[y, x]
        if misfit(left, right, y, x, -value) + sides.CLEARLY >= misfit(left, right, y, x, -own):
            return False
        at = math.floor(x - value + 0.5)
        if at < 0 or abs(of_right[y, at] - value) <= sides.SAME_PX:
            return at >= 0
        fits, instead = (misfit(right, left, y, at, shift) for shift in (value, float(of_right[y, at])))
        return fits + sides.CLEARLY_RIGHT <= instead

    order = [
        (y, x, beside, [(y - step, x - 1), (y - step, x), (y - step, x + 1)] if beside < 0 else [])
        for step in (1, -1)
        for y in range(rows)[::step][1:]
        for beside in (-1, 1)
        for x in range(columns)[::-beside][1:-1]
        if not fixed[y, x]
    ]
    for y, x, beside, before in order:
        for place in [*before, (y, x + beside)]:
            value = values[place]
            if (
                not fixed[place]
                and abs(values[y, x] - value) >= step_px(values[y, x], value)
                and better(y, x, value)
            ):
                values[y, x], moved[y, x] = value, True
    return values, moved


def doubts(left: Image, right: Image, values: NDArray[np.float64], known: Mask) -> Mask:
    """Return where the farthest disparity around fits about as well."""
    doubted = np.zeros_like(known)
    for y, x in np.argwhere(known):
        part = np.s_[
            max(y - sides.LOOK_PX, 0) : y + sides.LOOK_PX + 1,
            max(x - sides.LOOK_PX, 0) : x + sides.LOOK_PX + 1,
        ]
        own, far = values[y, x], values[part][known[part]].min()
        if own - far >= max(sides.DOUBT_PX, sides.DOUBT_SHARE * own):
            other = misfit(left, right, y, x, -far)
            hides = int(x + own - far + 0.5)
            if hides < values.shape[1] and abs(values[y, hides] - own) < sides.SAME_PX:
                other = min(other, sides.HIDDEN_LEVELS)
            doubted[y, x] = other - misfit(left, right, y, x, -own) < sides.AS_WELL
    return doubted


def misfit(base: Image, target: Image, y: int, x: int, shift: float) -> float:
    """Compare a window with adaptive support weights, NaN being outside of the other image."""
    radius, (rows, columns) = sides.RADIUS_PX, base.shape[:2]
    v, u = np.mgrid[
        max(y - radius, 0) : min(y + radius + 1, rows), max(x - radius, 0) : min(x + radius + 1, columns)
    ]
    weight = np.exp(-np.abs(base[v, u].astype(int) - base[y, x]).max(axis=2) / sides.COLOUR_LEVELS)
    at = np.floor(u + shift).astype(int)
    inside = (at >= 0) & (at + 1 < columns)
    at, after = np.clip(at, 0, columns - 2), (u + shift - np.floor(u + shift))[..., None]
    there = (1 - after) * target[v, at] + after * target[v, at + 1]
    off = np.minimum(np.abs(base[v, u] - there).mean(axis=2), sides.MOST_LEVELS)
    if weight[inside].sum() <= sides.LEAST_INSIDE * weight.sum():
        return sides.MOST_LEVELS
    return float((weight * off)[inside].sum() / weight[inside].sum())

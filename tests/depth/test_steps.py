"""Ramps between two surfaces become steps, at the image's edge; everything else stays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from adverse.depth.steps import COLOUR_LEVELS, PLATEAU, RADIUS_PX, STEP_PX, STEP_SHARE, sharpened


def pole(
    ramp_px: int, far: float = 10.0, near: float = 60.0
) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
    """Return disparity (20,40) of a pole with a ramp on its left, its edge seen in the middle."""
    x = np.arange(40)
    rising = np.clip((x - 15 + ramp_px / 2) / ramp_px, 0, 1) if ramp_px else (x >= 15).astype(float)
    row = np.where(x < 25, far + (near - far) * rising, far)
    guide = np.where((x >= 15) & (x < 25), 60, 12)[None, :, None] + np.zeros((20, 1, 3), int)
    return np.tile(row.astype(np.float32), (20, 1)), guide.astype(np.uint8)


def slow(
    disparity: NDArray[np.float32], guide: NDArray[np.uint8], sky: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Sharpen pixel by pixel, as the module's docstring says."""
    rows, columns = disparity.shape
    sharp = disparity.astype(float)
    for y, x in np.argwhere(~sky):
        part = np.s_[
            max(y - RADIUS_PX, 0) : min(y + RADIUS_PX + 1, rows),
            max(x - RADIUS_PX, 0) : min(x + RADIUS_PX + 1, columns),
        ]
        values = disparity[part][~sky[part]].astype(float)
        colours = guide[part][~sky[part]].astype(int)
        low, high, here = values.min(), values.max(), float(disparity[y, x])
        margin = PLATEAU * (high - low)
        if high - low < max(STEP_PX, STEP_SHARE * high) or not low + margin < here < high - margin:
            continue
        alike = np.exp(-np.abs(colours - guide[y, x].astype(int)).max(axis=1) / COLOUR_LEVELS)
        near, far = values >= high - margin, values <= low + margin
        side = near if alike[near].mean() > alike[far].mean() else far
        sharp[y, x] = (alike * values)[side].sum() / alike[side].sum()
    return sharp


def test_a_ramp_becomes_a_step_at_the_edge_of_the_image() -> None:
    blurred, guide = pole(ramp_px=6)
    exact, _ = pole(ramp_px=0)
    sharp = sharpened(blurred, guide, np.zeros(blurred.shape, np.bool_))
    assert np.abs(blurred - exact).max() > 15
    assert np.abs(sharp - exact).max() <= PLATEAU * 50


def test_it_is_as_a_slow_reference_says() -> None:
    random = np.random.default_rng(3)
    disparity = random.choice([8.0, 11.0, 25.0, 40.0], (24, 31)).astype(np.float32)
    guide = random.integers(0, 80, (24, 31, 3)).astype(np.uint8)
    sky = random.random((24, 31)) < 0.2
    sharp = sharpened(disparity, guide, sky)
    np.testing.assert_allclose(sharp, slow(disparity, guide, sky), rtol=1e-5)
    assert (sharp != disparity).mean() > 0.1
    assert (sharp[sky] == disparity[sky]).all()


def test_slopes_and_low_steps_stay() -> None:
    everywhere = np.zeros((20, 40), np.bool_)
    slope = np.tile(np.linspace(20, 60, 40, dtype=np.float32), (20, 1))
    low, guide = pole(ramp_px=6, far=54.5)
    assert (sharpened(slope, guide, everywhere) == slope).all()
    assert (sharpened(low, guide, everywhere) == low).all()
    assert (sharpened(slope, guide, ~everywhere) == slope).all()

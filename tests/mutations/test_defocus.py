"""Defocus: the exact scatter against plain loops, the fast one against the exact one on real scenes."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from adverse import mutations
from adverse.mutations.batteries import BATTERIES
from adverse.mutations.defocus import (
    LAYER_RATIO,
    LAYER_TRUNCATE_SIGMA,
    WIDEST_PX,
    blur_radius_px,
    defocus_exactly,
)
from adverse.types import Depth, Image
from pictures import MIDDLEBURY, SCENES, gap, photo, scene

SETTINGS = sorted(
    {text for battery in ("riot-2018", "field-2021") for text, _ in BATTERIES[battery] if "defocus" in text}
)


def scattered(image: Image, radius: NDArray[np.float64]) -> NDArray[np.float64]:
    """Equation 3 of 000, term by term."""
    rows, columns = image.shape[:2]
    total, weight = np.zeros(image.shape), np.zeros((rows, columns))
    for y, x in itertools.product(range(rows), range(columns)):
        rho = radius[y, x]
        if rho < 0.2:
            total[y, x] += image[y, x]
            weight[y, x] += 1
            continue
        reach = math.ceil(4 * rho)
        taps = np.exp(-0.5 * (np.arange(-reach, reach + 1) / rho) ** 2)
        norm = taps.sum() ** 2
        for v in range(max(y - reach, 0), min(y + reach + 1, rows)):
            for u in range(max(x - reach, 0), min(x + reach + 1, columns)):
                share = taps[v - y + reach] * taps[u - x + reach] / norm
                total[v, u] += share * image[y, x]
                weight[v, u] += share
    return total / weight.reshape(rows, columns, *[1] * (image.ndim - 2))


def steps(rows: int, columns: int) -> Depth:
    depth = np.linspace(0.6, 9, columns, dtype=np.float32) * np.ones((rows, 1), np.float32)
    depth[: rows // 3] = np.inf
    depth[rows // 2 :, columns // 2 :] = 1.3
    return depth


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(("focus_m", "kappa"), [(1.0, 3.6), (2.0, 2.0), (5.0, 2.8)])
def test_the_exact_scatter_is_the_equation(channels: int, focus_m: float, kappa: float) -> None:
    image, depth = photo(17, 23, channels=channels), steps(17, 23)
    with np.errstate(invalid="ignore"):
        radius = kappa * np.abs(depth - focus_m) / (depth * focus_m).astype(np.float64)
    radius[np.isinf(depth)] = kappa / focus_m
    made = defocus_exactly(image, depth_m=depth, focus_m=focus_m, kappa=kappa)
    assert gap(made, scattered(image, radius)) < 0.51
    np.testing.assert_allclose(blur_radius_px(depth, focus_m=focus_m, kappa=kappa), radius, atol=1e-5)


@pytest.mark.parametrize("text", SETTINGS)
@pytest.mark.parametrize("name", SCENES)
def test_fast_is_within_one_level_of_exact_on_real_scenes(name: str, text: str) -> None:
    if not MIDDLEBURY.is_dir():
        pytest.skip("the Middlebury scenes are not here")
    image, depth = scene(name)
    image, depth = image[-240:, :320].copy(), depth[-240:, :320].copy()
    options = {key: float(value) for key, value in (part.split("=") for part in text[8:-1].split(", "))}
    fast = mutations.defocus(image, depth_m=depth, focus_m=options["focus_m"], kappa=options["kappa"])
    exact = defocus_exactly(image, depth_m=depth, focus_m=options["focus_m"], kappa=options["kappa"])
    assert gap(fast, exact) <= 1


@given(st.floats(0.3, 20), st.floats(0, 8), st.integers(0, 50))
@settings(max_examples=25, deadline=None)
def test_fast_is_close_to_exact_anywhere(focus_m: float, kappa: float, seed: int) -> None:
    image = photo(30, 40, seed=seed)
    depth = np.exp(np.random.default_rng(seed).uniform(-1, 3, (30, 40))).astype(np.float32)
    fast = mutations.defocus(image, depth_m=depth, focus_m=focus_m, kappa=kappa)
    exact = defocus_exactly(image, depth_m=depth, focus_m=focus_m, kappa=kappa)
    assert gap(fast, exact) <= 2  # depth that is pure noise is harder than any scene


@given(st.integers(0, 255), st.floats(0.3, 20), st.floats(0, 8))
@settings(max_examples=20, deadline=None)
def test_a_constant_image_stays(level: int, focus_m: float, kappa: float) -> None:
    image = np.full((20, 26, 3), level, np.uint8)
    made = mutations.defocus(image, depth_m=steps(20, 26), focus_m=focus_m, kappa=kappa)
    assert np.array_equal(made, image)


def test_what_is_in_focus_stays_sharp() -> None:
    image = photo(40, 40)
    depth = np.full((40, 40), 5, np.float32)
    assert np.array_equal(mutations.defocus(image, depth_m=depth, focus_m=5, kappa=3.6), image)


def test_the_camera_of_the_paper() -> None:
    assert round(mutations.camera_constant(focal_m=2.5e-3, f_number=1.4, pixel_m=1.24e-6), 1) == 3.6


@pytest.mark.parametrize("nearest_m", [1e-2, 1e-5, 1e-30, 1e-42])
def test_one_pixel_before_the_lens_is_spread_in_no_time_and_leaves_the_others_as_they_are(
    nearest_m: float,
) -> None:
    image = photo(40, 56, channels=3)
    depth = np.linspace(1, 20, 40 * 56, dtype=np.float32).reshape(40, 56)
    without = mutations.apply(image, "defocus(focus_m=2,kappa=2)", depth_m=depth)
    depth[20, 20] = nearest_m
    made = mutations.apply(image, "defocus(focus_m=2,kappa=2)", depth_m=depth)
    assert gap(made, defocus_exactly(image, depth_m=depth, focus_m=2, kappa=2)) <= 1
    far_away = np.ones(depth.shape, bool)
    far_away[12:29, 12:29] = False
    assert gap(made[far_away], without[far_away]) <= 1


def test_a_column_before_the_lens_is_spread_no_wider_than_the_widest_blur() -> None:
    """So the time that one column takes is bounded: beyond the reach of that blur nothing changes."""
    image = photo(8, 1100)
    depth = np.full((8, 1100), 2, np.float32)
    depth[:, 0] = 1e-5
    made = mutations.apply(image, "defocus(focus_m=2,kappa=2)", depth_m=depth)
    reach = int(np.ceil(LAYER_TRUNCATE_SIGMA * LAYER_RATIO * WIDEST_PX))
    assert np.array_equal(made[:, reach + 1 :], image[:, reach + 1 :])
    bounded = defocus_exactly(image, depth_m=depth, focus_m=2, kappa=2)
    assert gap(made, bounded) <= 1


def test_the_radius_of_the_nearest_depths_is_no_nan() -> None:
    depth = np.array([[1e-42, 1e-30, 1.0]], np.float32)
    assert (blur_radius_px(depth, focus_m=2, kappa=0) == 0).all()
    assert not np.isnan(blur_radius_px(depth, focus_m=2, kappa=3)).any()


def test_an_image_all_before_the_lens_has_hardly_any_contrast() -> None:
    image = photo(40, 56, channels=3)
    depth = np.full((40, 56), 1e-5, np.float32)
    made = mutations.apply(image, "defocus(focus_m=2,kappa=2)", depth_m=depth)
    assert made.std(axis=(0, 1)).max() < 0.1 * image.std(axis=(0, 1)).max()

"""Haze against the formula in double precision."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

from adverse import mutations
from adverse.errors import MutationError
from adverse.mutations.pixels import HAZE_COLOUR, LUMA
from adverse.types import Depth
from pictures import gap, photo, sizes


def depth_map(rows: int, columns: int, seed: int = 0) -> Depth:
    rng = np.random.default_rng(seed)
    return rng.uniform(0.5, 200, (rows, columns)).astype(np.float32)


@given(sizes(), st.floats(5, 2000), st.sampled_from([1, 3]))
@settings(max_examples=40, deadline=None)
def test_haze_is_the_formula(size: tuple[int, int], visibility_m: float, channels: int) -> None:
    image, depth = photo(*size, channels=channels), depth_map(*size)
    smooth = ndimage.gaussian_filter(depth.astype(np.float64), 2, mode="reflect", truncate=4)
    clear = np.exp(-3.912 / visibility_m * smooth).reshape(*size, *[1] * (image.ndim - 2))
    colour = np.array([205, 208, 211]) if channels == 3 else np.array([205, 208, 211]) @ [0.299, 0.587, 0.114]
    wanted = image * clear + colour * (1 - clear)
    assert gap(mutations.haze(image, depth_m=depth, visibility_m=visibility_m), wanted) < 0.51


def test_the_sky_is_haze_and_does_not_bleed() -> None:
    image = photo(30, 40)
    depth = np.full((30, 40), 10, np.float32)
    depth[:12] = np.inf
    made = mutations.haze(image, depth_m=depth, visibility_m=100)
    assert (made[:12] == [205, 208, 211]).all()
    flat = mutations.haze(image, depth_m=np.full((30, 40), 10, np.float32), visibility_m=100)
    assert gap(made[12:], flat[12:]) <= 1


@pytest.mark.parametrize("channels", [1, 3])
def test_haze_under_a_ragged_sky_is_the_formula(channels: int) -> None:
    rows, columns = 150, 90  # several blocks of rows: all sky, some, none, and some again
    image = photo(rows, columns, channels=channels)
    depth = np.linspace(90, 8, rows)[:, None] + 5 * np.sin(np.arange(columns) / 7)
    row, column = np.mgrid[:rows, :columns]
    depth[(row < 25) | ((row < 45) & (column % 20 < 9)) | ((row > 120) & (column > 70))] = np.inf
    ground = np.isfinite(depth)
    near = ndimage.gaussian_filter(np.where(ground, depth, 0), 2, mode="reflect", truncate=4)
    weight = ndimage.gaussian_filter(ground.astype(np.float64), 2, mode="reflect", truncate=4)
    clear = np.where(ground, np.exp(-3.912 / 60 * near / np.maximum(weight, 1e-30)), 0)
    veil = np.array(HAZE_COLOUR) if channels == 3 else np.array(HAZE_COLOUR) @ LUMA
    clear = clear[..., None] if channels == 3 else clear
    wanted = image * clear + veil * (1 - clear)
    made = mutations.haze(image, depth_m=depth.astype(np.float32), visibility_m=60.0)
    assert gap(made, wanted) < 0.501


def test_beta_and_visibility_are_one_thing() -> None:
    image, depth = photo(), depth_map(60, 80)
    one = mutations.haze(image, depth_m=depth, visibility_m=97.8)
    assert np.array_equal(one, mutations.haze(image, depth_m=depth, beta=3.912 / 97.8))


@given(st.floats(5, 2000), st.floats(5, 2000))
@settings(max_examples=20, deadline=None)
def test_less_visibility_is_closer_to_the_haze(one: float, other: float) -> None:
    image, depth = photo(), depth_map(60, 80)
    low, high = sorted([one, other])
    colour = np.array([205, 208, 211], np.float64)
    near = np.abs(mutations.haze(image, depth_m=depth, visibility_m=low) - colour)
    far = np.abs(mutations.haze(image, depth_m=depth, visibility_m=high) - colour)
    assert (near <= far + 1).all()


@pytest.mark.parametrize("bad", [np.nan, 0.0, -3.0, -np.inf])
def test_invalid_depth_is_refused(bad: float) -> None:
    depth = depth_map(60, 80)
    depth[3, 4] = bad
    with pytest.raises(MutationError, match="depth"):
        mutations.haze(photo(), depth_m=depth, visibility_m=100)
    with pytest.raises(MutationError, match="depth"):
        mutations.defocus(photo(), depth_m=depth, focus_m=1, kappa=2)


def test_visibility_or_beta_but_not_both() -> None:
    with pytest.raises(MutationError, match="either visibility_m or beta"):
        mutations.haze(photo(), depth_m=depth_map(60, 80))
    with pytest.raises(MutationError, match="either visibility_m or beta"):
        mutations.haze(photo(), depth_m=depth_map(60, 80), visibility_m=10, beta=1)


@pytest.mark.parametrize("width", [3, 5, 9])
def test_a_thin_post_fades_before_what_is_far_but_not_before_the_sky(width: int) -> None:
    black, post = np.zeros((41, 81, 3), np.uint8), abs(np.arange(81) - 40) <= width // 2
    share = math.erf(width / 2 / 2 / math.sqrt(2))  # of a Gaussian of 2 pixels
    for behind_m, mean_m in ((60.0, 13.5 * share + 60 * (1 - share)), (np.inf, 13.5)):
        depth = np.tile(np.where(post, 13.5, behind_m), (41, 1)).astype(np.float32)
        kept = 1 - mutations.haze(black, depth_m=depth, visibility_m=40.0)[20, 40, 0] / HAZE_COLOUR[0]
        assert kept == pytest.approx(math.exp(-3.912 / 40 * mean_m), abs=0.01)

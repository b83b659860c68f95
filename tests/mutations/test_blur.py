"""Blurs against scipy, one large kernel, and slow loops."""

from __future__ import annotations

import math

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import ndimage

from adverse import mutations
from adverse.mutations import area_kernels, blur, corruptions, motion
from pictures import gap, photo, sizes


@given(sizes(), st.floats(0.1, 6), st.sampled_from([1, 3]))
@settings(max_examples=40, deadline=None)
def test_gaussian_blur_is_scipys(size: tuple[int, int], sigma: float, channels: int) -> None:
    image = photo(*size, channels=channels)
    spread = (sigma, sigma, 0)[: image.ndim]
    wanted = ndimage.gaussian_filter(image.astype(np.float64), spread, mode="reflect", truncate=4)
    assert gap(mutations.gaussian_blur(image, sigma_px=sigma), wanted) < 0.51


@given(sizes(), st.integers(1, 5))
@settings(max_examples=25, deadline=None)
def test_corruption_gaussian_blur_is_scipys_cut_off(size: tuple[int, int], severity: int) -> None:
    image = photo(*size)
    sigma = corruptions.GAUSSIAN_BLUR[severity - 1]
    wanted = ndimage.gaussian_filter(image.astype(np.float64), (sigma, sigma, 0), mode="nearest", truncate=4)
    below = wanted - corruptions.gaussian_blur(image, severity=severity)
    assert below.max() < 1.001
    assert below.min() > -0.002


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("sigma", [0.75, 1.0, 2.3, 3.0, 4.0, 6.0])
def test_wide_images_blur_in_strips_without_a_seam(sigma: float, channels: int) -> None:
    image = photo(21, 2000 // channels + 1, channels=channels)  # two strips of compiled loops
    spread = (sigma, sigma, 0)[: image.ndim]
    wanted = ndimage.gaussian_filter(image.astype(np.float64), spread, mode="nearest", truncate=4)
    made = blur.blurred(image, sigma, border=cv2.BORDER_REPLICATE, offset=1e-3)
    sure = np.abs((wanted + 1e-3) % 1 - 0.5) < 0.4995  # not within 0.0005 of the next level
    assert np.array_equal(made[sure], np.floor(wanted + 1e-3)[sure])
    assert sure.mean() > 0.99


def large_kernel(radius: int, sigma: float) -> NDArray[np.float64]:
    side = max(radius, 8)
    row, column = np.mgrid[-side : side + 1, -side : side + 1]
    disc = (row**2 + column**2 <= radius**2).astype(np.float64)
    width = 3 if radius <= 8 else 5
    kernel: NDArray[np.float64] = cv2.GaussianBlur(disc / disc.sum(), (width, width), sigma).astype(
        np.float64
    )
    return kernel


@pytest.mark.parametrize(("radius", "sigma"), corruptions.DEFOCUS_BLUR)
@pytest.mark.parametrize("shape", [(40, 50, 3), (33, 21)])
def test_disc_blur_is_one_large_kernel(radius: int, sigma: float, shape: tuple[int, ...]) -> None:
    image = photo(*shape[:2], channels=3 if len(shape) == 3 else 1)
    wanted = np.clip(cv2.filter2D(image.astype(np.float64), -1, large_kernel(radius, sigma)), 0, 255)
    weight = large_kernel(radius, sigma).sum()
    made = blur.disc_blur(image, radius_px=radius, alias_sigma_px=sigma, weight=weight)
    # Radius 8 and more leave out four tips of the kernel that weigh 0.3 % each.
    assert gap(made, wanted) < (1.01 if radius < 8 else 2)
    assert np.mean(np.abs(made - np.floor(wanted)) <= 1) > 0.999


@pytest.mark.parametrize("radius", [1, 2, 5, 7, 11, 17])
def test_disc_blur_without_smoothing_averages_a_disc(radius: int) -> None:
    image = photo(24, 19)
    padded = np.pad(image, ((radius, radius), (radius, radius), (0, 0)), mode="reflect").astype(np.float64)
    total, count = np.zeros(image.shape), 0
    for dy in range(-radius, radius + 1):
        for dx in range(-radius, radius + 1):
            if dy * dy + dx * dx <= radius * radius:
                total += padded[radius + dy : radius + dy + 24, radius + dx : radius + dx + 19]
                count += 1
    made = blur.disc_blur(image, radius_px=radius, alias_sigma_px=1e-3)
    below = total / count - made
    assert below.min() > -0.01
    assert below.max() < 1.01


@given(sizes(30), st.integers(1, 5), st.floats(-180, 180), st.sampled_from([1, 3]))
@settings(max_examples=40, deadline=None)
def test_motion_blur_is_a_sum_of_shifted_copies(
    size: tuple[int, int], severity: int, angle: float, channels: int
) -> None:
    image = photo(*size, channels=channels)
    radius, sigma = corruptions.MOTION_BLUR[severity - 1]
    weights = [math.exp(-(i**2) / (2 * sigma**2)) for i in range(2 * radius + 1)]
    wanted = np.zeros(image.shape)
    rows, columns = np.arange(size[0]), np.arange(size[1])
    for i, weight in enumerate(weights):
        dy = -math.ceil(i * math.sin(math.radians(angle)) - 0.5)
        dx = -math.ceil(i * math.cos(math.radians(angle)) - 0.5)
        if abs(dy) >= size[0] or abs(dx) >= size[1]:
            break
        picked = image[np.clip(rows - dy, 0, size[0] - 1)][:, np.clip(columns - dx, 0, size[1] - 1)]
        wanted += weight / sum(weights) * picked
    below = wanted - motion.motion_blur(image, motion.track(radius, sigma, angle, size), offset=1e-3)
    assert below.min() > -0.01
    assert below.max() < 1.001


@pytest.mark.parametrize("severity", range(1, 6))
@pytest.mark.parametrize("size", [(64, 48), (37, 61), (1, 9), (1, 1)])
def test_zoom_blur_is_scipys(severity: int, size: tuple[int, int]) -> None:
    image = photo(*size)
    stop, step = corruptions.ZOOM_BLUR[severity - 1]
    total = image.astype(np.float64)
    factors = np.arange(1, stop, step)
    for factor in factors:
        rows, columns = math.ceil(size[0] / factor), math.ceil(size[1] / factor)
        top, left = (size[0] - rows) // 2, (size[1] - columns) // 2
        middle = image[top : top + rows, left : left + columns].astype(np.float64)
        large = ndimage.zoom(middle, (factor, factor, 1), order=1)[: size[0], : size[1]]
        total[: large.shape[0], : large.shape[1]] += large
    below = total / (len(factors) + 1) - corruptions.zoom_blur(image, severity=severity)
    assert below.min() > -0.01
    assert below.max() < 1.001


@given(st.floats(0.1, 5), st.floats(0.1, 5))
@settings(max_examples=20, deadline=None)
def test_more_sigma_blurs_more(one: float, other: float) -> None:
    image = photo(40, 50, channels=1)
    narrow, wide = (
        float(np.var(mutations.gaussian_blur(image, sigma_px=s).astype(np.float64)))
        for s in sorted([one, other])
    )
    assert wide <= narrow + 1


def test_glass_copies_only_neighbours_and_leaves_the_rim() -> None:
    size, reach = 40, 3
    row, column = np.mgrid[:size, :size]
    image = np.stack([row * 6, column * 6, row * 0], axis=2).astype(np.uint8)
    moved = image.copy()
    area_kernels.copy_neighbours(moved, reach, np.uint64(3))
    shift = (moved.astype(int) - image) // 6
    rim = np.ones((size, size), bool)
    rim[reach + 1 : size - reach + 1, reach + 1 : size - reach + 1] = False
    assert not shift[rim].any()
    # Pixels are visited from the last to the first: a copy can travel further up and left, never down.
    assert shift[..., :2].max() >= reach
    first_visited = shift[size - reach, reach + 1 : size - reach + 1]
    assert first_visited[:, 0].min() >= -reach
    assert first_visited[:, 0].max() <= reach - 1


def test_glass_shifts_are_uniform() -> None:
    counts = np.zeros((6, 6))
    for seed in range(3000):
        image = np.stack(np.meshgrid(range(7), range(7), [0], indexing="ij"), axis=-1)[:, :, 0].astype(
            np.uint8
        )
        area_kernels.copy_neighbours(image, 3, np.uint64(seed))
        dy, dx = int(image[4, 4, 0]) - 4, int(image[4, 4, 1]) - 4
        counts[dy + 3, dx + 3] += 1
    wanted = 3000 / 36
    assert ((counts - wanted) ** 2 / wanted).sum() < 80  # chi-squared, 35 degrees of freedom, p about 2e-5


def test_glass_blur_keeps_a_constant_image() -> None:
    image = np.full((30, 40, 3), 77, np.uint8)
    for severity in range(1, 6):
        made = corruptions.glass_blur(image, severity=severity, rng=np.random.default_rng(0))
        assert (made == 77).all()

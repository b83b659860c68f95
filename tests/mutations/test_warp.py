"""Displacements against scipy and against what a copy can do."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

from adverse.mutations import area_kernels, corruptions, digital
from pictures import photo, sizes


@given(sizes(), st.floats(0, 60), st.integers(0, 99), st.sampled_from([1, 3]))
@settings(max_examples=40, deadline=None)
def test_warping_is_scipys_bilinear_sampling(
    size: tuple[int, int], scale: float, seed: int, channels: int
) -> None:
    image = photo(*size, channels=channels).reshape(*size, channels)
    rng = np.random.default_rng(seed)
    down, across = (rng.uniform(-1, 1, size).astype(np.float32) for _ in range(2))
    out = np.empty_like(image)
    area_kernels.warp(image, down, across, scale, out)
    row, column = np.mgrid[: size[0], : size[1]].astype(np.float32)
    places = [row + down * np.float32(scale), column + across * np.float32(scale)]
    for channel in range(channels):
        values = image[..., channel].astype(np.float64)
        wanted = ndimage.map_coordinates(values, places, order=1, mode="reflect")
        below = wanted - out[..., channel]
        assert below.min() > -0.02
        assert below.max() < 1.01


def test_elastic_fields_are_as_smooth_and_as_wide_as_the_references() -> None:
    rows, columns = 100, 160
    wanted = np.std(
        [
            ndimage.gaussian_filter(field, (rows * 0.01, columns * 0.01), mode="reflect", truncate=3)
            for field in np.random.default_rng(0).uniform(-0.5, 0.5, (20, rows, columns))
        ]
    )
    ramp = np.tile(np.linspace(0, 255, columns).astype(np.uint8), (rows, 1))
    made = [digital.elastic(ramp, alpha=12.5, rng=np.random.default_rng(seed)) for seed in range(10)]
    inner = [image[20:-20, 30:-30].astype(np.float64) - ramp[20:-20, 30:-30] for image in made]
    pixels = np.std(inner) / (255 / (columns - 1))
    assert abs(pixels / (12.5 * wanted) - 1) < 0.1


def test_large_fields_made_on_a_coarser_grid_are_those_of_the_fine_one() -> None:
    rows, columns = 900, 1300  # deviations of 9 and 13 pixels: coarser by 3 and 4
    rng = np.random.default_rng(3)
    fine = [
        ndimage.gaussian_filter(
            rng.uniform(-1, 1, (rows, columns)), (rows * 0.01, columns * 0.01), mode="reflect", truncate=3
        )
        for _ in range(4)
    ]
    made = [digital._displacement((rows, columns), rng) for _ in range(4)]
    for numbers in (
        np.std,
        lambda field: np.std(np.diff(field, axis=0)),
        lambda f: np.std(np.diff(f, axis=1)),
    ):
        wanted, found = np.mean([numbers(f) for f in fine]), np.mean([numbers(f) for f in made])
        assert abs(found / wanted - 1) < 0.05
    assert abs(np.mean(made)) < 0.2 * np.std(fine)


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

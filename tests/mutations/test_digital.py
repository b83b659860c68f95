"""Codecs and resampling against Pillow, channels against the equations, displacements against scipy."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image as Pillow
from scipy import ndimage

from adverse import mutations
from adverse.errors import MutationError
from adverse.mutations import area_kernels, digital
from adverse.types import Image
from pictures import gap, photo, sizes


def pillow_jpeg(image: Image, quality: int) -> Image:
    buffer = io.BytesIO()
    Pillow.fromarray(image).save(buffer, "JPEG", quality=quality)
    return np.array(Pillow.open(buffer), np.uint8)


@given(sizes(), st.integers(1, 100), st.sampled_from([1, 3]))
@settings(max_examples=60, deadline=None)
def test_jpeg_is_pillows_to_the_bit(size: tuple[int, int], quality: int, channels: int) -> None:
    image = photo(*size, channels=channels)
    assert np.array_equal(mutations.jpeg(image, quality=quality), pillow_jpeg(image, quality))


def test_an_image_that_jpeg_cannot_hold_is_refused() -> None:
    assert mutations.jpeg(photo(1, 65500), quality=50).shape == (1, 65500, 3)
    with pytest.raises(MutationError, match="too large for JPEG"):
        mutations.jpeg(photo(1, 65501), quality=50)


@given(sizes(70), st.floats(0.02, 1), st.sampled_from([1, 3]))
@settings(max_examples=100, deadline=None)
def test_pixelate_is_pillows_to_the_bit(size: tuple[int, int], share: float, channels: int) -> None:
    image = photo(*size, channels=channels)
    small = (max(int(size[1] * share), 1), max(int(size[0] * share), 1))
    # Across first, as Pillow always did; from version 13 it takes the cheaper order first.
    across = Pillow.fromarray(image).resize((small[0], size[0]), Pillow.Resampling.BOX)
    once = across.resize(small, Pillow.Resampling.BOX)
    wanted = np.array(once.resize((size[1], size[0]), Pillow.Resampling.NEAREST))
    assert np.array_equal(digital.pixelate(image, share), wanted)


@pytest.mark.parametrize("channel", ["R", "G", "B"])
def test_dropping_a_colour_zeroes_it(channel: str) -> None:
    image = photo()
    made = mutations.channel_dropout(image, channel=channel)  # type: ignore[arg-type]
    wanted = image.copy()
    wanted[..., "RGB".index(channel)] = 0
    assert np.array_equal(made, wanted)


@pytest.mark.parametrize("channel", ["Cb", "Cr"])
def test_dropping_chroma_stores_zero(channel: str) -> None:
    image = photo()
    red, green, blue = np.moveaxis(image.astype(np.float64), 2, 0)
    luma = 0.299 * red + 0.587 * green + 0.114 * blue
    blueness = 128 + (blue - luma) / 1.772 if channel == "Cr" else np.zeros_like(luma)
    redness = 128 + (red - luma) / 1.402 if channel == "Cb" else np.zeros_like(luma)
    wanted = np.stack(
        [
            luma + 1.402 * (redness - 128),
            luma - 0.344136 * (blueness - 128) - 0.714136 * (redness - 128),
            luma + 1.772 * (blueness - 128),
        ],
        axis=2,
    )
    made = mutations.channel_dropout(image, channel=channel)  # type: ignore[arg-type]
    assert gap(made, np.clip(wanted, 0, 255)) < 0.52


def test_dropping_a_colour_of_gray_takes_its_share_of_the_luma() -> None:
    gray = np.full((2, 2), 200, np.uint8)
    assert mutations.channel_dropout(gray, channel="G")[0, 0] == round(200 * (1 - 0.587))


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

"""Codecs and resampling against Pillow, channels against the equations."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image as Pillow

from adverse import mutations
from adverse.mutations import digital
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

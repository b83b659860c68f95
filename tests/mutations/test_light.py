"""Light and colour against colorsys and plain formulas."""

from __future__ import annotations

import colorsys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adverse import mutations
from adverse.mutations import corruptions
from adverse.types import Image
from pictures import gap, photo, sizes


def random_colours(count: int = 1500) -> Image:
    rng = np.random.default_rng(0)
    colours = rng.integers(0, 256, (1, count, 3)).astype(np.uint8)
    colours[0, :100] = rng.integers(0, 256, (100, 1))  # gray
    colours[0, 0], colours[0, 1] = 0, 255
    return colours


@given(sizes(), st.floats(0, 4))
@settings(max_examples=30, deadline=None)
def test_brightness_scales(size: tuple[int, int], scale: float) -> None:
    image = photo(*size)
    assert gap(mutations.brightness(image, scale=scale), np.clip(image * scale, 0, 255)) <= 0.5


@given(sizes(), st.floats(0, 1), st.tuples(*[st.integers(0, 255)] * 3))
@settings(max_examples=30, deadline=None)
def test_alpha_blend_mixes(size: tuple[int, int], alpha: float, color: tuple[int, int, int]) -> None:
    image = photo(*size)
    wanted = (1 - alpha) * image + alpha * np.array(color)
    assert gap(mutations.alpha_blend(image, alpha=alpha, color=color), wanted) <= 0.5 + 1e-9


def test_alpha_blend_of_gray_uses_the_luma_of_the_colour() -> None:
    made = mutations.alpha_blend(np.zeros((1, 1), np.uint8), alpha=1.0, color=(255, 0, 0))
    assert made[0, 0] == round(0.299 * 255)


@pytest.mark.parametrize("severity", range(1, 6))
def test_corruption_brightness_is_hsv_value(severity: int) -> None:
    image = random_colours()
    made = corruptions.brightness(image, severity=severity)[0]
    for before, after in zip(image[0] / 255, made, strict=True):
        hue, saturation, value = colorsys.rgb_to_hsv(*before)
        raised = min(value + corruptions.BRIGHTNESS[severity - 1], 1)
        wanted = np.array(colorsys.hsv_to_rgb(hue, saturation, raised)) * 255
        assert (wanted - after).max() < 1.001
        assert (wanted - after).min() > -0.001


@pytest.mark.parametrize("severity", range(1, 6))
def test_saturate_is_hsv_saturation(severity: int) -> None:
    image = random_colours()
    made = corruptions.saturate(image, severity=severity)[0]
    scale, shift = corruptions.SATURATE[severity - 1]
    for before, after in zip(image[0] / 255, made, strict=True):
        hue, saturation, value = colorsys.rgb_to_hsv(*before)
        wanted = np.array(colorsys.hsv_to_rgb(hue, min(saturation * scale + shift, 1), value)) * 255
        assert (wanted - after).max() < 1.001
        assert (wanted - after).min() > -0.01


@pytest.mark.parametrize("severity", range(1, 6))
@pytest.mark.parametrize("channels", [1, 3])
def test_contrast_moves_towards_the_mean(severity: int, channels: int) -> None:
    image = photo(31, 17, channels=channels)
    mean = image.mean(axis=(0, 1), keepdims=True)
    wanted = np.clip((image - mean) * corruptions.CONTRAST[severity - 1] + mean, 0, 255)
    below = wanted - corruptions.contrast(image, severity=severity)
    assert below.min() > -1e-6
    assert below.max() < 1.0001


@given(st.floats(1, 4), st.floats(1, 4))
@settings(max_examples=20, deadline=None)
def test_more_scale_is_never_darker(one: float, other: float) -> None:
    image = photo()
    low, high = sorted([one, other])
    assert (mutations.brightness(image, scale=high) >= mutations.brightness(image, scale=low)).all()

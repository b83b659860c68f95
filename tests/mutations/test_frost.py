"""Ice textures: repeatable, seamless, of the stated colours; and how they are laid over an image."""

from __future__ import annotations

import numpy as np
import pytest

from adverse.mutations import corruptions, weather
from pictures import photo


@pytest.mark.parametrize("number", range(5))
def test_textures_have_the_stated_look(number: int) -> None:
    colour, contrast = weather.LOOKS[number]
    ice = weather.texture(number).astype(np.float64)
    assert np.abs(ice.mean(axis=(0, 1)) - colour).max() < 2
    assert np.abs(ice.std(axis=(0, 1)) - contrast).max() < 3


def test_textures_repeat_without_a_seam() -> None:
    ice = weather.texture(3).astype(np.float64)
    inside = np.abs(np.diff(ice, axis=1)).mean()
    seam = np.abs(ice[:, 0] - ice[:, -1]).mean()
    assert seam < 1.5 * inside
    assert np.abs(ice[0] - ice[-1]).mean() < 1.5 * np.abs(np.diff(ice, axis=0)).mean()


@pytest.mark.parametrize("size", [(40, 50), (3, 700), (300, 2)])
@pytest.mark.parametrize("channels", [1, 3])
def test_frost_is_a_weighted_sum(size: tuple[int, int], channels: int) -> None:
    image = photo(*size, channels=channels)
    texture = photo(64, 90, seed=4)
    made = weather.frost(image, texture=texture, weight=0.7, frost_weight=0.6, rng=np.random.default_rng(8))
    rng = np.random.default_rng(8)
    row, column = rng.integers(64), rng.integers(90)
    tiled = texture[(row + np.arange(size[0])) % 64][:, (column + np.arange(size[1])) % 90]
    ice = tiled if channels == 3 else np.rint(tiled @ np.array([0.299, 0.587, 0.114]))
    below = np.clip(0.7 * image + 0.6 * ice, 0, 255) - made
    assert below.min() > -0.01
    assert below.max() < 1.001


def test_all_five_textures_are_used() -> None:
    image = np.zeros((2, 2, 3), np.uint8)
    means = {
        int(corruptions.frost(image, severity=5, rng=np.random.default_rng(seed)).mean()) // 12
        for seed in range(60)
    }
    assert len(means) >= 3

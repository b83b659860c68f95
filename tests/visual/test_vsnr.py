"""VSNR equals its definition written out with loops, and knows what cannot be seen."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import brentq

from adverse.errors import DataError
from adverse.types import Image
from adverse.visual import vsnr
from adverse.visual.luminance import luminance
from adverse.visual.vsnr import LEAST_PX, VsnrReference, _bands
from visual.photos import blurred, compressed, drawn, needs_photos, noisy, photo

F64 = NDArray[np.float64]

LOW = (0.602949018236358, 0.266864118442872, -0.078223266528988, -0.016864118442875, 0.026748757410810)
HIGH = (-1.115087052456994, 0.591271763114247, 0.057543526228500, -0.091271763114249)
"""The 9/7 analysis filters from the centre outwards as JPEG 2000 prints them: DC gain 1, Nyquist
gain 2, the latter with the sign of PyWavelets, which no variance knows of."""


def filtered(line: F64, taps: tuple[float, ...], start: int, gain: float) -> list[float]:
    """Every other value of a line under a symmetric filter, mirrored about its end values."""
    period = 2 * (len(line) - 1)
    out = []
    for centre in range(start, len(line), 2):
        total = 0.0
        for offset in range(1 - len(taps), len(taps)):
            place = (centre + offset) % period
            total += taps[abs(offset)] * line[place if place < len(line) else period - place]
        out.append(gain * total)
    return out


def slow_bands(image: F64) -> list[list[F64]]:
    scales, root = [], math.sqrt(2)
    for _ in range(5):
        low = np.array([filtered(row, LOW, 0, root) for row in image])
        high = np.array([filtered(row, HIGH, 1, 1 / root) for row in image])
        parts = [
            np.array([filtered(column, taps, start, gain) for column in half.T]).T
            for half in (low, high)
            for taps, start, gain in ((LOW, 0, root), (HIGH, 1, 1 / root))
        ]
        image = parts[0]
        scales.append(parts[1:])
    return scales


def slow_vsnr(reference: Image, changed: Image) -> float:
    """The definition, step by step."""
    x, y = luminance(reference), luminance(changed)

    def shown(levels: F64) -> F64:
        return np.asarray((0.02874 * levels) ** 2.2)

    mean = shown(x).mean()
    zeta = mean * (0.02874 * x.mean()) ** (1 - 2.2) / (0.02874 * 2.2)
    error = np.clip(y - x + x.mean(), 0, 255)
    image, distortion = (
        np.array([math.sqrt(sum(b.std() ** 2 for b in bands)) / (zeta * 2 ** (s + 1)) for s, bands in scales])
        for scales in (enumerate(slow_bands(x)), enumerate(slow_bands(error)))
    )
    frequency = 96 * 19.1 * math.tan(math.radians(1)) / 2.0 ** np.arange(1, 6)

    def ratios(v: float) -> F64:
        b0, b1, b2 = 59.8 - 59.8 * v, -0.1258 + 1.1258 * v, -0.1087 - 0.8913 * v
        return np.asarray(b0 * frequency ** (b2 * np.log(frequency) + b1))

    if (distortion <= image / ratios(0)).all():
        shift = abs(shown(y).mean() - mean) / mean
        return math.inf if shift < 0.01 else 20 * math.log10(shown(x).std() / mean / (0.04 * shift))
    total = shown(error).std() / mean

    def over(v: float) -> float:
        return float(np.linalg.norm(image / ratios(v)) - total)

    best = image / ratios(0.0 if over(0) >= 0 else brentq(over, 0, 1 - 1e-12))
    disturbance = 0.04 * total + 0.96 * np.linalg.norm(best - distortion) / math.sqrt(2)
    return 20 * math.log10(shown(x).std() / mean / disturbance)


@pytest.mark.parametrize("shape", [(64, 64), (45, 70)])
def test_the_bands_are_those_of_the_9_7_transform(shape: tuple[int, int]) -> None:
    image = luminance(drawn(*shape))
    for ours, wanted in zip(_bands(image), slow_bands(image), strict=True):
        for one, other in zip(ours, wanted, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-6)


@pytest.mark.parametrize(
    "changed",
    [
        *(blurred(drawn(45, 70), sigma) for sigma in (0.6, 3)),
        *(noisy(drawn(45, 70), sigma) for sigma in (0.6, 2, 20)),
        compressed(drawn(45, 70), 10),
        drawn(45, 70) + 4,
        drawn(45, 70) // 3,
    ],
)
def test_it_equals_the_definition(changed: Image) -> None:
    assert vsnr(drawn(45, 70), changed) == pytest.approx(slow_vsnr(drawn(45, 70), changed), abs=1e-5)


def test_an_equal_image_and_a_level_here_and_there_are_invisible() -> None:
    image = drawn()
    touched = image.copy()
    touched[::9, ::9] ^= 1
    assert vsnr(image, image) == math.inf
    assert vsnr(image, touched) == math.inf


def test_a_shift_of_the_mean_luminance_alone_is_seen() -> None:
    found = [vsnr(drawn(), drawn() + shift) for shift in (1, 2, 4, 8)]
    assert all(math.isfinite(value) for value in found)
    assert found == sorted(found, reverse=True)


@needs_photos
@pytest.mark.parametrize("number", [0, 3, 8])
def test_less_is_seen_of_less(number: int) -> None:
    image = photo(number)
    kept = VsnrReference(luminance(image))
    for series in (
        [noisy(image, sigma) for sigma in (0.2, 3, 6, 12, 25, 50)],
        [blurred(image, sigma) for sigma in (0.25, 0.7, 1, 2, 4)],
    ):
        values = [kept.compare(luminance(changed)) for changed in series]
        assert values[0] == math.inf
        assert values == sorted(values, reverse=True)


def test_the_short_way_says_the_same() -> None:
    image = drawn()
    kept = VsnrReference(luminance(image))
    for changed in (image, image + 1, image + 3, noisy(image, 0.3), noisy(image, 5), blurred(image, 1)):
        assert kept.invisible(luminance(changed)) == math.isinf(kept.compare(luminance(changed)))


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(DataError, match="constant"):
        vsnr(np.full((64, 64), 7, np.uint8), drawn(64, 64))
    with pytest.raises(DataError, match="too small for the scales of VSNR"):
        vsnr(drawn(LEAST_PX - 1, 64), drawn(LEAST_PX - 1, 64))
    with pytest.raises(DataError, match="different sizes"):
        vsnr(drawn(64, 64), drawn(64, 65))

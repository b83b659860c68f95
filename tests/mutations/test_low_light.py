"""Low light against closed forms and against a sensor that counts its electrons one pixel at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adverse import mutations
from adverse.mutations import linear_light
from adverse.mutations.low_light import chances
from adverse.types import Image
from pictures import photo

SIDE = 400


def sensor(image: Image, stops: float, gain_stops: float, full_well: float, read: float, bits: int) -> Image:
    """Expose slowly: thin the electrons, add read noise, multiply, digitise, encode."""
    rng = np.random.default_rng(11)
    value = image / 255
    light = np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)
    kept = 0.5**stops
    electrons = rng.binomial(np.rint(light * full_well).astype(np.int64), kept).astype(np.float64)
    electrons += rng.normal(0, read * np.sqrt(1 - kept**2), image.shape)
    steps = 2**bits - 1
    number = np.clip(np.rint(electrons * 2**gain_stops / full_well * steps), 0, steps) / steps
    coded = np.where(number <= 0.0031308, number * 12.92, 1.055 * number ** (1 / 2.4) - 0.055)
    out: Image = np.rint(coded * 255).astype(np.uint8)
    return out


def exposed(image: Image, seed: int = 0, **options: float) -> Image:
    return mutations.low_light(image, rng=np.random.default_rng(seed), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("level", [0, 3, 40, 128, 220, 255])
@pytest.mark.parametrize(
    ("stops", "gain", "full_well", "read", "bits"),
    [(4, 4, 10000, 3, 12), (8, 4, 10000, 3, 12), (2, 2, 60000, 10, 14), (6, 6, 2000, 0, 10)],
)
def test_levels_are_distributed_as_a_sensor_gives_them(
    level: int, stops: float, gain: float, full_well: float, read: float, bits: int
) -> None:
    image = np.full((SIDE, SIDE), level, np.uint8)
    made = exposed(image, stops=stops, gain_stops=gain, full_well_e=full_well, read_noise_e=read, bits=bits)
    wanted = sensor(image, stops, gain, full_well, read, bits)
    below = [np.bincount(part.ravel(), minlength=256).cumsum() / SIDE**2 for part in (made, wanted)]
    assert np.abs(below[0] - below[1]).max() < 0.006  # Kolmogorov-Smirnov: 1 in 100 above 0.0058


@pytest.mark.parametrize("level", [90, 140, 190])
@pytest.mark.parametrize("stops", [2.0, 3.0, 4.0])
def test_the_mean_is_kept_up_to_gain_and_the_variance_is_that_of_photons(level: int, stops: float) -> None:
    full_well, read = 10000.0, 3.0
    made = exposed(np.full((SIDE, SIDE), level, np.uint8), stops=stops)
    light = linear_light.light_of(made)
    before = float(linear_light.light_of(level))
    assert abs(light.mean() / before - 1) < 0.003
    kept = 2.0**-stops
    electrons = before * full_well * kept * (1 - kept) + read**2 * (1 - kept**2)
    slope = float(np.diff(linear_light.light_of([level - 1, level + 1]))[0] / 2)
    variance = electrons / (full_well * kept) ** 2 + slope**2 / 12  # and of rounding to levels
    assert abs(light.var() / variance - 1) < 0.03


def test_shot_noise_grows_with_the_signal() -> None:
    variances = []
    levels = np.array([60, 90, 120, 150, 180, 210])
    for level in levels:
        made = exposed(np.full((SIDE, SIDE), level, np.uint8), stops=4, read_noise_e=0, bits=16)
        variances.append(linear_light.light_of(made).var())
    ratio = np.array(variances) / linear_light.light_of(levels)
    assert np.abs(ratio / ratio.mean() - 1).max() < 0.04


def test_without_gain_the_light_falls_by_the_stops() -> None:
    made = exposed(np.full((SIDE, SIDE), 200, np.uint8), stops=3, gain_stops=1)
    assert abs(linear_light.light_of(made).mean() / float(linear_light.light_of(200)) - 0.25) < 0.002


def test_counting_and_the_normal_limit_agree_where_they_meet() -> None:
    counted, normal = (chances(1, 1, full_well, 3, 12).cumsum(axis=1) for full_well in (8192, 8193))
    assert np.abs(counted - normal)[20:].max() < 0.015
    assert np.abs(counted - normal).max() < 0.06  # a handful of electrons is not normal


@given(st.floats(0, 20), st.floats(0, 12), st.floats(10, 1e6), st.floats(0, 50), st.integers(8, 16))
@settings(max_examples=25, deadline=None)
def test_chances_are_chances(stops: float, gain: float, full_well: float, read: float, bits: int) -> None:
    table = chances(stops, min(stops, gain), full_well, read, bits)
    assert (table >= 0).all()
    np.testing.assert_allclose(table.sum(axis=1), 1, atol=1e-9)
    mean = table @ np.arange(256)
    assert (np.diff(mean) > -0.02).all()  # brighter stays brighter, in the mean


def test_hardly_less_light_hardly_changes_anything() -> None:
    image = photo(120, 160)
    assert np.mean(exposed(image, stops=1e-6) == image) > 0.999


@pytest.mark.parametrize("measure", ["change", "signal"])
def test_less_light_is_worse(measure: str) -> None:
    image = photo(120, 160)
    worse = []
    for stops in (1, 2, 4, 6, 8, 10, 12):
        made = exposed(image, stops=stops).astype(np.float64)
        if measure == "change":
            worse.append(np.square(made - image).mean())
        else:
            worse.append(-np.corrcoef(made.ravel(), image.ravel())[0, 1])
    assert np.all(np.diff(worse) > 0), worse

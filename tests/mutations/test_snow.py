"""Snow against what is known of it: water, extinction, the mean over logs, and flakes that fall over time."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate, stats

from adverse import mutations, plugins
from adverse.mutations.linear_light import light_of
from adverse.mutations.rain import NEAREST_M
from adverse.mutations.settings import apply_setting, parse
from adverse.mutations.snow import (
    SIZES,
    View,
    draw_flakes,
    flakes_in,
    flakes_of,
    snow_extinction_per_m,
)
from adverse.types import Image

F32 = NDArray[np.float32]

REGISTRY = plugins.load()
SHAPE = (60, 80)
GROUND = np.random.default_rng(1).integers(20, 60, (*SHAPE, 3)).astype(np.uint8)
GROUND[:12] = 220
DEEP = np.full(SHAPE, 30, np.float32)


def white(
    seed: int, time_s: float = 0.0, rate: float = 5.0, distance: float = 30.0, **options: float
) -> Image:
    """Let it snow before a dark ground under a bright sky, which is at one distance."""
    depth = np.full(SHAPE, distance, np.float32)
    rng = np.random.default_rng(seed)
    return mutations.snow(GROUND, depth_m=depth, rate_mm_h=rate, log_rng=rng, time_s=time_s, **options)


def fallen(time_s: float, *, wind: float = 0.0, baseline: float = 0.0, count: int = 1, seed: int = 5) -> F32:
    """Return what flakes of 8 mm within 2 m let through before an open view of 300 x 400 pixels, f = 400."""
    clear = np.ones((300, 400), np.float32)
    one = np.array([2.0]), np.array([80.0])
    where = np.array([400.0, 0.004, 0.001, wind, time_s, baseline, np.inf])
    open_air = np.full(clear.shape, np.inf, np.float32)
    counts, at = np.array([count]), np.array([0.008])
    draw_flakes(np.uint64(seed), counts, at, np.array([1.0]), *one, where, open_air, clear)
    return clear


@pytest.mark.parametrize("rate", [0.5, 1.0, 2.0, 5.0])
def test_the_flakes_carry_the_water_and_take_the_light(rate: float) -> None:
    flakes = flakes_of(rate)
    mass_mg = (
        math.pi / 6 * 0.178 * (1000 * flakes.diameter_m) ** (3 - 0.922)
    )  # a cubic millimetre of water: 1 mg
    water_mm_h = (flakes.per_m3 * mass_mg * flakes.speed_m_s).sum() * 3600 / 1e6
    assert abs(water_mm_h / rate - 1) < 0.12

    def section(melted_mm: float) -> float:
        diameter_mm = (melted_mm**3 / 0.178) ** (1 / 2.078)
        number = 3800 * rate**-0.87 * math.exp(-2.55 * rate**-0.48 * melted_mm)
        return float(number * 2 * math.pi / 4 * diameter_mm**2 * 1e-6)

    wanted, _ = integrate.quad(section, 0, 5)
    assert snow_extinction_per_m(rate) == pytest.approx(wanted, rel=0.01)


def test_visibility_is_that_of_the_weather_services() -> None:
    """Light snow is called that from 1 km on, and heavy snow below 400 m (WMO)."""
    assert 3.912 / snow_extinction_per_m(0.5) > 1000
    assert 3.912 / snow_extinction_per_m(5.0) < 400


@pytest.mark.parametrize("distance", [0.6, 4.0, 60.0])
def test_the_mean_over_logs_is_that_of_haze(distance: float) -> None:
    """By Campbell's theorem drawn flakes and veil together let exp(-beta D) through."""
    sky, ground = float(light_of(220)), light_of(GROUND[12:]).mean()
    seen = [light_of(white(seed, rate=3.0, distance=distance))[12:].mean() for seed in range(60)]
    clear = math.exp(-snow_extinction_per_m(3.0) * distance)
    wanted = ground * clear + sky * (1 - clear)
    assert np.mean(seen) == pytest.approx(wanted, abs=3.5 * np.std(seen) / math.sqrt(60) + 0.0004)


def test_a_flake_falls_as_far_as_its_size_in_the_image_says() -> None:
    """A flake of 8 mm is as large as 8 mm, and falls 50 mm in 50 ms, at the distance that it is at."""
    rows, columns = np.indices((300, 400)) + 0.5
    places, scales = [], []
    for time_s in (0.0, 0.05, 0.1):
        covered = 1.0 - fallen(time_s, wind=0.5, seed=5)
        places.append([(covered * rows).sum() / covered.sum(), (covered * columns).sum() / covered.sum()])
        scales.append(math.sqrt(covered.sum() * 4 / math.pi) / 0.008)
    scale = scales[0]  # pixels for a metre
    assert 400 / 2 <= scale <= 400 / NEAREST_M
    np.testing.assert_allclose(scales, scale, rtol=1e-3)
    down, across = np.diff(places, axis=0).T
    np.testing.assert_allclose(down, scale * 1.0 * 0.05, atol=0.1)
    swing = scale * 0.02 * 2 * math.pi * 1.5 * 0.05
    np.testing.assert_allclose(across, scale * 0.5 * 0.05, atol=swing)
    aside = 1.0 - fallen(0.0, wind=0.5, seed=5, baseline=0.1)
    assert (aside * columns).sum() / aside.sum() == pytest.approx(places[0][1] - scale * 0.1, abs=0.1)


def test_nothing_jumps_between_neighbours_over_minutes() -> None:
    """A flake leaves below and comes in above, out of sight: no moment changes more than the others."""
    step_s = 0.002
    for begin in (0.0, 300.0):
        frames = [fallen(begin + step_s * k, wind=1.0, count=40).astype(float) for k in range(150)]
        changes = [np.abs(b - a).sum() for a, b in itertools.pairwise(frames)]
        covered = max((1 - frame).sum() for frame in frames)
        # a disc of diameter D that moves by d is at most 2 D d gone from where it was and come to where it is
        speed_m_s = math.hypot(1.0, 1.0 + 2 * math.pi * 1.5 * 0.02)
        assert max(changes) < 2 * speed_m_s * step_s / (math.pi / 4 * 0.008) * covered
        assert np.abs(frames[-1] - frames[0]).sum() > 3 * max(changes)


def test_frames_are_of_one_distribution_at_every_time() -> None:
    at = {time_s: [white(seed, time_s)[12:] for seed in range(40)] for time_s in (0.0, 7.3, 5000.0)}
    for measure in (np.mean, np.std):
        first, *later = ([float(measure(image)) for image in images] for images in at.values())
        for values in later:
            assert stats.ks_2samp(first, values).pvalue > 1e-3
    assert len({image.tobytes() for images in at.values() for image in images}) == 120


def test_a_frame_needs_its_log_and_its_time_and_no_other_frame() -> None:
    setting = parse("snow(rate_mm_h=4, wind_m_s=1)", REGISTRY)

    def frame(key: str, log: str, time_s: float) -> Image:
        return apply_setting(GROUND, setting, REGISTRY, seed=3, key=key, log=log, time_s=time_s, depth_m=DEEP)

    alone = frame("a/7", "a", 0.7)
    for k in range(5):
        frame(f"a/{k}", "a", 0.1 * k)
    assert np.array_equal(alone, frame("another name", "a", 0.7))
    assert not np.array_equal(alone, frame("a/7", "a", 0.8))
    assert not np.array_equal(alone, frame("a/7", "b", 0.7))


def test_more_snow_has_the_flakes_of_less_among_its_own() -> None:
    view = View(*SHAPE, 70.0, 0.005, 0.001)
    chance = np.random.default_rng(2).random(SIZES)
    large = flakes_of(1.0).diameter_m > 0.004
    less, more = (flakes_in(view, rate, chance) for rate in (1.0, 1.5))
    assert (more.counts >= less.counts)[large].all()
    draws = [flakes_in(view, 1.0, np.random.default_rng(seed).random(SIZES)).counts for seed in range(400)]
    mean, spread = np.mean(draws, axis=0), np.var(draws, axis=0)
    busy = mean > 1
    assert busy.sum() > 5
    np.testing.assert_allclose(spread[busy] / mean[busy], 1, atol=0.45)  # Poisson's


def test_surfaces_hide_the_flakes_behind_them_and_light_snow_is_weaker() -> None:
    hidden = white(1, rate=0.2, distance=NEAREST_M / 2)
    assert np.abs(hidden.astype(int) - GROUND).max() <= 1
    changes = [np.abs(white(1, rate=rate).astype(float) - GROUND).mean() for rate in (0.1, 0.5, 2, 5, 10)]
    assert np.all(np.diff(changes) > 0)

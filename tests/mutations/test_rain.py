"""Rain against what is known of it: water, extinction, streaks by depth, and the mean over many frames."""

from __future__ import annotations

import math

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate

from adverse import mutations
from adverse.mutations.linear_light import light_of
from adverse.mutations.pixels import normal_quantiles
from adverse.mutations.rain import (
    Camera,
    draw_streaks,
    drawn_up_to,
    drop_sizes,
    drops_between,
    extinction_per_m,
    fall_speed_m_s,
    rain_before,
    sky_light,
)
from adverse.types import Depth, Image
from pictures import photo

RATES = pytest.mark.parametrize("rate", [1.0, 10.0, 50.0, 200.0])


def dark_under_sky(rows: int = 120, columns: int = 160) -> Image:
    """Draw something dark below a bright strip, from which the light of the drops is taken."""
    image = np.full((rows, columns, 3), 30, np.uint8)
    image[: rows // 5] = 220
    return image


def wet(image: Image, depth: float | Depth, rate: float, seed: int = 0, **options: float) -> Image:
    depths = np.broadcast_to(np.float32(depth), image.shape[:2]).astype(np.float32)
    return mutations.rain(image, depth_m=depths, rate_mm_h=rate, rng=np.random.default_rng(seed), **options)


def draw(
    count: int,
    drop: tuple[float, float],
    camera: Camera,
    wind: float,
    depth: Depth,
    clear: NDArray[np.float32],
    *,
    seed: int = 1,
) -> None:
    """Draw drops of one diameter at one distance, both in metres, falling at 6 m/s."""
    diameter, distance = drop
    draw_streaks(
        np.uint64(seed),
        count,
        np.full(4096, diameter, np.float32),
        np.full(4096, 6.0, np.float32),
        np.full(4097, distance**3, np.float32),
        normal_quantiles(),
        np.array([*camera, wind, depth.min(), 0.0], np.float32),
        depth,
        clear,
    )


@RATES
def test_the_drops_carry_the_water(rate: float) -> None:
    """Number times volume times speed is the rate, as well as Marshall and Palmer's fit has it."""
    diameter_m, number = drop_sizes(rate)
    water = number * math.pi / 6 * diameter_m**3 * fall_speed_m_s(diameter_m * 1000)  # m^3 per m^2 and s
    assert abs(water.sum() * 3600 * 1000 / rate - 1) < 0.17


@RATES
def test_extinction_is_the_integral_and_the_published_fit(rate: float) -> None:
    slope = 4.1 * rate**-0.21
    section, _ = integrate.quad(lambda d: 2 * math.pi / 4 * d**2 * 8000 * math.exp(-slope * d), 0, 60)
    assert abs(extinction_per_m(rate) / (section * 1e-6) - 1) < 1e-6
    assert abs(extinction_per_m(rate) / (0.365e-3 * rate**0.63) - 1) < 0.01


def test_speeds_are_near_those_measured() -> None:
    """Gunn & Kinzer 1949, at 1, 2, 3 and 4 mm."""
    np.testing.assert_allclose(
        fall_speed_m_s(np.array([1.0, 2.0, 3.0, 4.0])), [4.03, 6.49, 8.06, 8.83], rtol=0.1
    )


@pytest.mark.parametrize("distance", [0.5, 2.0, 8.0, 60.0, math.inf])
@pytest.mark.parametrize("rate", [20.0, 150.0])
def test_the_mean_over_frames_is_that_of_haze(rate: float, distance: float) -> None:
    """By Campbell's theorem: drawn drops and veil together let exp(-beta D) through, on average."""
    image = dark_under_sky(60, 80)
    image[12:] = np.random.default_rng(1).integers(20, 60, (48, 80, 3))  # so that rounding evens out
    sky, ground = float(light_of(220)), light_of(image[12:]).mean()
    seen = [light_of(wet(image, distance, rate, seed))[12:].mean() for seed in range(60)]
    clear = math.exp(-extinction_per_m(rate) * min(distance, 2000))
    wanted = ground * clear + sky * (1 - clear)
    assert abs(np.mean(seen) - wanted) < 0.00015 + 0.015 * (sky - ground) * (1 - clear)


def test_each_drop_covers_its_own_area() -> None:
    """A streak, summed over pixels, is the area of the drop, wherever it falls and however it leans."""
    camera = Camera(500.0, 0.004, 0.001)
    for diameter, distance, wind in ((0.002, 2.0, 0.0), (0.004, 0.9, 6.0), (0.001, 4.0, -8.0)):
        clear = np.ones((90, 120), np.float32)
        open_air = np.full((90, 120), np.inf, np.float32)
        draw(1, (diameter, distance), camera, wind, open_air, clear, seed=5)
        area = math.pi / 4 * (500 * diameter / distance) ** 2
        assert abs((1 - clear).sum(dtype=np.float64) / area - 1) < 0.01


def test_streaks_have_the_length_of_the_fall() -> None:
    for exposure in (0.005, 0.02):
        clear = np.ones((200, 50), np.float32)
        open_air = np.full((200, 50), np.inf, np.float32)
        draw(1, (0.002, 2.0), Camera(500.0, exposure, 0.0), 0.0, open_air, clear, seed=3)
        touched = ((1 - clear) > 0).any(axis=1).sum()
        assert abs(touched - 500 * 6 * exposure / 2) < 3  # focal length, speed, time, over 2 m


def test_surfaces_hide_the_drops_behind_them() -> None:
    depth = np.full((90, 120), 2.1, np.float32)
    depth[:, :60] = 1.9
    clear = np.ones((90, 120), np.float32)
    draw(500, (0.002, 2.0), Camera(500.0, 0.005, 0.001), 1.0, depth, clear)
    assert (clear[:, :60] == 1).all()  # all drops are 2 m away
    assert (clear[:, 60:] < 1).mean() > 0.5
    image, depth = dark_under_sky(), np.full((120, 160), 40, np.float32)
    depth[:, :80] = 0.15
    made = wet(image, depth, 100)
    assert np.ptp(made[30:, :80]) == 0  # nothing but the veil, which 15 cm of rain are
    assert np.ptp(made[30:, 80:]) > 5
    assert made[30, 0, 0] <= 31


def test_more_is_seen_through_more_air() -> None:
    image = dark_under_sky()
    spread, lift = [], []
    for distance in (0.6, 1.5, 6, 30):
        made = [light_of(wet(image, distance, 50, seed))[30:, :, 1] for seed in range(8)]
        spread.append(np.mean([np.std(one) for one in made]))
        lift.append(np.mean(made))
    assert np.all(np.diff(lift) > 0), lift
    assert np.all(np.diff(spread[:3]) > 0), spread


def test_a_cloudburst_is_worse_than_a_drizzle() -> None:
    image, depth = photo(120, 160), np.full((120, 160), 25, np.float32)
    image[:20] = 240
    changes = [
        np.mean([np.abs(wet(image, depth, rate, seed).astype(float) - image).mean() for seed in range(3)])
        for rate in (1, 5, 25, 100, 300)
    ]
    assert np.all(np.diff(changes) > 0), changes


def test_wind_blows_to_the_right_as_drops_fall() -> None:
    def lean(wind: float) -> float:
        """Return how far down-right the streaks run: the mean product of slopes, by a structure tensor."""
        made = wet(dark_under_sky(200, 200), 30.0, 80, wind_m_s=wind)
        part = made[50:, :, 1].astype(np.float32)
        across, down = (cv2.Sobel(part, cv2.CV_32F, *way) for way in ((1, 0), (0, 1)))
        return float((across * down).mean() / np.hypot(across, down).mean() ** 2)

    assert lean(5) < -0.03
    assert abs(lean(0)) < 0.02
    assert lean(-5) > 0.03


def test_longer_exposure_draws_longer_and_fainter_streaks() -> None:
    image = dark_under_sky(200, 200)

    def along_and_across(exposure: float) -> tuple[float, float]:
        part = wet(image, 30.0, 60, exposure_ms=exposure)[50:, :, 1].astype(float)
        part -= part.mean()
        return float((part[4:] * part[:-4]).mean() / part.var()), float(part.std())

    (short_along, short_spread), (long_along, long_spread) = along_and_across(1), along_and_across(10)
    assert long_along > short_along + 0.1
    assert long_spread < short_spread


def test_frames_differ_and_their_statistics_do_not() -> None:
    image = dark_under_sky()
    frames = [mutations.apply(image, "rain(rate_mm_h=40)", key=f"row/{k}", log="row", depth_m=deep(30))
              for k in range(12)]  # fmt: skip
    assert len({frame.tobytes() for frame in frames}) == 12
    again = mutations.apply(image, "rain(rate_mm_h=40)", key="row/3", log="row", depth_m=deep(30))
    assert np.array_equal(frames[3], again)
    means, spreads = ([float(f(frame[30:])) for frame in frames] for f in (np.mean, np.std))
    assert np.std(means) < 0.05 * np.mean(means)
    assert np.std(spreads) < 0.1 * np.mean(spreads)


def deep(distance: float) -> NDArray[np.float32]:
    return np.full((120, 160), distance, np.float32)


def test_the_light_of_the_sky_is_that_of_the_brightest_tenth() -> None:
    image = photo(128, 192)
    sampled = image[::4, ::4].reshape(-1, 3)
    order = np.argsort(-sampled.sum(axis=1, dtype=int), kind="stable")
    wanted = light_of(sampled[order[: round(0.1 * len(sampled))]]).mean(axis=0)
    np.testing.assert_allclose(sky_light(image), wanted, atol=0.01)


def test_far_drops_are_many_and_faint() -> None:
    camera = Camera(554.0, 0.005, 0.0012)
    rain = rain_before(camera, 25.0, 0.0)
    assert ((rain.tiles > 0.5) & (rain.tiles <= 1)).all()
    through = rain.veil.astype(np.float64)
    for first, tile in zip(rain.places, rain.tiles, strict=True):
        through[first:] *= tile.mean()
    distance = np.linspace(0, np.sqrt(2000), 4096) ** 2
    beyond = distance > camera.slices_m[0]
    both = through * math.exp(-float(drawn_up_to(np.array([9.0]), camera, 25.0, 0, camera.slices_m[0])[0]))
    np.testing.assert_allclose(both[beyond], np.exp(-extinction_per_m(25.0) * distance[beyond]), rtol=1e-4)
    near, far = (drops_between(camera, 25.0, low, high).density for low, high in ((0.2, 1.0), (2.0, 4.0)))
    assert far > 3 * near

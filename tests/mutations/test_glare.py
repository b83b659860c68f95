"""Glare: how much light is added, where the sun stands, how it falls off, and that nothing else changes."""

from __future__ import annotations

import math

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adverse import mutations
from adverse.mutations.glare import GHOSTS, glow, iris, stray_light
from adverse.mutations.linear_light import levels_of, light_of
from adverse.types import Image
from pictures import gap, photo

BLACK: Image = np.zeros((120, 160, 3), np.uint8)


@given(st.floats(-80, 80), st.floats(-80, 80), st.floats(5, 160), st.integers(1, 700), st.integers(1, 700))
@settings(max_examples=40, deadline=None)
def test_the_mean_of_the_stray_light_is_one(
    azimuth: float, elevation: float, fov: float, rows: int, columns: int
) -> None:
    light = stray_light(rows, columns, azimuth, elevation, fov)
    assert (light >= 0).all()
    assert abs(light.mean(dtype=np.float64) - 1) < 1e-4


@pytest.mark.parametrize("place", [(12.0, 12.0), (-50.0, 5.0), (0.0, 0.0)])
def test_the_veiling_ratio_is_the_light_that_black_gets(place: tuple[float, float]) -> None:
    made = mutations.glare(BLACK, veiling_ratio=0.02, azimuth_deg=place[0], elevation_deg=place[1])
    light = light_of(made)
    saturated = light_of(255) * (made == 255).mean()
    assert saturated < 0.005
    assert abs(light.mean() / 0.02 - 1) < 0.1 + saturated / 0.02
    if place[0] == -50:
        assert abs(light.mean() / 0.02 - 1) < 0.01


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("ratio", [0.01, 0.2, 2.0])
def test_light_is_added_and_saturates(channels: int, ratio: float) -> None:
    image = photo(90, 120, channels=channels)
    stray = stray_light(90, 120, 12.0, 12.0, 60.0).astype(np.float64)
    if channels == 1:
        stray = stray.mean(axis=2)
    wanted = levels_of(light_of(image) + ratio * stray)
    assert gap(mutations.glare(image, veiling_ratio=ratio), wanted) < 0.65


@pytest.mark.parametrize(("azimuth", "elevation"), [(12.0, 12.0), (-20.0, 8.0), (25.0, -10.0), (0.0, 0.0)])
def test_the_brightest_pixel_is_where_the_sun_is(azimuth: float, elevation: float) -> None:
    light = stray_light(240, 320, azimuth, elevation, 60.0).mean(axis=2)
    row, column = np.unravel_index(np.argmax(light), light.shape)
    a, e = math.radians(azimuth), math.radians(elevation)
    right, down, ahead = math.sin(a) * math.cos(e), -math.sin(e), math.cos(a) * math.cos(e)
    focal = 160 / math.tan(math.radians(30))
    assert abs(column - (159.5 + focal * right / ahead)) < 1.5
    assert abs(row - (119.5 + focal * down / ahead)) < 1.5


def test_the_glow_falls_with_the_square_of_the_angle() -> None:
    between = math.radians(12 + 30)  # two lines of the star
    near, far = (
        glow(np.array([t * math.cos(between)]), np.array([t * math.sin(between)]), 0.0, 0.0)[0]
        for t in (math.tan(math.radians(8)), math.tan(math.radians(16)))
    )
    core = math.radians(1.2) ** 2
    wanted = ((2 * math.sin(math.radians(8))) ** 2 + core) / ((2 * math.sin(math.radians(4))) ** 2 + core)
    assert abs(near / far / wanted - 1) < 0.02


def test_angles_are_true_far_from_the_axis() -> None:
    """A pixel as far in angle from a sun aside as another from a sun ahead gets as much of the glow."""
    ahead = glow(np.array([0.0]), np.array([math.tan(0.3)]), 0.0, 0.0)[0]
    sun = math.tan(0.6)
    aside = glow(np.array([sun]), np.array([math.tan(0.3) * math.hypot(1, sun)]), sun, 0.0)[0]
    assert abs(aside / ahead - 1) < 0.01


def test_ghosts_stand_on_the_line_through_the_middle() -> None:
    light = stray_light(240, 320, 14.0, 11.0, 60.0).mean(axis=2)
    focal = 160 / math.tan(math.radians(30))
    sun = (
        np.array([-math.tan(math.radians(11)) / math.cos(math.radians(14)), math.tan(math.radians(14))])
        * focal
    )
    for ghost in GHOSTS[1:]:
        row, column = np.array([119.5, 159.5]) + ghost.place * sun
        radius = ghost.radius * 400
        turn = np.linspace(0, 2 * math.pi, 24, endpoint=False)
        around = light[
            np.rint(row + 1.4 * radius * np.sin(turn)).astype(int).clip(0, 239),
            np.rint(column + 1.4 * radius * np.cos(turn)).astype(int).clip(0, 319),
        ]
        assert light[round(row), round(column)] > np.median(around) + 0.03


def test_an_iris_has_six_sides() -> None:
    y, x = np.mgrid[-60:61, -60:61].astype(np.float64)
    inside = iris(x, y, 40.0) > 0.5
    assert abs(inside.sum() / (2 * math.sqrt(3) * 40**2) - 1) < 0.03  # a hexagon by its inner radius
    assert np.array_equal(inside, inside[::-1, ::-1])


def test_more_glare_is_lighter_everywhere() -> None:
    image = photo(90, 120)
    before = image
    for ratio in (0.01, 0.05, 0.2, 1, 5):
        made = mutations.glare(image, veiling_ratio=ratio)
        assert (made >= before).all()
        assert made.mean() > before.mean()
        before = made


def test_a_sun_outside_the_view_lights_the_side_it_is_on() -> None:
    for azimuth, side in ((50.0, slice(120, None)), (-50.0, slice(None, 40))):
        made = mutations.glare(BLACK, veiling_ratio=0.05, azimuth_deg=azimuth, elevation_deg=0)
        assert made[:, side].mean() > made.mean() + 5


def test_the_same_at_any_resolution() -> None:
    image = photo(240, 320)
    large = image.repeat(4, axis=0).repeat(4, axis=1)
    made = cv2.resize(mutations.glare(large, veiling_ratio=0.2), (320, 240), interpolation=cv2.INTER_AREA)
    assert np.abs(made.astype(float) - mutations.glare(image, veiling_ratio=0.2)).mean() < 0.5

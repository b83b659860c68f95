"""The day: where the sun stands, how strong it and the sky are, and the exposure a camera would choose.

From light to pixels: a lens that blurs a little, exposure, shot and read noise, 8 bits at a gamma of 2.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.data.worlds.compiled import compiled
from adverse.data.worlds.normals import QUANTILES, Words, drawn_words, standard_normal
from adverse.data.worlds.shading import Light
from adverse.types import Image

GREY = 0.16
"""Reflectance that the exposure puts at a middle grey of 0.3 linear (140 of 255)."""
MIDDLE = 0.3


class Day(NamedTuple):
    """Direction to the sun (unit vector), light, and exposure."""

    sun: NDArray[np.float64]
    light: Light
    exposure: float


def drawn_day(rng: np.random.Generator, place: int) -> Day:
    """Draw a day: from clear with long shadows to bright overcast; no haze, which is a mutation's affair."""
    height = math.radians(rng.uniform(22, 62))
    around = rng.uniform(0, 2 * math.pi)
    sun = np.array(
        [math.cos(height) * math.cos(around), math.cos(height) * math.sin(around), math.sin(height)]
    )
    cloud = float(rng.uniform(0.25, 0.85))
    strength = 2.4 * (1 - max(cloud - 0.45, 0.0) * 2.1)
    warm = 1 - 0.35 * math.cos(height)
    direct = strength * np.array([1.0, 0.86 + 0.12 * warm, 0.62 + 0.3 * warm])
    grey = 0.8 + 0.3 * cloud
    sky = grey * np.array([0.68, 0.76, 0.88])
    received = strength * sun[2] + grey * 0.76
    exposure = MIDDLE / (GREY * received) * rng.uniform(0.8, 1.25)
    return Day(sun, Light(direct, sky, cloud, place, int(rng.integers(1 << 20))), float(exposure))


Hour = Literal["day", "low sun", "overcast", "dusk"]
HOURS: tuple[Hour, ...] = ("day", "low sun", "overcast", "dusk")
HOUR_SHARES = (0.46, 0.2, 0.2, 0.14)
DUSK = 0.4
"""Share of the usual exposure at dusk, when the camera is at the end of its range: dark, and noisy for it."""


def drawn_hour(rng: np.random.Generator, place: int) -> Day:
    """Draw the light of an hour: a day as `drawn_day` has it, a low sun, an overcast sky, or dusk."""
    hour = HOURS[int(rng.choice(len(HOURS), p=HOUR_SHARES))]
    day = drawn_day(rng, place)
    if hour == "day":
        return day
    height = math.radians(rng.uniform(9, 18) if hour == "low sun" else rng.uniform(25, 60))
    around = rng.uniform(0, 2 * math.pi)
    sun = np.array(
        [math.cos(height) * math.cos(around), math.cos(height) * math.sin(around), math.sin(height)]
    )
    strength, grey, cloud, tint = {
        "low sun": (2.2, 0.8, 0.35, (1.0, 0.8, 0.52)),
        "overcast": (0.12, 1.1, 0.97, (1.0, 1.0, 1.0)),
        "dusk": (0.1, 0.7, 0.6, (1.0, 0.75, 0.6)),
    }[hour]
    sky = grey * np.array([0.62, 0.7, 0.95] if hour == "dusk" else [0.72, 0.77, 0.83])
    received = strength * sun[2] + grey * 0.76
    exposure = MIDDLE / (GREY * received) * rng.uniform(0.8, 1.25) * (DUSK if hour == "dusk" else 1.0)
    light = Light(strength * np.array(tint), sky, cloud, place, day.light.seed)
    return Day(sun, light, float(exposure))


SPREAD = 0.17
"""Share of a pixel's light that the lens gives to each neighbour along a row or a column."""
VIGNETTE = 0.22
"""Loss of light in the corners."""
SHOT, READ = 0.0016, 2e-5
"""Noise variance per unit of light, and without any: a small camera by day."""
Singles = NDArray[np.float32]
F32 = np.float32
_KEPT, _GIVEN = F32(1 - 2 * SPREAD), F32(SPREAD)
_SHOT, _READ, _NONE, _FULL, _WHITE, _HALF = F32(SHOT), F32(READ), F32(0), F32(1), F32(255), F32(0.5)


def exposed(radiance: Singles, exposure: float, rng: np.random.Generator) -> Image:
    """Return the picture (H, W, 3) uint8 that a camera takes of linear radiance."""
    height, width, _ = radiance.shape
    picture = np.empty((height, width * 3), np.uint8)
    _develop(radiance.reshape(height, width * 3), exposure, drawn_words(rng), QUANTILES, picture)
    return picture.reshape(height, width, 3)


@compiled
def _develop(
    light: Singles, exposure: float, words: Words, quantiles: Singles, picture: NDArray[np.uint8]
) -> None:
    """Develop rows of colours, three numbers a pixel; every loop is over a row, with one result."""
    height, across = light.shape
    spread = np.empty((3, across), np.float32)  # the rows above, at and below, each spread along itself
    columns, row, noise = np.empty((3, across), np.float32)
    chosen = np.empty(across, np.uint32)
    for i in range(across):
        x = 2 * (i // 3) / (across // 3) - 1
        columns[i] = exposure * VIGNETTE / 2 * (x * x)
    _spread(light[0], spread[0])
    spread[1] = spread[0]
    for v in range(height):
        above, at, below = spread[v % 3], spread[(v + 1) % 3], spread[(v + 2) % 3]
        _spread(light[min(v + 1, height - 1)], below)
        y = 2 * v / height - 1
        gain = F32(exposure * (1 - VIGNETTE / 2 * (y * y)))
        for i in range(across):
            row[i] = (gain - columns[i]) * (_KEPT * at[i] + _GIVEN * (above[i] + below[i]))
        standard_normal(words, v * across, quantiles, chosen, noise)
        for i in range(across):
            bright = row[i] + noise[i] * math.sqrt(_SHOT * row[i] + _READ)
            row[i] = _WHITE * math.sqrt(min(max(bright, _NONE), _FULL)) + _HALF
        out = picture[v]
        for i in range(across):
            out[i] = np.uint8(np.int32(row[i]))


@compiled
def _spread(light: Singles, out: Singles) -> None:
    """Give each pixel of a row some light of its neighbours; beyond the ends it is as bright as at them."""
    for i in range(3, len(light) - 3):
        out[i] = _KEPT * light[i] + _GIVEN * (light[i - 3] + light[i + 3])
    for end in (0, len(light) - 3):
        for i in range(end, end + 3):
            left = i - 3 if i >= 3 else i
            right = i + 3 if i + 3 < len(light) else i
            out[i] = _KEPT * light[i] + _GIVEN * (light[left] + light[right])

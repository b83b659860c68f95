"""The day: where the sun stands, how strong it and the sky are, and the exposure a camera would choose.

From light to pixels: a lens that blurs a little, exposure, shot and read noise, 8 bits at a gamma of 2.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.data.worlds.compiled import compiled
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
Floats = NDArray[np.float64]


def exposed(radiance: Floats, exposure: float, rng: np.random.Generator) -> Image:
    """Return the picture (H, W, 3) uint8 that a camera takes of linear radiance."""
    normal = rng.standard_normal(radiance.shape, np.float32)
    return _develop(radiance, exposure, normal)


@compiled
def _develop(radiance: Floats, exposure: float, normal: NDArray[np.float32]) -> Image:
    height, width, _ = radiance.shape
    picture = np.empty((height, width, 3), np.uint8)
    rows = np.empty((height, width, 3))
    for v in range(height):
        for u in range(width):
            left, right = max(u - 1, 0), min(u + 1, width - 1)
            for c in range(3):
                beside = radiance[v, left, c] + radiance[v, right, c]
                rows[v, u, c] = (1 - 2 * SPREAD) * radiance[v, u, c] + SPREAD * beside
    for v in range(height):
        above, below = max(v - 1, 0), min(v + 1, height - 1)
        for u in range(width):
            x, y = 2 * u / width - 1, 2 * v / height - 1
            gain = exposure * (1 - VIGNETTE * (x * x + y * y) / 2)
            for c in range(3):
                beside = rows[above, u, c] + rows[below, u, c]
                light = gain * ((1 - 2 * SPREAD) * rows[v, u, c] + SPREAD * beside)
                light += normal[v, u, c] * np.sqrt(SHOT * light + READ)
                picture[v, u, c] = np.uint8(255 * np.sqrt(min(max(light, 0.0), 1.0)) + 0.5)
    return picture

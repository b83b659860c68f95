"""The day: where the sun stands, how strong it and the sky are, and the exposure a camera would choose."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.data.worlds.shading import Light

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

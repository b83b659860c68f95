"""Cars of many colours: a body, a glass house on it, wheels and lights."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from adverse.data.worlds import classes, textures
from adverse.data.worlds.colours import Rgb, picked
from adverse.data.worlds.solids import Builder, Look, Solids

COLOURS: tuple[Rgb, ...] = (
    (222, 224, 226),
    (40, 42, 46),
    (150, 154, 158),
    (168, 30, 34),
    (36, 64, 120),
    (80, 92, 104),
    (30, 84, 60),
    (210, 160, 50),
    (120, 70, 50),
    (100, 150, 190),
)
WINDOWS = Look(textures.GLASS, (46, 54, 60))
TYRES = Look(textures.PLAIN, (34, 34, 36))
RIMS = Look(textures.PAINT, (150, 152, 156))
HEADLIGHTS = Look(textures.GLASS, (226, 226, 214))
TAILLIGHTS = Look(textures.GLASS, (160, 24, 20))
HALF_HEIGHT_M = 0.72


@dataclass(frozen=True)
class Car:
    """A car that stood `at_start` when time was 0 and moves at `velocity` (m/s), or is parked."""

    at_start: Solids
    at_m: tuple[float, float]
    velocity: tuple[float, float]
    instance: int

    def centre_m(self, time_s: float) -> tuple[float, float, float]:
        """Return the middle of the car."""
        x, y = (at + speed * time_s for at, speed in zip(self.at_m, self.velocity, strict=True))
        return x, y, HALF_HEIGHT_M

    def solids(self, time_s: float) -> Solids:
        """Return the car where it is at a time."""
        moved = self.at_start.centre_m + np.array([*self.velocity, 0.0]) * time_s
        return self.at_start._replace(centre_m=moved)


def drawn_car(
    rng: np.random.Generator, at_m: tuple[float, float], heading: float, speed: float, instance: int
) -> Car:
    """Draw a car that heads somewhere (0: along world x)."""
    c, s = math.cos(heading), math.sin(heading)
    turn = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    half = np.array([rng.uniform(1.8, 2.25), rng.uniform(0.82, 0.9), rng.uniform(0.26, 0.32)])
    paint = Look(textures.PAINT, picked(rng, COLOURS), seed=int(rng.integers(1 << 20)))
    made = Builder(classes.CAR, instance)

    def at(x: float, y: float, z: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        return np.asarray(np.array([*at_m, 0.0]) + turn @ np.array([x, y, z]))

    middle = 0.3 + half[2]
    made.brick(at(0, 0, middle), (half[0] * 0.9, half[1], half[2]), paint, turn)
    for end in (-1, 1):  # rounded front and back
        made.ball(
            at(end * half[0] * 0.72, 0, middle), (half[0] * 0.3, half[1] * 0.99, half[2] * 1.02), paint, turn
        )
        made.ball(
            at(end * half[0] * 0.55, 0, middle + half[2] * 0.75),
            (half[0] * 0.4, half[1] * 0.92, 0.16),
            paint,
            turn,
        )
    top, roof = middle + half[2] * 0.9, rng.uniform(1.36, 1.6)
    back = -rng.uniform(0.1, 0.35)
    along = half[0] * rng.uniform(0.52, 0.64)
    forward = turn[:, 0]
    made.stem(
        at(back, 0, top),
        at(back - 0.05, 0, roof),
        half[1] * 0.93,
        WINDOWS,
        top_radius=half[1] * 0.72,
        wide=along / (half[1] * 0.93),
        across=forward,
    )
    made.ball(at(back - 0.05, 0, roof), (along * 0.76, half[1] * 0.7, 0.07), paint, turn)
    across = turn[:, 1]
    for x in (-0.62 * half[0], 0.62 * half[0]):
        for side in (-1, 1):
            hub = at(x, side * (half[1] - 0.08), 0.32)
            made.stem(hub - 0.1 * across, hub + 0.1 * across, 0.32, TYRES, across=forward)
            made.stem(hub - 0.105 * across, hub + 0.105 * across, 0.19, RIMS, across=forward)
    for side in (-1, 1):
        made.ball(
            at(half[0] * 0.93, side * half[1] * 0.7, middle + 0.06), (0.08, 0.16, 0.08), HEADLIGHTS, turn
        )
        made.ball(
            at(-half[0] * 0.95, side * half[1] * 0.75, middle + 0.1), (0.07, 0.14, 0.09), TAILLIGHTS, turn
        )
    velocity = (float(speed * c), float(speed * s))
    return Car(made.solids(), at_m, velocity, instance)

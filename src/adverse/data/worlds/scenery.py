"""Trees and tufts: trunks, branches, and foliage of leafy balls with gaps.

What lines a street: houses, pavements, lamp posts and signs.

Cars of many colours: a body, a glass house on it, wheels and lights.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from adverse.data.worlds import classes, textures
from adverse.data.worlds.solids import Builder, Look, Solids
from adverse.data.worlds.textures import Rgb, picked, shifted

GREENS: tuple[Rgb, ...] = ((92, 116, 58), (102, 126, 66), (82, 106, 58), (112, 128, 70), (94, 112, 50))
FRUITS: tuple[Rgb, ...] = ((186, 40, 34), (206, 170, 60), (150, 176, 70))
BARK = (112, 96, 80)


def fruit_tree(rng: np.random.Generator, x: float, y: float, height_m: float, fruit: Rgb) -> Solids:
    """Return an orchard tree: a short trunk, some branches, a crown of leafy balls wider than deep."""
    made = Builder(classes.VEGETATION)
    seed = int(rng.integers(1 << 20))
    bark = Look(textures.BARK, BARK, seed=seed)
    lean = rng.uniform(-0.12, 0.12, 2)
    fork = np.array([x + lean[0], y + lean[1], height_m * rng.uniform(0.22, 0.3)])
    made.stem((x, y, -0.05), fork, 0.085, bark, top_radius=0.06)
    green = picked(rng, GREENS)
    for number in range(13):
        angle = 2 * math.pi * (number + rng.uniform(0, 0.8)) / 6.5
        level = 0.34 + 0.66 * number / 13
        out = (0.78 - 0.5 * abs(level - 0.55)) * rng.uniform(0.5, 1.0)
        centre = np.array(
            [
                fork[0] + 1.15 * out * math.cos(angle),
                fork[1] + 0.85 * out * math.sin(angle),
                level * height_m * 0.92,
            ]
        )
        if number % 3 == 0:
            made.stem(fork, centre, 0.04, bark, top_radius=0.015)
        radius = rng.uniform(0.38, 0.56) * (1.15 - 0.35 * level)
        leaves = Look(textures.LEAVES, shifted(rng, green), fruit, seed + number, holes=0.5)
        made.ball(centre, (radius, radius, radius * rng.uniform(0.7, 0.95)), leaves)
    return made.solids()


def far_tree(rng: np.random.Generator, x: float, y: float, height_m: float) -> Solids:
    """Return a tree for rows behind the next one: the same outline of fewer, larger balls."""
    made = Builder(classes.VEGETATION)
    seed = int(rng.integers(1 << 20))
    made.stem((x, y, 0), (x, y, 0.4 * height_m), 0.08, Look(textures.BARK, BARK, seed=seed))
    green = picked(rng, GREENS)
    for level in (0.42, 0.62, 0.82):
        centre = (x + rng.uniform(-0.3, 0.3), y + rng.uniform(-0.3, 0.3), level * height_m)
        leaves = Look(textures.LEAVES, shifted(rng, green), green, seed, holes=0.4)
        made.ball(centre, (1.25 - level, 1.15 - level, 0.24 * height_m), leaves)
    return made.solids()


def street_tree(rng: np.random.Generator, x: float, y: float) -> Solids:
    """Return a tall tree with a bare trunk and a round crown."""
    made = Builder(classes.VEGETATION)
    seed = int(rng.integers(1 << 20))
    height = rng.uniform(5.5, 8.0)
    crown = height * 0.68
    bark = Look(textures.BARK, BARK, seed=seed)
    made.stem((x, y, 0), (x, y, crown), 0.16, bark, top_radius=0.08)
    green = picked(rng, GREENS)
    for number in range(14):
        angle, level = number * 2.4, number / 14
        out = 1.5 * math.sqrt(max(1 - (2 * level - 1) ** 2, 0.1)) * rng.uniform(0.6, 1.0)
        centre = (
            x + out * math.cos(angle),
            y + out * math.sin(angle),
            crown + (level - 0.35) * 0.42 * height,
        )
        leaves = Look(textures.LEAVES, shifted(rng, green), green, seed + number, holes=0.48)
        made.ball(centre, np.full(3, rng.uniform(0.75, 1.1)), leaves)
    return made.solids()


def tuft(rng: np.random.Generator, x: float, y: float, size_m: tuple[float, float] = (0.1, 0.24)) -> Solids:
    """Return a clump of high grass; in the open it is low, left standing it hides a man's legs."""
    made = Builder(classes.VEGETATION)
    size = rng.uniform(*size_m)
    grass = Look(
        textures.LEAVES, shifted(rng, (128, 146, 70)), (150, 160, 84), int(rng.integers(1 << 20)), holes=0.55
    )
    made.ball((x, y, 0.3 * size), (size * 1.3, size * 1.3, size), grass)
    return made.solids()


WALLS: tuple[Rgb, ...] = (
    (196, 182, 160),
    (168, 96, 76),
    (214, 206, 192),
    (150, 144, 138),
    (206, 178, 120),
    (178, 190, 190),
    (132, 100, 84),
)
SIGNS: tuple[Rgb, ...] = ((190, 30, 36), (36, 74, 160), (226, 190, 40))
PANES: Rgb = (58, 70, 82)
KERB_M = 0.12
PIECE_M = 8.0
"""Long things are cut into pieces: a box that reaches behind the camera must be looked for in every pixel."""


def house(rng: np.random.Generator, x0: float, x1: float, side: int, front_m: float) -> Solids:
    """Return a house from x0 to x1 whose front stands `front_m` from the middle of the street."""
    made = Builder(classes.BUILDING)
    floors = int(rng.integers(2, 6))
    tall = floors * textures.STOREY_M / 2
    deep = rng.uniform(4.0, 6.0)
    seed = int(rng.integers(1 << 20))
    wall = picked(rng, WALLS)
    middle = ((x0 + x1) / 2, side * (front_m + deep), tall)
    half = ((x1 - x0) / 2, deep, tall)
    made.brick(middle, half, Look(textures.FACADE, wall, PANES, seed))
    trim = Look(textures.PLAIN, picked(rng, WALLS), seed=seed)
    made.brick(
        (middle[0], side * (front_m + deep - 0.15), 2 * tall + 0.12), (half[0], deep + 0.15, 0.14), trim
    )
    made.brick(
        (middle[0], side * (front_m - 0.02), 0.35),
        (half[0], 0.05, 0.35),
        Look(textures.PLAIN, (110, 106, 100), seed=seed),
    )
    door = Look(
        textures.PLANKS, picked(rng, ((92, 62, 40), (50, 72, 60), (60, 64, 92), (120, 40, 36))), seed=seed
    )
    made.brick(
        (middle[0] + rng.uniform(-0.6, 0.6) * half[0], side * (front_m - 0.02), 1.1), (0.5, 0.06, 1.1), door
    )
    return made.solids()


def pavement(x0: float, x1: float, side: int, road_m: float, wide_m: float) -> Iterator[Solids]:
    """Yield the pavement of one side, with its kerb, from x0 to x1."""
    slab = Look(textures.PLAIN, (148, 146, 142), seed=3)
    stone = Look(textures.PLAIN, (172, 170, 166), seed=4)
    for x in np.arange(x0, x1, PIECE_M):
        made = Builder(classes.SIDEWALK)
        half = PIECE_M / 2
        made.brick((x + half, side * (road_m + wide_m / 2), KERB_M / 2), (half, wide_m / 2, KERB_M / 2), slab)
        made.brick((x + half, side * (road_m + 0.07), KERB_M / 2), (half, 0.075, KERB_M / 2 + 0.004), stone)
        yield made.solids()


def lamp_post(x: float, y: float, side: int) -> Solids:
    """Return a lamp post that leans over the road."""
    made = Builder(classes.POLE)
    steel = Look(textures.PAINT, (96, 100, 102))
    made.stem((x, y, 0), (x, y, 6.0), 0.075, steel, top_radius=0.05)
    made.stem((x, y, 6.0), (x, y - side * 1.4, 6.25), 0.04, steel)
    made.ball((x, y - side * 1.4, 6.2), (0.14, 0.32, 0.08), steel)
    return made.solids()


def sign(rng: np.random.Generator, x: float, y: float) -> list[Solids]:
    """Return a round or square traffic sign and its pole, turned towards the camera."""
    pole, plate = Builder(classes.POLE), Builder(classes.TRAFFIC_SIGN)
    pole.stem((x, y, 0), (x, y, 2.5), 0.035, Look(textures.PAINT, (140, 142, 144)))
    face = Look(textures.PLAIN, picked(rng, SIGNS))
    middle = Look(textures.PLAIN, (232, 232, 228))
    if rng.random() < 0.5:
        plate.stem((x - 0.05, y, 2.3), (x - 0.07, y, 2.3), 0.32, face)
        plate.stem((x - 0.07, y, 2.3), (x - 0.08, y, 2.3), 0.23, middle)
    else:
        plate.brick((x - 0.06, y, 2.3), (0.015, 0.28, 0.28), face)
        plate.brick((x - 0.08, y, 2.3), (0.01, 0.2, 0.12), middle)
    return [pole.solids(), plate.solids()]


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

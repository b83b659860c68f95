"""What lines a street: houses, pavements, lamp posts and signs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from adverse.data.worlds import classes, textures
from adverse.data.worlds.colours import Rgb, picked
from adverse.data.worlds.solids import Builder, Look, Solids

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

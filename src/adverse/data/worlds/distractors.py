"""Things that are nobody: what a weak detector takes for a person.

Some stand beside the path and must be passed; others lie flat on it and are driven over.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.data.worlds import classes, textures
from adverse.data.worlds.people import SHIRTS
from adverse.data.worlds.solids import Builder, Look, Solids
from adverse.data.worlds.textures import Rgb, picked

CRATES: tuple[Rgb, ...] = ((150, 116, 74), (172, 140, 96), (60, 84, 140), (186, 70, 44))
BARRELS: tuple[Rgb, ...] = ((42, 82, 150), (190, 60, 40), (60, 66, 70), (210, 205, 190))
SACKS: tuple[Rgb, ...] = ((196, 178, 140), (222, 218, 206), (140, 112, 80), (96, 120, 150))
WOOD: Rgb = (128, 104, 78)
FLAT_M = 0.02
"""Half the thickness of what lies on the ground."""
SHADOWS_FROM = 1.0
"""Strength of the sun from which a shadow is dark."""


def post(rng: np.random.Generator, x: float, y: float) -> Solids:
    """Return a wooden post, sometimes with a band of tape or a board on it."""
    made = Builder(classes.POLE)
    seed = int(rng.integers(1 << 20))
    height, radius = rng.uniform(1.2, 2.1), rng.uniform(0.04, 0.1)
    made.stem(
        (x, y, 0), (x, y, height), radius, Look(textures.BARK, WOOD, seed=seed), top_radius=radius * 0.9
    )
    extra = rng.random()
    if extra < 0.35:
        tape = Look(textures.PLAIN, picked(rng, ((226, 240, 60), (240, 110, 40), (200, 40, 40))), seed=seed)
        made.stem((x, y, height * 0.7), (x, y, height * 0.82), radius * 1.25, tape)
    elif extra < 0.65:
        board = Look(textures.PLANKS, picked(rng, CRATES), seed=seed)
        made.brick((x, y, height * 0.85), (0.02, rng.uniform(0.12, 0.25), 0.16), board)
    return made.solids()


def crates(rng: np.random.Generator, x: float, y: float) -> Solids:
    """Return a stack of one to four fruit crates, sometimes with a sack on top."""
    made = Builder(classes.STATIC)
    top = 0.0
    for _ in range(int(rng.integers(1, 5))):
        look = Look(textures.PLANKS, picked(rng, CRATES), seed=int(rng.integers(1 << 20)))
        half = np.array([rng.uniform(0.18, 0.24), rng.uniform(0.24, 0.32), rng.uniform(0.14, 0.19)])
        shift = rng.uniform(-0.03, 0.03, 2)
        made.brick((x + shift[0], y + shift[1], top + half[2]), half, look, _turned(rng.uniform(-0.25, 0.25)))
        top += 2 * half[2]
    if rng.random() < 0.4:
        _sack(made, rng, x, y, top)
    return made.solids()


def stump(rng: np.random.Generator, x: float, y: float) -> Solids:
    """Return the stump of a felled tree."""
    made = Builder(classes.STATIC)
    height, radius = rng.uniform(0.3, 1.1), rng.uniform(0.12, 0.26)
    bark = Look(textures.BARK, (104, 84, 64), seed=int(rng.integers(1 << 20)))
    made.stem((x, y, 0), (x + rng.uniform(-0.1, 0.1), y, height), radius * 1.25, bark, top_radius=radius)
    return made.solids()


def sacks(rng: np.random.Generator, x: float, y: float) -> Solids:
    """Return one to three sacks, standing or leaning on each other."""
    made = Builder(classes.STATIC)
    for number in range(int(rng.integers(1, 4))):
        _sack(made, rng, x + 0.1 * number, y + 0.4 * number, 0.0)
    return made.solids()


def barrel(rng: np.random.Generator, x: float, y: float) -> Solids:
    """Return a barrel, sometimes with a pipe that stands out of it."""
    made = Builder(classes.STATIC)
    look = Look(textures.PAINT, picked(rng, BARRELS), seed=int(rng.integers(1 << 20)))
    made.stem((x, y, 0), (x, y, 0.9), 0.29, look)
    if rng.random() < 0.4:
        made.stem((x, y, 0.9), (x + 0.05, y, 1.5), 0.06, look)
        made.ball((x + 0.05, y, 1.55), (0.1, 0.1, 0.12), look)
    return made.solids()


def covered_post(rng: np.random.Generator, x: float, y: float) -> Solids:
    """Return a post with a jacket or tarpaulin hung over it: the outline of a person without one inside."""
    made = Builder(classes.STATIC)
    seed = int(rng.integers(1 << 20))
    height = rng.uniform(1.3, 1.7)
    made.stem((x, y, 0), (x, y, height), 0.05, Look(textures.BARK, WOOD, seed=seed))
    cover = Look(textures.CLOTH, picked(rng, (*SACKS, *BARRELS)), seed=seed)
    made.stem((x, y, height * 0.42), (x, y, height), 0.24, cover, top_radius=0.12, wide=1.3)
    return made.solids()


def scarecrow(rng: np.random.Generator, x: float, y: float) -> Solids:
    """Return a scarecrow: a coat and a hat on a cross of wood, with a head of sacking, and no legs."""
    made = Builder(classes.STATIC)
    seed = int(rng.integers(1 << 20))
    height = rng.uniform(1.45, 1.85)
    wood = Look(textures.BARK, WOOD, seed=seed)
    coat = Look(textures.CLOTH, picked(rng, (*SACKS, *SHIRTS)), seed=seed)
    face = Look(textures.SACKING, picked(rng, SACKS[:3]), seed=seed)
    made.stem((x, y, 0), (x, y, height), 0.04, wood)
    angle = rng.uniform(-0.7, 0.7)
    arm = 0.48 * np.array([math.sin(angle), math.cos(angle), rng.uniform(-0.05, 0.2)])
    shoulders = np.array([x, y, 0.8 * height])
    made.stem(shoulders - arm, shoulders + arm, 0.03, wood)
    for side in (-0.8, 0.8):  # sleeves that hang open
        made.stem(shoulders, shoulders + side * arm, 0.075, coat, top_radius=0.1)
    made.stem((x, y, 0.42 * height), (x, y, 0.84 * height), 0.2, coat, top_radius=0.13, wide=1.35)
    made.ball((x, y, 0.92 * height), (0.1, 0.1, 0.13), face)
    if rng.random() < 0.7:
        hat = Look(textures.SACKING, picked(rng, (*SACKS, (88, 70, 50))), seed=seed + 1)
        made.ball((x, y, 0.98 * height), (0.22, 0.22, 0.02), hat)
        made.ball((x, y, 1.0 * height), (0.11, 0.11, 0.09), hat)
    return made.solids()


def animal(rng: np.random.Generator, x: float, y: float) -> Solids:
    """Return a sheep, a dog or a deer: a body on four legs, and a head before it."""
    made = Builder(classes.STATIC)
    seed = int(rng.integers(1 << 20))
    species = SPECIES[int(rng.integers(len(SPECIES)))]
    coat = Look(species.material, picked(rng, species.coats), seed=seed)
    tall, long = species.tall_m * rng.uniform(0.9, 1.1), species.long_m * rng.uniform(0.9, 1.1)
    thick = species.thick_m
    turn = _turned(rng.uniform(0, 2 * math.pi))
    foot = np.array([x, y, 0.0])
    made.ball((x, y, tall), (long / 2, thick, thick * 1.05), coat, turn)
    leg = Look(textures.PLAIN, species.legs, seed=seed)
    for along in (-0.33, 0.33):
        for side in (-0.55, 0.55):
            hip = foot + turn @ np.array([along * long, side * thick, tall])
            made.stem((hip[0], hip[1], 0.0), hip, species.leg_m, leg, top_radius=1.6 * species.leg_m)
    raised = tall + (species.neck_m if rng.random() < 0.6 else -0.5 * tall)  # looks up, or grazes
    head = foot + turn @ np.array([0.62 * long, 0.0, raised])
    made.stem(foot + turn @ np.array([0.38 * long, 0.0, tall]), head, 0.45 * thick, coat, top_radius=0.07)
    snout = 0.1 * rng.uniform(0.9, 1.2)
    made.ball(head + turn @ np.array([0.05, 0.0, 0.0]), (1.5 * snout, 0.8 * snout, snout), leg, turn)
    return made.solids()


def puddle(rng: np.random.Generator, x: float, y: float) -> Solids:
    """Return a puddle: a dark mirror of the sky, of one to three round parts."""
    made = Builder(classes.GROUND)
    water = Look(textures.GLASS, (62, 58, 50), seed=int(rng.integers(1 << 20)))
    for _ in range(int(rng.integers(1, 4))):
        at = (x + rng.uniform(-0.5, 0.5), y + rng.uniform(-0.2, 0.2), 0.0)
        made.ball(at, (rng.uniform(0.3, 0.8), rng.uniform(0.15, 0.35), FLAT_M), water)
    return made.solids()


def tarp(rng: np.random.Generator, x: float, y: float) -> Solids:
    """Return a tarpaulin or a jacket that lies on the ground, with a fold or two."""
    made = Builder(classes.STATIC)
    seed = int(rng.integers(1 << 20))
    cloth = Look(textures.CLOTH, picked(rng, (*SHIRTS, *BARRELS)), seed=seed)
    half = np.array([rng.uniform(0.25, 0.8), rng.uniform(0.2, 0.5), FLAT_M])
    turn = _turned(rng.uniform(0, math.pi))
    made.brick((x, y, FLAT_M), half, cloth, turn)
    for _ in range(int(rng.integers(1, 3))):
        at = np.array([x, y, 0.0]) + turn @ (half * rng.uniform(-0.6, 0.6, 3))
        made.ball((at[0], at[1], FLAT_M), (0.5 * half[0], 0.12, 0.07), cloth, turn)
    return made.solids()


def shadow(rng: np.random.Generator, x: float, y: float, sun: NDArray[np.float64]) -> Solids:
    """Return the shadow of a pole and what hangs on it, out of view: a long dark shape away from the sun."""
    made = Builder(classes.GROUND)
    dark = Look(textures.PLAIN, (44, 44, 34), seed=int(rng.integers(1 << 20)))
    turn = _turned(math.atan2(-sun[1], -sun[0]))
    foot = np.array([x, y, 0.0])
    for along, half in ((0.0, (0.75, 0.16)), (0.55, (0.3, 0.24)), (0.95, (0.17, 0.14))):
        made.ball(foot + turn @ np.array([along, 0.0, 0.0]), (*half, 0.5 * FLAT_M), dark, turn)
    return made.solids()


class Species(NamedTuple):
    """What an animal is like: height of its back, length, thickness, legs, and the neck above the back."""

    tall_m: float
    long_m: float
    thick_m: float
    leg_m: float
    neck_m: float
    material: int
    coats: tuple[Rgb, ...]
    legs: Rgb


SPECIES = (
    Species(0.62, 0.95, 0.25, 0.03, 0.15, textures.SACKING, ((222, 214, 196), (120, 104, 88)), (60, 52, 46)),
    Species(0.45, 0.7, 0.13, 0.025, 0.16, textures.CLOTH, ((60, 50, 42), (170, 130, 84)), (52, 44, 38)),
    Species(0.85, 1.1, 0.19, 0.025, 0.5, textures.CLOTH, ((150, 108, 70), (128, 98, 72)), (110, 82, 58)),
)


class Thing(NamedTuple):
    """How a thing is built at a point of the ground, and how far it reaches to the side."""

    built: Callable[[np.random.Generator, float, float], Solids]
    aside_m: float


STANDING: Mapping[str, Thing] = {
    "post": Thing(post, 0.25),
    "crates": Thing(crates, 0.4),
    "stump": Thing(stump, 0.35),
    "sacks": Thing(sacks, 1.1),
    "barrel": Thing(barrel, 0.3),
    "covered_post": Thing(covered_post, 0.35),
    "scarecrow": Thing(scarecrow, 0.48),
    "animal": Thing(animal, 0.8),
}


def flat(sun: NDArray[np.float64], strength: float) -> Mapping[str, Thing]:
    """Return what lies on the ground under a sun (unit vector towards it): shadows if it is strong enough."""
    shadows = {"shadow": Thing(functools.partial(shadow, sun=sun), 1.2)} if strength > SHADOWS_FROM else {}
    return {"puddle": Thing(puddle, 0.6), "tarp": Thing(tarp, 0.8), **shadows}


def drawn_thing(rng: np.random.Generator, things: Mapping[str, Thing]) -> Thing:
    """Draw one of several things."""
    return list(things.values())[int(rng.integers(len(things)))]


def _sack(made: Builder, rng: np.random.Generator, x: float, y: float, z: float) -> None:
    look = Look(textures.SACKING, picked(rng, SACKS), seed=int(rng.integers(1 << 20)))
    radius, tall = rng.uniform(0.2, 0.28), rng.uniform(0.32, 0.5)
    made.ball((x, y, z + tall * 0.9), (radius, radius * 1.15, tall), look)
    made.ball((x, y, z + 1.9 * tall), (0.08, 0.1, 0.09), look)


def _turned(angle: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    c, s = float(np.cos(angle)), float(np.sin(angle))
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])

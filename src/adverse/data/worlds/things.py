"""Things that stand about and are nobody: what a weak detector takes for a person."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from adverse.data.worlds import classes, textures
from adverse.data.worlds.colours import Rgb, picked
from adverse.data.worlds.solids import Builder, Look, Solids

CRATES: tuple[Rgb, ...] = ((150, 116, 74), (172, 140, 96), (60, 84, 140), (186, 70, 44))
BARRELS: tuple[Rgb, ...] = ((42, 82, 150), (190, 60, 40), (60, 66, 70), (210, 205, 190))
SACKS: tuple[Rgb, ...] = ((196, 178, 140), (222, 218, 206), (140, 112, 80), (96, 120, 150))
WOOD: Rgb = (128, 104, 78)


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


KINDS: Mapping[str, Callable[[np.random.Generator, float, float], Solids]] = {
    "post": post,
    "crates": crates,
    "stump": stump,
    "sacks": sacks,
    "barrel": barrel,
    "covered_post": covered_post,
}


def drawn_thing(rng: np.random.Generator, x: float, y: float) -> Solids:
    """Draw one of the things, to stand at a point of the ground."""
    return list(KINDS.values())[int(rng.integers(len(KINDS)))](rng, x, y)


def _sack(made: Builder, rng: np.random.Generator, x: float, y: float, z: float) -> None:
    look = Look(textures.SACKING, picked(rng, SACKS), seed=int(rng.integers(1 << 20)))
    radius, tall = rng.uniform(0.2, 0.28), rng.uniform(0.32, 0.5)
    made.ball((x, y, z + tall * 0.9), (radius, radius * 1.15, tall), look)
    made.ball((x, y, z + 1.9 * tall), (0.08, 0.1, 0.09), look)


def _turned(angle: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    c, s = float(np.cos(angle)), float(np.sin(angle))
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])

"""Trees and tufts: trunks, branches, and foliage of leafy balls with gaps."""

from __future__ import annotations

import math

import numpy as np

from adverse.data.worlds import classes, textures
from adverse.data.worlds.colours import Rgb, picked, shifted
from adverse.data.worlds.solids import Builder, Look, Solids

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


def tuft(rng: np.random.Generator, x: float, y: float) -> Solids:
    """Return a clump of high grass."""
    made = Builder(classes.VEGETATION)
    size = rng.uniform(0.1, 0.24)
    grass = Look(
        textures.LEAVES, shifted(rng, (128, 146, 70)), (150, 160, 84), int(rng.integers(1 << 20)), holes=0.55
    )
    made.ball((x, y, 0.3 * size), (size * 1.3, size * 1.3, size), grass)
    return made.solids()

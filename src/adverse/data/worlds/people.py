"""Who is in the picture: people of varied height, build, skin and clothes, and the postures they take."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from adverse.data.worlds import textures
from adverse.data.worlds.colours import Rgb, picked
from adverse.data.worlds.solids import Look

Posture = Literal["standing", "walking", "sitting", "crouching", "reaching", "bending"]
STILL: tuple[Posture, ...] = ("standing", "sitting", "crouching", "reaching", "bending")
STRIDE = 0.82
"""Length of a full cycle of two steps, in heights."""
SKINS: tuple[Rgb, ...] = ((241, 205, 180), (224, 172, 134), (186, 128, 90), (141, 88, 58), (92, 58, 40))
HAIRS: tuple[Rgb, ...] = ((35, 28, 24), (80, 54, 34), (150, 115, 70), (120, 118, 116), (200, 198, 194))
SHIRTS: tuple[Rgb, ...] = (
    (196, 52, 44),
    (52, 92, 170),
    (232, 228, 220),
    (60, 62, 68),
    (86, 120, 66),
    (214, 180, 70),
    (120, 84, 56),
    (92, 60, 120),
    (60, 140, 150),
    (150, 152, 150),
)
TROUSERS: tuple[Rgb, ...] = (
    (48, 62, 98),
    (56, 56, 58),
    (120, 104, 78),
    (84, 86, 64),
    (34, 36, 42),
    (150, 146, 138),
)
VESTS: tuple[Rgb, ...] = ((226, 240, 60), (250, 120, 30))
HATS: tuple[Rgb, ...] = ((216, 188, 128), (170, 40, 40), (40, 58, 110), (230, 226, 214), (60, 76, 50))


@dataclass(frozen=True)
class Person:
    """How one person looks."""

    height_m: float
    girth: float
    skin: Rgb
    hair: Rgb
    shirt: Look
    trousers: Look
    vest: Rgb | None
    hat: Rgb | None
    long_sleeves: bool
    seed: int


class Stance(NamedTuple):
    """Angles in radians: forward lean of the torso; per side (left, right) thigh, knee, arm and elbow."""

    lean: float
    thigh: tuple[float, float]
    knee: tuple[float, float]
    arm: tuple[float, float]
    elbow: tuple[float, float]


def drawn_person(rng: np.random.Generator) -> Person:
    """Draw somebody."""
    seed = int(rng.integers(1 << 20))
    shirt = textures.CHECKS if rng.random() < 0.25 else textures.CLOTH
    colour, other = (picked(rng, SHIRTS) for _ in range(2))
    return Person(
        height_m=float(rng.uniform(1.52, 1.92)),
        girth=float(rng.uniform(0.88, 1.25)),
        skin=picked(rng, SKINS),
        hair=picked(rng, HAIRS),
        shirt=Look(shirt, colour, other, seed),
        trousers=Look(textures.CLOTH, picked(rng, TROUSERS), seed=seed + 1),
        vest=picked(rng, VESTS) if rng.random() < 0.2 else None,
        hat=picked(rng, HATS) if rng.random() < 0.45 else None,
        long_sleeves=bool(rng.random() < 0.5),
        seed=seed,
    )


def stance(posture: Posture, walked_m: float, person: Person) -> Stance:
    """Return the joint angles of a posture; walking swings with the distance walked."""
    if posture == "walking":
        phase = 2 * math.pi * walked_m / (STRIDE * person.height_m)
        swing, other = math.sin(phase), math.cos(phase)
        return Stance(
            0.06,
            (0.42 * swing, -0.42 * swing),
            (0.18 + 0.55 * max(other, 0.0), 0.18 + 0.55 * max(-other, 0.0)),
            (-0.45 * swing, 0.45 * swing),
            (0.35, 0.35),
        )
    vary = (person.seed % 97) / 97 - 0.5  # nobody stands quite like another
    return {
        "standing": Stance(
            0.02, (0.05 * vary, -0.06), (0.04, 0.06), (0.12 * vary, -0.1), (0.2, 0.2 + 0.9 * abs(vary))
        ),
        "sitting": Stance(-0.12, (1.85, 1.75), (0.74, 0.53), (0.55, 0.6), (0.7 + 0.3 * vary, 0.5)),
        "crouching": Stance(0.5, (1.75, 1.5), (2.2, 2.1), (0.9, 0.7), (0.5, 0.4)),
        "reaching": Stance(-0.03, (0.1, -0.08), (0.08, 0.05), (2.5 + 0.4 * vary, 2.2), (0.35, 0.5)),
        "bending": Stance(1.15 + 0.2 * vary, (0.15, -0.02), (0.15, 0.1), (1.3, 1.15), (0.15, 0.2)),
    }[posture]

"""The horizon and the height of the camera, by the things that stand on the ground of a photograph.

A thing H metres tall that meets level ground at a row, seen by a level camera, is H / h times as tall in the
image as its foot is below the horizon, h being the height of the camera (Hoiem, Efros, Hebert: Putting
Objects in Perspective, 2006). So the feet of things of known height lie on a line over how many pixels a
metre has there: it begins at the horizon and rises by the height of the camera. Photographs are taken at
about the height of the eyes, which decides where there are too few things; where the lines of the street
meet says where the line begins, but only roughly in photographs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

HEIGHTS_M = {
    "person": (1.7, 0.1),
    "car": (1.5, 0.12),
    "bus": (3.1, 0.12),
    "truck": (2.8, 0.35),
    "bicycle": (1.05, 0.12),
    "motorcycle": (1.15, 0.15),
}
"""How tall things are, and by what share of that they differ."""
SHAPES = {"person": (1.8, 6.0), "car": (0.25, 1.3)}
"""Height over width of what stands upright and is whole: somebody who sits is not 1.7 m tall."""
LEAST_HEIGHT_PX = 8
EYES_M, EYES_SPREAD_M = 1.6, 0.4
"""The height that cameras are at, where nothing says more."""
EDGE_PX = 2.0
"""By how many pixels outlines are off."""
ROUNDS = 10
MOST_SPREADS = 3.0
"""By how many times its spread the height of a thing may be off before its distance is not believed."""
MOST_OFF = 2.0
"""In standard deviations, how far feet may lie off the line in the middle before nothing is concluded."""


class StandingThing(NamedTuple):
    """What is known of a thing that stands on the ground: its class, the row of its foot, its height."""

    class_name: str
    foot_row: float
    height_px: float


class EyeLevel(NamedTuple):
    """Where a level ground ends in an image, and how high above it the camera is."""

    horizon_row: float
    camera_height_m: float


def stands_upright(class_name: str | None, width_px: int, height_px: int) -> bool:
    """Return whether a box has the shape of a thing of its class that stands; others may have any.

    >>> stands_upright("person", 30, 80), stands_upright("person", 60, 70), stands_upright("bear", 60, 70)
    (True, False, True)
    """
    low, high = SHAPES.get(class_name or "", (0.0, float("inf")))
    return low <= height_px / width_px <= high


def is_possible_height(class_name: str | None, height_m: float) -> bool:
    """Return whether a thing of a class may be so tall; one of a class whose height is not known always may.

    >>> is_possible_height("car", 1.4), is_possible_height("car", 0.5), is_possible_height("bear", 0.5)
    (True, False, True)
    """
    if class_name not in HEIGHTS_M:
        return True
    usual, spread = HEIGHTS_M[class_name]
    return abs(height_m / usual - 1) <= MOST_SPREADS * spread


def eye_level(
    things: Sequence[StandingThing], *, lines_meet: float | None = None, lines_spread: float = 1.0
) -> EyeLevel | None:
    """Fit the line through the feet of things of known height; None without any, or if they disagree.

    `lines_meet` is the row where the lines of the street meet, `lines_spread` by how many rows that is off.

    >>> person = lambda row: StandingThing("person", row, 1.7 * (row - 100) / 1.6)
    >>> tuple(round(value, 2) for value in eye_level([person(140), person(200), person(260)]))
    (100.0, 1.6)
    """
    known = [
        (thing.foot_row, thing.height_px / HEIGHTS_M[thing.class_name][0], HEIGHTS_M[thing.class_name][1])
        for thing in things
        if thing.class_name in HEIGHTS_M and thing.height_px >= LEAST_HEIGHT_PX
    ]
    if not known:
        return None
    feet, scale, spread = np.array(known, np.float64).T
    noise = EDGE_PX + EYES_M * scale * spread
    terms = np.stack([np.ones(len(feet)), scale], axis=1)
    prior = [(0.0, 1 / EYES_SPREAD_M, EYES_M / EYES_SPREAD_M)]
    if lines_meet is not None:
        prior.append((1 / lines_spread, 0.0, lines_meet / lines_spread))
    beliefs = np.array(prior)
    line = np.array([float(np.median(feet - EYES_M * scale)), EYES_M])
    off = np.zeros(len(feet))
    for _ in range(ROUNDS):  # children, and what is not whole, count less and less
        off = (feet - terms @ line) / noise
        weight = np.sqrt(1 / (1 + (off / 2) ** 2)) / noise
        left = np.concatenate([terms * weight[:, None], beliefs[:, :2]])
        line = np.linalg.lstsq(left, np.concatenate([feet * weight, beliefs[:, 2]]), rcond=None)[0]
    horizon, height = float(line[0]), float(line[1])
    if height <= 0 or float(np.median(np.abs(off))) > MOST_OFF:
        return None
    return EyeLevel(horizon, height)

"""Glare and flare of a low sun: stray light in the lens veils the scene, blooms, and makes ghosts.

The lens scatters the sun's light over the image, most of it close to the sun, falling with the square of the
angle (as in the eye: Stiles-Holladay, CIE 146). The blades of its iris draw a star, and reflections between
its surfaces make ghosts: images of the iris on the line from the sun through the middle of the image. All of
it is light that is added, in linear light; nothing of it is random, so it stands still over a log.
"""

from __future__ import annotations

import functools
import math
from typing import Annotated, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from adverse.marks import Hazard, Strength
from adverse.mutations import pixels
from adverse.mutations.compiled import kernel
from adverse.mutations.linear_light import CODED, LIGHT, STEPS
from adverse.plugins import NonNegative, mutation, unchanged_at
from adverse.types import Image

U8 = NDArray[np.uint8]
F32 = NDArray[np.float32]
Floats = NDArray[np.float64]

CORE_RAD = math.radians(1.2)
"""Where the glow around the sun stops growing inwards."""

SUN_TINT = (1.18, 1.0, 0.82)
"""R, G, B of a low sun; their mean is 1."""

BLADES = 6
SPIKE_TURN_RAD = math.radians(12)
SPIKE_RAD = math.radians(0.2)
SPIKE_LENGTH_RAD = math.radians(5)
SPIKE_SHARE = 1.5
"""The star: how it is turned, how wide its lines are, how they fade, and how bright they are by the glow."""

EVERYWHERE = 0.35
"""Share of the scattered light that lies evenly over all of the image."""


class Ghost(NamedTuple):
    """An image of the iris: its place on the line (1: the sun, 0: the middle, -1: opposite), size and light.

    The radius is a share of the image's diagonal, the light that of the mean veil.
    """

    place: float
    radius: float
    light: tuple[float, float, float]


GHOSTS = (
    Ghost(0.42, 0.022, (0.30, 0.45, 0.25)),
    Ghost(-0.28, 0.035, (0.20, 0.50, 0.55)),
    Ghost(-0.55, 0.055, (0.50, 0.35, 0.55)),
    Ghost(-0.90, 0.020, (0.60, 0.50, 0.25)),
    Ghost(-1.25, 0.090, (0.22, 0.30, 0.20)),
)
MOST_COLUMNS = 320
"""Stray light is smooth: it is computed at no more columns than these."""


@mutation(
    hazards=(
        Hazard(
            "light source", "position", "where else", "the sun stands low before the camera and dazzles it"
        ),
    ),
    strength=Strength("veiling_ratio", 0, 3, power=2),
)
def glare(
    image: Image,
    *,
    veiling_ratio: Annotated[NonNegative, Field(le=100), unchanged_at(0)],
    azimuth_deg: Annotated[float, Field(ge=-80, le=80)] = 12.0,
    elevation_deg: Annotated[float, Field(ge=-80, le=80)] = 12.0,
    fov_deg: Annotated[float, Field(gt=0, le=170)] = 60.0,
) -> Image:
    """Add the stray light of a sun before the camera: a veil, a bloom, a star and ghosts.

    `veiling_ratio` is the stray light, averaged over the image, as a share of the light that gives white; an
    image of black would have that mean. The sun stands `azimuth_deg` to the right of where the camera looks
    and `elevation_deg` above it, outside the view or in it; `fov_deg` is the width of the view.

    >>> black = np.zeros((60, 80, 3), np.uint8)
    >>> made = glare(black, veiling_ratio=0.1)
    >>> int(made[14, 54].min()), bool(made.min() > 0)  # the sun, and a veil everywhere
    (255, True)
    """
    if not veiling_ratio:
        return image.copy()
    source = pixels.pixels(image)
    rows, columns, channels = source.shape
    light = stray_light(rows, columns, azimuth_deg, elevation_deg, fov_deg)
    if channels == 1:
        light = light.mean(axis=2)
    fine = cv2.resize(light, (columns, rows), interpolation=cv2.INTER_LINEAR).astype(np.float32, copy=False)
    out = np.empty_like(source)
    add_light(pixels.rows(source), pixels.rows(fine), veiling_ratio, LIGHT, CODED, STEPS, pixels.rows(out))
    return out.reshape(image.shape)


@functools.lru_cache(maxsize=16)
def stray_light(rows: int, columns: int, azimuth_deg: float, elevation_deg: float, fov_deg: float) -> F32:
    """Return the stray light of a sun in that direction, its mean 1, on a grid no finer than it needs."""
    coarse = max(columns / MOST_COLUMNS, 1.0)
    high, wide = max(round(rows / coarse), 1), max(round(columns / coarse), 1)
    focal = wide / 2 / math.tan(math.radians(fov_deg) / 2)
    across, down = np.meshgrid(np.arange(wide) - (wide - 1) / 2, np.arange(high) - (high - 1) / 2)
    azimuth, elevation = math.radians(azimuth_deg), math.radians(elevation_deg)
    sun_x, sun_y = focal * math.tan(azimuth), -focal * math.tan(elevation) / math.cos(azimuth)
    veil = glow(across / focal, down / focal, sun_x / focal, sun_y / focal)
    veil *= (1 - EVERYWHERE) / veil.mean()
    light = (veil + EVERYWHERE)[..., None] * np.array(SUN_TINT)
    for ghost in GHOSTS:
        at_x, at_y = ghost.place * sun_x, ghost.place * sun_y
        shape = iris(across - at_x, down - at_y, ghost.radius * math.hypot(high, wide))
        light += shape[..., None] * np.array(ghost.light)
    made: F32 = (light / light.mean()).astype(np.float32)
    made.flags.writeable = False
    return made


def glow(x: Floats, y: Floats, sun_x: float, sun_y: float) -> Floats:
    """Return glow and star at tangents of angles from the axis, for a sun at such a place."""
    dot = (1 + x * sun_x + y * sun_y) / np.sqrt((1 + x * x + y * y) * (1 + sun_x**2 + sun_y**2))
    square = 2 - 2 * dot  # of the chord: of the angle, where that is small
    total = 1 / (square + CORE_RAD**2)
    star = np.zeros_like(total)
    for blade in range(BLADES // 2):
        turn = SPIKE_TURN_RAD + math.pi * blade / (BLADES // 2)
        beside = (x - sun_x) * math.sin(turn) - (y - sun_y) * math.cos(turn)
        star += 1 / (1 + (beside / SPIKE_RAD) ** 2)
    fades = SPIKE_SHARE * np.exp(-np.sqrt(np.maximum(square, 0)) / SPIKE_LENGTH_RAD)
    glowing: Floats = total * (1 + fades * star)
    return glowing


def iris(x: Floats, y: Floats, radius: float) -> Floats:
    """Return 1 inside a polygon of as many sides as the iris has blades, a little less in its middle."""
    far = np.full_like(x, -np.inf)
    for blade in range(BLADES):
        turn = SPIKE_TURN_RAD + 2 * math.pi * blade / BLADES
        far = np.maximum(far, x * math.cos(turn) + y * math.sin(turn))
    soft = max(0.12 * radius, 1.0)
    inside = np.clip((radius - far) / soft + 0.5, 0, 1)
    shape: Floats = inside * (0.65 + 0.35 * np.clip(far / max(radius, 1e-9), 0, 1) ** 2)
    return shape


@kernel(
    "void(Array(uint8, 2, 'C', readonly=True), Array(float32, 2, 'C', readonly=True), float32, "
    "Array(float32, 1, 'C', readonly=True), Array(uint8, 1, 'C', readonly=True), int64, uint8[:, ::1])"
)
def add_light(image: U8, added: F32, ratio: float, light: F32, coded: U8, steps: int, out: U8) -> None:
    """Write image + ratio * added, in linear light; what is above white is white."""
    top, half = np.float32(steps), np.float32(0.5)
    share = np.float32(ratio) * top
    for y in range(image.shape[0]):
        source, more, target = image[y], added[y], out[y]
        for i in range(target.size):
            target[i] = coded[np.int32(min(light[source[i]] * top + more[i] * share + half, top))]

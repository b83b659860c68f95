"""What surfaces look like close up: colour as a function of the place on a solid, in metres along its axes.

Every pattern fades to its mean where a pixel is too large to show it (`noise.sharpness`).

Procedural randomness of textures: a hash of whole numbers, and value noise over it.

A texture is a pure function of where it is looked at, so both eyes and all frames see the same leaf.

Colours as people write them: 8-bit RGB on a display.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from adverse.data.worlds.compiled import compiled

_MASK = 0xFFFFFFFF


@compiled
def chance(x: int, y: int, z: int, seed: int) -> float:
    """Return a number in [0, 1) that belongs to a lattice point and a seed."""
    h = (x * 374761393 + y * 668265263 + z * 1440662683 + seed * 1013904223) & _MASK
    h = ((h ^ (h >> 15)) * 739982445) & _MASK
    h = ((h ^ (h >> 12)) * 695872825) & _MASK
    return (h ^ (h >> 15)) / 4294967296.0


@compiled
def noise(x: float, y: float, z: float, seed: int) -> float:
    """Return smooth value noise in [0, 1) with features one unit wide."""
    fx, fy, fz = math.floor(x), math.floor(y), math.floor(z)
    ix, iy, iz = int(fx), int(fy), int(fz)
    u, v, w = x - fx, y - fy, z - fz
    u, v, w = u * u * (3 - 2 * u), v * v * (3 - 2 * v), w * w * (3 - 2 * w)
    a = chance(ix, iy, iz, seed) * (1 - u) + chance(ix + 1, iy, iz, seed) * u
    b = chance(ix, iy + 1, iz, seed) * (1 - u) + chance(ix + 1, iy + 1, iz, seed) * u
    c = chance(ix, iy, iz + 1, seed) * (1 - u) + chance(ix + 1, iy, iz + 1, seed) * u
    d = chance(ix, iy + 1, iz + 1, seed) * (1 - u) + chance(ix + 1, iy + 1, iz + 1, seed) * u
    return (a * (1 - v) + b * v) * (1 - w) + (c * (1 - v) + d * v) * w


@compiled
def flat_noise(x: float, y: float, seed: int) -> float:
    """Return smooth value noise of the plane in [0, 1)."""
    fx, fy = math.floor(x), math.floor(y)
    ix, iy = int(fx), int(fy)
    u, v = x - fx, y - fy
    u, v = u * u * (3 - 2 * u), v * v * (3 - 2 * v)
    a = chance(ix, iy, 0, seed) * (1 - u) + chance(ix + 1, iy, 0, seed) * u
    b = chance(ix, iy + 1, 0, seed) * (1 - u) + chance(ix + 1, iy + 1, 0, seed) * u
    return a * (1 - v) + b * v


@compiled
def sharpness(feature_m: float, pixel_m: float) -> float:
    """Return how much of a feature a pixel of that size can show: 1 all, 0 below half a feature per pixel.

    Textures fade to their mean by it instead of turning into false detail, different in each eye.
    """
    return min(max(feature_m / pixel_m - 0.5, 0.0), 1.0)


PLAIN, LEAVES, BARK, CLOTH, CHECKS, BANDS, PLANKS, FACADE, PAINT, GLASS, SACKING = range(11)
"""Materials. BANDS are the reflecting stripes of a safety vest; PLANKS have gaps; FACADE has windows."""
ORCHARD_GROUND, STREET_GROUND = 0, 1
FRUIT_M = 0.09
STOREY_M = 3.1
WINDOW_EVERY_M = 2.3
Floats = NDArray[np.float64]
Shade = tuple[float, float, float]


@compiled
def mottled(x: float, y: float, z: float, size_m: float, pixel_m: float, seed: int) -> float:
    """Return noise around 0.5 with two octaves, the finer one half as strong; none where none can be seen."""
    coarse, fine = 0.0, 0.0
    seen = sharpness(size_m, pixel_m)
    if seen > 0:
        coarse = (noise(x / size_m, y / size_m, z / size_m, seed) - 0.5) * seen
    finer = 3.1 / size_m
    seen = sharpness(1 / finer, pixel_m)
    if seen > 0:
        fine = (noise(x * finer, y * finer, z * finer, seed + 1) - 0.5) * seen
    return 0.5 + 0.66 * coarse + 0.34 * fine


@compiled
def surface(
    material: int, colour: Floats, second: Floats, seed: int, p: Floats, pixel_m: float, shade: Floats
) -> float:
    """Write the reflectance at `p` (metres along the solid's axes) into `shade`; return the gloss, 0..1."""
    x, y, z = p[0], p[1], p[2]
    gloss, mix = 0.0, 0.0
    if material == LEAVES:
        light = 0.35 + 1.3 * mottled(x, y, z, 0.09, pixel_m, seed)
        mix = _fruit(x / FRUIT_M, y / FRUIT_M, z / FRUIT_M, sharpness(FRUIT_M, pixel_m), seed)
    elif material == BARK:
        light = 0.5 + mottled(x * 3, y * 3, z * 0.5, 0.08, pixel_m, seed)
    elif material == CLOTH:
        light = 0.72 + 0.56 * mottled(x, y, z * 0.6, 0.11, pixel_m, seed)
    elif material == CHECKS:
        light = 0.8 + 0.4 * mottled(x, y, z, 0.1, pixel_m, seed)
        across = (math.floor(z / 0.05) + math.floor((x + y) / 0.05)) & 1
        mix = 0.5 + (across - 0.5) * sharpness(0.05, pixel_m)
    elif material == BANDS:
        light = 0.85 + 0.3 * mottled(x, y, z, 0.12, pixel_m, seed)
        mix = 1.0 if abs(abs(z) - 0.08) < 0.025 else 0.0
        gloss = 0.3 * mix
    elif material == PLANKS:
        light = 0.55 + 0.9 * mottled(x * 2, y * 0.4, z * 2, 0.08, pixel_m, seed)
        gap = z / 0.11 - math.floor(z / 0.11)
        light *= 1 - 0.7 * sharpness(0.03, pixel_m) if gap < 0.22 else 1.0
    elif material == FACADE:
        light, mix = _facade(x + y, z, pixel_m, seed)
        gloss = 0.25 * mix
    elif material == SACKING:
        light = 0.6 + 0.8 * mottled(x, y, z, 0.05, pixel_m, seed)
    else:
        light = 0.85 + 0.3 * mottled(x, y, z, 0.15, pixel_m, seed)
        gloss = 0.3 if material == PAINT else 0.8 if material == GLASS else 0.0
    for channel in range(3):
        shade[channel] = light * (colour[channel] * (1 - mix) + second[channel] * mix)
    return gloss


@compiled
def ground(place: int, x: float, y: float, pixel_m: float, seed: int, shade: Floats) -> bool:
    """Write the reflectance of the ground at (x, y); return whether it is the way (dirt track, road)."""
    if place == STREET_GROUND:
        return _road(x, y, pixel_m, seed, shade)
    edge = 0.35 * (flat_noise(x / 0.7, y / 0.7, seed + 7) - 0.5) + 0.5 * (
        flat_noise(x / 3.0, y / 3.0, seed + 8) - 0.5
    )
    track = abs(abs(y) - 0.85) + edge < 0.36  # two wheel tracks, grass between them and beside
    fine, middle = 0.0, 0.0
    blades, tufts = sharpness(0.03, pixel_m), sharpness(0.13, pixel_m)
    if blades > 0:
        fine = flat_noise(x / 0.05, y / 0.022, seed) - 0.5
    if tufts > 0:
        middle = flat_noise(x / 0.16, y / 0.11, seed + 1) - 0.5
    coarse = flat_noise(x / 1.3, y / 1.3, seed + 2) - 0.5
    detail = 1.3 * fine * blades + 0.8 * middle * tufts
    if track:
        light = 1 + 0.7 * detail + 0.4 * coarse
        shade[0], shade[1], shade[2] = 0.25 * light, 0.175 * light, 0.105 * light
    else:
        light = 1 + 1.3 * detail + 0.5 * coarse
        dry = min(max(flat_noise(x / 2.1, y / 2.1, seed + 3) * 1.6 - 0.45, 0.0), 1.0)
        shade[0] = (0.095 + 0.125 * dry) * light
        shade[1] = (0.140 + 0.060 * dry) * light
        shade[2] = (0.042 + 0.031 * dry) * light
    return track


@compiled
def sky(dx: float, dy: float, dz: float, cloud: float, seed: int, shade: Floats) -> None:
    """Write the light of the sky in a direction (unit vector); `cloud` is the share that clouds cover."""
    up = max(dz, 0.0)
    fade = 1 / (1 + 4.5 * up)
    shade[0] = 0.16 + 0.50 * fade
    shade[1] = 0.33 + 0.42 * fade
    shade[2] = 0.68 + 0.20 * fade
    x, y = dx / (up + 0.12), dy / (up + 0.12)
    n = 0.6 * flat_noise(x * 0.8, y * 0.8, seed) + 0.3 * flat_noise(x * 2.1, y * 2.1, seed + 1)
    n += 0.1 * flat_noise(x * 6, y * 6, seed + 2)
    white = min(max((n - 1 + cloud) * 4 + 0.5, 0.0), 1.0)
    for channel in range(3):
        shade[channel] += (0.92 - shade[channel]) * white * 0.85


@compiled
def _fruit(x: float, y: float, z: float, sharp: float, seed: int) -> float:
    """Return `sharp` inside the round fruit that hang in some cells of a lattice, else 0."""
    if sharp == 0:
        return 0.0
    cx, cy, cz = math.floor(x), math.floor(y), math.floor(z)
    if chance(int(cx), int(cy), int(cz), seed) < 0.975:
        return 0.0
    u, v, w = x - cx - 0.5, y - cy - 0.5, z - cz - 0.5
    return sharp if u * u + v * v + w * w < 0.2 else 0.0


@compiled
def _facade(along: float, z: float, pixel_m: float, seed: int) -> tuple[float, float]:
    light = 0.85 + 0.3 * mottled(along, along * 0.3, z, 0.4, pixel_m, seed)
    column, storey = math.floor(along / WINDOW_EVERY_M), math.floor(z / STOREY_M)
    u, v = along / WINDOW_EVERY_M - column, z / STOREY_M - storey
    if not (0.25 < u < 0.75 and 0.28 < v < 0.82):
        sill = 0.2 < u < 0.8 and 0.23 < v <= 0.28
        return light * (1.25 if sill else 1.0), 0.0
    if abs(u - 0.5) < 0.02 or abs(v - 0.6) < 0.015:
        return light, 0.0
    return 0.4 + 0.9 * chance(int(column), int(storey), 1, seed), 1.0


@compiled
def _road(x: float, y: float, pixel_m: float, seed: int, shade: Floats) -> bool:
    fine, middle = sharpness(0.03, pixel_m), sharpness(0.25, pixel_m)
    if fine > 0:
        fine *= flat_noise(x / 0.03, y / 0.03, seed) - 0.5
    if middle > 0:
        middle *= flat_noise(x / 0.25, y / 0.25, seed + 1) - 0.5
    worn = flat_noise(x / 3.0, y / 0.8, seed + 2) - 0.5
    light = 0.085 * (1 + 0.5 * fine + 0.3 * middle + 0.4 * worn)
    dash = x / 6 - math.floor(x / 6) < 0.5
    if abs(y) < 0.07 and dash and flat_noise(x / 0.1, y / 0.1, seed + 3) > 0.2:
        light = 0.55
    shade[0], shade[1], shade[2] = light, light, light * 1.05
    return True


Rgb = tuple[int, int, int]


def linear(colour: Rgb) -> NDArray[np.float64]:
    """Return the reflectance (0..1) that a colour stands for, by the gamma of 2 that `sensor` undoes.

    >>> linear((255, 0, 51))
    array([1.  , 0.  , 0.04])
    """
    return (np.asarray(colour, float) / 255) ** 2


def picked(rng: np.random.Generator, colours: Sequence[Rgb]) -> Rgb:
    """Draw one of several colours."""
    return colours[int(rng.integers(len(colours)))]


def shifted(rng: np.random.Generator, colour: Rgb) -> Rgb:
    """Draw a colour close to the given one: no two leaves are alike."""
    light = rng.uniform(0.88, 1.1)
    red, green, blue = (int(min(channel * light * rng.uniform(0.96, 1.04), 255)) for channel in colour)
    return red, green, blue

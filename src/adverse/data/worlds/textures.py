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

from adverse.data.worlds.compiled import compiled, inlined

U32 = np.uint32
_X, _Y, _Z, _SEED = U32(374761393), U32(668265263), U32(1440662683), U32(1013904223)


@inlined
def hashed(h: np.uint32) -> np.uint32:
    """Return a hash of 32 bits."""
    h = U32((h ^ (h >> U32(15))) * U32(739982445))
    h = U32((h ^ (h >> U32(12))) * U32(695872825))
    return U32(h ^ (h >> U32(15)))


@inlined
def _mixed(h: np.uint32) -> float:
    """Return a number in [0, 1) by a hash of 32 bits."""
    return hashed(h) * (1 / 4294967296.0)


@inlined
def chance(x: int, y: int, z: int, seed: int) -> float:
    """Return a number in [0, 1) that belongs to a lattice point and a seed."""
    return _mixed(U32(U32(x) * _X + U32(y) * _Y + U32(z) * _Z + U32(seed) * _SEED))


@inlined
def noise(x: float, y: float, z: float, seed: int) -> float:
    """Return smooth value noise in [0, 1) with features one unit wide."""
    fx, fy, fz = np.floor(x), np.floor(y), np.floor(z)
    u, v, w = x - fx, y - fy, z - fz
    u, v, w = u * u * (3 - 2 * u), v * v * (3 - 2 * v), w * w * (3 - 2 * w)
    h = U32(
        U32(np.int32(fx)) * _X + U32(np.int32(fy)) * _Y + U32(np.int32(fz)) * _Z + U32(seed) * _SEED
    )  # of the lower corner; those of the others differ by sums
    a = _mixed(h) * (1 - u) + _mixed(U32(h + _X)) * u
    b = _mixed(U32(h + _Y)) * (1 - u) + _mixed(U32(h + _X + _Y)) * u
    c = _mixed(U32(h + _Z)) * (1 - u) + _mixed(U32(h + _X + _Z)) * u
    d = _mixed(U32(h + _Y + _Z)) * (1 - u) + _mixed(U32(h + _X + _Y + _Z)) * u
    value: float = (a * (1 - v) + b * v) * (1 - w) + (c * (1 - v) + d * v) * w
    return value


@inlined
def flat_noise(x: float, y: float, seed: int) -> float:
    """Return smooth value noise of the plane in [0, 1)."""
    fx, fy = np.floor(x), np.floor(y)
    u, v = x - fx, y - fy
    u, v = u * u * (3 - 2 * u), v * v * (3 - 2 * v)
    h = U32(U32(np.int32(fx)) * _X + U32(np.int32(fy)) * _Y + U32(seed) * _SEED)
    a = _mixed(h) * (1 - u) + _mixed(U32(h + _X)) * u
    b = _mixed(U32(h + _Y)) * (1 - u) + _mixed(U32(h + _X + _Y)) * u
    value: float = a * (1 - v) + b * v
    return value


@inlined
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


@inlined
def mottled(x: float, y: float, z: float, size_m: float, pixel_m: float, seed: int) -> float:
    """Return noise around 0.5 with two octaves, the finer one half as strong; none where none can be seen."""
    coarse = (noise(x / size_m, y / size_m, z / size_m, seed) - 0.5) * sharpness(size_m, pixel_m)
    finer = 3.1 / size_m
    fine = (noise(x * finer, y * finer, z * finer, seed + 1) - 0.5) * sharpness(1 / finer, pixel_m)
    return 0.5 + 0.66 * coarse + 0.34 * fine


@compiled
def mottle(grain: Floats, pixel_m: Floats, seed: NDArray[np.int64], out: Floats) -> None:
    """Write `mottled` for many places: x, y, z and size are the rows of `grain` (4, N)."""
    x, y, z, size_m = grain[0], grain[1], grain[2], grain[3]
    for i in range(len(pixel_m)):
        out[i] = mottled(x[i], y[i], z[i], size_m[i], pixel_m[i], seed[i])


@inlined
def grain(  # noqa: PLR0911 - a table
    material: int, x: float, y: float, z: float
) -> tuple[float, float, float, float]:
    """Return where the mottling of a material is looked up for a place on it, and its size in metres."""
    if material == LEAVES:
        return x, y, z, 0.09
    if material == BARK:
        return x * 3, y * 3, z * 0.5, 0.08
    if material == CLOTH:
        return x, y, z * 0.6, 0.11
    if material == CHECKS:
        return x, y, z, 0.1
    if material == BANDS:
        return x, y, z, 0.12
    if material == PLANKS:
        return x * 2, y * 0.4, z * 2, 0.08
    if material == FACADE:
        return x + y, (x + y) * 0.3, z, 0.4
    if material == SACKING:
        return x, y, z, 0.05
    return x, y, z, 0.15


@inlined
def surface(
    material: int, mottling: float, seed: int, x: float, y: float, z: float, pixel_m: float
) -> tuple[float, float, float]:
    """Return lightness, share of the second colour, and gloss, 0..1, at a place in metres along the axes.

    `mottling` is `mottled` at the place that `grain` returns.
    """
    gloss, mix = 0.0, 0.0
    if material == LEAVES:
        light = 0.35 + 1.3 * mottling
        per = 1 / FRUIT_M
        mix = _fruit(x * per, y * per, z * per, sharpness(FRUIT_M, pixel_m), seed)
    elif material == BARK:
        light = 0.5 + mottling
    elif material == CLOTH:
        light = 0.72 + 0.56 * mottling
    elif material == CHECKS:
        light = 0.8 + 0.4 * mottling
        across = (math.floor(z / 0.05) + math.floor((x + y) / 0.05)) & 1
        mix = 0.5 + (across - 0.5) * sharpness(0.05, pixel_m)
    elif material == BANDS:
        light = 0.85 + 0.3 * mottling
        mix = 1.0 if abs(abs(z) - 0.08) < 0.025 else 0.0
        gloss = 0.3 * mix
    elif material == PLANKS:
        light = 0.55 + 0.9 * mottling
        gap = z / 0.11 - math.floor(z / 0.11)
        light *= 1 - 0.7 * sharpness(0.03, pixel_m) if gap < 0.22 else 1.0
    elif material == FACADE:
        light, mix = _facade(x + y, z, 0.85 + 0.3 * mottling, seed)
        gloss = 0.25 * mix
    elif material == SACKING:
        light = 0.6 + 0.8 * mottling
    else:
        light = 0.85 + 0.3 * mottling
        gloss = 0.3 if material == PAINT else 0.8 if material == GLASS else 0.0
    return light, mix, gloss


@inlined
def _fruit(x: float, y: float, z: float, sharp: float, seed: int) -> float:
    """Return `sharp` inside the round fruit that hang in some cells of a lattice, else 0."""
    if sharp == 0:
        return 0.0
    cx, cy, cz = math.floor(x), math.floor(y), math.floor(z)
    if chance(int(cx), int(cy), int(cz), seed) < 0.975:
        return 0.0
    u, v, w = x - cx - 0.5, y - cy - 0.5, z - cz - 0.5
    return sharp if u * u + v * v + w * w < 0.2 else 0.0


@inlined
def _facade(along: float, z: float, light: float, seed: int) -> tuple[float, float]:
    column, storey = math.floor(along / WINDOW_EVERY_M), math.floor(z / STOREY_M)
    u, v = along / WINDOW_EVERY_M - column, z / STOREY_M - storey
    if not (0.25 < u < 0.75 and 0.28 < v < 0.82):
        sill = 0.2 < u < 0.8 and 0.23 < v <= 0.28
        return light * (1.25 if sill else 1.0), 0.0
    if abs(u - 0.5) < 0.02 or abs(v - 0.6) < 0.015:
        return light, 0.0
    return 0.4 + 0.9 * chance(int(column), int(storey), 1, seed), 1.0


@compiled
def ground(place: int, x: Floats, y: Floats, pixel_m: Floats, seed: int, layers: Floats) -> None:
    """Write the noises (4, N) that the ground at places (N,) is made of; `soil` makes colours of them.

    One loop for each: with one result, a compiler can tell that it does not overwrite what is read. Places
    are multiplied by constants, as a division takes longer than the rest of a noise.
    """
    edge, detail, coarse, dry = layers[0], layers[1], layers[2], layers[3]
    if place == STREET_GROUND:
        for i in range(len(x)):
            detail[i] = 0.5 * (
                sharpness(0.03, pixel_m[i]) * (flat_noise(x[i] * (1 / 0.03), y[i] * (1 / 0.03), seed) - 0.5)
            )
        for i in range(len(x)):
            middle = flat_noise(x[i] * (1 / 0.25), y[i] * (1 / 0.25), seed + 1) - 0.5
            edge[i] = 0.3 * (sharpness(0.25, pixel_m[i]) * middle)
        for i in range(len(x)):
            coarse[i] = flat_noise(x[i] * (1 / 3.0), y[i] * (1 / 0.8), seed + 2) - 0.5
        for i in range(len(x)):
            dry[i] = flat_noise(x[i] * (1 / 0.1), y[i] * (1 / 0.1), seed + 3)
        return
    for i in range(len(x)):
        near = flat_noise(x[i] * (1 / 0.7), y[i] * (1 / 0.7), seed + 7) - 0.5
        edge[i] = 0.35 * near + 0.5 * (flat_noise(x[i] * (1 / 3.0), y[i] * (1 / 3.0), seed + 8) - 0.5)
    for i in range(len(x)):
        fine = flat_noise(x[i] * (1 / 0.05), y[i] * (1 / 0.022), seed) - 0.5
        middle = flat_noise(x[i] * (1 / 0.16), y[i] * (1 / 0.11), seed + 1) - 0.5
        detail[i] = 1.3 * fine * sharpness(0.03, pixel_m[i]) + 0.8 * middle * sharpness(0.13, pixel_m[i])
    for i in range(len(x)):
        coarse[i] = flat_noise(x[i] * (1 / 1.3), y[i] * (1 / 1.3), seed + 2) - 0.5
    for i in range(len(x)):
        dry[i] = min(max(flat_noise(x[i] * (1 / 2.1), y[i] * (1 / 2.1), seed + 3) * 1.6 - 0.45, 0.0), 1.0)


@inlined
def soil(
    place: int, x: float, y: float, edge: float, detail: float, coarse: float, dry: float
) -> tuple[float, float, float, bool]:
    """Return the reflectance of the ground, and whether it is the way (dirt track, road)."""
    if place == STREET_GROUND:
        light = 0.085 * (1 + detail + edge + 0.4 * coarse)
        dash = x / 6 - math.floor(x / 6) < 0.5
        if abs(y) < 0.07 and dash and dry > 0.2:
            light = 0.55
        return light, light, light * 1.05, True
    if abs(abs(y) - 0.85) + edge < 0.36:  # two wheel tracks, grass between them and beside
        light = 1 + 0.7 * detail + 0.4 * coarse
        return 0.25 * light, 0.175 * light, 0.105 * light, True
    light = 1 + 1.3 * detail + 0.5 * coarse
    red, green, blue = 0.095 + 0.125 * dry, 0.140 + 0.060 * dry, 0.042 + 0.031 * dry
    return red * light, green * light, blue * light, False


@compiled
def clouds(dx: Floats, dy: Floats, dz: Floats, cloud: float, seed: int, white: Floats) -> None:
    """Write how much cloud (N,) there is in directions (unit vectors); `cloud` is the share they cover."""
    for i in range(len(dx)):
        up = max(dz[i], 0.0)
        nearer = 1 / (up + 0.12)
        x, y = dx[i] * nearer, dy[i] * nearer
        n = 0.6 * flat_noise(x * 0.8, y * 0.8, seed) + 0.3 * flat_noise(x * 2.1, y * 2.1, seed + 1)
        n += 0.1 * flat_noise(x * 6, y * 6, seed + 2)
        white[i] = min(max((n - 1 + cloud) * 4 + 0.5, 0.0), 1.0)


@inlined
def sky(dz: float, white: float) -> tuple[float, float, float]:
    """Return the light of the sky in a direction with so much cloud."""
    fade = 1 / (1 + 4.5 * max(dz, 0.0))
    red, green, blue = 0.16 + 0.50 * fade, 0.33 + 0.42 * fade, 0.68 + 0.20 * fade
    return (
        red + (0.92 - red) * white * 0.85,
        green + (0.92 - green) * white * 0.85,
        blue + (0.92 - blue) * white * 0.85,
    )


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

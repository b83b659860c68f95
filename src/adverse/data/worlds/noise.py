"""Procedural randomness of textures: a hash of whole numbers, and value noise over it.

A texture is a pure function of where it is looked at, so both eyes and all frames see the same leaf.
"""

from __future__ import annotations

import math

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

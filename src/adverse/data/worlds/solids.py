"""The shapes everything is built from: three convex solids, each a unit solid under an affine map.

A ray stays a ray under an affine map, so ellipsoids, boxes and (tapered, elliptic) cylinders of any pose need
one intersection each: the stretch of the ray that lies inside the unit solid.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from adverse.data.worlds.compiled import compiled, inlined
from adverse.data.worlds.textures import Rgb, linear

BALL, BRICK, STEM = 0, 1, 2
"""Unit solids: |p| <= 1; all |coordinates| <= 1; |z| <= 1, of radius 1 at the foot, `taper` at the top."""
EMPTY = (1.0, -1.0)
ROW = 29
"""Numbers that describe a solid."""
Floats = NDArray[np.float64]


class Solids(NamedTuple):
    """N solids as arrays, so that compiled loops can walk them."""

    kind: NDArray[np.int64]
    centre_m: Floats  # (N, 3) in the world
    inverse: Floats  # (N, 3, 3): world offset from the centre -> unit coordinates
    size_m: Floats  # (N, 3): unit coordinates -> metres along the solid's own axes
    taper: Floats
    reach_m: Floats  # radius of a sphere around the centre that holds it all
    holes: Floats  # share of the surface that is not there (foliage)
    material: NDArray[np.int64]
    colour: Floats  # (N, 3) linear reflectance
    second: Floats  # (N, 3) the other colour of patterns
    seed: NDArray[np.int64]  # of its texture
    label: NDArray[np.uint8]
    instance: NDArray[np.int64]  # 0: none


@dataclass(frozen=True)
class Look:
    """What a surface is like: a material of `textures`, two colours, a seed for its pattern, holes."""

    material: int
    colour: Rgb
    second: Rgb = (0, 0, 0)
    seed: int = 0
    holes: float = 0.0


@dataclass
class Builder:
    """Collects solids of one class and instance; positions in metres, axes as unit vectors in the world."""

    label: int
    instance: int = 0
    _rows: list[tuple[float, ...]] = field(default_factory=list)

    def ball(self, centre: ArrayLike, radii: ArrayLike, look: Look, axes: ArrayLike | None = None) -> None:
        """Add an ellipsoid; the columns of `axes` are its own directions."""
        self._add(BALL, centre, radii, look, axes)

    def brick(self, centre: ArrayLike, half: ArrayLike, look: Look, axes: ArrayLike | None = None) -> None:
        """Add a box by its half sizes."""
        self._add(BRICK, centre, half, look, axes)

    def stem(
        self,
        foot: ArrayLike,
        top: ArrayLike,
        radius: float,
        look: Look,
        *,
        top_radius: float | None = None,
        wide: float = 1.0,
        across: ArrayLike = (0.0, 1.0, 0.0),
    ) -> None:
        """Add a tapered cylinder from foot to top, `wide` times as wide along `across`."""
        ax, ay, az = _numbers(foot)
        bx, by, bz = _numbers(top)
        zx, zy, zz = bx - ax, by - ay, bz - az
        length = math.sqrt(zx * zx + zy * zy + zz * zz)
        zx, zy, zz = zx / length, zy / length, zz / length
        yx, yy, yz = _numbers(across)
        part = yx * zx + yy * zy + yz * zz
        yx, yy, yz = yx - zx * part, yy - zy * part, yz - zz * part
        if yx * yx + yy * yy + yz * yz < 1e-6:  # the stem itself runs across
            yx, yy, yz = 1.0 - zx * zx, -zy * zx, -zz * zx
        size = math.sqrt(yx * yx + yy * yy + yz * yz)
        yx, yy, yz = yx / size, yy / size, yz / size
        axes = (
            (yy * zz - yz * zy, yx, zx),
            (yz * zx - yx * zz, yy, zy),
            (yx * zy - yy * zx, yz, zz),
        )
        taper = 1.0 if top_radius is None else top_radius / radius
        middle = ((ax + bx) / 2, (ay + by) / 2, (az + bz) / 2)
        self._add(STEM, middle, (radius, radius * wide, length / 2), look, axes, taper)

    def solids(self) -> Solids:
        """Return all that was added."""
        return _stacked(self._rows)

    def _add(
        self,
        kind: int,
        centre: ArrayLike,
        size: ArrayLike,
        look: Look,
        axes: ArrayLike | None,
        taper: float = 1.0,
    ) -> None:
        a, b, c = _numbers(size)
        x, y, z = UPRIGHT if axes is None else np.asarray(axes, float).tolist()
        side = max(a, b) * max(1.0, taper)
        reach = (
            max(a, b, c) if kind == BALL else math.hypot(a, b, c) if kind == BRICK else math.hypot(side, c)
        )
        row = (
            kind,
            *_numbers(centre),
            *(x[0] / a, y[0] / a, z[0] / a, x[1] / b, y[1] / b, z[1] / b, x[2] / c, y[2] / c, z[2] / c),
            *(a, b, c, taper, reach, look.holes, look.material),
            *_reflectance(look.colour),
            *_reflectance(look.second),
            *(look.seed, self.label, self.instance),
        )
        self._rows.append(row)


UPRIGHT = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


def _numbers(values: ArrayLike) -> list[float]:
    """Return three numbers as Python's own, which are faster than arrays of three."""
    found: list[float] = np.asarray(values, float).tolist()
    return found


@functools.cache
def _reflectance(colour: Rgb) -> tuple[float, ...]:
    return tuple(linear(colour).tolist())


def joined(parts: Sequence[Solids]) -> Solids:
    """Put several collections of solids together, in order."""
    return Solids(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _stacked(rows: Sequence[tuple[float, ...]]) -> Solids:
    shapes = {"centre_m": (3,), "inverse": (3, 3), "size_m": (3,), "colour": (3,), "second": (3,)}
    whole = ("kind", "material", "seed", "instance")
    table = np.array(rows, np.float64).reshape(len(rows), ROW)
    arrays, at = [], 0
    for name in Solids._fields:
        dtype = np.int64 if name in whole else np.uint8 if name == "label" else np.float64
        shape = shapes.get(name, ())
        column = table[:, at : at + math.prod(shape)]
        arrays.append(column.astype(dtype, "C").reshape(len(rows), *shape))
        at += math.prod(shape)
    return Solids._make(arrays)


@compiled
def stretch(
    kind: int, taper: float, ox: float, oy: float, oz: float, dx: float, dy: float, dz: float
) -> tuple[float, float]:
    """Return (t0, t1), where the ray o + t d in unit coordinates enters and leaves; t0 > t1: it misses."""
    if kind == BALL:
        return through_ball(ox, oy, oz, dx, dy, dz)
    if kind == BRICK:
        return through_brick(ox, oy, oz, dx, dy, dz)
    return through_stem(taper, ox, oy, oz, dx, dy, dz)


@inlined
def through_ball(ox: float, oy: float, oz: float, dx: float, dy: float, dz: float) -> tuple[float, float]:
    """Return where a ray enters and leaves the unit ball."""
    return _between_roots(
        dx * dx + dy * dy + dz * dz, ox * dx + oy * dy + oz * dz, ox * ox + oy * oy + oz * oz - 1
    )


@inlined
def through_brick(ox: float, oy: float, oz: float, dx: float, dy: float, dz: float) -> tuple[float, float]:
    """Return where a ray enters and leaves the unit box."""
    x0, x1 = _slab(ox, dx)
    y0, y1 = _slab(oy, dy)
    z0, z1 = _slab(oz, dz)
    return max(x0, y0, z0), min(x1, y1, z1)


@inlined
def through_stem(
    taper: float, ox: float, oy: float, oz: float, dx: float, dy: float, dz: float
) -> tuple[float, float]:
    """Return where a ray enters and leaves the unit stem."""
    z0, z1 = _slab(oz, dz)
    if z0 > z1:
        return EMPTY
    middle, slope = (1 + taper) / 2, (taper - 1) / 2  # radius = middle + slope * z
    r, dr = middle + slope * oz, slope * dz
    a, b, c = dx * dx + dy * dy - dr * dr, ox * dx + oy * dy - r * dr, ox * ox + oy * oy - r * r
    if a > 0:
        s0, s1 = _between_roots(a, b, c)
    else:  # steeper than the side: inside on the far side of one root, where the radius is positive
        root = math.sqrt(max(b * b - a * c, 0.0))
        if a == 0:
            s0, s1 = (-np.inf, np.inf) if c <= 0 else EMPTY
        elif dr > 0:
            s0, s1 = (-b - root) / a, np.inf
        else:
            s0, s1 = -np.inf, (-b + root) / a
    return max(z0, s0), min(z1, s1)


@inlined
def outward(
    kind: int, taper: float, inverse: Floats, index: int, x: float, y: float, z: float
) -> tuple[float, float, float]:
    """Return the world's unit normal of a solid at a point of its surface in unit coordinates."""
    if kind == BRICK:
        ax, ay, az = abs(x), abs(y), abs(z)
        if ax >= ay and ax >= az:
            nx, ny, nz = math.copysign(1.0, x), 0.0, 0.0
        elif ay >= az:
            nx, ny, nz = 0.0, math.copysign(1.0, y), 0.0
        else:
            nx, ny, nz = 0.0, 0.0, math.copysign(1.0, z)
    elif kind == STEM:
        slope = (taper - 1) / 2
        radius = (1 + taper) / 2 + slope * z
        if abs(z) > 0.999999:
            nx, ny, nz = 0.0, 0.0, z
        else:
            nx, ny, nz = x, y, -slope * radius
    else:
        nx, ny, nz = x, y, z
    wx = inverse[index, 0, 0] * nx + inverse[index, 1, 0] * ny + inverse[index, 2, 0] * nz
    wy = inverse[index, 0, 1] * nx + inverse[index, 1, 1] * ny + inverse[index, 2, 1] * nz
    wz = inverse[index, 0, 2] * nx + inverse[index, 1, 2] * ny + inverse[index, 2, 2] * nz
    shorter = 1 / math.sqrt(wx * wx + wy * wy + wz * wz)
    return wx * shorter, wy * shorter, wz * shorter


@inlined
def _between_roots(a: float, b: float, c: float) -> tuple[float, float]:
    """Return where a t^2 + 2 b t + c <= 0 for a > 0."""
    under = b * b - a * c
    if under < 0:
        return EMPTY
    root = math.sqrt(under)
    return (-b - root) / a, (-b + root) / a


@inlined
def _slab(o: float, d: float) -> tuple[float, float]:
    """Return where |o + t d| <= 1."""
    if d == 0:
        return (-np.inf, np.inf) if abs(o) <= 1 else EMPTY
    t0, t1 = (-1 - o) / d, (1 - o) / d
    return min(t0, t1), max(t0, t1)

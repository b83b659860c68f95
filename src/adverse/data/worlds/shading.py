"""How much light each pixel receives: texture, the sun with cast shadows, the sky, a little gloss.

Which points the sun reaches: rays towards it, tested only against solids near the ray.

Seen from the sun, every ray towards it is one point. A grid over that view lists the solids of each cell.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.data.worlds import textures
from adverse.data.worlds.casting import GROUND, SKY, Owners, first_leaf
from adverse.data.worlds.compiled import compiled, inlined
from adverse.data.worlds.solids import Solids, outward, stretch
from adverse.data.worlds.textures import LEAVES

CELL_M = 0.5
REACH_M = 60.0
"""Shadows are cast within this distance of the camera; farther away they are finer than a pixel's worth."""
Floats = NDArray[np.float64]
Whole = NDArray[np.int64]


class SunGrid(NamedTuple):
    """The solids in each cell of the sun's view: `members[starts[cell] : starts[cell + 1]]`."""

    sun: Floats  # unit vector towards the sun
    right: Floats
    up: Floats
    corner: Floats  # (2,) of the first cell
    cells: int  # per side
    starts: Whole
    members: Whole
    towards: Floats  # (N, 3): the direction to the sun in the unit coordinates of each solid


def sun_grid(solids: Solids, sun: Floats, middle_m: Floats) -> SunGrid:
    """Sort solids into the sun's view, around a point in the world."""
    right = np.cross([0.0, 0.0, 1.0], sun)
    right /= np.sqrt(right @ right)
    up = np.cross(sun, right)
    cells = int(2 * REACH_M / CELL_M)
    corner = np.array([middle_m @ right, middle_m @ up]) - REACH_M
    starts, members = _filled(solids, right, up, corner, cells)
    return SunGrid(sun, right, up, corner, cells, starts, members, _towards(solids, sun))


@compiled
def _filled(solids: Solids, right: Floats, up: Floats, corner: Floats, cells: int) -> tuple[Whole, Whole]:
    starts = np.zeros(cells * cells + 1, np.int64)
    members = np.empty(0, np.int64)
    for filling in range(2):  # first count, then fill from the back, which leaves the starts in place
        if filling:
            starts = np.cumsum(starts)
            members = np.empty(starts[-1], np.int64)
        for index in range(len(solids.kind)):
            x = (solids.centre_m[index] @ right - corner[0]) / CELL_M
            y = (solids.centre_m[index] @ up - corner[1]) / CELL_M
            reach = solids.reach_m[index] / CELL_M
            for row in range(max(int(y - reach), 0), min(int(y + reach) + 1, cells)):
                for column in range(max(int(x - reach), 0), min(int(x + reach) + 1, cells)):
                    cell = row * cells + column
                    starts[cell] += -1 if filling else 1
                    if filling:
                        members[starts[cell]] = index
    return starts, members


@compiled
def _towards(solids: Solids, sun: Floats) -> Floats:
    """Return the direction to the sun in the unit coordinates of every solid (N,3)."""
    found = np.empty((len(solids.kind), 3))
    for index in range(len(found)):
        m = solids.inverse[index]
        for axis in range(3):
            found[index, axis] = m[axis, 0] * sun[0] + m[axis, 1] * sun[1] + m[axis, 2] * sun[2]
    return found


@inlined
def sunlit(
    solids: Solids, grid: SunGrid, px: float, py: float, pz: float, pixel_at_1m: float, recent: Whole
) -> bool:
    """Tell whether a point (already lifted off its own surface) sees the sun.

    `recent` (1,) is the solid that was last in the way (-1: none): it is often in the way of the next point.
    """
    x = (px * grid.right[0] + py * grid.right[1] + pz * grid.right[2] - grid.corner[0]) / CELL_M
    y = (px * grid.up[0] + py * grid.up[1] + pz * grid.up[2] - grid.corner[1]) / CELL_M
    column, row = math.floor(x), math.floor(y)
    if not (0 <= column < grid.cells and 0 <= row < grid.cells):
        return True
    cell = row * grid.cells + column
    first = recent[0]
    for at in range(grid.starts[cell] - (first >= 0), grid.starts[cell + 1]):
        index = first if at < grid.starts[cell] else grid.members[at]
        wx = px - solids.centre_m[index, 0]
        wy = py - solids.centre_m[index, 1]
        wz = pz - solids.centre_m[index, 2]
        along = wx * grid.sun[0] + wy * grid.sun[1] + wz * grid.sun[2]
        reach = solids.reach_m[index]
        if along > reach or wx * wx + wy * wy + wz * wz - along * along > reach * reach:
            continue
        m = solids.inverse
        ox = m[index, 0, 0] * wx + m[index, 0, 1] * wy + m[index, 0, 2] * wz
        oy = m[index, 1, 0] * wx + m[index, 1, 1] * wy + m[index, 1, 2] * wz
        oz = m[index, 2, 0] * wx + m[index, 2, 1] * wy + m[index, 2, 2] * wz
        dx, dy, dz = grid.towards[index, 0], grid.towards[index, 1], grid.towards[index, 2]
        t0, t1 = stretch(solids.kind[index], solids.taper[index], ox, oy, oz, dx, dy, dz)
        if t0 > t1 or t1 <= 0:
            continue
        holes, seed = solids.holes[index], solids.seed[index]
        sx, sy, sz = solids.size_m[index, 0], solids.size_m[index, 1], solids.size_m[index, 2]
        leaf = first_leaf(t0, t1, holes, ox, oy, oz, dx, dy, dz, sx, sy, sz, seed, pixel_at_1m)
        if 0 < leaf < np.inf:
            recent[0] = index
            return False
    return True


LEAF_DEPTH_M = 0.05
"""How far a ray to the sun starts above foliage, so that a leaf does not shade itself."""
SURFACE_M = 2e-3
INSIDE = 0.6
"""Share of the sky that reaches the inside of a crown."""
SHADOW_PIXEL = 1e-3
"""Gaps in foliage as the sun sees them: fully sharp at any distance that matters."""


class Light(NamedTuple):
    """The day: strength of the sun and of the sky as RGB, share of clouds, which ground, seed of it all."""

    sun: Floats
    sky: Floats
    cloud: float
    place: int
    seed: int


@compiled
def shade(
    solids: Solids,
    grid: SunGrid,
    light: Light,
    eye: Floats,
    turn: Floats,
    lens: Floats,
    depth_m: Floats,
    owner: Owners,
    radiance: Floats,
    on_way: NDArray[np.bool_],
) -> None:
    """Fill radiance (H, W, 3), linear, where depth and owner are known; mark the ground that is the way."""
    height, width = owner.shape
    colour, point, normal, local = np.empty(3), np.empty(3), np.empty(3), np.empty(3)
    recent = np.full(1, -1)
    for v in range(height):
        y = (v - lens[3]) / lens[1]
        for u in range(width):
            x = (u - lens[2]) / lens[0]
            dx = turn[0, 0] * x + turn[0, 1] * y + turn[0, 2]
            dy = turn[1, 0] * x + turn[1, 1] * y + turn[1, 2]
            dz = turn[2, 0] * x + turn[2, 1] * y + turn[2, 2]
            length = math.sqrt(dx * dx + dy * dy + dz * dz)
            index, t = owner[v, u], depth_m[v, u]
            if index == SKY:
                textures.sky(dx / length, dy / length, dz / length, light.cloud, light.seed, colour)
                for channel in range(3):
                    radiance[v, u, channel] = colour[channel] * light.sky[channel]
                continue
            point[0], point[1], point[2] = eye[0] + t * dx, eye[1] + t * dy, eye[2] + t * dz
            pixel_m = t * length / lens[0]
            gloss, leafy, open_sky, facing = 0.0, False, 1.0, -1.0
            if index == GROUND:
                normal[0], normal[1], normal[2] = 0.0, 0.0, 1.0
                pixel_m *= math.sqrt(min(length * t / eye[2], 8.0))  # seen at a slant, a pixel is longer
                on_way[v, u] = textures.ground(light.place, point[0], point[1], pixel_m, light.seed, colour)
            else:
                gloss = _solid_at(solids, index, point, pixel_m, colour, normal, local)
                leafy = solids.material[index] == LEAVES
                facing = (normal[0] * dx + normal[1] * dy + normal[2] * dz) / length
                if facing > 0:  # the far side, seen through a gap
                    normal[0], normal[1], normal[2] = -normal[0], -normal[1], -normal[2]
                    open_sky = INSIDE
            direct = _direct(solids, grid, point, normal, leafy, recent)
            around = open_sky * (0.55 + 0.45 * normal[2])  # what hides the sky gives some light too
            mirror = _mirror(gloss, 1 - abs(facing), normal[2])
            for channel in range(3):
                lit = light.sun[channel] * direct + light.sky[channel] * around
                radiance[v, u, channel] = colour[channel] * lit + mirror * light.sky[channel]


@inlined
def _solid_at(
    solids: Solids, index: int, point: Floats, pixel_m: float, colour: Floats, normal: Floats, local: Floats
) -> float:
    """Write colour and outward normal of a solid at a point of its surface; return its gloss."""
    m = solids.inverse[index]
    for axis in range(3):
        local[axis] = 0.0
        for other in range(3):
            local[axis] += m[axis, other] * (point[other] - solids.centre_m[index, other])
    nx, ny, nz = outward(solids.kind[index], solids.taper[index], m, local[0], local[1], local[2])
    normal[0], normal[1], normal[2] = nx, ny, nz
    for axis in range(3):
        local[axis] *= solids.size_m[index, axis]
    return textures.surface(
        solids.material[index],
        solids.colour[index],
        solids.second[index],
        solids.seed[index],
        local,
        pixel_m,
        colour,
    )


@inlined
def _direct(
    solids: Solids,
    grid: SunGrid,
    point: Floats,
    normal: Floats,
    leafy: bool,  # noqa: FBT001
    recent: Whole,
) -> float:
    """Return the share of the sun's light that a surface takes up; leaves let light through."""
    facing: float = normal[0] * grid.sun[0] + normal[1] * grid.sun[1] + normal[2] * grid.sun[2]
    if facing <= 0 and not leafy:
        return 0.0
    above = LEAF_DEPTH_M if leafy else SURFACE_M
    if facing < 0:
        above = -above
    x, y, z = point[0] + above * normal[0], point[1] + above * normal[1], point[2] + above * normal[2]
    if not sunlit(solids, grid, x, y, z, SHADOW_PIXEL, recent):
        return 0.0
    return 0.3 + 0.7 * abs(facing) if leafy else facing


@compiled
def _mirror(gloss: float, slant: float, upward: float) -> float:
    """Return the share of the sky that a glossy surface mirrors: more at a slant (after Fresnel, Schlick)."""
    return gloss * (0.08 + 0.92 * slant * slant * slant) * (0.4 + 0.6 * max(upward, 0.0))

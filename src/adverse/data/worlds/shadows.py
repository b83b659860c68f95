"""Which points the sun reaches: rays towards it, tested only against solids near the ray.

Seen from the sun, every ray towards it is one point. A grid over that view lists the solids of each cell.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.data.worlds.casting import NEAREST_M, half_axes
from adverse.data.worlds.compiled import compiled, inlined
from adverse.data.worlds.foliage import BATCH, density, leaves
from adverse.data.worlds.solids import BALL, Solids, stretch

CELL_M = 0.375
REACH_M = 60.0
"""Shadows are cast within this distance of the camera; farther away they are finer than a pixel's worth."""
MARGIN_M = 0.75
"""A grid is larger by this on every side, so that it serves both eyes."""
SLACK = 1e-6
"""By how much outlines are widened (metres, and share), so that rounding never loses a shadow."""
SHADOW_PIXEL = 1e-3
"""Gaps in foliage as the sun sees them: fully sharp at any distance that matters."""
Floats = NDArray[np.float64]
Whole = NDArray[np.int64]


class SunGrid(NamedTuple):
    """The solids in each cell of the sun's view: `members[starts[cell] : starts[cell + 1]]`, foliage last."""

    axes: Floats  # (3, 3): columns are right and up in the sun's view, and the unit vector towards the sun
    corner: Floats  # (2,) of the first cell
    reach: Floats  # (2,) the corner of the region around the camera where shadows are cast
    cells: int  # per side
    starts: Whole
    members: Whole
    records: Floats  # (N, 32): see `_recorded`


def sun_grid(solids: Solids, sun: Floats, middle_m: Floats) -> SunGrid:
    """Sort solids into the sun's view, around a point in the world."""
    x, y, z = sun.tolist()
    flat = math.sqrt(x * x + y * y)
    across, along = x / flat, y / flat
    axes = np.array([[-along, -z * across, x], [across, -z * along, y], [0.0, x * across + y * along, z]])
    cells = int(2 * (REACH_M + MARGIN_M) / CELL_M)
    reach = middle_m @ axes[:, :2] - REACH_M
    corner = reach - MARGIN_M
    records = _recorded(solids, axes)
    starts, members = _filled(records, corner, cells)
    return SunGrid(axes, corner, reach, cells, starts, members, records)


def moved(grid: SunGrid, middle_m: Floats) -> SunGrid | None:
    """Return the same grid for a camera close by, such as the other eye; None if it is too far."""
    reach = middle_m @ grid.axes[:, :2] - REACH_M
    return grid._replace(reach=reach) if np.abs(reach - grid.corner - MARGIN_M).max() < MARGIN_M else None


@compiled
def _recorded(solids: Solids, axes: Floats) -> Floats:
    """Return (N, 32) all that a ray to the sun asks of a solid, side by side in memory.

    First what it looks like from the sun: its middle along right and up, half its extents, the height of its
    top along the sun, and a, b, c of the ellipse a x^2 + b x y + c y^2 <= 1 that a ball is (0 for others: no
    more than the extents is known). Then kind, taper, holes, seed, centre (3), the map into unit coordinates
    (9), the direction to the sun in them (3), size (3).
    """
    records = np.zeros((len(solids.kind), 32))
    across = np.empty((3, 3))
    centre, inverse = solids.centre_m, solids.inverse
    kind, taper, holes, seed, size = solids.kind, solids.taper, solids.holes, solids.seed, solids.size_m
    for index in range(len(records)):
        half = half_axes(solids, index, axes)
        ball = kind[index] == BALL
        for other in range(3):
            middle, reach = 0.0, 0.0
            for axis in range(3):
                middle += centre[index, axis] * axes[axis, other]
                reach += half[axis, other] * half[axis, other] if ball else abs(half[axis, other])
                across[other, axis] = (
                    inverse[index, axis, 0] * axes[0, other]
                    + inverse[index, axis, 1] * axes[1, other]
                    + inverse[index, axis, 2] * axes[2, other]
                )
                records[index, 15 + 3 * axis + other] = inverse[index, axis, other]
            reach = (math.sqrt(reach) if ball else reach) * (1 + SLACK) + SLACK
            if other < 2:
                records[index, other], records[index, 2 + other] = middle, reach
            else:
                records[index, 4] = middle + reach
            records[index, 12 + other] = centre[index, other]
            records[index, 27 + other] = size[index, other]
        for axis in range(3):
            records[index, 24 + axis] = across[2, axis]
        records[index, 8], records[index, 9] = kind[index], taper[index]
        records[index, 10], records[index, 11] = holes[index], seed[index]
        if ball:  # right and up in unit coordinates, less what of them lies along the sun
            xx, xy, yy = _dot(across, 0, 0), _dot(across, 0, 1), _dot(across, 1, 1)
            xz, yz, zz = _dot(across, 0, 2), _dot(across, 1, 2), _dot(across, 2, 2)
            records[index, 5] = (xx - xz * xz / zz) * (1 - SLACK)
            records[index, 6] = 2 * (xy - xz * yz / zz) * (1 - SLACK)
            records[index, 7] = (yy - yz * yz / zz) * (1 - SLACK)
    return records


@inlined
def _dot(rows: Floats, i: int, j: int) -> float:
    total: float = rows[i, 0] * rows[j, 0] + rows[i, 1] * rows[j, 1] + rows[i, 2] * rows[j, 2]
    return total


@compiled
def _filled(records: Floats, corner: Floats, cells: int) -> tuple[Whole, Whole]:
    starts = np.zeros(cells * cells + 1, np.int64)
    members = np.empty(0, np.int64)
    for filling in range(
        3
    ):  # count; then fill from the back, foliage first, which leaves the starts in place
        if filling == 1:
            starts = np.cumsum(starts)
            members = np.empty(starts[-1], np.int64)
        for index in range(len(records)):
            if filling and (records[index, 10] > 0) == (filling == 2):
                continue
            x, y = (records[index, 0] - corner[0]) / CELL_M, (records[index, 1] - corner[1]) / CELL_M
            wide, high = records[index, 2] / CELL_M, records[index, 3] / CELL_M
            for row in range(max(math.floor(y - high), 0), min(math.floor(y + high) + 1, cells)):
                for column in range(max(math.floor(x - wide), 0), min(math.floor(x + wide) + 1, cells)):
                    cell = row * cells + column
                    if filling:
                        starts[cell] -= 1
                        members[starts[cell]] = index
                    else:
                        starts[cell] += 1
    return starts, members


@compiled
def find_shadows(  # noqa: C901, PLR0912, PLR0915 - one loop: a call in it would count references to arrays
    grid: SunGrid, x: Floats, y: Floats, z: Floats, own: Whole, lit: NDArray[np.bool_]
) -> None:
    """Tell for points (N,), already lifted off their own surfaces, whether they see the sun.

    `own` are solids that cannot be in the way of each (-1: none). Every point looks at the solids of its cell
    until one is in the way for sure, or may be: foliage. What may be is then looked at together, and points
    that a gap lets through go on.
    """
    count = len(x)
    view = np.empty((3, count))
    for axis in range(3):
        a, b, c, out = grid.axes[0, axis], grid.axes[1, axis], grid.axes[2, axis], view[axis]
        for i in range(count):
            out[i] = x[i] * a + y[i] * b + z[i] * c
    at, end = np.empty(count, np.int64), np.empty(count, np.int64)
    waiting = np.empty(count, np.int64)
    left = 0
    for i in range(count):
        lit[i] = True
        column = math.floor((view[0, i] - grid.corner[0]) / CELL_M)
        row = math.floor((view[1, i] - grid.corner[1]) / CELL_M)
        within = (
            0 <= view[0, i] - grid.reach[0] < 2 * REACH_M and 0 <= view[1, i] - grid.reach[1] < 2 * REACH_M
        )
        if within and 0 <= column < grid.cells and 0 <= row < grid.cells:
            cell = row * grid.cells + column
            at[i], end[i] = grid.starts[cell], grid.starts[cell + 1]
            if at[i] < end[i]:
                waiting[left] = i
                left += 1
    records, members = grid.records, grid.members
    points, ray, dense = np.empty((3, BATCH)), np.empty((3, BATCH)), np.empty(BATCH)
    whose, seeds = np.empty(BATCH, np.int64), np.empty(BATCH, np.int64)
    while left:
        begun, left = left, 0
        found, done = 0, 0
        while done < begun:
            i = waiting[done]
            done += 1
            a, b, c = view[0, i], view[1, i], view[2, i]
            k, last, before = at[i], end[i], found
            while k < last and found == before:
                index = members[k]
                k += 1
                u, v = a - records[index, 0], b - records[index, 1]
                if (  # without short cuts: guessing wrong takes longer than all of this
                    (abs(u) > records[index, 2])
                    | (abs(v) > records[index, 3])
                    | (c > records[index, 4])
                    | ((records[index, 5] * u + records[index, 6] * v) * u + records[index, 7] * v * v > 1)
                    | (index == own[i])
                ):
                    continue
                wx, wy, wz = x[i] - records[index, 12], y[i] - records[index, 13], z[i] - records[index, 14]
                ox = records[index, 15] * wx + records[index, 16] * wy + records[index, 17] * wz
                oy = records[index, 18] * wx + records[index, 19] * wy + records[index, 20] * wz
                oz = records[index, 21] * wx + records[index, 22] * wy + records[index, 23] * wz
                dx, dy, dz = records[index, 24], records[index, 25], records[index, 26]
                t0, t1 = stretch(int(records[index, 8]), records[index, 9], ox, oy, oz, dx, dy, dz)
                if t0 > t1 or t1 <= 0:
                    continue
                holes = records[index, 10]
                if holes == 0:
                    lit[i] = False
                    break
                for t in (t0, t1):
                    if t > NEAREST_M:
                        points[0, found] = (ox + t * dx) * records[index, 27]
                        points[1, found] = (oy + t * dy) * records[index, 28]
                        points[2, found] = (oz + t * dz) * records[index, 29]
                        ray[0, found], ray[1, found], ray[2, found] = t, t1 - t0, holes
                        whose[found], seeds[found] = i, int(records[index, 11])
                        found += 1
            at[i] = k
            if found > BATCH - 2 or (done == begun and found):
                density(ray[0, :found], ray[1], ray[2], SHADOW_PIXEL, dense)
                leaves(points[0, :found], points[1, :found], points[2, :found], seeds[:found], dense[:found])
                for entry in range(found):
                    if dense[entry] > 0:
                        lit[whose[entry]] = False
                for entry in range(found):
                    i = whose[entry]
                    if lit[i] and at[i] < end[i] and (entry == 0 or whose[entry - 1] != i):
                        waiting[left] = i  # never past what is done
                        left += 1
                found = 0

"""Which points the sun reaches: rays towards it, tested only against solids near the ray.

Seen from the sun, every ray towards it is one point. A grid over that view lists the solids of each cell.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.data.worlds.casting import NEAREST_M, half_axes
from adverse.data.worlds.compiled import compiled
from adverse.data.worlds.foliage import BATCH, density, leaves
from adverse.data.worlds.solids import BALL, Solids, stretch

CELL_M = 0.5
REACH_M = 60.0
"""Shadows are cast within this distance of the camera; farther away they are finer than a pixel's worth."""
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
    cells: int  # per side
    starts: Whole
    members: Whole
    outlines: Floats  # (N, 8): see `_outlines`
    towards: Floats  # (N, 3): the direction to the sun in the unit coordinates of each solid


def sun_grid(solids: Solids, sun: Floats, middle_m: Floats) -> SunGrid:
    """Sort solids into the sun's view, around a point in the world."""
    right = np.cross([0.0, 0.0, 1.0], sun)
    right /= np.sqrt(right @ right)
    axes = np.stack([right, np.cross(sun, right), sun], axis=1)
    cells = int(2 * REACH_M / CELL_M)
    corner = middle_m @ axes[:, :2] - REACH_M
    outlines, towards = _outlines(solids, axes)
    starts, members = _filled(outlines, solids.holes, corner, cells)
    return SunGrid(axes, corner, cells, starts, members, outlines, towards)


@compiled
def _outlines(solids: Solids, axes: Floats) -> tuple[Floats, Floats]:
    """Return (N, 8) what each solid looks like from the sun, and (N, 3) where the sun is in unit coordinates.

    Middle along right and up, half extents, the height of its top along the sun, and a, b, c of the ellipse
    a x^2 + b x y + c y^2 <= 1 that a ball is (all 0 for others: no more than the extents is known).
    """
    outlines, towards = np.zeros((len(solids.kind), 8)), np.empty((len(solids.kind), 3))
    across = np.empty((3, 3))
    for index in range(len(outlines)):
        half = half_axes(solids, index, axes)
        one, ball = outlines[index], solids.kind[index] == BALL
        centre, inverse = solids.centre_m, solids.inverse
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
            reach = (math.sqrt(reach) if ball else reach) * (1 + SLACK) + SLACK
            if other < 2:
                one[other], one[2 + other] = middle, reach
            else:
                one[4] = middle + reach
        towards[index] = across[2]
        if ball:  # right and up in unit coordinates, less what of them lies along the sun
            x, y, z = across[0], across[1], across[2]
            zz = z[0] * z[0] + z[1] * z[1] + z[2] * z[2]
            xz = x[0] * z[0] + x[1] * z[1] + x[2] * z[2]
            yz = y[0] * z[0] + y[1] * z[1] + y[2] * z[2]
            one[5] = (x[0] * x[0] + x[1] * x[1] + x[2] * x[2] - xz * xz / zz) * (1 - SLACK)
            one[6] = 2 * (x[0] * y[0] + x[1] * y[1] + x[2] * y[2] - xz * yz / zz) * (1 - SLACK)
            one[7] = (y[0] * y[0] + y[1] * y[1] + y[2] * y[2] - yz * yz / zz) * (1 - SLACK)
    return outlines, towards


@compiled
def _filled(outlines: Floats, holes: Floats, corner: Floats, cells: int) -> tuple[Whole, Whole]:
    starts = np.zeros(cells * cells + 1, np.int64)
    members = np.empty(0, np.int64)
    for filling in range(3):  # count; then fill from the back, foliage first, which leaves the starts in place
        if filling == 1:
            starts = np.cumsum(starts)
            members = np.empty(starts[-1], np.int64)
        for index in range(len(outlines)):
            if filling and (holes[index] > 0) == (filling == 2):
                continue
            x, y = (outlines[index, 0] - corner[0]) / CELL_M, (outlines[index, 1] - corner[1]) / CELL_M
            wide, high = outlines[index, 2] / CELL_M, outlines[index, 3] / CELL_M
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
def find_shadows(
    solids: Solids, grid: SunGrid, x: Floats, y: Floats, z: Floats, lit: NDArray[np.bool_]
) -> None:
    """Tell for points (N,), already lifted off their own surfaces, whether they see the sun.

    Every point looks at the solids of its cell until one is in the way for sure, or may be: foliage. What
    may be is then looked at together, and points that a gap lets through go on.
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
        if 0 <= column < grid.cells and 0 <= row < grid.cells:
            cell = row * grid.cells + column
            at[i], end[i] = grid.starts[cell], grid.starts[cell + 1]
            if at[i] < end[i]:
                waiting[left] = i
                left += 1
    outlines, members, sunward = grid.outlines, grid.members, grid.towards
    kind, taper, holes, seed = solids.kind, solids.taper, solids.holes, solids.seed
    centre, m, size = solids.centre_m, solids.inverse, solids.size_m
    points, dense = np.empty((3, BATCH)), np.empty(BATCH)
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
                u, v = a - outlines[index, 0], b - outlines[index, 1]
                if (
                    abs(u) > outlines[index, 2]
                    or abs(v) > outlines[index, 3]
                    or c > outlines[index, 4]
                    or (outlines[index, 5] * u + outlines[index, 6] * v) * u + outlines[index, 7] * v * v > 1
                ):
                    continue
                wx, wy, wz = x[i] - centre[index, 0], y[i] - centre[index, 1], z[i] - centre[index, 2]
                ox = m[index, 0, 0] * wx + m[index, 0, 1] * wy + m[index, 0, 2] * wz
                oy = m[index, 1, 0] * wx + m[index, 1, 1] * wy + m[index, 1, 2] * wz
                oz = m[index, 2, 0] * wx + m[index, 2, 1] * wy + m[index, 2, 2] * wz
                dx, dy, dz = sunward[index, 0], sunward[index, 1], sunward[index, 2]
                t0, t1 = stretch(kind[index], taper[index], ox, oy, oz, dx, dy, dz)
                if t0 > t1 or t1 <= 0:
                    continue
                if holes[index] == 0:
                    lit[i] = False
                    break
                for t in (t0, t1):
                    if t > NEAREST_M:
                        points[0, found] = (ox + t * dx) * size[index, 0]
                        points[1, found] = (oy + t * dy) * size[index, 1]
                        points[2, found] = (oz + t * dz) * size[index, 2]
                        dense[found] = density(t0, t1, t, holes[index], SHADOW_PIXEL)
                        whose[found], seeds[found] = i, seed[index]
                        found += 1
            at[i] = k
            if found > BATCH - 2 or (done == begun and found):
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

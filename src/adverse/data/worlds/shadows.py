"""Which points the sun reaches: rays towards it, tested only against solids near the ray.

Seen from the sun, every ray towards it is one point. A grid over that view lists the solids of each cell.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.data.worlds.casting import first_leaf
from adverse.data.worlds.compiled import compiled
from adverse.data.worlds.solids import Solids, stretch

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


def sun_grid(solids: Solids, sun: Floats, middle_m: Floats) -> SunGrid:
    """Sort solids into the sun's view, around a point in the world."""
    right = np.cross([0.0, 0.0, 1.0], sun)
    right /= np.sqrt(right @ right)
    up = np.cross(sun, right)
    cells = int(2 * REACH_M / CELL_M)
    corner = np.array([middle_m @ right, middle_m @ up]) - REACH_M
    starts, members = _filled(solids, right, up, corner, cells)
    return SunGrid(sun, right, up, corner, cells, starts, members)


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
def sunlit(solids: Solids, grid: SunGrid, px: float, py: float, pz: float, pixel_at_1m: float) -> bool:
    """Tell whether a point (already lifted off its own surface) sees the sun."""
    x = (px * grid.right[0] + py * grid.right[1] + pz * grid.right[2] - grid.corner[0]) / CELL_M
    y = (px * grid.up[0] + py * grid.up[1] + pz * grid.up[2] - grid.corner[1]) / CELL_M
    column, row = math.floor(x), math.floor(y)
    if not (0 <= column < grid.cells and 0 <= row < grid.cells):
        return True
    cell = row * grid.cells + column
    for at in range(grid.starts[cell], grid.starts[cell + 1]):
        index = grid.members[at]
        wx = px - solids.centre_m[index, 0]
        wy = py - solids.centre_m[index, 1]
        wz = pz - solids.centre_m[index, 2]
        along = wx * grid.sun[0] + wy * grid.sun[1] + wz * grid.sun[2]
        reach = solids.reach_m[index]
        if along > reach or wx * wx + wy * wy + wz * wz - along * along > reach * reach:
            continue
        m = solids.inverse[index]
        ox = m[0, 0] * wx + m[0, 1] * wy + m[0, 2] * wz
        oy = m[1, 0] * wx + m[1, 1] * wy + m[1, 2] * wz
        oz = m[2, 0] * wx + m[2, 1] * wy + m[2, 2] * wz
        dx = m[0, 0] * grid.sun[0] + m[0, 1] * grid.sun[1] + m[0, 2] * grid.sun[2]
        dy = m[1, 0] * grid.sun[0] + m[1, 1] * grid.sun[1] + m[1, 2] * grid.sun[2]
        dz = m[2, 0] * grid.sun[0] + m[2, 1] * grid.sun[1] + m[2, 2] * grid.sun[2]
        t0, t1 = stretch(solids.kind[index], solids.taper[index], ox, oy, oz, dx, dy, dz)
        if t0 > t1 or t1 <= 0:
            continue
        holes, size, seed = solids.holes[index], solids.size_m[index], solids.seed[index]
        leaf = first_leaf(t0, t1, holes, ox, oy, oz, dx, dy, dz, size, seed, pixel_at_1m)
        if 0 < leaf < np.inf:
            return False
    return True

"""Which points the sun reaches: rays towards it, tested only against solids near the ray.

Seen from the sun, every ray towards it is one point. A grid over that view lists the solids of each cell, and
the points of a cell ask them together.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.data.worlds.casting import NEAREST_M, half_axes
from adverse.data.worlds.compiled import compiled, inlined
from adverse.data.worlds.foliage import foliage
from adverse.data.worlds.solids import BALL, Solids, stretch, through_ball

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
Flags = NDArray[np.bool_]


class SunGrid(NamedTuple):
    """The solids in each cell of the sun's view: `members[starts[cell] : starts[cell + 1]]`, foliage last."""

    axes: Floats  # (3, 3): columns are right and up in the sun's view, and the unit vector towards the sun
    corner: Floats  # (2,) of the first cell
    reach: Floats  # (2,) the corner of the region around the camera where shadows are cast
    cells: int  # per side
    starts: Whole
    members: Whole
    records: Floats  # (N, 27): see `_recorded`


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


def is_on_disk() -> bool:
    """Return whether the first loop of a grid was compiled in an earlier process, not in this one."""
    stats = _recorded.stats  # type: ignore[attr-defined]
    return bool(stats.cache_hits) and not stats.cache_misses


@compiled
def _recorded(solids: Solids, axes: Floats) -> Floats:
    """Return (N, 27) all that a ray to the sun asks of a solid, side by side in memory.

    First what it spans in the sun's view, a little widened: from and to along right, from and to along up,
    the height of its top along the sun. Then kind, taper, holes, seed, centre (3), the map into unit
    coordinates (9), the direction to the sun in them (3), size (3).
    """
    records = np.empty((len(solids.kind), 27))
    centre, inverse = solids.centre_m, solids.inverse
    for index in range(len(records)):
        half = half_axes(solids, index, axes)
        ball = solids.kind[index] == BALL
        for other in range(3):
            middle, reach = 0.0, 0.0
            for axis in range(3):
                middle += centre[index, axis] * axes[axis, other]
                reach += half[axis, other] * half[axis, other] if ball else abs(half[axis, other])
                records[index, 12 + 3 * axis + other] = inverse[index, axis, other]
            reach = (math.sqrt(reach) if ball else reach) * (1 + SLACK) + SLACK
            if other < 2:
                records[index, 2 * other] = middle - reach
            records[index, min(2 * other + 1, 4)] = middle + reach
            records[index, 9 + other] = centre[index, other]
            records[index, 21 + other] = (
                inverse[index, other, 0] * axes[0, 2]
                + inverse[index, other, 1] * axes[1, 2]
                + inverse[index, other, 2] * axes[2, 2]
            )
            records[index, 24 + other] = solids.size_m[index, other]
        records[index, 5], records[index, 6] = solids.kind[index], solids.taper[index]
        records[index, 7], records[index, 8] = solids.holes[index], solids.seed[index]
    return records


@compiled
def _filled(records: Floats, corner: Floats, cells: int) -> tuple[Whole, Whole]:
    """Return where the members of each cell start, and the members."""
    count = len(records)
    spans = np.empty((count, 4), np.int64)
    starts = np.zeros(cells * cells + 1, np.int64)
    for index in range(count):
        for axis in range(2):
            spans[index, axis] = max(math.floor((records[index, 2 * axis] - corner[axis]) / CELL_M), 0)
            spans[index, 2 + axis] = min(
                math.floor((records[index, 2 * axis + 1] - corner[axis]) / CELL_M) + 1, cells
            )
        for row in range(spans[index, 1], spans[index, 3]):
            for column in range(spans[index, 0], spans[index, 2]):
                starts[row * cells + column] += 1
    starts = np.cumsum(starts)
    members = np.empty(starts[-1], np.int64)
    for leafy in (True, False):  # filled from the back, which leaves the starts in place
        for index in range(count):
            if (records[index, 7] > 0) == leafy:
                for row in range(spans[index, 1], spans[index, 3]):
                    for column in range(spans[index, 0], spans[index, 2]):
                        starts[row * cells + column] -= 1
                        members[starts[row * cells + column]] = index
    return starts, members


@compiled
def _sorted_into_cells(grid: SunGrid, x: Floats, y: Floats, z: Floats) -> tuple[Whole, Whole, Whole]:
    """Return the points that have solids in their cells, cell by cell; these cells; and where each ends."""
    count = len(x)
    groups = np.zeros(grid.cells * grid.cells, np.int32)  # of a cell, counted from 1
    cells, ends, group = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int32)
    columns, rows = np.empty(count), np.empty(count)
    _seen_from_sun(grid.axes, 0, x, y, z, columns)
    _seen_from_sun(grid.axes, 1, x, y, z, rows)
    found = 0
    for i in range(count):
        across, up = columns[i], rows[i]
        column, row = (
            math.floor((across - grid.corner[0]) / CELL_M),
            math.floor((up - grid.corner[1]) / CELL_M),
        )
        across, up = across - grid.reach[0], up - grid.reach[1]
        group[i] = 0
        if (
            (0 <= across < 2 * REACH_M)
            & (0 <= up < 2 * REACH_M)
            & (0 <= column < grid.cells)
            & (0 <= row < grid.cells)
        ):
            cell = row * grid.cells + column
            if groups[cell] == 0 and grid.starts[cell] < grid.starts[cell + 1]:
                cells[found], ends[found] = cell, 0
                found += 1
                groups[cell] = found
            group[i] = groups[cell]
            ends[group[i] - 1] += group[i] > 0
    total = 0
    for one in range(found):
        total, ends[one] = total + ends[one], total
    order = np.empty(total, np.int64)
    for i in range(count):
        if group[i]:
            order[ends[group[i] - 1]] = i
            ends[group[i] - 1] += 1
    return order, cells[:found], ends[:found]


@inlined
def _seen_from_sun(axes: Floats, axis: int, x: Floats, y: Floats, z: Floats, out: Floats) -> None:
    a, b, c = axes[0, axis], axes[1, axis], axes[2, axis]
    for i in range(len(x)):
        out[i] = x[i] * a + y[i] * b + z[i] * c


@compiled
def find_shadows(  # noqa: C901, PLR0912, PLR0915 - one loop: a call in it would count references to arrays
    grid: SunGrid, x: Floats, y: Floats, z: Floats, own: Whole, lit: Flags
) -> None:
    """Tell for points (N,), already lifted off their own surfaces, whether they see the sun.

    `own` are solids that cannot be in the way of each (-1: none). The points of a cell ask its solids
    together, as vectors, one solid after the other, until none of the points is left in the sun.
    """
    lit[:] = True
    order, cells, ends = _sorted_into_cells(grid, x, y, z)
    axes, starts, members, records = grid.axes, grid.starts, grid.members, grid.records
    widest, start = 0, 0
    for group in range(len(cells)):
        widest, start = max(widest, ends[group] - start), ends[group]
    px, py, pz = np.empty(widest), np.empty(widest), np.empty(widest)
    fx, fy, fz = np.empty(widest), np.empty(widest), np.empty(widest)  # in the unit coordinates of foliage
    enter, leave = np.empty(widest), np.empty(widest)
    at, dense = np.empty(widest), np.empty(widest)
    mine, hit = np.empty(widest, np.int64), np.empty(widest + 1, np.int64)
    met, dark = np.empty(widest, np.bool_), np.empty(widest, np.bool_)
    start = 0
    for group in range(len(cells)):
        first, count = start, ends[group] - start
        start = ends[group]
        left, right, bottom, top, low = np.inf, -np.inf, np.inf, -np.inf, np.inf
        for j in range(count):
            i = order[first + j]
            px[j], py[j], pz[j], mine[j], dark[j] = x[i], y[i], z[i], own[i], False
            a = x[i] * axes[0, 0] + y[i] * axes[1, 0] + z[i] * axes[2, 0]
            b = x[i] * axes[0, 1] + y[i] * axes[1, 1] + z[i] * axes[2, 1]
            c = x[i] * axes[0, 2] + y[i] * axes[1, 2] + z[i] * axes[2, 2]
            left, right, low = min(left, a), max(right, a), min(low, c)
            bottom, top = min(bottom, b), max(top, b)
        bright = count
        for k in range(starts[cells[group]], starts[cells[group] + 1]):
            index = members[k]
            if (
                (left > records[index, 1])
                | (right < records[index, 0])
                | (bottom > records[index, 3])
                | (top < records[index, 2])
                | (low > records[index, 4])
            ):
                continue
            cx, cy, cz = records[index, 9], records[index, 10], records[index, 11]
            ax, ay, az = records[index, 12], records[index, 13], records[index, 14]
            bx, by, bz = records[index, 15], records[index, 16], records[index, 17]
            ex, ey, ez = records[index, 18], records[index, 19], records[index, 20]
            dx, dy, dz = records[index, 21], records[index, 22], records[index, 23]
            kind, taper = int(records[index, 5]), records[index, 6]
            holes, seed = records[index, 7], int(records[index, 8])
            if kind == BALL:  # met ahead: there are roots, and the ray points inwards or starts inside
                square = dx * dx + dy * dy + dz * dz
                for j in range(count):
                    wx, wy, wz = px[j] - cx, py[j] - cy, pz[j] - cz
                    ox, oy, oz = (
                        ax * wx + ay * wy + az * wz,
                        bx * wx + by * wy + bz * wz,
                        ex * wx + ey * wy + ez * wz,
                    )
                    along, outside = ox * dx + oy * dy + oz * dz, ox * ox + oy * oy + oz * oz - 1
                    met[j] = (along * along >= square * outside) & ((along < 0) | (outside < 0))
            else:
                for j in range(count):
                    wx, wy, wz = px[j] - cx, py[j] - cy, pz[j] - cz
                    t0, t1 = stretch(
                        kind,
                        taper,
                        ax * wx + ay * wy + az * wz,
                        bx * wx + by * wy + bz * wz,
                        ex * wx + ey * wy + ez * wz,
                        dx,
                        dy,
                        dz,
                    )
                    met[j] = (t0 <= t1) & (t1 > 0)
            found = 0
            for j in range(count):  # without a branch: the next entry overwrites what is not kept
                hit[found] = j
                found += met[j] & (mine[j] != index) & (not dark[j])
            if holes == 0:
                for entry in range(found):
                    dark[hit[entry]] = True
                bright -= found
                found = 0
            for entry in range(found):
                j = hit[entry]
                wx, wy, wz = px[j] - cx, py[j] - cy, pz[j] - cz
                fx[entry] = ax * wx + ay * wy + az * wz
                fy[entry] = bx * wx + by * wy + bz * wz
                fz[entry] = ex * wx + ey * wy + ez * wz
            if kind == BALL:
                for entry in range(found):
                    enter[entry], leave[entry] = through_ball(fx[entry], fy[entry], fz[entry], dx, dy, dz)
            else:
                for entry in range(found):
                    enter[entry], leave[entry] = stretch(
                        kind, taper, fx[entry], fy[entry], fz[entry], dx, dy, dz
                    )
            sx, sy, sz = records[index, 24], records[index, 25], records[index, 26]
            for leaving in range(2):
                for entry in range(found):
                    inside = enter[entry] <= NEAREST_M
                    at[entry] = leave[entry] if leaving or inside else enter[entry]
                for entry in range(found):
                    t = at[entry]
                    dense[entry] = foliage(
                        (fx[entry] + t * dx) * sx,
                        (fy[entry] + t * dy) * sy,
                        (fz[entry] + t * dz) * sz,
                        seed,
                        t * SHADOW_PIXEL,
                        leave[entry] - enter[entry],
                        holes,
                    )
                kept = 0
                for entry in range(found):
                    leaf = (dense[entry] > 0) & (at[entry] > NEAREST_M)
                    dark[hit[entry]] = leaf
                    bright -= leaf
                    hit[kept] = hit[entry]
                    fx[kept], fy[kept], fz[kept] = fx[entry], fy[entry], fz[entry]
                    enter[kept], leave[kept] = enter[entry], leave[entry]
                    kept += (not leaf) & (at[entry] < leave[entry])
                found = kept
            if bright == 0:
                break
        for j in range(count):
            lit[order[first + j]] = not dark[j]

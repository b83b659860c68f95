"""Which surface each pixel sees: one ray through each pixel centre, exact intersections, no rasteriser.

A ray is camera position + t * direction with the direction's forward part 1, so t is the z-depth. Solids are
visited front to back, each only inside the screen rectangle that can hold it.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from adverse.data.worlds.compiled import compiled, inlined
from adverse.data.worlds.foliage import LEAF_M, foliage
from adverse.data.worlds.solids import BALL, BRICK, Solids, through_ball, through_brick, through_stem

SKY, GROUND = -1, -2
"""Owners of pixels that no solid covers."""
NEAREST_M = 0.05
"""Nothing nearer than this is seen: the lens."""
WIDE_PX = 4096
"""A screen rectangle of more pixels is looked at twice: most are of things beside or behind the camera."""
STRIP_PX = 8
SLACK_M = 1e-6
FARTHEST_M = 150.0
"""Ground beyond this is left to the horizon, where one pixel spans many metres."""
BATCH = 1024
"""How many points of foliage are collected before they are looked at together."""
LANES = 8
"""Rows are cast in whole vectors of pixels; those beyond a rectangle see nothing of what is in it."""
Floats = NDArray[np.float64]
Owners = NDArray[np.int64]


@compiled
def cast(  # noqa: C901, PLR0912 - one loop: a call in it would count the references to every array
    solids: Solids, eye: Floats, turn: Floats, lens: Floats, depth_m: Floats, owner: Owners
) -> None:
    """Fill depth and owner (H, W) with what a camera sees; `lens` is fx, fy, cx, cy.

    `eye` is the camera's position and `turn` (3, 3) carries camera axes into the world.
    """
    height, width = owner.shape
    columns = np.empty(width + LANES)
    for u in range(len(columns)):
        columns[u] = (u - lens[2]) / lens[0]
    for v in range(height):
        _cast_ground(columns, (v - lens[3]) / lens[1], eye[2], turn, depth_m[v], owner[v])
    count = len(solids.kind)
    boxes = np.empty((count, 4), np.int64)
    nearest = np.empty(count)
    for index in range(count):
        nearest[index] = screen_box(solids, index, eye, turn, lens, width, height, boxes[index])
    seen = np.flatnonzero(nearest < np.inf)
    enter, leave = np.empty(width + LANES), np.empty(width + LANES)
    room = max(BATCH, width + 1)
    batch, place = np.empty((8, room)), np.empty((2, room), np.int64)
    origin, m = np.empty(3), np.empty((3, 3))
    for at in np.argsort(nearest[seen], kind="mergesort"):
        index = seen[at]
        x0, y0, x1, y1 = boxes[index]
        near, kind, taper, holes = (
            nearest[index],
            solids.kind[index],
            solids.taper[index],
            solids.holes[index],
        )
        if near > 2 * LEAF_M * lens[0] + SLACK_M:
            holes = 0.0  # too far to see a gap
        into_unit(solids, index, eye, turn, origin, m)
        found = int(np.int64(0))  # as a literal, what it is given to would be compiled twice
        for v in range(y0, y1):
            first, last = x0, x1
            while first < last and depth_m[v, first] <= near:
                first += 1
            while first < last and depth_m[v, last - 1] <= near:
                last -= 1
            y = (v - lens[3]) / lens[1]
            cast_row(kind, taper, origin, m, columns, y, first, last, enter, leave)
            if holes == 0:
                for u in range(first, last):
                    before, t0 = depth_m[v, u], enter[u]
                    if (t0 < before) & (t0 <= leave[u]) & (near < before):
                        t = t0 if t0 > NEAREST_M else leave[u]
                        if NEAREST_M < t < before:
                            depth_m[v, u], owner[v, u] = t, index
                continue
            if found + last - first >= room:
                _cover(solids, index, holes, lens, origin, m, found, batch, place, depth_m, owner)
                found = int(np.int64(0))
            for u in range(first, last):  # without a branch: the next entry overwrites what is not kept
                before, t0 = depth_m[v, u], enter[u]
                batch[0, found], batch[1, found] = t0, leave[u]
                batch[2, found], batch[3, found] = columns[u], y
                place[0, found], place[1, found] = v, u
                found += (t0 < before) & (t0 <= leave[u]) & (near < before)
        if found:
            _cover(solids, index, holes, lens, origin, m, found, batch, place, depth_m, owner)


@compiled
def _cast_ground(
    columns: Floats, y: float, up_m: float, turn: Floats, depth_m: Floats, owner: Owners
) -> None:
    """Fill one row with ground and sky."""
    a, b, c = turn[2, 0], turn[2, 1], turn[2, 2]
    for u in range(len(depth_m)):
        down = a * columns[u] + b * y + c
        t = -up_m / down if down < 0 else np.inf
        depth_m[u] = t if t < FARTHEST_M else np.inf
    for u in range(len(depth_m)):
        owner[u] = GROUND if depth_m[u] < np.inf else SKY


@compiled
def into_unit(solids: Solids, index: int, eye: Floats, turn: Floats, origin: Floats, m: Floats) -> None:
    """Write where the camera is in a solid's unit coordinates, and the map (3, 3) of its axes into them."""
    inverse, centre = solids.inverse, solids.centre_m
    for axis in range(3):
        origin[axis] = 0.0
        for other in range(3):
            origin[axis] += inverse[index, axis, other] * (eye[other] - centre[index, other])
            m[axis, other] = (
                inverse[index, axis, 0] * turn[0, other]
                + inverse[index, axis, 1] * turn[1, other]
                + inverse[index, axis, 2] * turn[2, other]
            )


@inlined
def cast_row(
    kind: int,
    taper: float,
    origin: Floats,
    m: Floats,
    columns: Floats,
    y: float,
    first: int,
    last: int,
    enter: Floats,
    leave: Floats,
) -> None:
    """Write where the rays of a row of pixels enter and leave a solid, a whole vector of pixels at a time."""
    ox, oy, oz = origin[0], origin[1], origin[2]
    mx, my, mz = m[0, 0], m[1, 0], m[2, 0]
    ax, ay, az = m[0, 1] * y + m[0, 2], m[1, 1] * y + m[1, 2], m[2, 1] * y + m[2, 2]
    last = first + (last - first + LANES - 1) // LANES * LANES
    if kind == BALL:
        for i in range(first, last):
            x = columns[i]
            enter[i], leave[i] = through_ball(ox, oy, oz, mx * x + ax, my * x + ay, mz * x + az)
    elif kind == BRICK:
        for i in range(first, last):
            x = columns[i]
            enter[i], leave[i] = through_brick(ox, oy, oz, mx * x + ax, my * x + ay, mz * x + az)
    else:
        for i in range(first, last):
            x = columns[i]
            enter[i], leave[i] = through_stem(taper, ox, oy, oz, mx * x + ax, my * x + ay, mz * x + az)


@compiled
def _cover(
    solids: Solids,
    index: int,
    holes: float,
    lens: Floats,
    origin: Floats,
    m: Floats,
    found: int,
    batch: Floats,
    place: Owners,
    depth_m: Floats,
    owner: Owners,
) -> None:
    """Put foliage in front of the pixels whose rays meet a leaf of it, where they enter it or leave it.

    `batch` holds t0, t1, x and y of each ray, and room for points and their density.
    """
    rows, columns = place[0], place[1]
    t0, t1, x, y, dense = batch[0], batch[1], batch[2], batch[3], batch[7]
    size, seed, pixel = solids.size_m[index], solids.seed[index], 1 / lens[0]
    for leaving in range(2):
        t = batch[leaving]
        for axis in range(3):
            o, s, p = origin[axis], size[axis], batch[4 + axis]
            a, b, c = m[axis, 0], m[axis, 1], m[axis, 2]
            for i in range(found):
                p[i] = (o + t[i] * (a * x[i] + (b * y[i] + c))) * s
        px, py, pz = batch[4], batch[5], batch[6]
        for i in range(found):
            dense[i] = foliage(px[i], py[i], pz[i], seed, t[i] * pixel, t1[i] - t0[i], holes)
        kept = 0
        for i in range(found):
            v, u = rows[i], columns[i]
            if (dense[i] > 0) & (t[i] > NEAREST_M):
                if t[i] < depth_m[v, u]:
                    depth_m[v, u], owner[v, u] = t[i], index
            elif not leaving:
                batch[0, kept], batch[1, kept], batch[2, kept], batch[3, kept] = t0[i], t1[i], x[i], y[i]
                rows[kept], columns[kept] = v, u
                kept += t1[i] < depth_m[v, u]
        found = kept


@compiled
def screen_box(
    solids: Solids,
    index: int,
    eye: Floats,
    turn: Floats,
    lens: Floats,
    width: int,
    height: int,
    box: Owners,
) -> float:
    """Write the pixel rectangle (x0, y0, x1, y1) that holds a solid; return its least depth, or inf."""
    reach = solids.reach_m[index]
    x, y, z = _in_camera(solids.centre_m[index], eye, turn)
    if z + reach < NEAREST_M:
        return np.inf
    x0, x1 = _side(x, z, reach, lens[0], lens[2], width)
    y0, y1 = _side(y, z, reach, lens[1], lens[3], height)
    if x0 >= x1 or y0 >= y1:
        return np.inf
    box[0], box[1], box[2], box[3] = x0, y0, x1, y1
    near = max(z - reach, 0.0)
    if solids.kind[index] != BALL:
        near = max(near, _corners(x, y, z, half_axes(solids, index, turn), lens, box))
    if box[0] >= box[2] or box[1] >= box[3]:
        return np.inf
    if (box[2] - box[0]) * (box[3] - box[1]) > WIDE_PX:
        ball = solids.kind[index] == BALL
        axes = half_axes(solids, index, turn)
        _narrow(x, z, ball, axes, 0, lens, box)
        _narrow(y, z, ball, axes, 1, lens, box)
    return near if box[0] < box[2] and box[1] < box[3] else np.inf


@inlined
def _in_camera(point: Floats, eye: Floats, turn: Floats) -> tuple[float, float, float]:
    x, y, z = point[0] - eye[0], point[1] - eye[1], point[2] - eye[2]
    return (
        x * turn[0, 0] + y * turn[1, 0] + z * turn[2, 0],
        x * turn[0, 1] + y * turn[1, 1] + z * turn[2, 1],
        x * turn[0, 2] + y * turn[1, 2] + z * turn[2, 2],
    )


@compiled
def half_axes(solids: Solids, index: int, turn: Floats) -> Floats:
    """Return the half axes (3, 3) of a solid, or of the box around it, one a row, along those of `turn`."""
    wide = max(1.0, solids.taper[index])
    ball = solids.kind[index] == BALL
    inverse, size = solids.inverse, solids.size_m
    axes = np.empty((3, 3))
    for axis in range(3):
        length = size[index, axis] * (size[index, axis] * (wide if axis < 2 and not ball else 1.0))
        for other in range(3):
            axes[axis, other] = length * (
                inverse[index, axis, 0] * turn[0, other]
                + inverse[index, axis, 1] * turn[1, other]
                + inverse[index, axis, 2] * turn[2, other]
            )
    return axes


@compiled
def _narrow(x: float, z: float, ball: bool, axes: Floats, side: int, lens: Floats, box: Owners) -> None:  # noqa: FBT001
    """Shrink a rectangle by the strips of pixels that no part of the solid at (x, z) can be seen in.

    A strip lies between two planes through the eye. A solid that is all beyond one of them is not in it; its
    half axes tell how far it reaches across a plane, also where it reaches behind the camera.
    """
    focal, centre = lens[side], lens[2 + side]
    first, last = box[2 + side], box[side]
    for start in range(box[side], box[2 + side], STRIP_PX):
        end = min(start + STRIP_PX, box[2 + side])
        low, high = (start - 1 - centre) / focal, (end - centre) / focal
        if (
            x - low * z + _reach(axes, side, low, ball) >= -SLACK_M
            and high * z - x + _reach(axes, side, high, ball) >= -SLACK_M
        ):
            first, last = min(first, start), max(last, end)
    box[side], box[2 + side] = first, max(last, first)


@compiled
def _reach(axes: Floats, side: int, slope: float, ball: bool) -> float:  # noqa: FBT001
    """Return how far a solid with these half axes reaches across the plane x = slope * z (side 0) or y."""
    total = 0.0
    for axis in range(3):
        across = axes[axis, side] - slope * axes[axis, 2]
        total += across * across if ball else abs(across)
    return math.sqrt(total) if ball else total


@compiled
def _corners(x: float, y: float, z: float, axes: Floats, lens: Floats, box: Owners) -> float:
    """Shrink a rectangle to the corners of the solid's own box, if all in front; return their depth or 0."""
    near = np.inf
    low_x, low_y, high_x, high_y = np.inf, np.inf, -np.inf, -np.inf
    for corner in range(8):
        px, py, pz = x, y, z
        for axis in range(3):
            sign = 1.0 if corner >> axis & 1 else -1.0
            px += sign * axes[axis, 0]
            py += sign * axes[axis, 1]
            pz += sign * axes[axis, 2]
        if pz < NEAREST_M:
            return 0.0
        near = min(near, pz)
        u, v = px / pz * lens[0] + lens[2], py / pz * lens[1] + lens[3]
        low_x, high_x = min(low_x, u), max(high_x, u)
        low_y, high_y = min(low_y, v), max(high_y, v)
    box[0], box[2] = max(box[0], math.floor(low_x)), min(box[2], math.ceil(high_x) + 1)
    box[1], box[3] = max(box[1], math.floor(low_y)), min(box[3], math.ceil(high_y) + 1)
    return near


@compiled
def _side(x: float, z: float, reach: float, focal: float, centre: float, pixels: int) -> tuple[int, int]:
    """Return the half-open range of pixels between the two tangents to a circle at (x, z)."""
    if z <= reach * 1.001:
        return 0, pixels
    under = z * z - reach * reach
    root = reach * math.sqrt(x * x + under)
    low, high = (x * z - root) / under, (x * z + root) / under
    first, last = math.floor(low * focal + centre), math.ceil(high * focal + centre) + 1
    return int(min(max(first, 0), pixels)), int(min(max(last, 0), pixels))

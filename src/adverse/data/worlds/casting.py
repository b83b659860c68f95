"""Which surface each pixel sees: one ray through each pixel centre, exact intersections, no rasteriser.

A ray is camera position + t * direction with the direction's forward part 1, so t is the z-depth. Solids are
visited front to back, each only inside the screen rectangle that can hold it.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from adverse.data.worlds.compiled import compiled
from adverse.data.worlds.solids import BALL, Solids, stretch
from adverse.data.worlds.textures import noise, sharpness

SKY, GROUND = -1, -2
"""Owners of pixels that no solid covers."""
NEAREST_M = 0.05
"""Nothing nearer than this is seen: the lens."""
LEAF_M = 0.07
CLUMP_M = 0.21
"""Sizes of the leaves of foliage and of the clumps they grow in, and so of the gaps between them."""
RIM_M = 0.45
"""Where a ray runs through less foliage than this, it thins out."""
WIDE_PX = 4096
"""A screen rectangle of more pixels is looked at twice: most are of things beside or behind the camera."""
STRIP_PX = 8
SLACK_M = 1e-6
FARTHEST_M = 150.0
"""Ground beyond this is left to the horizon, where one pixel spans many metres."""
Floats = NDArray[np.float64]
Owners = NDArray[np.int64]


@compiled
def cast(solids: Solids, eye: Floats, turn: Floats, lens: Floats, depth_m: Floats, owner: Owners) -> None:
    """Fill depth and owner (H, W) with what a camera sees; `lens` is fx, fy, cx, cy.

    `eye` is the camera's position and `turn` (3, 3) carries camera axes into the world.
    """
    height, width = owner.shape
    for v in range(height):
        y = (v - lens[3]) / lens[1]
        for u in range(width):
            x = (u - lens[2]) / lens[0]
            down = turn[2, 0] * x + turn[2, 1] * y + turn[2, 2]
            t = -eye[2] / down if down < 0 else np.inf
            depth_m[v, u], owner[v, u] = (t, GROUND) if t < FARTHEST_M else (np.inf, SKY)
    count = len(solids.kind)
    boxes = np.empty((count, 4), np.int64)
    nearest = np.empty(count)
    for index in range(count):
        nearest[index] = screen_box(solids, index, eye, turn, lens, width, height, boxes[index])
    for index in np.argsort(nearest, kind="mergesort"):
        if nearest[index] < np.inf:
            _cast_one(solids, index, eye, turn, lens, boxes[index], nearest[index], depth_m, owner)


@compiled
def _cast_one(
    solids: Solids,
    index: int,
    eye: Floats,
    turn: Floats,
    lens: Floats,
    box: Owners,
    nearest: float,
    depth_m: Floats,
    owner: Owners,
) -> None:
    kind, taper, holes = solids.kind[index], solids.taper[index], solids.holes[index]
    inverse, seed = solids.inverse[index], solids.seed[index]
    sx, sy, sz = solids.size_m[index]
    ox, oy, oz = inverse @ (eye - solids.centre_m[index])
    m = inverse @ turn
    for v in range(box[1], box[3]):
        y = (v - lens[3]) / lens[1]
        ax, ay, az = m[0, 1] * y + m[0, 2], m[1, 1] * y + m[1, 2], m[2, 1] * y + m[2, 2]
        for u in range(box[0], box[2]):
            seen = depth_m[v, u]
            if seen <= nearest:
                continue
            x = (u - lens[2]) / lens[0]
            dx, dy, dz = m[0, 0] * x + ax, m[1, 0] * x + ay, m[2, 0] * x + az
            t0, t1 = stretch(kind, taper, ox, oy, oz, dx, dy, dz)
            if t0 > t1 or t0 >= seen:
                continue
            t = first_leaf(t0, t1, holes, ox, oy, oz, dx, dy, dz, sx, sy, sz, seed, 1 / lens[0])
            if NEAREST_M < t < seen:
                depth_m[v, u] = t
                owner[v, u] = index


@compiled
def first_leaf(
    t0: float,
    t1: float,
    holes: float,
    ox: float,
    oy: float,
    oz: float,
    dx: float,
    dy: float,
    dz: float,
    sx: float,
    sy: float,
    sz: float,
    seed: int,
    pixel_at_1m: float,
) -> float:
    """Return where a ray meets the surface that is there: entry, exit where the entry is a hole, or inf."""
    if holes == 0:
        return t0 if t0 > NEAREST_M else t1
    rim = max(1 - (t1 - t0) / RIM_M, 0.0)
    for t in (t0, t1):
        if t > NEAREST_M:
            # gaps too far to be seen close up; towards the rim there are more, so no outline is round
            solid = 1 - (holes + 0.3 * rim) * sharpness(LEAF_M, t * pixel_at_1m)
            if solid == 1:
                return t
            x, y, z = (ox + t * dx) * sx, (oy + t * dy) * sy, (oz + t * dz) * sz
            leaf = 0.62 * noise(x / LEAF_M, y / LEAF_M, z / LEAF_M, seed)
            if leaf >= solid:  # whatever the clump, which is from 0 to 1
                continue
            if leaf + 0.38 < solid:
                return t
            if leaf + 0.38 * noise(x / CLUMP_M, y / CLUMP_M, z / CLUMP_M, seed + 1) < solid:
                return t
    return np.inf


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
    x, y, z = (solids.centre_m[index] - eye) @ turn
    if z + reach < NEAREST_M:
        return np.inf
    x0, x1 = _side(x, z, reach, lens[0], lens[2], width)
    y0, y1 = _side(y, z, reach, lens[1], lens[3], height)
    box[0], box[1], box[2], box[3] = x0, y0, x1, y1
    near = max(z - reach, 0.0)
    if solids.kind[index] != BALL:
        near = max(near, _corners(solids, index, eye, turn, lens, box))
    if box[0] >= box[2] or box[1] >= box[3]:
        return np.inf
    if (box[2] - box[0]) * (box[3] - box[1]) > WIDE_PX:
        _narrow(solids, index, eye, turn, lens, box)
    return near if box[0] < box[2] and box[1] < box[3] else np.inf


@compiled
def _narrow(solids: Solids, index: int, eye: Floats, turn: Floats, lens: Floats, box: Owners) -> None:
    """Shrink a rectangle by the strips of pixels that no part of the solid can be seen in.

    A strip lies between two planes through the eye. A solid that is all beyond one of them is not in it; its
    half axes tell how far it reaches across a plane, also where it reaches behind the camera.
    """
    offset = (solids.centre_m[index] - eye) @ turn
    wide = max(1.0, solids.taper[index])
    ball = solids.kind[index] == BALL
    axes = np.empty((3, 3))
    for axis in range(3):
        half = solids.size_m[index, axis] * (wide if axis < 2 and not ball else 1.0)
        axes[axis] = (solids.inverse[index, axis] @ turn) * (solids.size_m[index, axis] * half)
    for side in range(2):
        focal, centre = lens[side], lens[2 + side]
        first, last = box[2 + side], box[side]
        for start in range(box[side], box[2 + side], STRIP_PX):
            end = min(start + STRIP_PX, box[2 + side])
            low, high = (start - 1 - centre) / focal, (end - centre) / focal
            if (
                offset[side] - low * offset[2] + _reach(axes, side, low, ball) >= -SLACK_M
                and high * offset[2] - offset[side] + _reach(axes, side, high, ball) >= -SLACK_M
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
def _corners(solids: Solids, index: int, eye: Floats, turn: Floats, lens: Floats, box: Owners) -> float:
    """Shrink a rectangle to the corners of the solid's own box, if all in front; return their depth or 0."""
    offset = (solids.centre_m[index] - eye) @ turn
    wide = max(1.0, solids.taper[index])
    axes = np.empty((3, 3))
    for axis in range(3):
        half = solids.size_m[index, axis] * (wide if axis < 2 else 1.0)
        axes[axis] = (solids.inverse[index, axis] @ turn) * (solids.size_m[index, axis] * half)
    near = np.inf
    low_x, low_y, high_x, high_y = np.inf, np.inf, -np.inf, -np.inf
    for corner in range(8):
        point = offset.copy()
        for axis in range(3):
            point += axes[axis] if corner >> axis & 1 else -axes[axis]
        if point[2] < NEAREST_M:
            return 0.0
        near = min(near, point[2])
        x, y = point[0] / point[2] * lens[0] + lens[2], point[1] / point[2] * lens[1] + lens[3]
        low_x, high_x = min(low_x, x), max(high_x, x)
        low_y, high_y = min(low_y, y), max(high_y, y)
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

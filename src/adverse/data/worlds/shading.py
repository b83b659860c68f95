"""How much light each pixel receives: texture, the sun with cast shadows, the sky, a little gloss.

Some rows of pixels at a time: what is alike for all of them (noise, shadows) is worked out for many together.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.data.worlds import textures
from adverse.data.worlds.casting import GROUND, SKY, Owners
from adverse.data.worlds.compiled import compiled, inlined
from adverse.data.worlds.shadows import SunGrid, find_shadows
from adverse.data.worlds.solids import Solids, outward
from adverse.data.worlds.textures import LEAVES

LEAF_DEPTH_M = 0.05
"""How far a ray to the sun starts above foliage, so that a leaf does not shade itself."""
SURFACE_M = 2e-3
INSIDE = 0.6
"""Share of the sky that reaches the inside of a crown."""
TOGETHER = 2048
"""About how many pixels are shaded together: few enough that all about them stays in a core's cache."""
IN_SUN = 16384
"""About how many of them ask for the sun together: enough that most share a cell of its view with many."""
Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Flags = NDArray[np.bool_]


class Light(NamedTuple):
    """The day: strength of the sun and of the sky as RGB, share of clouds, which ground, seed of it all."""

    sun: Floats
    sky: Floats
    cloud: float
    place: int
    seed: int


class Surfaces(NamedTuple):
    """Points of surfaces that are shaded together: arrays of N, with a row for each axis or channel."""

    pixel: NDArray[np.int64]
    point: Floats  # (3, N) in the world
    normal: Floats  # (3, N), towards the camera
    colour: Floats  # (3, N)
    spread_m: Floats  # how much of the surface a pixel shows
    facing: Floats  # cosine between ray and outward normal
    gloss: Floats
    leafy: Flags
    grain: Floats  # (4, N) the noises of the ground, or where mottling is looked up and its size
    seed: NDArray[np.int64]
    place: Floats  # (3, N) metres along the axes of a solid
    mottling: Floats


class Sunward(NamedTuple):
    """Points of many rows that the sun might reach: arrays of N, with a row for each axis."""

    pixel: NDArray[np.int64]
    lifted: Floats  # (3, N) where rays to the sun start
    own: NDArray[np.int64]  # solids that cannot be in the way of them
    gain: Singles  # (3, N) the light that the point sends to the camera if the sun reaches it


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
    radiance: Singles,
    on_way: Flags,
) -> None:
    """Fill radiance (H, W, 3), linear, where depth and owner are known; mark the ground that is the way."""
    height, width = owner.shape
    rows = max(TOGETHER // width, 1)
    room = rows * width
    rays = np.empty((4, room))
    surfaces = Surfaces(
        np.empty(room, np.int64),
        np.empty((3, room)),
        np.empty((3, room)),
        np.empty((3, room)),
        np.empty(room),
        np.empty(room),
        np.empty(room),
        np.empty(room, np.bool_),
        np.empty((4, room)),
        np.empty(room, np.int64),
        np.empty((3, room)),
        np.empty(room),
    )
    full = max(IN_SUN, 2 * room)
    sunward = Sunward(
        np.empty(full + 1, np.int64),
        np.empty((3, full + 1)),
        np.empty(full + 1, np.int64),
        np.empty((3, full + 1), np.float32),
    )
    pixels = radiance.reshape(height * width, 3)
    asking = int(np.int64(0))  # as a literal, what it is given to would be compiled twice
    for top in range(0, height, rows):
        bottom = min(top + rows, height)
        _rays(turn, lens, top, bottom, width, rays)
        depths, owners = depth_m[top:bottom].ravel(), owner[top:bottom].ravel()
        values, way = radiance[top:bottom].reshape((bottom - top) * width, 3), on_way[top:bottom].ravel()
        _shade_sky(light, rays, owners, values, surfaces)
        if asking + room > full:
            _light_by_sun(grid, asking, sunward, pixels)
            asking = int(np.int64(0))
        first = top * width
        asking = _shade_ground(
            light, grid, eye, lens[0], rays, depths, owners, way, surfaces, first, values, sunward, asking
        )
        count = _shade_solids(solids, eye, lens[0], rays, depths, owners, surfaces)
        asking = _light_up(light, grid, count, owners, surfaces, first, values, sunward, asking)
    _light_by_sun(grid, asking, sunward, pixels)


@compiled
def _rays(turn: Floats, lens: Floats, top: int, bottom: int, width: int, rays: Floats) -> None:
    """Write direction and length (4, N) of the rays through the pixels of some rows."""
    for v in range(top, bottom):
        y = (v - lens[3]) / lens[1]
        start = (v - top) * width
        for axis in range(3):
            a, b, c, out = turn[axis, 0], turn[axis, 1], turn[axis, 2], rays[axis]
            for u in range(width):
                out[start + u] = a * ((u - lens[2]) / lens[0]) + b * y + c
    dx, dy, dz, length = rays[0], rays[1], rays[2], rays[3]
    for i in range((bottom - top) * width):
        length[i] = math.sqrt(dx[i] * dx[i] + dy[i] * dy[i] + dz[i] * dz[i])


@compiled
def _shade_sky(light: Light, rays: Floats, owner: Owners, radiance: Singles, surfaces: Surfaces) -> None:
    count = 0
    pixel, unit, white, strength = surfaces.pixel, surfaces.point, surfaces.gloss, light.sky
    for i in range(len(owner)):
        if owner[i] == SKY:
            pixel[count] = i
            shorter = 1 / rays[3, i]
            for axis in range(3):
                unit[axis, count] = rays[axis, i] * shorter
            count += 1
    textures.clouds(unit[0, :count], unit[1, :count], unit[2, :count], light.cloud, light.seed, white)
    for j in range(count):
        red, green, blue = textures.sky(unit[2, j], white[j])
        radiance[pixel[j], 0] = red * strength[0]
        radiance[pixel[j], 1] = green * strength[1]
        radiance[pixel[j], 2] = blue * strength[2]


@compiled
def _shade_ground(
    light: Light,
    grid: SunGrid,
    eye: Floats,
    focal: float,
    rays: Floats,
    depth_m: Floats,
    owner: Owners,
    on_way: Flags,
    surfaces: Surfaces,
    first: int,
    radiance: Singles,
    sunward: Sunward,
    asking: int,
) -> int:
    """Write the light of the sky that the ground sends to the camera, mark the way, and ask for the sun.

    Returns how many points now do.
    """
    count = 0
    pixel, point, spread, layers = surfaces.pixel, surfaces.point, surfaces.spread_m, surfaces.grain
    pixel_at_1m, per_height = 1 / focal, 1 / eye[2]
    for i in range(len(owner)):
        if owner[i] == GROUND:
            pixel[count] = i
            for axis in range(2):
                point[axis, count] = eye[axis] + depth_m[i] * rays[axis, i]
            away = rays[3, i] * depth_m[i]
            # seen at a slant, a pixel is longer
            spread[count] = away * pixel_at_1m * math.sqrt(min(away * per_height, 8.0))
            count += 1
    x, y = point[0, :count], point[1, :count]
    textures.ground(light.place, x, y, spread[:count], light.seed, layers)
    place, sun, sky, up = light.place, light.sun, light.sky, grid.axes[2, 2]
    lifted, gain, own, which = sunward.lifted, sunward.gain, sunward.own, sunward.pixel
    for j in range(count):
        red, green, blue, on_way[pixel[j]] = textures.soil(
            place, x[j], y[j], layers[0, j], layers[1, j], layers[2, j], layers[3, j]
        )
        at = pixel[j]
        radiance[at, 0], radiance[at, 1], radiance[at, 2] = red * sky[0], green * sky[1], blue * sky[2]
        ask = asking + j
        lifted[0, ask], lifted[1, ask], lifted[2, ask] = x[j], y[j], SURFACE_M
        gain[0, ask], gain[1, ask], gain[2, ask] = (
            red * (sun[0] * up),
            green * (sun[1] * up),
            blue * (sun[2] * up),
        )
        own[ask], which[ask] = -1, first + at
    return asking + count


@compiled
def _shade_solids(
    solids: Solids,
    eye: Floats,
    focal: float,
    rays: Floats,
    depth_m: Floats,
    owner: Owners,
    surfaces: Surfaces,
) -> int:
    """Collect the points of solids, with what they are like, and return how many there are."""
    count = 0
    pixel, point, place, normal = surfaces.pixel, surfaces.point, surfaces.place, surfaces.normal
    grain, spread, seed = surfaces.grain, surfaces.spread_m, surfaces.seed
    facing, gloss, leafy, colour = surfaces.facing, surfaces.gloss, surfaces.leafy, surfaces.colour
    inverse, centre, size, kind = solids.inverse, solids.centre_m, solids.size_m, solids.kind
    taper, seeds, materials = solids.taper, solids.seed, solids.material
    first, second, mottling = solids.colour, solids.second, surfaces.mottling
    pixel_at_1m = 1 / focal
    for i in range(len(owner)):
        index = owner[i]
        if index < 0:
            continue
        px, py, pz = (
            eye[0] + depth_m[i] * rays[0, i],
            eye[1] + depth_m[i] * rays[1, i],
            eye[2] + depth_m[i] * rays[2, i],
        )
        wx, wy, wz = px - centre[index, 0], py - centre[index, 1], pz - centre[index, 2]
        x = inverse[index, 0, 0] * wx + inverse[index, 0, 1] * wy + inverse[index, 0, 2] * wz
        y = inverse[index, 1, 0] * wx + inverse[index, 1, 1] * wy + inverse[index, 1, 2] * wz
        z = inverse[index, 2, 0] * wx + inverse[index, 2, 1] * wy + inverse[index, 2, 2] * wz
        nx, ny, nz = outward(kind[index], taper[index], inverse, index, x, y, z)
        outside = (nx * rays[0, i] + ny * rays[1, i] + nz * rays[2, i]) / rays[3, i]
        if outside > 0:  # the far side, seen through a gap
            nx, ny, nz = -nx, -ny, -nz
        x, y, z = x * size[index, 0], y * size[index, 1], z * size[index, 2]
        pixel[count], facing[count] = i, outside
        point[0, count], point[1, count], point[2, count] = px, py, pz
        normal[0, count], normal[1, count], normal[2, count] = nx, ny, nz
        place[0, count], place[1, count], place[2, count] = x, y, z
        spread[count] = depth_m[i] * rays[3, i] * pixel_at_1m
        seed[count] = seeds[index]
        grain[0, count], grain[1, count], grain[2, count], grain[3, count] = textures.grain(
            materials[index], x, y, z
        )
        count += 1
    textures.mottle(grain, spread[:count], seed, mottling)
    for j in range(count):
        index = owner[pixel[j]]
        light, mix, gloss[j] = textures.surface(
            materials[index], mottling[j], seed[j], place[0, j], place[1, j], place[2, j], spread[j]
        )
        leafy[j] = materials[index] == LEAVES
        for channel in range(3):
            colour[channel, j] = light * (first[index, channel] * (1 - mix) + second[index, channel] * mix)
    return count


@compiled
def _light_up(
    light: Light,
    grid: SunGrid,
    count: int,
    owner: Owners,
    surfaces: Surfaces,
    first: int,
    radiance: Singles,
    sunward: Sunward,
    asking: int,
) -> int:
    """Write the light of the sky that surfaces send to the camera, and ask for the sun that might reach them.

    Leaves let it through. Returns how many points now ask.
    """
    normal, leafy, facing, gloss = surfaces.normal, surfaces.leafy, surfaces.facing, surfaces.gloss
    point, colour, pixel, sun, sky = surfaces.point, surfaces.colour, surfaces.pixel, light.sun, light.sky
    lifted, own, gain, which = sunward.lifted, sunward.own, sunward.gain, sunward.pixel
    sx, sy, sz = grid.axes[0, 2], grid.axes[1, 2], grid.axes[2, 2]
    for j in range(count):
        at, nx, ny, nz = pixel[j], normal[0, j], normal[1, j], normal[2, j]
        open_sky = INSIDE if facing[j] > 0 else 1.0
        around = open_sky * (0.55 + 0.45 * nz)  # what hides the sky gives some light too
        mirror = _mirror(gloss[j], 1 - abs(facing[j]), nz)
        towards = nx * sx + ny * sy + nz * sz
        above = LEAF_DEPTH_M if leafy[j] else SURFACE_M
        above = -above if towards < 0 else above
        direct = 0.3 + 0.7 * abs(towards) if leafy[j] else towards
        for channel in range(3):
            radiance[at, channel] = sky[channel] * (colour[channel, j] * around + mirror)
            gain[channel, asking] = sun[channel] * direct * colour[channel, j]
        lifted[0, asking] = point[0, j] + above * nx
        lifted[1, asking] = point[1, j] + above * ny
        lifted[2, asking] = point[2, j] + above * nz
        # a convex solid is never in the way of a side that faces the sun
        own[asking] = owner[at] if (towards > 0) & (facing[j] <= 0) else -1
        which[asking] = first + at
        asking += (towards > 0) | leafy[j]  # the next one overwrites what is not kept
    return asking


@compiled
def _light_by_sun(grid: SunGrid, count: int, sunward: Sunward, radiance: Singles) -> None:
    """Add the light of the sun to the surfaces that it reaches."""
    lit, x, y, z = np.empty(count, np.bool_), sunward.lifted[0], sunward.lifted[1], sunward.lifted[2]
    find_shadows(grid, x[:count], y[:count], z[:count], sunward.own, lit)
    for ray in range(count):
        if lit[ray]:
            for channel in range(3):
                radiance[sunward.pixel[ray], channel] += sunward.gain[channel, ray]


@inlined
def _mirror(gloss: float, slant: float, upward: float) -> float:
    """Return the share of the sky that a glossy surface mirrors: more at a slant (after Fresnel, Schlick)."""
    return gloss * (0.08 + 0.92 * slant * slant * slant) * (0.4 + 0.6 * max(upward, 0.0))

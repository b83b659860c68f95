"""Where the sky is, from the clean image and what is known of depth there: a rule, not a network.

Sky is smooth, bright and not warmer than blue, touches the top of the image, and has no surface measured in
it. Of another colour, as at dusk or with a warm white balance, it is sky where a stereo pair shows next to no
surface in it, it ends above the horizon, and little else in the image is brighter. Its colour there, local
means, then finds the rest: gaps in foliage, edges, clouds. docs/depth.md has the measured precision and
recall.
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from adverse.types import Image

LEAST_BLUE = 70
"""Darker than this in blue is not sky."""
WARM_LEVELS = 6
"""By how much red or green may exceed blue."""
FLAT_LEVELS = 14
"""Most that brightness may differ within 3x3 pixels of smooth sky."""
TOP_SHARE = 0.02
"""Sky begins in this share of the rows, from the top."""
EMPTY_PX = 9
"""Size of the neighbourhood of pixels without a picture in which sky can begin."""
LEAST_SHARE = 0.001
"""Smallest connected piece of smooth sky, as a share of the image."""
NEAR_SHARE, MATCHED_SHARE = 0.25, 0.7
"""A piece of which more than this share is measured (or only matched) as near is a wall, not sky."""
WINDOW_SHARE = 1 / 4
"""Side of the window for local means, as a share of the image's width."""
SPECK_PX, SPECK_LEVELS = 8, 20
"""Most pixels of a speck in the sky, and most that their colour may differ from that around them."""
EDGE_PX = 2
"""How far sky goes on below its lowest smooth pixel."""
COLOUR_LEVELS = 40
"""How far a pixel of sky may be from the local mean, in the channel that differs most."""

WARM_COLOUR_LEVELS = 26
"""The same, where the sky is of any colour and the pixel may be warmer than blue."""
WARM_SHARE, WARM_NEAR_SHARE, WARM_MATCHED_SHARE, WARM_DARKER_SHARE = 0.01, 0.12, 0.65, 0.7
"""Sky of any colour: at least this share of the image, at most these shares measured and matched as near, and
at least this share of the rest of the image darker. (Rendered: 0.08, 0.56 and 0.79; of surfaces that are as
smooth the second is 0.19 and more.)"""
BELOW_HORIZON = 0.05
"""How far below the horizon its lowest twentieth may begin, as a share of the image's height."""
TOUCH_PX, TOUCH_LEVELS = 5, 12
"""It begins at the top, or this near to other sky, of which its colour there differs by no more than this."""

BLUE_LEVELS, ALIKE_LEVELS, ALIKE_SHARE, POCKET_SHARE = 40, 25, 0.6, 0.5
"""A piece is sky after all if so much of it is as blue (blue above red) and as close to the colour of the sky
around, and no more than the last share was matched: between a pole and a tree matching takes smooth sky for a
surface."""
ENCLOSED_LEVELS, ENCLOSED_SHARE, ROW_PX = 16, 0.8, 16
"""The same for a piece that leaves enclose: its colour may differ so much from the sky's in the same rows, of
which each shows so many pixels, and no more than this share may be matched."""

PIECE_PX, PALE_LEVELS, PALE_SHARE, OFF_LEVELS = 30, 20, 0.6, 30
"""A piece of so many pixels, found by colour and measured as near, is a wall if it is not as blue as above
and either the sky is bluer than red by so many levels and the piece by less than this share of them, or it is
so far from the local mean."""
SOLID_PX, SOLID_SHARE = 25, 0.7
"""A part of smooth sky is a wall that runs on into it if in a window so large so much is measured as near."""
SURE_SHARE = 0.7
"""Under a sky that is not as blue, a piece is a wall that is large and of which this share is near."""

Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]


def sky_mask(
    image: Image,
    *,
    near: Mask | None = None,
    matched: Mask | None = None,
    empty: Mask | None = None,
    horizon: float | None = None,
) -> Mask:
    """Return where (H,W) the sky is in an image (H,W,3).

    `near` is where a surface was measured, `matched` where one was but could be an artefact of smoothness:
    much more of it is needed before a smooth piece counts as a wall. `empty` is where there is no picture
    (borders of a rectified image): sky may begin there too. `horizon` is its row in a camera that is held
    level; with it and a stereo pair's `near` and `matched` sky may have any colour.

    >>> image = np.zeros((40, 60, 3), np.uint8)
    >>> image[:20], image[20:] = (150, 180, 220), (90, 120, 40)
    >>> bool((sky_mask(image) == (image[..., 2] == 220)).all())
    True
    """
    rows, columns = image.shape[:2]
    evidence = [
        (mask, share) for mask, share in ((near, NEAR_SHARE), (matched, MATCHED_SHARE)) if mask is not None
    ]
    colour = image if image.ndim == 3 else np.repeat(image[..., None], 3, axis=2)
    red, green, blue = cv2.split(colour)
    likely = (blue >= LEAST_BLUE) & (
        cv2.max(cv2.subtract(red, blue), cv2.subtract(green, blue)) <= WARM_LEVELS
    )
    start = _start(image, empty)
    smooth = _smooth(colour)
    seeds, walls = _smooth_pieces(likely & smooth, evidence, start)
    if near is not None:
        solid = _solid(seeds, near & (cv2.subtract(blue, red) < BLUE_LEVELS))
        seeds, measured = _smooth_pieces(seeds & ~solid, evidence, start)
        walls |= solid | measured
    warm = np.zeros_like(seeds)
    if near is not None and matched is not None and horizon is not None:
        rest = smooth & ~seeds & ~walls
        warm = _warm_pieces(colour, rest, near, matched, start, seeds, horizon)
        if warm.any():
            walls |= _smooth_pieces(rest & ~warm, evidence, start)[1]
            seeds = seeds | warm
    if not seeds.any():
        return seeds
    side = max(int(columns * WINDOW_SHARE) | 1, 9)
    weight = cv2.boxFilter(seeds.astype(np.float32), -1, (side, side), borderType=cv2.BORDER_REFLECT)
    kept = np.where(seeds[..., None], colour, 0).astype(np.float32)
    total = cv2.boxFilter(kept, -1, (side, side), borderType=cv2.BORDER_REFLECT)
    mean: Floats = (total / np.maximum(weight, 1e-9)[..., None]).astype(np.float32)
    off = np.abs(colour - mean).max(axis=2)
    if matched is not None:
        deep = cv2.subtract(blue, red) >= BLUE_LEVELS
        pockets = _pockets(walls, deep & (off <= ALIKE_LEVELS), matched, start, POCKET_SHARE)
        if horizon is not None:
            high = np.repeat(np.arange(rows)[:, None] < horizon, columns, axis=1)
            alike = deep & high & _as_sky_beside(colour, seeds)
            pockets |= _pockets(walls, alike, matched, high, ENCLOSED_SHARE)
        seeds, walls = seeds | pockets, walls & ~pockets
    found = (off <= WARM_COLOUR_LEVELS) if warm.any() else np.zeros_like(seeds)
    found |= likely & (off <= COLOUR_LEVELS)
    found &= ~walls & (weight > 0)
    lowest = np.where(seeds.any(axis=0), rows - 1 - seeds[::-1].argmax(axis=0), -1)
    reach = cv2.dilate(lowest.astype(np.float32)[None], np.ones((1, side), np.uint8))[0]
    found &= np.arange(rows)[:, None] <= reach + EDGE_PX
    if near is not None:
        found &= ~_walls_found(found, seeds, near, off, colour, mean)
    return _without_specks(found | seeds, colour)


def _solid(sky: Mask, measured: Mask) -> Mask:
    """Return the large parts of smooth sky that are measured nearly everywhere: walls that run on into it."""
    window = (SOLID_PX, SOLID_PX)
    count, hits = (
        cv2.boxFilter(mask.astype(np.float32), -1, window, borderType=cv2.BORDER_REFLECT)
        for mask in (sky, sky & measured)
    )
    solid = sky & (hits >= SOLID_SHARE * count)
    joined = cv2.morphologyEx(
        solid.astype(np.uint8), cv2.MORPH_CLOSE, np.ones((TOUCH_PX, TOUCH_PX), np.uint8)
    )
    components, labels = cv2.connectedComponents(joined, connectivity=8)
    large = np.bincount(labels[solid], minlength=components) >= LEAST_SHARE * sky.size
    wall: Mask = solid & large[labels]
    return wall


def _walls_found(found: Mask, seeds: Mask, near: Mask, off: Floats, colour: Image, mean: Floats) -> Mask:
    """Return the pieces that were found by colour but are measured, and not as blue as the sky there."""
    square = np.ones((TOUCH_PX, TOUCH_PX), np.uint8)
    away = found & ~_touching(seeds)
    joined = cv2.morphologyEx(away.astype(np.uint8), cv2.MORPH_CLOSE, square)
    count, labels = cv2.connectedComponents(joined, connectivity=4)
    piece, colours, skies = labels[away], colour[away].astype(np.float32), mean[away]
    area = np.bincount(piece, minlength=count)
    measured, unlike, blue, sky_blue = (
        np.bincount(piece, values, minlength=count) / np.maximum(area, 1)
        for values in (near[away], off[away], colours[:, 2] - colours[:, 0], skies[:, 2] - skies[:, 0])
    )
    wall = (unlike > OFF_LEVELS) | ((sky_blue >= PALE_LEVELS) & (blue < PALE_SHARE * sky_blue))
    wall &= (area >= PIECE_PX) & (measured > NEAR_SHARE) & (blue < BLUE_LEVELS)
    wall |= (area >= LEAST_SHARE * labels.size) & (measured > SURE_SHARE) & (blue < BLUE_LEVELS)
    walls: Mask = wall[labels] & away
    return walls


def _as_sky_beside(colour: Image, sky: Mask) -> Mask:
    """Return where (H,W) the colour is that of the sky in the same row: it changes most with height."""
    count = sky.sum(axis=1)
    mean = np.where(sky[..., None], colour, 0).sum(axis=1) / np.maximum(count, 1)[:, None]
    off = np.abs(colour - mean.astype(np.float32)[:, None]).max(axis=2)
    alike: Mask = (off <= ENCLOSED_LEVELS) & (count >= ROW_PX)[:, None]
    return alike


def _pockets(walls: Mask, alike: Mask, matched: Mask, start: Mask, most: float) -> Mask:
    """Return the pieces of walls with pixels in `start` that look like sky; at most a share is matched."""
    count, labels = cv2.connectedComponents(walls.astype(np.uint8), connectivity=4)
    begins = np.zeros(count, np.bool_)
    begins[np.unique(labels[start])] = True
    begins[0] = False
    area = np.bincount(labels.ravel(), minlength=count)
    blue = np.bincount(labels[alike], minlength=count) >= ALIKE_SHARE * area
    loose = np.bincount(labels[matched], minlength=count) <= most * area
    pockets: Mask = (begins & blue & loose)[labels]
    return pockets


def _without_specks(sky: Mask, colour: Image) -> Mask:
    """Return the sky with pixels in it that noise made look warm: tiny, and of the colour around them."""
    _, labels, stats, _ = cv2.connectedComponentsWithStats((~sky).astype(np.uint8), connectivity=8)
    tiny = stats[:, cv2.CC_STAT_AREA] <= SPECK_PX
    tiny[0] = False
    specks = tiny[labels]
    off = cv2.absdiff(colour, cv2.medianBlur(colour, 5)).max(axis=2)
    whole: Mask = sky | (specks & (off <= SPECK_LEVELS))
    return whole


def with_islands(sky: Mask, measured: Mask) -> Mask:
    """Return the sky with what is small in it and was not measured: wires, birds, noise."""
    _, labels, stats, _ = cv2.connectedComponentsWithStats((~sky).astype(np.uint8), connectivity=8)
    small = stats[:, cv2.CC_STAT_AREA] < LEAST_SHARE * labels.size
    small[np.unique(labels[measured])] = False
    small[0] = False
    joined: Mask = sky | small[labels]
    return joined


def _start(image: Image, empty: Mask | None) -> Mask:
    """Return where (H,W) sky can begin: at the top, or below what is empty in the upper half."""
    rows = image.shape[0]
    start = np.zeros(image.shape[:2], np.bool_)
    if empty is not None:
        start |= cv2.dilate(empty.astype(np.uint8), np.ones((EMPTY_PX, EMPTY_PX), np.uint8)) > 0
        start[rows // 2 :] = False
    start[: max(int(rows * TOP_SHARE), 1)] = True
    return start


def _smooth(colour: Image) -> Mask:
    """Return where (H,W) brightness hardly differs between neighbours."""
    gray = cv2.cvtColor(colour, cv2.COLOR_RGB2GRAY)
    square = np.ones((3, 3), np.uint8)
    smooth: Mask = cv2.dilate(gray, square) - cv2.erode(gray, square) <= FLAT_LEVELS
    return smooth


def _smooth_pieces(smooth: Mask, evidence: list[tuple[Mask, float]], start: Mask) -> tuple[Mask, Mask]:
    """Return the pieces of smooth, sky-coloured pixels that are sky, and those that are near surfaces.

    Sky has pixels in `start`. Small pieces are neither.
    """
    count, labels, stats, _ = cv2.connectedComponentsWithStats(smooth.astype(np.uint8), connectivity=4)
    begins = np.zeros(count, np.bool_)
    begins[np.unique(labels[start])] = True
    area = stats[:, cv2.CC_STAT_AREA]
    large = area >= LEAST_SHARE * labels.size
    large[0] = False  # what is in no piece
    hit = np.zeros(count, np.bool_)
    for mask, share in evidence:
        hit |= np.bincount(labels[mask], minlength=count) > share * area
    return (large & begins & ~hit)[labels], (large & hit)[labels]


def _warm_pieces(
    colour: Image, smooth: Mask, near: Mask, matched: Mask, start: Mask, sky: Mask, horizon: float
) -> Mask:
    """Return the smooth pieces that are sky whatever their colour: by place, brightness and stereo."""
    count, labels, stats, _ = cv2.connectedComponentsWithStats(smooth.astype(np.uint8), connectivity=4)
    area = stats[:, cv2.CC_STAT_AREA]
    begins = np.zeros(count, np.bool_)
    begins[np.unique(labels[start])] = True
    beside = np.zeros(count, np.bool_)
    beside[np.unique(labels[_touching(sky)])] = True
    begins &= area >= WARM_SHARE * labels.size
    beside &= ~begins & (area >= LEAST_SHARE * labels.size)
    begins |= beside
    begins[0] = False
    begins &= np.bincount(labels[near], minlength=count) <= WARM_NEAR_SHARE * area
    begins &= np.bincount(labels[matched], minlength=count) <= WARM_MATCHED_SHARE * area
    gray = cv2.cvtColor(colour, cv2.COLOR_RGB2GRAY)
    lowest = horizon + BELOW_HORIZON * len(labels)
    for piece in np.flatnonzero(begins):
        inside = labels == piece
        low = (inside.sum(axis=1)[np.arange(len(labels)) > lowest]).sum() > area[piece] / 20
        begins[piece] = not low and (gray[~inside] < gray[inside].mean()).mean() >= WARM_DARKER_SHARE
        if begins[piece] and beside[piece]:
            edges = colour[inside & _touching(sky)].mean(axis=0), colour[sky & _touching(inside)].mean(axis=0)
            begins[piece] = np.abs(edges[0] - edges[1]).max() <= TOUCH_LEVELS
    pieces: Mask = begins[labels]
    return pieces


def _touching(seeds: Mask) -> Mask:
    """Return the sky with what is right beside it."""
    touching: Mask = cv2.dilate(seeds.astype(np.uint8), np.ones((TOUCH_PX, TOUCH_PX), np.uint8)) > 0
    return touching

"""Depth of a frame made consistent with that of its neighbours in a video, by the poses of the camera.

What the pairs of neighbouring frames measured is carried to where the camera sees it now. Where this frame
has measured a surface itself, neighbours that say the same are averaged with it: their errors differ, the
surface does not. Where it has measured nothing, most of the neighbours must say the same, and have seen the
same colour. What contradicts this frame is dropped: it has moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import cv2
import numpy as np
from numba import njit
from numpy.typing import NDArray

from adverse.depth.calibration import check_baseline, check_camera
from adverse.depth.dense import DenseDepth, checked_hood, with_hood
from adverse.depth.filling import filled_from_farther
from adverse.depth.stereo import DISTANT_SHARE, LEAST_PX, Refine, far_from, refined
from adverse.errors import DataError
from adverse.types import Camera, Image

AGREE_PX = 0.5
"""Disparities that differ by less are the same surface's."""
ALIKE_LEVELS = 12.0
"""How much the colour of what two frames see may differ, in each channel."""
LEAST_CONFIDENCE = 0.5
"""Of what a neighbour has measured."""
NEAREST_M = 0.1

Floats = NDArray[np.float32]


class Neighbour(NamedTuple):
    """A frame before or after: its left image (H,W,3), the depth of its pair, and where its camera was.

    Depth is as matched (`refine="none"`); `camera_from_neighbour` (4,4) carries points of its camera's frame
    into that of this one.
    """

    image: Image
    depth: DenseDepth
    camera_from_neighbour: NDArray[np.floating]


def consistent(
    image: Image,
    depth: DenseDepth,
    neighbours: Sequence[Neighbour],
    camera: Camera,
    *,
    refine: Refine = "smoother",
    hood: NDArray[np.uint8] | None = None,
    where: str = "stereo pair",
) -> DenseDepth:
    """Return the depth of a left image (H,W,3), consistent with neighbouring frames of the same camera.

    `depth` is that of its own pair as matched (`from_stereo` with `refine="none"`), refined here. The order
    of the neighbours makes no difference. What was measured by neighbours alone counts as measured.
    """
    check_camera(camera, (image.shape[1], image.shape[0]), where)
    scale = camera.fx * check_baseline(camera, where)
    hood = checked_hood(hood, image, where)
    sky = depth.sky if hood is None else depth.sky & (hood == 0)
    own = _disparity(depth, scale)
    colour = _blurred(image)
    seen = [_carried(one, camera, scale, sky.shape, where) for one in neighbours]
    fused, measured = own, depth.measured
    if seen:
        values = np.stack([one[0] for one in seen])
        alike = np.stack([_alike(*one, colour) for one in seen])
        scene = ~sky if hood is None else ~sky & (hood == 0)
        fused, measured = _fused(own, depth.measured, scene, values, alike)
    doubted = depth.measured & (depth.confidence <= 0)
    filled = filled_from_farther(fused, measured)
    smooth, confidence = refined(filled, measured & ~doubted, image, sky, refine)
    made = (scale / np.maximum(smooth, LEAST_PX)).astype(np.float32)
    if not measured.any():
        made[:] = np.nan
    made[sky] = np.inf
    confidence[sky] = 1
    return with_hood(
        DenseDepth(made, confidence, measured, far_from(measured, DISTANT_SHARE * camera.width) & ~sky), hood
    )


def _disparity(depth: DenseDepth, scale: float) -> Floats:
    known = np.isfinite(depth.depth_m) & (depth.depth_m > 0)
    return np.where(known, scale / np.where(known, depth.depth_m, 1), 0).astype(np.float32)


def _carried(
    one: Neighbour, camera: Camera, scale: float, shape: tuple[int, ...], where: str
) -> tuple[Floats, Floats]:
    """Return what a neighbour measured as seen from here: disparity (H,W), colour (H,W,3); NaN: nothing."""
    pose = np.asarray(one.camera_from_neighbour, np.float64)
    if one.image.shape[:2] != shape or one.depth.depth_m.shape != shape:
        raise DataError(
            "a neighbouring frame is of another size",
            where=where,
            got=f"{one.image.shape[1]}x{one.image.shape[0]} pixels",
            wanted=f"{shape[1]}x{shape[0]}",
            fix="Give frames of one camera.",
        )
    if pose.shape != (4, 4) or not np.isfinite(pose).all():
        raise DataError(
            "a neighbouring frame has no usable pose", where=where, wanted="a finite (4,4) matrix"
        )
    used = one.depth.measured & (one.depth.confidence >= LEAST_CONFIDENCE) & np.isfinite(one.depth.depth_m)
    row, column = np.nonzero(used)
    z = one.depth.depth_m[used].astype(np.float64)
    points = np.stack([(column - camera.cx) / camera.fx * z, (row - camera.cy) / camera.fy * z, z], axis=1)
    x, y, z = (points @ pose[:3, :3].T + pose[:3, 3]).T
    ahead = z > NEAREST_M
    z = np.where(ahead, z, 1.0)
    u, v = camera.fx * x / z + camera.cx, camera.fy * y / z + camera.cy
    ahead &= (u > -1) & (u < shape[1]) & (v > -1) & (v < shape[0])
    disparity = (scale / z)[ahead]
    nearest = np.zeros(shape, np.float64)
    _put_nearest(u[ahead], v[ahead], disparity, nearest)
    colours = _blurred(one.image)[used][ahead]
    carried: tuple[Floats, Floats] = _means(u[ahead], v[ahead], disparity, colours, nearest)
    return carried


def _alike(disparity: Floats, seen: Floats, colour: Floats) -> Floats:
    """Return a neighbour's disparity where it has seen the same colour as this frame, else NaN."""
    with np.errstate(invalid="ignore"):
        same = (np.abs(seen - colour) <= ALIKE_LEVELS).all(axis=2)
    return np.where(same, disparity, np.float32(np.nan))


def _blurred(image: Image) -> Floats:
    """Return colours (H,W,3), a little blurred: they are compared between pixels that differ a little."""
    colour = np.atleast_3d(image).repeat(1 if image.ndim == 3 else 3, axis=2)
    return np.asarray(cv2.GaussianBlur(colour.astype(np.float32), (3, 3), 0), np.float32)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _put_nearest(u: Any, v: Any, disparity: Any, nearest: Any) -> None:  # pragma: no cover - compiled
    """Put the greatest disparity of the points (N,) around each pixel into `nearest` (H,W)."""
    rows, columns = nearest.shape
    for n in range(len(u)):
        left, top = int(np.floor(u[n])), int(np.floor(v[n]))
        for row in range(max(top, 0), min(top + 2, rows)):
            for column in range(max(left, 0), min(left + 2, columns)):
                nearest[row, column] = max(nearest[row, column], disparity[n])


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _means(u: Any, v: Any, disparity: Any, colours: Any, nearest: Any) -> Any:  # pragma: no cover - compiled
    """Interpolate disparity (H,W) and colour (H,W,3) of the nearest surface from the points on it."""
    rows, columns = nearest.shape
    sums = np.zeros((rows, columns, 5))
    for n in range(len(u)):
        left, top = int(np.floor(u[n])), int(np.floor(v[n]))
        for row in range(max(top, 0), min(top + 2, rows)):
            for column in range(max(left, 0), min(left + 2, columns)):
                if disparity[n] >= nearest[row, column] - AGREE_PX:
                    weight = (1 - abs(u[n] - column)) * (1 - abs(v[n] - row)) + 1e-6
                    sums[row, column, 0] += weight
                    sums[row, column, 1] += weight * disparity[n]
                    for channel in range(3):
                        sums[row, column, 2 + channel] += weight * colours[n, channel]
    found = np.full((rows, columns), np.nan, np.float32)
    shown = np.full((rows, columns, 3), np.nan, np.float32)
    for row in range(rows):
        for column in range(columns):
            total = sums[row, column, 0]
            if total > 0:
                found[row, column] = sums[row, column, 1] / total
                for channel in range(3):
                    shown[row, column, channel] = sums[row, column, 2 + channel] / total
    return found, shown


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _fused(
    own: Any, measured: Any, scene: Any, values: Any, alike: Any
) -> Any:  # pragma: no cover - compiled
    """Average what agrees with this frame, and where it has measured nothing, what most neighbours agree on.

    `values` (N,H,W) are disparities of the neighbours, `alike` those of what has the colour of this frame.
    """
    count, rows, columns = values.shape
    fused, known = own.copy(), measured.copy()
    for y in range(rows):
        for x in range(columns):
            total, number, needed, middle = float(own[y, x]), 1, 1, own[y, x]
            votes = values[:, y, x]
            if not measured[y, x]:
                if not scene[y, x]:
                    continue
                votes = alike[:, y, x]
                total, number, needed, middle = (
                    0.0,
                    0,
                    max(count // 2 + 1, 2),
                    np.float32(np.nanmedian(votes)),
                )
            for vote in votes:
                if abs(vote - middle) <= AGREE_PX:  # False for NaN
                    total += vote
                    number += 1
            if number >= needed:
                fused[y, x] = total / number
                known[y, x] = True
    return fused, known

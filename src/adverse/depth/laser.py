"""Dense metric depth from the returns of a laser scanner, with confidence; nothing is invented silently.

1. Returns seen through nearer surfaces are dropped: the scanner stands elsewhere than the camera and sees
behind
   what hides them from it.
2. Between returns, inverse depth is interpolated on triangles: exact for planes. Across a step each pixel
   takes the depth of the corner that is near and looks alike.
3. Above and below the scanner's view the last return of the column is carried on; the higher above, the more
   it is that of the columns around, too.
4. The sky (`adverse.depth.sky`) is at +inf, except where returns show a surface.
5. Refined along the edges of the image, by confidence.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import cv2
import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import ndimage
from scipy.spatial import Delaunay, QhullError

from adverse.depth.bilateral_solver import bilateral_solver
from adverse.depth.calibration import check_camera
from adverse.depth.dense import DenseDepth, check_not_all_sky, checked_hood, with_hood
from adverse.depth.filling import filled_from_farther
from adverse.depth.sky import sky_mask, with_islands
from adverse.depth.smoothing import fast_global_smoother
from adverse.depth.stereo import Refine
from adverse.errors import DataError
from adverse.types import Camera, Depth, Image

ACROSS_PX, DOWN_PX = 8, 10
"""Half sizes of the window in which nearer returns hide one; rings of a scanner are some 6 pixels apart."""
HIDDEN_RATIO = 0.85
"""A return hides another if it is nearer than this share of the other's depth."""
STEP_RATIO = 1.25
"""Depths that differ by more than this ratio are not of one plane."""
COLOUR_PX = 0.4
"""How many pixels of distance one level of colour counts for, across a step."""
RETURN_WEIGHT, PLANE_WEIGHT, STEP_WEIGHT, OUTSIDE_WEIGHT = 1.0, 0.3, 0.03, 0.01
"""Confidence of returns, of what is interpolated, of what lies across a step and of what is carried on."""
LONG_PX = 40
"""A triangle that is wider than this joins things that are not neighbours: it stays empty."""
COLUMNS_PX = 31
"""What is carried on beyond the scanner's view is the median over so many columns."""
FAN = 0.5
"""Above the view it is the mean over so many columns to either side, for each row higher: a step between
columns fades, and is no straight edge through what reaches above the view."""
SURFACE_PX = 6
"""Within so many pixels of a return there is a surface."""
DISTANT_PX = 30
"""Farther from any return than this, depth is marked."""
LEAST_RETURNS = 20
NEAREST_M, FARTHEST_M = 0.3, 500.0
"""Half the returns of a scan lie between these, if it is in metres."""

Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]


def from_laser(
    returns_m: NDArray[np.floating],
    image: Image,
    camera: Camera | None = None,
    *,
    refine: Refine = "smoother",
    with_sky: bool = True,
    hood: NDArray[np.uint8] | None = None,
    where: str = "laser scan",
) -> DenseDepth:
    """Return dense depth of an image (H,W,3) from laser returns in metres.

    Returns are sparse depth (H,W), NaN where there is none, or, with a camera, points (N,3) in its frame: x
    right, y down, z forward. Raises DataError where the scan is empty or its unit cannot be metres.
    """
    if camera is not None:
        check_camera(camera, (image.shape[1], image.shape[0]), where)
        returns_m = seen_by(camera, returns_m, where)
    sparse_m: Depth = returns_m.astype(np.float32)
    check_returns(sparse_m, image, where)
    hood = checked_hood(hood, image, where)
    if hood is not None:
        sparse_m = np.where(hood == 0, sparse_m, np.float32(np.nan))
        check_returns(sparse_m, image, f"{where}, without the hood")
    seen = without_hidden(sparse_m)
    returns = np.isfinite(seen)
    apart = cv2.distanceTransform((~returns).astype(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_5)
    sky = sky_mask(image, near=apart <= SURFACE_PX) if with_sky else np.zeros_like(returns)
    sky = with_islands(sky & ~returns, returns)
    if hood is not None:
        sky &= hood == 0
    check_not_all_sky(sky, where)
    filled, weight = _completed(seen, image, where)
    weight[sky] = 0
    if refine == "smoother":
        inverse = fast_global_smoother(filled, weight, image, cut=sky).values
    elif refine == "solver":
        inverse = bilateral_solver(filled, weight, image)
    else:
        inverse = filled
    depth = (1 / np.maximum(inverse, 1 / FARTHEST_M)).astype(np.float32)
    depth[returns] = seen[returns]
    depth[sky] = np.inf
    confidence = np.where(sky, 1, weight).astype(np.float32)
    return with_hood(DenseDepth(depth, confidence, returns, (apart > DISTANT_PX) & ~sky), hood)


def seen_by(camera: Camera, points_m: NDArray[np.floating], where: str = "laser scan") -> Depth:
    """Return the sparse depth (H,W) of points (N,3) in a camera's frame; of several on a pixel the nearest.

    >>> seen_by(Camera(100, 100, 1, 0, 3, 1), np.array([[0, 0, 5.0], [0, 0, 4.0], [0.04, 0, 4], [0, 0, -1]]))
    array([[nan,  4.,  4.]], dtype=float32)
    """
    if points_m.ndim != 2 or points_m.shape[1] != 3:
        raise DataError(
            "the points of the scan have the wrong shape",
            where=where,
            got=str(points_m.shape),
            wanted="(N, 3): x right, y down, z forward in metres",
            fix="Give points with a camera, or sparse depth without one.",
        )
    points = points_m[points_m[:, 2] > 0].astype(np.float64)  # False for NaN too
    x = np.floor(camera.fx * points[:, 0] / points[:, 2] + camera.cx + 0.5)
    y = np.floor(camera.fy * points[:, 1] / points[:, 2] + camera.cy + 0.5)
    inside = (x >= 0) & (x < camera.width) & (y >= 0) & (y < camera.height)
    order = np.argsort(-points[inside, 2], kind="stable")  # the nearest is written last
    sparse = np.full((camera.height, camera.width), np.nan, np.float32)
    sparse[y[inside][order].astype(np.int64), x[inside][order].astype(np.int64)] = points[inside, 2][order]
    return sparse


def check_returns(sparse_m: Depth, image: Image, where: str) -> None:
    """Raise where sparse depth is not of the image, empty, or in another unit than metres."""
    if sparse_m.shape != image.shape[:2]:
        raise DataError(
            "the sparse depth is not of the image's size",
            where=where,
            got=f"{sparse_m.shape[1]}x{sparse_m.shape[0]} pixels",
            wanted=f"{image.shape[1]}x{image.shape[0]}",
            fix="Project the scan with the calibration of this image.",
        )
    depths = sparse_m[np.isfinite(sparse_m)]
    if len(depths) < LEAST_RETURNS:
        raise DataError(
            "the scan has too few returns in the image",
            where=where,
            got=f"{len(depths)} returns",
            wanted=f"at least {LEAST_RETURNS}",
            fix="Check that the scan is not empty and that the calibration turns it into the camera's frame.",
        )
    if (depths <= 0).any():
        raise DataError(
            "a return has no depth",
            where=where,
            got=f"{int((depths == 0).sum())} pixels of 0 m, {int((depths < 0).sum())} behind the camera",
            wanted="metres in front of the camera, NaN where no return falls",
            fix="Write NaN, not 0, where no return falls; if some are behind, check the calibration.",
        )
    middle = float(np.median(depths))
    if not NEAREST_M <= middle <= FARTHEST_M:
        raise DataError(
            "the depth of the scan is not in metres",
            where=where,
            got=f"half of the returns nearer than {middle:g}",
            wanted=f"metres: half of them nearer than something from {NEAREST_M:g} to {FARTHEST_M:g}",
            fix="Give metres; millimetres are a thousand times as many (PNG: see depth_scale_m).",
        )


def without_hidden(sparse_m: Depth) -> Depth:
    """Return sparse depth (H,W) without the returns that nearer ones surround on at least three sides.

    >>> sparse = np.full((9, 9), np.nan, np.float32)
    >>> sparse[1, 1], sparse[1, 7], sparse[7, 1], sparse[4, 4] = 3, 3, 3, 20
    >>> np.isnan(without_hidden(sparse)[4, 4])
    np.True_
    """
    kept: Depth = _unhidden(np.ascontiguousarray(sparse_m, np.float32))
    return kept


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _unhidden(sparse: Any) -> Any:  # pragma: no cover - compiled
    rows, columns = sparse.shape
    kept = sparse.copy()
    for y in range(rows):
        for x in range(columns):
            if np.isnan(sparse[y, x]):
                continue
            limit = HIDDEN_RATIO * sparse[y, x]
            quarters = 0  # one bit for each quarter around the pixel
            for v in range(max(y - DOWN_PX, 0), min(y + DOWN_PX + 1, rows)):
                for u in range(max(x - ACROSS_PX, 0), min(x + ACROSS_PX + 1, columns)):
                    if sparse[v, u] < limit:
                        quarters |= 1 << ((2 if v > y else 0) + (1 if u > x else 0))
            if quarters in (7, 11, 13, 14, 15):
                kept[y, x] = np.nan
    return kept


class _Completed(NamedTuple):
    inverse: Floats
    weight: Floats


def _completed(seen: Depth, image: Image, where: str) -> _Completed:
    """Return inverse depth at every pixel, and how sure it is."""
    y, x = np.nonzero(np.isfinite(seen))
    inverse = np.zeros(seen.shape, np.float32)
    weight = np.zeros(seen.shape, np.float32)
    values = (1 / seen[y, x]).astype(np.float32)
    try:
        corners = Delaunay(np.column_stack([x, y])).simplices.astype(np.int32)
    except QhullError as error:
        raise DataError(
            "the returns of the scan lie on one line",
            where=where,
            got=f"{len(x)} returns",
            wanted="returns spread over the image",
            fix="Check the calibration of the scanner.",
        ) from error
    colour = image if image.ndim == 3 else cv2.cvtColor(image, cv2.COLOR_GRAY2RGB)
    _fill_triangles(corners, x.astype(np.int32), y.astype(np.int32), values, colour, inverse, weight)
    inverse[y, x], weight[y, x] = values, RETURN_WEIGHT
    _carry_on(inverse, weight)
    return _Completed(inverse, weight)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _fill_triangles(  # pragma: no cover - compiled
    corners: Any, xs: Any, ys: Any, values: Any, colour: Any, inverse: Any, weight: Any
) -> None:
    for t in range(len(corners)):
        a, b, c = corners[t]
        area = (xs[b] - xs[a]) * (ys[c] - ys[a]) - (xs[c] - xs[a]) * (ys[b] - ys[a])
        if area == 0:
            continue
        nearest = max(values[a], values[b], values[c])
        step = nearest > STEP_RATIO * min(values[a], values[b], values[c])
        across = max(xs[a], xs[b], xs[c]) - min(xs[a], xs[b], xs[c])
        if across > LONG_PX:
            continue
        for y in range(min(ys[a], ys[b], ys[c]), max(ys[a], ys[b], ys[c]) + 1):
            for x in range(min(xs[a], xs[b], xs[c]), max(xs[a], xs[b], xs[c]) + 1):
                of_b = ((x - xs[a]) * (ys[c] - ys[a]) - (xs[c] - xs[a]) * (y - ys[a])) / area
                of_c = ((xs[b] - xs[a]) * (y - ys[a]) - (x - xs[a]) * (ys[b] - ys[a])) / area
                of_a = 1 - of_b - of_c
                if of_a < -1e-9 or of_b < -1e-9 or of_c < -1e-9 or weight[y, x] > 0:
                    continue
                if not step:
                    inverse[y, x] = of_a * values[a] + of_b * values[b] + of_c * values[c]
                    weight[y, x] = PLANE_WEIGHT
                    continue
                inverse[y, x] = values[_most_alike(corners[t], xs, ys, colour, x, y)]
                weight[y, x] = STEP_WEIGHT


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _most_alike(  # pragma: no cover - compiled
    corners: Any, xs: Any, ys: Any, colour: Any, x: int, y: int
) -> int:
    """Return the corner that is near to a pixel and of its colour."""
    best, least = corners[0], np.inf
    for corner in corners:
        unlike = 0.0
        for channel in range(3):
            there = float(colour[ys[corner], xs[corner], channel])
            unlike = max(unlike, abs(float(colour[y, x, channel]) - there))
        cost = np.hypot(float(x - xs[corner]), float(y - ys[corner])) + COLOUR_PX * unlike
        if cost < least:
            best, least = corner, cost
    return int(best)


def _carry_on(inverse: Floats, weight: Floats) -> None:
    """Fill what lies outside of the triangles: by column, from the median of the last values around it."""
    rows, columns = inverse.shape
    known = weight > 0
    filled = np.flatnonzero(known.any(axis=0))
    first = known.argmax(axis=0)[filled]
    last = rows - 1 - known[::-1].argmax(axis=0)[filled]
    nearest = np.interp(np.arange(columns), filled, np.arange(len(filled))).round().astype(np.int64)
    top, bottom = (
        ndimage.median_filter(inverse[at, filled], COLUMNS_PX, mode="nearest")[nearest]
        for at in (first, last)
    )
    row = np.arange(rows)[:, None]
    above, below = ~known & (row < first[nearest]), ~known & (row > last[nearest])
    inverse[:] = np.where(above, top, np.where(below, bottom, inverse))
    inverse[:] = np.where(above, _fanned(inverse, first[nearest] - row), inverse)
    weight[above | below] = OUTSIDE_WEIGHT
    inside = ~known & ~above & ~below
    if inside.any():
        inverse[:] = filled_from_farther(inverse, ~inside)
        weight[inside] = OUTSIDE_WEIGHT


def _fanned(values: Floats, higher: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the mean of the values (H,W) in each row, over the more columns the higher (H,W) a pixel is."""
    rows, columns = values.shape
    sums = np.zeros((rows, columns + 1))
    np.cumsum(values, axis=1, dtype=np.float64, out=sums[:, 1:])
    half = (FAN * np.maximum(higher, 0)).astype(np.int64)
    x = np.arange(columns)
    begin, end = np.maximum(x - half, 0), np.minimum(x + half + 1, columns)
    total = np.take_along_axis(sums, end, axis=1) - np.take_along_axis(sums, begin, axis=1)
    mean: NDArray[np.float64] = total / (end - begin)
    return mean

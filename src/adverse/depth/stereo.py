"""Dense metric depth from a rectified stereo pair, with confidence.

1. Semi-global matching both ways; a pixel is sure where both agree, and is not part of a speck.
2. Disparity to a fraction of a pixel: from the matching cost, then by the image gradient in a small window.
3. The sky (`adverse.depth.sky`) is at +inf.
4. What is unsure is filled from the farther side.
5. Refined along the edges of the image, by confidence: `smoother` or `solver`.
"""

from __future__ import annotations

from typing import Any, Literal

import cv2
import numpy as np
from numba import njit
from numpy.typing import NDArray

from adverse.depth.bilateral_solver import bilateral_solver
from adverse.depth.calibration import check_baseline, check_camera
from adverse.depth.dense import ARTEFACT, DenseDepth, check_not_all_sky, checked_hood, with_hood
from adverse.depth.filling import filled_from_farther
from adverse.depth.ground import below_ground
from adverse.depth.rows import row_offsets_px
from adverse.depth.sky import sky_mask
from adverse.depth.smoothing import fast_global_smoother
from adverse.errors import DataError
from adverse.types import Camera, Image

Refine = Literal["smoother", "solver", "none"]
NEAREST_M, WIDEST_SHARE = 1.0, 0.2
"""How far is searched by default: depth down to this, disparity up to this share of the image's width."""
BLOCK_PX = 3
SMALL_STEP, LARGE_STEP = 8, 32
"""Penalties of semi-global matching, per pixel of the block."""
PREFILTER_LEVELS = 63
STEPS_PER_PX = 16
"""Resolution of the matcher."""
AGREE_PX = 0.6
"""How far the two ways may differ where both are right."""
SPECK_PX, SPECK_STEP_PX = 30, 1.5
"""Connected pieces of fewer pixels than this are wrong; pieces are connected where steps are smaller."""
GRADIENT_PX = 7
"""Window in which the gradient refines disparity."""
NEAR_PX, FIT_PX, FIT_LEVELS = 2.0, 9, 1.0
"""Near: disparity above the first that, in a window of the second, fits better than none by the third."""
RIM_PX, RIM_DISPARITY_PX = 7, 1.0
"""Within so many pixels of the sky, a smaller disparity than this is the sky's."""
STEP_DOUBT = 1.0
"""How fast confidence falls with the variance of disparity in 5x5 pixels."""
UNSURE = 0.1
"""Weight of what is filled in: it holds where nothing better arrives."""
LEAST_PX = 0.25
"""Disparities of surfaces are at least this: farther is not told apart."""
DOUBTFUL_SHARE, LEAST_SHARE = 0.6, 0.35
"""Below the first share of matched pixels a pair is looked at more closely; below the last it is no pair."""
UNMOVED_PX, UNMOVED_SHARE = 0.5, 0.99
"""Where more than this share of the matched pixels has a smaller disparity, one camera took both images."""
SWAPPED_TIMES, SWAPPED_SHARE = 1.5, 0.4
"""A pair is swapped if it matches so many times better the other way round, and at least at this share."""
OFF_ROWS_PX, SAME_ROWS = 0.6, 0.3
"""Rows do not correspond if distinct points are off by more than this in the median (good pairs: 0.2). They
are off alike if the median deviation from that is less than this share of it."""

Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]


def from_stereo(
    left: Image,
    right: Image,
    camera: Camera,
    *,
    nearest_m: float | None = None,
    offset_px: float = 0.0,
    refine: Refine = "smoother",
    with_sky: bool = True,
    hood: NDArray[np.uint8] | None = None,
    sky: Mask | None = None,
    doubted: bool = True,
    where: str = "stereo pair",
) -> DenseDepth:
    """Return dense depth of the left image of a rectified pair (H,W,3).

    `nearest_m` bounds the search (by default disparity goes up to a fifth of the image's width, and depth
    down to a metre); `offset_px` is how much further right the principal point of the right camera lies
    than that of the left. Without `with_sky` no sky is looked for (indoors). `hood` is a mask as
    `adverse.depth.hood` describes. `sky` (H,W) is where the sky is known to be, so that it is not looked for.
    Raises DataError where the pair cannot be one, unless it is not `doubted`: a pair that fog or noise has
    changed may match as badly as one that is none. Where nothing matches its depth is NaN.
    """
    scale = _pixel_metres(left, right, camera, where)
    hood = checked_hood(hood, left, where)
    count = _search_px(scale, camera, nearest_m, offset_px, where)
    disparity, sure = match(left, right, count)
    if hood is not None:
        sure &= hood == 0
    fine, near = _subpixel(left, right, disparity, sure)
    if sky is None and with_sky:
        empty = None if hood is None else hood == ARTEFACT
        sky = sky_mask(left, near=near, matched=sure & (disparity > NEAR_PX), empty=empty)
    sky = np.zeros_like(sure) if sky is None else sky
    if hood is not None:
        sky = sky & (hood == 0)
    measured = sure & ~sky
    if doubted:
        check_not_all_sky(sky, where)
        _check_pair(left, right, disparity, measured, sky, count, where)
    measured &= ~(_grown(sky, RIM_PX) & (fine < RIM_DISPARITY_PX))
    measured &= ~below_ground(fine, measured)
    smooth, confidence = refined(fine, measured, left, sky, refine)
    depth = (scale / np.maximum(smooth + np.float32(offset_px), LEAST_PX)).astype(np.float32)
    if not measured.any():
        depth[:] = np.nan
    depth[sky] = np.inf
    confidence[sky] = 1
    dense = DenseDepth(depth, confidence, measured, np.zeros_like(sky))
    return with_hood(dense, hood)


def match(left: Image, right: Image, count: int) -> tuple[Floats, Mask]:
    """Return the disparity (H,W) of the left image, from 0 to below `count` pixels, and where it is sure."""
    one, other = _gray(left), _gray(right)
    matcher = cv2.StereoSGBM.create(
        minDisparity=0,
        numDisparities=count,
        blockSize=BLOCK_PX,
        P1=SMALL_STEP * BLOCK_PX**2,
        P2=LARGE_STEP * BLOCK_PX**2,
        preFilterCap=PREFILTER_LEVELS,
        mode=cv2.STEREO_SGBM_MODE_SGBM_3WAY,
    )

    def matched(base: Image, target: Image) -> NDArray[np.int16]:
        wide = [cv2.copyMakeBorder(image, 0, 0, count, 0, cv2.BORDER_REPLICATE) for image in (base, target)]
        return matcher.compute(*wide)[:, count:].astype(np.int16)

    forward = matched(one, other)
    backward = matched(other[:, ::-1], one[:, ::-1])[:, ::-1]
    sure = _agreeing(forward, np.ascontiguousarray(backward), round(AGREE_PX * STEPS_PER_PX))
    kept = np.where(sure, forward, -STEPS_PER_PX).astype(np.int16)
    cv2.filterSpeckles(kept, -STEPS_PER_PX, SPECK_PX, round(SPECK_STEP_PX * STEPS_PER_PX))
    return np.maximum(forward, 0).astype(np.float32) / np.float32(STEPS_PER_PX), kept >= 0


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _agreeing(forward: Any, backward: Any, most: int) -> Any:  # pragma: no cover - compiled
    """Return where the left image's disparity and that of the pixel it points at are alike."""
    rows, columns = forward.shape
    agree = np.zeros((rows, columns), np.bool_)
    for y in range(rows):
        for x in range(columns):
            to = x - (forward[y, x] + 8) // 16
            if forward[y, x] >= 0 and to >= 0:
                agree[y, x] = abs(backward[y, to] - forward[y, x]) <= most
    return agree


def _subpixel(left: Image, right: Image, disparity: Floats, sure: Mask) -> tuple[Floats, Mask]:
    """Refine disparity by the gradient, and return where the image itself says that a surface is near.

    Matching gives a smooth sky the disparity of what surrounds it; but there no disparity fits as badly.
    """
    one, other = _gray(left).astype(np.float32), _gray(right).astype(np.float32)
    slope = cv2.Sobel(other, cv2.CV_32F, 1, 0, ksize=3, scale=1 / 8)
    rows, columns = disparity.shape
    at = np.arange(columns, dtype=np.float32) - disparity
    row = np.repeat(np.arange(rows, dtype=np.float32)[:, None], columns, axis=1)
    shifted = cv2.remap(other, at, row, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    slope = cv2.remap(slope, at, row, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    slope[~sure] = 0
    window = (GRADIENT_PX, GRADIENT_PX)
    gain = cv2.boxFilter((one - shifted) * slope, -1, window)
    weight = cv2.boxFilter(slope * slope, -1, window)
    step = np.clip(-gain / (weight + 1), -0.5, 0.5)
    here, unmoved = (
        cv2.boxFilter(cv2.absdiff(one, image), -1, (FIT_PX, FIT_PX)) for image in (shifted, other)
    )
    near = sure & (disparity > NEAR_PX) & (unmoved > here + FIT_LEVELS)
    fine: Floats = np.maximum(np.where(sure, disparity + step, disparity), 0).astype(np.float32)
    return fine, near


def refined(
    disparity: Floats, measured: Mask, guide: Image, sky: Mask, refine: Refine
) -> tuple[Floats, NDArray[np.float32]]:
    """Fill and refine disparity; return it with its confidence. Near its steps matching is least sure."""
    filled = filled_from_farther(disparity, measured)
    mean = cv2.boxFilter(filled, -1, (5, 5))
    variance = np.maximum(cv2.boxFilter(filled * filled, -1, (5, 5)) - mean * mean, 0)
    confidence = np.where(measured, 1 / (1 + STEP_DOUBT * variance), 0).astype(np.float32)
    weight = np.where(measured, confidence, np.float32(UNSURE))
    weight[sky] = 0
    if refine == "smoother":
        return fast_global_smoother(filled, weight, guide, cut=sky).values, confidence
    if refine == "solver":
        return bilateral_solver(filled, weight, guide), confidence
    return filled, confidence


def _pixel_metres(left: Image, right: Image, camera: Camera, where: str) -> float:
    """Return focal length times baseline, after checking that pair and calibration can be meant."""
    if left.shape != right.shape:
        raise DataError(
            "left and right image are of different size",
            where=where,
            got=f"{left.shape[1]}x{left.shape[0]} and {right.shape[1]}x{right.shape[0]} pixels",
            wanted="one size, rectified together",
            fix="Export both at the resolution they were calibrated for.",
        )
    check_camera(camera, (left.shape[1], left.shape[0]), where)
    return camera.fx * check_baseline(camera, where)


def _search_px(scale: float, camera: Camera, nearest_m: float | None, offset_px: float, where: str) -> int:
    """Return how many disparities are searched: a multiple of 16."""
    if nearest_m is not None:
        most = scale / nearest_m - offset_px
        if not 0 < most < camera.width:
            raise DataError(
                "nearest_m does not fit the camera",
                where=where,
                got=f"{nearest_m:g} m: a disparity of {most:.0f} pixels in an image of {camera.width}",
                wanted=f"more than {scale / camera.width:.2f} m",
                fix="Set a larger nearest_m.",
            )
    else:
        most = min(scale / NEAREST_M - offset_px, WIDEST_SHARE * camera.width)
    return max(-(-int(most + 1) // 16) * 16, 16)


def check_pair(left: Image, right: Image, camera: Camera, *, where: str) -> None:
    """Raise where a pair (H,W,3) is one view twice, swapped or off its rows, as `from_stereo` does.

    Pixels are matched at half size, in a fifth of the time; how many of them match is not asked.
    """
    scale = _pixel_metres(left, right, camera, where)
    count = max(_search_px(scale, camera, None, 0.0, where) // 32 * 16, 16)
    half = [cv2.resize(image, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA) for image in (left, right)]
    small = [image.astype(np.uint8) for image in half]
    disparity, sure = match(small[0], small[1], count)
    share = float(sure.mean())
    _check_views(small[0], small[1], disparity, sure, np.zeros_like(sure), count, where)
    size = left.shape[1], left.shape[0]
    wide = np.asarray(2 * cv2.resize(disparity, size), np.float32)
    known: Mask = cv2.resize(sure.astype(np.uint8), size, interpolation=cv2.INTER_NEAREST) > 0
    _check_rows(row_offsets_px(_gray(left), _gray(right), wide, known), share, 0.0, where)


def _check_pair(
    left: Image, right: Image, disparity: Floats, measured: Mask, sky: Mask, count: int, where: str
) -> None:
    """Raise where the pair is one image twice, swapped, not rectified, of two moments or none."""
    share = _check_views(left, right, disparity, measured, sky, count, where)
    offsets = row_offsets_px(_gray(left), _gray(right), disparity, measured)
    _check_rows(offsets, share, LEAST_SHARE, where)


def _check_views(
    left: Image, right: Image, disparity: Floats, measured: Mask, sky: Mask, count: int, where: str
) -> float:
    """Return the share of pixels that match, or raise where the pair is one image twice or swapped."""
    share = float(measured.sum() / max((~sky).sum(), 1))
    unmoved = float((disparity[measured] < UNMOVED_PX).mean()) if measured.any() else 0.0
    if share >= LEAST_SHARE and unmoved > UNMOVED_SHARE:
        raise DataError(
            "left and right image show the same view",
            where=where,
            got=f"{unmoved:.1%} of the pixels that match are in the same place in both",
            wanted="images of two cameras beside each other",
            fix="Check that the right images are not copies of the left ones.",
        )
    if share < DOUBTFUL_SHARE:
        swapped = (match(right, left, count)[1] & ~sky).sum() / max((~sky).sum(), 1)
        if swapped > max(SWAPPED_TIMES * share, SWAPPED_SHARE):
            raise DataError(
                "left and right image are swapped",
                where=where,
                got=f"{share:.0%} of the pixels match as given, {swapped:.0%} the other way round",
                wanted="the image of the left camera first",
                fix="Swap the folders of left and right images.",
            )
    return share


def _check_rows(offsets: Floats, share: float, least_share: float, where: str) -> None:
    """Raise where distinct points are off their rows, or a smaller share of the pixels matches."""
    off = float(np.median(np.abs(offsets))) if len(offsets) else 0.0
    lower = float(np.median(offsets)) if len(offsets) else 0.0
    if off > OFF_ROWS_PX and float(np.median(np.abs(offsets - lower))) < SAME_ROWS * off:
        raise DataError(
            "the rows of left and right image do not correspond",
            where=where,
            got=f"the right image is {abs(lower):.1f} rows {'lower' if lower > 0 else 'higher'}",
            wanted=f"one point on one row of both, to {OFF_ROWS_PX:g} rows",
            fix="Rectify both images with the calibration of this camera pair; for depth that can be done "
            "here: rig: in the study, --rig for adverse depth.",
        )
    if share < least_share or off > OFF_ROWS_PX:
        raise DataError(
            "left and right image do not match",
            where=where,
            got=f"{share:.0%} of the pixels have a partner; distinct points are {off:.2f} rows off",
            wanted="one moment seen by two rectified cameras",
            fix="Check that the pair was taken at the same time and that both images are rectified.",
        )


def _grown(mask: Mask, side: int) -> Mask:
    grown: Mask = cv2.dilate(mask.astype(np.uint8), np.ones((side, side), np.uint8)) > 0
    return grown


def _gray(image: Image) -> Image:
    return image if image.ndim == 2 else cv2.cvtColor(image, cv2.COLOR_RGB2GRAY).astype(np.uint8)

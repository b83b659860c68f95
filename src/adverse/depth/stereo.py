"""Dense metric depth from a rectified stereo pair, with confidence.

1. Semi-global matching both ways; a pixel is sure where both agree, and is not part of a speck.
2. Disparity to a fraction of a pixel: from the matching cost, then by the image gradient in a small window.
3. The sky (`adverse.depth.sky`) is at +inf.
4. What is unsure is filled from the farther side.
5. At steps each pixel is matched again with both sides (`adverse.depth.sides`).
6. Refined along the edges of the image, by confidence: `smoother` or `solver`. The smoother's ramps at steps
   are made sharp again, and what was measured with confidence stays within a pixel of disparity.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

import cv2
import numpy as np
from numpy.typing import NDArray

from adverse.depth.bilateral_solver import bilateral_solver
from adverse.depth.calibration import check_baseline, check_camera
from adverse.depth.dense import ARTEFACT, DenseDepth, check_not_all_sky, checked_hood, with_hood
from adverse.depth.filling import filled_from_farther
from adverse.depth.ground import below_ground
from adverse.depth.matching import BLACK_LEVELS, Overview, gray, match, moved_left, overview, searched
from adverse.depth.rows import FollowedPoints, advance, follow
from adverse.depth.sides import sides_of_steps
from adverse.depth.sky import sky_mask
from adverse.depth.smoothing import fast_global_smoother
from adverse.depth.steps import sharpened
from adverse.errors import DataError
from adverse.types import Camera, Image

Refine = Literal["smoother", "solver", "none"]
NEAREST_M, WIDEST_SHARE = 1.0, 0.2
"""How far is searched at least: depth down to this, disparity up to this share of the image's width."""
CLOSEST_M, CLOSEST_SHARE = 0.5, 0.75
"""The same, where the overview of a pair shows surfaces that are nearer."""
NEAR_PIECE_PX, NEAR_TIMES = 20, 1.1
"""So many pixels of the overview must be as near; it is searched so many times as far as they are."""
BEYOND_PX, BEYOND_SHARE = 1.0, 0.005
"""At most this share of the overview may be so far outside of the disparities that there can be."""
MOST_OFFSET = 0.5
"""Principal points differ by less than this share of the image's width."""
DISTANT_SHARE = 0.1
"""Depth that is farther than this share of the width from what was measured is marked."""
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
SURE, SURE_PX = 0.5, 1.0
"""Where disparity is at least as sure in 3x3 pixels, refinement moves it by at most so many pixels."""
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
MOST_AHEAD, AHEAD_ERRORS = 0.12, 6.0
"""The right camera may be this share of the baseline ahead of the left one, or behind it. By more, and more
than so many standard errors, the images are of two moments (good pairs: 0.05, Middlebury's venus 0.1)."""

Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]


def from_stereo(
    left: Image,
    right: Image,
    camera: Camera,
    *,
    nearest_m: float | None = None,
    offset_px: float | None = None,
    refine: Refine = "smoother",
    with_sky: bool = True,
    hood: NDArray[np.uint8] | None = None,
    sky: Mask | None = None,
    doubted: bool = True,
    where: str = "stereo pair",
) -> DenseDepth:
    """Return dense depth of the left image of a rectified pair (H,W,3).

    `nearest_m` bounds the search (by default disparity goes up to a fifth of the image's width, and depth
    down to a metre, or nearer where an overview of the pair shows nearer surfaces). `offset_px` is how much
    further right the principal point of the right camera lies than that of the left; by default, what the
    camera says. Without `with_sky` no sky is looked for (indoors). `hood` is a mask as `adverse.depth.hood`
    describes. `sky` (H,W) is where the sky is known to be, so that it is not looked for. Raises DataError
    where the pair cannot be one, unless it is not `doubted`: a pair that fog or noise has changed may match
    as badly as one that is none. Where nothing matches its depth is NaN.
    """
    scale = _pixel_metres(left, right, camera, where)
    hood = checked_hood(hood, left, where)
    if refine not in get_args(Refine):
        raise DataError(
            "there is no such refinement",
            where=where,
            got=f"{refine!r}",
            wanted=", ".join(get_args(Refine)),
            fix="Choose one of them.",
        )
    if doubted:
        _check_pictures(left, right, where)
    offset_px = camera.offset_px if offset_px is None else offset_px
    whole = _whole_offset(offset_px, camera, where)
    right, rest = moved_left(right, whole), np.float32(whole - offset_px)
    seen = overview(left, right, _most_px(scale, camera))
    if hood is not None:
        seen = seen.without(hood > 0)
    count = _search_px(scale, camera, nearest_m, seen, where)
    disparity, sure, of_right = match(left, right, count)
    sure &= _in_image(disparity - whole)
    if hood is not None:
        sure &= hood == 0
    fine, near = _subpixel(left, right, disparity, sure)
    if sky is None and with_sky:
        empty = None if hood is None else hood == ARTEFACT
        matched = sure & (disparity > NEAR_PX)
        sky = sky_mask(left, near=near, matched=matched, empty=empty, horizon=camera.cy)
    sky = np.zeros_like(sure) if sky is None else sky
    if hood is not None:
        sky = sky & (hood == 0)
    measured = sure & ~sky
    if doubted:
        check_not_all_sky(sky, where)
        share = _check_views(left, right, disparity, measured, sky, count, offset_px, where)
        followed = follow(gray(left), gray(right), disparity, measured)
        _check_rows(followed.rows_lower, share, LEAST_SHARE, where)
        _check_range(seen.without(sky), count, offset_px, where)
        _check_moment(followed, camera, -float(rest), where)
    measured &= ~(_grown(sky, RIM_PX) & (fine < RIM_DISPARITY_PX))
    measured &= ~below_ground(fine, measured)
    fixed = sky if hood is None else sky | (hood > 0)
    filled = filled_from_farther(fine, measured)
    filled, measured, unsure = sides_of_steps(left, right, filled, of_right, measured, fixed)
    smooth, confidence = refined(filled, measured & ~unsure, left, sky, refine)
    depth = (scale / np.maximum(smooth - rest, LEAST_PX)).astype(np.float32)
    if not measured.any():
        depth[:] = np.nan
    depth[sky] = np.inf
    confidence[sky] = 1
    dense = DenseDepth(depth, confidence, measured, far_from(measured, DISTANT_SHARE * camera.width) & ~sky)
    return with_hood(dense, hood)


def _subpixel(left: Image, right: Image, disparity: Floats, sure: Mask) -> tuple[Floats, Mask]:
    """Refine disparity by the gradient, and return where the image itself says that a surface is near.

    Matching gives a smooth sky the disparity of what surrounds it; but there no disparity fits as badly.
    """
    one, other = gray(left).astype(np.float32), gray(right).astype(np.float32)
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
    filled: Floats, sure: Mask, guide: Image, sky: Mask, refine: Refine
) -> tuple[Floats, NDArray[np.float32]]:
    """Refine disparity, known everywhere (H,W), and return it with its confidence: 0 where it is not sure.

    Near its steps matching is least sure.
    """
    mean = cv2.boxFilter(filled, -1, (5, 5))
    variance = np.maximum(cv2.boxFilter(filled * filled, -1, (5, 5)) - mean * mean, 0)
    confidence = np.where(sure, 1 / (1 + STEP_DOUBT * variance), 0).astype(np.float32)
    weight = np.where(sure, confidence, np.float32(UNSURE))
    weight[sky] = 0
    if refine == "smoother":
        smooth = sharpened(fast_global_smoother(filled, weight, guide, cut=sky).values, guide, sky)
        held = np.clip(smooth, filled - np.float32(SURE_PX), filled + np.float32(SURE_PX))
        firm = cv2.erode((confidence >= SURE).astype(np.uint8), np.ones((3, 3), np.uint8)) > 0
        return np.where(firm, held, smooth).astype(np.float32), confidence
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
    if left.dtype != np.uint8 or right.dtype != np.uint8:
        raise DataError(
            "images are not of 8 bits",
            where=where,
            got=f"{left.dtype} up to {left.max():g} and {right.dtype} up to {right.max():g}",
            wanted="uint8, 0 to 255",
            fix="Scale them to 0 to 255 and convert them to uint8.",
        )
    check_camera(camera, (left.shape[1], left.shape[0]), where)
    return camera.fx * check_baseline(camera, where)


def _check_pictures(left: Image, right: Image, where: str) -> None:
    """Raise where an image is black."""
    for name, image in (("left", left), ("right", right)):
        if image.max() <= BLACK_LEVELS:
            raise DataError(
                f"the {name} image is black",
                where=where,
                got=f"no value above {image.max()}",
                wanted="a picture",
                fix="Check the recording; a camera that failed or was covered looks like this.",
            )


def _whole_offset(offset_px: float, camera: Camera, where: str) -> int:
    """Return by how many pixels the right image is moved so that no surface has a disparity below zero."""
    if not abs(offset_px) < MOST_OFFSET * camera.width:
        raise DataError(
            "offset_px cannot be right",
            where=where,
            got=f"{offset_px:g}",
            wanted=f"pixels, between {-MOST_OFFSET * camera.width:g} and {MOST_OFFSET * camera.width:g}",
            fix="Give cx of the right camera minus cx of the left one, both rectified.",
        )
    return math.ceil(offset_px)


def _most_px(scale: float, camera: Camera) -> float:
    """Return the largest disparity that is ever looked for."""
    return min(scale / CLOSEST_M, CLOSEST_SHARE * camera.width)


def _search_px(scale: float, camera: Camera, nearest_m: float | None, seen: Overview, where: str) -> int:
    """Return how many disparities are searched: a multiple of 16."""
    if nearest_m is not None:
        most = scale / nearest_m if nearest_m else math.inf
        if not 0 < most < camera.width:
            raise DataError(
                "nearest_m does not fit the camera",
                where=where,
                got=f"{nearest_m:g} m: a disparity of {most:.0f} pixels in an image of {camera.width}",
                wanted=f"more than {scale / camera.width:.2f} m",
                fix="Set a larger nearest_m.",
            )
        return searched(most)
    nearest = np.sort(seen.disparity[seen.fits])[-NEAR_PIECE_PX:]
    reach = NEAR_TIMES * float(nearest[0]) if len(nearest) == NEAR_PIECE_PX else 0.0
    return searched(max(min(scale / NEAREST_M, WIDEST_SHARE * camera.width), reach))


def _in_image(disparity: Floats) -> Mask:
    """Return where (H,W) a disparity points into the other image."""
    columns = disparity.shape[1]
    at = np.arange(columns, dtype=np.float32) - disparity
    inside: Mask = (at > -1) & (at < columns)
    return inside


def far_from(measured: Mask, px: float) -> Mask:
    """Return where (H,W) the nearest pixel that was measured is farther away than this."""
    away = cv2.distanceTransform((~measured).astype(np.uint8), cv2.DIST_L2, 3)
    far: Mask = away > px
    return far


def check_pair(left: Image, right: Image, camera: Camera, *, where: str) -> None:
    """Raise where a pair (H,W,3) is one view twice, swapped or off its rows, as `from_stereo` does.

    Pixels are matched at half size, in a fifth of the time; how many of them match is not asked.
    """
    scale, offset_px = _pixel_metres(left, right, camera, where), camera.offset_px
    whole = _whole_offset(offset_px, camera, where)
    right = moved_left(right, whole)
    seen = overview(left, right, _most_px(scale, camera))
    count = max(_search_px(scale, camera, None, seen, where) // 32 * 16, 16)
    half = [cv2.resize(image, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA) for image in (left, right)]
    small = [image.astype(np.uint8) for image in half]
    disparity, sure, _ = match(small[0], small[1], count)
    share = float(sure.mean())
    _check_views(small[0], small[1], disparity, sure, np.zeros_like(sure), count, offset_px, where)
    size = left.shape[1], left.shape[0]
    wide = np.asarray(2 * cv2.resize(disparity, size), np.float32)
    known: Mask = cv2.resize(sure.astype(np.uint8), size, interpolation=cv2.INTER_NEAREST) > 0
    followed = follow(gray(left), gray(right), wide, known)
    _check_rows(followed.rows_lower, share, 0.0, where)
    _check_range(seen.without(sky_mask(left)), None, offset_px, where)
    _check_moment(followed, camera, offset_px - whole, where)


def _check_views(
    left: Image,
    right: Image,
    disparity: Floats,
    measured: Mask,
    sky: Mask,
    count: int,
    offset_px: float,
    where: str,
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
        swapped = (match(right, left, count).sure & ~sky).sum() / max((~sky).sum(), 1)
        if swapped > max(SWAPPED_TIMES * share, SWAPPED_SHARE):
            if offset_px:
                raise _behind(float(swapped), offset_px, where)
            raise DataError(
                "left and right image are swapped",
                where=where,
                got=f"{share:.0%} of the pixels match as given, {swapped:.0%} the other way round",
                wanted="the image of the left camera first",
                fix="Swap the folders of left and right images; if they are right, give offset_px: how much "
                "further right the principal point of the right camera lies.",
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


def _check_moment(followed: FollowedPoints, camera: Camera, offset_px: float, where: str) -> None:
    """Raise where one camera was ahead of the other: between the two images the robot drove on."""
    ahead = advance(followed, camera, offset_px)
    if ahead is None or abs(ahead.baselines) <= max(MOST_AHEAD, AHEAD_ERRORS * ahead.error):
        return
    metres = ahead.baselines * check_baseline(camera, where)
    raise DataError(
        "left and right image are not of one moment",
        where=where,
        got=f"by their rows the right camera was about {abs(metres):.2g} m "
        f"{'ahead of' if metres > 0 else 'behind'} the left one",
        wanted="both cameras triggered at once, side by side",
        fix="Check that left and right images of one name were taken at the same time, not a frame apart; if "
        "they were, rectify them with the calibration of this camera pair.",
    )


def _check_range(seen: Overview, count: int | None, offset_px: float, where: str) -> None:
    """Raise where surfaces are behind infinity, or nearer than was searched."""
    behind = float((seen.fits & (seen.disparity < -BEYOND_PX)).mean())
    if behind > BEYOND_SHARE:
        raise _behind(behind, offset_px, where)
    least = np.inf if count is None else NEAR_TIMES * count + BEYOND_PX
    nearer = float((seen.fits & (seen.disparity > least)).mean())
    if nearer > BEYOND_SHARE:
        raise DataError(
            "surfaces are nearer than nearest_m",
            where=where,
            got=f"{nearer:.0%} of the pixels have a disparity above the {count} pixels that are searched",
            wanted="a nearest_m that nothing in the log is nearer than",
            fix="Set a smaller nearest_m, or none.",
        )


def _behind(share: float, offset_px: float, where: str) -> DataError:
    return DataError(
        "surfaces are farther to the right in the right image than infinity is",
        where=where,
        got=f"{share:.0%} of the pixels have a disparity below zero with offset_px {offset_px:g}",
        wanted="offset_px: cx of the right camera minus cx of the left one, both rectified",
        fix="Correct offset_px, which is part of the calibration (often called doffs): in camera.json, in "
        "depth: of the study, or by --offset-px.",
    )


def _grown(mask: Mask, side: int) -> Mask:
    grown: Mask = cv2.dilate(mask.astype(np.uint8), np.ones((side, side), np.uint8)) > 0
    return grown

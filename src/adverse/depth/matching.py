"""Semi-global matching of a rectified pair, both ways; and an overview of it from small images.

The overview looks where the matcher does not: at surfaces nearer than is searched, and at disparities below
zero, which no surface has.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import cv2
import numpy as np
from numba import njit
from numpy.typing import NDArray

from adverse.types import Image

BLOCK_PX = 3
SMALL_STEP, LARGE_STEP = 8, 32
"""Penalties of semi-global matching, per pixel of the block."""
PREFILTER_LEVELS = 63
STEPS_PER_PX = 16
"""Resolution of the matcher; it searches a multiple of so many disparities, too."""
AGREE_PX = 0.6
"""How far the two ways may differ where both are right."""
SPECK_PX, SPECK_STEP_PX = 30, 1.5
"""Connected pieces of fewer pixels than this are wrong; pieces are connected where steps are smaller."""
SMALL_WIDTH = 160
"""Width, about, of the images of which an overview is made."""
BEHIND_PX = 16
"""How far below zero disparity goes in an overview, in its pixels."""
FIT_PX, FIT_TIMES, FIT_LEVELS = 5, 1.5, 2.0
"""A disparity counts if in a window of the first none fits so many times, and levels, worse."""
BLACK_LEVELS = 2

Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]


class Match(NamedTuple):
    """Disparity (H,W) of the left image, where both ways agree on it, and that of the right image."""

    disparity: Floats
    sure: Mask
    of_right: Floats


def match(left: Image, right: Image, count: int) -> Match:
    """Match the images of a pair both ways; disparity is from 0 to below `count` pixels."""
    one, other = gray(left), gray(right)
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
    backward = np.ascontiguousarray(matched(other[:, ::-1], one[:, ::-1])[:, ::-1])
    sure = _agreeing(forward, backward, round(AGREE_PX * STEPS_PER_PX))
    kept = np.where(sure, forward, -STEPS_PER_PX).astype(np.int16)
    cv2.filterSpeckles(kept, -STEPS_PER_PX, SPECK_PX, round(SPECK_STEP_PX * STEPS_PER_PX))
    one_way, other_way = (
        np.maximum(steps, 0).astype(np.float32) / np.float32(STEPS_PER_PX) for steps in (forward, backward)
    )
    return Match(one_way, kept >= 0, other_way)


class Overview(NamedTuple):
    """Disparity of a small image (h,w) in pixels of the large one, below zero too, and where it fits."""

    disparity: Floats
    fits: Mask

    def without(self, sky: Mask) -> Overview:
        """Return it without the sky (H,W) of the large image, where any disparity fits."""
        rows, columns = self.fits.shape
        small = cv2.resize(sky.astype(np.float32), (columns, rows), interpolation=cv2.INTER_AREA)
        return self._replace(fits=self.fits & ~_around(small > 0))


def overview(left: Image, right: Image, most_px: float) -> Overview:
    """Match a pair at a small size, up to a disparity of the large one."""
    times = max(round(left.shape[1] / SMALL_WIDTH), 1)
    size = max(left.shape[1] // times, 1), max(left.shape[0] // times, 1)
    small = [cv2.resize(gray(image), size, interpolation=cv2.INTER_AREA) for image in (left, right)]
    one, other = (image.astype(np.uint8) for image in small)
    disparity, sure, _ = match(one, moved_left(other, BEHIND_PX), searched(most_px / times + BEHIND_PX))
    disparity -= BEHIND_PX
    columns = disparity.shape[1]
    at = np.arange(columns, dtype=np.float32) - disparity
    there = _seen_at(other, disparity)
    here, unmoved = _unlike(one, there), _unlike(one, other)
    inside = (at >= 0) & (at <= columns - 1) & (disparity > 0.5 - BEHIND_PX)  # not at the end of the search
    inside &= ~_around((one <= BLACK_LEVELS) | (there <= BLACK_LEVELS))  # borders without a picture
    fits = sure & inside & ((unmoved > FIT_TIMES * here + FIT_LEVELS) | (np.abs(disparity) < 1))
    behind = fits & (disparity < 0)
    if (
        behind.any()
    ):  # one rung of a ladder is like the next: where a place before infinity fits too, it is that
        before = match(one, other, searched(most_px / times)).disparity
        fits &= ~(behind & (_unlike(one, _seen_at(other, before)) <= FIT_TIMES * here + FIT_LEVELS))
    return Overview((disparity * times).astype(np.float32), fits)


def _seen_at(other: Image, disparity: NDArray[np.float32]) -> Image:
    """Return the other image (H,W) where each pixel's disparity (H,W) points."""
    rows, columns = disparity.shape
    at = np.arange(columns, dtype=np.float32) - disparity
    row = np.repeat(np.arange(rows, dtype=np.float32)[:, None], columns, axis=1)
    there: Image = cv2.remap(other, at, row, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE).astype(
        np.uint8
    )
    return there


def _unlike(one: Image, other: Image) -> NDArray[np.float32]:
    """Return how much two images (H,W) differ around each pixel, in gray levels."""
    difference = cv2.boxFilter(cv2.absdiff(one, other), cv2.CV_32F, (FIT_PX, FIT_PX))
    return np.asarray(difference, np.float32)


def searched(most_px: float) -> int:
    """Return how many disparities are searched to reach this one."""
    return max(-(-int(most_px + 1) // STEPS_PER_PX) * STEPS_PER_PX, STEPS_PER_PX)


def moved_left(image: Image, by: int) -> Image:
    """Return an image moved to the left; its border is repeated."""
    columns = image.shape[1]
    return np.ascontiguousarray(image[:, np.clip(np.arange(columns) + by, 0, columns - 1)])


def gray(image: Image) -> Image:
    """Return an image (H,W,3) or (H,W) as brightness (H,W)."""
    return image if image.ndim == 2 else cv2.cvtColor(image, cv2.COLOR_RGB2GRAY).astype(np.uint8)


def _around(mask: Mask) -> Mask:
    around: Mask = cv2.dilate(mask.astype(np.uint8), np.ones((FIT_PX, FIT_PX), np.uint8)) > 0
    return around


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

"""The vehicle's own hood and pixels without a picture: what stays the same while the camera moves.

A mask is (H,W) uint8: 0 scene, 128 no picture there (black borders of rectification), 255 the vehicle itself.
It is proposed, to be looked at before it is used: what moves along, such as a shadow, can look like a hood.
"""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from adverse.depth.dense import ARTEFACT, HOOD
from adverse.errors import DataError
from adverse.types import Image

LEAST_FRAMES = 8
STILL_LEVELS = 5.0
"""Standard deviation of brightness over a log below which a pixel does not move."""
BLACK_LEVELS = 2
"""Pixels that are never brighter than this hold no picture."""
LEAST_SHARE = 0.002
"""Smallest connected piece, as a share of the image."""
MOST_STILL = 0.6
"""A log in which a larger share of the lower half is still is one of a camera that stands."""
RIM_PX = 5
TIDY_PX = 7
"""Holes and specks of this size are tidied away."""


def find_hood(images: Sequence[Image], *, where: str = "log") -> NDArray[np.uint8]:
    """Return a mask (H,W) of what does not move over the images (H,W,3) of a log.

    The hood touches the lower edge, borders without a picture touch any. Raises DataError where there are too
    few images, or where the camera does not move.
    """
    sizes = {image.shape[:2] for image in images}
    if len(images) < LEAST_FRAMES or len(sizes) > 1:
        raise DataError(
            "a hood cannot be found in this log",
            where=where,
            got=f"{len(images)} images of {len(sizes)} sizes",
            wanted=f"at least {LEAST_FRAMES} of one size, while the camera moves",
            fix="Draw the mask yourself, or find it in a longer log of the same camera.",
        )
    gray = [cv2.cvtColor(image, cv2.COLOR_RGB2GRAY) if image.ndim == 3 else image for image in images]
    soft = np.array([cv2.GaussianBlur(image, (0, 0), 1.5) for image in gray], np.float32)
    still = soft.std(axis=0) < STILL_LEVELS
    rows = still.shape[0]
    if still[rows // 2 :].mean() > MOST_STILL:
        raise DataError(
            "the camera hardly moves in this log, so a hood cannot be told from the scene",
            where=where,
            got=f"{still[rows // 2 :].mean():.0%} of the lower half stays the same",
            wanted="a log that is driven",
            fix="Draw the mask yourself, or find it in another log of the same camera.",
        )
    black = np.max(gray, axis=0) <= BLACK_LEVELS
    empty = _touching(black, np.s_[:])
    hood = _touching(still & ~empty, np.s_[-1:])
    hood = cv2.dilate(hood.astype(np.uint8), np.ones((RIM_PX, RIM_PX), np.uint8)) > 0  # what blurring took
    return np.where(empty, ARTEFACT, np.where(hood, HOOD, 0)).astype(np.uint8)


def hood_preview(image: Image, hood: NDArray[np.uint8]) -> Image:
    """Return an image (H,W,3) with the mask on it: the vehicle in red, what has no picture in blue."""
    colour = image if image.ndim == 3 else cv2.cvtColor(image, cv2.COLOR_GRAY2RGB)
    paint = np.zeros_like(colour)
    paint[hood == HOOD], paint[hood == ARTEFACT] = (255, 0, 0), (0, 0, 255)
    marked: Image = np.where((hood > 0)[..., None], colour // 2 + paint // 2, colour).astype(np.uint8)
    return marked


def _touching(mask: NDArray[np.bool_], rows: slice) -> NDArray[np.bool_]:
    """Return the large pieces of a mask that touch the edge of the image, in these rows of it."""
    square = np.ones((TIDY_PX, TIDY_PX), np.uint8)
    edge = cv2.copyMakeBorder(mask.astype(np.uint8), *(TIDY_PX,) * 4, cv2.BORDER_REPLICATE)
    tidy = cv2.morphologyEx(cv2.morphologyEx(edge, cv2.MORPH_CLOSE, square), cv2.MORPH_OPEN, square)
    tidy = np.ascontiguousarray(tidy[TIDY_PX:-TIDY_PX, TIDY_PX:-TIDY_PX])
    count, labels, stats, _ = cv2.connectedComponentsWithStats(tidy)
    border = np.zeros(mask.shape, np.bool_)
    border[[0, -1]], border[:, [0, -1]] = True, True
    within = np.zeros(mask.shape, np.bool_)
    within[rows] = True
    good = np.zeros(count, np.bool_)
    good[np.unique(labels[border & within])] = True
    good &= stats[:, cv2.CC_STAT_AREA] >= LEAST_SHARE * labels.size
    good[0] = False
    pieces: NDArray[np.bool_] = good[labels]
    return pieces

"""Depth at every pixel, and how much of it was measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adverse.errors import DataError
from adverse.types import Depth, Image

Mask = NDArray[np.bool_]
HOOD, ARTEFACT = 255, 128
"""Values of a hood mask: the vehicle itself, and pixels without a picture (rectification); 0: the scene."""
HOOD_M = 1.5
"""Depth of the vehicle's own hood, where a mask says that it is one."""
MOST_SKY = 0.995
"""A frame with more sky than this has no depth worth the name."""

MOST_HOOD = 0.98
"""A mask that leaves less than the rest of a frame is none."""


@dataclass(frozen=True, eq=False)
class DenseDepth:
    """Depth (H,W) in metres, +inf for the sky; confidence (H,W) from 0 to 1; what was measured (H,W).

    Depth of a surface that is not `measured` is invented: filled in from around it. `distant` marks what is
    farther from any measurement than is sensible to fill.
    """

    depth_m: Depth
    confidence: NDArray[np.float32]
    measured: Mask
    distant: Mask

    @property
    def sky(self) -> Mask:
        """Where (H,W) there is no surface."""
        sky: Mask = np.isinf(self.depth_m)
        return sky

    def mirrored(self) -> DenseDepth:
        """Return it with left and right exchanged."""
        return DenseDepth(
            np.ascontiguousarray(self.depth_m[:, ::-1]),
            np.ascontiguousarray(self.confidence[:, ::-1]),
            np.ascontiguousarray(self.measured[:, ::-1]),
            np.ascontiguousarray(self.distant[:, ::-1]),
        )

    @property
    def shares(self) -> dict[str, float]:
        """Shares of all pixels: sky, invented depth, and of that what is far from any measurement."""
        sky = self.sky
        return {
            "sky": float(sky.mean()),
            "invented": float((~self.measured & ~sky).mean()),
            "distant": float((self.distant & ~sky).mean()),
        }


def checked_hood(hood: NDArray[np.uint8] | None, image: Image, where: str) -> NDArray[np.uint8] | None:
    """Return a hood mask of the image's size, or raise."""
    if hood is None:
        return None
    if hood.ndim != 2:
        raise DataError(
            "the hood mask has colours",
            where=where,
            got=f"an array of {'x'.join(map(str, hood.shape))}",
            wanted="one value for each pixel (H,W)",
            fix="Save the mask as an 8-bit gray PNG.",
        )
    if hood.shape != image.shape[:2]:
        raise DataError(
            "the hood mask is not of the image's size",
            where=where,
            got=f"{hood.shape[1]}x{hood.shape[0]} pixels",
            wanted=f"{image.shape[1]}x{image.shape[0]}",
            fix="Draw the mask on a frame of this camera.",
        )
    unknown = np.setdiff1d(hood, (0, ARTEFACT, HOOD))
    if unknown.size:
        raise DataError(
            "the hood mask has other values than those that mean something",
            where=where,
            got=", ".join(map(str, unknown[:5])),
            wanted=f"0 (scene), {ARTEFACT} (no picture there) or {HOOD} (the vehicle itself)",
            fix="Save the mask as an 8-bit gray PNG without smoothing its edges.",
        )
    if (hood > 0).mean() > MOST_HOOD:
        raise DataError(
            "the hood mask leaves nothing of the image",
            where=where,
            got=f"{(hood > 0).mean():.1%} of the pixels are masked",
            wanted="0 where the scene is",
            fix="Draw the mask again; 255 is the vehicle, 0 the scene.",
        )
    return hood


def with_hood(dense: DenseDepth, hood: NDArray[np.uint8] | None) -> DenseDepth:
    """Put the vehicle at HOOD_M and what has no picture at +inf; neither counts as measured."""
    if hood is None:
        return dense
    own, empty = hood == HOOD, hood == ARTEFACT
    depth = np.where(own, np.float32(HOOD_M), np.where(empty, np.float32(np.inf), dense.depth_m))
    sure = np.where(hood > 0, np.float32(0), dense.confidence)
    return DenseDepth(depth, sure, dense.measured & (hood == 0), dense.distant & (hood == 0))


def check_not_all_sky(sky: Mask, where: str) -> None:
    """Raise where a frame shows nothing but sky."""
    if sky.mean() > MOST_SKY:
        raise DataError(
            "the frame shows nothing but sky",
            where=where,
            got=f"{sky.mean():.1%} of the pixels",
            wanted="surfaces whose depth can be measured",
            fix="Check that it is the right image; a covered or overexposed camera looks like this.",
        )

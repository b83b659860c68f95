"""Haze by depth: the further away, the more of the haze colour (Pezzementi et al. 2018, III-B.1)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from adverse.errors import MutationError
from adverse.marks import SimpleMagnitude, Strength
from adverse.mutations import blur_kernels, pixel_kernels, pixels
from adverse.mutations.blur import ring_taps, with_border
from adverse.mutations.hazards import IN_FOG
from adverse.mutations.pixels import HAZE_COLOUR, colour_for
from adverse.plugins import Colour, NonNegative, mutation, unchanged_at
from adverse.types import Depth, Image

KOSCHMIEDER = 3.912
"""ln(1/0.02): visibility is where contrast has fallen to 2 %."""

LEAST_VISIBILITY_M = 1.0
"""Where a search for a strength ends."""

DEPTH_SIGMA_PX = 2.0
"""Depth is smoothed by this to soften its steps, as Pezzementi et al. (2021, section 5.2) do."""

BLOCK_ROWS = 128
"""Rows hazed at a time: few enough that what is made on the way stays in the cache."""


def alpha_at(
    depth_m: NDArray[np.float64],
    *,
    visibility_m: float | None = None,
    beta: float | None = None,
    color: Colour = HAZE_COLOUR,  # noqa: ARG001 - how much haze there is does not depend on its colour
) -> NDArray[np.float64]:
    """Return the share of the haze colour at each depth: 1 - exp(-beta D).

    >>> alpha_at(np.array([100.0]), visibility_m=391.2).round(4)
    array([0.6321])
    """
    alpha: NDArray[np.float64] = 1 - np.exp(-_density(visibility_m, beta) * depth_m)
    return alpha


def _density(visibility_m: float | None, beta: float | None) -> float:
    return KOSCHMIEDER / visibility_m if visibility_m is not None else (beta or 0.0)


@mutation(
    hazards=(IN_FOG,),
    strength=Strength("beta", 0, KOSCHMIEDER / LEAST_VISIBILITY_M, power=4),
    simple=SimpleMagnitude("alpha", alpha_at, highest=1.0),
)
def haze(
    image: Image,
    *,
    depth_m: Depth,
    visibility_m: Annotated[float, Field(gt=0), unchanged_at(math.inf)] | None = None,
    beta: Annotated[NonNegative, unchanged_at(0)] | None = None,
    color: Colour = HAZE_COLOUR,
) -> Image:
    """Blend towards the haze colour by T = exp(-beta D): image T + colour (1 - T).

    Give `visibility_m` (beta = 3.912 / visibility_m; infinite: no haze) or `beta` itself. Depth of +inf
    (sky) gives exactly the colour; smoothing averages finite depth only, so the sky does not bleed over
    what stands before it.

    >>> sky = np.full((1, 1), np.inf, np.float32)
    >>> haze(np.zeros((1, 1, 3), np.uint8), depth_m=sky, visibility_m=100.0)
    array([[[205, 208, 211]]], dtype=uint8)
    """
    if (visibility_m is None) == (beta is None):
        raise MutationError(
            "haze takes either visibility_m or beta",
            got="both" if beta is not None else "neither",
            fix="Write haze(visibility_m=200).",
        )
    density = _density(visibility_m, beta)
    if not density:
        return image.copy()
    source = pixels.pixels(image)
    veil = np.array(colour_for(image, color), np.float32)
    out = np.empty_like(source)
    for first, exponent in _smoothed(np.ascontiguousarray(depth_m, np.float32), -density):
        rows = slice(first, first + len(exponent))
        clear = np.exp(exponent, out=exponent)
        pixel_kernels.blend_colour(source[rows], clear, veil, pixels.ROUND, out[rows])
    return out.reshape(image.shape)


def _smoothed(depth_m: Depth, gain: float) -> Iterator[tuple[int, Depth]]:
    """Yield the first row of each block, and Gaussian means of the finite depths around each finite one.

    They are multiplied by `gain`, and sky is infinite. A block is overwritten by the next one.
    """
    rows, columns = depth_m.shape
    taps = ring_taps(DEPTH_SIGMA_PX)
    down, across = (with_border(size, taps.reach, cv2.BORDER_REFLECT) for size in (rows, columns))
    ring = 2 * taps.reach + 2
    near = np.empty((ring, columns), np.float32)
    ground = np.empty((ring if np.isinf(depth_m.max()) else 0, columns), np.float32)
    skies = np.tile(np.array([columns, 0]), (ring, 1))
    block = np.empty((min(BLOCK_ROWS, rows), columns), np.float32)
    done = 0
    for first in range(0, rows, BLOCK_ROWS):
        made = block[: min(BLOCK_ROWS, rows - first)]
        last = first + len(made) + 2 * taps.reach
        blur_kernels.smooth_depth(depth_m, *taps, down, across, done, last, near, ground, skies, gain, made)
        done = last
        yield first, made

"""Pixels out of place: seen through rough glass, or as if the image were drawn on rubber."""

from __future__ import annotations

import math

import cv2
import numpy as np
from numpy.typing import NDArray

from adverse.mutations import area_kernels, pixels
from adverse.mutations.blur import blurred, smoothed
from adverse.types import Image

ELASTIC_SIGMA = 0.01
"""Smoothness of the displacement, as a share of rows and columns."""

ELASTIC_TRUNCATE = 3.0
"""Half-width of its smoothing kernel in standard deviations."""

COARSE_SIGMA_PX = 3.0
"""Least deviation on the coarser grid; cubic enlargement then errs by less than 1 %."""

ELASTIC_SHIFT = 0.005
"""Largest shift before smoothing, as a share of the rows (both ways, as in the reference)."""


def glass(image: Image, *, sigma_px: float, reach_px: int, rounds: int, rng: np.random.Generator) -> Image:
    """Blur, let every pixel take the place of a random neighbour's, and blur again; truncates.

    The reference means to swap two pixels but copies one over the other, since both are views of one array;
    published results come from the copy, so this copies too.
    """
    moved = pixels.pixels(blurred(image, sigma_px, border=cv2.BORDER_REPLICATE, offset=pixels.HAIR))
    for _ in range(rounds):
        area_kernels.copy_neighbours(moved, reach_px, pixels.stream(rng))
    return blurred(moved, sigma_px, border=cv2.BORDER_REPLICATE, offset=pixels.HAIR).reshape(image.shape)


def elastic(image: Image, *, alpha: float, rng: np.random.Generator) -> Image:
    """Move every pixel by a smooth random displacement, `alpha` times as far; mirrored, truncates."""
    source = pixels.pixels(image)
    rows, columns = image.shape[:2]
    across, down = _displacement((rows, columns), rng), _displacement((rows, columns), rng)
    out = np.empty_like(source)
    area_kernels.warp(source, down, across, alpha * ELASTIC_SHIFT * rows, out)
    return out.reshape(image.shape)


def _displacement(shape: tuple[int, int], rng: np.random.Generator) -> NDArray[np.float32]:
    """Return uniform noise of at most 1, smoothed by ELASTIC_SIGMA of its rows and columns.

    A field so smooth needs no value for every pixel: where the deviation is large it is made on a coarser
    grid, of noise as much weaker as there is less of it, and enlarged.
    """
    sigma = [ELASTIC_SIGMA * size for size in shape]
    step = [max(int(deviation / COARSE_SIGMA_PX), 1) for deviation in sigma]
    coarse = pixels.uniform((-(-shape[0] // step[0]), -(-shape[1] // step[1])), rng)
    coarse *= np.float32(1 / math.sqrt(step[0] * step[1]))
    smooth = smoothed(
        coarse,
        (sigma[0] / step[0], sigma[1] / step[1]),
        border=cv2.BORDER_REFLECT,
        truncate=ELASTIC_TRUNCATE,
    )
    if step == [1, 1]:
        return smooth
    size = (coarse.shape[1] * step[1], coarse.shape[0] * step[0])
    large = cv2.resize(smooth, size, interpolation=cv2.INTER_CUBIC)
    return np.ascontiguousarray(large[: shape[0], : shape[1]], np.float32)

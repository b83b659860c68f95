"""Pixels out of place: seen through rough glass, or as if the image were drawn on rubber."""

from __future__ import annotations

import cv2
import numpy as np

from adverse.mutations import area_kernels, fields, layout
from adverse.mutations.blur import smoothed
from adverse.types import Image

ELASTIC_SIGMA = 0.01
"""Smoothness of the displacement, as a share of rows and columns."""

ELASTIC_TRUNCATE = 3.0
"""Half-width of its smoothing kernel in standard deviations."""

ELASTIC_SHIFT = 0.005
"""Largest shift before smoothing, as a share of the rows (both ways, as in the reference)."""


def glass(image: Image, *, sigma_px: float, reach_px: int, rounds: int, rng: np.random.Generator) -> Image:
    """Blur, let every pixel take the place of a random neighbour's, and blur again; truncates.

    The reference means to swap two pixels but copies one over the other, since both are views of one array;
    published results come from the copy, so this copies too.
    """
    blurred = layout.pixels(layout.truncated(_blur(image, sigma_px), image.shape))
    for _ in range(rounds):
        area_kernels.copy_neighbours(blurred, reach_px, fields.stream(rng))
    return layout.truncated(_blur(blurred.reshape(image.shape), sigma_px), image.shape)


def elastic(image: Image, *, alpha: float, rng: np.random.Generator) -> Image:
    """Move every pixel by a smooth random displacement, `alpha` times as far; mirrored, truncates."""
    source = layout.pixels(image)
    rows, columns = image.shape[:2]
    sigma = (ELASTIC_SIGMA * rows, ELASTIC_SIGMA * columns)
    across, down = (
        smoothed(
            fields.uniform((rows, columns), rng),
            sigma,
            border=cv2.BORDER_REFLECT,
            truncate=ELASTIC_TRUNCATE,
        )
        for _ in range(2)
    )
    out = np.empty_like(source)
    area_kernels.warp(source, down, across, alpha * ELASTIC_SHIFT * rows, out)
    return out.reshape(image.shape)


def _blur(image: Image, sigma_px: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return smoothed(image, sigma_px, border=cv2.BORDER_REPLICATE, offset=1e-3)

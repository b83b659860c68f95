"""Blur that is the same everywhere in the image: Gaussian, the disc of a lens out of focus, rough glass."""

from __future__ import annotations

import functools
import math
from typing import Annotated, Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from adverse.marks import Strength
from adverse.mutations import area_kernels, blur_kernels, pixels
from adverse.mutations.hazards import OUT_OF_FOCUS
from adverse.plugins import NonNegative, mutation, unchanged_at
from adverse.types import Image

TRUNCATE_SIGMA = 4.0
"""Kernel half-width in standard deviations: what is cut off weighs less than 1e-4."""

LIGHT_TAP = 1e-3
"""A tap lighter than this moves no pixel by a level."""

STRIP_PX = 1024
"""Columns blurred at a time."""

RING_STRIP = 768
"""Values of a row blurred at a time by compiled loops, about; powers of two collide in the cache."""

RING_REACH_PX = range(3, 25)
"""Half-widths of kernels for which compiled loops are faster than OpenCV."""

DISC_GRID_RADIUS = 8
"""The reference draws discs up to this radius on a grid of 17 x 17 and smooths them with 3 taps, larger
ones on a grid that just holds them and with 5 taps (Michaelis et al. 2019)."""


@mutation(hazards=(OUT_OF_FOCUS,), strength=Strength("sigma_px", 0, 40, power=2))
def gaussian_blur(image: Image, *, sigma_px: Annotated[NonNegative, unchanged_at(0)]) -> Image:
    """Blur with an isotropic Gaussian of standard deviation `sigma_px`, reflecting at the border.

    A rough stand-in for defocus or dirt on the lens (Pezzementi et al. 2018, III-A.1).

    >>> gaussian_blur(np.full((2, 3), 7, np.uint8), sigma_px=1.5)
    array([[7, 7, 7],
           [7, 7, 7]], dtype=uint8)
    """
    if sigma_px == 0:
        return image.copy()
    return blurred(image, sigma_px, border=cv2.BORDER_REFLECT, offset=pixels.ROUND)


class Taps(NamedTuple):
    """A Gaussian for compiled loops: its half-width, and its taps filled up with zeros to whole passes.

    `across` runs from left to right, `down` from the middle outwards.
    """

    reach: int
    across: NDArray[np.float32]
    down: NDArray[np.float32]


def blurred(image: Image, sigma_px: float, *, border: int, offset: float) -> Image:
    """Return Gaussian means plus `offset`, truncated; wide images are cut into strips that fit the cache."""
    source = pixels.pixels(image)
    columns = source.shape[1]
    taps = ring_taps(sigma_px)
    out = np.empty_like(source)
    if taps.reach in RING_REACH_PX:
        flat, made, channels = pixels.rows(source), pixels.rows(out), source.shape[2]
        down, across = (with_border(size, taps.reach, border) for size in source.shape[:2])
        for first, last in _strips(made.shape[1], RING_STRIP):
            blur_kernels.blur_levels(flat, channels, *taps, offset, down, across, first, last, made)
        return out.reshape(image.shape)
    for left, right in _strips(columns, STRIP_PX):
        first = max(left - taps.reach, 0)
        values = smoothed(source[:, first : right + taps.reach], sigma_px, border=border, offset=offset)
        values = values.reshape(source.shape[0], -1, source.shape[2])
        out[:, left:right] = values[:, left - first : right - first]
    return out.reshape(image.shape)


def _strips(size: int, strip: int) -> list[tuple[int, int]]:
    """Return (begin, end) of strips of about that size.

    >>> _strips(10, 4)
    [(0, 5), (5, 10)]
    """
    step = -(-size // max(round(size / strip), 1))
    return [(begin, min(begin + step, size)) for begin in range(0, size, step)]


@functools.lru_cache(maxsize=64)
def ring_taps(sigma_px: float) -> Taps:
    """Return the taps of `gaussian_taps` for compiled loops."""
    taps = gaussian_taps(sigma_px, TRUNCATE_SIGMA)
    reach, step = len(taps) // 2, blur_kernels.AT_A_TIME
    across, down = (
        np.concatenate([part, np.zeros((1 - len(part)) % size, np.float32)])
        for part, size in ((taps, step), (taps[reach:], step // 2))
    )
    return Taps(reach, across, down)


@functools.lru_cache(maxsize=64)
def with_border(size: int, reach: int, border: int) -> NDArray[np.int64]:
    """Return which row (or column) of so many stands at each place of an image with its border.

    >>> with_border(3, 2, cv2.BORDER_REFLECT)
    array([1, 0, 0, 1, 2, 2, 1])
    """
    return np.pad(np.arange(size), reach, mode="symmetric" if border == cv2.BORDER_REFLECT else "edge")


def smoothed(
    values: NDArray[Any],
    sigma_px: float | tuple[float, float],
    *,
    border: int,
    truncate: float = TRUNCATE_SIGMA,
    offset: float = 0.0,
) -> NDArray[np.float32]:
    """Return Gaussian means as float32, plus `offset`; `sigma_px` may be (down, across).

    Half-widths are those of scipy.ndimage, `int(truncate * sigma + 0.5)`.
    """
    down, across = sigma_px if isinstance(sigma_px, tuple) else (sigma_px, sigma_px)
    out = cv2.sepFilter2D(
        np.ascontiguousarray(values),
        cv2.CV_32F,
        gaussian_taps(across, truncate),
        gaussian_taps(down, truncate),
        delta=offset,
        borderType=border,
    )
    return out.astype(np.float32, copy=False)


def gaussian_taps(sigma_px: float, truncate: float) -> NDArray[np.float32]:
    """Return sampled Gaussian weights that sum to 1.

    >>> gaussian_taps(1.0, 1.0).round(3)
    array([0.274, 0.452, 0.274], dtype=float32)
    """
    reach = np.arange(-int(truncate * sigma_px + 0.5), int(truncate * sigma_px + 0.5) + 1)
    taps = np.exp(-0.5 * (reach / max(sigma_px, 1e-12)) ** 2)
    normed: NDArray[np.float32] = (taps / taps.sum()).astype(np.float32)
    return normed


def disc_blur(image: Image, *, radius_px: int, alias_sigma_px: float, weight: float = 1.0) -> Image:
    """Average over a disc whose rim is smoothed by a small Gaussian; truncates, mirrors at the border.

    The disc is summed column by column and then smoothed, which is the same as one large kernel. The mean is
    multiplied by `weight`.
    """
    if radius_px == 0:
        return image.copy()
    taps = _alias_taps(radius_px, alias_sigma_px)
    half = np.array([math.isqrt(radius_px**2 - k**2) for k in range(radius_px + 1)])
    source = pixels.pixels(image)
    margin = radius_px + len(taps) - 1
    padded = cv2.copyMakeBorder(source, margin, margin, margin, margin, cv2.BORDER_REFLECT_101)
    gain = math.sqrt(weight / int(2 * (2 * half + 1).sum() - 2 * half[0] - 1))
    out = np.empty_like(source)
    weights = (taps * gain).astype(np.float32)
    flat, made, channels = pixels.rows(padded), pixels.rows(out), source.shape[2]
    for first in range(0, made.shape[1], STRIP_PX * channels):
        last = min(first + STRIP_PX * channels, made.shape[1])
        blur_kernels.blur_discs(flat, half, weights, channels, pixels.HAIR, first, last, made)
    return out.reshape(image.shape)


def _alias_taps(radius_px: int, sigma_px: float) -> NDArray[np.float64]:
    """Return the taps that smooth the rim, from the centre outwards; one too light to see joins the next."""
    width = 3 if radius_px <= DISC_GRID_RADIUS else 5
    taps = cv2.getGaussianKernel(width, sigma_px)[width // 2 :, 0].astype(np.float64)
    return taps if taps[-1] >= LIGHT_TAP else np.array([taps[0], taps[1:].sum()])


@functools.lru_cache(maxsize=32)
def reference_disc_weight(radius_px: int, sigma_px: float) -> float:
    """Return the sum of the reference's kernel: a disc on its grid, smoothed with mirrored rims.

    Where the disc touches the rim of the grid (radius 8 and more), its four tips are cut off and the mirror
    adds more than was lost.

    >>> reference_disc_weight(6, 0.5), round(reference_disc_weight(8, 0.5), 3)
    (1.0, 1.013)
    """
    side = max(radius_px, DISC_GRID_RADIUS)
    row, column = np.mgrid[-side : side + 1, -side : side + 1]
    disc = (row**2 + column**2 <= radius_px**2).astype(np.float64)
    width = 3 if radius_px <= DISC_GRID_RADIUS else 5
    return float(cv2.GaussianBlur(disc, (width, width), sigma_px).sum() / disc.sum())


def glass(image: Image, *, sigma_px: float, reach_px: int, rounds: int, rng: np.random.Generator) -> Image:
    """Blur, let every pixel take the place of a random neighbour's, and blur again; truncates.

    The reference means to swap two pixels but copies one over the other, since both are views of one array;
    published results come from the copy, so this copies too.
    """
    moved = pixels.pixels(blurred(image, sigma_px, border=cv2.BORDER_REPLICATE, offset=pixels.HAIR))
    for _ in range(rounds):
        area_kernels.copy_neighbours(moved, reach_px, pixels.stream(rng))
    return blurred(moved, sigma_px, border=cv2.BORDER_REPLICATE, offset=pixels.HAIR).reshape(image.shape)

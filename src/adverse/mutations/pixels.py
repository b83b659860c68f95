"""What mutations share: random fields, how images lie in memory, and the colours to paint with.

Random values come from the generator a mutation was given; images become what OpenCV and the kernels want,
and back to whole values from 0 to 255; colours are for colour and for gray images alike.
"""

from __future__ import annotations

import functools
from typing import Any

import cv2
import numpy as np
from numpy.typing import ArrayLike, NDArray

from adverse.mutations import pixel_kernels
from adverse.types import Image

QUANTILES = 65536
"""A value is one of so many equally likely ones: fine enough for images, small enough for the cache."""


def stream(rng: np.random.Generator) -> np.uint64:
    """Draw the seed of a compiled random stream; one generator can give any number of them."""
    return rng.integers(0, 2**64, dtype=np.uint64)


def normal(shape: tuple[int, int], rng: np.random.Generator) -> NDArray[np.float32]:
    """Return standard normal values (variance 1 to within 1e-4, none beyond 4.3)."""
    out = np.empty(shape, np.float32)
    pixel_kernels.random_values(stream(rng), normal_quantiles(), out.reshape(-1))
    return out


def uniform(shape: tuple[int, int], rng: np.random.Generator) -> NDArray[np.float32]:
    """Return values between -1 and 1, all equally likely."""
    out = np.empty(shape, np.float32)
    pixel_kernels.random_values(stream(rng), uniform_quantiles(), out.reshape(-1))
    return out


@functools.cache
def normal_quantiles() -> NDArray[np.float32]:
    """Return the middles of 65536 equally likely slices of the standard normal distribution.

    >>> round(float(normal_quantiles().std()), 3)
    1.0
    """
    from scipy.special import ndtri  # noqa: PLC0415 - slow to import, and most mutations need none of it

    return _read_only(ndtri(_middles()))


@functools.cache
def uniform_quantiles() -> NDArray[np.float32]:
    """Return the middles of 65536 equal slices of (-1, 1)."""
    return _read_only(2 * _middles() - 1)


def _middles() -> NDArray[np.float64]:
    return (np.arange(QUANTILES) + 0.5) / QUANTILES


def _read_only(values: NDArray[np.float64]) -> NDArray[np.float32]:
    out = values.astype(np.float32)
    out.flags.writeable = False
    return out


LEVELS = np.arange(256)
"""All values that a channel can have, for tables."""

ROUND = 0.5
TRUNCATE = 0.0
HAIR = 1e-3
"""What is added to a value before its fraction is cut off: to round it, nothing, or just enough that a whole
number which float32 made a little too small stays what it is."""


def pixels(image: Image) -> Image:
    """Return the image as a contiguous (rows, columns, channels) array, copying only if it must.

    >>> pixels(np.zeros((2, 3), np.uint8)).shape
    (2, 3, 1)
    """
    return np.ascontiguousarray(image).reshape(image.shape[0], image.shape[1], -1)


def rows(image: NDArray[Any]) -> NDArray[Any]:
    """Return a contiguous image as (rows, columns * channels), the channels of a pixel side by side."""
    return image.reshape(image.shape[0], -1)


def truncated(values: NDArray[np.float32], shape: tuple[int, ...]) -> Image:
    """Return values of 0..255 as uint8 without rounding, in the given shape."""
    return values.astype(np.uint8).reshape(shape)


HAZE_COLOUR = (205, 208, 211)
"""RGB gray of fog (Pezzementi et al. 2018, III-A.3)."""

LUMA = (0.299, 0.587, 0.114)
"""BT.601 weights of R, G, B."""


def colour_for(image: Image, color: tuple[int, int, int]) -> tuple[float, ...]:
    """Return one value per channel of the image: the colour itself, or its luma for a gray image."""
    if image.ndim == 3 and image.shape[2] == 3:
        return tuple(float(value) for value in color)
    return (sum(weight * value for weight, value in zip(LUMA, color, strict=True)),)


def affine(image: Image, matrix: ArrayLike, shift: ArrayLike) -> Image:
    """Return matrix @ channels + shift for every pixel, rounded and saturated.

    >>> affine(np.array([[[10, 20, 250]]], np.uint8), np.eye(3)[::-1], [0, 0, 4.6])
    array([[[250,  20,  15]]], dtype=uint8)
    """
    values = pixels(image).astype(np.float32)
    mixed = cv2.transform(values, np.column_stack([matrix, shift])).reshape(values.shape)
    np.rint(mixed, out=mixed)
    return np.clip(mixed, 0, 255).astype(np.uint8).reshape(image.shape)

"""How images lie in memory and become whole levels: what OpenCV and the kernels want, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adverse.types import Image

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

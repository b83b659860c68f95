"""Noise of sensors and transmission."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from adverse.plugins import Fraction, mutation, unchanged_at
from adverse.types import Image


@mutation
def salt_pepper(
    image: Image, *, fraction: Annotated[Fraction, unchanged_at(0)], rng: np.random.Generator
) -> Image:
    """Set a share of the PIXELS, all channels together, to black or white, half each (000 III-A.5).

    The number of pixels is exact: `round(fraction * rows * columns)`, of which half (rounded up) are white.

    >>> salt_pepper(np.full((1, 4), 9, np.uint8), fraction=1.0, rng=np.random.default_rng(0)).sum()
    np.uint64(510)
    """
    pixels = image.shape[0] * image.shape[1]
    count = round(fraction * pixels)
    chosen = rng.choice(pixels, size=count, replace=False)
    out = np.array(image, order="C")
    flat = out.reshape(pixels, -1)
    white = (count + 1) // 2
    flat[chosen[:white]] = 255
    flat[chosen[white:]] = 0
    return out

"""Colours as people write them: 8-bit RGB on a display."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Rgb = tuple[int, int, int]


def linear(colour: Rgb) -> NDArray[np.float64]:
    """Return the reflectance (0..1) that a colour stands for, by the gamma of 2 that `sensor` undoes.

    >>> linear((255, 0, 51))
    array([1.  , 0.  , 0.04])
    """
    return (np.asarray(colour, float) / 255) ** 2


def picked(rng: np.random.Generator, colours: Sequence[Rgb]) -> Rgb:
    """Draw one of several colours."""
    return colours[int(rng.integers(len(colours)))]


def shifted(rng: np.random.Generator, colour: Rgb) -> Rgb:
    """Draw a colour close to the given one: no two leaves are alike."""
    light = rng.uniform(0.88, 1.1)
    red, green, blue = (int(min(channel * light * rng.uniform(0.96, 1.04), 255)) for channel in colour)
    return red, green, blue

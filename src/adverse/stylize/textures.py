"""Styles that are made rather than painted: a few random colours laid out as strokes, cells, waves or clouds.

They serve where no paintings are at hand, and beside paintings to train on (training/adain.py). A style is a
function of its random generator alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import cv2
import numpy as np
from numpy.typing import NDArray

from adverse.types import Image

SIZE_PX = 256
MOST_COLOURS = 6
MOST_MARKS = 1500
"""Strokes or dots on one style; more are slow and look no different."""

Plane = NDArray[np.float64]
"""Numbers of the pixels of a square, (size, size)."""


def texture(rng: np.random.Generator) -> Image:
    """Return a style of 256 x 256 pixels, of a kind that is drawn too.

    >>> texture(np.random.default_rng(0)).shape
    (256, 256, 3)
    """
    kind = sorted(KINDS)[int(rng.integers(len(KINDS)))]
    return KINDS[kind](rng, _palette(rng))


def _palette(rng: np.random.Generator) -> NDArray[np.float64]:
    """Return 3 to 6 colours (N,3) from dark to light, around one or two hues as painters choose them."""
    count = int(rng.integers(3, MOST_COLOURS + 1))
    hue = rng.uniform(0, 180) + rng.choice([0.0, 60.0, 90.0]) * rng.integers(0, 2, count)
    value = np.sort(rng.uniform(20, 255, count))
    colours = np.stack([(hue + rng.normal(0, 12, count)) % 180, rng.uniform(20, 240, count), value], axis=1)
    return np.asarray(cv2.cvtColor(np.rint(colours)[None].astype(np.uint8), cv2.COLOR_HSV2RGB)[0], np.float64)


def _clouds(rng: np.random.Generator, cells: int, octaves: int = 4) -> Plane:
    """Return smooth noise in 0..1, whose largest features are 1/`cells` of the square wide."""
    total = np.zeros((SIZE_PX, SIZE_PX))
    for octave in range(octaves):
        side = min(cells << octave, SIZE_PX) + 3
        grid = rng.random((side, side))
        total += cv2.resize(grid, (SIZE_PX, SIZE_PX), interpolation=cv2.INTER_CUBIC) / 2**octave
    low, high = float(total.min()), float(total.max())
    return (total - low) / (high - low)


def _coloured(values: Plane, palette: NDArray[np.float64]) -> Image:
    """Return the colours of a palette at places 0..1 along it, blended between neighbours."""
    stops = np.linspace(0, 1, len(palette))
    return _image(np.stack([np.interp(values, stops, palette[:, channel]) for channel in range(3)], axis=2))


def _image(values: NDArray[np.float64]) -> Image:
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)


def _cloudy(rng: np.random.Generator, palette: NDArray[np.float64]) -> Image:
    bands = float(rng.choice([1.0, 2.0, 4.0]))
    return _coloured(np.abs((_clouds(rng, int(rng.integers(2, 9))) * bands + 1) % 2 - 1), palette)


def _waves(rng: np.random.Generator, palette: NDArray[np.float64]) -> Image:
    y, x = np.mgrid[:SIZE_PX, :SIZE_PX] / SIZE_PX
    angle, count = rng.uniform(0, np.pi), rng.uniform(5, 40)
    along = x * np.cos(angle) + y * np.sin(angle) + rng.uniform(0, 0.5) * _clouds(rng, 3, 2)
    mixed = 0.5 + 0.5 * np.sin(2 * np.pi * count * along)
    return _coloured(np.clip(0.7 * mixed + 0.3 * _clouds(rng, 4), 0, 1), palette)


def _cells(rng: np.random.Generator, palette: NDArray[np.float64]) -> Image:
    """Return a mosaic: each pixel has the colour of the nearest of some points, dark along the seams."""
    seeds = np.full((SIZE_PX, SIZE_PX), 255, np.uint8)
    count = int(rng.integers(40, 400))
    rows, columns = rng.integers(0, SIZE_PX, (2, count))
    seeds[rows, columns] = 0
    _, nearest = cv2.distanceTransformWithLabels(
        seeds, cv2.DIST_L2, cv2.DIST_MASK_5, labelType=cv2.DIST_LABEL_PIXEL
    )
    colours = palette[rng.integers(len(palette), size=nearest.max() + 1)]
    image = colours[nearest] + rng.normal(0, 14, (nearest.max() + 1, 1))[nearest]
    seam = (nearest != np.roll(nearest, 1, 0)) | (nearest != np.roll(nearest, 1, 1))
    image[seam] *= rng.uniform(0.1, 1.0)
    return _image(image)


def _strokes(rng: np.random.Generator, palette: NDArray[np.float64]) -> Image:
    """Return brush strokes along a smooth field of directions, over a cloudy ground."""
    image = _cloudy(rng, palette)
    direction = _clouds(rng, int(rng.integers(2, 5)), 2) * 2 * np.pi
    where = _clouds(rng, int(rng.integers(2, 6)), 2) * (len(palette) - 1)
    length, thickness = float(rng.uniform(8, 30)), int(rng.integers(2, 7))
    for _ in range(min(int(1.5 * SIZE_PX * SIZE_PX / (length * thickness)), MOST_MARKS)):
        x, y = rng.integers(0, SIZE_PX, 2)
        shift = 0.5 * length * np.array([np.cos(direction[y, x]), np.sin(direction[y, x])])
        nearest = round(float(np.clip(where[y, x] + rng.normal(0, 0.6), 0, len(palette) - 1)))
        colour = np.clip(palette[nearest] + rng.normal(0, 18, 3), 0, 255).tolist()
        ends = np.rint(np.array([[x, y]]) + np.stack([-shift, shift])).astype(int).tolist()
        cv2.line(image, ends[0], ends[1], colour, thickness, cv2.LINE_AA)
    return image


def _dots(rng: np.random.Generator, palette: NDArray[np.float64]) -> Image:
    image = _cloudy(rng, palette)
    radius = int(rng.integers(3, 12))
    for _ in range(min(int(SIZE_PX * SIZE_PX / (2 * radius * radius)), MOST_MARKS)):
        x, y = rng.integers(0, SIZE_PX, 2).tolist()
        colour = np.clip(palette[rng.integers(len(palette))] + rng.normal(0, 12, 3), 0, 255).tolist()
        cv2.circle(image, (x, y), int(rng.integers(1, radius + 1)), colour, cv2.FILLED, cv2.LINE_AA)
    return image


def _hatching(rng: np.random.Generator, palette: NDArray[np.float64]) -> Image:
    """Return fine crossed lines, as of an engraving: light paper, dark ink."""
    y, x = np.mgrid[:SIZE_PX, :SIZE_PX].astype(np.float64)
    ink = np.zeros((SIZE_PX, SIZE_PX))
    for _ in range(int(rng.integers(1, 4))):
        angle, period = rng.uniform(0, np.pi), rng.uniform(4, 14)
        bent = 12 * _clouds(rng, 3, 2)
        line = np.sin(2 * np.pi * (x * np.cos(angle) + y * np.sin(angle) + bent) / period)
        ink = np.maximum(ink, np.clip(line * 2 - 2 * _clouds(rng, 3) + 0.6, 0, 1))
    return _coloured(np.clip(1 - ink, 0, 1), palette)


KINDS: Mapping[str, Callable[[np.random.Generator, NDArray[np.float64]], Image]] = {
    "cells": _cells,
    "clouds": _cloudy,
    "dots": _dots,
    "hatching": _hatching,
    "strokes": _strokes,
    "waves": _waves,
}

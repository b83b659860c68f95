"""Colours that mutations paint with, for colour and for gray images alike."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import ArrayLike

from adverse.mutations import layout
from adverse.types import Image

HAZE_COLOUR = (205, 208, 211)
"""RGB gray of fog (000 III-A.3)."""

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
    values = layout.pixels(image).astype(np.float32)
    mixed = cv2.transform(values, np.column_stack([matrix, shift])).reshape(values.shape)
    np.rint(mixed, out=mixed)
    return np.clip(mixed, 0, 255).astype(np.uint8).reshape(image.shape)

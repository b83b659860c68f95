"""Colours that mutations paint with, for colour and for gray images alike."""

from __future__ import annotations

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

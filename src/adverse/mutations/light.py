"""Too much light, too little, less of a difference, or a veil of one colour."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import cv2
import numpy as np
from numpy.typing import NDArray

from adverse.marks import Hazard, Strength
from adverse.mutations import pixel_kernels, pixels
from adverse.mutations.hazards import IN_FOG, TOO_BRIGHT
from adverse.mutations.pixels import HAZE_COLOUR, LEVELS, colour_for
from adverse.plugins import Colour, Fraction, NonNegative, mutation, unchanged_at
from adverse.types import Image


@mutation(
    hazards=(
        Hazard("light source", "intensity", "less", "there is too little light", "scale", below=1),
        replace(TOO_BRIGHT, option="scale", above=1),
    ),
    strength=Strength("scale", 1, 0),
)
def brightness(image: Image, *, scale: Annotated[NonNegative, unchanged_at(1)]) -> Image:
    """Multiply every channel by `scale`, saturating at 255 (Pezzementi et al. 2018, III-A.2).

    The strength of it that can be searched goes to the dark.

    >>> brightness(np.array([[10, 200]], np.uint8), scale=2.0)
    array([[ 20, 255]], dtype=uint8)
    """
    return _look_up(image, [_rounded(LEVELS * scale)])


@mutation(hazards=(IN_FOG,))
def alpha_blend(
    image: Image, *, alpha: Annotated[Fraction, unchanged_at(0)], color: Colour = HAZE_COLOUR
) -> Image:
    """Blend with one colour: (1 - alpha) image + alpha colour (Pezzementi et al. 2018, III-A.3).

    `alpha` is the weight of the colour. The text of Pezzementi et al. 2018 lists the
    complement; its table, and Pezzementi et al. 2021 (5.1), agree with this.

    >>> alpha_blend(np.zeros((1, 1, 3), np.uint8), alpha=0.5)
    array([[[102, 104, 106]]], dtype=uint8)
    """
    levels = LEVELS * (1 - alpha)
    return _look_up(image, [_rounded(levels + alpha * value) for value in colour_for(image, color)])


def reduce_contrast(image: Image, keep: float, *, offset: float) -> Image:
    """Move every channel towards its mean, (x - mean) keep + mean; truncates after adding `offset`."""
    source = pixels.pixels(image)
    means = cv2.mean(source)[: source.shape[2]]
    values = LEVELS / 255
    tables = [np.clip((values - mean / 255) * keep + mean / 255, 0, 1) * 255 for mean in means]
    return _look_up(image, [(table + offset).astype(np.uint8) for table in tables])


def raise_value(image: Image, shift: float) -> Image:
    """Add `shift` (of 1) to the value of HSV, at most 1, and keep hue and saturation; truncates.

    Hue and saturation stay when all channels grow in proportion, so a channel's new level depends on itself
    and on the largest channel alone. Black, which has no hue, becomes gray.
    """
    source = pixels.pixels(image)
    if source.shape[2] == 1:
        return _look_up(image, [(np.clip(LEVELS / 255 + shift, 0, 1) * 255).astype(np.uint8)])
    largest = np.maximum(LEVELS, 1)[:, None] / 255
    raised = np.clip(LEVELS / 255 + shift, 0, 1)[:, None]
    levels = np.clip(LEVELS / 255 * (raised / largest), 0, 1) * 255
    table = (levels + 1e-9).astype(np.uint8)
    table[LEVELS, LEVELS] = (raised[:, 0] * 255).astype(np.uint8)
    out = np.empty_like(source)
    pixel_kernels.map_by_brightest(source.reshape(-1, 3), table, out.reshape(-1, 3))
    return out.reshape(image.shape)


def change_saturation(image: Image, scale: float, shift: float) -> Image:
    """Set the saturation of HSV to S scale + shift, at most 1; truncates. Gray images have none and stay."""
    source = pixels.pixels(image)
    if source.shape[2] == 1:
        return image.copy()
    out = np.empty_like(source)
    pixel_kernels.scale_saturation(source.reshape(-1, 3), scale, shift, out.reshape(-1, 3))
    return out.reshape(image.shape)


def _look_up(image: Image, tables: list[Image]) -> Image:
    """Replace levels by their entry in one table for all channels, or in one table for each."""
    source = pixels.pixels(image)
    if len(tables) == 1:
        return cv2.LUT(source, tables[0]).astype(np.uint8, copy=False).reshape(image.shape)
    out = np.empty_like(source)
    pixel_kernels.look_up(source.reshape(-1, 3), np.stack(tables), out.reshape(-1, 3))
    return out.reshape(image.shape)


def _rounded(values: NDArray[np.floating[Any]]) -> Image:
    """Round and saturate 256 output values into a look-up table."""
    table: Image = np.clip(np.rint(values), 0, 255).astype(np.uint8)
    return table

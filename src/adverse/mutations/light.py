"""Too much light, too little, or a veil of one colour."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from adverse.mutations.colour import HAZE_COLOUR, colour_for
from adverse.plugins import Colour, Fraction, NonNegative, mutation, unchanged_at
from adverse.types import Image


@mutation
def brightness(image: Image, *, scale: Annotated[NonNegative, unchanged_at(1)]) -> Image:
    """Multiply every channel by `scale`, saturating at 255 (000 III-A.2).

    >>> brightness(np.array([[10, 200]], np.uint8), scale=2.0)
    array([[ 20, 255]], dtype=uint8)
    """
    return _table(np.arange(256) * scale)[image]


@mutation
def alpha_blend(
    image: Image, *, alpha: Annotated[Fraction, unchanged_at(0)], color: Colour = HAZE_COLOUR
) -> Image:
    """Blend with one colour: (1 - alpha) image + alpha colour (000 III-A.3, 001 5.1).

    `alpha` is the weight of the colour. 000's text lists the complement; its table and 001 agree with this.

    >>> alpha_blend(np.zeros((1, 1, 3), np.uint8), alpha=0.5)
    array([[[102, 104, 106]]], dtype=uint8)
    """
    levels = np.arange(256) * (1 - alpha)
    tables = [_table(levels + alpha * value) for value in colour_for(image, color)]
    if len(tables) == 1:
        return tables[0][image]
    return np.stack([table[image[..., c]] for c, table in enumerate(tables)], axis=-1)


def _table(values: NDArray[np.floating[Any]]) -> Image:
    """Round and saturate 256 output values into a look-up table."""
    table: Image = np.clip(np.rint(values), 0, 255).astype(np.uint8)
    return table

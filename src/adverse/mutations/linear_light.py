"""Levels and the light they stand for: sRGB (IEC 61966-2-1) decoded to linear light, 0 to 1, and back.

Light adds up and is lost in proportion; levels do neither. What the weather, a lens or a sensor does to light
is therefore done here, between the two tables.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from adverse.mutations.pixels import LEVELS

STEPS = 1 << 14
"""Light is looked up in so many steps: level 1 is five of them, so that every level comes back as itself."""


def light_of(levels: ArrayLike) -> NDArray[np.float64]:
    """Return the linear light of levels 0..255.

    >>> light_of([0, 128, 255]).round(4)
    array([0.    , 0.2159, 1.    ])
    """
    value = np.asarray(levels, np.float64) / 255
    light: NDArray[np.float64] = np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)
    return light


def levels_of(light: ArrayLike) -> NDArray[np.float64]:
    """Return the levels of linear light, not rounded; light above 1 is white.

    >>> levels_of([0.2159, 2.0]).round(1)
    array([128., 255.])
    """
    value = np.clip(np.asarray(light, np.float64), 0, 1)
    coded = np.where(value <= 0.0031308, value * 12.92, 1.055 * value ** (1 / 2.4) - 0.055)
    levels: NDArray[np.float64] = coded * 255
    return levels


LIGHT: NDArray[np.float32] = light_of(LEVELS).astype(np.float32)
"""The light of each level."""

CODED: NDArray[np.uint8] = np.rint(levels_of(np.arange(STEPS + 1) / STEPS)).astype(np.uint8)
"""The level of each step of light: CODED[int(light * STEPS + 0.5)]."""

for _table in (LIGHT, CODED):
    _table.flags.writeable = False

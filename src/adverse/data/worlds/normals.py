"""Normal numbers for the noise of a sensor: a hash of the place in the picture, and a table of quantiles.

Two words are drawn from a generator; the rest is whole numbers, as vectors, and one look-up for each number.
"""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from adverse.data.worlds.compiled import compiled, inlined
from adverse.data.worlds.textures import hashed

U32 = np.uint32
BITS = 12
"""Of the hash that choose a quantile: steps are of 0.0006 deviations in the middle, and the farthest is 3.7
deviations away. Rounding to 8 bits hides far more."""
Words = NDArray[np.uint32]
Singles = NDArray[np.float32]


def _quantiles() -> Singles:
    """Return the middles of equally likely ranges of a normal number, widened to a variance of 1."""
    count = 1 << BITS
    middles = np.array([NormalDist().inv_cdf((step + 0.5) / count) for step in range(count)])
    table: Singles = (middles / np.sqrt(np.mean(middles**2))).astype(np.float32)
    return table


QUANTILES = _quantiles()


def drawn_words(rng: np.random.Generator) -> Words:
    """Return the words (2,) that a picture's noise is made of."""
    return rng.integers(0, 1 << 32, 2, np.uint32)


@compiled
def standard_normal(words: Words, first: int, quantiles: Singles, chosen: Words, out: Singles) -> None:
    """Fill `out` (N,) with the numbers from the `first` on of those that two words stand for.

    `chosen` (N,) is room for what is chosen of the quantiles.
    """
    one, other, start = words[0], words[1], U32(first)
    for i in range(len(out)):
        chosen[i] = _place(U32(start + U32(i)), one, other)
    for i in range(len(out)):
        out[i] = quantiles[chosen[i]]


@inlined
def _place(number: np.uint32, one: np.uint32, other: np.uint32) -> np.uint32:
    """Choose a quantile for a number and two words; hashed twice, so that no two pictures share a run."""
    return U32(hashed(U32(hashed(U32(number + one)) + other)) >> U32(32 - BITS))

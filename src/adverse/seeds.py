"""Keyed randomness: (study seed, key, purpose) -> its own Philox stream.

A stream depends on nothing but its key, so pixels are the same for any worker count, order, engine or
resume. Nothing in the package draws random numbers any other way.
"""

from __future__ import annotations

import numpy as np

from adverse.content import digest


def generator(seed: int, *key: str) -> np.random.Generator:
    """Return the random stream that belongs to a seed and a key.

    >>> generator(7, "row3/000123", "salt_pepper(fraction=0.01)").integers(1000)
    np.int64(591)
    """
    text = digest(str(seed), *key, size=16)
    return np.random.Generator(np.random.Philox(key=int(text, 16)))

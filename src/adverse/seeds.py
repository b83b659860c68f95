"""Keyed randomness: (study seed, key, purpose) -> its own Philox stream.

A stream depends on nothing but its key, so pixels are the same for any worker count, order, engine or
resume. Nothing in the package draws random numbers any other way.
"""

from __future__ import annotations

import hashlib

import numpy as np


def generator(seed: int, *key: str) -> np.random.Generator:
    """Return the random stream that belongs to a seed and a key.

    >>> generator(7, "row3/000123", "salt_pepper(fraction=0.01)").integers(1000)
    np.int64(591)
    """
    text = digest(str(seed), *key, size=16)
    return np.random.Generator(np.random.Philox(key=int(text, 16)))


def digest(*parts: str | bytes, size: int = 16) -> str:
    """Return the blake2b hash of the parts as hex; the borders between parts count.

    >>> digest("ab", "c") == digest("a", "bc")
    False
    """
    hasher = hashlib.blake2b(digest_size=size)
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        hasher.update(len(data).to_bytes(8, "little"))
        hasher.update(data)
    return hasher.hexdigest()

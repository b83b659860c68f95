"""Fields of independent random values, from the generator a mutation was given."""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from adverse.mutations import pixel_kernels

QUANTILES = 65536
"""A value is one of so many equally likely ones: fine enough for images, small enough for the cache."""


def stream(rng: np.random.Generator) -> np.uint64:
    """Draw the seed of a compiled random stream; one generator can give any number of them."""
    return rng.integers(0, 2**64, dtype=np.uint64)


def normal(shape: tuple[int, int], rng: np.random.Generator) -> NDArray[np.float32]:
    """Return standard normal values (variance 1 to within 1e-4, none beyond 4.3)."""
    out = np.empty(shape, np.float32)
    pixel_kernels.random_values(stream(rng), normal_quantiles(), out.reshape(-1))
    return out


def uniform(shape: tuple[int, int], rng: np.random.Generator) -> NDArray[np.float32]:
    """Return values between -1 and 1, all equally likely."""
    out = np.empty(shape, np.float32)
    pixel_kernels.random_values(stream(rng), uniform_quantiles(), out.reshape(-1))
    return out


@functools.cache
def normal_quantiles() -> NDArray[np.float32]:
    """Return the middles of 65536 equally likely slices of the standard normal distribution.

    >>> round(float(normal_quantiles().std()), 3)
    1.0
    """
    from scipy.special import ndtri  # noqa: PLC0415 - slow to import, and most mutations need none of it

    return _read_only(ndtri(_middles()))


@functools.cache
def uniform_quantiles() -> NDArray[np.float32]:
    """Return the middles of 65536 equal slices of (-1, 1)."""
    return _read_only(2 * _middles() - 1)


def _middles() -> NDArray[np.float64]:
    return (np.arange(QUANTILES) + 0.5) / QUANTILES


def _read_only(values: NDArray[np.float64]) -> NDArray[np.float32]:
    out = values.astype(np.float32)
    out.flags.writeable = False
    return out

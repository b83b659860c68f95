"""Paired bootstrap over logs: the same resamples for all that is compared, with a standard error in each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adverse.curves.quantities import Array, Quantity, curves_of
from adverse.curves.resample import Resamples
from adverse.curves.weighting import Valued, Weighting

MEMORY_BYTES = 256 * 2**20
"""What the intermediate arrays of one chunk of resamples may take."""


@dataclass(frozen=True, eq=False)
class Sample:
    """What the logs as they are say about a quantity, and what B resamples of them say.

    `influence` (L,) is centred within strata; `error` is the standard error from it. NaN where undefined.
    """

    quantity: Quantity

    value: float
    error: float
    influence: Array
    values: Array
    errors: Array


def estimate(quantities: Mapping[str, Quantity], resamples: Resamples) -> dict[str, Sample]:
    """Return each quantity with its resampled values and standard errors; NaN where it is not defined.

    All are evaluated together, chunk by chunk, so that what they share - a baseline, a worst case - is
    worked out once, and memory stays bounded.
    """
    strata = _strata(resamples.stratum)
    plain = Weighting(np.ones((1, len(resamples.order))), resamples.order)
    observed = {name: plain.evaluate(quantity) for name, quantity in quantities.items()}
    size = len(resamples.counts)
    values = {name: np.empty(size) for name in quantities}
    errors = {name: np.empty(size) for name in quantities}
    for rows in _chunks(quantities, resamples):
        weighting = Weighting(resamples.counts[rows].astype(np.float64), resamples.order)
        for name, quantity in quantities.items():
            found = weighting.evaluate(quantity)
            values[name][rows] = found.value
            errors[name][rows] = _centred(found, weighting.weights, strata)[1]
    samples = {}
    for name, found in observed.items():
        influence, error = _centred(found, plain.weights, strata)
        samples[name] = Sample(
            quantities[name],
            float(found.value[0]),
            float(error[0]),
            influence[0],
            values[name],
            errors[name],
        )
    return samples


def _strata(stratum: NDArray[np.int64]) -> Array:
    """Return the strata as (L, H) indicators."""
    numbers = np.arange(stratum.max(initial=-1) + 1)
    return np.asarray(stratum[:, None] == numbers, np.float64)


def _centred(found: Valued, weights: Array, strata: Array) -> tuple[Array, Array]:
    """Return influences (C, L) centred within strata, and the standard errors (C,) they give.

    Each stratum's sum of squares is scaled by n / (n - 1); a stratum of one log adds nothing, which is why
    such intervals are refused elsewhere.
    """
    size = strata.sum(axis=0)
    means = ((weights * found.influence) @ strata) / size
    centred = found.influence - means @ strata.T
    squares = (weights * centred**2) @ strata
    variance = squares @ np.where(size > 1, size / np.maximum(size - 1, 1), 0.0)
    return centred, np.sqrt(variance)


def _chunks(quantities: Mapping[str, Quantity], resamples: Resamples) -> Iterator[slice]:
    """Yield slices of resamples whose arrays fit into the memory."""
    logs = len(resamples.order)
    curves = {
        curve: curve.num_s.shape[1] for quantity in quantities.values() for curve in curves_of(quantity)
    }
    per_resample = 8 * (5 * sum(curves.values()) + (3 * len(quantities) + 4) * logs)
    step = max(1, MEMORY_BYTES // per_resample)
    for start in range(0, len(resamples.counts), step):
        yield slice(start, start + step)

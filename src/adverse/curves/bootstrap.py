"""Paired bootstrap over logs: the same resamples for all that is compared, with a standard error in each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adverse.curves.quantities import Array, Quantity, curves_of
from adverse.curves.resample import Resamples
from adverse.curves.weighting import Weighting

MEMORY_BYTES = 256 * 2**20
"""What the intermediate arrays of one chunk of resamples may take."""


@dataclass(frozen=True, eq=False)
class Sample:
    """What the logs as they are say about a quantity, and what B resamples of them say.

    `influence` (L,) is centred within strata (`stratum` (L,) numbers them), both in the order of the curves'
    logs; `error` is the standard error from it. NaN where undefined.
    """

    quantity: Quantity

    value: float
    error: float
    influence: Array
    stratum: NDArray[np.int64]
    values: Array
    errors: Array


def estimate(quantities: Mapping[str, Quantity], resamples: Resamples) -> dict[str, Sample]:
    """Return each quantity with its resampled values and standard errors; NaN where it is not defined.

    All are evaluated together, chunk by chunk, so that what they share - a baseline, a worst case - is
    worked out once, and memory stays bounded.
    """
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
            errors[name][rows] = weighting.standard_errors(found.influence, resamples.stratum)
    samples = {}
    places = np.argsort(resamples.order)
    for name, found in observed.items():
        samples[name] = Sample(
            quantities[name],
            float(found.value[0]),
            float(plain.standard_errors(found.influence, resamples.stratum)[0]),
            _centred(found.influence[0], resamples.stratum)[places],
            resamples.stratum[places],
            values[name],
            errors[name],
        )
    return samples


def _centred(influence: Array, stratum: NDArray[np.int64]) -> Array:
    """Return the influences (L,) of the logs as they are, centred within strata."""
    means = np.bincount(stratum, influence) / np.bincount(stratum)
    centred: Array = influence - means[stratum]
    return centred


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

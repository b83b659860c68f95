"""Paired bootstrap over logs: the same resamples for all that is compared, with a standard error in each.

Resamples of logs: which logs are drawn how often, the same for everything that is compared.

Logs are the independent units: frames of one log are alike. Positive and negative logs are strata - their
numbers were chosen, not drawn - so each resample holds as many of either kind as there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adverse.curves.quantities import Array, Quantity, curves_of
from adverse.curves.weighting import Weighting
from adverse.seeds import generator

COUNT = 1000
KEY = "bootstrap over logs"
BLOCK = 2**20
"""How many draws are held in memory at once."""


@dataclass(frozen=True, eq=False)
class Resamples:
    """How often each of B resamples drew each of L logs: `counts` (B, L).

    The columns stand in the order of the logs' names: column j is log `order[j]`. So results do not depend
    on how logs are stored. `stratum` (L,) numbers the strata 0, 1, ..., also by column.
    """

    counts: NDArray[np.uint16]
    order: NDArray[np.int64]
    stratum: NDArray[np.int64]
    confidence: float = 0.95
    """That of the intervals they are drawn for."""


def draw(logs: Sequence[str], strata: Sequence[object], *, seed: int, count: int = COUNT) -> Resamples:
    """Draw `count` resamples of logs with replacement, within strata (`strata` (L,): any labels).

    The draws depend on the seed and on the names and strata of the logs, on nothing else.

    >>> draw(["b", "a", "c", "d"], ["+", "+", "+", "-"], seed=7, count=2).counts
    array([[0, 0, 3, 1],
           [0, 2, 1, 1]], dtype=uint16)
    """
    if len(set(logs)) != len(logs) or len(logs) != len(strata):
        raise ValueError("each log needs a name of its own and a stratum")
    order = np.argsort(np.asarray(logs, np.str_), kind="stable").astype(np.int64)
    labels = [str(strata[index]) for index in order]
    stratum = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    counts = np.zeros((count, len(logs)), np.uint16)
    for number in range(stratum.max(initial=-1) + 1):
        members = np.flatnonzero(stratum == number)
        stream = generator(seed, KEY, str(number))
        step = max(1, BLOCK // len(members))
        for start in range(0, count, step):
            counts[start : start + step, members] = _drawn(stream, min(step, count - start), len(members))
    return Resamples(counts, order, stratum)


def _drawn(stream: np.random.Generator, rows: int, size: int) -> NDArray[np.int64]:
    """Draw `size` of `size` logs with replacement, `rows` times; return how often each was drawn."""
    places = stream.integers(size, size=(rows, size)) + np.arange(rows)[:, None] * size
    return np.bincount(places.ravel(), minlength=rows * size).reshape(rows, size)


MEMORY_BYTES = 256 * 2**20
"""What the intermediate arrays of one chunk of resamples may take."""


@dataclass(frozen=True, eq=False)
class Drawn:
    """A value on the logs as they are, and on B resamples of them.

    `influence` (L,) is centred within strata (`stratum` (L,) numbers them), both in the order of the curves'
    logs; `error` is the standard error from it. NaN where undefined.
    """

    value: float
    error: float
    influence: Array
    stratum: NDArray[np.int64]
    values: Array
    errors: Array


@dataclass(frozen=True, eq=False)
class Sample(Drawn):
    """What logs and resamples say about a quantity."""

    quantity: Quantity


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
            float(found.value[0]),
            float(plain.standard_errors(found.influence, resamples.stratum)[0]),
            _centred(found.influence[0], resamples.stratum)[places],
            resamples.stratum[places],
            values[name],
            errors[name],
            quantities[name],
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

"""Resamples of logs: which logs are drawn how often, the same for everything that is compared.

Logs are the independent units: frames of one log are alike. Positive and negative logs are strata - their
numbers were chosen, not drawn - so each resample holds as many of either kind as there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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

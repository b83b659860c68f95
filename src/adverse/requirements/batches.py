"""Batches of images drawn with replacement, each a weight for every row of a tally.

`batches_of_logs` draws whole logs, each image with the mean of its versions, since frames of one drive are
alike. `batches_of_images` draws images one by one, each with one version drawn with it, as the paper does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.requirements.measures import Array, Evidence, Side
from adverse.seeds import generator

CHUNK = 64
"""Batches that are weighed at a time, so that memory stays bounded."""


class Batches(NamedTuple):
    """What is required and what is measured in each batch (n,)."""

    required: Array
    measured: Array


def whole(evidence: Evidence) -> tuple[float, float]:
    """Return what is required and what is measured over all images, each counted once."""
    ones = np.ones((1, len(evidence.log)))
    required, measured = (
        float(side.tally.under(_by_image(side, ones))[0]) for side in (evidence.required, evidence.measured)
    )
    return required, measured


def batches_of_logs(evidence: Evidence, batches: int, images: int, *, seed: int, run: int) -> Batches:
    """Draw batches of about `images` images by drawing whole logs."""
    sides = (evidence.required, evidence.measured)
    return Batches(*values_of_logs(sides, evidence.log, batches, images, seed=seed, run=run))


def values_of_logs(
    sides: Sequence[Side], log: NDArray[np.int64], batches: int, images: int, *, seed: int, run: int
) -> list[Array]:
    """Return each side's measure (batches,) in the same batches of whole logs; `log` is that of each image.

    The same logs and seed give the same batches, so what is measured on two SUTs is paired.
    """
    names, log = np.unique(log, return_inverse=True)
    drawn = logs_drawn(len(names), images, len(log))
    rng = generator(seed, "batches of logs", str(run))
    parts = []
    for size in _sizes(batches):
        weights = _counts(rng.integers(len(names), size=(size, drawn)), len(names))[:, log]
        parts.append([side.tally.under(_by_image(side, weights)) for side in sides])
    return [np.concatenate([part[side] for part in parts]) for side in range(len(sides))]


def one_more(evidence: Evidence) -> float:
    """Return by how much one more log like the most extreme of them would move the distance."""
    log = np.unique(evidence.log, return_inverse=True)[1]
    logs = int(log.max()) + 1
    required, measured = whole(evidence)
    most = 0.0
    for start in range(0, logs, CHUNK):
        weights = 1.0 + (np.arange(start, min(start + CHUNK, logs))[:, None] == log)
        values = [
            side.tally.under(_by_image(side, weights)) for side in (evidence.required, evidence.measured)
        ]
        most = max(most, float(np.abs(values[0] - values[1] - (required - measured)).max()))
    return most


def logs_drawn(logs: int, images: int, of: int) -> int:
    """Return how many logs are drawn for a batch of about `images` images, of so many in so many logs.

    >>> logs_drawn(20, 50, 200)
    5
    """
    return max(1, round(logs * images / of))


def batches_of_images(evidence: Evidence, batches: int, images: int, *, seed: int, run: int) -> Batches:
    """Draw batches of `images` images, and with each image one of its versions.

    A side that has fewer images draws as many as it has: a batch must not pretend more. Where both sides have
    the same images, the same are drawn for both.
    """
    rng = generator(seed, "batches of images", str(run))
    sides = (evidence.required, evidence.measured)
    rows = [_rows_by_image(side, len(evidence.log)) for side in sides]
    pools = [np.flatnonzero(index.number > 0) for index in rows]
    parts = []
    for size in _sizes(batches):
        place, which = rng.random((size, images)), rng.random((size, images))
        values = []
        for side, index, pool in zip(sides, rows, pools, strict=True):
            drawn = min(images, len(pool))
            image = pool[(place[:, :drawn] * len(pool)).astype(np.int64)]
            row = index.order[index.start[image] + (which[:, :drawn] * index.number[image]).astype(np.int64)]
            values.append(side.tally.under(_counts(row, len(side.image))))
        parts.append(values)
    return Batches(*(np.concatenate([part[side] for part in parts]) for side in (0, 1)))


class _Rows(NamedTuple):
    order: NDArray[np.int64]
    start: NDArray[np.int64]
    number: NDArray[np.int64]


def _rows_by_image(side: Side, images: int) -> _Rows:
    """Return where the rows of each image are, once they are put in the order of the images."""
    count = np.bincount(side.image, minlength=images)
    return _Rows(np.argsort(side.image, kind="stable"), np.cumsum(count) - count, count)


def _by_image(side: Side, weights: Array) -> Array:
    """Return the weights (B, R) of rows from those (B, N) of images, shared evenly by an image's rows."""
    count = np.bincount(side.image, minlength=weights.shape[1])
    shared: Array = weights[:, side.image] / count[side.image]
    return shared


def _counts(drawn: NDArray[np.int64], kinds: int) -> Array:
    """Return how often each of `kinds` numbers stands in each line of `drawn`."""
    flat = drawn + np.arange(len(drawn))[:, None] * kinds
    return np.bincount(flat.ravel(), minlength=len(drawn) * kinds).reshape(-1, kinds).astype(np.float64)


def _sizes(batches: int) -> list[int]:
    return [min(CHUNK, batches - start) for start in range(0, batches, CHUNK)]

"""Batches of images drawn with replacement, as the weight that each row has in each batch.

`logs` draws whole logs, each image with the mean of its versions: frames of one drive are alike, and a batch
that draws them one by one would take them for independent. `images` draws images one by one, each with one
version drawn with it, as the paper does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.reliability.tally import Array, Evidence, Side
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
    names, log = np.unique(evidence.log, return_inverse=True)
    drawn = max(1, round(len(names) * images / len(evidence.log)))
    rng = generator(seed, "batches of logs", str(run))
    parts = []
    for size in _sizes(batches):
        weights = _counts(rng.integers(len(names), size=(size, drawn)), len(names))[:, log]
        parts.append(
            [side.tally.under(_by_image(side, weights)) for side in (evidence.required, evidence.measured)]
        )
    return _joined(parts)


def batches_of_images(evidence: Evidence, batches: int, images: int, *, seed: int, run: int) -> Batches:
    """Draw batches of `images` images, and with each image one of its versions.

    A side that has fewer images draws as many as it has: a batch must not pretend more. Where both sides have
    the same images, the same are drawn for both.
    """
    rng = generator(seed, "batches of images", str(run))
    sides = (evidence.required, evidence.measured)
    rows = [_rows_by_image(side, len(evidence.log)) for side in sides]
    pools = [np.flatnonzero(found.number > 0) for found in rows]
    parts = []
    for size in _sizes(batches):
        place, which = rng.random((size, images)), rng.random((size, images))
        values = []
        for side, found, pool in zip(sides, rows, pools, strict=True):
            drawn = min(images, len(pool))
            image = pool[(place[:, :drawn] * len(pool)).astype(np.int64)]
            row = found.order[found.start[image] + (which[:, :drawn] * found.number[image]).astype(np.int64)]
            values.append(side.tally.under(_counts(row, len(side.image))))
        parts.append(values)
    return _joined(parts)


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


def _joined(parts: list[list[Array]]) -> Batches:
    required, measured = (np.concatenate([part[side] for part in parts]) for side in (0, 1))
    return Batches(required, measured)

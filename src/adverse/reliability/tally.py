"""What a measure is made of, row by row, so that it can be had for any weighting of the rows.

A row is one image as it is, or one changed version of it. A batch of images is a weight for each row, so
thousands of batches are a product of matrices; nothing is matched or counted twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from adverse.benchmarks.weighted import Matched

Array = NDArray[np.float64]


class Tally(Protocol):
    """A measure from 0 to 1 of weighted rows."""

    @property
    def informs(self) -> NDArray[np.bool_]:
        """Which rows (R,) can change the measure at all: an image without objects says nothing of recall."""

    def under(self, weights: Array) -> Array:
        """Return the measure (B,) for weights (B, R); NaN where it is not defined."""


@dataclass(frozen=True, eq=False)
class Ratio:
    """A ratio of sums: accuracy, recall, F1, share of equal pixels.

    >>> Ratio(np.array([1.0, 0.0]), np.array([1.0, 1.0])).under(np.array([[1.0, 1.0], [3.0, 1.0]])).tolist()
    [0.5, 0.75]
    """

    part: Array
    whole: Array

    @property
    def informs(self) -> NDArray[np.bool_]:
        """Rows with anything to count."""
        found: NDArray[np.bool_] = self.whole > 0
        return found

    def under(self, weights: Array) -> Array:
        """Return the ratio of the weighted sums."""
        whole = weights @ self.whole
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(whole > 0, weights @ self.part / whole, np.nan)


@dataclass(frozen=True, eq=False)
class MeanRatio:
    """The mean of the ratios of several classes, (R, C) each: mean IoU. A class without one is left out."""

    part: Array
    whole: Array

    @property
    def informs(self) -> NDArray[np.bool_]:
        """Rows with anything to count."""
        return np.asarray((self.whole > 0).any(axis=1), np.bool_)

    def under(self, weights: Array) -> Array:
        """Return the mean ratio."""
        whole = weights @ self.whole
        there = whole > 0
        with np.errstate(invalid="ignore", divide="ignore"):
            ratios = np.where(there, weights @ self.part / whole, 0.0)
            return np.where(there.any(axis=1), ratios.sum(axis=1) / there.sum(axis=1), np.nan)


@dataclass(frozen=True, eq=False)
class Precision:
    """Average precision of detections that were matched once."""

    matched: Matched

    @property
    def informs(self) -> NDArray[np.bool_]:
        """Rows with true objects; one with false alarms alone informs too, but proves no finding."""
        found: NDArray[np.bool_] = self.matched.positives.sum(axis=0) > 0
        return found

    def under(self, weights: Array) -> Array:
        """Return the mean average precision."""
        return self.matched.under(np.ascontiguousarray(weights))


@dataclass(frozen=True, eq=False)
class Side:
    """One side of a requirement: its tally, and which image (an index) each row belongs to."""

    tally: Tally
    image: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a requirement is judged on: what is required, what is measured, and the log of each image.

    `log` (N,) indexes independent logs; where every image is taken by itself it is `arange(N)`.
    """

    required: Side
    measured: Side
    log: NDArray[np.int64]

    @property
    def images(self) -> int:
        """How many images inform the side that fewer inform."""
        return min(len(np.unique(side.image[side.tally.informs])) for side in (self.required, self.measured))

    @property
    def logs(self) -> int:
        """How many logs do."""
        return min(
            len(np.unique(self.log[side.image[side.tally.informs]]))
            for side in (self.required, self.measured)
        )

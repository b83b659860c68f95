"""Standardized sensitivity: a level is a false-positive rate on un-mutated validation images.

Raw scores of different SUTs cannot be compared; the rate of false positives they cost can. A level maps to
the lowest threshold whose validation rate does not exceed it. Thresholds are frozen there: mutated images
are judged at the thresholds chosen on clean ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ROUNDING = 1e-9
"""Relative slack when a rate is compared with a level, so that 1 / 100 does not exceed 0.01."""


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """The shared levels and, for one SUT, the threshold of each: a detection counts if score >= threshold.

    `resolved` is False where a level is finer than one false positive in all validation images.
    """

    levels: NDArray[np.float64]
    thresholds: NDArray[np.float32]
    resolved: NDArray[np.bool_]
    images: int


def grid(count: int, lowest: float, highest: float) -> NDArray[np.float64]:
    """Return log-spaced levels, ascending, both ends exact."""
    return np.geomspace(lowest, highest, count)


def standardize(false_scores: NDArray[np.float32], images: int, levels: NDArray[np.float64]) -> Sensitivity:
    """Map each level to the lowest threshold that costs at most that many false positives per image.

    `false_scores` are the scores of all false positives on the validation images. With no images every
    level is unresolved and its threshold infinite: nothing is known, so nothing counts.

    >>> standardize(np.float32([0.9, 0.5]), 10, np.array([0.05, 0.1, 1.0])).thresholds
    array([0.90000004, 0.50000006,       -inf], dtype=float32)
    """
    falling = np.sort(np.asarray(false_scores, np.float32))[::-1]
    allowed = np.floor(levels * images * (1 + ROUNDING)).astype(np.int64)
    thresholds = np.full(len(levels), -np.inf, np.float32)
    limited = allowed < len(falling)
    # with k false positives allowed, the (k+1)-th strongest must not count, nor its equals
    thresholds[limited] = np.nextafter(falling[allowed[limited]], np.float32(np.inf))
    if images == 0:
        thresholds[:] = np.inf
    resolved = levels * images * (1 + ROUNDING) >= 1
    return Sensitivity(levels, thresholds, resolved, images)


def first_level(scores: NDArray[np.float32], thresholds: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return for each score the first level at which it counts; len(thresholds) if at none.

    Thresholds never rise from one level to the next, so a score counts at all later levels too.
    """
    rising = thresholds[::-1]
    return len(thresholds) - np.searchsorted(rising, scores, side="right")

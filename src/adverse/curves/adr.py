"""The average detection rate, the one number of 000: mean recall at fixed rates of false positives.

The sensitivities are chosen on un-mutated data, where they cost 10^-3 to 10^-1 false positives per image.
Mutated data is judged at the same sensitivities, whatever false positives it costs there (000, II-A).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

REFERENCES: tuple[float, ...] = tuple(10.0 ** (-3 + step / 4) for step in range(9))
"""False positives per image: 10^-3, 10^-2.75, ... 10^-1."""

ROUNDING = 1e-9
"""Relative slack when a rate is compared with a reference, so that 1 / 1000 does not exceed 10^-3."""


def reference_points(baseline_false_rate: ArrayLike, references: ArrayLike = REFERENCES) -> NDArray[np.int64]:
    """Return for each reference the last curve point whose BASELINE rate does not exceed it, -1 if none.

    `baseline_false_rate` (K,) is false positives per image on un-mutated data, by rising sensitivity.

    >>> reference_points([0.001, 0.01, 0.5], [0.0001, 0.001, 0.1])
    array([-1,  0,  1])
    """
    rate = np.asarray(baseline_false_rate, np.float64)
    if rate.ndim != 1 or np.isnan(rate).any() or (np.diff(rate) < 0).any():
        raise ValueError("the baseline's false-positive rates must be numbers that rise with sensitivity")
    limits = np.asarray(references, np.float64) * (1 + ROUNDING)
    return np.asarray(np.searchsorted(rate, limits, side="right") - 1, np.int64)


def adr(recall: ArrayLike, baseline_false_rate: ArrayLike, references: ArrayLike = REFERENCES) -> float:
    """Return the mean of `recall` (K,) at the points that the baseline's rates choose; no point counts 0.

    `recall` is that of the baseline or of mutated data at the same K thresholds. NaN when a recall that is
    needed is NaN (no truth).

    >>> adr([0.5, 0.8, 1.0], [0.001, 0.01, 0.5], [0.0001, 0.001, 0.1])
    0.43333333333333335
    """
    found = np.asarray(recall, np.float64)
    if found.shape != np.shape(baseline_false_rate):
        raise ValueError(f"recall {found.shape} and rates {np.shape(baseline_false_rate)} differ in shape")
    points = reference_points(baseline_false_rate, references)
    return float(np.mean(np.append(found, 0.0)[points]))  # -1 is the appended 0

"""The Robustness ROC: the worst of several curves at every sensitivity (001, section 8.3, algorithm 1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from adverse.curves.curve import area


class Points(NamedTuple):
    """A curve as three arrays of equal length."""

    sensitivity: NDArray[np.float64]
    safety: NDArray[np.float64]
    efficiency: NDArray[np.float64]


CurveLike = Sequence[ArrayLike]
"""(sensitivity, safety, efficiency)"""


def robustness_roc(curves: Iterable[CurveLike]) -> Points:
    """Return the worst case of any number of curves.

    Over the union of their sensitivities, safety and efficiency are each the minimum over all curves of the
    values at the nearest sensitivities below and above; where a curve has none, 0. Curves that share their
    sensitivities are thus compared point by point.

    >>> robustness_roc([([1, 2], [0.5, 1], [1, 0.5]), ([1, 2], [0.7, 0.9], [0.6, 0.6])]).safety
    array([0.5, 0.9])
    """
    given = [_points(curve) for curve in curves]
    if not given:
        raise ValueError("robustness_roc needs at least one curve")
    levels = np.unique(np.concatenate([curve.sensitivity for curve in given]))
    safety = np.min([_pessimistic(levels, c.sensitivity, c.safety) for c in given], axis=0)
    efficiency = np.min([_pessimistic(levels, c.sensitivity, c.efficiency) for c in given], axis=0)
    return Points(levels, safety, efficiency)


def robustness(baseline: CurveLike, *mutated: CurveLike) -> float:
    """Return area(RobROC(baseline, mutated...)) / area(baseline), in [0, 1]; NaN when that is 0 / 0."""
    plain = _points(baseline)
    whole = area(plain.safety, plain.efficiency)
    worst = robustness_roc([plain, *mutated])
    return area(worst.safety, worst.efficiency) / whole if whole > 0 else float("nan")


def _points(curve: CurveLike) -> Points:
    sensitivity, safety, efficiency = (np.asarray(part, np.float64).ravel() for part in curve)
    if not len(sensitivity) == len(safety) == len(efficiency):
        raise ValueError("sensitivity, safety and efficiency must have the same length")
    order = np.argsort(sensitivity, kind="stable")
    ordered = sensitivity[order]
    if np.isnan(ordered).any() or (np.diff(ordered) == 0).any():
        raise ValueError("each sensitivity must be a number and stand once in a curve")
    return Points(ordered, safety[order], efficiency[order])


def _pessimistic(
    levels: NDArray[np.float64], known: NDArray[np.float64], values: NDArray[np.float64]
) -> NDArray[np.float64]:
    padded = np.concatenate([[0.0], values, [0.0]])  # what lies beyond either end is worth nothing
    below = np.searchsorted(known, levels, side="right")
    above = np.searchsorted(known, levels, side="left") + 1
    worse: NDArray[np.float64] = np.minimum(padded[below], padded[above])
    return worse

"""What is left of a curve under several conditions: the worst, the mean, or what is to be expected.

The Robustness ROC is the worst of several curves at every sensitivity (Pezzementi et al. 2021, section 8.3,
algorithm 1). The other two are the alternatives named there in 8.3.2: the mean of the areas, and the curve of
averaged rates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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


def mean_over_mutations(scores: Mapping[str, Sequence[float]]) -> float:
    """Return the mean over families of the mean over each family's settings (Pezzementi et al. 2021, 8.3.2).

    `scores` are areas (or any score) by family. A family counts once however many settings it has. NaN when
    there is nothing, or when any score is NaN: what did not run is not averaged away.

    >>> mean_over_mutations({"haze": [0.5, 0.7], "gaussian_blur": [0.2]})
    0.4
    """
    if not scores or any(len(family) == 0 for family in scores.values()):
        return float("nan")
    return float(np.mean([np.mean(family) for family in scores.values()]))


def expected_curve(
    curves: Sequence[CurveLike], probabilities: ArrayLike, *, fpr_max: float | None = None
) -> Points:
    """Return the curve where condition i prevails with probability i (Pezzementi et al. 2021, 8.3.2).

    At every sensitivity the miss rates and the false-positive rates are averaged, weighted by probability,
    and only then turned into safety and efficiency. So with `fpr_max` the curves are (sensitivity, safety,
    false positives per image), and efficiency is 1 - min(mean rate / fpr_max, 1): a condition with many
    more alarms than fpr_max costs all of them, not just its own share of the efficiency. Without `fpr_max`
    the third array is an efficiency that is not made from a rate (loop level), and is averaged as it is.

    The curves must share their sensitivities; the probabilities must sum to 1.

    >>> calm, hazy = ([0.1], [0.9], [0.02]), ([0.1], [0.5], [0.12])
    >>> expected_curve([calm, hazy], [0.75, 0.25], fpr_max=0.1).efficiency
    array([0.55])
    """
    given = [_points(curve) for curve in curves]
    weights = np.asarray(probabilities, np.float64).ravel()
    if not given or len(weights) != len(given):
        raise ValueError(f"{len(given)} curves need as many probabilities, not {len(weights)}")
    if not ((weights >= 0).all() and abs(weights.sum() - 1) < 1e-9):
        raise ValueError("probabilities must be >= 0 and sum to 1")
    if any(not np.array_equal(curve.sensitivity, given[0].sensitivity) for curve in given):
        raise ValueError("an expected curve needs curves that share their sensitivities")
    safety = weights @ np.stack([curve.safety for curve in given])
    third = weights @ np.stack([curve.efficiency for curve in given])
    efficiency = third if fpr_max is None else 1.0 - np.minimum(third / fpr_max, 1.0)
    return Points(given[0].sensitivity, safety, efficiency)


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

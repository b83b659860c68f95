"""The rule of three for curves: what may be hidden where no log differs from another.

Where every log is perfect, or every log fails, or no log changes under a mutation, resampling shows no
spread at all. That is no certainty: what happens in one log of a hundred was perhaps just not recorded.
What was seen in none of N trials may still have a rate of about 3 / N. So the whole curve is moved by that
much, down and up, and the quantity worked out again.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.curves.curve import areas
from adverse.curves.quantities import Area, Array, Difference, Expected, Quantity, Ratios, Recall, Share
from adverse.curves.rates import none_seen

ROUNDING = 1e-12


class Hidden(NamedTuple):
    """Whose failures resamples cannot show: all of safety, or of efficiency; False: where no log differs."""

    safety: bool
    efficiency: bool


EVERYTHING = Hidden(safety=True, efficiency=True)
NOTHING = Hidden(safety=False, efficiency=False)


def ends(quantity: Quantity, tail: float, hidden: Hidden = EVERYTHING) -> tuple[float, float]:
    """Return the least and the most a quantity may be, each but for the chance `tail`.

    Only what is hidden is moved, and what is the same in all logs: the safety of a curve, or its efficiency;
    when neither is, both ends are the value itself. The chance is shared between the two. A difference
    moves one side at a time: both were seen on the same logs.
    """
    if isinstance(quantity, Area):
        return _area(quantity, -tail, hidden), _area(quantity, tail, hidden)
    if isinstance(quantity, Share):
        whole = _area(quantity.whole, 0.0)
        low, high = ends(quantity.part, tail, hidden)
        return low / whole, min(high / whole, 1.0)
    if isinstance(quantity, Difference):
        first, second = quantity.first, quantity.second
        value = _value(first) - _value(second)
        both = [(one, ends(one, tail, hidden)) for one in (first, second)]
        falls = [_value(one) - low for one, (low, _) in both]
        rises = [high - _value(one) for one, (_, high) in both]
        return value - max(falls[0], rises[1]), value + max(rises[0], falls[1])
    if isinstance(quantity, Recall):
        low, high = (_recall(quantity.curve, end, hidden) for end in (-tail, tail))
        return low, high
    if isinstance(quantity, Expected):
        low, high = (_expected(quantity, end, hidden) for end in (-tail, tail))
        return low, high
    pairs = [ends(part, tail, hidden) for part in quantity.parts]
    least, most = np.asarray(quantity.weights) @ np.asarray(pairs)
    return float(least), float(most)


def _value(quantity: Area | Share) -> float:
    if isinstance(quantity, Share):
        return _area(quantity.part, 0.0) / _area(quantity.whole, 0.0)
    return _area(quantity, 0.0)


def _area(quantity: Area, tail: float, hidden: Hidden = EVERYTHING) -> float:
    """Return the area with every curve moved down (tail < 0), up (tail > 0), or left where it is (0)."""
    moved = [_moved(curve, tail, hidden) for curve in quantity.curves]
    safety = np.min([one[0] for one in moved], axis=0)
    return float(areas(safety, np.min([one[1] for one in moved], axis=0)))


def _recall(curve: Ratios, tail: float, hidden: Hidden) -> float:
    safety = curve.observed()[0]
    if hidden.safety or _still(curve.num_s, curve.den_s):
        safety = np.clip(safety + math.copysign(none_seen(curve.den_s, tail=abs(tail)), tail), 0, 1)
    return float(np.mean(safety))


def _expected(quantity: Expected, tail: float, hidden: Hidden) -> float:
    """Return the expected area with every condition moved, each in proportion to its probability."""
    observed = [curve.observed_ratios() for curve in quantity.curves]
    safety, efficiency = quantity.curve([one[0] for one in observed], [one[1] for one in observed])
    safety, efficiency = safety.copy(), efficiency.copy()
    for chance, curve in zip(quantity.probabilities, quantity.curves, strict=True):
        before, after = curve.observed(), _moved(curve, tail, hidden)
        safety += chance * (after[0] - before[0])
        efficiency += chance * (after[1] - before[1])
    return float(areas(np.clip(safety, 0, 1), np.clip(efficiency, 0, 1)))


def _moved(curve: Ratios, tail: float, hidden: Hidden) -> tuple[Array, Array]:
    safety, efficiency = curve.observed()
    if tail == 0:
        return safety, efficiency
    sign = 1.0 if tail > 0 else -1.0
    if hidden.safety or _still(curve.num_s, curve.den_s):
        safety = np.clip(safety + sign * none_seen(curve.den_s, tail=abs(tail) / 2), 0, 1)
    if hidden.efficiency or _still(curve.num_e, curve.den_e):
        efficiency = np.clip(efficiency + sign * _unseen_loss(curve, abs(tail) / 2), 0, 1)
    return safety, efficiency


def _unseen_loss(curve: Ratios, tail: float) -> float:
    """Return how much efficiency may differ by what was seen in no log."""
    if curve.efficiency == "rate":
        return none_seen(curve.den_e, tail=tail) / curve.fpr_max
    return none_seen(curve.recorded_e(), tail=tail)  # a share of logs, each of which may lose everything


def _still(numerator: NDArray[Any], denominator: NDArray[Any]) -> bool:
    """Tell whether the ratio is the same in all logs, at every sensitivity."""
    num, den = (np.asarray(part, np.float64).reshape(len(part), -1) for part in (numerator, denominator))
    counts = (den > 0).all(axis=1)
    ratio = num[counts] / den[counts]
    return bool(np.ptp(ratio, axis=0).max(initial=0.0) < ROUNDING) if counts.any() else False

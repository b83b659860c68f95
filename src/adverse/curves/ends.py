"""The rule of three for curves: what may be hidden when no log differs from another.

Where every log is perfect, or every log fails, or no log changes under a mutation, resampling shows no
spread at all. That is no certainty: what happens in one log of a hundred was perhaps just not recorded.
What was seen in none of N trials may still have a rate of about 3 / N. So the whole curve is moved by that
much, down and up, and the quantity worked out again.
"""

from __future__ import annotations

import numpy as np

from adverse.curves.curve import areas
from adverse.curves.quantities import Area, Array, Difference, Quantity, Ratios, Share
from adverse.curves.rates import none_seen


def ends(quantity: Quantity, tail: float) -> tuple[float, float]:
    """Return the least and the most a quantity may be, each but for the chance `tail`.

    The chance is shared between safety and efficiency. A difference moves one side at a time: both were seen
    on the same logs.
    """
    if isinstance(quantity, Area):
        return _area(quantity, -tail), _area(quantity, tail)
    if isinstance(quantity, Share):
        whole = _area(quantity.whole, 0.0)
        low, high = ends(quantity.part, tail)
        return low / whole, min(high / whole, 1.0)
    if isinstance(quantity, Difference):
        first, second = quantity.first, quantity.second
        value = _value(first) - _value(second)
        falls = [_value(one) - ends(one, tail)[0] for one in (first, second)]
        rises = [ends(one, tail)[1] - _value(one) for one in (first, second)]
        return value - max(falls[0], rises[1]), value + max(rises[0], falls[1])
    pairs = [ends(part, tail) for part in quantity.parts]
    low, high = np.asarray(quantity.weights) @ np.asarray(pairs)
    return float(low), float(high)


def _value(quantity: Area | Share) -> float:
    if isinstance(quantity, Share):
        return _area(quantity.part, 0.0) / _area(quantity.whole, 0.0)
    return _area(quantity, 0.0)


def _area(quantity: Area, tail: float) -> float:
    """Return the area with every curve moved down (tail < 0), up (tail > 0), or left where it is (0)."""
    moved = [_moved(curve, tail) for curve in quantity.curves]
    safety = np.min([one[0] for one in moved], axis=0)
    return float(areas(safety, np.min([one[1] for one in moved], axis=0)))


def _moved(curve: Ratios, tail: float) -> tuple[Array, Array]:
    safety, efficiency = curve.observed()
    if tail == 0:
        return safety, efficiency
    unseen = none_seen(curve.den_s, tail=abs(tail) / 2)
    if curve.efficiency == "rate":
        unalarmed = none_seen(curve.den_e, tail=abs(tail) / 2) / curve.fpr_max
    else:  # a share of logs, each of which may lose everything
        unalarmed = none_seen(curve.recorded_e(), tail=abs(tail) / 2)
    sign = np.sign(tail)
    return np.clip(safety + sign * unseen, 0, 1), np.clip(efficiency + sign * unalarmed, 0, 1)

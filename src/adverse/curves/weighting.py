"""Quantities under weighted logs: their values, and how much each log has to say in them.

Give every log a weight - how often a resample drew it - and a quantity is a function of the weights.
Besides its value this works out, per log, its derivative by that log's weight: the influence, from which
standard errors follow without resampling resamples.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.curves.quantities import Area, Array, Difference, Expected, Quantity, Ratios, Recall, Share

AnyArray = NDArray[np.float64] | NDArray[np.int64]


class Valued(NamedTuple):
    """Values (C,) and influences (C, L) under C weightings of the logs."""

    value: Array
    influence: Array


class _Ratio(NamedTuple):
    """Sums over sums (C, K), the sums below (C, K) or (C, 1), and the parts of the logs that have any."""

    ratio: Array
    below: Array
    logs: NDArray[np.int64]
    numerators: Array
    denominators: Array


class _CountRatio(NamedTuple):
    """The same for counts that only grow with sensitivity, over one number of trials for each log.

    Entry n: the count of log `logs[n]` grows by `counts[n]` at sensitivity `starts[n]`.
    """

    ratio: Array
    below: Array
    logs: NDArray[np.int64]
    starts: NDArray[np.int64]
    counts: Array
    trials: Array


class _Curve(NamedTuple):
    """Safety, and what efficiency is made from, with efficiency itself (C, K)."""

    safety: _Ratio | _CountRatio
    cost: _Ratio | _CountRatio
    efficiency: Array


class Weighting:
    """C weightings of L logs (C, L), and what was worked out under them, so that it is worked out once."""

    def __init__(self, weights: Array, order: NDArray[np.int64]) -> None:
        self.weights = np.ascontiguousarray(weights, np.float64)
        self.order = order
        """The logs of all arrays are taken in this order, that of the columns of the weights."""
        self._curves: dict[Ratios, _Curve] = {}
        self._trials: dict[bytes, Array] = {}
        self._values: dict[Quantity, Valued] = {}

    def standard_errors(self, influence: Array, stratum: NDArray[np.int64]) -> Array:
        """Return the standard errors (C,) that influences (C, L) give.

        Influences are centred within strata. Each stratum's sum of squares is scaled by n / (n - 1); a
        stratum of one log adds nothing, which is why such intervals are refused elsewhere.
        """
        found: Array = _kernels().standard_errors(influence, self.weights, stratum, np.bincount(stratum))
        return found

    def evaluate(self, quantity: Quantity) -> Valued:
        """Return the values and influences of a quantity; NaN where it is not defined."""
        if quantity not in self._values:
            self._values[quantity] = self._evaluate(quantity)
        return self._values[quantity]

    def _evaluate(self, quantity: Quantity) -> Valued:
        if isinstance(quantity, Area):
            return self._area(quantity.curves)
        if isinstance(quantity, Share):
            part, whole = self.evaluate(quantity.part), self.evaluate(quantity.whole)
            with np.errstate(divide="ignore", invalid="ignore"):
                share = np.where(whole.value > 0, part.value / whole.value, np.nan)
                influence = (part.influence - share[:, None] * whole.influence) / whole.value[:, None]
            return Valued(share, influence)
        if isinstance(quantity, Difference):
            first, second = self.evaluate(quantity.first), self.evaluate(quantity.second)
            return Valued(first.value - second.value, first.influence - second.influence)
        if isinstance(quantity, Expected):
            return self._expected(quantity)
        if isinstance(quantity, Recall):
            return self._recall(quantity.curve)
        found = [self.evaluate(part) for part in quantity.parts]
        pairs = list(zip(quantity.weights, found, strict=True))
        value = np.sum([weight * one.value for weight, one in pairs], axis=0)
        return Valued(value, np.sum([weight * one.influence for weight, one in pairs], axis=0))

    def _area(self, curves: tuple[Ratios, ...]) -> Valued:
        found = [self._curve(curve) for curve in curves]
        safety = _lowest([one.safety.ratio for one in found])
        efficiency = _lowest([one.efficiency for one in found])
        clipped, scale = _from_ratio(curves[0])
        slopes = _kernels().area_and_slopes(safety.values, efficiency.values, clipped)
        value, by_safety, by_efficiency = slopes
        influence = np.zeros(self.weights.shape)
        for one in found:
            _add(influence, by_safety, 1.0, one.safety.ratio, safety, one.safety)
            _add(influence, by_efficiency, scale, one.efficiency, efficiency, one.cost)
        return _valued(value, influence)

    def _expected(self, quantity: Expected) -> Valued:
        found = [self._curve(curve) for curve in quantity.curves]
        ratios = [one.cost.ratio for one in found]
        safety, efficiency = quantity.curve([one.safety.ratio for one in found], ratios)
        clipped, scale = _from_ratio(quantity.curves[0])
        value, by_safety, by_efficiency = _kernels().area_and_slopes(safety, efficiency, clipped)
        influence = np.zeros(self.weights.shape)
        for chance, one in zip(quantity.probabilities, found, strict=True):
            for slopes, factor, part in (
                (by_safety, chance, one.safety),
                (by_efficiency, chance * scale, one.cost),
            ):
                _add(influence, slopes, factor, part.ratio, _lowest([part.ratio]), part)
        return _valued(value, influence)

    def _recall(self, curve: Ratios) -> Valued:
        safety = self._ratio(curve.num_s, curve.den_s, np.shape(curve.num_s)[1])
        slopes = np.full(safety.ratio.shape, 1 / safety.ratio.shape[1])
        influence = np.zeros(self.weights.shape)
        _add(influence, slopes, 1.0, safety.ratio, _lowest([safety.ratio]), safety)
        return _valued(safety.ratio.mean(axis=1), influence)

    def _curve(self, curve: Ratios) -> _Curve:
        if curve not in self._curves:
            size = np.shape(curve.num_s)[1]
            safety = self._ratio(curve.num_s, curve.den_s, size)
            cost = self._ratio(curve.num_e, curve.den_e, size)
            self._curves[curve] = _Curve(safety, cost, curve.efficiency_of(cost.ratio))
        return self._curves[curve]

    def _ratio(self, num: AnyArray, den: AnyArray, size: int) -> _Ratio | _CountRatio:
        above, below = self._part(num), self._part(den)
        if below.shape[1] == 1 and np.array_equal(above, np.rint(above)):  # whole numbers add up exactly
            grows = np.diff(above, axis=1, prepend=0.0)
            starts, logs = np.nonzero(grows.T)
            if len(logs) < grows.size / 2:
                return self._count_ratio(logs, starts, grows[logs, starts], below[:, 0], size)
        logs = np.flatnonzero(above.any(axis=1) | below.any(axis=1))
        sums = _kernels().weighted_sums
        over = sums(self.weights, logs, below[logs])
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.broadcast_to(sums(self.weights, logs, above[logs]) / over, (len(self.weights), size))
        turned = (np.ascontiguousarray(part[logs].T) for part in (above, below))
        return _Ratio(np.ascontiguousarray(ratio), over, logs, *turned)

    def _count_ratio(
        self, logs: NDArray[np.int64], starts: NDArray[np.int64], counts: Array, trials: Array, size: int
    ) -> _CountRatio:
        key = trials.tobytes()
        if key not in self._trials:  # the same for all settings, as a rule
            self._trials[key] = _kernels().weighted_sums(
                self.weights, np.arange(len(trials)), trials[:, None]
            )
        over = self._trials[key]
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = _kernels().weighted_counts(self.weights, logs, starts, counts, size) / over
        return _CountRatio(ratio, over, logs, starts, counts, trials)

    def _part(self, array: AnyArray) -> Array:
        """Return numbers per log as (L, K) or (L, 1), in the order of the weights."""
        ordered = np.asarray(array, np.float64)[self.order]
        return ordered if ordered.ndim == 2 else ordered[:, None]


def _from_ratio(curve: Ratios) -> tuple[bool, float]:
    """Return whether efficiency is clipped, and its derivative by num_e / den_e where it is not."""
    return (False, 1.0) if curve.efficiency == "ratio" else (True, -1.0 / curve.fpr_max)


def _add(
    influence: Array, slopes: Array, scale: float, own: Array, lowest: _Lowest, part: _Ratio | _CountRatio
) -> None:
    kernels = _kernels()
    add = kernels.add_influence_of_counts if isinstance(part, _CountRatio) else kernels.add_influence
    add(influence, slopes, scale, own, *lowest, *part)


def _valued(value: Array, influence: Array) -> Valued:
    influence[np.isnan(value)] = np.nan  # undefined values have undefined influences
    return Valued(value, influence)


class _Lowest(NamedTuple):
    """The minimum over curves at every point (C, K), and how many of them are that low."""

    values: Array
    equals: NDArray[np.int64]


def _lowest(curves: list[Array]) -> _Lowest:
    lowest, equals = curves[0].copy(), np.ones(curves[0].shape, np.int64)
    for other in curves[1:]:
        _kernels().lower(lowest, equals, other)
    return _Lowest(lowest, equals)


def _kernels() -> Any:
    """Return the compiled loops; numba is slow to import, and much of this package needs none of it."""
    from adverse.curves import weighting_kernels  # noqa: PLC0415

    return weighting_kernels

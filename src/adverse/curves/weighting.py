"""Quantities under weighted logs: their values, and how much each log has to say in them.

Give every log a weight - how often a resample drew it - and a quantity is a function of the weights.
Besides its value this works out, per log, its derivative by that log's weight: the influence, from which
standard errors follow without resampling resamples.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.curves.curve import staircase
from adverse.curves.quantities import Area, Array, Difference, Quantity, Ratios, Share


class Valued(NamedTuple):
    """Values (C,) and influences (C, L) under C weightings of the logs."""

    value: Array
    influence: Array


class _Curve(NamedTuple):
    """Safety and efficiency (C, K), their denominators (C, K) or (C, 1), and num_e / den_e (C, K)."""

    safety: Array
    den_s: Array
    efficiency: Array
    ratio: Array
    den_e: Array


class Weighting:
    """C weightings of L logs (C, L), and what was worked out under them, so that it is worked out once."""

    def __init__(self, weights: Array, order: NDArray[np.int64]) -> None:
        self.weights = weights
        self.order = order
        """The logs of all arrays are taken in this order, that of the columns of the weights."""
        self._curves: dict[Ratios, _Curve] = {}
        self._values: dict[Quantity, Valued] = {}

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
        found = [self.evaluate(part) for part in quantity.parts]
        pairs = list(zip(quantity.weights, found, strict=True))
        value = np.sum([weight * one.value for weight, one in pairs], axis=0)
        return Valued(value, np.sum([weight * one.influence for weight, one in pairs], axis=0))

    def _area(self, curves: tuple[Ratios, ...]) -> Valued:
        found = [self._curve(curve) for curve in curves]
        safety, worst_s = _lowest([one.safety for one in found])
        efficiency, worst_e = _lowest([one.efficiency for one in found])
        value, by_safety, by_efficiency = _area_and_slopes(safety, efficiency)
        influence = np.zeros(self.weights.shape)
        with np.errstate(divide="ignore", invalid="ignore"):  # undefined values have undefined influences
            for index, (curve, one) in enumerate(zip(curves, found, strict=True)):
                slope = np.where(worst_s == index, by_safety, 0.0) / one.den_s
                if slope.any():
                    influence += _times(slope, self._part(curve.num_s))
                    influence -= _times(slope * one.safety, self._part(curve.den_s))
                slope = np.where(worst_e == index, by_efficiency, 0.0) / one.den_e
                if curve.efficiency == "rate":
                    slope = np.where(one.efficiency > 0, -slope / curve.fpr_max, 0.0)
                if slope.any():
                    influence += _times(slope, self._part(curve.num_e))
                    influence -= _times(slope * one.ratio, self._part(curve.den_e))
        return Valued(value, influence)

    def _curve(self, curve: Ratios) -> _Curve:
        if curve not in self._curves:
            den_s, den_e = self.weights @ self._part(curve.den_s), self.weights @ self._part(curve.den_e)
            with np.errstate(divide="ignore", invalid="ignore"):
                safety = (self.weights @ self._part(curve.num_s)) / den_s
                rate = (self.weights @ self._part(curve.num_e)) / den_e
            rate = np.broadcast_to(rate, safety.shape)
            self._curves[curve] = _Curve(safety, den_s, curve.efficiency_of(rate), rate, den_e)
        return self._curves[curve]

    def _part(self, array: NDArray[np.float64] | NDArray[np.int64]) -> Array:
        """Return numbers per log as (L, K) or (L, 1), in the order of the weights."""
        ordered = np.asarray(array, np.float64)[self.order]
        return ordered if ordered.ndim == 2 else ordered[:, None]


def _times(slopes: Array, part: Array) -> Array:
    """Return slopes (C, K) times (L, K) numbers, or times (L, 1) numbers that are equal at all K."""
    if part.shape[1] == 1:
        slopes = np.sum(slopes, axis=1, keepdims=True)
    return slopes @ part.T


def _lowest(found: list[Array]) -> tuple[Array, NDArray[np.int64]]:
    """Return the minimum over curves at every point, and which curve it is: the first of equals."""
    lowest, which = found[0], np.zeros(found[0].shape, np.int64)
    for index, other in enumerate(found[1:], start=1):
        lower = other < lowest
        lowest = np.where(np.isnan(other), np.nan, np.where(lower, other, lowest))
        which[lower] = index
    return lowest, which


def _area_and_slopes(safety: Array, efficiency: Array) -> tuple[Array, Array, Array]:
    """Return areas (C,) and their derivatives by safety and by efficiency (C, K)."""
    reached, width, order = staircase(safety, efficiency)
    value = np.sum(reached * width, axis=1)
    by_efficiency = np.diff(reached, axis=1, prepend=0.0)
    count, size = reached.shape
    holder = np.maximum.accumulate(np.where(by_efficiency > 0, np.arange(size), 0), axis=1)  # reached first
    place = (np.arange(count)[:, None] * size + holder).ravel()
    widths = np.bincount(place, width.ravel(), minlength=count * size)
    by_safety = np.asarray(widths.reshape(count, size), np.float64)
    if order is None:
        return value, by_safety, by_efficiency
    unsorted = np.empty_like(by_safety), np.empty_like(by_efficiency)
    np.put_along_axis(unsorted[0], order, by_safety, axis=1)
    np.put_along_axis(unsorted[1], order, by_efficiency, axis=1)
    return value, *unsorted

"""What can be estimated from logs: areas, worst and expected cases, shares, differences, means, recalls.

A curve is a ratio of sums over logs, kept here as numerators and denominators per log. The rest are
expressions over curves; what they share is shared by being the same object.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Ratios:
    """The outcomes of L logs at K sensitivities, as numerators and denominators; knows nothing of levels.

    Safety is sum(num_s) / sum(den_s): `num_s` (L, K), `den_s` (L,). With `efficiency` "rate", num_e / den_e
    is a rate of alarms and efficiency 1 - min(rate / fpr_max, 1); with "ratio", it is the efficiency itself
    (loop level: times). `num_e` and `den_e` are (L, K) or, where equal at all sensitivities, (L,).
    """

    num_s: NDArray[np.float64] | NDArray[np.int64]
    den_s: NDArray[np.float64] | NDArray[np.int64]
    num_e: NDArray[np.float64] | NDArray[np.int64]
    den_e: NDArray[np.float64] | NDArray[np.int64]
    efficiency: Literal["rate", "ratio"] = "rate"
    fpr_max: float = 0.1

    def __post_init__(self) -> None:
        if np.ndim(self.num_s) != 2 or np.shape(self.den_s) != np.shape(self.num_s)[:1]:
            raise ValueError("num_s must be (logs, levels) and den_s (logs,)")
        for part in (self.num_e, self.den_e):
            if np.shape(part) not in (np.shape(self.num_s), np.shape(self.den_s)):
                raise ValueError("num_e and den_e must be (logs, levels) or (logs,)")

    @cached_property
    def observed(self) -> tuple[Array, Array]:
        """Safety and efficiency (K,) of the logs as they are; NaN where that is 0 / 0."""
        safety, ratio = self.observed_ratios
        return safety, self.efficiency_of(ratio)

    @cached_property
    def observed_ratios(self) -> tuple[Array, Array]:
        """Safety and num_e / den_e (K,) of the logs as they are."""
        with np.errstate(divide="ignore", invalid="ignore"):
            safety = np.sum(self.num_s, axis=0) / np.sum(self.den_s)
            ratio = np.sum(self.num_e, axis=0) / np.sum(self.den_e, axis=0)
        return safety, np.broadcast_to(ratio, safety.shape)

    def efficiency_of(self, ratio: Array) -> Array:
        """Turn num_e / den_e into efficiency."""
        if self.efficiency == "ratio":
            return ratio
        clipped: Array = 1.0 - np.minimum(ratio / self.fpr_max, 1.0)
        return clipped

    @cached_property
    def still_s(self) -> bool:
        """Whether safety is the same in all logs, at every sensitivity."""
        return _still(self.num_s, self.den_s)

    @cached_property
    def still_e(self) -> bool:
        """Whether num_e / den_e is the same in all logs, at every sensitivity."""
        return _still(self.num_e, self.den_e)

    def recorded_s(self) -> NDArray[np.bool_]:
        """Tell which logs (L,) say anything about safety."""
        return np.asarray(self.den_s) > 0

    def recorded_e(self) -> NDArray[np.bool_]:
        """Tell which logs (L,) say anything about efficiency."""
        den_e = np.asarray(self.den_e)
        return np.asarray(np.any(den_e.reshape(len(den_e), -1) > 0, axis=1), np.bool_)


def _still(numerator: NDArray[Any], denominator: NDArray[Any]) -> bool:
    num, den = (np.asarray(part, np.float64).reshape(len(part), -1) for part in (numerator, denominator))
    counts = (den > 0).all(axis=1)
    if not counts.any():
        return False
    ratio = num[counts] / den[counts]
    return bool(np.ptp(ratio, axis=0).max(initial=0.0) < ROUNDING)


@dataclass(frozen=True, eq=False)
class Area:
    """The area of a curve; of several curves, that of their Robustness ROC (they share their levels)."""

    curves: tuple[Ratios, ...]


@dataclass(frozen=True, eq=False)
class Share:
    """What is left of an area: robustness is Share(Area((baseline, mutated)), Area((baseline,)))."""

    part: Area
    whole: Area


@dataclass(frozen=True, eq=False)
class Difference:
    """The first less the second, over the same logs."""

    first: Area | Share
    second: Area | Share


@dataclass(frozen=True, eq=False)
class Mean:
    """The weighted mean of areas or shares; the weights sum to 1."""

    parts: tuple[Area | Share, ...]
    weights: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Expected:
    """The area of the curve to be expected where condition i prevails with probability i (they sum to 1).

    Miss rates and alarm rates are averaged first, and only then turned into safety and efficiency.
    """

    curves: tuple[Ratios, ...]
    probabilities: tuple[float, ...]

    def curve(self, safety: Sequence[Array], ratio: Sequence[Array]) -> tuple[Array, Array]:
        """Return safety and efficiency from those of all conditions: safeties, and num_e / den_e."""
        pairs = list(zip(self.probabilities, safety, ratio, strict=True))
        rate = np.sum([chance * one for chance, _, one in pairs], axis=0)
        expected = np.sum([chance * one for chance, one, _ in pairs], axis=0)
        return expected, self.curves[0].efficiency_of(rate)


@dataclass(frozen=True, eq=False)
class Recall:
    """The mean safety of a curve over its levels: with those of the reference rates, the ADR.

    Any other ratio of sums over logs goes the same way, where its values lie from `lowest` to `highest`.
    """

    curve: Ratios
    lowest: float = 0.0
    highest: float = 1.0


Quantity = Area | Share | Difference | Mean | Expected | Recall


def curves_of(quantity: Quantity) -> Iterator[Ratios]:
    """Yield the curves that a quantity is made of, some of them more than once."""
    if isinstance(quantity, Area | Expected):
        yield from quantity.curves
    elif isinstance(quantity, Recall):
        yield quantity.curve
    elif isinstance(quantity, Mean):
        for part in quantity.parts:
            yield from curves_of(part)
    else:
        pair = (
            (quantity.part, quantity.whole)
            if isinstance(quantity, Share)
            else (quantity.first, quantity.second)
        )
        for one in pair:
            yield from curves_of(one)

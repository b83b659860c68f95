"""From a bootstrap sample to an interval, or to a refusal; chosen by measured coverage (docs/statistics.md).

The studentized bootstrap takes the quantiles of (resampled value - value) / resampled standard error. Where
few logs carry the spread those quantiles are themselves uncertain, so neither side is ever shorter than
that of Student's t with degrees of freedom to match. As worst cases are biased - the minimum of two noisy
curves is below both - the side from which the estimate fled is moved out by the bias that the resamples
show. And what goes wrong in few logs is seen too seldom, by resamples as well: each end is moved out by what
one more log like the most extreme one of each kind would change.

The rule of three for curves: what may be hidden where no log differs from another.

Where every log is perfect, or every log fails, or no log changes under a mutation, resampling shows no
spread at all. That is no certainty: what happens in one log of a hundred was perhaps just not recorded.
What was seen in none of N trials may still have a rate of about 3 / N. So the whole curve is moved by that
much, down and up, and the quantity worked out again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from adverse.curves.bootstrap import Drawn, Resamples, Sample, estimate
from adverse.curves.curve import areas
from adverse.curves.interval import Interval, given, none_seen, refused
from adverse.curves.quantities import (
    Area,
    Array,
    Difference,
    Expected,
    Quantity,
    Ratios,
    Recall,
    Share,
    curves_of,
)


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
        low, high = (_recall(quantity, end, hidden) for end in (-tail, tail))
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


def _recall(quantity: Recall, tail: float, hidden: Hidden) -> float:
    curve, lowest, highest = quantity.curve, quantity.lowest, quantity.highest
    safety = curve.observed[0]
    if hidden.safety or curve.still_s:
        reach = highest - lowest if math.isfinite(highest - lowest) else 1.0  # of one trial
        unseen = reach * none_seen(curve.den_s, tail=abs(tail))
        safety = np.clip(safety + math.copysign(unseen, tail), lowest, highest)
    return float(np.mean(safety))


def _expected(quantity: Expected, tail: float, hidden: Hidden) -> float:
    """Return the expected area with every condition moved, each in proportion to its probability."""
    observed = [curve.observed_ratios for curve in quantity.curves]
    safety, efficiency = quantity.curve([one[0] for one in observed], [one[1] for one in observed])
    safety, efficiency = safety.copy(), efficiency.copy()
    for chance, curve in zip(quantity.probabilities, quantity.curves, strict=True):
        before, after = curve.observed, _moved(curve, tail, hidden)
        safety += chance * (after[0] - before[0])
        efficiency += chance * (after[1] - before[1])
    return float(areas(np.clip(safety, 0, 1), np.clip(efficiency, 0, 1)))


def _moved(curve: Ratios, tail: float, hidden: Hidden) -> tuple[Array, Array]:
    safety, efficiency = curve.observed
    if tail == 0:
        return safety, efficiency
    sign = 1.0 if tail > 0 else -1.0
    if hidden.safety or curve.still_s:
        safety = np.clip(safety + sign * none_seen(curve.den_s, tail=abs(tail) / 2), 0, 1)
    if hidden.efficiency or curve.still_e:
        efficiency = np.clip(efficiency + sign * _unseen_loss(curve, abs(tail) / 2), 0, 1)
    return safety, efficiency


def _unseen_loss(curve: Ratios, tail: float) -> float:
    """Return how much efficiency may differ by what was seen in no log."""
    if curve.efficiency == "rate":
        return none_seen(curve.den_e, tail=tail) / curve.fpr_max
    return none_seen(curve.recorded_e(), tail=tail)  # a share of logs, each of which may lose everything


METHOD = "studentized bootstrap"
AT_THE_END = "rule of three"
LEAST_LOGS = 3
"""With fewer logs behind safety or efficiency no interval is given: coverage was not measured there."""

UNDEFINED_SHARE = 0.05
"""Refused when the quantity is undefined in more than this share of the resamples."""

NO_SPREAD = 1e-9
"""A standard error below this is rounding."""

ONE_TRIAL = math.exp(-1)
"""The chance at which the rule of three is a rule of one: 1 in N trials."""

LEAST_P, PRECISION = 1e-9, 0.01
"""No p-value is told to be less, nor more precisely than to one percent of itself."""


def intervals(
    quantities: Mapping[str, Quantity], resamples: Resamples, *, confidence: float | None = None
) -> dict[str, Interval]:
    """Return the interval of each quantity from the same resamples of logs, at their confidence."""
    sure = resamples.confidence if confidence is None else confidence
    return {name: interval(one, confidence=sure) for name, one in estimate(quantities, resamples).items()}


def interval(sample: Sample, *, confidence: float = 0.95) -> Interval:
    """Return the interval of one quantity, clipped to what it can be: mostly [0, 1]."""
    logs = least_logs(sample.quantity)
    if math.isnan(sample.value):
        return refused(
            sample.value, "not defined on these logs", confidence=confidence, method=METHOD, logs=logs
        )
    if logs < LEAST_LOGS:
        why = f"fewer than {LEAST_LOGS} logs behind safety or efficiency"
        return refused(sample.value, why, confidence=confidence, method=METHOD, logs=logs)
    undefined = float(np.mean(np.isnan(sample.values)))
    if undefined > UNDEFINED_SHARE:
        why = f"not defined in {undefined:.0%} of the resamples"
        return refused(sample.value, why, confidence=confidence, method=METHOD, logs=logs)
    tail = (1 - confidence) / 2
    if sample.error < NO_SPREAD:
        low, high = ends(sample.quantity, tail)
        method = AT_THE_END
    else:
        low, high = _studentized(sample, tail, logs)
        fall, rise = _unseen(sample, tail)
        low, high = low - fall, high + rise
        method = METHOD
    least, most = _range(sample.quantity)
    return given(
        sample.value, max(low, least), min(high, most), confidence=confidence, method=method, logs=logs
    )


def _unseen(sample: Sample, tail: float) -> tuple[float, float]:
    """Return how far down and up a value may be for what the logs do not show."""
    rules = [(tail, NOTHING)]
    if sample.error < NO_SPREAD:
        rules = [(tail, EVERYTHING)]
    elif any(few := thin(sample)):
        shared = 1 if isinstance(sample.quantity, Recall) else 2  # by safety and efficiency
        rules.append((shared * ONE_TRIAL, few))
    fall = rise = 0.0
    for chance, what in rules:
        least, most = ends(sample.quantity, chance, what)
        fall, rise = fall + max(sample.value - least, 0.0), rise + max(most - sample.value, 0.0)
    return fall, rise


@dataclass(frozen=True, eq=False)
class Spread(Drawn):
    """How uncertain a value is, without the curves behind it: what its logs show, and what they do not."""

    fall: float
    rise: float
    logs: int


def spread(sample: Sample) -> Spread:
    """Return the spread of a value; what is unseen is that of an interval at 95 %."""
    known = not math.isnan(sample.value)
    fall, rise = _unseen(sample, 0.025) if known else (math.nan, math.nan)
    parts = (sample.error, sample.influence, sample.stratum, sample.values, sample.errors)
    return Spread(sample.value, *parts, fall, rise, least_logs(sample.quantity))


def most_ahead(first: Spread, second: Spread) -> float:
    """Return the most that the paired interval of a difference lets one say for the first being ahead.

    Where the interval at 95 % begins at 0 that is 0.975, and elsewhere as for a normal distribution with such
    an interval. The errors of the difference in resamples are those of both, correlated as the influences of
    the logs are.
    """
    away, tail = _less(first, second), 0.025
    least = away.value if away.error < NO_SPREAD else _studentized(away, tail, away.logs)[0]
    reach = away.value - least + away.fall
    return float(scipy.special.ndtr(scipy.special.ndtri(1 - tail) * away.value / reach)) if reach > 0 else 1.0


def _less(first: Spread, second: Spread) -> Spread:
    size = float(np.linalg.norm(first.influence) * np.linalg.norm(second.influence))
    alike = float(first.influence @ second.influence) / size if size > NO_SPREAD else 0.0
    error, errors = (
        np.sqrt(np.maximum(one**2 + other**2 - 2 * alike * one * other, 0.0))
        for one, other in ((first.error, second.error), (first.errors, second.errors))
    )
    return Spread(
        first.value - second.value,
        float(error),
        first.influence - second.influence,
        first.stratum,
        first.values - second.values,
        np.asarray(errors),
        max(first.fall, second.rise),
        max(first.rise, second.fall),
        min(first.logs, second.logs),
    )


def _range(quantity: Quantity) -> tuple[float, float]:
    if isinstance(quantity, Recall):
        return quantity.lowest, quantity.highest
    return (-1.0 if isinstance(quantity, Difference) else 0.0), 1.0


def p_value(sample: Sample) -> float | None:
    """Return the least doubt at which the interval of a difference leaves out 0; None if it is refused.

    So a p-value and an interval never contradict: p < 0.05 where the interval at 0.95 leaves out 0.
    """
    if interval(sample).low is None:
        return None
    low, high = math.log(LEAST_P), math.log(1 - LEAST_P)
    if not _leaves_out_0(sample, math.exp(high)):
        return 1.0
    while high - low > PRECISION:
        middle = (low + high) / 2
        low, high = (low, middle) if _leaves_out_0(sample, math.exp(middle)) else (middle, high)
    return math.exp(high)


def _leaves_out_0(sample: Sample, doubt: float) -> bool:
    found = interval(sample, confidence=1 - doubt)
    return found.low is not None and found.high is not None and (found.low > 0 or found.high < 0)


def least_logs(quantity: Quantity) -> int:
    """Return how many logs there are behind the safety, or the efficiency, of the curve that has fewest."""
    if isinstance(quantity, Recall):
        return int(np.count_nonzero(quantity.curve.recorded_s()))
    kinds = [kind for curve in curves_of(quantity) for kind in (curve.recorded_s(), curve.recorded_e())]
    return min(int(np.count_nonzero(kind)) for kind in kinds)


def thin(sample: Sample) -> Hidden:
    """Tell whether fewer than LEAST_LOGS effective logs carry the spread of safety, and of efficiency."""
    curves = list(curves_of(sample.quantity))
    logs_s = np.any([curve.recorded_s() for curve in curves], axis=0)
    logs_e = np.any([curve.recorded_e() for curve in curves], axis=0)
    return Hidden(*(_few_carry(sample.influence[logs]) for logs in (logs_s, logs_e)))


def _few_carry(influence: Array) -> bool:
    return bool(np.linalg.norm(influence) > NO_SPREAD) and effective_logs(influence) < LEAST_LOGS


def effective_logs(influence: Array) -> float:
    """Return how many logs carry the spread: as many as there are when all weigh the same, 1 when one does.

    >>> effective_logs(np.array([1.0, -1.0, 1.0, -1.0])), effective_logs(np.array([5.0, 0.0, 0.0]))
    (4.0, 1.0)
    """
    squares = influence**2
    return float(np.sum(squares) ** 2 / np.sum(squares**2))


def one_more_log(influence: Array, stratum: NDArray[np.int64]) -> tuple[float, float]:
    """Return how far one more log like the most extreme of each stratum moves a value down, and up.

    The influence of a log on a value that it took part in itself is too small; with few logs, much too small:
    n / (n - 2) makes up for that.

    >>> one_more_log(np.array([-2.0, 1.0, 1.0, 0.0, -3.0, 3.0]), np.array([0, 0, 0, 0, 1, 1]))
    (10.0, 8.0)
    """
    fall = rise = 0.0
    for number in np.unique(stratum):
        mine = influence[stratum == number]
        scale = len(mine) / max(len(mine) - 2, 1)
        fall, rise = fall - scale * float(mine.min()), rise + scale * float(mine.max())
    return fall, rise


def _studentized(sample: Drawn, tail: float, logs: int) -> tuple[float, float]:
    freedom = max(1.0, min(effective_logs(sample.influence), logs) - 2)
    least = float(scipy.special.stdtrit(freedom, 1 - tail))
    fall, rise = one_more_log(sample.influence, sample.stratum)
    usable = np.isfinite(sample.values) & (sample.errors > NO_SPREAD)
    pivots = (sample.values[usable] - sample.value) / sample.errors[usable]
    below, above = np.quantile(pivots, [tail, 1 - tail]) if pivots.size else (0.0, 0.0)
    bias = float(np.nanmean(sample.values)) - sample.value
    low = sample.value - max(float(above), least) * sample.error - fall - max(bias, 0.0)
    return low, sample.value + max(-float(below), least) * sample.error + rise - min(bias, 0.0)

"""From a bootstrap sample to an interval, or to a refusal; chosen by measured coverage (docs/statistics.md).

The studentized bootstrap takes the quantiles of (resampled value - value) / resampled standard error. Where
few logs carry the spread those quantiles are themselves uncertain, so neither side is ever shorter than
that of Student's t with degrees of freedom to match. As worst cases are biased - the minimum of two noisy
curves is below both - the side from which the estimate fled is moved out by the bias that the resamples
show. And what goes wrong in few logs is seen too seldom, by resamples as well: each end is moved out by what
one more log like the most extreme one of each kind would change.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy import special

from adverse.curves.bootstrap import Sample, estimate
from adverse.curves.ends import NOTHING, Hidden, ends
from adverse.curves.interval import Interval, given, refused
from adverse.curves.quantities import Array, Difference, Quantity, Recall, curves_of
from adverse.curves.resample import Resamples

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
    quantities: Mapping[str, Quantity], resamples: Resamples, *, level: float = 0.95
) -> dict[str, Interval]:
    """Return the interval of each quantity from the same resamples of logs."""
    return {name: interval(one, level=level) for name, one in estimate(quantities, resamples).items()}


def interval(sample: Sample, *, level: float = 0.95) -> Interval:
    """Return the interval of one quantity, clipped to what it can be ([0, 1], a difference [-1, 1])."""
    logs = least_logs(sample.quantity)
    if math.isnan(sample.value):
        return refused(sample.value, "not defined on these logs", level=level, method=METHOD, logs=logs)
    if logs < LEAST_LOGS:
        why = f"fewer than {LEAST_LOGS} logs behind safety or efficiency"
        return refused(sample.value, why, level=level, method=METHOD, logs=logs)
    undefined = float(np.mean(np.isnan(sample.values)))
    if undefined > UNDEFINED_SHARE:
        why = f"not defined in {undefined:.0%} of the resamples"
        return refused(sample.value, why, level=level, method=METHOD, logs=logs)
    tail = (1 - level) / 2
    if sample.error < NO_SPREAD:
        low, high = ends(sample.quantity, tail)
        method = AT_THE_END
    else:
        low, high = _studentized(sample, tail, logs)
        rules = [(tail, NOTHING)]
        if any(few := thin(sample)):
            shared = 1 if isinstance(sample.quantity, Recall) else 2  # by safety and efficiency
            rules.append((shared * ONE_TRIAL, few))
        for chance, what in rules:
            least, most = ends(sample.quantity, chance, what)
            low, high = low - max(sample.value - least, 0.0), high + max(most - sample.value, 0.0)
        method = METHOD
    floor = -1.0 if isinstance(sample.quantity, Difference) else 0.0
    return given(sample.value, max(low, floor), min(high, 1.0), level=level, method=method, logs=logs)


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
    found = interval(sample, level=1 - doubt)
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


def _studentized(sample: Sample, tail: float, logs: int) -> tuple[float, float]:
    freedom = max(1.0, min(effective_logs(sample.influence), logs) - 2)
    least = float(special.stdtrit(freedom, 1 - tail))
    fall, rise = one_more_log(sample.influence, sample.stratum)
    usable = np.isfinite(sample.values) & (sample.errors > NO_SPREAD)
    pivots = (sample.values[usable] - sample.value) / sample.errors[usable]
    below, above = np.quantile(pivots, [tail, 1 - tail]) if pivots.size else (0.0, 0.0)
    bias = float(np.nanmean(sample.values)) - sample.value
    low = sample.value - max(float(above), least) * sample.error - fall - max(bias, 0.0)
    return low, sample.value + max(-float(below), least) * sample.error + rise - min(bias, 0.0)

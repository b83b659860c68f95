"""An interval with what one must know to trust it, and intervals of rates whose trials come in logs.

Clopper-Pearson is exact for independent trials. Korn and Graubard (Survey Methodology 24, 1998) put in the
effective number of trials: the number divided by the design effect, and reduced further for the few degrees
of freedom that a few logs give. A handful of logs may show no correlation by chance, so we never assume
less than a floor.

Of a hundred comparisons at 95 % about five find a difference where there is none. Holm's procedure (Scand. J.
Statist. 6, 1979) bounds the chance that any of those it names is such a one, whatever they have to do with
each other.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Self

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

Status = Literal["ok", "few logs", "refused"]

CONSTRUCTED = "by construction: the reference is compared with itself"
"""Why a figure of a label-free run has no interval."""
FEW_LOGS = 20
"""Below this many independent logs an interval is shown with a warning."""


@dataclass(frozen=True)
class Interval:
    """A value between `low` and `high` at a given confidence, from so many independent logs.

    Refused: no interval can be given that is known to keep its confidence; `low` and `high` are None, `why`
    says why. `value` is None when it is not defined at all. Few logs: given, but to be read with care.
    """

    value: float | None
    low: float | None
    high: float | None
    confidence: float
    method: str
    logs: int
    status: Status
    why: str = ""

    def plain(self) -> dict[str, Any]:
        """Return the interval as JSON holds it, beside its value; an infinite end is None.

        >>> refused(0.5, "fewer than 3 logs", confidence=0.95, method="jackknife", logs=2).plain()["why"]
        'fewer than 3 logs'
        """
        data = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "value"}
        return data | {"low": _finite(self.low), "high": _finite(self.high)}

    @classmethod
    def read(cls, value: float | None, plain: Mapping[str, Any]) -> Self:
        """Return the interval that `plain` wrote."""
        return cls(value, **plain)

    def scaled(self, factor: float) -> Self:
        """Return the interval of the value in another unit."""
        value, low, high = (
            None if end is None else factor * end for end in (self.value, self.low, self.high)
        )
        return replace(self, value=value, low=low, high=high)

    def at_most(self, whole: Interval) -> Self:
        """Return the interval of a part that can never exceed a whole, given that of the whole.

        Neither end lies above that of the whole: "between 0.7 and 0.98 of at most 0.96" contradicts itself.

        >>> part = given(0.9, 0.7, 0.98, confidence=0.95, method="jackknife", logs=30)
        >>> part.at_most(given(0.9, 0.8, 0.96, confidence=0.95, method="jackknife", logs=30)).text()
        '0.7 to 0.96'
        """
        if self.low is None or self.high is None or whole.low is None or whole.high is None:
            return self
        return replace(self, low=min(self.low, whole.low), high=min(self.high, whole.high))

    def low_at_most(self, parts: Iterable[Interval]) -> Self:
        """Return the interval of the worst of several, given theirs: it may be as low as the lowest of them.

        The high end stays: of many high ends the least is too low by chance.

        >>> worst = given(0.6, 0.5, 0.9, confidence=0.95, method="jackknife", logs=30)
        >>> worst.low_at_most([given(0.7, 0.3, 0.8, confidence=0.95, method="jackknife", logs=30)]).text()
        '0.3 to 0.9'
        """
        if self.low is None:
            return self
        return replace(self, low=min([self.low, *(one.low for one in parts if one.low is not None)]))

    @property
    def percent(self) -> str:
        """The confidence with all of its digits: 0.999999 is not 100%.

        >>> [given(0.5, 0, 1, confidence=c, method="", logs=30).percent for c in (0.9, 0.999999)]
        ['90%', '99.9999%']
        """
        return f"{100 * self.confidence:.10g}%"

    def text(self, form: str = ".4g", between: str = " to ") -> str:
        """Return both ends in few characters; empty where the interval was refused.

        >>> given(0.5, 0.25, 0.75, confidence=0.95, method="jackknife", logs=30).text()
        '0.25 to 0.75'
        """
        if self.low is None or self.high is None:
            return ""
        return f"{self.low:{form}}{between}{self.high:{form}}"


def interval_cells(name: str, plain: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the interval of a figure as the cells of a flat table; empty where there is none."""
    part = plain or {}
    return {
        f"{name}_low": part.get("low"),
        f"{name}_high": part.get("high"),
        f"{name}_interval": part.get("status"),
        f"{name}_logs": part.get("logs"),
        f"{name}_why": part.get("why"),
    }


def _finite(end: float | None) -> float | None:
    return None if end is None or not math.isfinite(end) else float(end)


def given(value: float, low: float, high: float, *, confidence: float, method: str, logs: int) -> Interval:
    """Return an interval, widened to hold its value; the status says whether it rests on few logs.

    >>> given(0.5, 0.25, 0.75, confidence=0.95, method="studentized", logs=12).status
    'few logs'
    """
    few = logs < FEW_LOGS
    status: Status = "few logs" if few else "ok"
    why = f"fewer than {FEW_LOGS} logs" if few else ""
    return Interval(value, min(low, value), max(high, value), confidence, method, logs, status, why)


def refused(value: float, why: str, *, confidence: float, method: str, logs: int) -> Interval:
    """Return the value alone (None if it is NaN), and why it has no interval."""
    known = None if math.isnan(value) else value
    return Interval(known, None, None, confidence, method, logs, "refused", why)


ICC_FLOOR = 0.05
"""The least intra-class correlation that is assumed between trials of one log."""

METHOD = "Korn-Graubard"


def clopper_pearson(hits: float, trials: float, confidence: float = 0.95) -> tuple[float, float]:
    """Return the exact interval of a rate; `hits` and `trials` may be effective numbers, not whole.

    0 of n has the low end 0 and n of n the high end 1, exactly; 0 of 0 is (0, 1).

    >>> [round(end, 4) for end in clopper_pearson(0, 20)]
    [0.0, 0.1684]
    """
    if not 0 <= hits <= trials:
        raise ValueError(f"hits must lie between 0 and the trials, not {hits} of {trials}")
    if not 0 < confidence < 1:
        raise ValueError(f"a confidence lies between 0 and 1, not {confidence}")
    tail = (1 - confidence) / 2
    low = float(scipy.special.betaincinv(hits, trials - hits + 1, tail)) if hits > 0 else 0.0
    high = float(scipy.special.betaincinv(hits + 1, trials - hits, 1 - tail)) if hits < trials else 1.0
    return low, high


def korn_graubard(
    hits: ArrayLike, trials: ArrayLike, *, confidence: float = 0.95, icc_floor: float = ICC_FLOOR
) -> Interval:
    """Return the interval of sum(hits) / sum(trials) over logs: `hits` (L,) of `trials` (L,).

    Logs without trials say nothing and are left out. Refused with no trials, where the rate is undefined,
    and with a single log, which cannot say how logs differ.

    >>> found = korn_graubard([9, 10, 10, 7], [10, 10, 10, 10])
    >>> round(found.low, 3), round(found.high, 3)
    (0.477, 0.999)
    """
    h, n = np.asarray(hits, np.float64), np.asarray(trials, np.float64)
    if h.shape != n.shape or h.ndim != 1 or not ((h >= 0) & (h <= n)).all():
        raise ValueError("hits and trials must be (L,), with 0 <= hits <= trials in every log")
    h, n = h[n > 0], n[n > 0]
    logs, total = len(n), float(n.sum())
    if logs == 0:
        return refused(
            float("nan"), "there is nothing to take a rate of", confidence=confidence, method=METHOD, logs=0
        )
    rate = float(h.sum()) / total
    if logs == 1:
        return refused(
            rate, "one log cannot say how logs differ", confidence=confidence, method=METHOD, logs=1
        )
    effect = max(_design_effect(h, n, rate), _least_design_effect(n, icc_floor))
    effective = _for_degrees_of_freedom(total / effect, total, logs, confidence)
    low, high = clopper_pearson(min(rate * effective, effective), effective, confidence)
    return given(rate, low, high, confidence=confidence, method=METHOD, logs=logs)


def stratified(
    hits: ArrayLike,
    trials: ArrayLike,
    sizes: ArrayLike,
    *,
    confidence: float = 0.95,
    icc_floor: float = ICC_FLOOR,
) -> Interval:
    """Return the interval of a rate over strata that were sampled to different degrees.

    `hits` and `trials` are (L, S), by log and stratum, `sizes` (S,) how many there are in each stratum. The
    rate is the mean of those of the strata, weighted by their sizes. Its variance is that between logs (by
    Taylor linearization), and goes into Korn and Graubard's interval; the least design effect that is assumed
    is also multiplied by that of the unequal weights (Kish). Refused where a stratum that holds something has
    no trials: nothing is known of it. With one stratum it is `korn_graubard`.

    >>> round(stratified([[5, 0], [5, 0]], [[5, 5], [5, 5]], [10, 90]).value, 3)
    0.1
    """
    h, n, size = (np.asarray(values, np.float64) for values in (hits, trials, sizes))
    shapes_fit = h.shape == n.shape and h.ndim == 2 and size.shape == h.shape[1:]
    if not shapes_fit or not ((h >= 0) & (h <= n)).all() or not (n.sum(axis=0) <= size).all():
        raise ValueError("hits and trials must be (L, S), 0 <= hits <= trials, no more trials than there are")
    h, n, size = h[:, size > 0], n[:, size > 0], size[size > 0]
    h, n = h[n.sum(axis=1) > 0], n[n.sum(axis=1) > 0]
    logs, sampled = len(n), n.sum(axis=0)
    if not len(size) or not sampled.all():
        why = "part of it was not looked at" if sampled.any() else "there is nothing to take a rate of"
        return refused(float("nan"), why, confidence=confidence, method=METHOD, logs=logs)
    weight = size / size.sum()
    rates = h.sum(axis=0) / sampled
    rate = float(weight @ rates)
    if logs == 1:
        return refused(
            rate, "one log cannot say how logs differ", confidence=confidence, method=METHOD, logs=1
        )
    total = float(sampled.sum())
    unequal = total * float(np.sum(weight**2 / sampled))
    effect = unequal * _least_design_effect(n.sum(axis=1), icc_floor)
    if 0 < rate < 1:
        by_log = ((h - rates * n) / sampled) @ weight
        variance = logs / (logs - 1) * float(np.sum(by_log**2))
        effect = max(effect, variance / (rate * (1 - rate) / total))
    effective = _for_degrees_of_freedom(total / effect, total, logs, confidence)
    low, high = clopper_pearson(min(rate * effective, effective), effective, confidence)
    return given(rate, low, high, confidence=confidence, method=METHOD, logs=logs)


def none_seen(trials: ArrayLike, *, tail: float, icc_floor: float = ICC_FLOOR) -> float:
    """Return the rate below which something is that was seen in none of `trials` (L,), but for chance `tail`.

    The rule of three for logs: with N effective trials, 1 - tail^(1/N). 1 for fewer than two logs.

    >>> round(none_seen(np.ones(100), tail=0.05), 4)
    0.0295
    """
    n = np.asarray(trials, np.float64)
    n = n[n > 0]
    if len(n) < 2:
        return 1.0
    total = float(n.sum())
    effective = total / _least_design_effect(n, icc_floor)
    effective = _for_degrees_of_freedom(effective, total, len(n), 1 - 2 * tail)
    return float(1 - tail ** (1 / effective))


def _design_effect(hits: NDArray[np.float64], trials: NDArray[np.float64], rate: float) -> float:
    """Return the variance between logs over that of as many independent trials; 0 at a rate of 0 or 1."""
    logs, total = len(trials), float(trials.sum())
    if not 0 < rate < 1:
        return 0.0
    variance = logs / (logs - 1) * float(np.sum((hits - rate * trials) ** 2)) / total**2
    return variance / (rate * (1 - rate) / total)


def _least_design_effect(trials: NDArray[np.float64], icc: float) -> float:
    """Return 1 + (m - 1) icc, where m is the size of the log that a trial finds itself in, on average."""
    size = float(np.sum(trials**2)) / float(trials.sum())
    return max(1.0, 1.0 + (size - 1.0) * icc)


def _for_degrees_of_freedom(effective: float, total: float, logs: int, confidence: float) -> float:
    """Reduce the effective trials by (t of all trials / t of the logs) squared."""
    upper = 1 - (1 - confidence) / 2
    ratio = scipy.special.stdtrit(max(total - 1, 1), upper) / scipy.special.stdtrit(logs - 1, upper)
    return effective * float(ratio) ** 2


def holm(p_values: Sequence[float], *, alpha: float = 0.05) -> list[bool]:
    """Tell for each p-value whether its comparison may be named.

    >>> holm([0.04, 0.01, 0.02])
    [True, True, True]
    >>> holm([0.04, 0.03, 0.01])
    [False, False, True]
    """
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    named = [False] * len(p_values)
    for passed, index in enumerate(order):
        if p_values[index] > alpha / (len(order) - passed):
            break
        named[index] = True
    return named

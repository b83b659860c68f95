"""The threshold to operate at: as efficient as possible while the logs that end badly keep a limit.

Who tries a hundred thresholds on some logs and takes the best that keeps a limit there has tried a hundred
times: on new logs it may well break it. So logs are dealt into two halves, by a seed and apart by kind. One
half chooses the threshold; the other, which had no part in the choice, checks that single one, with the
interval of a rate over logs. Where a limit must hold under each of several conditions, every interval must
keep it: then a system that breaks it under any of them passes no more often than it would under that one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from adverse.curves.interval import Interval, clopper_pearson, korn_graubard
from adverse.seeds import generator

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
KEY = "choice and check"
POWER = 0.8
"""How likely a check should be to pass: of a threshold that is chosen, or on logs yet to be recorded."""
MOST_BAD_LOGS = 2000
"""Checks that would have to pass with more bad logs than this are not planned."""


class Halves(NamedTuple):
    """Which logs (L,) choose, and which check; a log does one of the two."""

    choice: Mask
    check: Mask

    def swapped(self) -> Halves:
        """Return the halves the other way round."""
        return Halves(self.check, self.choice)


def halves(logs: Sequence[str], strata: Sequence[object], *, seed: int) -> Halves:
    """Deal logs into two halves within strata; of an odd number one more checks.

    Depends on the seed and on the names and strata of the logs, on nothing else.

    >>> halves(["b", "a", "c", "d"], ["+", "+", "+", "-"], seed=7).check.tolist()
    [True, True, False, True]
    """
    if len(set(logs)) != len(logs) or len(logs) != len(strata):
        raise ValueError("each log needs a name of its own and a stratum")
    choice = np.zeros(len(logs), np.bool_)
    for stratum in sorted({str(one) for one in strata}):
        members = sorted((log, place) for place, log in enumerate(logs) if str(strata[place]) == stratum)
        order = generator(seed, KEY, stratum).permutation(len(members))
        choice[[members[number][1] for number in order[: len(members) // 2].tolist()]] = True
    return Halves(choice, ~choice)


@dataclass(frozen=True, eq=False)
class Drives:
    """What L logs came to at K thresholds, by falling threshold, under C conditions.

    `bad` (C, L, K) is 1 where a log that shows somebody ended badly; `positive` (C, L) marks those logs.
    `time_s` (C, L, K) is what a log that shows nobody took and `truth_s` (C, L) what it takes with perfect
    perception; 0 where a log shows somebody, or was not driven.
    """

    bad: Array
    positive: Mask
    time_s: Array
    truth_s: Array

    def efficiency(self, logs: Mask) -> Array:
        """Return the share of time not lost (C, K) over some logs; NaN where none shows nobody."""
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio: Array = self.truth_s[:, logs].sum(axis=1)[:, None] / self.time_s[:, logs].sum(axis=1)
        return ratio


@dataclass(frozen=True, eq=False)
class Limit:
    """The share of logs that end badly is at most `at_most`: under each condition of `drives`.

    With `chances` (C,), how likely each condition is, it is the share to be expected.
    """

    drives: Drives
    at_most: float
    chances: tuple[float, ...] | None = None

    def rates(self, logs: Mask, threshold: int) -> list[Interval]:
        """Return the rate over some logs at a threshold: one for each condition, or the expected one."""
        bad, positive = self.drives.bad[:, :, threshold], self.drives.positive & logs
        if self.chances is None:
            return [
                share_of_logs(int(part[there].sum()), int(there.sum()))
                for part, there in zip(bad, positive, strict=True)
            ]
        there = positive.all(axis=0)
        expected = np.asarray(self.chances) @ bad[:, there]
        return [korn_graubard(np.clip(expected, 0.0, 1.0), np.ones(len(expected)))]

    def keeps(self, logs: Mask, threshold: int) -> bool:
        """Tell whether the limit is kept for certain: by the upper end of every rate."""
        ends = [rate.high for rate in self.rates(logs, threshold)]
        return all(end is not None and end <= self.at_most for end in ends)

    def chance(self, dealt: Halves, threshold: int) -> float:
        """Return how likely a check is to pass, by what the logs that choose show of the worst condition."""
        found = self.rates(dealt.choice, threshold)
        there = self.drives.positive & dealt.check
        checks = there.sum(axis=1) if self.chances is None else [int(there.all(axis=0).sum())]
        return min(
            _chance_to_pass((rate.value or 0.0) * rate.logs, rate.logs, int(logs), self.at_most)
            for rate, logs in zip(found, checks, strict=True)
        )

    def efficiency(self, logs: Mask) -> Array:
        """Return the efficiency (K,) of the worst condition, or the expected one."""
        every = self.drives.efficiency(logs)
        worst: Array = every.min(axis=0) if self.chances is None else np.asarray(self.chances) @ every
        return worst


@lru_cache(maxsize=65536)
def share_of_logs(bad: int, logs: int, confidence: float = 0.95) -> Interval:
    """Return the interval of a share of logs, each of which is one trial.

    >>> share_of_logs(0, 72).high < 0.05 < share_of_logs(0, 71).high
    True
    """
    return korn_graubard(np.arange(logs) < bad, np.ones(logs), confidence=confidence)


class Choice(NamedTuple):
    """A threshold, by its number, and how likely it seemed to pass a check."""

    threshold: int
    chance: float

    @property
    def likely(self) -> bool:
        """Whether it seemed likely enough."""
        return self.chance >= POWER


def choose(limits: Sequence[Limit], dealt: Halves) -> Choice:
    """Return the most efficient threshold that is likely to pass the check, by the logs that choose.

    Efficiency is that of the first limit's conditions; where it is not defined it counts as none. Where no
    threshold is likely to pass all limits, the likeliest is taken. Of equals it is the lowest threshold,
    which sees most.
    """
    if not limits:
        raise ValueError("an operating point needs a limit to keep")
    efficiency = np.nan_to_num(limits[0].efficiency(dealt.choice), nan=0.0)
    chances = np.array([min(limit.chance(dealt, k) for limit in limits) for k in range(len(efficiency))])
    likely = chances >= POWER
    ranked = np.where(likely, efficiency, -1.0) if likely.any() else chances
    threshold = int(np.flatnonzero(ranked == ranked.max())[-1])
    return Choice(threshold, float(chances[threshold]))


@lru_cache(maxsize=65536)
def _chance_to_pass(bad: float, logs: int, check: int, at_most: float) -> float:
    """Return the chance that few enough of `check` further logs are bad, where `bad` of `logs` were.

    The rate is as likely as Jeffreys' prior and the logs make it; the number that is bad is then
    beta-binomial.
    """
    allowed = _most_bad(check, at_most)
    if allowed < 0 or not logs:
        return 0.0
    number, alpha, beta = np.arange(allowed + 1), bad + 0.5, logs - bad + 0.5
    ways = (
        scipy.special.gammaln(check + 1)
        - scipy.special.gammaln(number + 1)
        - scipy.special.gammaln(check - number + 1)
    )
    terms = (
        ways + scipy.special.betaln(number + alpha, check - number + beta) - scipy.special.betaln(alpha, beta)
    )
    return float(min(np.exp(terms).sum(), 1.0))


@lru_cache(maxsize=4096)
def _most_bad(logs: int, at_most: float) -> int:
    """Return how many of so many logs may be bad and the upper end keeps a limit; -1: not even none."""
    bad = -1
    while bad < logs and (end := share_of_logs(bad + 1, logs).high) is not None and end <= at_most:
        bad += 1
    return bad


def logs_needed(rate: float, at_most: float, *, confidence: float = 0.95, power: float = POWER) -> int | None:
    """Return on how many logs a rate would pass a limit, with so much power; None where no number helps.

    The least number at which a check passes with that probability where the true rate is `rate`.

    >>> logs_needed(0.0, 0.05), logs_needed(0.01, 0.05), logs_needed(0.05, 0.05)
    (72, 143, None)
    """
    if rate >= at_most:
        return None
    for bad in range(MOST_BAD_LOGS):
        logs = _least_logs(bad, at_most, confidence)
        if float(scipy.special.bdtr(bad, logs, rate)) >= power:
            return logs
    return None


def _least_logs(bad: int, at_most: float, confidence: float) -> int:
    """Return the least number of logs of which so many may be bad and the upper end keeps the limit."""

    def keeps(logs: int) -> bool:
        effective = logs if bad == 0 else logs - 1  # what `korn_graubard` has, at one trial for each log
        return clopper_pearson(bad * effective / logs, effective, confidence)[1] <= at_most

    low, high = max(bad, 1), max(bad, 1) + 1
    while not keeps(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if keeps(middle) else (middle, high)
    return high

"""Guided against unguided, at equal tests and seed: who finds more, and how sure that is.

Both campaigns change frames of the same logs, so logs are the independent units, and the two are compared
within them. The interval is the linearised (delta-method) one of a difference of ratios, with Student's t
for the few logs. It takes the choices that the guided campaign made as given.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from adverse.curves.interval import Interval, given, refused
from adverse.errors import StoreError
from adverse.fuzz.outcome import CampaignOutcome, Case, rate

METHOD = "linearised"
SAME = ("key", "seed", "asked")


def compare(guided: CampaignOutcome, unguided: CampaignOutcome) -> list[dict[str, Any]]:
    """Return for each SUT: rates per 1,000 tests, their difference with its interval, what is distinct."""
    for name in SAME:
        if getattr(guided.campaign, name) != getattr(unguided.campaign, name):
            raise StoreError(
                "these two campaigns cannot be compared",
                got=f"they differ in their {'data, SUTs, options or seed' if name == 'key' else name}",
                fix="Compare campaigns of the same study, seed and number of tests.",
            )
    rows = []
    for sut in guided.suts:
        mine, other = _scored(guided.tests[sut]), _scored(unguided.tests[sut])
        difference = _difference(mine, other)
        rows.append(
            {
                "sut": sut,
                "tests": len(mine),
                "guided_per_1000": _thousand(rate(mine).value),
                "unguided_per_1000": _thousand(rate(other).value),
                "difference": _thousand(difference.value),
                "difference_low": _thousand(difference.low),
                "difference_high": _thousand(difference.high),
                "interval": difference.status,
                "why": difference.why or None,
                "guided_bases": _distinct(mine, "base"),
                "unguided_bases": _distinct(other, "base"),
                "guided_objects": _distinct(mine, "thing"),
                "unguided_objects": _distinct(other, "thing"),
            }
        )
    return rows


def difference_of_ratios(
    hits: ArrayLike,
    trials: ArrayLike,
    other_hits: ArrayLike,
    other_trials: ArrayLike,
    *,
    confidence: float = 0.95,
) -> Interval:
    """Return sum(hits)/sum(trials) - sum(other_hits)/sum(other_trials), all (L,) by log, with its interval.

    >>> interval = difference_of_ratios([4, 6, 5], [10, 10, 10], [1, 2, 3], [10, 10, 10])
    >>> round(interval.value, 3), round(interval.low, 3), round(interval.high, 3)
    (0.3, 0.052, 0.548)
    """
    first, second = (
        (np.asarray(a, np.float64), np.asarray(b, np.float64))
        for a, b in ((hits, trials), (other_hits, other_trials))
    )
    used = (first[1] > 0) | (second[1] > 0)
    logs = int(used.sum())
    totals = float(first[1].sum()), float(second[1].sum())
    if not all(totals):
        return refused(
            float("nan"), "a campaign has no tests", confidence=confidence, method=METHOD, logs=logs
        )
    ratios = [float(h.sum()) / total for (h, _), total in zip((first, second), totals, strict=True)]
    value = ratios[0] - ratios[1]
    if logs < 2:
        return refused(
            value, "one log cannot say how logs differ", confidence=confidence, method=METHOD, logs=logs
        )
    parts = [
        (h - ratio * n)[used] / total
        for (h, n), ratio, total in zip((first, second), ratios, totals, strict=True)
    ]
    error = float(np.sqrt(logs / (logs - 1) * np.sum((parts[0] - parts[1]) ** 2)))
    reach = float(special.stdtrit(logs - 1, 1 - (1 - confidence) / 2)) * error
    return given(value, value - reach, value + reach, confidence=confidence, method=METHOD, logs=logs)


def _difference(mine: Sequence[Case], other: Sequence[Case]) -> Interval:
    logs = sorted({test.log for test in (*mine, *other)})
    columns = []
    for tests in (mine, other):
        failed = Counter(test.log for test in tests if test.bin)
        all_of = Counter(test.log for test in tests)
        columns += [[failed[log] for log in logs], [all_of[log] for log in logs]]
    return difference_of_ratios(*columns)


def _scored(tests: Sequence[Case]) -> list[Case]:
    return [test for test in tests if test.drop is not None]


def _distinct(tests: Sequence[Case], what: str) -> int:
    return len({getattr(test, what) for test in tests if test.bin})


def _thousand(value: float | None) -> float | None:
    return None if value is None else 1000 * value

"""Guided against unguided, at equal tests and seed: who finds more, and how sure that is.

Both campaigns change frames of the same logs, so logs are the independent units, and the two are compared
within them. The interval is the linearised (delta-method) one of a difference of ratios, with Student's t
for the few logs. It takes the choices that the guided campaign made as given.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike

from adverse.curves.interval import Interval, given, interval_cells, refused
from adverse.errors import StoreError
from adverse.fuzz.guide import kind_of
from adverse.fuzz.outcome import CampaignOutcome, Case, per_1000, weights_text

METHOD = "linearised"
SAME = {"key": "data, SUTs, options or seed", "seed": "seed", "requested": "number of tests"}
"""What two campaigns must have in common, and what errors call it."""


@dataclass(frozen=True)
class GuidedGain:
    """What guiding was worth with one SUT: inconsistencies per 1,000 tests, distinct frames and objects."""

    sut: str
    tests: int
    guided: Interval
    unguided: Interval
    difference: Interval
    guided_bases: int
    unguided_bases: int
    guided_objects: int
    unguided_objects: int
    guided_kinds: int
    unguided_kinds: int
    """Distinct kinds of failure: combinations of features, whichever object they are about."""
    guided_weights: Mapping[str, float]
    unguided_weights: Mapping[str, float]
    """The share of each mutation among the tests that a rate is of."""

    def record(self) -> dict[str, Any]:
        """Return the comparison as CSV and JSON hold it."""
        return {
            "sut": self.sut,
            "tests": self.tests,
            "guided_per_1000": self.guided.value,
            **interval_cells("guided_per_1000", self.guided.plain()),
            "unguided_per_1000": self.unguided.value,
            **interval_cells("unguided_per_1000", self.unguided.plain()),
            "difference": self.difference.value,
            **interval_cells("difference", self.difference.plain()),
            "guided_bases": self.guided_bases,
            "unguided_bases": self.unguided_bases,
            "guided_objects": self.guided_objects,
            "unguided_objects": self.unguided_objects,
            "guided_kinds": self.guided_kinds,
            "unguided_kinds": self.unguided_kinds,
            "guided_weights": weights_text(self.guided_weights),
            "unguided_weights": weights_text(self.unguided_weights),
        }


def compare(guided: CampaignOutcome, unguided: CampaignOutcome) -> list[GuidedGain]:
    """Compare two campaigns of the same study, seed and number of tests, SUT by SUT."""
    for name, words in SAME.items():
        if getattr(guided.campaign, name) != getattr(unguided.campaign, name):
            raise StoreError(
                "these two campaigns cannot be compared",
                got=f"they differ in their {words}",
                fix="Compare campaigns of the same study, seed and number of tests.",
            )
    rows = []
    for sut in guided.suts:
        mine, other = _scored(guided.tests[sut]), _scored(unguided.tests[sut])
        rows.append(
            GuidedGain(
                sut,
                len(mine),
                per_1000(mine),
                per_1000(other),
                _difference(mine, other).scaled(1000),
                guided_bases=len({test.base for test in mine if test.failed}),
                unguided_bases=len({test.base for test in other if test.failed}),
                guided_objects=len({test.thing for test in mine if test.failed}),
                unguided_objects=len({test.thing for test in other if test.failed}),
                guided_kinds=_kinds(guided, sut),
                unguided_kinds=_kinds(unguided, sut),
                guided_weights=_shares(mine),
                unguided_weights=_shares(other),
            )
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
    reach = float(scipy.special.stdtrit(logs - 1, 1 - (1 - confidence) / 2)) * error
    return given(value, value - reach, value + reach, confidence=confidence, method=METHOD, logs=logs)


def _difference(mine: Sequence[Case], other: Sequence[Case]) -> Interval:
    logs = sorted({test.log for test in (*mine, *other)})
    columns = []
    for tests in (mine, other):
        failed = Counter(test.log for test in tests if test.bin)
        all_of = Counter(test.log for test in tests)
        columns += [[failed[log] for log in logs], [all_of[log] for log in logs]]
    return difference_of_ratios(*columns)


def _kinds(outcome: CampaignOutcome, sut: str) -> int:
    failed = zip(outcome.tests[sut], outcome.rows, strict=True)
    return len({kind_of(row["features"]) for test, row in failed if test.failed})


def _shares(tests: Sequence[Case]) -> dict[str, float]:
    counts = Counter(test.mutation for test in tests)
    return {name: count / len(tests) for name, count in sorted(counts.items())}


def _scored(tests: Sequence[Case]) -> list[Case]:
    return [test for test in tests if test.drop is not None]

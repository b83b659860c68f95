"""Failures grouped by what they share, so that hundreds of rows become a few sentences.

A cause is one feature or two (repainted cars that are green) whose tests fail more often than the others do.
Causes are found one after the other: the one that says most about the failures that are left (the share of
tests it holds times how much more often they fail: weighted relative accuracy), then without its tests. One
is named only if the lower end of its rate's interval over logs, at a confidence that holds for all groups
together, is above the rate of all other tests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adverse.curves.interval import Interval, interval_cells
from adverse.fuzz.outcome import CampaignOutcome, Case, rate_per_1000

MOST_CAUSES = 5
LEAST_FAILURES = 3
CHANCE = 0.05
"""The chance that any group is named where none differs (Bonferroni over all groups)."""
BETTER = 1.1
"""How much more two features must say than the better of them alone."""
ALONE = ("object",)
"""Features that are not joined with others: an object has its class, size and place anyway."""
VERBS: Mapping[str, str] = {
    "change_color": "repaint an object",
    "remove_object": "remove an object",
    "mirror_scene": "mirror the frame",
}
SAID: Mapping[str, str] = {
    "class": "is {}",
    "size": "is {} in size",
    "place": "is {}",
    "colour": "is {}",
    "before": "stands before {}",
    "touches": "touches {}",
    "object": "is {}",
}
"""What is said of an object, by feature; {} is its value."""

Condition = tuple[str, str]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Cause:
    """What a group of failing tests of one SUT share, against its other tests.

    Tests of causes that were named before count on neither side.
    """

    sut: str
    conditions: tuple[Condition, ...]
    tests: int
    failures: int
    rate: Interval
    """Failing tests per 1,000 in the group."""
    other_tests: int
    other_failures: int
    example: Case

    @property
    def words(self) -> str:
        """The cause as a sentence."""
        share = f"{100 * self.failures / self.tests:.0f} %"
        between = self.rate.scaled(0.1).text(".0f")
        interval = f"; 95 % interval {between} %" if between else ""
        others = f"of the {self.other_tests} others, {self.other_failures} fail"
        group = f"{self.failures} of the {self.tests} tests {said(self.conditions)}"
        return f"{group} fail ({share}{interval}); {others}."

    def record(self) -> dict[str, Any]:
        """Return the cause as CSV and JSON hold it."""
        return {
            "sut": self.sut,
            "cause": "; ".join(f"{name}: {value}" for name, value in self.conditions),
            "tests": self.tests,
            "failures": self.failures,
            "per_1000": self.rate.value,
            **interval_cells("per_1000", self.rate.plain()),
            "other_tests": self.other_tests,
            "other_failures": self.other_failures,
            "example": self.example.key,
        }


def said(conditions: Sequence[Condition]) -> str:
    """Return which tests fulfil conditions, in words.

    >>> said([("mutation", "add_car"), ("place", "left")])
    'that add a car that is at the left'
    >>> said([("class", "animal"), ("before", "road")])
    'whose object is an animal and stands before road'
    """
    features = dict(conditions)
    mutation = features.pop("mutation", None)
    facts = " and ".join(SAID[name].format(_value(name, value)) for name, value in features.items())
    if mutation is None:
        return f"whose object {facts}"
    verb = VERBS.get(mutation) or f"add {_a(mutation.removeprefix('add_').replace('_', ' '))}"
    return f"that {verb}" + (f" that {facts}" if facts else "")


def _value(name: str, value: str) -> str:
    if name == "class":
        return _a(value)
    return ("in the middle" if value == "middle" else f"at the {value}") if name == "place" else value


def _a(noun: str) -> str:
    return f"{'an' if noun[:1] in 'aeiou' else 'a'} {noun}"


@dataclass(frozen=True)
class Causes:
    """The causes of one SUT's failures, and how many failures none of them holds."""

    sut: str
    causes: tuple[Cause, ...]
    failures: int
    unexplained: int


def causes_of(outcome: CampaignOutcome, sut: str) -> Causes:
    """Return what the failures of a SUT share."""
    answered = [
        (test, row["features"])
        for test, row in zip(outcome.tests[sut], outcome.rows, strict=True)
        if test.fault is None
    ]
    tests = [test for test, _ in answered]
    failed = np.array([test.failed for test in tests], np.bool_)
    masks = _masks([features for _, features in answered])
    left = np.ones(len(tests), np.bool_)
    found: list[Cause] = []
    while len(found) < MOST_CAUSES and (failed & left).sum() >= LEAST_FAILURES:
        best = _best(masks, tests, failed, left)
        if best is None:
            break
        conditions, inside = best
        found.append(_cause(sut, conditions, inside, left, tests, failed))
        left = left & ~inside
    return Causes(sut, tuple(found), int(failed.sum()), int((failed & left).sum()))


def _masks(features: Sequence[Mapping[str, str]]) -> dict[tuple[Condition, ...], Mask]:
    """Return which tests fulfil each condition, and each pair of conditions that some fulfil."""
    values = sorted({item for each in features for item in each.items()})
    single = {
        (name, value): np.array([each.get(name) == value for each in features], np.bool_)
        for name, value in values
    }
    masks: dict[tuple[Condition, ...], Mask] = {(condition,): mask for condition, mask in single.items()}
    joined = [condition for condition in single if condition[0] not in ALONE]
    for first, second in combinations(joined, 2):
        if first[0] != second[0]:
            both = single[first] & single[second]
            if both.sum() >= LEAST_FAILURES:
                masks[first, second] = both
    return masks


def _best(
    masks: Mapping[tuple[Condition, ...], Mask], tests: Sequence[Case], failed: Mask, left: Mask
) -> tuple[tuple[Condition, ...], Mask] | None:
    """Return the group that says most about what is left, and stands against the rest."""
    overall = float(failed[left].mean())
    looks = sum(int(mask.sum()) >= LEAST_FAILURES for mask in masks.values())
    says: dict[tuple[Condition, ...], float] = {}
    for conditions, mask in masks.items():
        inside = mask & left
        count = int(inside.sum())
        if int((inside & failed).sum()) >= LEAST_FAILURES:
            says[conditions] = count / len(tests) * (float(failed[inside].mean()) - overall)
    ranked = sorted(says, key=lambda conditions: (-_fair(conditions, says), len(conditions), conditions))
    for conditions in ranked:
        inside = masks[conditions] & left
        if says[conditions] > 0 and _stands_out(inside, left & ~inside, tests, failed, looks):
            return conditions, inside
    return None


def _fair(conditions: tuple[Condition, ...], says: Mapping[tuple[Condition, ...], float]) -> float:
    """Return what a group says, less for a pair: it must be worth its second condition."""
    return says[conditions] / (BETTER if len(conditions) > 1 else 1.0)


def _stands_out(inside: Mask, others: Mask, tests: Sequence[Case], failed: Mask, looks: int) -> bool:
    """Tell whether a group fails more often than the rest, for certain among so many that are looked at."""
    rate = _rate(inside, tests, failed, confidence=1 - 2 * CHANCE / looks)
    rest = (int(failed[others].sum()) + 0.5) / (int(others.sum()) + 1)  # none of six is not a rate of 0
    return rate.low is not None and rate.low > 1000 * rest


def _rate(inside: Mask, tests: Sequence[Case], failed: Mask, confidence: float = 0.95) -> Interval:
    return rate_per_1000(list(_where(tests, inside)), failed[inside].tolist(), confidence=confidence)


def _cause(
    sut: str,
    conditions: tuple[Condition, ...],
    inside: Mask,
    left: Mask,
    tests: Sequence[Case],
    failed: Mask,
) -> Cause:
    others = left & ~inside
    group = list(_where(tests, inside & failed))
    return Cause(
        sut,
        conditions,
        int(inside.sum()),
        len(group),
        _rate(inside, tests, failed),
        int(others.sum()),
        int((failed & others).sum()),
        _clearest(group),
    )


def _clearest(group: Sequence[Case]) -> Case:
    """Return the failure that shows best what most of a group are: hardly anything seen of a large object.

    Where most have no verdict about an object, it is the one whose score falls most.
    """
    kinds = Counter(kind for test in group for kind in {verdict.kind for verdict in test.verdicts})
    usual, count = min(kinds.items(), key=lambda item: (-item[1], item[0]), default=(None, 0))
    if count < len(group) / 2:
        return max(group, key=lambda test: (test.drop or 0.0, -test.number))

    def shows(test: Case) -> tuple[float, float, int]:
        usually = [verdict for verdict in test.verdicts if verdict.kind == usual]
        if not usually:
            return -2.0, 0.0, -test.number
        worst = min(usually, key=lambda verdict: verdict.overlap)
        x0, y0, x1, y1 = worst.box
        return -round(worst.overlap, 1), (x1 - x0) * (y1 - y0), -test.number

    return max(group, key=shows)


def _where(tests: Sequence[Case], mask: Mask) -> Iterator[Case]:
    return (test for test, there in zip(tests, mask.tolist(), strict=True) if there)

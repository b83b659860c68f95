"""Which SUT is best, how sure that is, and where the choice changes.

All SUTs are resampled together (bootstrap.py): in each resample of the logs they are ranked anew, and the
probability of an order is the share of resamples that agree with it. A plain share is too sure of few logs:
none is above what the paired interval of the difference allows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

LIKELY = 0.8
"""A change of the SUT that leads is told where the probabilities are no lower."""
ROUNDING = 1e-12
"""Values that differ by no more are equal."""


@dataclass(frozen=True)
class Place:
    """One SUT in a ranking, best first; equals stand in the order of their names.

    `best` is the probability that it is the best of all; `ahead` that it is ahead of the next in the ranking.
    Ties in a resample are shared. Both are None where the ranking claims nothing; `ahead` also for the last.
    """

    sut: str
    value: float
    best: float | None
    ahead: float | None


@dataclass(frozen=True)
class Ranking:
    """The order of SUTs by value, and the probability of all of it; `undefined` could not be ranked.

    `probability` is None where no order can be told; `why` says why.
    """

    places: tuple[Place, ...]
    probability: float | None
    undefined: tuple[str, ...] = ()
    why: str = ""


@dataclass(frozen=True)
class Change:
    """Where another SUT becomes the best one: between two (level, condition) that differ in one of both."""

    before: tuple[str, str]
    after: tuple[str, str]
    best_before: str
    best_after: str
    probability_before: float
    probability_after: float

    def __str__(self) -> str:
        """Say it in plain words."""
        first, second = (percent(chance) for chance in (self.probability_before, self.probability_after))
        before = f"{_place(self.before)} {self.best_before} leads (probability {first})"
        return f"{before}, {_place(self.after)} {self.best_after} ({second})."


def percent(probability: float) -> str:
    """Return a share of resamples in words: what all of them agree on is likely, not certain.

    >>> percent(0.934), percent(0.997), percent(1.0), percent(0.0)
    ('93%', 'over 99%', 'over 99%', 'under 1%')
    """
    if probability > 0.99:
        return "over 99%"
    return "under 1%" if probability < 0.01 else f"{probability:.0%}"


class Resampled(Protocol):
    """A value, and what B resamples of the same logs say it might have been."""

    @property
    def value(self) -> float:
        """Of the logs as they are."""

    @property
    def values(self) -> NDArray[np.float64]:
        """Of the resamples (B,)."""


def rank(
    samples: Mapping[str, Resampled],
    doubts: Mapping[str, str] | None = None,
    most: Callable[[str, str], float] | None = None,
) -> Ranking:
    """Rank SUTs by their value, highest first, with probabilities from their common resamples.

    `doubts` says of SUTs why their value must not decide anything, such as too few logs: then there is an
    order by value, but no probability. Equal values are no order. In a resample, equals share the first
    place, are ahead of each other by half, and do not confirm an order. Resamples in which any of them is
    undefined are left out. `most` is the highest probability that may be claimed for one SUT to be ahead of
    another with a lower value.
    """
    defined = {sut: one for sut, one in samples.items() if not math.isnan(one.value)}
    undefined = tuple(sorted(set(samples) - set(defined)))
    order = sorted(defined, key=lambda sut: (-defined[sut].value, sut))
    if not order:
        return Ranking((), None, undefined, "not defined on these logs")
    places = tuple(Place(sut, defined[sut].value, None, None) for sut in order)
    values = np.array([defined[sut].values for sut in order])
    values = values[:, ~np.isnan(values).any(axis=0)]
    why = _no_claim(order, undefined, doubts or {})
    if not why and values.shape[1] == 0:
        why = "not defined in any resample of the logs"
    ties = [equal(one.value, other.value) for one, other in itertools.pairwise(places)]
    if not why and ties[0]:
        why = f"{_listed([p.sut for p in places if equal(p.value, places[0].value)])} are equal"
    if why:
        return Ranking(places, None, undefined, why)
    first = values >= values.max(axis=0) - ROUNDING
    best = np.mean(first / first.sum(axis=0), axis=1)
    limit = min(most(order[0], other) for other in order[1:]) if most else 1.0
    best = _at_most(best, limit)
    lead = values[:-1] - values[1:]
    wins = lead > ROUNDING
    shares = np.mean(wins + 0.5 * (np.abs(lead) <= ROUNDING), axis=1).tolist()
    limits = [
        1.0 if tie or most is None else most(*pair)
        for tie, pair in zip(ties, itertools.pairwise(order), strict=True)
    ]
    ahead = [*map(min, shares, limits), None]
    places = tuple(
        Place(place.sut, place.value, float(share), next_one)
        for place, share, next_one in zip(places, best, ahead, strict=True)
    )
    if any(ties):
        behind = next(index for index, tie in enumerate(ties) if tie)
        tied = [p.sut for p in places if equal(p.value, places[behind].value)]
        return Ranking(places, None, undefined, f"{_listed(tied)} are equal")
    return Ranking(places, min(float(wins.all(axis=0).mean()), *limits, float(best[0])), undefined)


def _at_most(best: NDArray[np.float64], limit: float) -> NDArray[np.float64]:
    """Return probabilities of being best (S,), the first no higher than a limit; the others share the rest.

    >>> _at_most(np.array([0.9, 0.1, 0.0]), 0.8).round(3).tolist()
    [0.8, 0.2, 0.0]
    """
    if best[0] <= limit:
        return best
    others = (
        best[1:] if best[1:].sum() > 0 else np.eye(len(best) - 1)[0]
    )  # the second, if none was ever ahead
    return np.array([limit, *((1 - limit) * others / others.sum())])


def _no_claim(order: Sequence[str], undefined: Sequence[str], doubts: Mapping[str, str]) -> str:
    """Return why no probability may be given for SUTs in this order, empty if one may."""
    if undefined:
        return f"{_listed(undefined)}: not defined on these logs"
    if len(order) == 1:
        return "there is one SUT alone"
    by_reason: dict[str, list[str]] = {}
    for sut in order:
        if doubts.get(sut):
            by_reason.setdefault(doubts[sut], []).append(sut)
    return "; ".join(f"{_listed(suts)}: {reason}" for reason, suts in by_reason.items())


def equal(one: float, other: float) -> bool:
    """Tell whether two values differ by no more than rounding."""
    return abs(one - other) <= ROUNDING


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def changes(
    rankings: Mapping[tuple[str, str], Ranking], levels: Sequence[str], conditions: Sequence[str]
) -> list[Change]:
    """Return where the best SUT changes from one condition to the next, and from one level to the next.

    `rankings` is by (level, condition); conditions are ordered from mild to hard (baseline, AnyMild, Any),
    levels from little context to much. Pairs in which either does not say which SUT is best are passed over.
    """
    found = []
    for before, after in _neighbours(levels, conditions):
        one, other = (_best(rankings.get(where)) for where in (before, after))
        if one and other and one[0] != other[0]:
            found.append(Change(before, after, one[0], other[0], one[1], other[1]))
    return found


def _best(ranking: Ranking | None) -> tuple[str, float] | None:
    """Return the best SUT with its probability; None where that is not likely."""
    if ranking is None or not ranking.places:
        return None
    chance = ranking.places[0].best
    return None if chance is None or chance < LIKELY else (ranking.places[0].sut, chance)


def _neighbours(
    levels: Sequence[str], conditions: Sequence[str]
) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    for level in levels:
        for before, after in itertools.pairwise(conditions):
            yield (level, before), (level, after)
    for condition in conditions:
        for lower, higher in itertools.pairwise(levels):
            yield (lower, condition), (higher, condition)


def _place(where: tuple[str, str]) -> str:
    level, condition = where
    return f"at level {level} under {condition}"

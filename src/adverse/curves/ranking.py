"""Which SUT is best, how sure that is, and where the choice changes.

All SUTs are resampled together (bootstrap.py): in each resample of the logs they are ranked anew, and the
probability of an order is the share of resamples that agree with it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Place:
    """One SUT in a ranking, best first.

    `best` is the probability that it is the best of all; `ahead` that it is not behind the next in the
    ranking, None for the last.
    """

    sut: str
    value: float
    best: float
    ahead: float | None


@dataclass(frozen=True)
class Ranking:
    """The order of SUTs by value, and the probability of all of it; `undefined` could not be ranked."""

    places: tuple[Place, ...]
    probability: float | None
    undefined: tuple[str, ...] = ()


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
        before = (
            f"{_place(self.before)} {self.best_before} is best (probability {self.probability_before:.2f})"
        )
        return f"{before}, {_place(self.after)} {self.best_after} ({self.probability_after:.2f})."


class Resampled(Protocol):
    """A value, and what B resamples of the same logs say it might have been."""

    @property
    def value(self) -> float:
        """Of the logs as they are."""

    @property
    def values(self) -> NDArray[np.float64]:
        """Of the resamples (B,)."""


def rank(samples: Mapping[str, Resampled]) -> Ranking:
    """Rank SUTs by their value, highest first, with probabilities from their common resamples.

    Equals share the first place of a resample, and are in the order of their names. Resamples in which
    any of them is undefined are left out.
    """
    defined = {sut: one for sut, one in samples.items() if not math.isnan(one.value)}
    undefined = tuple(sorted(set(samples) - set(defined)))
    order = sorted(defined, key=lambda sut: (-defined[sut].value, sut))
    if not order:
        return Ranking((), None, undefined)
    values = np.array([defined[sut].values for sut in order])
    values = values[:, ~np.isnan(values).any(axis=0)]
    if values.shape[1] == 0:
        return Ranking((), None, tuple(sorted(samples)))
    first = values == values.max(axis=0)
    best = np.mean(first / first.sum(axis=0), axis=1)
    agrees = values[:-1] >= values[1:]
    ahead = [*(float(share) for share in agrees.mean(axis=1)), None]
    places = tuple(
        Place(sut, defined[sut].value, float(share), next_one)
        for sut, share, next_one in zip(order, best, ahead, strict=True)
    )
    return Ranking(places, float(agrees.all(axis=0).mean()), undefined)


def changes(
    rankings: Mapping[tuple[str, str], Ranking], levels: Sequence[str], conditions: Sequence[str]
) -> list[Change]:
    """Return where the best SUT changes from one condition to the next, and from one level to the next.

    `rankings` is by (level, condition); conditions are ordered from mild to hard (baseline, AnyMild, Any),
    levels from little context to much. Pairs that are missing or empty are passed over. Where the SUT that
    was best is still as good as any, nothing changes.
    """
    return [
        Change(
            before,
            after,
            one.places[0].sut,
            other.places[0].sut,
            one.places[0].best,
            other.places[0].best,
        )
        for before, after in _neighbours(levels, conditions)
        if (one := rankings.get(before)) and (other := rankings.get(after))
        if one.places and other.places and not _still_best(one.places[0].sut, other)
    ]


def _still_best(sut: str, ranking: Ranking) -> bool:
    values = {place.sut: place.value for place in ranking.places}
    return values.get(sut) == ranking.places[0].value


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

"""Ranking gaps: systems whose order by reliability distance differs from that by accuracy on a battery.

A system that is lower by reliability than by the benchmark is less reliable than the benchmark says (Hu et
al. 2022, table 2). Two orders of numbers always differ by chance, too; so that is said of a system only where
the intervals of both differences, over the same logs, exclude 0.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from adverse.errors import StudyError
from adverse.requirements.measures import Array

Pair = tuple[str, str]
FEWEST_LOGS = 5


@dataclass(frozen=True, eq=False)
class RankingScores:
    """What a system is ranked by, over all images and in batches of logs that are the same for all systems.

    `log` is the log of each image the batches were drawn from; without equal ones two systems are not paired.
    """

    distance: float
    accuracy: float
    distances: Array
    accuracies: Array
    log: NDArray[np.int64]
    logs: int


def shown_pairs(scores: Mapping[str, RankingScores], risk: float) -> set[Pair]:
    """Return the pairs (first, second): first is better by accuracy and second by reliability, beyond chance.

    Both differences must exclude 0 at the given risk, divided by the number of pairs that were looked at.
    """
    count = math.comb(len(scores), 2)
    pairs = set()
    for first, second in itertools.permutations(scores, 2):
        one, other = scores[first], scores[second]
        if not np.array_equal(one.log, other.log):
            continue
        logs = min(one.logs, other.logs)
        ahead = (
            one.accuracy - other.accuracy > _reach(one.accuracies - other.accuracies, logs, risk / count),
            one.distance - other.distance > _reach(one.distances - other.distances, logs, risk / count),
        )
        if all(ahead):
            pairs.add((first, second))
    return pairs


def _reach(differences: Array, logs: int, risk: float) -> float:
    """Return how far a difference must lie above 0 to be one; no number where that cannot be told."""
    if logs < FEWEST_LOGS or not np.isfinite(differences).all():
        return math.inf
    error = float(differences.std(ddof=1)) * math.sqrt(logs / (logs - 1))
    return float(scipy.special.stdtrit(logs - 1, 1 - risk)) * error


@dataclass(frozen=True)
class Swap:
    """Two systems that change places: the first is better by the benchmark, the second by reliability."""

    by_accuracy: str
    by_distance: str


@dataclass(frozen=True)
class RankingGap:
    """Two orders compared. Ranks start at 1; equal scores share the better rank."""

    names: tuple[str, ...]
    accuracy_rank: Mapping[str, int]
    distance_rank: Mapping[str, int]
    swaps: tuple[Swap, ...]
    tau: float | None
    """Kendall's tau-b: 1 for the same order, -1 for the opposite; None where an order has no differences."""
    equal: int = 0
    """Pairs of which one order, or both, cannot say who is ahead."""
    shown: tuple[Swap, ...] = ()
    """Those swaps that are beyond chance."""

    @property
    def words(self) -> str:
        """What it means, in a sentence or two."""
        if self.tau is None:
            return "The systems cannot be put in order by both: all of one score are equal."
        agreement = f"Kendall's tau {self.tau:.2f}"
        count = math.comb(len(self.names), 2)
        if not self.swaps and self.equal:
            agree = f"The orders agree on {count - self.equal} of {count} pairs ({agreement})"
            return f"{agree}; in the others the systems are equal by one or both."
        if not self.swaps:
            return f"Both orders agree on every pair ({agreement})."
        pairs = "; ".join(
            f"{swap.by_accuracy} before {swap.by_distance} by accuracy, after it by reliability"
            for swap in self.swaps
        )
        sentence = f"The orders differ in {len(self.swaps)} of {count} pairs ({agreement}): {pairs}."
        if not self.shown:
            return f"{sentence} None of these differences is beyond chance."
        lower = list(dict.fromkeys(swap.by_accuracy for swap in self.shown))
        verb = "is" if len(lower) == 1 else "are"
        sure = "; ".join(f"{swap.by_accuracy} and {swap.by_distance}" for swap in self.shown)
        return (
            f"{sentence} {_listed(lower)} {verb} less reliable than the battery's mean accuracy suggests: "
            f"the intervals of both differences exclude 0 ({sure})."
        )


def ranking_gap(
    names: Sequence[str],
    distances: Sequence[float],
    accuracies: Sequence[float],
    beyond_chance: Collection[Pair] = (),
) -> RankingGap:
    """Compare the order by reliability distance (less is better) with that by mean accuracy (more is better).

    `beyond_chance` are the pairs, better by accuracy first, of which `shown_pairs` says that they swap.

    >>> gap = ranking_gap(["a", "b", "c"], distances=[0.3, -0.1, 0.2], accuracies=[0.9, 0.8, 0.7])
    >>> gap.distance_rank, gap.swaps[0], round(gap.tau, 3)
    ({'a': 3, 'b': 1, 'c': 2}, Swap(by_accuracy='a', by_distance='b'), -0.333)
    """
    _check(names, distances, accuracies)
    swaps, agreed, apart, ties, equal = [], 0, 0, [0, 0], 0
    for first, second in itertools.combinations(range(len(names)), 2):
        by_accuracy = _sign(accuracies[first] - accuracies[second])
        by_distance = _sign(distances[second] - distances[first])
        ties[0] += by_accuracy == 0
        ties[1] += by_distance == 0
        equal += by_accuracy * by_distance == 0
        agreed += by_accuracy * by_distance > 0
        if by_accuracy * by_distance < 0:
            apart += 1
            better, worse = (first, second) if by_accuracy > 0 else (second, first)
            swaps.append(Swap(names[better], names[worse]))
    pairs = math.comb(len(names), 2)
    spread = math.sqrt((pairs - ties[0]) * (pairs - ties[1]))
    return RankingGap(
        names=tuple(names),
        accuracy_rank=_ranks(names, [-value for value in accuracies]),
        distance_rank=_ranks(names, distances),
        swaps=tuple(swaps),
        tau=(agreed - apart) / spread if spread else None,
        equal=equal,
        shown=tuple(swap for swap in swaps if (swap.by_accuracy, swap.by_distance) in beyond_chance),
    )


def _check(names: Sequence[str], distances: Sequence[float], accuracies: Sequence[float]) -> None:
    if not len(names) == len(distances) == len(accuracies) or len(set(names)) != len(names):
        raise StudyError(
            "a ranking needs one distance and one accuracy for each of several distinct names",
            got=f"{len(set(names))} names, {len(distances)} distances, {len(accuracies)} accuracies",
        )
    for name, distance, accuracy in zip(names, distances, accuracies, strict=True):
        if not (math.isfinite(distance) and math.isfinite(accuracy)):
            raise StudyError(
                "a system without a score cannot be ranked",
                where=name,
                got=f"distance {distance:g}, accuracy {accuracy:g}",
                fix="Exclude it, and report that you did.",
            )


def _ranks(names: Sequence[str], scores: Sequence[float]) -> dict[str, int]:
    return {
        name: 1 + sum(other < score for other in scores) for name, score in zip(names, scores, strict=True)
    }


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"

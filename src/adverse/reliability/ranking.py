"""Where two orders of the same systems differ: by reliability distance, and by accuracy on a battery.

004 (table 2) finds gaps this way: a system that is lower by reliability than by the benchmark is less
reliable than the benchmark says.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from adverse.errors import StudyError


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
        lower = [name for name in self.names if self.distance_rank[name] > self.accuracy_rank[name]]
        pairs = "; ".join(
            f"{swap.by_accuracy} before {swap.by_distance} by accuracy, after it by reliability"
            for swap in self.swaps
        )
        said = f"The orders differ in {len(self.swaps)} of {count} pairs ({agreement}): {pairs}."
        if lower:
            verb = "is" if len(lower) == 1 else "are"
            said += f" {_listed(lower)} {verb} less reliable than the battery's mean accuracy suggests."
        return said


def ranking_gap(names: Sequence[str], distances: Sequence[float], accuracies: Sequence[float]) -> RankingGap:
    """Compare the order by reliability distance (less is better) with that by mean accuracy (more is better).

    >>> gap = ranking_gap(["a", "b", "c"], distances=[0.3, -0.1, 0.2], accuracies=[0.9, 0.8, 0.7])
    >>> gap.distance_rank, gap.swaps[0], round(gap.tau, 3)
    ({'a': 3, 'b': 1, 'c': 2}, Swap(by_accuracy='a', by_distance='b'), -0.333)
    """
    _check(names, distances, accuracies)
    swaps, agreed, apart, ties, equal = [], 0, 0, [0, 0], 0
    for one, other in itertools.combinations(range(len(names)), 2):
        by_accuracy = _sign(accuracies[one] - accuracies[other])
        by_distance = _sign(distances[other] - distances[one])
        ties[0] += by_accuracy == 0
        ties[1] += by_distance == 0
        equal += by_accuracy * by_distance == 0
        agreed += by_accuracy * by_distance > 0
        if by_accuracy * by_distance < 0:
            apart += 1
            first, second = (one, other) if by_accuracy > 0 else (other, one)
            swaps.append(Swap(names[first], names[second]))
    pairs = math.comb(len(names), 2)
    spread = math.sqrt((pairs - ties[0]) * (pairs - ties[1]))
    return RankingGap(
        names=tuple(names),
        accuracy_rank=_ranks(names, [-value for value in accuracies]),
        distance_rank=_ranks(names, distances),
        swaps=tuple(swaps),
        tau=(agreed - apart) / spread if spread else None,
        equal=equal,
    )


def _check(names: Sequence[str], distances: Sequence[float], accuracies: Sequence[float]) -> None:
    if not len(names) == len(distances) == len(accuracies) or len(set(names)) != len(names):
        raise StudyError(
            "a ranking needs one distance and one accuracy for each of some different names",
            got=f"{len(set(names))} names, {len(distances)} distances, {len(accuracies)} accuracies",
        )
    for name, distance, accuracy in zip(names, distances, accuracies, strict=True):
        if not (math.isfinite(distance) and math.isfinite(accuracy)):
            raise StudyError(
                "a system without a score cannot be ranked",
                where=name,
                got=f"distance {distance:g}, accuracy {accuracy:g}",
                fix="Leave it out, and say so.",
            )


def _ranks(names: Sequence[str], scores: Sequence[float]) -> dict[str, int]:
    return {
        name: 1 + sum(other < score for other in scores) for name, score in zip(names, scores, strict=True)
    }


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"

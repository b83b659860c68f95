"""Where to look next: Thompson sampling over what has failed so far.

An arm is a mutation with a class, a place and a size of what it changes. Its four factors learn on their own,
place and size and class within their mutation, so a few hundred tests already tell something. What counts is
not a failure but a new one: objects that have failed already come last, and the more often a kind
of failure is known the less another one of it is worth. A round is
chosen from finished rounds alone, by a generator keyed by seed and draw: the same for any number of workers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import numpy as np

from adverse.seeds import generator

V = TypeVar("V")
EXPLORE = 0.1
"""Share of draws that ignore what was learnt, so that nothing is given up for good."""
GRID = (4, 2)
"""Columns and rows of the places."""
SIZES = (0.0, 0.05, 0.1, 0.2, 0.4)
"""Where the cells of the longest side begin, as shares of the image's width; the last one has no end."""
HOPELESS = 16
"""Refusals without a single test after which a value is left out."""


class Arm(NamedTuple):
    """What a draw asks for; None asks for nothing. `position` is (column, row), `size` a cell of SIZES."""

    mutation: str
    object_class: str | None = None
    position: tuple[int, int] | None = None
    size: int | None = None

    def size_px(self, width: int) -> tuple[float, float] | None:
        """Return the range [low, high) of the longest side in pixels of an image so wide."""
        if self.size is None:
            return None
        ends = (*SIZES[1:], float("inf"))
        return width * SIZES[self.size], width * ends[self.size]


@dataclass
class FactorTally:
    """What became of one value of one factor."""

    gained: float = 0.0
    """What failures were worth: 1 for one of a new kind, less for each time that its kind is known."""
    lost: float = 0.0
    refused: int = 0

    @property
    def hopeless(self) -> bool:
        """Whether it was refused often and never gave a test."""
        return self.refused >= HOPELESS and not (self.gained or self.lost)


Factor = tuple[str, str, object]
"""Mutation, name of the factor, value; the mutation itself is ("", "mutation", name)."""


@dataclass
class Bandit:
    """Chooses arms. `classes` says which classes each mutation can be asked for."""

    classes: Mapping[str, Sequence[str]]
    seed: int
    tallies: dict[Factor, FactorTally] = field(default_factory=dict)

    def choose(self, draw: int) -> Arm:
        """Return the arm of a draw: the best of one sample of each posterior."""
        rng = generator(self.seed, "bandit", str(draw))
        mutations = list(self.classes)
        if rng.random() < EXPLORE:
            return Arm(mutations[int(rng.integers(len(mutations)))])
        mutation = self._best(rng, "", "mutation", mutations)
        columns, rows = GRID
        places = [(column, row) for row in range(rows) for column in range(columns)]
        classes = self.classes[mutation]
        return Arm(
            mutation,
            self._best(rng, mutation, "class", classes) if len(classes) > 1 else None,
            self._best(rng, mutation, "position", places),
            self._best(rng, mutation, "size", range(len(SIZES))),
        )

    def learn(self, arm: Arm, *, tested: bool, worth: float = 0.0) -> None:
        """Take in what became of a draw: no test at all, or one that was worth something between 0 and 1."""
        for factor in _factors(arm):
            tally = self.tallies.setdefault(factor, FactorTally())
            if not tested:
                tally.refused += 1
            else:
                tally.gained += worth
                tally.lost += 1 - worth

    def _best(self, rng: np.random.Generator, mutation: str, factor: str, values: Iterable[V]) -> V:
        scored = []
        for value in values:
            tally = self.tallies.get((mutation, factor, value), FactorTally())
            sample = float(rng.beta(1 + tally.gained, 1 + tally.lost))
            scored.append((-1.0 if tally.hopeless else sample, value))
        return max(scored, key=lambda pair: pair[0])[1]


def _factors(arm: Arm) -> Iterable[Factor]:
    yield "", "mutation", arm.mutation
    for name, value in (("class", arm.object_class), ("position", arm.position), ("size", arm.size)):
        if value is not None:
            yield arm.mutation, name, value

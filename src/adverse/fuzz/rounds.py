"""The tests of a campaign in rounds: what a round tries depends on finished rounds alone.

So the tests are the same for any number of workers, order of finishing, or resume; and a campaign of more
tests begins with those of a shorter one. A test is a picture with its truth: two recipes that make the
same one are one test and a duplicate.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from adverse.content import digest
from adverse.fuzz.bandit import Arm, Bandit
from adverse.fuzz.job import DUPLICATE, TestUnit, packed_keys
from adverse.seeds import generator

ROUND = 512
"""Draws of a round."""
UNIT = 32
"""Draws that are done together."""
BASES = 8
"""Base frames that the draws of a unit share, so that decoding one serves several."""
DRAWS_PER_TEST = 20
"""A campaign that has drawn this often for each test it wants, and is not done, gives up."""

Row = Mapping[str, Any]


@dataclass
class Rounds:
    """What was found so far, and what to try next. `bases` are the places of the frames that are kept."""

    mutations: Sequence[str]
    bases: Sequence[int]
    seed: int
    bandit: Bandit | None
    tests: list[Row] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    by_mutation: dict[str, Counter[str]] = field(default_factory=dict)
    draws: int = 0
    barren: bool = False
    """Whether the last round gave no test at all."""

    def __post_init__(self) -> None:
        self._known: list[str] = []
        self._recipes: set[str] = set()
        self._pictures: set[str] = set()

    def next_round(self) -> list[TestUnit]:
        """Return the units of the next round, in order."""
        arms = [self._arm(draw) for draw in range(self.draws, self.draws + ROUND)]
        drawn_before = packed_keys(self._known)
        units = []
        for start in range(0, ROUND, UNIT):
            first = self.draws + start
            rng = generator(self.seed, "bases", str(first))
            chosen = rng.permutation(len(self.bases))[:BASES]
            places = tuple(self.bases[number] for number in chosen.tolist())
            name = f"{first:08d}"
            units.append(
                TestUnit(name, self.seed, first, tuple(arms[start : start + UNIT]), places, drawn_before)
            )
        return units

    def take(self, units: Sequence[Sequence[Row]], wanted: int) -> None:
        """Take in the rows of a round's units, in order, up to so many tests in all."""
        before = len(self.tests)
        for row in _until(units, wanted - before):
            self._take(row)
        self._known = sorted(self._recipes | self._pictures)
        self.barren = len(self.tests) == before

    def spent(self, wanted: int) -> bool:
        """Tell whether it is time to give up: a round without a test, or too many draws."""
        return self.barren or self.draws >= max(ROUND, DRAWS_PER_TEST * wanted)

    def digest(self) -> str:
        """Return the hash of all that tests came to; the same however the work was cut or ordered."""
        refused = {mutation: dict(reasons) for mutation, reasons in self.by_mutation.items()}
        return digest(json.dumps([self.draws, self.tests, refused], sort_keys=True))

    def enough(self, units: Sequence[Sequence[Row]], wanted: int) -> bool:
        """Tell whether the finished first units of a round already hold the tests that are missing."""
        return sum(1 for _ in _tests(units, self._pictures)) >= wanted - len(self.tests)

    def _arm(self, draw: int) -> Arm:
        if self.bandit is not None:
            return self.bandit.choose(draw)
        return Arm(self.mutations[draw % len(self.mutations)])

    def _take(self, row: Row) -> None:
        self.draws += 1
        mutation, *rest = row["arm"]
        refused: Counter[str] = Counter(row["refused"])
        new = "picture" in row and row["picture"] not in self._pictures
        if "picture" in row and not new:
            refused[DUPLICATE] += 1
        self.refused += refused
        self.by_mutation.setdefault(mutation, Counter()).update(refused)
        if new:
            self._recipes.add(row["key"])
            self._pictures.add(row["picture"])
            self.tests.append(row)
        if self.bandit is not None:
            position = tuple(rest[1]) if rest[1] is not None else None
            failed = new and any(_failed(scores) for scores in row["suts"].values())
            self.bandit.learn(Arm(mutation, rest[0], position, rest[2]), tested=new, failed=failed)


def _failed(scores: Row) -> bool:
    return scores["fault"] is not None or (scores["drop"] is not None and scores["drop"] >= 1)


def _tests(units: Sequence[Sequence[Row]], pictures: set[str]) -> Iterator[Row]:
    seen = set(pictures)
    for rows in units:
        for row in rows:
            if "picture" in row and row["picture"] not in seen:
                seen.add(row["picture"])
                yield row


def _until(units: Sequence[Sequence[Row]], missing: int) -> Iterator[Row]:
    """Yield rows, those after the last test that is wanted left out."""
    seen: set[str] = set()
    for rows in units:
        for row in rows:
            if missing <= 0:
                return
            yield row
            missing -= "picture" in row and row["picture"] not in seen
            seen.add(row.get("picture", ""))

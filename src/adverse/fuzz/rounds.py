"""The tests of a campaign in rounds: what a round tries depends on finished rounds alone.

So the tests are the same for any number of workers, order of finishing, or resume. Each mutation has a stream
of draws of its own and a quota of tests; a guided campaign is one stream. Tests stand in the order in which
quotas are filled evenly, so a campaign of more tests begins with those of a shorter one. A test is a picture
with its truth: two recipes that make the same one are one test and a duplicate.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from adverse.content import digest
from adverse.fuzz.guide import Arm, Guide
from adverse.fuzz.job import DUPLICATE, TestUnit, packed_keys
from adverse.seeds import generator

ROUND = 512
"""Draws of a round."""
UNIT = 32
"""Draws that are done together."""
GUIDED_ROUND, GUIDED_UNIT = 32, 8
"""The same of a guided search, which learns from one round to the next; its rounds grow with its tests."""
GUIDED_IDLE = 128
"""Draws without a test after which a guided search gives up."""
BASES = 8
"""Base frames that the draws of a unit share, so that decoding one serves several."""
DRAWS_PER_TEST = 20
"""A stream that has drawn this often for each test it wants, and is not done, gives up."""
GUIDED = "guided"
"""The name of the one stream of a guided campaign."""

Row = Mapping[str, Any]


def turns(shares: Mapping[str, float], wanted: int) -> list[str]:
    """Return whose turn each of so many tests is, so that shares hold as well as they can at any time.

    >>> turns({"a": 2, "b": 1}, 7)
    ['a', 'b', 'a', 'a', 'b', 'a', 'a']
    """
    total = sum(shares.values())
    due = [
        ((number + 0.5) * total / share, order, name)
        for order, (name, share) in enumerate(shares.items())
        for number in range(int(wanted * share / total) + 2)
    ]
    return [name for _, _, name in sorted(due)[:wanted]]


@dataclass
class Stream:
    """The draws of one mutation, or of a guided search: what was found so far, and what to try next.

    `bases` are the places of the frames that are kept, `wanted` is the number of tests asked for.
    """

    name: str
    bases: Sequence[int]
    seed: int
    wanted: int
    guide: Guide | None = None
    tests: list[Row] = field(default_factory=list)
    by_mutation: dict[str, Counter[str]] = field(default_factory=dict)
    draws: int = 0
    repeated: int = 0
    """Draws that gave no test, as what their frames made of them was one already."""
    barren: bool = False
    """Whether the last draws, of a whole round at least, gave no test at all."""

    def __post_init__(self) -> None:
        self._known: list[str] = []
        self._recipes: set[str] = set()
        self._pictures: set[str] = set()
        self._last_test = 0

    @property
    def missing(self) -> int:
        """How many tests are still wanted."""
        return self.wanted - len(self.tests)

    @property
    def over(self) -> bool:
        """Whether there are enough tests, or it is time to give up: a round without one, too many draws."""
        return self.missing <= 0 or self.barren or self.draws >= max(ROUND, DRAWS_PER_TEST * self.wanted)

    def next_round(self) -> list[TestUnit]:
        """Return the units of the next round, in order."""
        drawn_before = packed_keys(self._known)
        size, each = ROUND, UNIT
        if self.guide is not None:
            size, each = (
                min(max(len(self.tests) // 4 // GUIDED_UNIT * GUIDED_UNIT, GUIDED_ROUND), ROUND),
                GUIDED_UNIT,
            )
        units = []
        for first in range(self.draws, self.draws + size, each):
            name = f"{self.name}-{first:08d}"
            arms = tuple(self._arm(draw) for draw in range(first, first + each))
            places = self._bases_of(name, (first - self.draws) // each)
            units.append(
                TestUnit(name, self.seed, self.name, first, arms, places, drawn_before, guide=self.guide)
            )
        return units

    def _bases_of(self, name: str, number: int) -> tuple[int, ...]:
        """Return the frames of a unit; in a guided search the units of a round have different ones."""
        if self.guide is None:
            order = generator(self.seed, "bases", name).permutation(len(self.bases))
        else:
            order = generator(self.seed, "bases", f"{self.name} {self.draws}").permutation(len(self.bases))
            order = np.roll(order, -BASES * number)
        return tuple(self.bases[at] for at in order[:BASES].tolist())

    def take(self, units: Sequence[Sequence[Row]]) -> None:
        """Take in the rows of a round's units, in order, up to the tests that are wanted."""
        for row in _until(units, self.missing):
            self._take(row)
        self._known = sorted(self._recipes | self._pictures)
        self.barren = self.draws - self._last_test >= (ROUND if self.guide is None else GUIDED_IDLE)

    def enough(self, units: Sequence[Sequence[Row]]) -> bool:
        """Tell whether the finished first units of a round already hold the tests that are missing."""
        return sum(1 for _ in _tests(units, self._pictures)) >= self.missing

    def has(self, picture: str) -> bool:
        """Tell whether a picture is a test already."""
        return picture in self._pictures

    def _arm(self, draw: int) -> Arm:
        return Arm(self.name) if self.guide is None else self.guide.choose(draw)

    def _take(self, row: Row) -> None:
        self.draws += 1
        mutation, *rest = row["arm"]
        refused: Counter[str] = Counter(row["refused"])
        new = "picture" in row and row["picture"] not in self._pictures
        if "picture" in row and not new:
            refused[DUPLICATE] += 1
        self.repeated += not new and bool(refused[DUPLICATE])
        self.by_mutation.setdefault(mutation, Counter()).update(refused)
        if new:
            self._recipes.add(row["key"])
            self._pictures.add(row["picture"])
            self.tests.append(row)
            self._last_test = self.draws
        if self.guide is not None:
            self.guide.learn(Arm(mutation, *rest), row if new else None)


class Rounds:
    """All streams of a campaign; `shares` says how many tests each mutation is to have, relatively."""

    def __init__(
        self,
        shares: Mapping[str, float],
        bases: Sequence[int],
        seed: int,
        wanted: int,
        guide: Guide | None = None,
    ) -> None:
        self.turns = turns(shares, wanted) if guide is None else [GUIDED] * wanted
        quota = Counter(self.turns)
        names = list(shares) if guide is None else [GUIDED]
        self.streams = [Stream(name, bases, seed, quota[name], guide) for name in names]

    @property
    def tests(self) -> list[Row]:
        """All tests, in the order in which quotas are filled; what a stream could not give is left out."""
        given = {stream.name: iter(stream.tests) for stream in self.streams}
        rows = (next(given[name], None) for name in self.turns)
        return [row for row in rows if row is not None]

    @property
    def by_mutation(self) -> dict[str, Counter[str]]:
        """What was refused on the way, by mutation."""
        return {
            mutation: counts for stream in self.streams for mutation, counts in stream.by_mutation.items()
        }

    @property
    def refused(self) -> Counter[str]:
        """What was refused on the way."""
        return sum(self.by_mutation.values(), Counter())

    @property
    def draws(self) -> int:
        """How often something was drawn."""
        return sum(stream.draws for stream in self.streams)

    @property
    def repeated(self) -> int:
        """How many draws gave no test, as what they made was one already."""
        return sum(stream.repeated for stream in self.streams)

    @property
    def short(self) -> dict[str, tuple[int, int]]:
        """How many tests there are and were wanted, of the streams that gave too few."""
        lacking = [stream for stream in self.streams if stream.missing > 0]
        return {stream.name: (len(stream.tests), stream.wanted) for stream in lacking}

    def digest(self) -> str:
        """Return the hash of all that tests came to; the same however the work was cut or ordered."""
        return results_digest(self.draws, self.tests, self.by_mutation)


def results_digest(draws: int, tests: Sequence[Row], refused: Mapping[str, Mapping[str, int]]) -> str:
    """Return the hash of what a campaign came to."""
    plain = {mutation: dict(reasons) for mutation, reasons in refused.items()}
    return digest(json.dumps([draws, tests, plain], sort_keys=True))


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

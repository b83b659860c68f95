"""Where to look next: a search that learns which features fail, and looks for failures that are new.

A draw asks for a mutation with a class, a place and a size (an arm), chosen by Thompson sampling. Several
candidates are made for it, some of them elsewhere, and the one is run from which most is expected: the chance
that it fails, by what tests with its features came to, times how new that failure would be - of a kind, with
an object, in a frame that did not fail before. What is chosen depends on finished rounds alone and a
generator keyed by seed and draw: the same for any number of workers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, log
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from adverse.fuzz.features import SIZES, THIRDS, size_words
from adverse.seeds import generator

EXPLORE = 0.1
"""Share of draws that ignore what was learnt, so that nothing is given up for good."""
CANDIDATES = 16
"""Scenes that are made for a draw; at most half of them where it asked."""
HOPELESS = 16
"""Refusals without a single test after which a value is not asked for any more."""
PRIOR = 2.0
"""Tests that what is known of the mutation counts for, where a value of a feature was seldom tried."""
TEMPER = 0.6
"""How much each feature says: together they say the same thing more than once."""
NOVELTY = (0.5, 0.3, 0.2)
"""What a new kind of failure, a new object and a new frame are worth, in sum 1."""
REPEATED = 0.05
"""The part of it that is left once it failed: the same failure again says nothing, but proves the chance."""
PATIENCE = 4
"""Tests of a kind that pass before half as much is expected of it."""
ASKED = ("class", "place", "size")
"""The features that a draw can ask for."""
NOT_LEARNT = ("mutation", "object")
SIZE_WORDS = tuple(size_words(share) for share in (0.0, *SIZES))


class Arm(NamedTuple):
    """What a draw asks for; None asks for nothing. `place` is one of THIRDS, `size` one of SIZE_WORDS."""

    mutation: str
    object_class: str | None = None
    place: str | None = None
    size: str | None = None

    @property
    def position(self) -> tuple[int, int] | None:
        """The place as a cell of a grid of three columns."""
        return None if self.place is None else (THIRDS.index(self.place), 0)

    def size_px(self, width: int) -> tuple[float, float] | None:
        """Return the range [low, high) of the longest side in pixels of an image so wide."""
        if self.size is None:
            return None
        at = SIZE_WORDS.index(self.size)
        return width * (0.0, *SIZES)[at], width * (*SIZES, float("inf"))[at]

    @property
    def asked(self) -> dict[str, str]:
        """The features that are asked for."""
        values = zip(ASKED, (self.object_class, self.place, self.size), strict=True)
        return {name: value for name, value in values if value is not None}


@dataclass
class Tally:
    """What became of the tests with one value of one feature."""

    failed: int = 0
    passed: int = 0
    worth: float = 0.0
    """What its failures were worth in sum, at most 1 each."""
    refused: int = 0
    """How often it was asked for and no test had it."""

    @property
    def tests(self) -> int:
        """Tests that had it."""
        return self.failed + self.passed

    @property
    def hopeless(self) -> bool:
        """Whether it was asked for often and never had."""
        return self.refused >= HOPELESS and not self.tests


Value = tuple[str, str, str]
"""Mutation, name of the feature, value; the mutation itself is (name, "mutation", name)."""


Subject = tuple[str, ...]


@dataclass
class Guide:
    """What a guided campaign has learnt. `classes` says which classes each mutation can be asked for."""

    classes: Mapping[str, Sequence[str]]
    seed: int
    tallies: dict[Value, Tally] = field(default_factory=dict)
    failed: Counter[Subject] = field(default_factory=Counter)
    """How often a kind of test, an object and a frame failed."""
    passed: Counter[Subject] = field(default_factory=Counter)
    """How often they were tested and did not."""

    def choose(self, draw: int) -> Arm:
        """Return the arm of a draw: the best of one sample of each posterior; now and then any mutation."""
        rng = generator(self.seed, "guide", str(draw))
        mutations = list(self.classes)
        if rng.random() < EXPLORE:
            return Arm(mutations[int(rng.integers(len(mutations)))])
        mutation = self._best(rng, mutations, "mutation")
        classes = self.classes[mutation]
        return Arm(
            mutation,
            self._best(rng, classes, "class", mutation) if len(classes) > 1 else None,
            self._best(rng, THIRDS, "place", mutation),
            self._best(rng, SIZE_WORDS, "size", mutation),
        )

    def expected(
        self,
        features: Mapping[str, str],
        base: str,
        thing: str,
        rng: np.random.Generator,
        hints: Mapping[str, str] = MappingProxyType({}),
    ) -> float:
        """Return what a test is expected to be worth: its chance to fail, sampled, times how new that is.

        `hints` are features that say how likely it fails, but make no kind of failure of their own.
        """
        mutation = features["mutation"]
        overall = self.tallies.get((mutation, "mutation", mutation), Tally())
        usual = (1 + overall.failed) / (2 + overall.tests)
        odds = _logit(usual)
        for name, value in sorted((*features.items(), *hints.items())):
            if name not in NOT_LEARNT:
                tally = self.tallies.get((mutation, name, value), Tally())
                rate = rng.beta(PRIOR * usual + tally.failed, PRIOR * (1 - usual) + tally.passed)
                odds += TEMPER * (_logit(float(rate)) - _logit(usual))
        kind, same_object, _ = subjects(features, base, thing)
        known = (1 + self.passed[same_object]) * (1 + self.passed[kind] / PATIENCE)
        return self.worth(features, base, thing) / (1 + exp(-odds)) / known

    def worth(self, features: Mapping[str, str], base: str, thing: str) -> float:
        """Return what a failure is worth: 1 if kind, object and frame are new, little of known ones."""
        weighed = zip(NOVELTY, subjects(features, base, thing), strict=True)
        return sum(weight * (REPEATED if self.failed[subject] else 1.0) for weight, subject in weighed)

    def expect(self, features: Mapping[str, str], base: str, thing: str) -> None:
        """Take a test that is going to be run for a failure, so that the next one differs from it."""
        self.failed.update(subjects(features, base, thing))

    def learn(self, arm: Arm, row: Mapping[str, Any] | None) -> None:
        """Take in what became of a draw: the row of its test, or None if there was none."""
        features: Mapping[str, str] = {} if row is None else row["features"]
        for name, value in arm.asked.items():
            self._tally(arm.mutation, name, value).refused += features.get(name) != value
        if row is None:
            self._tally(arm.mutation, "mutation", arm.mutation).refused += 1
            return
        failed, base, thing = bool(row["kept"]), row["base"], row["thing"]
        worth = self.worth(features, base, thing) if failed else 0.0
        for name, value in (*features.items(), *row.get("hints", {}).items()):
            if name != "object":
                tally = self._tally(arm.mutation, name, value)
                tally.failed += failed
                tally.passed += not failed
                tally.worth += worth
        (self.failed if failed else self.passed).update(subjects(features, base, thing))

    def _tally(self, mutation: str, name: str, value: str) -> Tally:
        return self.tallies.setdefault((mutation, name, value), Tally())

    def _best(
        self, rng: np.random.Generator, values: Iterable[str], name: str, mutation: str | None = None
    ) -> str:
        scored = []
        for value in values:
            tally = self.tallies.get((mutation or value, name, value), Tally())
            sample = float(rng.beta(1 + tally.worth, 1 + tally.tests - tally.worth))
            scored.append((-1.0 if tally.hopeless else sample, value))
        return max(scored, key=lambda pair: pair[0])[1]


def kind_of(features: Mapping[str, str]) -> tuple[str, ...]:
    """Return the kind of a test: all of its features but which object it is about."""
    return tuple(f"{name} {value}" for name, value in sorted(features.items()) if name != "object")


def subjects(features: Mapping[str, str], base: str, thing: str) -> tuple[Subject, Subject, Subject]:
    """Return what a failure is about: its kind, the object, the frame."""
    return ("kind", *kind_of(features)), ("object", thing), ("frame", base)


def _logit(chance: float) -> float:
    chance = min(max(chance, 1e-6), 1 - 1e-6)
    return log(chance / (1 - chance))

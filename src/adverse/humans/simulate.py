"""Simulated human studies: answers from a known psychometric curve, and how many people to ask.

People are right at a base rate up to the drop point and then fall to guessing, evenly or gently or at once.
They differ: each has an ability of their own, on the scale of log odds. As in the experiment, half of what is
shown are originals unless said otherwise, and nobody sees an image twice. Many simulated studies of one size
tell how well a real one would do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from adverse.curves.interval import Interval
from adverse.errors import StudyError
from adverse.humans.answers import ORIGINAL, Judgments
from adverse.humans.estimate import EstimateOptions, estimate_one
from adverse.humans.thresholds import FOUND, SYMBOLS, Kind
from adverse.seeds import generator
from adverse.visual import Backend

Onset = Literal["even", "gentle", "sudden"]
Array = NDArray[np.float64]
SEEN_BY = 10
"""How many people see an image, changed or not: about five see the original, as in the paper."""


@dataclass(frozen=True)
class People:
    """Simulated participants and the curve they follow.

    `drop`: the visual change from which they fail (None: never); `fall`: over how much more change they fall
    to guessing; `base`: how often they are right before; `differ`: standard deviation of their ability;
    `answers` are on changed images, and as many on originals unless `originals` says how many.
    """

    drop: float | None = 0.4
    fall: float = 0.3
    onset: Onset = "even"
    base: float = 0.95
    differ: float = 0.3
    categories: int = 2
    participants: int = 50
    answers: int = 2500
    transformation: str = "t.gaussian_noise"
    backend: Backend = "vif"
    originals: int | None = None

    def __post_init__(self) -> None:
        wanted = {
            "drop": self.drop is None or 0 <= self.drop <= 1,
            "fall": 0 < self.fall <= 10,
            "base": 1 / max(self.categories, 2) < self.base <= 1,
            "differ": 0 <= self.differ <= 5,
            "categories": 2 <= self.categories <= 16,
            "participants": 1 <= self.participants <= 100_000,
            "answers": 1 <= self.answers <= 10_000_000,
            "originals": self.originals is None or 1 <= self.originals <= 10_000_000,
        }
        for name, good in wanted.items():
            if not good:
                raise StudyError(
                    f"{name} has an invalid value",
                    where="simulated people",
                    got=repr(getattr(self, name)),
                    fix=f"Change {name}; adverse humans simulate --help says what it means.",
                )


def rate(people: People, dv: Array) -> Array:
    """Return how often the average participant is right at each visual change.

    >>> rate(People(drop=0.4, fall=0.2), np.array([0.1, 0.4, 0.5, 0.9]))
    array([0.95 , 0.95 , 0.725, 0.5  ])
    """
    if people.drop is None:
        return np.full(dv.shape, people.base)
    along = np.clip((dv - people.drop) / people.fall, 0, 1)
    if people.onset == "gentle":
        along = (1 - np.cos(np.pi * along)) / 2
    elif people.onset == "sudden":
        along = (dv >= people.drop).astype(np.float64)
    return people.base - (people.base - 1 / people.categories) * along


def simulate(people: People, seed: int) -> Judgments:
    """Make up answers: who sees which image, changed or not, and what they say."""
    rng = generator(seed, "simulated people", people.transformation)
    count = people.answers + (people.answers if people.originals is None else people.originals)
    person = np.arange(count) % people.participants
    image = np.arange(count) // min(SEEN_BY, people.participants)  # nobody sees an image twice
    original = rng.permutation(count) < count - people.answers
    ability = rng.normal(0, people.differ, people.participants)
    dv = np.where(original, 0.0, np.round(rng.random(count), 4))
    truth = rng.integers(0, people.categories, image[-1] + 1)[image]
    right = np.where(original, people.base, rate(people, dv))
    answered = _answers(truth, _shifted(right, ability[person]), people, rng)
    names = np.array([f"category {number + 1}" for number in range(people.categories)])
    return Judgments(
        np.char.add("person ", person.astype(np.str_)),
        np.char.add("image ", image.astype(np.str_)),
        np.where(original, ORIGINAL, people.transformation),
        dv,
        np.full(count, people.backend),
        names[answered],
        names[truth],
    )


def _shifted(chance: Array, ability: Array) -> Array:
    shifted: Array = expit(logit(chance) + ability)
    return shifted


def _answers(
    truth: NDArray[np.int64], chance: Array, people: People, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return the truth with the given chance, else any of the other categories."""
    wrong = (truth + rng.integers(1, people.categories, len(truth))) % people.categories
    return np.where(rng.random(len(truth)) < chance, truth, wrong)


@dataclass(frozen=True)
class SampleSizePlan:
    """What studies of one size would find of a known drop.

    `covered` is the share of all studies whose interval holds the true drop point, `spread_covered` that of
    those where the mere spread of the threshold over participants does; None where there is no drop.
    """

    kind: Kind
    studies: int
    found: float
    covered: float | None
    spread_covered: float | None
    threshold: float | None
    width: float | None

    @property
    def words(self) -> str:
        """The plan in words."""
        head = (
            f"{SYMBOLS[self.kind]}: a drop was found in {self.found:.1%} of {self.studies} simulated studies"
        )
        if self.covered is None or self.threshold is None:
            return f"{head}."
        wide = "cannot be told" if self.width is None else f"{self.width:.2f}"
        return (
            f"{head}, typically at {self.threshold:.2f}; of those, the interval held the true drop point in "
            f"{self.covered / self.found:.1%}; its typical width: {wide}."
        )


def plan_sample_size(
    people: People, studies: int, kind: Kind, options: EstimateOptions, *, first: int = 0
) -> SampleSizePlan:
    """Simulate studies with seeds from the first one on, and estimate each."""
    results = [
        estimate_one(simulate(people, seed), people.transformation, kind, options)
        for seed in range(first, first + studies)
    ]
    with_drop = [result for result in results if result.status == FOUND]
    spans = _spans(result.interval for result in with_drop)
    spreads = _spans(result.spread for result in with_drop)
    return SampleSizePlan(
        kind,
        studies,
        len(with_drop) / studies,
        _covered(spans, people.drop, studies),
        _covered(spreads, people.drop, studies),
        float(np.median([r.value for r in with_drop if r.value is not None])) if with_drop else None,
        float(np.median([high - low for low, high in spans])) if spans else None,
    )


def _spans(intervals: Iterable[Interval | None]) -> list[tuple[float, float]]:
    return [
        (min(interval.low, 1.0), min(interval.high, 1.0))
        for interval in intervals
        if interval is not None and interval.low is not None and interval.high is not None
    ]


def _covered(spans: Sequence[tuple[float, float]], drop: float | None, studies: int) -> float | None:
    return None if drop is None else sum(low <= drop <= high for low, high in spans) / studies

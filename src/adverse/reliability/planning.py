"""How many people to ask: many simulated studies of one size, and how well each would do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from adverse.reliability.estimate import Options, estimate_one
from adverse.reliability.simulate import People, simulate
from adverse.reliability.thresholds import FOUND, SYMBOLS, Kind


@dataclass(frozen=True)
class Plan:
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
            f"{head}, typically at {self.threshold:.2f}; the interval held the true drop point in "
            f"{self.covered:.1%}; its typical width: {wide}."
        )


def plan(people: People, studies: int, kind: Kind, options: Options) -> Plan:
    """Simulate studies with seeds 0, 1, 2 ... and estimate each."""
    results = [
        estimate_one(simulate(people, seed), people.transformation, kind, options) for seed in range(studies)
    ]
    found = [result for result in results if result.status == FOUND]
    spans = _spans(result.interval for result in found)
    spreads = _spans(result.spread for result in found)
    return Plan(
        kind,
        studies,
        len(found) / studies,
        _covered(spans, people.drop, studies),
        _covered(spreads, people.drop, studies),
        float(np.median([r.value for r in found if r.value is not None])) if found else None,
        float(np.median([high - low for low, high in spans])) if spans else None,
    )


def _spans(intervals: Iterable[tuple[float | None, float | None] | None]) -> list[tuple[float, float]]:
    return [
        tuple(1.0 if end is None else end for end in interval)  # type: ignore[misc]
        for interval in intervals
        if interval is not None
    ]


def _covered(spans: Sequence[tuple[float, float]], drop: float | None, studies: int) -> float | None:
    return None if drop is None else sum(low <= drop <= high for low, high in spans) / studies

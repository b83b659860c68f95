"""How many people to ask: many simulated studies of one size, and how well each would do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from adverse.reliability.estimate import Options, estimate_one
from adverse.reliability.simulate import People, simulate
from adverse.reliability.thresholds import FOUND, SYMBOLS, Kind


@dataclass(frozen=True)
class Plan:
    """What studies of one size would find of a known drop.

    `covered` is the share of all studies whose interval holds the true drop point; None where there is none.
    """

    kind: Kind
    studies: int
    found: float
    covered: float | None
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
    spans = [(low, 1.0 if high is None else high) for low, high in (r.interval for r in found if r.interval)]
    drop = people.drop
    covered = None if drop is None else sum(low <= drop <= high for low, high in spans) / studies
    return Plan(
        kind,
        studies,
        len(found) / studies,
        covered,
        float(np.median([r.value for r in found if r.value is not None])) if found else None,
        float(np.median([high - low for low, high in spans])) if spans else None,
    )

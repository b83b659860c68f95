"""Versions of an image with a wanted visual change: by search for a strength, or by drawing options."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from adverse.errors import MutationError
from adverse.mutations.settings import apply_step
from adverse.plugins import Registry
from adverse.seeds import generator
from adverse.types import Depth, Image
from adverse.visual import Backend, Reference
from adverse.visual.strength import DRAWS, TOLERANCE, Searchable, Transformation

Range = tuple[float, float]
SEEN = 1e-6
"""A visual change from here on is one: the image as it is does not count as a version."""
NEAR = 0.05
"""How far from the place that was drawn a visual change may lie where the search jumps over that place."""
OUTSIDE = "none of the draws has a visual change within the range"
REASONS = {
    "even": "the visual change is never so large",
    "it jumps": "the visual change jumps over the range",
    "not within": "the visual change was not found in so many tries",
}
"""Why a search ends without what it looks for, by how its reason begins."""


class VersionInput(NamedTuple):
    """What a version is made from; `details` records what was done."""

    image: Image
    rng: np.random.Generator
    registry: Registry
    depth_m: Depth | None
    details: dict[str, float]


@dataclass(frozen=True)
class VersionSampler:
    """Makes versions by a transformation, within a range of visual change, in a given number of tries.

    Without `parameters` a place in the range is drawn evenly and the strength searched for that comes to it
    (within 0.01), so that the versions of many images cover the range evenly. Where the visual change jumps
    over the place, the nearest within 0.05 is taken; where it jumps over the whole range, the least beyond
    it, up to `beyond`. With them, options are drawn from their distributions until the visual change is
    within the range.
    """

    transformation: Transformation
    wanted: Range
    tries: int
    backend: Backend
    parameters: Mapping[str, Mapping[str, Any]]
    beyond: float = 0.0

    def draw(self, given: VersionInput) -> Image:
        """Return a version of an image, or raise MutationError when the tries are used up."""
        if self.parameters:
            return self._redrawn(given)
        return self._searched(given)

    def _searched(self, given: VersionInput) -> Image:
        rng, details = given.rng, given.details
        low, high = self.wanted
        aim = float(rng.uniform(low, high))
        exact, near = (
            (max(low, aim - gap, SEEN), max(SEEN, min(high, aim + gap))) for gap in (TOLERANCE, NEAR)
        )
        seed = int(rng.integers(2**62))
        reason = ""
        for draw in range(DRAWS):
            searchable = Searchable(
                given.image,
                self.transformation.name,
                options=self.transformation.fixed,
                seed=seed,
                draw=draw,
                depth_m=given.depth_m,
                backend=self.backend,
                registry=given.registry,
            )
            details["aimed_at"] = aim
            search = searchable.find(aim, within=exact, tries=self.tries)
            details["tries"] = details.get("tries", 0) + search.tries
            reason = search.reason or ""
            if not search.reached:
                search = searchable.find(aim, within=near, tries=0)
            if not search.reached and self.beyond > high:
                search = searchable.find(aim, within=(SEEN, self.beyond), tries=0)
            if search.reached:
                details["visual_change"] = search.visual_change
                details[search.option] = search.value
                return search.image
            if not searchable.random:
                break
        summary = next((words for start, words in REASONS.items() if reason.startswith(start)), reason)
        raise self._unreached(summary, reason)

    def _redrawn(self, given: VersionInput) -> Image:
        image, rng, details = given.image, given.rng, given.details
        reference = Reference(image, backend=self.backend)
        seen = []
        for number in range(self.tries):
            options = {name: value_of(distribution, rng) for name, distribution in self.parameters.items()}
            stream = generator(int(rng.integers(2**62)), "draw")
            wanted: dict[str, Any] = {
                "depth_m": given.depth_m,
                "labels": None,
                "rng": stream,
                "log_rng": stream,
                "registry": given.registry,
                "details": {},
            }
            whole = {**self.transformation.fixed, **options}
            changed = apply_step(image, self.transformation.plugin, whole, wanted, frame="")
            seen.append(reference.visual_change(changed))
            details["tries"] = number + 1
            if self.wanted[0] <= seen[-1] <= self.wanted[1]:
                details["visual_change"] = seen[-1]
                details.update(options)
                return changed
        raise self._unreached(OUTSIDE, f"{self.tries} draws from {min(seen):.3f} to {max(seen):.3f}")

    def _unreached(self, summary: str, got: str) -> MutationError:
        return MutationError(
            summary,
            got=got,
            wanted=f"{self.wanted[0]:.3f} to {self.wanted[1]:.3f} by {self.transformation.name}",
            fix="Raise tries:, or lower the threshold.",
        )


def value_of(distribution: Mapping[str, Any], rng: np.random.Generator) -> float:
    """Draw an option from its distribution.

    >>> value_of({"choice": [3]}, generator(0, ""))
    3.0
    """
    ((kind, values),) = distribution.items()
    if kind == "choice":
        return float(values[int(rng.integers(len(values)))])
    low, high = values
    if kind == "loguniform":
        return math.exp(rng.uniform(math.log(low), math.log(high)))
    return float(rng.uniform(low, high))


def value_within(distribution: Mapping[str, Any]) -> float:
    """Return a value that an option may get from its distribution."""
    ((_, values),) = distribution.items()
    return float(values[0])

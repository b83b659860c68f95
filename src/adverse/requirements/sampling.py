"""Versions of an image whose visual change is what was asked for: by search, or by drawing again.

Mutations made of a transformation and a wanted visual change: what requirements are checked with.

A plug-in file that a check adds to its study: `up_to` gives a version of this very frame whose visual change
lies within a range. What cannot be reached in so many tries refuses the frame, with the reason; what was
reached is told beside the answer.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import Field

from adverse.errors import MutationError
from adverse.mutations.settings import apply_step
from adverse.plugins import Fraction, Registry, mutation
from adverse.seeds import generator
from adverse.types import Depth, Image
from adverse.visual import Backend, Reference
from adverse.visual.strength import DRAWS, Searchable, Transformation, read_transformation

Range = tuple[float, float]
SEEN = 1e-6
"""A visual change from here on is one: the image as it is does not count as a version."""
NEAR = 0.25
"""How near a visual change must come to the place that was drawn: this share of the range."""
OUTSIDE = "none of the draws has a visual change within the range"
REASONS = {
    "even": "the visual change is never so large",
    "it jumps": "the visual change jumps over the range",
    "not within": "the visual change was not found in so many tries",
}
"""Why a search ends without what it looks for, by how its reason begins."""


class Given(NamedTuple):
    """What a version is made of; `told` takes up what was done."""

    image: Image
    rng: np.random.Generator
    registry: Registry
    depth_m: Depth | None
    told: dict[str, float]


@dataclass(frozen=True)
class Drawing:
    """What is asked for: a transformation, the range of visual change, and how often it may be tried.

    Without `parameters` a place in the range is drawn evenly and the strength searched for; where the visual
    change jumps over the range, the least beyond it is taken, up to `beyond`. With them, options are drawn
    from their distributions until the visual change is within the range.
    """

    transformation: Transformation
    wanted: Range
    tries: int
    backend: Backend
    parameters: Mapping[str, Mapping[str, Any]]
    beyond: float = 0.0

    def draw(self, given: Given) -> Image:
        """Return a version of an image, or raise MutationError when the tries are used up."""
        if self.parameters:
            return self._redrawn(given)
        return self._searched(given)

    def _searched(self, given: Given) -> Image:
        rng, told = given.rng, given.told
        low, high = self.wanted
        aim = float(rng.uniform(low, high))
        near = NEAR * (high - low)
        within = max(low, aim - near, SEEN), min(high, aim + near)
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
            found = searchable.find(aim, within=within, tries=self.tries)
            told["tries"] = told.get("tries", 0) + found.tries
            if not found.reached and self.beyond > high:
                found = searchable.find(aim, within=(SEEN, self.beyond), tries=0)
            if found.reached:
                told["visual_change"] = found.visual_change
                told[found.option] = found.value
                return found.image
            reason = found.reason or ""
            if not searchable.random:
                break
        what = next((words for start, words in REASONS.items() if reason.startswith(start)), reason)
        raise self._unreached(what, reason)

    def _redrawn(self, given: Given) -> Image:
        image, rng, told = given.image, given.rng, given.told
        reference = Reference(image, backend=self.backend)
        seen = []
        for number in range(self.tries):
            options = {name: value_of(one, rng) for name, one in self.parameters.items()}
            stream = generator(int(rng.integers(2**62)), "draw")
            wanted: dict[str, Any] = {
                "depth_m": given.depth_m,
                "labels": None,
                "rng": stream,
                "registry": given.registry,
                "told": {},
            }
            whole = {**self.transformation.fixed, **options}
            changed = apply_step(image, self.transformation.plugin, whole, wanted, frame="")
            seen.append(reference.visual_change(changed))
            told["tries"] = number + 1
            if self.wanted[0] <= seen[-1] <= self.wanted[1]:
                told["visual_change"] = seen[-1]
                told.update(options)
                return changed
        raise self._unreached(OUTSIDE, f"{self.tries} draws from {min(seen):.3f} to {max(seen):.3f}")

    def _unreached(self, what: str, got: str) -> MutationError:
        return MutationError(
            what,
            got=got,
            wanted=f"{self.wanted[0]:.3f} to {self.wanted[1]:.3f} by {self.transformation.name}",
            fix="Raise tries:, or lower the threshold.",
        )


def value_of(told: Mapping[str, Any], rng: np.random.Generator) -> float:
    """Draw an option from its distribution.

    >>> value_of({"choice": [3]}, generator(0, ""))
    3.0
    """
    ((kind, values),) = told.items()
    if kind == "choice":
        return float(values[int(rng.integers(len(values)))])
    low, high = values
    if kind == "loguniform":
        return math.exp(rng.uniform(math.log(low), math.log(high)))
    return float(rng.uniform(low, high))


def value_within(told: Mapping[str, Any]) -> float:
    """Return a value that an option may get from its distribution."""
    ((_, values),) = told.items()
    return float(values[0])


Tries = Annotated[int, Field(ge=1)]


@mutation
def up_to(
    image: Image,
    *,
    transformation: str,
    lowest: Fraction,
    highest: Fraction,
    tries: Tries,
    made_by: str,
    backend: Backend,
    parameters: str = "{}",
    version: int = 0,
    beyond: Fraction = 0.0,
    rng: np.random.Generator,
    registry: Registry,
    told: dict[str, float],
) -> Image:
    """Change an image by a transformation so that its visual change lies within a range."""
    del made_by, version  # they only tell versions apart
    drawing = _drawing(transformation, (lowest, highest, beyond), tries, backend, parameters, registry)
    return drawing.draw(Given(image, rng, registry, None, told))


@mutation
def up_to_with_depth(
    image: Image,
    *,
    transformation: str,
    lowest: Fraction,
    highest: Fraction,
    tries: Tries,
    made_by: str,
    backend: Backend,
    parameters: str = "{}",
    version: int = 0,
    beyond: Fraction = 0.0,
    depth_m: Depth,
    rng: np.random.Generator,
    registry: Registry,
    told: dict[str, float],
) -> Image:
    """Change an image by a transformation that needs depth, so that its visual change lies within a range."""
    del made_by, version
    drawing = _drawing(transformation, (lowest, highest, beyond), tries, backend, parameters, registry)
    return drawing.draw(Given(image, rng, registry, depth_m, told))


def _drawing(
    transformation: str,
    wanted: tuple[float, float, float],
    tries: int,
    backend: Backend,
    parameters: str,
    registry: Registry,
) -> Drawing:
    distributions = json.loads(parameters)
    some = {name: value_within(told) for name, told in distributions.items()}
    found = read_transformation(transformation, registry, drawn=some)
    return Drawing(found, wanted[:2], tries, backend, distributions, wanted[2])

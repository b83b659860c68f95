"""Versions of an image whose visual change is what was asked for: by search, or by drawing again."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from adverse.errors import MutationError
from adverse.reliability.transformation import Transformation
from adverse.reliability.visual import Backend, Reference
from adverse.seeds import generator
from adverse.types import Image

NEAR = 0.005
"""How near a visual change must come to the one that was drawn."""
FIRST_STEP = 1 / 64
"""Of the largest strength: where a search begins."""

Range = tuple[float, float]
Change = Callable[[Mapping[str, float]], tuple[Image, float]]
"""From options to the changed image and its visual change."""
Found = tuple[Mapping[str, float], tuple[Image, float]]


@dataclass(frozen=True)
class Drawing:
    """What is asked for: a transformation, the range of visual change, and how often it may be tried.

    Without `parameters` the visual change is drawn evenly from the range and the strength searched for. With
    them, options are drawn from their distributions until the visual change is within the range.
    """

    transformation: Transformation
    wanted: Range
    tries: int
    backend: Backend
    parameters: Mapping[str, Mapping[str, Any]]

    def draw(
        self, image: Image, rng: np.random.Generator, given: Mapping[str, Any], told: dict[str, float]
    ) -> Image:
        """Return a version of an image, or raise MutationError when the tries are used up."""
        reference = Reference(image, backend=self.backend)
        aim = None if self.parameters else float(rng.uniform(*self.wanted))
        key = int(rng.integers(2**62))  # the same direction and grain at every strength that is tried

        def change(options: Mapping[str, float]) -> tuple[Image, float]:
            told["tries"] = told.get("tries", 0) + 1
            changed = self.transformation.apply(image, options, generator(key, "version"), given)
            return changed, reference.visual_change(changed)

        found = self._search(change, aim) if aim is not None else self._redraw(change, rng)
        options, (changed, dv) = found
        told["visual_change"] = dv
        told.update(options)
        return changed

    def _redraw(self, change: Change, rng: np.random.Generator) -> Found:
        seen = []
        for _ in range(self.tries):
            options = {name: value_of(told, rng) for name, told in self.parameters.items()}
            found = change(options)
            if self.wanted[0] <= found[1] <= self.wanted[1]:
                return options, found
            seen.append(found[1])
        raise self._unreached(f"{self.tries} draws from {min(seen):.3f} to {max(seen):.3f}")

    def _search(self, change: Change, aim: float) -> Found:
        """Grow the strength until the aim lies below, then halve the bracket."""
        option, top = self.transformation.option, self.transformation.top
        low, high, step = 0.0, math.inf, FIRST_STEP * (top or 1.0)
        strength = step
        best: Found | None = None
        for _ in range(self.tries):
            found = change({option: strength})
            if self.wanted[0] <= found[1] <= self.wanted[1] and (
                best is None or abs(found[1] - aim) < abs(best[1][1] - aim)
            ):
                best = ({option: strength}, found)
                if abs(found[1] - aim) <= NEAR:
                    return best
            if found[1] < aim:
                low = strength
            else:
                high = strength
            if high - low < 1e-9 * high or strength == top == low:
                break
            strength = (low + high) / 2 if math.isfinite(high) else 2 * low
            strength = strength if top is None else min(strength, top)
        if best is None:
            raise self._unreached(
                f"{self.tries} tries, the last at {option} {strength:.4g} with {found[1]:.3f}"
            )
        return best

    def _unreached(self, got: str) -> MutationError:
        return MutationError(
            "the visual change cannot be reached",
            got=got,
            wanted=f"{self.wanted[0]:.3f} to {self.wanted[1]:.3f} by {self.transformation.plugin.name}",
            fix="Raise tries:, or lower the threshold.",
        )


def value_of(told: Mapping[str, Any], rng: np.random.Generator) -> float:
    """Draw an option from its distribution."""
    ((kind, values),) = told.items()
    if kind == "choice":
        return float(values[int(rng.integers(len(values)))])
    low, high = values
    if kind == "loguniform":
        return float(math.exp(rng.uniform(math.log(low), math.log(high))))
    return float(rng.uniform(low, high))

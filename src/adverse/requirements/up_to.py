"""The plug-in file that a requirements check adds to its study: mutations up to a given visual change.

`up_to` makes a version of this very frame whose visual change lies within a range, by some transformation. A
range that cannot be reached in the given number of tries refuses the frame and says why; the visual change
that was reached is recorded beside the answer.
"""

from __future__ import annotations

import json
from typing import Annotated

import numpy as np
from pydantic import Field

from adverse.plugins import Fraction, Registry, mutation
from adverse.requirements.sampling import VersionInput, VersionSampler, value_within
from adverse.types import Depth, Image
from adverse.visual import Backend
from adverse.visual.strength import read_transformation

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
    details: dict[str, float],
) -> Image:
    """Change an image by a transformation so that its visual change lies within a range."""
    del made_by, version  # they only tell versions apart
    sampler = _sampler(transformation, (lowest, highest, beyond), tries, backend, parameters, registry)
    return sampler.draw(VersionInput(image, rng, registry, None, details))


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
    details: dict[str, float],
) -> Image:
    """Change an image by a transformation that needs depth, so that its visual change lies within a range."""
    del made_by, version
    sampler = _sampler(transformation, (lowest, highest, beyond), tries, backend, parameters, registry)
    return sampler.draw(VersionInput(image, rng, registry, depth_m, details))


def _sampler(
    transformation: str,
    wanted: tuple[float, float, float],
    tries: int,
    backend: Backend,
    parameters: str,
    registry: Registry,
) -> VersionSampler:
    distributions = json.loads(parameters)
    examples = {name: value_within(distribution) for name, distribution in distributions.items()}
    parsed = read_transformation(transformation, registry, drawn=examples)
    return VersionSampler(parsed, wanted[:2], tries, backend, distributions, wanted[2])

"""Mutations made of a transformation and a wanted visual change: what requirements are checked with.

A plug-in file that a check adds to its study: `up_to` gives a version of this very frame whose visual change
lies within a range. What cannot be reached in so many tries refuses the frame, with the reason; what was
reached is told beside the answer.
"""

from __future__ import annotations

import json
from typing import Annotated

import numpy as np
from pydantic import Field

from adverse.plugins import Fraction, Registry, mutation
from adverse.reliability.drawing import Drawing, Given, value_within
from adverse.reliability.transformation import read_transformation
from adverse.reliability.visual import Backend
from adverse.types import Depth, Image

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

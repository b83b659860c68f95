"""Moving an object over the ground: its size follows the distance, and it stands on road again."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adverse.semantic.painting import Patch, resized
from adverse.semantic.resources import Entity
from adverse.semantic.scenes import Scene

CLOSER_LIMITS = (0.4, 1.6)
"""Beyond this a scaled cut-out looks too sharp or too soft, and is seen from another angle than it was."""
PLACES = 20
"""Places that are tried for one object."""


class Moved(NamedTuple):
    """A cut-out at its new place, and how many times nearer that is."""

    patch: Patch
    closer: float


def moved(donor: Entity, scene: Scene, rng: np.random.Generator) -> Moved | None:
    """Put the lower left corner of an object on a random pixel of road and scale it by the ground plane.

    None if none of the places that were tried has room for it.
    """
    ground = scene.ground
    if ground is None or not len(scene.road_pixels):
        return None
    x0, y0, x1, y1 = donor.box
    foot = (x0 + x1 - 1) / 2, y1 - 1
    metric = ground.metric and donor.nearness is not None
    before = donor.nearness if metric and donor.nearness is not None else ground.nearness(*foot)
    width = scene.size[0]
    for pixel in rng.choice(scene.road_pixels, PLACES).tolist():
        row, left = divmod(pixel, width)
        after = ground.nearness(left, row)
        for _ in range(3):  # the foot is in the middle of a box whose width depends on the distance there
            closer = after / before if before > 0 else 0.0
            after = ground.nearness(left + closer * (x1 - x0 - 1) / 2, row)
        size = round(closer * (x1 - x0)), round(closer * (y1 - y0))
        box = left, row + 1 - size[1], left + size[0], row + 1
        fits = min(size) > 0 and box[1] >= 0 and box[2] <= width
        if CLOSER_LIMITS[0] <= closer <= CLOSER_LIMITS[1] and fits:
            patch = resized(Patch(donor.box, donor.alpha > 0, donor.rgb, donor.depth_m), box, closer)
            return Moved(patch, closer) if patch.mask.any() else None
    return None

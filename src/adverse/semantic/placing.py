"""Where an added object goes and how much of it is visible there, and objects moved over the ground.

The size of a moved object follows its distance, and it must stand on road again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from adverse.errors import MutationError
from adverse.semantic.painting import Patch, resized
from adverse.semantic.recipes import Recipe
from adverse.semantic.resources import Entity
from adverse.semantic.scenes import GROUND, Box, Mask, Scene

SAME_ROW_PX = 1
"""What meets the ground this near to the foot of something may be before or behind it."""
PLACE = ("x", "y", "width", "height", "closer")
"""The numbers of a recipe that say where a moved object stands; without them it stands where it stood."""


def placed(recipe: Recipe, donor: Entity, scene: Scene) -> Patch:
    """Return the cut-out of a donor where the recipe puts it, or say that it does not fit into the scene."""
    patch = cutout_of(donor, scene)
    if "x" in recipe.by_name:
        x, y, width, height, closer = (recipe.by_name.get(name, 0) for name in PLACE)
        box = int(x), int(y), int(x + width), int(y + height)
        _check_inside(box, donor, scene)
        return resized(patch, box, float(closer))
    _check_inside(donor.box, donor, scene)
    return patch


def visible_mask(patch: Patch, scene: Scene) -> Mask:
    """Return what of a patch is not hidden by what is nearer; the ground hides nothing that stands on it.

    Where the scene's depth is unknown the patch is seen; where its own is, its median counts. Without depth
    on both sides, what meets the ground lower in the image is nearer.
    """
    x0, y0, x1, y1 = patch.box
    if patch.depth_m is None or scene.depth_m is None:
        return patch.mask & ~(scene.contact[y0:y1, x0:x1] > y1 - 1 + SAME_ROW_PX)
    own = patch.depth_m[patch.mask]
    middle = float(np.median(own[np.isfinite(own)])) if np.isfinite(own).any() else np.inf
    depth = np.where(np.isfinite(patch.depth_m), patch.depth_m, np.float32(middle))
    ground = [number for number, name in scene.classes.items() if name in GROUND]
    upright = ~np.isin(scene.labels[y0:y1, x0:x1], ground)
    with np.errstate(invalid="ignore"):
        hidden = upright & (scene.depth_m[y0:y1, x0:x1] < depth)
    return patch.mask & ~hidden


def _check_inside(box: Box, donor: Entity, scene: Scene) -> None:
    width, height = scene.size
    x0, y0, x1, y1 = box
    if not (0 <= x0 < x1 <= width and 0 <= y0 < y1 <= height):
        raise MutationError(
            "an added object does not fit into the scene",
            where=f"scene {scene.id!r}, donor {donor.id!r}",
            got=f"box {box}",
            wanted=f"inside {width}x{height} pixels",
            fix="Use donors from images of the same size.",
        )


CLOSER_LIMITS = (0.4, 1.6)
"""Beyond this a scaled cut-out looks too sharp or too soft, and is seen from another angle than it was."""
PLACES = 20
"""Places that are tried for one object."""


class MovedObject(NamedTuple):
    """A cut-out at its new place, and how many times nearer that is."""

    patch: Patch
    closer: float


def cutout_of(donor: Entity, scene: Scene) -> Patch:
    """Return a donor's cut-out; depth of another camera says nothing about how near it is here."""
    depth = donor.depth_m if donor.frame_size == scene.size else None
    return Patch(donor.box, donor.alpha > 0, donor.rgb, depth)


def moved(donor: Entity, scene: Scene, rng: np.random.Generator) -> MovedObject | None:
    """Put the lower left corner of an object on a random pixel of road and scale it by the ground plane.

    Its lower right corner must be on road, too.

    None if none of the places that were tried has room for it.
    """
    before = donor.scale_px_m
    if before is None or not scene.has_road:
        return None
    x0, y0, x1, y1 = donor.box
    width = scene.size[0]
    road = scene.ids["road"]
    for pixel in rng.choice(scene.road_pixels, PLACES).tolist():
        row, left = divmod(pixel, width)
        closer = (scene.scale_px_m(left, row) or 0.0) / before
        for _ in range(3):  # the foot is in the middle of a box whose width depends on the distance there
            closer = (scene.scale_px_m(left + closer * (x1 - x0 - 1) / 2, row) or 0.0) / before
        size = round(closer * (x1 - x0)), round(closer * (y1 - y0))
        box = left, row + 1 - size[1], left + size[0], row + 1
        fits = min(size) > 0 and box[1] >= 0 and box[2] <= width and scene.labels[row, box[2] - 1] == road
        if CLOSER_LIMITS[0] <= closer <= CLOSER_LIMITS[1] and fits:
            patch = resized(cutout_of(donor, scene), box, closer)
            return MovedObject(patch, closer) if patch.mask.any() else None
    return None

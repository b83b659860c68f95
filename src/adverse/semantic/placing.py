"""Where an added object goes, and what of it is seen there."""

from __future__ import annotations

import numpy as np

from adverse.errors import MutationError
from adverse.semantic.painting import Patch, resized
from adverse.semantic.recipes import Recipe
from adverse.semantic.resources import Entity
from adverse.semantic.scenes import GROUND, Box, Mask, Scene

PLACE = ("x", "y", "width", "height", "closer")
"""The numbers of a recipe that say where a moved object stands; without them it stands where it stood."""


def placed(recipe: Recipe, donor: Entity, scene: Scene) -> Patch:
    """Return the cut-out of a donor where the recipe puts it, or say that it does not fit into the scene."""
    patch = Patch(donor.box, donor.alpha > 0, donor.rgb, donor.depth_m)
    if "x" in recipe.by_name:
        x, y, width, height, closer = (recipe.by_name.get(name, 0) for name in PLACE)
        box = int(x), int(y), int(x + width), int(y + height)
        _check_inside(box, donor, scene)
        return resized(patch, box, float(closer))
    _check_inside(donor.box, donor, scene)
    return patch


def visible_mask(patch: Patch, scene: Scene) -> Mask:
    """Return what of a patch is not hidden by what is nearer; the ground hides nothing that stands on it.

    Where the scene's depth is unknown the patch is seen; where its own is, its median counts.
    """
    if patch.depth_m is None or scene.depth_m is None:
        return patch.mask
    x0, y0, x1, y1 = patch.box
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

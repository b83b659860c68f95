"""Conformity: small named questions that an addition must answer with yes before it is made.

The first ones are asked of all objects of a class at once, by their index; the others look at the pixels of
one place. Each can be turned off by its name (`Options.off`), and every refusal is counted under it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from adverse.semantic.options import Options
from adverse.semantic.painting import Patch
from adverse.semantic.placing import visible_mask
from adverse.semantic.resources import Index
from adverse.semantic.scenes import Mask, Scene

Yes = NDArray[np.bool_]
LENGTH_M = {
    "person": 0.6,
    "bicycle": 1.8,
    "motorcycle": 2.2,
    "car": 4.5,
    "truck": 8.0,
    "bus": 12.0,
    "train": 20.0,
}
LENGTH_OF_OTHERS_M = 1.0
"""How far a thing may go on behind what is seen of it; of a car from behind one sees only its back."""


class Asked(NamedTuple):
    """What the questions to the index are about."""

    scene: Scene
    vanishing: tuple[float, float] | None
    class_name: str
    donors: Index
    options: Options


class Place(NamedTuple):
    """What the questions about one place are about: a cut-out at its place, its donor's light and depth."""

    scene: Scene
    class_name: str
    patch: Patch
    median_value: float
    depth_range_m: tuple[float, float] | None
    options: Options


def is_large_enough(asked: Asked) -> Yes:
    """Tell which boxes have a longest side of at least so many pixels; small things tell little."""
    least = asked.options.min_side_px.get(asked.class_name, 1)
    return np.asarray(asked.donors.side_px >= least)


def is_unoccluded(asked: Asked) -> Yes:
    """Tell which objects have nothing before them."""
    return ~asked.donors.occluded


def is_whole(asked: Asked) -> Yes:
    """Tell which objects are in one piece."""
    return np.asarray(asked.donors.largest_part >= asked.options.least_in_one_piece)


def is_of_same_frame(asked: Asked) -> Yes:
    """Tell which come from images of the scene's size, as from the same camera."""
    return np.asarray((asked.donors.frame_size == asked.scene.size).all(axis=1))


def has_same_perspective(asked: Asked) -> Yes:
    """Tell which come from images whose vanishing point is in the same cell as the scene's."""
    if asked.vanishing is None:
        return np.zeros(len(asked.donors.number), np.bool_)
    grid = np.array(asked.options.vanishing_grid)
    own = np.minimum(np.array(asked.vanishing) * grid, grid - 1).astype(np.int64)
    known = ~np.isnan(asked.donors.vanishing[:, 0])
    theirs = np.minimum(np.nan_to_num(asked.donors.vanishing) * grid, grid - 1).astype(np.int64)
    return np.asarray(known & (theirs == own).all(axis=1))


def stands_on_road(asked: Asked) -> Yes:
    """Tell which have the lower left corner of their visible box on visible road of the scene."""
    road = asked.scene.ids.get("road")
    width, height = asked.scene.size
    columns, rows = asked.donors.box[:, 0], asked.donors.box[:, 3] - 1
    inside = (columns < width) & (rows < height)
    found = asked.scene.labels[np.where(inside, rows, 0), np.where(inside, columns, 0)]
    return np.asarray(inside & (found == (-1 if road is None else road)))


def has_like_light(place: Place) -> bool:
    """Tell whether the median HSV value of an object is near that of what it would cover."""
    x0, y0, x1, y1 = place.patch.box
    covered = median_under(place.scene.value[y0:y1, x0:x1], place.patch.mask)
    return abs(covered - place.median_value) <= place.options.light_within


def is_apart(place: Place) -> bool:
    """Tell whether nothing whose pixels it shares is as far away as it is; else two would be in one place."""
    if place.depth_range_m is None or place.scene.depth_m is None:
        return False
    near, far = _extent(place.class_name, *place.depth_range_m)
    x0, y0, x1, y1 = place.patch.box
    here, depth_m = place.scene.instances[y0:y1, x0:x1], place.scene.depth_m
    for number in np.unique(here[place.patch.mask]).tolist():
        if number:
            thing = place.scene.things[number]
            left, top, right, bottom = thing.box
            own = place.scene.instances[top:bottom, left:right] == number
            depth = depth_m[top:bottom, left:right][own]
            known = depth[np.isfinite(depth)]
            if not known.size:
                return False
            begins, ends = _extent(place.scene.class_of(thing), *np.percentile(known, (5, 95)))
            if near <= ends and begins <= far:
                return False
    return True


def _extent(class_name: str | None, near: float, far: float) -> tuple[float, float]:
    """Return from where to where a thing reaches in depth, if what is seen of it begins and ends there."""
    return near, max(far, near + LENGTH_M.get(class_name or "", LENGTH_OF_OTHERS_M))


def is_visible(place: Place) -> bool:
    """Tell whether enough of it is seen from behind what is nearer."""
    seen = visible_mask(place.patch, place.scene)
    return int(seen.sum()) >= max(place.options.least_visible * int(place.patch.mask.sum()), 1)


INDEX_CHECKS: dict[str, Callable[[Asked], Yes]] = {
    "size": is_large_enough,
    "unoccluded": is_unoccluded,
    "whole": is_whole,
    "frame": is_of_same_frame,
    "perspective": has_same_perspective,
    "road": stands_on_road,
}
PLACE_CHECKS: dict[str, Callable[[Place], bool]] = {
    "light": has_like_light,
    "apart": is_apart,
    "visible": is_visible,
}


def median_under(value: NDArray[np.uint8], mask: Mask) -> float:
    """Return the median of the values (H,W) under a mask; the mean of the middle two of an even number.

    >>> median_under(np.array([[1, 2, 9]], np.uint8), np.array([[True, True, False]]))
    1.5
    """
    counts = cv2.calcHist([value], [0], mask.view(np.uint8), [256], [0, 256]).reshape(-1)
    below = np.cumsum(counts, dtype=np.int64)
    total = int(below[-1])
    low, high = np.searchsorted(below, [(total - 1) // 2, total // 2], side="right")
    return (int(low) + int(high)) / 2

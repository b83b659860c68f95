"""Conformity: small named questions that an addition must answer with yes before it is made.

The first ones are asked of all objects of a class at once, by their index; the others look at the pixels of
one place. Each can be turned off by its name (`Options.off`), and every refusal is counted under it.
`Options` is all that can be chosen about mutations, `Cell` where guided fuzzing wants one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from adverse.errors import MutationError, suggestion
from adverse.semantic.cutouts import surround
from adverse.semantic.painting import Patch
from adverse.semantic.placing import visible_mask
from adverse.semantic.resources import Index
from adverse.semantic.scenes import Mask, Scene

PAPER_CHECKS = ("size", "unoccluded", "whole", "frame", "perspective", "road", "light")
"""The conformity checks of the paper, in the order they are made."""
DEPTH_CHECKS = ("apart", "visible")
"""Checks of distance, made when `occlusion` is on."""
UNMOVED_CHECKS = frozenset({"frame", "perspective", "road"})
"""Those that ask about the place in its own image: they are not made of what moves over the ground."""
MOVED_CHECKS = frozenset({"standing", "height"})
"""Those that are made of what moves."""
LOG_CHECK = "log"
"""The check that a donor is not of the scene's own log."""


@dataclass(frozen=True)
class Cell:
    """Where a guided campaign wants a mutation; a field that is None asks for nothing.

    `position` is (column, row) of a `grid` of columns x rows laid over the image, and holds the middle of
    the box of what is added or changed; `size_px` is the range [low, high) of its longest side.
    """

    donor_class: str | None = None
    position: tuple[int, int] | None = None
    grid: tuple[int, int] = (4, 2)
    size_px: tuple[float, float] | None = None


@dataclass(frozen=True)
class Options:
    """How mutations are proposed. The defaults are the paper's; `off` names checks to leave out.

    `min_side_px` is the least longest side of the box of a donor, by class. `least_in_one_piece` is the share
    of its pixels that must hang together. `vanishing_grid` is columns x rows; `vanishing_within`, if
    given, is asked instead: how far vanishing points may be apart, as a share of width and height.
    `light_within` is the greatest difference of HSV values; `light_of` says of what: the medians of the
    object and of what it would cover, or the mean colours around it in both images, which do not refuse a
    dark car on a light road. `tries` bounds the candidates that are looked at pixel by pixel.

    The extensions: `occlusion` lets what is nearer hide what is added, and refuses what would be in the same
    place (by depth, else by where things meet the ground below the horizon). `body_only` repaints paint and
    leaves tyres, windows and lights alone. `shadow` darkens the ground under it, `feather_px` blends its edge
    inwards, `harmonise` fits its colours to the new surroundings: these three change the image alone. `moves`
    lets it stand elsewhere, scaled by the ground plane (needs depth or a horizon).
    """

    min_side_px: Mapping[str, int] = field(default_factory=lambda: {"car": 100, "person": 50})
    least_in_one_piece: float = 1.0
    vanishing_grid: tuple[int, int] = (2, 2)
    vanishing_within: float | None = None
    light_within: float = 5.0
    light_of: Literal["covered", "surroundings"] = "covered"
    off: frozenset[str] = frozenset()
    tries: int = 200
    occlusion: bool = False
    least_visible: float = 0.25
    shadow: bool = False
    feather_px: int = 0
    harmonise: bool = False
    moves: bool = False
    body_only: bool = False
    recoloured: tuple[str, ...] = ("car",)
    removed: tuple[str, ...] = ("car", "person")

    def __post_init__(self) -> None:
        checks = (*PAPER_CHECKS, *DEPTH_CHECKS, *sorted(MOVED_CHECKS), LOG_CHECK)
        for name in sorted(self.off):
            if name not in checks:
                raise MutationError("there is no such check", got=repr(name), fix=suggestion(name, checks))
        if min(self.vanishing_grid) < 1 or self.tries < 1 or self.feather_px < 0:
            got = f"vanishing_grid {self.vanishing_grid}, tries {self.tries}, feather_px {self.feather_px}"
            raise MutationError("an option is out of range", got=got, wanted="at least 1, 1 and 0")
        if self.vanishing_within is not None and not 0 < self.vanishing_within <= 1:
            got = f"vanishing_within {self.vanishing_within}"
            raise MutationError("an option is out of range", got=got, wanted="above 0, at most 1")


PRESETS: Mapping[str, Mapping[str, Any]] = {
    "paper": {},
    "realistic": {
        "vanishing_within": 0.05,
        "light_of": "surroundings",
        "light_within": 20.0,
        "occlusion": True,
        "shadow": True,
        "feather_px": 1,
        "harmonise": True,
        "body_only": True,
    },
}
"""Options by name: the paper's, and those that make scenes as people find them possible."""

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
MOST_HIGHER = 1.5
"""Seen from more than so many times as high, a car shows its roof instead of its side."""
LENGTH_OF_OTHERS_M = 1.0
"""How far a thing may go on behind what is seen of it; of a car from behind one sees only its back."""


class DonorCandidates(NamedTuple):
    """What the questions to the index are about."""

    scene: Scene
    vanishing: tuple[float, float] | None
    class_name: str
    donors: Index
    options: Options


class PlacedDonor(NamedTuple):
    """What the questions about one place are about: a cut-out at its place, its donor's light and depth."""

    scene: Scene
    class_name: str
    patch: Patch
    median_value: float
    around: tuple[float, float, float]
    """The mean colour of what is around it in its own image."""
    depth_range_m: tuple[float, float] | None
    options: Options


def is_large_enough(candidates: DonorCandidates) -> Yes:
    """Return which boxes have a longest side of at least so many pixels; small objects say little."""
    least = candidates.options.min_side_px.get(candidates.class_name, 1)
    return np.asarray(candidates.donors.side_px >= least)


def is_unoccluded(candidates: DonorCandidates) -> Yes:
    """Return which objects have nothing before them."""
    return ~candidates.donors.occluded


def is_whole(candidates: DonorCandidates) -> Yes:
    """Return which objects are in one piece."""
    return np.asarray(candidates.donors.largest_part >= candidates.options.least_in_one_piece)


def is_of_same_frame(candidates: DonorCandidates) -> Yes:
    """Return which come from images of the scene's size, as from the same camera."""
    return np.asarray((candidates.donors.frame_size == candidates.scene.size).all(axis=1))


def has_same_perspective(candidates: DonorCandidates) -> Yes:
    """Return which come from images whose vanishing point is in the same cell as the scene's, or near it."""
    if candidates.vanishing is None:
        return np.zeros(len(candidates.donors.number), np.bool_)
    within = candidates.options.vanishing_within
    if within is not None:
        apart = np.abs(candidates.donors.vanishing - np.array(candidates.vanishing))
        return np.asarray((apart <= within).all(axis=1))  # nan is never within
    grid = np.array(candidates.options.vanishing_grid)
    own = np.minimum(np.array(candidates.vanishing) * grid, grid - 1).astype(np.int64)
    has_point = ~np.isnan(candidates.donors.vanishing[:, 0])
    theirs = np.minimum(np.nan_to_num(candidates.donors.vanishing) * grid, grid - 1).astype(np.int64)
    return np.asarray(has_point & (theirs == own).all(axis=1))


def stands_on_road(candidates: DonorCandidates) -> Yes:
    """Return which have the lower left corner of their visible box on visible road of the scene."""
    road = candidates.scene.ids.get("road")
    width, height = candidates.scene.size
    columns, rows = candidates.donors.box[:, 0], candidates.donors.box[:, 3] - 1
    inside = (columns < width) & (rows < height)
    labels = candidates.scene.labels[np.where(inside, rows, 0), np.where(inside, columns, 0)]
    return np.asarray(inside & (labels == (-1 if road is None else road)))


def has_like_light(place: PlacedDonor) -> bool:
    """Return whether the light where an object would be is like that where it was."""
    if place.options.light_of == "surroundings":
        here, there = max(surround(place.scene, place.patch.box, None)), max(place.around)
    else:
        x0, y0, x1, y1 = place.patch.box
        here = median_under(place.scene.value[y0:y1, x0:x1], place.patch.mask)
        there = place.median_value
    return abs(here - there) <= place.options.light_within


def is_apart(place: PlacedDonor) -> bool:
    """Return whether nothing whose pixels it shares is as far away as it is: two cannot be in one place."""
    if place.depth_range_m is None or place.scene.depth_m is None:
        return _is_apart_on_the_ground(place)
    near, far = _extent(place.class_name, *place.depth_range_m)
    x0, y0, x1, y1 = place.patch.box
    here, depth_m = place.scene.instances[y0:y1, x0:x1], place.scene.depth_m
    for number in np.unique(here[place.patch.mask]).tolist():
        if number:
            thing = place.scene.things[number]
            left, top, right, bottom = thing.box
            own = place.scene.instances[top:bottom, left:right] == number
            depth = depth_m[top:bottom, left:right][own]
            finite = depth[np.isfinite(depth)]
            if not finite.size:
                return False
            begins, ends = _extent(place.scene.class_of(thing), *np.percentile(finite, (5, 95)))
            if near <= ends and begins <= far:
                return False
    return True


def _is_apart_on_the_ground(place: PlacedDonor) -> bool:
    """Return the same without depth: by the distances at which things meet the ground."""
    scene = place.scene
    x0, y0, x1, y1 = place.patch.box
    own = scene.distance_m(y1 - 1)
    if own is None:
        return False
    near, far = _extent(place.class_name, own, own)
    for number in np.unique(scene.instances[y0:y1, x0:x1][place.patch.mask]).tolist():
        if number:
            thing = scene.things[number]
            theirs = scene.distance_m(thing.box[3] - 1)
            if theirs is None:
                return False
            begins, ends = _extent(scene.class_of(thing), theirs, theirs)
            if near <= ends and begins <= far:
                return False
    return True


def _extent(class_name: str | None, near: float, far: float) -> tuple[float, float]:
    """Return from where to where a thing reaches in depth, if what is seen of it begins and ends there."""
    return near, max(far, near + LENGTH_M.get(class_name or "", LENGTH_OF_OTHERS_M))


def is_visible(place: PlacedDonor) -> bool:
    """Return whether enough of it is seen from behind what is nearer."""
    seen = visible_mask(place.patch, place.scene)
    return int(seen.sum()) >= max(place.options.least_visible * int(place.patch.mask.sum()), 1)


def stands_upright(candidates: DonorCandidates) -> Yes:
    """Return which stand upright on ground in their own image, at a distance that is known."""
    return np.asarray(candidates.donors.standing)


def is_seen_from_same_height(candidates: DonorCandidates) -> Yes:
    """Return which are seen by a camera about as high above the ground as the scene's."""
    height_m = candidates.scene.camera_height_m
    if height_m is None:
        return np.zeros(len(candidates.donors.number), np.bool_)
    ratio = candidates.donors.camera_height_m / height_m
    return np.asarray((ratio <= MOST_HIGHER) & (ratio >= 1 / MOST_HIGHER))  # nan is neither


INDEX_CHECKS: dict[str, Callable[[DonorCandidates], Yes]] = {
    "size": is_large_enough,
    "unoccluded": is_unoccluded,
    "whole": is_whole,
    "frame": is_of_same_frame,
    "perspective": has_same_perspective,
    "road": stands_on_road,
    "standing": stands_upright,
    "height": is_seen_from_same_height,
}
PLACE_CHECKS: dict[str, Callable[[PlacedDonor], bool]] = {
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

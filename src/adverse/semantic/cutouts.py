"""Cutting the objects out of a scene, with everything that the conformity checks need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from adverse.semantic.horizon import is_possible_height
from adverse.semantic.scenes import GROUND, Box, Mask, Scene, Thing

IN_FRONT = frozenset({"pole", "polegroup", "traffic sign", "traffic light"})
"""Classes without instances that often stand before something."""
LEAST_NEARER_M, LEAST_NEARER = 0.3, 0.03
"""By how much, in metres and as a share, a neighbour must be nearer before it hides something."""
LEAST_COVERING = 3
"""Pixels of its border at which something nearer must touch an object, or of it that must be hidden."""
GROUPS = "regions of several objects"
MIXED = "objects whose pixels have several labels"
UNNAMED = "objects of a class without a name"
VOID = "pixels of label {}, which has no name: they are not judged"


class Cutout(NamedTuple):
    """One object of a scene and where it came from; pixel arrays are those of its box."""

    scene: Scene
    thing: Thing
    alpha: NDArray[np.uint8]
    """(h,w): 255 where the object is visible."""
    rgb: NDArray[np.uint8]
    depth_m: NDArray[np.float32] | None
    occluded: bool
    components: int
    largest_part: float
    """The share of its pixels that its largest component has."""
    cut: bool
    """Whether it touches the border of the image, and so may go on beyond it."""
    median_value: float
    depth_range_m: tuple[float, float] | None
    nearness: float | None
    """One over the distance in metres of the ground at its foot."""
    standing: bool
    """Whether it stands upright on ground, as tall as a thing of its class may be."""
    scale_px_m: float | None
    """How many pixels a metre has at its foot."""
    surround: tuple[float, float, float]
    """The mean colour of what is around it."""
    polygon: NDArray[np.int32]
    """(N,2) x, y of the outline of its largest part, in pixels of the image."""


def cutouts(scene: Scene) -> tuple[list[Cutout], Counter[str]]:
    """Return the objects of a scene in the order of their numbers, and counts of what is left out."""
    notes: Counter[str] = Counter()
    things = sorted(scene.things.values())
    front = _front_regions(scene, {thing.label for thing in things}, notes)
    made = []
    for thing in things:
        if thing.mixed:
            notes[MIXED] += 1
        elif thing.label not in scene.classes:
            notes[UNNAMED] += 1
        else:
            made.append(_cutout(scene, thing, front))
    for label in scene.void:
        notes[VOID.format(label)] = int(np.count_nonzero(scene.labels == label))
    return made, notes


class _Regions(NamedTuple):
    """Parts of a scene that may stand before an object though they are none: their numbers and feet."""

    numbers: NDArray[np.int32]
    feet: NDArray[np.int64]


def _front_regions(scene: Scene, with_objects: set[int], notes: Counter[str]) -> _Regions | None:
    upright = [number for number, name in scene.classes.items() if name in IN_FRONT]
    group = np.isin(scene.labels, sorted(with_objects)) & (scene.instances == 0)
    if group.any():
        notes[GROUPS] += cv2.connectedComponents(group.astype(np.uint8))[0] - 1
    either = group | np.isin(scene.labels, upright) if upright else group
    if not either.any():
        return None
    _, numbers, stats, _ = cv2.connectedComponentsWithStats(either.astype(np.uint8), connectivity=8)
    return _Regions(numbers, stats[:, cv2.CC_STAT_TOP] + stats[:, cv2.CC_STAT_HEIGHT].astype(np.int64))


def _cutout(scene: Scene, thing: Thing, front: _Regions | None) -> Cutout:
    x0, y0, x1, y1 = thing.box
    inside = np.s_[y0:y1, x0:x1]
    mask = scene.instances[inside] == thing.instance
    depth = None if scene.depth_m is None else np.where(mask, scene.depth_m[inside], np.float32(np.nan))
    _, _, stats, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8), connectivity=8)
    parts = stats[1:, cv2.CC_STAT_AREA]
    ground = scene.ground
    scale = scene.scale_px_m((x0 + x1 - 1) / 2, y1 - 1)
    width, height = scene.size
    return Cutout(
        scene,
        thing,
        np.where(mask, np.uint8(255), np.uint8(0)),
        np.where(mask[..., None], scene.image[inside], np.uint8(0)),
        depth,
        _occluded(scene, thing, front),
        len(parts),
        float(parts.max() / parts.sum()),
        x0 == 0 or y0 == 0 or x1 == width or y1 == height,
        float(np.median(scene.value[inside][mask])),
        None if depth is None else _range(depth),
        ground.nearness((x0 + x1 - 1) / 2, y1 - 1) if ground is not None and ground.metric else None,
        scale is not None
        and scene.stands(thing)
        and is_possible_height(scene.class_of(thing), (y1 - y0) / scale),
        scale,
        surround(scene, thing.box, thing.instance),
        _polygon(mask, x0, y0),
    )


def surround(scene: Scene, box: Box, instance: int | None) -> tuple[float, float, float]:
    """Return the mean colour of a box made a quarter larger on each side, without an object's own pixels."""
    x0, y0, x1, y1 = _grown(box, (box[2] - box[0]) // 4 + 1, (box[3] - box[1]) // 4 + 1, scene.size)
    pixels = scene.image[y0:y1, x0:x1]
    if instance is not None:
        others = (scene.instances[y0:y1, x0:x1] != instance).astype(np.uint8)
        if not others.any():
            return (0.0, 0.0, 0.0)
        red, green, blue, _ = cv2.mean(pixels, mask=others)
    else:
        red, green, blue, _ = cv2.mean(pixels)
    return red, green, blue


def _grown(box: Box, by_x: int, by_y: int, size: tuple[int, int]) -> Box:
    x0, y0, x1, y1 = box
    return max(x0 - by_x, 0), max(y0 - by_y, 0), min(x1 + by_x, size[0]), min(y1 + by_y, size[1])


def _range(depth: NDArray[np.float32]) -> tuple[float, float] | None:
    """Return near and far of an object, without the twentieth at either end that may be of its edges."""
    finite = depth[np.isfinite(depth)]
    if not finite.size:
        return None
    near, far = np.percentile(finite, (5, 95))
    return float(near), float(far)


def _polygon(mask: Mask, x0: int, y0: int) -> NDArray[np.int32]:
    outlines, _ = cv2.findContours(mask.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    largest = max(outlines, key=lambda outline: (cv2.contourArea(outline), len(outline)))
    return largest.reshape(-1, 2).astype(np.int32) + np.array([x0, y0], np.int32)


def _occluded(scene: Scene, thing: Thing, front: _Regions | None) -> bool:
    """Return whether something stands before an object.

    By the layers of an annotation, where they are known: enough of the object is behind what is seen. By
    depth: its border has a neighbour that is nearer and is not ground. By the maps alone: it touches an
    object, a group, a pole or anything that stands up (a hedge, a fence, a wall) and meets the ground lower
    in the image, so nearer.
    """
    if scene.behind is not None:
        hidden = int(np.count_nonzero(scene.behind == thing.instance))
        return hidden >= max(LEAST_COVERING, thing.pixels // 100)
    x0, y0, x1, y1 = _grown(thing.box, 1, 1, scene.size)
    inside = np.s_[y0:y1, x0:x1]
    own = scene.instances[inside] == thing.instance
    cross = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]], np.uint8)
    ring = (cv2.dilate(own.astype(np.uint8), cross) > 0) & ~own
    if scene.depth_m is not None:
        return _nearer_around(scene, inside, scene.depth_m[inside], own, ring, cross)
    covering = ring & (scene.contact[inside] > thing.box[3]) & (scene.instances[inside] == 0)
    if int(covering.sum()) >= max(LEAST_COVERING, int(ring.sum()) // 100):
        return True
    others = np.unique(scene.instances[inside][ring])
    if any(scene.things[int(other)].box[3] > thing.box[3] for other in others if other):
        return True
    if front is None:
        return False
    touched = np.unique(front.numbers[inside][ring])
    return bool((front.feet[touched[touched > 0]] > thing.box[3]).any())


def _nearer_around(
    scene: Scene, inside: Any, depth_m: NDArray[np.float32], own: Mask, ring: Mask, cross: NDArray[np.uint8]
) -> bool:
    depth = np.nan_to_num(depth_m, nan=np.inf, posinf=np.inf)
    beside = cv2.erode(np.where(own, depth, np.float32(np.inf)), cross)
    ground = [number for number, name in scene.classes.items() if name in GROUND]
    upright = ring & ~np.isin(scene.labels[inside], ground)
    margin = np.maximum(LEAST_NEARER_M, LEAST_NEARER * np.where(np.isfinite(beside), beside, 0))
    with np.errstate(invalid="ignore"):
        nearer = upright & (depth < beside - margin)
    return int(nearer.sum()) >= max(3, int(ring.sum()) // 100)


def in_rows(scene: Scene, made: list[Cutout], notes: Counter[str]) -> Iterator[dict[str, Any]]:
    """Yield what is stored: a row for the frame itself (instance 0), then one for each object."""
    point = scene.vanishing_point
    shared = {
        "scene": scene.id,
        "log": scene.log_id,
        "vanishing_x": None if point is None else point.x,
        "vanishing_y": None if point is None else point.y,
        "frame_width": scene.size[0],
        "frame_height": scene.size[1],
        "horizon_row": scene.horizon,
        "camera_height_m": scene.camera_height_m,
    }
    yield {**shared, "instance": 0, "notes": dict(notes)}
    for cutout in made:
        near, far = cutout.depth_range_m or (None, None)
        yield {
            **shared,
            "instance": cutout.thing.instance,
            "class_name": scene.classes[cutout.thing.label],
            **dict(zip(("x0", "y0", "x1", "y1"), cutout.thing.box, strict=True)),
            "pixels": cutout.thing.pixels,
            "median_value": cutout.median_value,
            "occluded": cutout.occluded,
            "components": cutout.components,
            "largest_part": cutout.largest_part,
            "cut": cutout.cut,
            "depth_near_m": near,
            "depth_far_m": far,
            "nearness": cutout.nearness,
            "standing": cutout.standing,
            "scale_px_m": cutout.scale_px_m,
            **dict(zip(("around_r", "around_g", "around_b"), cutout.surround, strict=True)),
            "polygon": cutout.polygon.tobytes(),
            "alpha": cutout.alpha.tobytes(),
            "rgb": cutout.rgb.tobytes(),
            "depth_m": None if cutout.depth_m is None else cutout.depth_m.tobytes(),
        }

"""Doing what a recipe says: the same scene, recipe and resources always make the same bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from adverse.errors import MutationError, suggestion
from adverse.semantic import painting
from adverse.semantic.cutouts import surround
from adverse.semantic.placing import placed, visible_mask
from adverse.semantic.recipes import Recipe, added_class
from adverse.semantic.resources import Resources
from adverse.semantic.scenes import GROUND, Box, Mask, Scene, Thing

INPAINT_MARGIN_PX = 3
"""Edges of an object mix with what is around it, so a little more than it is painted over."""
INPAINT_RADIUS_PX = 5


@dataclass(frozen=True, eq=False)
class Mutated:
    """A mutated scene; `mask` (H,W) is where it differs in meaning, `touched` where pixels may differ.

    Outside `mask` no label and no instance changes; outside `touched` no pixel does. The two are equal but
    for a contact shadow, which falls beside what casts it.
    """

    scene: Scene
    mask: Mask
    touched: Mask
    instance: int | None = None
    """The number of the object that was added or changed."""
    extent: Box | None = None
    """The box of all of an added object, also of what is hidden."""
    mirrored: bool = False
    """Whether left and right are exchanged."""


def apply(recipe: Recipe, scene: Scene, resources: Resources) -> Mutated:
    """Mutate a scene; what the recipe asks for and the scene does not have is an error."""
    if recipe.base != scene.id:
        raise MutationError(
            "the recipe is for another scene",
            got=f"scene {scene.id!r}",
            wanted=f"scene {recipe.base!r}",
            fix="Give the scene that the recipe names as its base.",
        )
    act = MUTATIONS.get(recipe.mutation, _add if added_class(recipe.mutation) in scene.ids else None)
    if act is None:
        raise MutationError(
            "there is no such semantic mutation",
            got=repr(recipe.mutation),
            fix=suggestion(recipe.mutation, MUTATIONS),
        )
    made = act(recipe, scene, resources)
    named = replace(made.scene, id=f"{scene.id}+{recipe.key()[:12]}")
    return replace(made, scene=named)


def _change_color(recipe: Recipe, scene: Scene, _: Resources) -> Mutated:
    thing = _thing(recipe, scene)
    x0, y0, x1, y1 = thing.box
    own = scene.instances[y0:y1, x0:x1] == thing.instance
    image = scene.image.copy()
    part = image[y0:y1, x0:x1]
    shift, darker, richer = (int(_number(recipe, name)) for name in ("hue_shift", "darker", "richer"))
    pixels = part[own]
    paint = painting.body_paint(pixels) if recipe.by_name.get("body") else np.ones(len(pixels), np.bool_)
    if paint.any():
        pixels[paint] = painting.recoloured(pixels[paint], shift, darker, richer)
    part[own] = pixels
    mask = _in_frame(own, thing.box, scene)
    return Mutated(replace(scene, image=image), mask, mask, thing.instance)


def _add(recipe: Recipe, scene: Scene, resources: Resources) -> Mutated:
    if recipe.donor is None:
        raise MutationError("an added object needs a donor", where=recipe.to_json(), got="no donor")
    donor = resources.by_id(recipe.donor)
    label = scene.ids.get(donor.class_name)
    if label is None:
        raise MutationError(
            "the scene's data set has no such class",
            where=f"scene {scene.id!r}",
            got=repr(donor.class_name),
            wanted=f"one of {', '.join(sorted(scene.ids))}",
        )
    patch = placed(recipe, donor, scene)
    x0, y0, x1, y1 = patch.box
    inside = np.s_[y0:y1, x0:x1]
    seen = visible_mask(patch, scene) if recipe.by_name.get("occlusion") else patch.mask
    image, labels, instances = scene.image.copy(), scene.labels.copy(), scene.instances.copy()
    touched = mask = _in_frame(seen, patch.box, scene)
    if recipe.by_name.get("shadow"):
        touched = mask | _shade(image, patch, seen, scene)
    if recipe.by_name.get("harmonise"):
        fitted = painting.harmonised(patch.rgb, donor.surround, surround(scene, patch.box, None))
        patch = patch._replace(rgb=fitted)
    colours = patch.rgb
    if feather := int(recipe.by_name.get("feather_px", 0)):
        colours = painting.feathered(image[inside], patch, feather)
    number = fresh_instance(scene, label)
    np.copyto(image[inside], colours, where=seen[..., None])
    np.copyto(labels[inside], np.array(label, labels.dtype), where=seen)
    np.copyto(instances[inside], np.int32(number), where=seen)
    depth = None
    if scene.depth_m is not None:
        depth = scene.depth_m.copy()
        np.copyto(depth[inside], np.float32(np.nan) if patch.depth_m is None else patch.depth_m, where=seen)
    changed = replace(scene, image=image, labels=labels, instances=instances, depth_m=depth)
    return Mutated(changed, mask, touched, number, patch.box)


def removal_mask(scene: Scene, thing: Thing) -> Mask:
    """Return the pixels (H,W) that are painted over where an object is removed."""
    own = (scene.instances == thing.instance).astype(np.uint8)
    size = 2 * INPAINT_MARGIN_PX + 1
    return np.asarray(cv2.dilate(own, cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (size, size))) > 0)


def _remove(recipe: Recipe, scene: Scene, _: Resources) -> Mutated:
    """Paint an object over with what is around it; what is really behind it nobody knows, so it is void."""
    thing = _thing(recipe, scene)
    mask = removal_mask(scene, thing)
    grown = mask.astype(np.uint8)
    width, height = scene.size
    edge = 4 * INPAINT_RADIUS_PX
    x0, y0 = max(thing.box[0] - edge, 0), max(thing.box[1] - edge, 0)
    x1, y1 = min(thing.box[2] + edge, width), min(thing.box[3] + edge, height)
    inside = np.s_[y0:y1, x0:x1]
    image, labels, instances = scene.image.copy(), scene.labels.copy(), scene.instances.copy()
    part = np.ascontiguousarray(image[inside])
    image[inside] = cv2.inpaint(part, grown[inside], INPAINT_RADIUS_PX, cv2.INPAINT_TELEA)
    labels[mask] = void_label(scene)
    instances[mask] = 0
    depth = None if scene.depth_m is None else np.where(mask, np.float32(np.nan), scene.depth_m)
    changed = replace(scene, image=image, labels=labels, instances=instances, depth_m=depth)
    return Mutated(changed, mask, mask, thing.instance)


def _mirror(_recipe: Recipe, scene: Scene, _: Resources) -> Mutated:
    """Mirror left and right: everything that is known of the scene, its camera too."""
    camera = scene.camera
    if camera is not None:
        camera = replace(camera, cx=camera.width - 1 - camera.cx)  # pixel centres are at whole numbers
    changed = replace(
        scene,
        image=_flipped(scene.image),
        labels=_flipped(scene.labels),
        instances=_flipped(scene.instances),
        depth_m=None if scene.depth_m is None else _flipped(scene.depth_m),
        behind=None if scene.behind is None else _flipped(scene.behind),
        camera=camera,
    )
    everything = np.ones(scene.labels.shape, np.bool_)
    return Mutated(changed, everything, everything, mirrored=True)


MUTATIONS: dict[str, Callable[[Recipe, Scene, Resources], Mutated]] = {
    "add_car": _add,
    "add_person": _add,
    "change_color": _change_color,
    "mirror_scene": _mirror,
    "remove_object": _remove,
}


def fresh_instance(scene: Scene, label: int) -> int:
    """Return the lowest free instance number of a class, counted as Cityscapes does: class * 1000 + 1 on."""
    number = label * 1000 + 1
    while number in scene.things:
        number += 1
    return number


def void_label(scene: Scene) -> int:
    """Return a label that is not evaluated: the lowest without a name."""
    return next(number for number in range(len(scene.classes) + 1) if number not in scene.classes)


def _thing(recipe: Recipe, scene: Scene) -> Thing:
    number = int(_number(recipe, "instance"))
    thing = scene.things.get(number)
    if thing is None:
        raise MutationError(
            "the object to change has no pixel in the scene",
            where=f"scene {scene.id!r}",
            got=f"instance {number}",
            wanted=f"one of its {len(scene.things)} objects",
        )
    return thing


def _number(recipe: Recipe, name: str) -> float:
    if name not in recipe.by_name:
        raise MutationError("a recipe is missing a number", where=recipe.to_json(), got=f"no {name}")
    return recipe.by_name[name]


def _in_frame(mask: Mask, box: tuple[int, int, int, int], scene: Scene) -> Mask:
    x0, y0, x1, y1 = box
    whole = np.zeros(scene.labels.shape, np.bool_)
    whole[y0:y1, x0:x1] = mask
    return whole


def _shade(image: NDArray[np.uint8], patch: painting.Patch, seen: Mask, scene: Scene) -> Mask:
    """Darken the ground around the foot of what is added; return where."""
    shaded = np.zeros(scene.labels.shape, np.bool_)
    shadow = painting.contact_shadow(patch, scene.size)
    x0, y0, x1, y1 = shadow.box
    inside = np.s_[y0:y1, x0:x1]
    ground = [number for number, name in scene.classes.items() if name in GROUND]
    covered = _in_frame(seen, patch.box, scene)[inside]
    where = np.isin(scene.labels[inside], ground) & (shadow.light < 1) & ~covered
    dark = np.rint(image[inside] * shadow.light[..., None]).astype(np.uint8)
    np.copyto(image[inside], dark, where=where[..., None])
    shaded[inside] = where
    return shaded


def _flipped(array: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(array[:, ::-1])

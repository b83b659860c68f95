"""Deciding on a mutation: which object, where, with which numbers; bounded, and every refusal counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from adverse.errors import MutationError, suggestion
from adverse.semantic.checks import (
    DEPTH_CHECKS,
    INDEX_CHECKS,
    LOG_CHECK,
    MOVED_CHECKS,
    PLACE_CHECKS,
    UNMOVED_CHECKS,
    Cell,
    DonorCandidates,
    Options,
    PlacedDonor,
)
from adverse.semantic.painting import acting, body_paint
from adverse.semantic.placing import cutout_of, moved
from adverse.semantic.recipes import Number, Recipe, Rejected, added_class
from adverse.semantic.resources import Entity, Resources
from adverse.semantic.scenes import Scene, Thing

HUE_SHIFT = (45, 135)
"""Half degrees: a quarter turn to three quarters."""
DARKER = (20, 50)
RICHER = (10, 40)
NO_OBJECT = "no object of the class"
NO_CLASS = "no such class in the data set"
NO_ROAD = "no road"
NO_POINT = "no vanishing point"
NO_DEPTH = "neither depth nor horizon"
NO_GROUND = "no ground plane"
OWN_LOG = "from the scene's own log"
OUTSIDE = "outside the frame"
CUT = "cut by the border"
NO_ROOM = "no room where it was moved to"
OTHER_CELL = "outside the wanted cell"
TRIES = "tries used up"


def propose(
    kind: str,
    scene: Scene,
    resources: Resources,
    rng: np.random.Generator,
    options: Options,
    *,
    where: Cell | None = None,
    counted: Counter[str] | None = None,
) -> Recipe | Rejected:
    """Draw a mutation of a kind for a scene that passes all checks, or say why none was found.

    `where` asks for a donor class, a place or a size. `counted` gets the refusals on the way to a recipe
    too. No more than `options.tries` candidates are looked at pixel by pixel.
    """
    decide = KINDS.get(kind, _add if added_class(kind) in scene.ids else None)
    if decide is None:
        raise MutationError("there is no such semantic mutation", got=repr(kind), fix=suggestion(kind, KINDS))
    refused: Counter[str] = Counter()
    made = decide(kind, scene, resources, rng, options, where or Cell(), refused)
    if counted is not None:
        counted.update(refused)
    if made is not None:
        return made
    most = max(refused, key=lambda reason: (refused[reason], reason)) if refused else NO_OBJECT
    return Rejected(most, dict(refused))


def _add(
    kind: str,
    scene: Scene,
    resources: Resources,
    rng: np.random.Generator,
    options: Options,
    where: Cell,
    refused: Counter[str],
) -> Recipe | None:
    class_name = added_class(kind) or ""
    index = resources.index(class_name)
    vanishing = resources.vanishing(scene)
    candidates = DonorCandidates(scene, vanishing, class_name, index, options)
    impossible = _impossible(candidates, where)
    if impossible is not None:
        refused[impossible] += 1
        return None
    names, first = _first_refusals(candidates, where)
    order = rng.permutation(len(index.number))
    looked = 0
    for at, position in enumerate(order.tolist()):
        if first[position] >= 0:
            continue
        if looked == options.tries:
            refused[TRIES] += 1
            break
        looked += 1
        donor = resources.entity(int(index.number[position]))
        numbers, reason = _accepted(donor, scene, rng, options, where)
        if reason is None:
            _count(refused, names, first[order[:at]])
            return Recipe(kind, scene.id, donor.id, numbers)
        refused[reason] += 1
    _count(refused, names, first)
    return None


def _impossible(candidates: DonorCandidates, where: Cell) -> str | None:
    """Return why nothing at all can be added, if so."""
    scene, options = candidates.scene, candidates.options
    skipped = options.off | (UNMOVED_CHECKS if options.moves else set())
    reasons = {
        NO_CLASS: candidates.class_name not in scene.ids,
        NO_OBJECT: not len(candidates.donors.number)
        or where.donor_class not in (None, candidates.class_name),
        NO_ROAD: "road" not in options.off and not scene.has_road,
        NO_POINT: "perspective" not in skipped and candidates.vanishing is None,
        NO_DEPTH: options.occlusion and scene.depth_m is None and scene.horizon is None,
        NO_GROUND: options.moves and scene.ground is None,
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def _first_refusals(candidates: DonorCandidates, where: Cell) -> tuple[list[str], NDArray[np.int64]]:
    """Return names of refusals, and for each object the number of the first that applies to it, or -1."""
    index, scene, options = candidates.donors, candidates.scene, candidates.options
    skipped = options.off | (UNMOVED_CHECKS if options.moves else MOVED_CHECKS)
    refusals = {name: ~check(candidates) for name, check in INDEX_CHECKS.items() if name not in skipped}
    refusals[OWN_LOG] = np.asarray(index.scene == scene.id)
    if LOG_CHECK not in options.off:
        refusals[OWN_LOG] = refusals[OWN_LOG] | (index.log == scene.log_id)
    if not options.moves:
        refusals[OUTSIDE] = np.asarray((index.box[:, 2:] > scene.size).any(axis=1))
        refusals[OTHER_CELL] = ~_in_cell(index.box, where, scene.size)
    else:
        refusals[CUT] = index.cut
    first = np.full(len(index.number), -1)
    for number, refusal in reversed(list(enumerate(refusals.values()))):
        first[refusal] = number
    return list(refusals), first


def _accepted(
    donor: Entity, scene: Scene, rng: np.random.Generator, options: Options, where: Cell
) -> tuple[tuple[tuple[str, Number], ...], str | None]:
    """Return the numbers of an addition, and the reason against it, if there is one."""
    numbers: dict[str, Number] = {}
    patch = cutout_of(donor, scene)
    reach = donor.depth_range_m if patch.depth_m is not None else None
    if options.moves:
        move = moved(donor, scene, rng)
        if move is None:
            return (), NO_ROOM
        patch, closer = move
        x0, y0, x1, y1 = patch.box
        numbers |= {"x": x0, "y": y0, "width": x1 - x0, "height": y1 - y0, "closer": closer}
        reach = None if reach is None else (reach[0] / closer, reach[1] / closer)
        if max(x1 - x0, y1 - y0) < options.min_side_px.get(donor.class_name, 1) and "size" not in options.off:
            return (), "size"
        if not _in_cell(np.array([patch.box]), where, scene.size)[0]:
            return (), OTHER_CELL
    place = PlacedDonor(scene, donor.class_name, patch, donor.median_value, donor.surround, reach, options)
    skipped = options.off if options.occlusion else options.off | set(DEPTH_CHECKS)
    for name, check in PLACE_CHECKS.items():
        if name not in skipped and not check(place):
            return (), name
    switches = {
        "occlusion": int(options.occlusion),
        "shadow": int(options.shadow),
        "feather_px": options.feather_px,
        "harmonise": int(options.harmonise),
    }
    numbers |= {name: value for name, value in switches.items() if value}
    return tuple(numbers.items()), None


def _change_color(
    kind: str,
    scene: Scene,
    _: Resources,
    rng: np.random.Generator,
    options: Options,
    where: Cell,
    refused: Counter[str],
) -> Recipe | None:
    least = {} if "size" in options.off else options.min_side_px
    thing = _drawn_thing(scene, options.recoloured, rng, where, refused, least)
    if thing is None:
        return None
    ranges = {"hue_shift": HUE_SHIFT, "darker": DARKER, "richer": RICHER}
    drawn = {name: int(rng.integers(low, high + 1)) for name, (low, high) in ranges.items()}
    x0, y0, x1, y1 = thing.box
    own = scene.instances[y0:y1, x0:x1] == thing.instance
    pixels = scene.image[y0:y1, x0:x1][own]
    numbers = acting(pixels[body_paint(pixels)] if options.body_only else pixels, **drawn)
    body = [("body", 1)] if options.body_only else []
    named = [("instance", thing.instance), *zip(ranges, numbers, strict=True), *body]
    return Recipe(kind, scene.id, None, tuple(named))


def _remove(
    kind: str,
    scene: Scene,
    _: Resources,
    rng: np.random.Generator,
    options: Options,
    where: Cell,
    refused: Counter[str],
) -> Recipe | None:
    thing = _drawn_thing(scene, options.removed, rng, where, refused)
    return None if thing is None else Recipe(kind, scene.id, None, (("instance", thing.instance),))


def _mirror(
    kind: str,
    scene: Scene,
    _: Resources,
    _rng: np.random.Generator,
    _options: Options,
    _where: Cell,
    _refused: Counter[str],
) -> Recipe | None:
    return Recipe(kind, scene.id)


KINDS: dict[str, Callable[..., Recipe | None]] = {
    "add_car": _add,
    "add_person": _add,
    "change_color": _change_color,
    "mirror_scene": _mirror,
    "remove_object": _remove,
}
"""The semantic mutations there are; besides, add_ and any other class of the data set."""


def _drawn_thing(
    scene: Scene,
    classes: tuple[str, ...],
    rng: np.random.Generator,
    where: Cell,
    refused: Counter[str],
    min_side_px: Mapping[str, int] = MappingProxyType({}),
) -> Thing | None:
    wanted = set(classes) if where.donor_class is None else {where.donor_class} & set(classes)
    things = [
        thing
        for thing in sorted(scene.things.values())
        if scene.class_of(thing) in wanted and not thing.mixed
    ]
    if not things:
        refused[NO_OBJECT] += 1
        return None
    large = [thing for thing in things if _side_px(thing) >= min_side_px.get(scene.class_of(thing) or "", 1)]
    fitting = _in_cell(np.array([thing.box for thing in large]).reshape(-1, 4), where, scene.size)
    there = [thing for thing, fits in zip(large, fitting.tolist(), strict=True) if fits]
    refused["size"] += len(things) - len(large)
    refused[OTHER_CELL] += len(large) - len(there)
    refused += Counter()  # without those that are 0
    return there[int(rng.integers(len(there)))] if there else None


def _side_px(thing: Thing) -> int:
    x0, y0, x1, y1 = thing.box
    return max(x1 - x0, y1 - y0)


def _in_cell(boxes: NDArray[np.int32], where: Cell, size: tuple[int, int]) -> NDArray[np.bool_]:
    """Return which boxes have their middle in the wanted cell and their longest side in the wanted range."""
    fits = np.ones(len(boxes), np.bool_)
    if where.position is not None:
        middle = (boxes[:, :2] + boxes[:, 2:]) / 2
        cell = np.minimum(middle * where.grid / size, np.array(where.grid) - 1).astype(np.int64)
        fits &= (cell == where.position).all(axis=1)
    if where.size_px is not None:
        side = (boxes[:, 2:] - boxes[:, :2]).max(axis=1)
        fits &= (side >= where.size_px[0]) & (side < where.size_px[1])
    return fits


def _count(refused: Counter[str], names: list[str], first: NDArray[np.int64]) -> None:
    for number, count in enumerate(np.bincount(first[first >= 0], minlength=len(names)).tolist()):
        if count:
            refused[names[number]] += count

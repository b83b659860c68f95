"""Verdicts about objects: what a SUT gets wrong about one thing, whatever the score of the whole image says.

Four questions are asked of each test: was the added object found, is everything that was found before and can
still be seen found again, and does something appear where nothing is. An object counts as seen by a detector
that gives it a box of its class, at or above the threshold, with an IoU of at least a half, one box for one
object; by a segmenter that labels half of its pixels right. All doubt is in favour of the SUT: a partly
hidden object may be boxed as far as it is visible or whole, a segmenter misses or loses an object only when
less than a quarter of it is labelled, and what appears must lie clear of all objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

import cv2
import numpy as np
from numpy.typing import NDArray

from adverse.fuzz.scoring import OVERLAP, VOID, Judge
from adverse.semantic import Mutated, Scene
from adverse.types import Detections, LabelMap

Kind = Literal["missed", "lost", "phantom"]
KINDS: tuple[Kind, ...] = get_args(Kind)
WORDS: Mapping[Kind, str] = {
    "missed": "the added {class_name} was not found",
    "lost": "a {class_name} that was found before is lost",
    "phantom": "a {class_name} appeared where there is none",
}
FOUND = OVERLAP
"""The least overlap of an object that is found."""
STILL_FOUND = 0.25
"""The IoU or share of its pixels below which a segmenter has not found an object at all, or lost it."""
CLEAR = 0.1
"""The most of a box that may lie on objects where a detection is to be of nothing."""
UNKNOWN = 0.5
"""The share of a box without labels from which on nobody knows what is there."""
SMALLEST = 0.001
"""The smallest region, as a share of the image, that a segmenter is told off for."""
NEAR_PX = 4
"""How far, in pixels, a wrong region must lie from an object of its class."""
OBJECT_CLASSES = frozenset(
    {"person", "rider", "car", "truck", "bus", "train", "motorcycle", "bicycle", "caravan", "trailer"}
)
"""Classes of objects, also where no instance of them is in the scene."""

Box = tuple[int, int, int, int]


@dataclass(frozen=True)
class ObjectVerdict:
    """What a SUT gets wrong about one object; `instance` is its number in the mutated scene."""

    kind: Kind
    class_name: str
    box: Box
    overlap: float
    """How much of it the SUT still sees: IoU, or for segmenters the share of its pixels; 0 for a phantom."""
    instance: int | None = None
    visible: float | None = None
    """The share of its pixels that can still be seen."""

    @property
    def words(self) -> str:
        """The verdict as a sentence."""
        seen = (
            "" if self.visible is None or self.visible == 1 else f", {self.visible:.0%} of it still visible"
        )
        return WORDS[self.kind].format(class_name=self.class_name) + seen

    def plain(self) -> dict[str, Any]:
        """Return the verdict as the log holds it."""
        return {
            "kind": self.kind,
            "class": self.class_name,
            "box": list(self.box),
            "overlap": self.overlap,
            "instance": self.instance,
            "visible": self.visible,
        }

    @staticmethod
    def read(data: Mapping[str, Any]) -> ObjectVerdict:
        """Return the verdict that `plain` wrote."""
        x0, y0, x1, y1 = data["box"]
        facts = data["overlap"], data["instance"], data["visible"]
        return ObjectVerdict(data["kind"], data["class"], (x0, y0, x1, y1), *facts)


class Phantom(NamedTuple):
    """Something that a SUT sees where nothing is."""

    class_name: str
    box: Box


@dataclass(frozen=True)
class Sightings:
    """What a SUT sees of the objects of a scene, by instance, and what it sees where nothing is."""

    overlap: Mapping[int, float] = field(default_factory=dict)
    phantoms: tuple[Phantom, ...] = ()

    @property
    def found(self) -> frozenset[int]:
        """The objects that are found."""
        return frozenset(instance for instance, value in self.overlap.items() if value >= FOUND)

    def phantom_at(self, class_name: str, box: Box) -> bool:
        """Tell whether something of a class is seen there where nothing is."""
        return any(name == class_name and _meet(box, other) for name, other in self.phantoms)

    def plain(self) -> dict[str, Any]:
        """Return the sightings as the log holds them."""
        return {
            "overlap": {str(instance): value for instance, value in self.overlap.items()},
            "phantoms": [[class_name, list(box)] for class_name, box in self.phantoms],
        }

    @staticmethod
    def read(data: Mapping[str, Any]) -> Sightings:
        """Return the sightings that `plain` wrote."""
        phantoms = tuple(Phantom(name, tuple(box)) for name, box in data["phantoms"])
        return Sightings({int(number): value for number, value in data["overlap"].items()}, phantoms)


@dataclass(frozen=True, eq=False)
class View:
    """A scene as SUTs are asked about it.

    `ignored` are objects that do not count, `added` is the one that was put in, `extents` has further boxes
    by which an object may be found: that of all of it, where something stands before it.
    """

    scene: Scene
    ignored: frozenset[int] = frozenset()
    added: int | None = None
    extents: Mapping[int, Box] = field(default_factory=dict)
    removable: tuple[str, ...] = ()
    """Classes whose objects the score is also wanted without."""


def view_of(made: Mutated, base: Scene, *, remnant_share: float) -> View:
    """Return a mutated scene with the remnants of what is hidden now left out of the truth.

    A remnant shows less than that share of the pixels that it showed before.
    """
    shares = visible_shares(base, made.scene)
    added = made.instance if made.instance in made.scene.things and made.instance not in base.things else None
    extents = {
        instance: base.things[instance].box
        for instance, share in shares.items()
        if share < 1 and base.size == made.scene.size
    }
    if added is not None and made.extent is not None:
        extents[added] = made.extent
    hidden = frozenset(instance for instance, share in shares.items() if share < remnant_share)
    return View(made.scene, hidden, added, extents)


def least_overlap(task: str) -> float:
    """Return the overlap below which an object is lost."""
    return STILL_FOUND if task == "segmentation" else FOUND


def visible_shares(base: Scene, changed: Scene) -> dict[int, float]:
    """Return how much of each object of a base can still be seen in the changed scene, 0 to 1."""
    return {
        instance: min(changed.things[instance].pixels / thing.pixels, 1.0)
        if instance in changed.things
        else 0.0
        for instance, thing in base.things.items()
    }


def verdicts_on(
    made: Mutated, base: Scene, before: Sightings, after: Sightings, *, visible_share: float, task: str
) -> tuple[ObjectVerdict, ...]:
    """Return what a SUT got wrong, given what it saw of the base and of the mutated scene."""
    scene = made.scene
    found: list[ObjectVerdict] = []
    added = made.instance
    least = least_overlap(task)
    if added is not None and added not in base.things and after.overlap.get(added, 1.0) < least:
        thing = scene.things[added]
        name = scene.class_of(thing) or ""
        found.append(ObjectVerdict("missed", name, thing.box, after.overlap[added], added))
    shares = visible_shares(base, scene)
    for instance, overlap in before.overlap.items():
        enough = shares.get(instance, 0.0) >= visible_share
        if overlap >= FOUND and enough and after.overlap.get(instance, 1.0) < least:
            thing = scene.things[instance]
            facts = after.overlap[instance], instance, shares[instance]
            found.append(ObjectVerdict("lost", scene.class_of(thing) or "", thing.box, *facts))
    earlier = before.phantoms
    if made.mirrored:
        width = scene.size[0]
        earlier = tuple(Phantom(name, (width - b[2], b[1], width - b[0], b[3])) for name, b in earlier)
    for phantom in after.phantoms:
        same = [other.box for other in earlier if other.class_name == phantom.class_name]
        if not any(_meet(phantom.box, box) for box in same):
            found.append(ObjectVerdict("phantom", phantom.class_name, phantom.box, 0.0))
    return tuple(found)


def seen_by_detector(
    view: View, detections: Detections, names: Sequence[str], classes: Sequence[str], threshold: float
) -> Sightings:
    """Return what a detector sees: `names` are its detections' classes, `classes` those it looks for."""
    scene = view.scene
    objects = [thing for thing in sorted(scene.things.values()) if scene.class_of(thing) in classes]
    overlap = {thing.instance: 0.0 for thing in objects}
    taken: set[int] = set()
    nothing: list[Phantom] = []
    for row in np.argsort(-detections.scores, kind="stable").tolist():
        if detections.scores[row] < threshold:
            break
        box = detections.boxes[row].astype(np.float64)
        best, best_overlap = None, FOUND
        for thing in objects:
            if thing.instance in taken or scene.class_of(thing) != names[row]:
                continue
            boxes = [thing.box, *([view.extents[thing.instance]] if thing.instance in view.extents else [])]
            value = max(_iou(box, other) for other in boxes)
            if value >= best_overlap:
                best, best_overlap = thing.instance, value
        if best is not None:
            taken.add(best)
            overlap[best] = best_overlap
        elif (clear := _clear_box(scene, box)) is not None:
            nothing.append(Phantom(names[row], clear))
    return Sightings(overlap, tuple(nothing))


def seen_by_segmenter(view: View, answer: LabelMap, judge: Judge) -> Sightings:
    """Return what a segmenter sees: the share of each object's pixels; of an added one its mask's IoU.

    The IoU counts what the segmenter gives the added object's class beside it, within a tenth of its size,
    and is not of that class. Objects that are judged as what is no object (background) are left out.
    """
    scene = view.scene
    said = judge.answer[answer.labels]
    classes = _object_classes(scene, judge)
    overlap: dict[int, float] = {}
    for thing in sorted(scene.things.values()):
        wanted = int(judge.truth[thing.label])
        if wanted not in classes or wanted not in judge.answer:
            continue
        x0, y0, x1, y1 = thing.box
        own = scene.instances[y0:y1, x0:x1] == thing.instance
        right = int(np.count_nonzero(said[y0:y1, x0:x1][own] == wanted))
        beside = 0
        if thing.instance == view.added:
            grow_x, grow_y = (x1 - x0) // 10 + 1, (y1 - y0) // 10 + 1
            around = np.s_[max(y0 - grow_y, 0) : y1 + grow_y, max(x0 - grow_x, 0) : x1 + grow_x]
            true = judge.truth[scene.labels[around]]
            beside = int(np.count_nonzero((said[around] == wanted) & (true != wanted) & (true != VOID)))
        overlap[thing.instance] = right / (thing.pixels + beside)
    return Sightings(overlap, tuple(_phantom_regions(scene, said, judge, classes)))


def _object_classes(scene: Scene, judge: Judge) -> dict[int, str]:
    """Return the judged classes that only objects have, and what they are called."""
    objects = OBJECT_CLASSES | {scene.class_of(thing) for thing in scene.things.values()}
    others = {int(judge.truth[label]) for label, name in scene.classes.items() if name not in objects}
    named = {int(judge.truth[label]): name for label, name in scene.classes.items() if name in objects}
    return {number: name for number, name in named.items() if number not in {*others, VOID}}


def _phantom_regions(
    scene: Scene, said: NDArray[np.uint8], judge: Judge, classes: Mapping[int, str]
) -> Iterable[Phantom]:
    """Yield regions of a class of objects that lie clear of all objects."""
    if not classes:
        return
    true = judge.truth[scene.labels]
    is_object = np.isin(true, list(classes))
    wrong = np.isin(said, list(classes)) & ~is_object & (true != VOID)
    least = SMALLEST * wrong.size
    for number, count in enumerate(np.bincount(said[wrong], minlength=1).tolist()):
        if count < least:
            continue
        parts, regions, stats, _ = cv2.connectedComponentsWithStats(
            (wrong & (said == number)).astype(np.uint8), connectivity=8
        )
        for part in range(1, parts):
            x, y, width, height, area = stats[part].tolist()
            if area < least:
                continue
            top, left = max(y - NEAR_PX, 0), max(x - NEAR_PX, 0)
            around = np.s_[top : y + height + NEAR_PX, left : x + width + NEAR_PX]
            size = 2 * NEAR_PX + 1
            grown = cv2.dilate((regions[around] == part).astype(np.uint8), np.ones((size, size), np.uint8))
            if not (is_object[around] & (grown > 0)).any():
                yield Phantom(classes[number], (x, y, x + width, y + height))


def _clear_box(scene: Scene, box: NDArray[np.float64]) -> Box | None:
    """Return a box in whole pixels of the image if it lies clear of all objects; None if not."""
    width, height = scene.size
    x0, y0 = int(np.clip(np.floor(box[0]), 0, width - 1)), int(np.clip(np.floor(box[1]), 0, height - 1))
    x1, y1 = int(np.clip(np.ceil(box[2]), x0 + 1, width)), int(np.clip(np.ceil(box[3]), y0 + 1, height))
    labels = scene.labels[y0:y1, x0:x1]
    objects = [number for number, name in scene.classes.items() if name in OBJECT_CLASSES]
    on_objects = (scene.instances[y0:y1, x0:x1] > 0) | np.isin(labels, objects)
    unknown = ~np.isin(labels, list(scene.classes))
    clear = float(on_objects.mean()) < CLEAR and float(unknown.mean()) < UNKNOWN
    return (x0, y0, x1, y1) if clear else None


def _iou(box: NDArray[np.float64], other: Sequence[float]) -> float:
    wide = min(box[2], other[2]) - max(box[0], other[0])
    high = min(box[3], other[3]) - max(box[1], other[1])
    if wide <= 0 or high <= 0:
        return 0.0
    area = (box[2] - box[0]) * (box[3] - box[1]) + (other[2] - other[0]) * (other[3] - other[1])
    return float(wide * high / (area - wide * high))


def _meet(box: Box, other: Box) -> bool:
    return min(box[2], other[2]) > max(box[0], other[0]) and min(box[3], other[3]) > max(box[1], other[1])

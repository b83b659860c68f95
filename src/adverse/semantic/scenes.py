"""A scene: an image and what every pixel of it is, as one frozen value that mutations map to another.

Instances are numbers that tell objects apart, 0 where there is none; the class of an object is the label of
its pixels. A label without a name is void: it is not evaluated. A scene stands on a plane. For a pinhole
camera, 1/z of the points of a plane is a*u + b*v + c at column u and row v, so the size of a thing that is
moved over the ground scales as that number does, and no camera matrix is needed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from adverse.content import digest
from adverse.errors import DataError
from adverse.semantic.contact import CAMERA_HEIGHT_M, FOCAL_LENGTHS, contact_rows, distance_m
from adverse.semantic.horizon import EyeLevel, StandingThing, eye_level, stands_upright
from adverse.semantic.vanishing import VanishingPoint, vanishing_point
from adverse.types import Camera, Dataset, Depth, Frame, Image, Truth

LEAST_PIXELS = 50
MOST_PIXELS = 20_000
"""Road pixels that are looked at; more tell nothing new."""
OUTLIER = 3.0
"""In robust standard deviations."""
POINT_SPREAD = 0.06
"""By what share of the height vanishing points of photographs miss the horizon."""


class GroundPlane(NamedTuple):
    """At column u and row v a*u + b*v + c is 1/z if `metric`, else how many pixels a metre has there."""

    a: float
    b: float
    c: float
    metric: bool

    def nearness(self, u: float, v: float) -> float:
        """Return that number where the ground is seen at column u and row v; above the horizon 0 or less."""
        return self.a * u + self.b * v + self.c


def ground_plane(
    road: NDArray[np.bool_], depth_m: NDArray[np.float32] | None, level: EyeLevel | None
) -> GroundPlane | None:
    """Fit the plane to the depth of the road (H,W); without depth take a level ground below the horizon.

    >>> depth = np.repeat(1 / (np.arange(1, 21, dtype=np.float32)[:, None] * 0.01), 20, axis=1)
    >>> plane = ground_plane(np.ones((20, 20), np.bool_), depth, None)
    >>> round(plane.nearness(3, 9), 6), plane.metric
    (0.1, True)
    """
    fitted = None if depth_m is None else _fitted(road, depth_m)
    if fitted is not None or level is None:
        return fitted
    slope = 1 / level.camera_height_m
    return GroundPlane(0.0, slope, -slope * level.horizon_row, metric=False)


def _fitted(road: NDArray[np.bool_], depth_m: NDArray[np.float32]) -> GroundPlane | None:
    rows, columns = np.nonzero(road & np.isfinite(depth_m) & (depth_m > 0))
    if len(rows) < LEAST_PIXELS:
        return None
    step = max(len(rows) // MOST_PIXELS, 1)
    rows, columns = rows[::step], columns[::step]
    nearness = 1 / depth_m[rows, columns].astype(np.float64)
    terms = np.stack([columns, rows, np.ones(len(rows))], axis=1).astype(np.float64)
    inliers = np.ones(len(rows), np.bool_)
    plane = np.zeros(3)
    for _ in range(3):  # what is no road, or wrongly measured, falls out
        plane[:] = np.linalg.lstsq(terms[inliers], nearness[inliers], rcond=None)[0]
        off = np.abs(terms @ plane - nearness)
        inliers = off <= max(OUTLIER * 1.4826 * float(np.median(off)), 1e-6)
    a, b, c = (float(value) for value in plane)
    return GroundPlane(a, b, c, metric=True) if b > 0 else None


Labels = NDArray[np.uint8] | NDArray[np.uint16]
Instances = NDArray[np.int32]
Mask = NDArray[np.bool_]
Box = tuple[int, int, int, int]
GROUND = frozenset(
    {
        *("road", "sidewalk", "terrain", "ground", "parking", "rail track", "pavement-merged", "dirt-merged"),
        *("grass-merged", "gravel", "sand", "snow", "platform", "playingfield", "railroad"),
        *("floor-wood", "floor-other-merged"),
    }
)
"""Classes that other things stand on, as Cityscapes and COCO call them."""


class Thing(NamedTuple):
    """An object of a scene: its number, its label, the box around its visible pixels, and how many those are.

    `mixed` says that its pixels have more than one label; `label` is then that of most of them.
    """

    instance: int
    label: int
    box: Box
    pixels: int
    mixed: bool


@dataclass(frozen=True, eq=False)
class Scene:
    """An image (H,W,3) RGB uint8 with labels (H,W) and instances (H,W); depth and camera where known.

    `classes` names the labels; `horizon_row` is where a level ground ends, where the data give it. The id is
    the frame's, or for a mutated scene that of its base and its recipe.
    """

    id: str
    image: Image
    labels: Labels
    instances: Instances
    classes: Mapping[int, str]
    depth_m: Depth | None = None
    camera: Camera | None = None
    horizon_row: float | None = None
    log_id: str = ""
    behind: Instances | None = None
    """The object (H,W) next behind what is seen, 0: none, where an annotation tells."""

    def __post_init__(self) -> None:
        _check(self)
        for array in (self.image, self.labels, self.instances, self.depth_m, self.behind):
            if array is not None:
                array.flags.writeable = False
        object.__setattr__(self, "classes", MappingProxyType(dict(self.classes)))

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels."""
        return self.labels.shape[1], self.labels.shape[0]

    @cached_property
    def ids(self) -> Mapping[str, int]:
        """The label of each class name; the lowest, where several ids share a name."""
        return {name: number for number, name in sorted(self.classes.items(), reverse=True)}

    @cached_property
    def picture(self) -> str:
        """The hash of all that a SUT sees and is scored on: pixels, labels and instances."""
        parts = (self.image, self.labels.astype(np.int32), self.instances.astype(np.int32))
        return digest(repr(self.image.shape), *(np.ascontiguousarray(part).tobytes() for part in parts))

    @cached_property
    def void(self) -> frozenset[int]:
        """The labels of the scene that have no name and so are not evaluated."""
        present = np.flatnonzero(np.bincount(self.labels.reshape(-1)))
        return frozenset(present.tolist()) - self.classes.keys()

    @cached_property
    def things(self) -> Mapping[int, Thing]:
        """The objects of which at least one pixel is visible, by instance."""
        return {thing.instance: thing for thing in _things(self.labels, self.instances)}

    @cached_property
    def value(self) -> NDArray[np.uint8]:
        """The V of HSV, (H,W): the largest of the three channels."""
        red, green, blue = cv2.split(self.image)
        return np.asarray(cv2.max(cv2.max(red, green), blue), np.uint8)

    @cached_property
    def vanishing_point(self) -> VanishingPoint | None:
        """Where the lines of the scene meet, in fractions of width and height; None where they do not."""
        return vanishing_point(self.image)

    @cached_property
    def eye_level(self) -> EyeLevel | None:
        """Where a level ground ends, and how high the camera is.

        By the camera's pose, else by the things that stand on the ground, else where the lines of the street
        meet; None without any of them.
        """
        if self.horizon_row is not None:
            return EyeLevel(self.horizon_row, CAMERA_HEIGHT_M)
        height, point = self.size[1], self.vanishing_point
        meet = None if point is None else point.y * height
        standing = [found for thing in self.things.values() for found in self._whole(thing)]
        level = eye_level(standing, lines_meet=meet, lines_spread=POINT_SPREAD * height)
        return EyeLevel(meet, CAMERA_HEIGHT_M) if level is None and meet is not None else level

    @property
    def horizon(self) -> float | None:
        """The row where a level ground ends, where it is known."""
        return None if self.eye_level is None else self.eye_level.horizon_row

    @property
    def focal_px(self) -> float:
        """The focal length, or what is taken for it where no camera is known."""
        return FOCAL_LENGTHS * self.size[0] if self.camera is None else self.camera.fy

    def stands(self, thing: Thing) -> bool:
        """Return whether an object stands on ground, upright by its shape, and is not cut by the border."""
        x0, y0, x1, y1 = thing.box
        width, height = self.size
        if x0 == 0 or y0 == 0 or x1 == width or y1 == height or thing.mixed:
            return False
        foot = self.instances[y1 - 1, x0:x1] == thing.instance
        below = np.s_[y1 : y1 + 1 + max(1, (y1 - y0) // 50), x0:x1]  # outlines have a rim without a label
        ground = np.isin(self.labels[below], self.ground_labels) & (self.instances[below] == 0)
        on_ground = ground.any(axis=0)[foot]
        return bool(on_ground.mean() > 0.5) and stands_upright(self.class_of(thing), x1 - x0, y1 - y0)

    def _whole(self, thing: Thing) -> list[StandingThing]:
        """Return an object as one whose height tells how far it is, if it is."""
        hidden = 0 if self.behind is None else int(np.count_nonzero(self.behind == thing.instance))
        if hidden > thing.pixels // 100 or not self.stands(thing):
            return []
        return [StandingThing(self.class_of(thing) or "", thing.box[3], thing.box[3] - thing.box[1])]

    @cached_property
    def ground_labels(self) -> list[int]:
        """The labels of what other things stand on."""
        return [number for number, name in self.classes.items() if name in GROUND]

    @cached_property
    def contact(self) -> NDArray[np.int32]:
        """The row (H,W) at which what is seen at each pixel meets the ground, -1 where that is hidden."""
        feet = {instance: thing.box[3] - 1 for instance, thing in self.things.items()}
        return contact_rows(self.labels, self.instances, feet, self.ground_labels, self.behind)

    def distance_m(self, row: float) -> float | None:
        """Return about how far away something is that meets the ground at a row; None without a horizon."""
        level = self.eye_level
        return (
            None
            if level is None
            else distance_m(row, level.horizon_row, self.focal_px, level.camera_height_m)
        )

    @property
    def camera_height_m(self) -> float | None:
        """How high the camera is above the ground, by the depth of roads or by what is seen; None without."""
        if self.ground is not None and self.ground.metric:
            return 1 / (self.ground.b * self.focal_px)
        return None if self.eye_level is None else self.eye_level.camera_height_m

    def scale_px_m(self, column: float, row: float) -> float | None:
        """Return how many pixels an upright metre has where the ground is seen; None if not known."""
        level = ground_plane(np.zeros((0, 0), np.bool_), None, self.eye_level)
        plane = self.ground or level  # there may be no road
        if plane is None:
            return None
        scale = plane.nearness(column, row) * (self.focal_px if plane.metric else 1.0)
        return scale if scale > 0 else None

    @cached_property
    def ground(self) -> GroundPlane | None:
        """The plane the scene stands on, by the depth of roads or by the horizon; None without either."""
        road = self.ids.get("road")
        return None if road is None else ground_plane(self.labels == road, self.depth_m, self.eye_level)

    @cached_property
    def road_pixels(self) -> NDArray[np.int64]:
        """The places of the road's pixels in the flattened image."""
        road = self.ids.get("road")
        return np.zeros(0, np.int64) if road is None else np.flatnonzero(self.labels == road)

    @property
    def has_road(self) -> bool:
        """Whether any road is visible."""
        return len(self.road_pixels) > 0

    def class_of(self, thing: Thing) -> str | None:
        """Return the name of an object's class, None for void."""
        return self.classes.get(thing.label)

    def truth(self, categories: Sequence[str], *, ignored: Collection[int] = ()) -> Truth:
        """Return the objects of the scene as a detector is scored on: boxes around what is visible of each.

        Objects whose numbers are among `ignored` do not count, nor do the parts of pixels that have the class
        of a category but belong to no object (a group).
        """
        rows: list[tuple[Box, int, bool]] = []
        for thing in sorted(self.things.values()):
            name = self.class_of(thing)
            if name in categories:
                rows.append((thing.box, categories.index(name), thing.instance in ignored))
        for label, name in sorted(self.classes.items()):
            if name in categories:
                group = ((self.labels == label) & (self.instances == 0)).astype(np.uint8)
                count, _, stats, _ = cv2.connectedComponentsWithStats(group, connectivity=8)
                for x, y, width, height, _ in stats[1:count].tolist():
                    rows.append(((x, y, x + width, y + height), categories.index(name), True))
        return Truth(
            boxes=np.array([box for box, _, _ in rows], np.float64).reshape(-1, 4),
            labels=np.array([label for _, label, _ in rows], np.int64),
            ignore=np.array([ignore for _, _, ignore in rows], np.bool_),
            ids=np.arange(1, len(rows) + 1, dtype=np.int64),
        )


def scene_of(frame: Frame, dataset: Dataset) -> Scene:
    """Read a frame as a scene; a frame without labels or instances, or of several sizes, is an error."""
    if frame.labels is None or frame.instances is None:
        missing = "label map" if frame.labels is None else "instance map"
        raise DataError(
            "semantic mutation needs a label map and an instance map",
            where=f"frame {frame.id!r}",
            got=f"no {missing}",
            wanted="a label map and an instance map for each image",
            fix="Add them (docs/data-formats.md), or use data that have them: Cityscapes, COCO panoptic.",
        )
    return Scene(
        frame.id,
        frame.image(),
        frame.labels(),
        frame.instances(),
        dataset.pixel_classes,
        frame.depth_m() if frame.depth_m is not None else None,
        frame.camera,
        _horizon_row(frame),
        frame.log_id,
        _behind(frame),
    )


def _behind(frame: Frame) -> Instances | None:
    """Return which objects are behind what is seen; None where no annotation tells."""
    behind = None if frame.behind is None else frame.behind()
    return None if behind is None or int(behind.min()) < 0 else behind


def _horizon_row(frame: Frame) -> float | None:
    """Return the row that level directions straight ahead project to; None without a pose."""
    if frame.camera is None or frame.world_from_camera is None:
        return None
    up = frame.world_from_camera[2, :3]  # the world's up in camera axes: x right, y down, z forward
    return None if abs(up[1]) < 0.5 else float(frame.camera.cy - frame.camera.fy * up[2] / up[1])


def _things(labels: Labels, instances: Instances) -> list[Thing]:
    """Find the objects by the horizontal runs of equal instance and label, without sorting the pixels."""
    width = labels.shape[1]
    new = np.ones(instances.shape, np.bool_)
    new[:, 1:] = (instances[:, 1:] != instances[:, :-1]) | (labels[:, 1:] != labels[:, :-1])
    starts = np.flatnonzero(new)
    ends = np.append(starts[1:], labels.size)
    taken = instances.reshape(-1)[starts] > 0
    starts, ends = starts[taken], ends[taken]
    if not len(starts):
        return []
    key = instances.reshape(-1)[starts].astype(np.int64) << 16 | labels.reshape(-1)[starts]
    order = np.argsort(key, kind="stable")
    key, starts, ends = key[order], starts[order], ends[order]
    first = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
    rows, left = np.divmod(starts, width)
    boxes = np.stack(
        [
            np.minimum.reduceat(left, first),
            np.minimum.reduceat(rows, first),
            np.maximum.reduceat(left + ends - starts, first),
            np.maximum.reduceat(rows, first) + 1,
        ],
        axis=1,
    )
    pixels = np.add.reduceat(ends - starts, first)
    parts: dict[int, list[tuple[int, int, Box]]] = {}
    for value, count, box in zip(key[first].tolist(), pixels.tolist(), boxes.tolist(), strict=True):
        parts.setdefault(value >> 16, []).append((count, value & 0xFFFF, tuple(box)))
    things = []
    for instance, some in parts.items():
        corners = np.array([box for _, _, box in some])
        box = (*corners[:, :2].min(axis=0).tolist(), *corners[:, 2:].max(axis=0).tolist())
        most = max(some, key=lambda part: (part[0], -part[1]))
        things.append(Thing(instance, most[1], box, sum(part[0] for part in some), len(some) > 1))
    return things


def _check(scene: Scene) -> None:
    shape = scene.image.shape[:2]
    if scene.image.ndim != 3 or scene.image.shape[2] != 3 or scene.image.dtype != np.uint8 or 0 in shape:
        raise _wrong(scene, "image", f"{scene.image.dtype} {scene.image.shape}", "uint8 (height, width, 3)")
    arrays: list[tuple[str, NDArray[Any] | None, str]] = [
        ("label map", scene.labels, "ui"),
        ("instance map", scene.instances, "i"),
        ("depth map", scene.depth_m, "f"),
        ("map of what is behind", scene.behind, "i"),
    ]
    for what, array, kinds in arrays:
        if array is None:
            continue
        if array.shape != shape:
            raise _wrong(scene, what, f"{array.shape}", f"{shape}, as the image")
        if array.dtype.kind not in kinds:
            raise _wrong(
                scene, what, f"{array.dtype}", {"f": "floats, in metres"}.get(kinds, "whole numbers")
            )
    if scene.labels.dtype not in (np.uint8, np.uint16):
        raise _wrong(scene, "label map", f"{scene.labels.dtype}", "uint8 or uint16")
    if scene.instances.dtype != np.int32 or int(scene.instances.min()) < 0:
        got = f"{scene.instances.dtype} from {scene.instances.min()}"
        raise _wrong(scene, "instance map", got, "int32 from 0")


def _wrong(scene: Scene, what: str, got: str, wanted: str) -> DataError:
    return DataError(
        f"the {what} of a scene does not fit",
        where=f"scene {scene.id!r}",
        got=got,
        wanted=wanted,
        fix="Write the file again for this image, or take the image out of the data set.",
    )

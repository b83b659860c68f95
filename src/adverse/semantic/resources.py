"""The resource set: the objects of a data set, cut out and indexed, in one file that is mapped into memory.

The file has a row for each frame (instance 0) and one for each object. It is named after the content it was
made from, so it is built once and opened in milliseconds ever after.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.errors import DataError, MutationError
from adverse.semantic.resource_file import (
    ResourceColumns,
    Watch,
    hash_files,
    read_resources,
    resource_key,
    usable_frames,
    write_resources,
)
from adverse.semantic.scenes import Box, Scene
from adverse.semantic.vanishing import VanishingPoint
from adverse.types import Dataset

UNREADABLE = "frames that cannot be read"


@dataclass(frozen=True, eq=False)
class Entity:
    """One object of the resource set; its arrays are those of its box, views into the file."""

    id: str
    scene: str
    log: str
    class_name: str
    box: Box
    pixels: int
    alpha: NDArray[np.uint8]
    """(h,w): 255 where the object is visible."""
    rgb: NDArray[np.uint8]
    depth_m: NDArray[np.float32] | None
    polygon: NDArray[np.int32]
    median_value: float
    vanishing: tuple[float, float] | None
    """Of its source image, in fractions of width and height."""
    occluded: bool
    components: int
    largest_part: float
    """The share of its pixels that its largest component has."""
    cut: bool
    """Whether it touches the border of its image, and so may go on beyond it."""
    depth_range_m: tuple[float, float] | None
    nearness: float | None
    """One over the distance in metres of the ground at its foot."""
    horizon_row: float | None
    """Where a level ground ends in its source image."""
    scale_px_m: float | None
    """How many pixels a metre has at its foot."""
    surround: tuple[float, float, float]
    frame_size: tuple[int, int]

    @property
    def rgba(self) -> NDArray[np.uint8]:
        """The cut-out (h,w,4), transparent where the object is not."""
        return np.concatenate([self.rgb, self.alpha[..., None]], axis=2)


class Index(NamedTuple):
    """What the checks look at first: an entry for each object of one class, in the order of the file."""

    number: NDArray[np.int64]
    """Of the object in the resource set."""
    scene: NDArray[np.object_]
    log: NDArray[np.object_]
    box: NDArray[np.int32]
    side_px: NDArray[np.int32]
    """The longest side of its box."""
    median_value: NDArray[np.float32]
    vanishing: NDArray[np.float64]
    """(N,2) in fractions of the frame, NaN where none was found."""
    occluded: NDArray[np.bool_]
    largest_part: NDArray[np.float64]
    cut: NDArray[np.bool_]
    standing: NDArray[np.bool_]
    """Upright on ground, at a distance that is known."""
    camera_height_m: NDArray[np.float64]
    with_depth: NDArray[np.bool_]
    frame_size: NDArray[np.int32]


class Resources:
    """The objects of a data set. `build` makes it, or finds it made; `open` takes a file."""

    def __init__(self, stored: ResourceColumns) -> None:
        self.key = stored.key
        self._columns, self._blobs = stored.columns, stored.blobs
        self._rows = np.flatnonzero(self._columns["instance"] > 0)
        self._indexes: dict[str, Index] = {}

    @staticmethod
    def build(
        dataset: Dataset,
        cache_dir: Path,
        *,
        hashes: Mapping[Path, str] | None = None,
        watch: Watch | None = None,
    ) -> Resources:
        """Cut out all objects of a data set, or open the file where that was already done.

        Frames without labels or instances are left out, and those that cannot be read are counted; if no
        frame is left, that is an error. `hashes` are those of its files where they are known; a file that
        is another one by now is an error.
        """
        if next(usable_frames(dataset), None) is None:
            raise DataError(
                "there are no objects to cut out",
                where=f"data set {dataset.name!r}",
                got="no frame with both a label map and an instance map",
                wanted="labels and instances for each image",
                fix="Add them (docs/data-formats.md), or use data that have them: Cityscapes, COCO panoptic.",
            )
        hashes = hash_files(dataset) if hashes is None else hashes
        key = resource_key(dataset, hashes)
        path = cache_dir / f"resources-{key}.arrow"
        if not path.is_file():
            write_resources(path, key, dataset, hashes, watch)
        return Resources.open(path)

    @staticmethod
    def open(path: Path) -> Resources:
        """Open a file that `build` wrote."""
        return Resources(read_resources(path))

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Entity]:
        return (self.entity(number) for number in range(len(self)))

    @cached_property
    def notes(self) -> Mapping[str, int]:
        """What was seen while it was built, and not taken as an object."""
        notes: Counter[str] = Counter()
        for row in np.flatnonzero(self._columns["instance"] == 0).tolist():
            notes.update(json.loads(self._columns["notes"][row] or "{}"))
            notes[UNREADABLE] += bool(self._columns["fault"][row])
        return +notes

    @cached_property
    def faults(self) -> Mapping[str, str]:
        """Why frames were left out, by frame id."""
        rows = np.flatnonzero(self._columns["fault"] != "")
        return {self._columns["scene"][row]: self._columns["fault"][row] for row in rows.tolist()}

    @cached_property
    def logs(self) -> frozenset[str]:
        """The logs that the objects come from."""
        return frozenset(self._columns["log"][self._rows].tolist())

    @cached_property
    def classes(self) -> Mapping[str, int]:
        """How many objects there are of each class."""
        return dict(sorted(Counter(self._columns["class_name"][self._rows].tolist()).items()))

    def entity(self, number: int) -> Entity:
        """Return an object by its number, 0 to len - 1."""
        row = int(self._rows[number])
        value = {name: column[row] for name, column in self._columns.items()}
        x0, y0, x1, y1 = (int(value[name]) for name in ("x0", "y0", "x1", "y1"))
        shape = y1 - y0, x1 - x0
        depth = self._blobs["depth_m"].row(row)
        near, far = float(value["depth_near_m"]), float(value["depth_far_m"])
        point = float(value["vanishing_x"]), float(value["vanishing_y"])
        nearness = float(value["nearness"])
        return Entity(
            id=_entity_id(value["scene"], int(value["instance"])),
            scene=value["scene"],
            log=value["log"],
            class_name=value["class_name"],
            box=(x0, y0, x1, y1),
            pixels=int(value["pixels"]),
            alpha=self._blobs["alpha"].row(row).reshape(shape),
            rgb=self._blobs["rgb"].row(row).reshape(*shape, 3),
            depth_m=depth.view(np.float32).reshape(shape) if len(depth) else None,
            polygon=self._blobs["polygon"].row(row).view(np.int32).reshape(-1, 2),
            median_value=float(value["median_value"]),
            vanishing=None if np.isnan(point[0]) else point,
            occluded=bool(value["occluded"]),
            components=int(value["components"]),
            largest_part=float(value["largest_part"]),
            cut=bool(value["cut"]),
            depth_range_m=None if np.isnan(near) else (near, far),
            nearness=None if np.isnan(nearness) else nearness,
            horizon_row=None if np.isnan(value["horizon_row"]) else float(value["horizon_row"]),
            scale_px_m=None if np.isnan(value["scale_px_m"]) else float(value["scale_px_m"]),
            surround=(float(value["around_r"]), float(value["around_g"]), float(value["around_b"])),
            frame_size=(int(value["frame_width"]), int(value["frame_height"])),
        )

    def by_id(self, entity_id: str) -> Entity:
        """Return an object by its id, or say that it is not of this set."""
        number = self._numbers.get(entity_id)
        if number is None:
            raise MutationError(
                "a recipe's donor is not in the resource set",
                got=repr(entity_id),
                wanted=f"one of its {len(self)} objects, named frame#instance",
                fix="Use the resource set that the recipe was made with (its key is in the run).",
            )
        return self.entity(number)

    def index(self, class_name: str) -> Index:
        """Return the columns of all objects of a class; empty if there are none."""
        if class_name not in self._indexes:
            names = self._columns["class_name"][self._rows]
            number = np.flatnonzero(names == class_name)
            rows = self._rows[number]
            column = {name: values[rows] for name, values in self._columns.items()}
            box = np.stack([column[name] for name in ("x0", "y0", "x1", "y1")], axis=1)
            self._indexes[class_name] = Index(
                number,
                column["scene"],
                column["log"],
                box,
                (box[:, 2:] - box[:, :2]).max(axis=1, initial=0),
                column["median_value"],
                np.stack([column["vanishing_x"], column["vanishing_y"]], axis=1),
                column["occluded"],
                column["largest_part"],
                column["cut"],
                column["standing"],
                column["camera_height_m"],
                ~np.isnan(column["depth_near_m"]),
                np.stack([column["frame_width"], column["frame_height"]], axis=1),
            )
        return self._indexes[class_name]

    def vanishing(self, scene: Scene) -> tuple[float, float] | None:
        """Return a scene's vanishing point: as stored, if it is a frame of this set, else found now."""
        if scene.id in self._points:
            return self._points[scene.id]
        point: VanishingPoint | None = scene.vanishing_point
        return None if point is None else (point.x, point.y)

    @cached_property
    def _numbers(self) -> Mapping[str, int]:
        scenes, instances = (self._columns[name][self._rows].tolist() for name in ("scene", "instance"))
        pairs = zip(scenes, instances, strict=True)
        return {_entity_id(scene, instance): number for number, (scene, instance) in enumerate(pairs)}

    @cached_property
    def _points(self) -> Mapping[str, tuple[float, float] | None]:
        rows: Any = np.flatnonzero((self._columns["instance"] == 0) & (self._columns["fault"] == ""))
        names = ("scene", "vanishing_x", "vanishing_y")
        stored = zip(*(self._columns[name][rows].tolist() for name in names), strict=True)
        return {scene: None if np.isnan(x) else (x, y) for scene, x, y in stored}


def _entity_id(scene: str, instance: int) -> str:
    return f"{scene}#{instance}"

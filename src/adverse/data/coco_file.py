"""COCO's JSON as columns: images, categories and boxes, checked as a whole while they are read.

What makes the file untrustworthy (unknown or duplicate ids, wrong types) is an error at once. Annotations are
never objects for longer than a block of them takes; a box, an area or a position that is not made of numbers
is NaN in its column, and kept as it was written, for the fault of its image.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, NamedTuple, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from adverse.data.attributes import plain_attributes
from adverse.data.files import read_bytes, validated
from adverse.data.images import Size
from adverse.errors import DataError
from adverse.json_arrays import LIMIT_BYTES, Block, JsonArrays

Key = int | str
BESIDE = ("occluded", "truncated", "visible", "visibility", "difficult", "attribute_name")
"""Attributes that many files hold as fields of their own."""
_Id = Annotated[int, Field(ge=-(2**63), lt=2**63)]
_Pixels = Annotated[int, Field(gt=0, lt=2**31)]
_Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_ANYTHING: msgspec.json.Decoder[list[Any]] = msgspec.json.Decoder(list[Any])
Model = TypeVar("Model", bound=BaseModel)
_Positive = Annotated[int, msgspec.Meta(gt=0, lt=2**31)]


class CocoImage(BaseModel):
    """One entry of `images`; width and height may be missing where the reader allows it."""

    id: _Id | str
    file_name: str
    width: _Pixels | None = None
    height: _Pixels | None = None

    @property
    def size(self) -> Size | None:
        """Width and height, if both are given."""
        return None if self.width is None or self.height is None else (self.width, self.height)


class CocoCategory(BaseModel):
    """One entry of `categories`."""

    id: _Id
    name: str


class _Annotation(BaseModel):
    """One entry of `annotations`; box, area and position are checked per image, so that one costs one."""

    id: _Id
    image_id: _Id | str
    category_id: _Id
    bbox: Any = None
    iscrowd: int | bool = 0
    ignore: int | bool = 0
    area: Any = None
    position_m: Any = None
    track_id: _Id | None = None
    """Who it is, over the images of a log."""
    attributes: Any = None
    """Anything by name, as annotation tools export it; those of `BESIDE` are fields in other files."""
    occluded: Any = None
    truncated: Any = None
    visible: Any = None
    visibility: Any = None
    difficult: Any = None
    attribute_name: Any = None
    segmentation: Any = None


class _FastImage(msgspec.Struct):
    """What `CocoImage` takes, decoded at once."""

    id: _Int64 | str
    file_name: str
    width: _Positive | None = None
    height: _Positive | None = None


class _FastAnnotation(msgspec.Struct):
    """The entries that `_Annotation` takes and that have nothing odd about them."""

    id: _Int64
    image_id: _Int64 | str
    category_id: _Int64
    bbox: tuple[float, float, float, float] | None = None
    iscrowd: int | bool | msgspec.UnsetType = msgspec.UNSET
    ignore: int | bool = 0
    area: float | None = None
    position_m: tuple[float, float, float] | None = None
    track_id: _Int64 | None = None
    attributes: Any = None
    occluded: Any = None
    truncated: Any = None
    visible: Any = None
    visibility: Any = None
    difficult: Any = None
    attribute_name: Any = None


class _MaskedAnnotation(_FastAnnotation):
    """The same with its polygons or run lengths, which are left as they are written."""

    segmentation: msgspec.Raw = msgspec.Raw(b"null")


class Outline(BaseModel):
    """What must be there, and be lists, before entries are looked at."""

    images: list[Any]
    annotations: list[Any]
    categories: list[Any]


@dataclass(slots=True)
class ImageEntry:
    """One entry of `images` of a file that was read."""

    id: Key
    file_name: str
    size: Size | None


class Annotations(NamedTuple):
    """N annotations: of which image (row of `images`) and category (id), boxes xyxy, and what else is given.

    `ids` are those of tracks where there are any. `odd` holds, by row and key, what is no number.
    """

    written_ids: NDArray[np.int64]
    ids: NDArray[np.int64]
    images: NDArray[np.int64]
    categories: NDArray[np.int64]
    boxes: NDArray[np.float64]
    crowd: NDArray[np.bool_]
    ignore: NDArray[np.bool_]
    area: NDArray[np.float64]
    positions_m: NDArray[np.float64] | None
    odd: dict[tuple[int, str], Any]
    without_iscrowd: int
    attributes: dict[int, dict[str, str]]
    """What else is annotated of an object, in words, by row."""
    segmentations: list[bytes] | None
    """Polygons or run lengths as JSON, where they are wanted."""


@dataclass(frozen=True)
class CocoFile:
    """A COCO ground truth file whose ids all fit together."""

    images: list[ImageEntry]
    annotations: Annotations
    categories: list[CocoCategory]
    row_of: dict[Key, int] = field(repr=False)
    """Where in `images` an image is, by its id."""


def open_arrays(path: Path) -> JsonArrays:
    """Check the JSON of an annotation file and find its arrays."""
    return JsonArrays(read_bytes(path, what="annotation", limit=LIMIT_BYTES), path, "annotation")


def read_coco(path: Path, *, segmentations: bool = False) -> CocoFile:
    """Read a COCO ground truth file and check that its ids are unique and lead somewhere.

    With `segmentations`, what is drawn of each object is kept.
    """
    arrays = open_arrays(path)
    validated(arrays.outline(), path, "annotation", Outline)
    images = _images(arrays, path)
    _unique(path, "images", "id", (image.id for image in images))
    _unique(path, "images", "file_name", (PurePosixPath(image.file_name).as_posix() for image in images))
    row_of = {image.id: row for row, image in enumerate(images)}
    columns = _Columns(path, row_of, segmentations=segmentations)
    if segmentations:
        for masked in arrays.blocks("annotations", msgspec.json.Decoder(list[_MaskedAnnotation])):
            columns.add(masked)
    else:
        for block in arrays.blocks("annotations", msgspec.json.Decoder(list[_FastAnnotation])):
            columns.add(block)
    categories = list(entries(arrays, path, "categories", CocoCategory))
    _unique(path, "categories", "id", (category.id for category in categories))
    _unique(path, "categories", "name", (category.name for category in categories))
    annotations = columns.finish()
    again = _first_repeated(annotations.written_ids)
    if again is not None:
        raise _twice(path, "annotations", "id", again[1], annotations.written_ids[again[1]].item(), again[0])
    lost = np.flatnonzero(annotations.images < 0)
    known = np.array([category.id for category in categories], np.int64)
    nameless = np.flatnonzero(~np.isin(annotations.categories, known))
    for at in sorted({*lost[:1].tolist(), *nameless[:1].tolist()}):
        image = at in lost[:1]
        value = annotations.odd[at, "image_id"] if image else annotations.categories[at].item()
        keys = ("image_id", "images") if image else ("category_id", "categories")
        raise _leads_nowhere(path, at, value, annotations.written_ids[at].item(), *keys)
    return CocoFile(images, annotations, categories, row_of)


def entries(arrays: JsonArrays, path: Path, array: str, model: type[Model]) -> Iterator[Model]:
    """Yield the entries of an array of a COCO file as models."""
    for first, fitting, values in arrays.blocks(array, _ANYTHING):
        found = values if fitting is None else fitting
        yield from validated(found, path, "annotation", list[model], array=array, first=first)  # type: ignore[valid-type]


def category_names(files: Iterable[CocoFile]) -> tuple[str, ...]:
    """Return the names of all categories, those of the first file first, each file by category id."""
    ordered = (c.name for coco in files for c in sorted(coco.categories, key=lambda c: c.id))
    return tuple(dict.fromkeys(ordered))


def numbers(value: Any, count: int) -> tuple[float, ...]:
    """Return `count` floats, all NaN where the value is not a list of that many numbers."""
    unknown = (math.nan,) * count
    if not isinstance(value, list) or len(value) != count:
        return unknown
    if not all(isinstance(item, int | float) and not isinstance(item, bool) for item in value):
        return unknown
    try:
        return tuple(float(item) for item in value)
    except OverflowError:
        return unknown


def _images(arrays: JsonArrays, path: Path) -> list[ImageEntry]:
    images: list[ImageEntry] = []
    for block in arrays.blocks("images", msgspec.json.Decoder(list[_FastImage])):
        entries: Sequence[_FastImage | CocoImage] | None = block.entries
        if entries is None:
            entries = validated(
                block.values, path, "annotation", list[CocoImage], array="images", first=block.first
            )
        images += [
            ImageEntry(
                entry.id,
                entry.file_name,
                None if entry.width is None or entry.height is None else (entry.width, entry.height),
            )
            for entry in entries
        ]
    return images


class _Columns:
    """Annotations on their way into columns, a block at a time."""

    def __init__(self, path: Path, row_of: dict[Key, int], *, segmentations: bool) -> None:
        self._path = path
        self._segmentations: list[bytes] | None = [] if segmentations else None
        self._row_of = row_of
        self._integers: list[NDArray[np.int64]] = []  # (n,4): id, track, image, category
        self._floats: list[NDArray[np.float64]] = []  # (n,5): box as written, area
        self._flags: list[NDArray[np.bool_]] = []  # (n,2): crowd, ignore
        self._positions: dict[int, tuple[float, ...]] = {}
        self._odd: dict[tuple[int, str], Any] = {}
        self._without_iscrowd = 0
        self._attributes: dict[int, dict[str, str]] = {}

    def add(self, block: Block[_FastAnnotation] | Block[_MaskedAnnotation]) -> None:
        first = block.first
        entries: Sequence[_FastAnnotation | _Annotation] | None = block.entries
        if entries is None:
            array = "annotations"
            entries = validated(
                block.values, self._path, "annotation", list[_Annotation], array=array, first=first
            )
        if not entries:
            return
        row_of, integers, floats = self._row_of, [], []
        for at, entry in enumerate(entries, start=first):
            image = row_of.get(entry.image_id, -1)
            if image < 0:
                self._odd[at, "image_id"] = entry.image_id
            track = entry.id if entry.track_id is None else entry.track_id
            integers.append((entry.id, track, image, entry.category_id))
            if isinstance(entry.bbox, tuple) and isinstance(entry.area, float) and entry.area >= 0:
                floats.append((*entry.bbox, entry.area))
            else:
                floats.append((*self._box(entry.bbox, at), self._area(entry.area, at)))
            if entry.position_m is not None:
                self._locate(entry.position_m, at)
            if told := _attributes(entry):
                self._attributes[at] = told
            if self._segmentations is not None:
                self._segmentations.append(_written(entry))
            if isinstance(entry, _Annotation):
                self._without_iscrowd += "iscrowd" not in entry.model_fields_set
            else:
                self._without_iscrowd += entry.iscrowd is msgspec.UNSET
        self._integers.append(np.array(integers, np.int64).reshape(-1, 4))
        self._floats.append(np.array(floats, np.float64).reshape(-1, 5))
        crowd = [entry.iscrowd is not msgspec.UNSET and bool(entry.iscrowd) for entry in entries]
        self._flags.append(np.column_stack([crowd, [bool(entry.ignore) for entry in entries]]))

    def finish(self) -> Annotations:
        """Return the columns."""
        integers = np.concatenate(self._integers) if self._integers else np.zeros((0, 4), np.int64)
        self._integers.clear()
        floats = np.concatenate(self._floats) if self._floats else np.zeros((0, 5))
        self._floats.clear()
        flags = np.concatenate(self._flags) if self._flags else np.zeros((0, 2), np.bool_)
        self._flags.clear()
        positions = None
        if self._positions:
            positions = np.full((len(integers), 3), math.nan)
            positions[list(self._positions)] = list(self._positions.values())
        boxes, area = np.ascontiguousarray(floats[:, :4]), floats[:, 4].copy()
        with np.errstate(over="ignore", invalid="ignore"):
            boxes[:, 2:] += boxes[:, :2]
        ids, tracks, images, categories = (column.copy() for column in integers.T)
        crowd, ignore = (column.copy() for column in flags.T)
        return Annotations(
            ids,
            tracks,
            images,
            categories,
            boxes,
            crowd,
            ignore | crowd,
            area,
            positions,
            self._odd,
            self._without_iscrowd,
            self._attributes,
            self._segmentations,
        )

    def _box(self, bbox: Any, at: int) -> tuple[float, ...]:
        if isinstance(bbox, tuple):
            return bbox
        values = numbers(bbox, 4)
        if not all(map(math.isfinite, values)):
            self._odd[at, "bbox"] = bbox
        return values

    def _area(self, area: Any, at: int) -> float:
        value = numbers([area], 1)[0]
        if area is not None and not 0 <= value < math.inf:
            self._odd[at, "area"] = area
        return value

    def _locate(self, position_m: Any, at: int) -> None:
        values = position_m if isinstance(position_m, tuple) else numbers(position_m, 3)
        self._positions[at] = values
        if not all(map(math.isfinite, values)):
            self._odd[at, "position_m"] = position_m


def _attributes(entry: _FastAnnotation | _Annotation) -> dict[str, str]:
    """Return what is annotated of an object besides, in words."""
    beside = {name: value for name in BESIDE if (value := getattr(entry, name)) is not None}
    if not beside and entry.attributes is None:
        return {}
    return plain_attributes({**beside, **(entry.attributes if isinstance(entry.attributes, dict) else {})})


def _written(entry: _FastAnnotation | _Annotation) -> bytes:
    """Return what is drawn of an object, as JSON."""
    if isinstance(entry, _MaskedAnnotation):
        return bytes(entry.segmentation)
    return msgspec.json.encode(entry.segmentation if isinstance(entry, _Annotation) else None)


def _first_repeated(ids: NDArray[np.int64]) -> tuple[int, int] | None:
    """Return the rows of the first id that was there before, earlier and later."""
    order = np.argsort(ids, kind="stable")
    same = np.flatnonzero(ids[order[1:]] == ids[order[:-1]])
    if not len(same):
        return None
    later = int(order[same + 1].min())
    return int(np.flatnonzero(ids == ids[later])[0]), later


def _unique(path: Path, table: str, key: str, values: Iterable[Hashable]) -> None:
    first: dict[Hashable, int] = {}
    for at, value in enumerate(values):
        if value in first:
            raise _twice(path, table, key, at, value, first[value])
        first[value] = at


def _twice(path: Path, table: str, key: str, at: int, value: object, before: int) -> DataError:
    return DataError(
        f"two entries of {table} have the same {key}",
        where=f"{path}, field {table}[{at}].{key}",
        got=f"{value!r}, already at {table}[{before}]",
        wanted=f"a {key} of its own for each entry",
        fix="Remove one of the two, or export the file again.",
    )


def _leads_nowhere(path: Path, at: int, value: object, number: int, key: str, table: str) -> DataError:
    return DataError(
        f"an annotation has a {key} that is not in {table}",
        where=f"{path}, field annotations[{at}].{key}",
        got=f"{value!r} in annotation {number}",
        wanted=f"the id of an entry of {table}",
        fix=f"Add the entry to {table}, or take the annotation out.",
    )

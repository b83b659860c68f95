"""Truth in COCO's JSON: images, categories and boxes, checked as a whole and then per image.

What makes the file untrustworthy (unknown or duplicate ids, wrong types) is an error at once. What spoils
one image (a box of no size, outside the image, or not made of numbers) becomes that image's fault, so that
the rest can go on.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import BaseModel, Field

from adverse.data.files import read_model
from adverse.data.images import Size
from adverse.errors import AdverseError, DataError
from adverse.types import Truth

Key = int | str
_Id = Annotated[int, Field(ge=-(2**63), lt=2**63)]
_Pixels = Annotated[int, Field(gt=0)]
PARTLY_OUTSIDE = "boxes partly outside the image"
IGNORED = "boxes marked crowd or ignore"
NEGATIVE = "images without annotations"
ROUNDING_PX = 1e-6  # x + width in floats may miss the border by this much


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


class CocoAnnotation(BaseModel):
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


class CocoFile(BaseModel):
    """A COCO ground truth file whose ids all fit together."""

    images: list[CocoImage]
    annotations: list[CocoAnnotation]
    categories: list[CocoCategory]


class ImageTruth(NamedTuple):
    """The truth of one image and, where it cannot be trusted, why."""

    truth: Truth
    fault: str | None


def _identity(annotation: CocoAnnotation) -> int:
    return annotation.id if annotation.track_id is None else annotation.track_id


def read_coco(path: Path) -> CocoFile:
    """Read a COCO ground truth file and check that its ids are unique and lead somewhere."""
    coco = read_model(path, "annotation", CocoFile)
    _unique(path, "images", "id", (image.id for image in coco.images))
    _unique(path, "images", "file_name", (PurePosixPath(image.file_name).as_posix() for image in coco.images))
    _unique(path, "categories", "id", (category.id for category in coco.categories))
    _unique(path, "categories", "name", (category.name for category in coco.categories))
    _unique(path, "annotations", "id", (annotation.id for annotation in coco.annotations))
    images = {image.id for image in coco.images}
    categories = {category.id for category in coco.categories}
    for at, annotation in enumerate(coco.annotations):
        if annotation.image_id not in images:
            raise _leads_nowhere(path, at, annotation, "image_id", "images")
        if annotation.category_id not in categories:
            raise _leads_nowhere(path, at, annotation, "category_id", "categories")
    return coco


def category_names(files: Iterable[CocoFile]) -> tuple[str, ...]:
    """Return the names of all categories, those of the first file first, each file by category id."""
    ordered = (c.name for coco in files for c in sorted(coco.categories, key=lambda c: c.id))
    return tuple(dict.fromkeys(ordered))


def truth_by_image(
    coco: CocoFile,
    categories: Sequence[str],
    size_of: Callable[[CocoImage], Size],
    notes: Counter[str],
) -> dict[Key, ImageTruth]:
    """Turn annotations into the truth of every image; what is accepted though odd is counted in `notes`.

    `size_of` returns an image's size and may raise DataError, which becomes the image's fault. Positions
    are given for every image as soon as one annotation of the file has one (NaN where it has none).
    """
    names = {category.id: category.name for category in coco.categories}
    labels = {key: categories.index(name) for key, name in names.items()}
    located = any(annotation.position_m is not None for annotation in coco.annotations)
    of_image: Mapping[Key, list[CocoAnnotation]] = defaultdict(list)
    for annotation in coco.annotations:
        of_image[annotation.image_id].append(annotation)
    truths: dict[Key, ImageTruth] = {}
    for image in coco.images:
        mine = of_image[image.id]
        if not mine:
            notes[NEGATIVE] += 1
        boxes = [_box(annotation.bbox) for annotation in mine]
        points = [_numbers(annotation.position_m, 3) for annotation in mine]
        truth = Truth(
            boxes=np.array(boxes, np.float64).reshape(-1, 4),
            labels=np.array([labels[annotation.category_id] for annotation in mine], np.int64),
            ignore=np.array([bool(a.iscrowd or a.ignore) for a in mine], np.bool_),
            ids=np.array([_identity(annotation) for annotation in mine], np.int64),
            positions_m=np.array(points, np.float64).reshape(-1, 3) if located else None,
            area=np.array([_numbers([annotation.area], 1)[0] for annotation in mine], np.float64),
            crowd=np.array([bool(annotation.iscrowd) for annotation in mine], np.bool_),
        )
        notes[IGNORED] += int(truth.ignore.sum())
        try:
            _check_boxes(image, mine, truth, size_of(image), notes)
        except AdverseError as error:
            truths[image.id] = ImageTruth(truth, str(error))
        else:
            truths[image.id] = ImageTruth(truth, None)
    return truths


def _check_boxes(
    image: CocoImage, annotations: list[CocoAnnotation], truth: Truth, size: Size, notes: Counter[str]
) -> None:
    width, height = size
    for annotation, box in zip(annotations, truth.boxes, strict=True):
        x0, y0, x1, y1 = box
        if not np.isfinite(box).all():
            raise _bad_box(image, annotation, "is not four finite numbers", "[x, y, width, height]")
        if x1 <= x0 or y1 <= y0:
            raise _bad_box(image, annotation, "has no size", "width > 0 and height > 0")
        if x1 <= 0 or y1 <= 0 or x0 >= width or y0 >= height:
            raise _bad_box(image, annotation, "is outside the image", f"a box in {width}x{height} pixels")
        if min(x0, y0, width - x1, height - y1) < -ROUNDING_PX:
            notes[PARTLY_OUTSIDE] += 1
        if annotation.area is not None and not 0 <= _numbers([annotation.area], 1)[0] < math.inf:
            raise DataError(
                f"the area of annotation {annotation.id} is not a finite number from 0 up",
                where=f"image {image.file_name!r}",
                got=repr(annotation.area),
                wanted="area: the pixels that the object covers",
                fix="Correct the area or leave it out: then that of the box is used.",
            )
        if annotation.position_m is not None and not np.isfinite(_numbers(annotation.position_m, 3)).all():
            raise DataError(
                f"the position of annotation {annotation.id} is not three finite numbers",
                where=f"image {image.file_name!r}",
                got=repr(annotation.position_m),
                wanted="position_m: [x, y, z] in metres",
                fix="Correct the position or leave it out.",
            )


def _box(bbox: Any) -> tuple[float, ...]:
    x, y, width, height = _numbers(bbox, 4)
    return x, y, x + width, y + height


def _numbers(value: Any, count: int) -> tuple[float, ...]:
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


def _bad_box(image: CocoImage, annotation: CocoAnnotation, what: str, wanted: str) -> DataError:
    return DataError(
        f"the box of annotation {annotation.id} {what}",
        where=f"image {image.file_name!r}",
        got=f"bbox {annotation.bbox!r}",
        wanted=wanted,
        fix="Correct the box or take the annotation out.",
    )


def _unique(path: Path, table: str, key: str, values: Iterable[Hashable]) -> None:
    first: dict[Hashable, int] = {}
    for at, value in enumerate(values):
        if value in first:
            raise DataError(
                f"two entries of {table} have the same {key}",
                where=f"{path}, field {table}[{at}].{key}",
                got=f"{value!r}, already at {table}[{first[value]}]",
                wanted=f"a {key} of its own for each entry",
                fix="Remove one of the two, or export the file again.",
            )
        first[value] = at


def _leads_nowhere(path: Path, at: int, annotation: CocoAnnotation, key: str, table: str) -> DataError:
    return DataError(
        f"an annotation has a {key} that is not in {table}",
        where=f"{path}, field annotations[{at}].{key}",
        got=f"{getattr(annotation, key)!r} in annotation {annotation.id}",
        wanted=f"the id of an entry of {table}",
        fix=f"Add the entry to {table}, or take the annotation out.",
    )

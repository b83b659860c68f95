"""The truth of every image of a COCO file; what spoils one image is its fault, so that the rest can go on.

That is a box of no size, outside the image, or not made of numbers, and an area or a position that is none.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from adverse.data.attributes import told_attributes
from adverse.data.coco_file import Annotations, CocoFile, ImageEntry, Key
from adverse.data.images import Size
from adverse.data.object_masks import annotated_mask
from adverse.errors import AdverseError, DataError
from adverse.masks import Masks
from adverse.types import Truth

PARTLY_OUTSIDE = "boxes partly outside the image"
IGNORED = "boxes marked crowd or ignore"
NEGATIVE = "images without annotations"
NO_ISCROWD = "annotations without iscrowd, taken as 0"
ROUNDING_PX = 1e-6  # x + width in floats may miss the border by this much


class ImageTruth(NamedTuple):
    """The truth of one image and, where it cannot be trusted, why."""

    truth: Truth
    fault: str | None


def truth_by_image(
    coco: CocoFile,
    images: Sequence[ImageEntry],
    categories: Sequence[str],
    size_of: Callable[[ImageEntry], Size],
    notes: Counter[str],
) -> dict[Key, ImageTruth]:
    """Return the truth of some images of a file; what is accepted though odd is counted in `notes`.

    `size_of` returns an image's size and may raise DataError, which becomes the image's fault. Positions
    are given for every image as soon as one annotation of the file has one (NaN where it has none).
    """
    rows = coco.annotations
    sizes: dict[Key, Size] = {}
    faults: dict[Key, str] = {}
    for image in images:
        try:
            sizes[image.id] = size_of(image)
        except AdverseError as error:
            faults[image.id] = str(error)
    order = np.argsort(rows.images, kind="stable")
    ends = np.cumsum(np.bincount(rows.images, minlength=len(coco.images)))
    wrong, partly = _checked(coco, sizes)
    label_of = {category.id: categories.index(category.name) for category in coco.categories}
    known, where = np.unique(rows.categories, return_inverse=True)
    labels = np.array([label_of[key] for key in known.tolist()], np.int64)[where]
    boxes, ignore, ids = rows.boxes[order], rows.ignore[order], rows.ids[order]
    labels, area, crowd, partly = labels[order], rows.area[order], rows.crowd[order], partly[order]
    positions = None if rows.positions_m is None else rows.positions_m[order]
    spoilt = np.flatnonzero(wrong[order])
    truths: dict[Key, ImageTruth] = {}
    for image in images:
        row = coco.row_of[image.id]
        mine = slice(int(ends[row - 1]) if row else 0, int(ends[row]))
        notes[NEGATIVE] += mine.start == mine.stop
        place = None if positions is None else positions[mine]
        told = [rows.attributes.get(at, {}) for at in order[mine].tolist()] if rows.attributes else []
        masks, unmasked = None, None
        if rows.segmentations is not None and image.id in sizes:
            masks, unmasked = _masks(rows, order[mine].tolist(), image, sizes[image.id])
        truth = Truth(
            boxes[mine],
            labels[mine],
            ignore[mine],
            ids[mine],
            place,
            area[mine] if masks is None else np.where(np.isnan(area[mine]), masks.areas, area[mine]),
            crowd[mine],
            attributes=told_attributes(told),
            masks=masks,
        )
        fault = faults.get(image.id, unmasked)
        at = int(np.searchsorted(spoilt, mine.start)) if len(spoilt) else 0
        if fault is None and at < len(spoilt) and spoilt[at] < mine.stop:
            fault = str(_fault(rows, int(order[spoilt[at]]), image, sizes[image.id]))
        truths[image.id] = ImageTruth(truth, fault)
    used = np.zeros(len(coco.images), np.bool_)
    used[[coco.row_of[image.id] for image in images]] = True
    chosen = used[rows.images[order]]
    notes[IGNORED] += int((ignore & chosen).sum())
    notes[PARTLY_OUTSIDE] += int((partly & chosen).sum())
    notes[NO_ISCROWD] += rows.without_iscrowd
    return truths


def _masks(
    rows: Annotations, mine: Sequence[int], image: ImageEntry, size: Size
) -> tuple[Masks | None, str | None]:
    """Return the masks of an image's objects, or why one of them has none."""
    counts = []
    for row in mine:
        try:
            counts.append(annotated_mask(msgspec.json.decode((rows.segmentations or [])[row]), size))
        except ValueError as error:
            wrong = DataError(
                f"annotation {rows.written_ids[row].item()} has no mask that can be read: {error}",
                where=f"image {image.file_name!r}",
                wanted="segmentation: polygons, or COCO's {size, counts} of the image's size",
                fix="Correct the segmentation, or take the annotation out.",
            )
            return None, str(wrong)
    return Masks((size[1], size[0]), tuple(counts)), None


def _checked(coco: CocoFile, sizes: dict[Key, Size]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which annotations cannot be trusted, and which boxes are partly outside of their image."""
    rows = coco.annotations
    size = np.array([sizes.get(image.id, (math.inf, math.inf)) for image in coco.images], np.float64)
    width, height = size.reshape(-1, 2)[rows.images].T
    x0, y0, x1, y1 = rows.boxes.T
    finite = np.isfinite(rows.boxes).all(axis=1)
    outside = (x1 <= 0) | (y1 <= 0) | (x0 >= width) | (y0 >= height)
    wrong = ~finite | (x1 <= x0) | (y1 <= y0) | outside
    with np.errstate(invalid="ignore"):
        beyond = np.minimum(np.minimum(x0, y0), np.minimum(width - x1, height - y1)) < -ROUNDING_PX
    partly = ~wrong & beyond
    for row, key in rows.odd:
        wrong[row] |= key in ("area", "position_m")
    return wrong, partly


def _fault(rows: Annotations, row: int, image: ImageEntry, size: Size) -> DataError:
    """Return what is wrong with an annotation."""
    number = rows.written_ids[row].item()
    x0, y0, x1, y1 = box = rows.boxes[row]
    where = f"image {image.file_name!r}"
    if not np.isfinite(box).all():
        what, wanted = "is not four finite numbers", "[x, y, width, height]"
    elif x1 <= x0 or y1 <= y0:
        what, wanted = "has no size", "width > 0 and height > 0"
    elif x1 <= 0 or y1 <= 0 or x0 >= size[0] or y0 >= size[1]:
        what, wanted = "is outside the image", f"a box in {size[0]}x{size[1]} pixels"
    elif (row, "area") in rows.odd:
        return DataError(
            f"the area of annotation {number} is not a finite number from 0 up",
            where=where,
            got=repr(rows.odd[row, "area"]),
            wanted="area: the pixels that the object covers",
            fix="Correct the area or leave it out: then that of the box is used.",
        )
    else:
        return DataError(
            f"the position of annotation {number} is not three finite numbers",
            where=where,
            got=repr(rows.odd[row, "position_m"]),
            wanted="position_m: [x, y, z] in metres",
            fix="Correct the position or leave it out.",
        )
    written = rows.odd.get((row, "bbox"), _as_written([x0, y0, x1 - x0, y1 - y0]))
    return DataError(
        f"the box of annotation {number} {what}",
        where=where,
        got=f"bbox {written!r}",
        wanted=wanted,
        fix="Correct the box or take the annotation out.",
    )


def _as_written(values: Sequence[float]) -> list[float | int]:
    """Return numbers as people write them.

    >>> _as_written([1.0, 2.5])
    [1, 2.5]
    """
    rounded = (round(float(value), 6) for value in values)
    return [int(value) if value.is_integer() else value for value in rounded]

"""What Cityscapes says is in an image: objects from its instance maps or from its polygons.

Facts of the label set: cityscapesScripts 2.3.0, helpers/labels.py. An instance map holds class * 1000 +
number where objects are separate, and the class alone where they are not (a group).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from adverse.data.files import read_model
from adverse.data.images import Size
from adverse.data.maps import INSTANCES
from adverse.data.truth import AnnotatedObject, renamed
from adverse.errors import DataError, suggestion
from adverse.masks import Masks, mask_in_crop

OBJECTS = {
    24: "person",
    25: "rider",
    26: "car",
    27: "truck",
    28: "bus",
    29: "caravan",
    30: "trailer",
    31: "train",
    32: "motorcycle",
    33: "bicycle",
}
"""The classes that have instances, by id."""
NOT_JUDGED = ("caravan", "trailer")
"""Of these, the ones that the benchmark does not evaluate."""
OTHERS = (
    "unlabeled",
    "ego vehicle",
    "rectification border",
    "out of roi",
    "static",
    "dynamic",
    "ground",
    "road",
    "sidewalk",
    "parking",
    "rail track",
    "building",
    "wall",
    "fence",
    "guard rail",
    "bridge",
    "tunnel",
    "pole",
    "polegroup",
    "traffic light",
    "traffic sign",
    "vegetation",
    "terrain",
    "sky",
    "license plate",
)
"""The classes that have none."""
PIXEL_CLASSES = {
    7: "road",
    8: "sidewalk",
    11: "building",
    12: "wall",
    13: "fence",
    17: "pole",
    19: "traffic light",
    20: "traffic sign",
    21: "vegetation",
    22: "terrain",
    23: "sky",
    **{number: name for number, name in OBJECTS.items() if name not in NOT_JUDGED},
}
"""The 19 classes that segmentation is evaluated on, by the ids of label maps."""
GROUP = "group"
HIGHEST_ID = 33


NOT_EVALUATED = frozenset(range(HIGHEST_ID + 1)) - PIXEL_CLASSES.keys()
"""The ids whose pixels are void: what covers them is neither right nor wrong.

A caravan that is told apart (29001) is not: the published evaluation looks at the values of instance maps.
"""


def objects_by_instance(
    path: Path, size: Size, class_map: Mapping[str, str], *, masks: bool = False
) -> list[AnnotatedObject]:
    """Return the boxes around what is visible of each object; a group's parts are ignored."""
    return objects_in(INSTANCES.read(path, size), path, class_map, masks=masks)


def objects_in(
    ids: NDArray[np.integer], path: Path, class_map: Mapping[str, str], *, masks: bool = False
) -> list[AnnotatedObject]:
    """Return the objects of an instance map (H,W) as Cityscapes numbers them, read from a file."""
    from scipy.ndimage import find_objects  # noqa: PLC0415 - slow to import, and other formats need none of it

    values, index = np.unique(ids, return_inverse=True)
    boxes = find_objects(index.reshape(ids.shape) + 1)
    objects = []
    for value, box in zip(values.tolist(), boxes, strict=True):
        kind = value // 1000 if value >= 1000 else value
        if kind > HIGHEST_ID or (value >= 1000 and kind not in OBJECTS):
            raise _wrong(path, f"instance id {value}", "ids 0..33, or class * 1000 + number of such objects")
        name = OBJECTS.get(kind)
        if name is None:
            continue
        label, where = renamed(name, class_map), f"{path}, instance id {value}"
        if value >= 1000:
            rows, columns = box
            corners = (float(columns.start), float(rows.start), float(columns.stop), float(rows.stop))
            mask = mask_in_crop(ids[box] == value, columns.start, rows.start, ids.shape) if masks else None
            objects.append(AnnotatedObject(label, corners, where, ignore=name in NOT_JUDGED, mask=mask))
        else:
            objects += _parts(ids == value, label, where, masks=masks)
    return objects


def void_pixels(path: Path, size: Size) -> Masks:
    """Return the pixels of the classes that the benchmark does not evaluate, as one mask."""
    ids = INSTANCES.read(path, size)
    return Masks.of(np.isin(ids, sorted(NOT_EVALUATED))[None])


def objects_by_polygon(path: Path, size: Size, class_map: Mapping[str, str]) -> list[AnnotatedObject]:
    """Return the boxes around the polygons, hidden parts too, cut at the border; groups are ignored."""
    objects = []
    for number, polygon in enumerate(read_polygons(path, size)):
        where = f"{path}, field objects[{number}]"
        group = polygon.label.endswith(GROUP) and polygon.label != "polegroup"
        name = polygon.label.removesuffix(GROUP) if group else polygon.label
        if name not in (*OBJECTS.values(), *OTHERS):
            closest = suggestion(name, [*OBJECTS.values(), *OTHERS])
            raise DataError(
                "the polygon file is wrong", where=f"{where}.label", got=repr(polygon.label), fix=closest
            )
        if polygon.deleted or name in OTHERS:
            continue
        corners = np.array(polygon.polygon)
        x0, y0 = np.maximum(corners.min(axis=0), 0)
        x1, y1 = np.minimum(corners.max(axis=0) + 1, size)  # a corner is a pixel of the object
        box = float(x0), float(y0), float(x1), float(y1)
        label = renamed(name, class_map)
        objects.append(AnnotatedObject(label, box, where, ignore=group or name in NOT_JUDGED))
    return objects


_Number = Annotated[float, Field(allow_inf_nan=False)]
_Corner = Annotated[list[_Number], Field(min_length=2, max_length=2)]


class Polygon(BaseModel):
    """What was drawn around one thing."""

    label: str
    polygon: list[_Corner] = Field(min_length=1)
    deleted: int | bool = 0


class _Polygons(BaseModel):
    imgWidth: int = Field(gt=0)  # noqa: N815 - their name
    imgHeight: int = Field(gt=0)  # noqa: N815
    objects: list[Polygon]


def read_polygons(path: Path, size: Size) -> list[Polygon]:
    """Read what was drawn on an image of a size, in the order in which it was: from back to front."""
    drawn = read_model(path, "polygon", _Polygons)
    if (drawn.imgWidth, drawn.imgHeight) != size:
        got = f"{drawn.imgWidth}x{drawn.imgHeight} pixels"
        raise _wrong(path, got, f"{size[0]}x{size[1]}, as the image")
    return drawn.objects


def _parts(group: NDArray[np.bool_], label: str, where: str, *, masks: bool) -> Iterator[AnnotatedObject]:
    count, part, stats, _ = cv2.connectedComponentsWithStats(group.astype(np.uint8), connectivity=8)
    for number, (x, y, width, height, _) in enumerate(stats[1:count].tolist(), start=1):
        crop = part[y : y + height, x : x + width] == number
        mask = mask_in_crop(crop, x, y, group.shape) if masks else None
        yield AnnotatedObject(label, (x, y, x + width, y + height), where, ignore=True, mask=mask)


def _wrong(path: Path, got: str, wanted: str) -> DataError:
    return DataError(
        "the annotation of an image is wrong",
        where=str(path),
        got=got,
        wanted=wanted,
        fix="Write the file again with the data set's own scripts, or take the image out.",
    )

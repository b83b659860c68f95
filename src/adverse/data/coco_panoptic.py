"""The `coco-panoptic` format: COCO's panoptic annotations, a JSON file and a PNG for each image.

root/
  panoptic_val2017.json           images, annotations with segments_info, categories with isthing
  panoptic_val2017/000123.png     the segment of each pixel: red + 256 green + 65536 blue, 0 is void
  val2017/000123.jpg
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from adverse.data import coco, codecs
from adverse.data.coco_file import CocoImage, Outline, entries, open_arrays
from adverse.data.files import absent, inside, read_bytes, validated
from adverse.data.images import DEFAULT_POLICY, MAX_MEGAPIXELS, ImageFile, ImagePolicy
from adverse.data.object_masks import masks_by_value
from adverse.data.truth import AnnotatedObject, Truths
from adverse.errors import AdverseError, DataError
from adverse.masks import Masks
from adverse.plugins import dataset
from adverse.types import Dataset, Frame, Log

NO_PIXELS = "segments without pixels"
_LIMIT_BYTES = int(MAX_MEGAPIXELS * 1e6) * 3 + 2**20


def looks_like(path: Path) -> dict[str, Any] | None:
    """Recognise a panoptic JSON file, or a folder that holds one and no boxes that `coco` would read."""
    if path.is_dir() and coco.looks_like(path) is not None:
        return None
    root = path.parent if path.is_file() else path
    files = [path] if path.is_file() else sorted(root.glob("*panoptic*.json"))
    for file in (file for file in files if file.suffix == ".json"):
        options = _guessed(file, root)
        if options is not None:
            return options
    return None


@dataset(name="coco-panoptic", looks_like=looks_like)
def coco_panoptic(
    root: Path,
    *,
    annotations: str,
    images: str = "images",
    masks: str | None = None,
    instance_masks: bool = False,
    policy: ImagePolicy = DEFAULT_POLICY,
) -> Dataset:
    """Read images with COCO panoptic annotations: labels and instances for each pixel, boxes of things.

    `annotations`, `images` and `masks` (the PNG files; the name of the annotations without .json) are
    relative to root. A frame's id is its file name without the ending. Everything is the test split.
    `instance_masks` reads the pixels of each thing; a study of instance segmentation sets it.
    """
    path = root / annotations
    file = _read(path)
    names = {entry.id: entry.name for entry in file.categories}
    things = {entry.id for entry in file.categories if entry.isthing}
    truths = Truths(tuple(names[key] for key in sorted(things)), Counter())
    described = {entry.id: entry for entry in file.images}
    folder = root / (annotations.removesuffix(".json") if masks is None else masks)
    logs = []
    for at, entry in enumerate(file.annotations):
        where = f"{path}, field annotations[{at}]"
        image = described.get(entry.image_id)
        unknown = next((s.category_id for s in entry.segments_info if s.category_id not in names), None)
        if image is None or unknown is not None:
            got = f"image_id {entry.image_id}" if image is None else f"category_id {unknown}"
            raise DataError(
                "an annotation refers to an entry that does not exist",
                where=where,
                got=got,
                fix="Add the entry, or take the annotation out.",
            )
        source = ImageFile(inside(root / images, image.file_name, where=where), policy, image.size)
        mask = inside(folder, entry.file_name, where=where)
        shown = [s for s in entry.segments_info if s.category_id in things and s.area > 0]
        objects = [
            AnnotatedObject(names[segment.category_id], segment.box, where, ignore=bool(segment.iscrowd))
            for segment in shown
        ]
        truths.notes[NO_PIXELS] += sum(segment.area == 0 for segment in entry.segments_info)
        pixels, unread = None, None
        if instance_masks:
            numbered = SegmentFile(mask, source, tuple((s.id, s.id) for s in entry.segments_info), "int32")
            pixels, unread = _masks(numbered, [segment.id for segment in shown])
        if pixels is not None:
            drawn = zip(objects, pixels.counts, strict=True)
            objects = [replace(thing, mask=counts) for thing, counts in drawn]
        truth, fault = truths.of(objects, source, mask_size=None if pixels is None else pixels.size)
        fault = fault or unread
        missing = absent(source.path, "image")
        classes = tuple((segment.id, segment.category_id) for segment in entry.segments_info)
        separate = tuple(
            (segment.id, segment.id if segment.category_id in things and not segment.iscrowd else 0)
            for segment in entry.segments_info
        )
        frame_id = Path(image.file_name).with_suffix("").as_posix()
        frame = Frame(
            id=frame_id,
            log_id=frame_id,
            index=0,
            image=source,
            truth=truth,
            image_id=image.id,
            labels=SegmentFile(mask, source, classes, "uint8"),
            fault=fault if missing is None else str(missing),
            instances=SegmentFile(mask, source, separate, "int32"),
        )
        logs.append(Log(frame_id, (frame,)))
    if not logs:
        fix = "Check the annotations option."
        raise DataError("the data set has no images", where=str(path), got="no annotations", fix=fix)
    notes = dict(+truths.notes)
    name = root.resolve().name
    return Dataset(name, truths.categories, tuple(logs), (path,), notes, pixel_classes=names)


@dataclass(frozen=True)
class SegmentFile:
    """A panoptic PNG; call it to get (H,W) of a number for each pixel: what `meaning` says of its segment."""

    path: Path
    image: ImageFile
    meaning: tuple[tuple[int, int], ...]
    kind: str

    @property
    def recipe(self) -> str:
        """How the bytes become numbers."""
        return f"panoptic {self.kind} {self.meaning} {self.image.recipe}"

    def __call__(self) -> NDArray[Any]:
        """Read and check the file."""
        where = f"panoptic file {self.path}"
        data = read_bytes(self.path, what="panoptic", limit=_LIMIT_BYTES)
        header = codecs.inspect(data, where=where)
        size = header.width, header.height
        if header.format != "PNG" or header.bits != 8 or header.notes or size != self.image.measure():
            got = (
                f"{header.bits}-bit {header.format} {' '.join(header.notes) or 'RGB'} of {size[0]}x{size[1]}"
            )
            wanted = f"8-bit RGB PNG of {'x'.join(map(str, self.image.measure()))}, as the image"
            raise _refused("the panoptic map does not fit", got, wanted, where)
        colour = codecs.decode(data, header, where=where).astype(np.int32)
        segments = colour[..., 0] | colour[..., 1] << 8 | colour[..., 2] << 16
        values, index = np.unique(segments, return_inverse=True)
        meaning = dict(self.meaning) | {0: 0}
        unknown = next((number for number in values.tolist() if number not in meaning), None)
        if unknown is not None:
            got = f"segment {unknown}"
            raise _refused(
                "a pixel has a segment id that is not listed", got, "ids from segments_info", where
            )
        table = np.array([meaning[number] for number in values.tolist()], self.kind)
        return np.ascontiguousarray(table[index.reshape(segments.shape)])


def _masks(segments: SegmentFile, wanted: list[int]) -> tuple[Masks | None, str | None]:
    """Return the masks of some segments, or why the file cannot be read."""
    try:
        return masks_by_value(segments(), wanted), None
    except AdverseError as error:
        return None, str(error)


_Id = Annotated[int, Field(gt=0, lt=2**24)]


class _Segment(BaseModel):
    id: _Id
    category_id: int
    bbox: Annotated[list[float], Field(min_length=4, max_length=4)]
    area: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    iscrowd: int | bool = 0

    @property
    def box(self) -> tuple[float, float, float, float]:
        x, y, width, height = self.bbox
        return x, y, x + width, y + height


class _Annotation(BaseModel):
    image_id: int | str
    file_name: str
    segments_info: list[_Segment]


class _Category(BaseModel):
    id: Annotated[int, Field(gt=0, le=255)]
    name: Annotated[str, Field(min_length=1)]
    isthing: int | bool


class _Panoptic(NamedTuple):
    images: list[CocoImage]
    annotations: list[_Annotation]
    categories: list[_Category]


def _read(path: Path) -> _Panoptic:
    arrays = open_arrays(path)
    validated(arrays.outline(), path, "annotation", Outline)
    return _Panoptic(
        list(entries(arrays, path, "images", CocoImage)),
        list(entries(arrays, path, "annotations", _Annotation)),
        list(entries(arrays, path, "categories", _Category)),
    )


def _guessed(file: Path, root: Path) -> dict[str, Any] | None:
    try:
        arrays = open_arrays(file)
        first, image = arrays.first("annotations"), str(arrays.first("images")["file_name"])
        mask = str(first["file_name"])
        listed = {int(segment["id"]) for segment in first["segments_info"]}
    except (AdverseError, TypeError, ValueError, LookupError):
        return None
    folders = sorted(child for child in root.iterdir() if child.is_dir())
    held = {name: [f.name for f in folders if (f / name).is_file()] for name in (image, mask)}
    if not held[image] or not held[mask]:
        return None
    masks = next((name for name in held[mask] if _holds(root / name / mask, listed)), held[mask][0])
    pictures = next((name for name in held[image] if name != masks), masks)
    return {"root": str(root), "annotations": file.name, "images": pictures, "masks": masks}


def _holds(path: Path, listed: set[int]) -> bool:
    """Tell whether the pixels of a file are segments of a list, and not a picture."""
    picture = ImageFile(path)
    meaning = tuple((number, number) for number in sorted(listed))
    try:
        return bool(SegmentFile(path, picture, meaning, "int32")().any())
    except AdverseError:
        return False


def _refused(what: str, got: str, wanted: str, where: str) -> DataError:
    fix = "Fetch the file again, or take the image out of the annotations."
    return DataError(what, where=where, got=got, wanted=wanted, fix=fix)

"""Answers that were recorded elsewhere: one COCO results file for each setting of the study.

    [{"image_id": 7, "category_id": 1, "bbox": [x, y, width, height], "score": 0.9}, ...]

Masks are COCO's run lengths, `"segmentation": {"size": [height, width], "counts": "..."}`; the box may then
be missing, and is the one around the mask. An entry of a 3-D detector also has "position_m": [x, y, z], in
metres of the camera's frame.

A path with {mutation} in it stands for one file per setting. An image without an entry has no detections, as
COCO has it. An entry that is no detection (a NaN score, three numbers for a box) spoils the answer for its
image only. Whether the files belong to the data of a study is checked before it starts (recorded_check.py).
"""

from __future__ import annotations

import glob
import math
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from adverse.errors import DataError, StudyError, SutError
from adverse.json_arrays import JsonArrays
from adverse.masks import Masks, coco_counts
from adverse.plain_files import read_plain
from adverse.plugins import sut
from adverse.suts.recorded_check import DeclaredFormat, Missing, Review, Shifted, Unknown, review_files
from adverse.suts.recorded_rows import Boxes, Needed, RecordedRows
from adverse.types import Detections, Recorded

FIELDS = ("image_id", "category_id", "bbox", "score")
NO_POSITION = (math.nan, math.nan, math.nan)


@sut(name="predictions")
def predictions(
    path: Path,
    *,
    categories: dict[int, str] | None = None,
    annotations: Path | None = None,
    boxes: Boxes | None = None,
    missing: Missing | None = None,
    unknown_images: Unknown = "error",
    shifted_images: Shifted = "error",
) -> Recorded:
    """Use recorded answers: `path` holds {mutation} where each file has the id of its setting.

    The un-mutated images are those of the setting `identity`. The names of the category ids are given by
    `categories: {1: person}` or by a COCO file of `annotations`. `boxes` are [x, y, width, height] unless it
    says xyxy. `missing: no-detections` says that images without an entry are meant so, however many;
    `unknown_images: ignore` leaves out entries for images that the data set does not have.
    `shifted_images: accept` says that boxes which fit the neighbouring image's truth are meant so.
    """
    if not is_template(path):
        raise StudyError(
            "one file cannot hold the answers for every setting",
            where="path",
            got=str(path),
            wanted="a path with {mutation} in it",
            fix=f"Write {path.with_name('{mutation}.json')} and name each file after its setting.",
        )
    if (categories is None) == (annotations is None):
        raise StudyError(
            "category ids need names from exactly one source",
            where="categories, annotations",
            got="neither" if categories is None else "both",
            fix="Add categories: {1: person, ...}, or annotations: with a COCO file.",
        )
    names = categories if annotations is None else _categories_of(annotations)
    return RecordedPredictions(
        path, names or {}, DeclaredFormat(boxes, missing, unknown_images, shifted_images)
    )


class RecordedPredictions:
    """Recorded answers; each file is read when first needed, and once."""

    def __init__(self, path: Path, categories: Mapping[int, str], declared: DeclaredFormat) -> None:
        self.classes = tuple(categories[number] for number in sorted(categories))
        self._path = path
        self._declared = declared
        self._label_of = {number: label for label, number in enumerate(sorted(categories))}
        self._read: dict[str, _Answers | SutError] = {}

    def missing(self, settings: Iterable[str]) -> list[Path]:
        """Return the files that settings need and that are not there."""
        wanted = (path_for(self._path, setting) for setting in settings)
        return [path for path in wanted if not path.is_file()]

    def review(self, needed: Mapping[str, Needed]) -> Review:
        """Check the files of some settings, the baseline's first, against the frames they must answer for."""
        there = {setting: frames for setting, frames in needed.items() if not self.missing([setting])}
        files = [lambda setting=setting: self._open(setting).rows for setting in there]
        return review_files(files, list(there.values()), self._declared)

    def recall(self, image_id: int | str, setting: str) -> Detections:
        """Return what was recorded for an image under a setting, or raise SutError."""
        if setting not in self._read:
            try:
                self._read[setting] = self._open(setting)
            except SutError as error:
                self._read[setting] = error
        rows = self._read[setting]
        if isinstance(rows, SutError):
            raise rows.with_traceback(None)
        return rows.of(image_id)

    def _open(self, setting: str) -> _Answers:
        path = path_for(self._path, setting)
        return _Answers(path, self._label_of, self._declared.boxes or "xywh")


class _Answers:
    """One file, kept as arrays: what an image's detections are, and which images have a fault."""

    def __init__(self, path: Path, label_of: Mapping[int, int], convention: Boxes) -> None:
        self._path = path
        self._rows: dict[int | str, array[int]] = {}
        self._faults: dict[int | str, str] = {}
        images: list[int | str] = []
        boxes = array("d")
        scores = array("d")
        labels = array("q")
        positions = array("d")
        self._masks: dict[int, _Mask] = {}
        unknown: Counter[object] = Counter()
        for number, entry in _entries(path):
            image_id = entry.image_id if isinstance(entry, _Entry) else _image_id(entry, number, path)
            try:
                box, score, label, position = _detection(entry, label_of, convention)
                mask = _mask(entry)
            except (KeyError, OverflowError, ValueError) as error:
                self._faults.setdefault(image_id, f"entry {number}: {error.args[0]}")
                if isinstance(error, _CategoryError):
                    unknown[error.category] += 1
                continue
            rows = self._rows.get(image_id)
            if rows is None:
                rows = self._rows[image_id] = array("q")
            if mask is not None:
                self._masks[len(scores)] = mask
            rows.append(len(scores))
            images.append(image_id)
            boxes.extend(box)
            scores.append(score)
            labels.append(label)
            positions.extend(NO_POSITION if position is None else position)
        as_written = np.array(boxes, np.float64).reshape(-1, 4)
        corners = as_written.copy()
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused when recalled
            if convention == "xywh":
                corners[:, 2:] += corners[:, :2]
            self._boxes = corners.astype(np.float32)
            self._scores = np.array(scores, np.float64).astype(np.float32)
            self._positions = np.array(positions, np.float64).reshape(-1, 3).astype(np.float32)
        self._labels = np.array(labels, np.int64)
        self.rows = RecordedRows(
            path, images, as_written, np.array(scores, np.float64), self._labels, self._faults, unknown
        )

    def of(self, image_id: int | str) -> Detections:
        where = f"{self._path}, image {image_id!r}"
        if image_id in self._faults:
            raise SutError(
                "a recorded entry is not a valid detection",
                where=where,
                got=self._faults[image_id],
                wanted="image_id, a known category_id, bbox of four numbers and score",
                fix="Fix it in the file.",
            )
        rows = np.array(self._rows.get(image_id, ()), np.int64)
        positions = self._positions[rows]
        placed: NDArray[np.bool_] = ~np.isnan(positions[:, 0])  # one too large for a float32 is refused below
        if placed.any() and not placed.all():
            raise SutError(
                "some recorded entries of an image have a position and others have none",
                where=where,
                got=f"position_m in {int(placed.sum())} of {len(placed)} entries",
                wanted="position_m in all entries of an image, or in none",
                fix="Write it for every entry; without it a detection is placed by the depth of its box.",
            )
        try:
            return Detections(
                self._boxes[rows],
                self._scores[rows],
                self._labels[rows],
                positions_m=positions if placed.any() else None,
                masks=self._masks_of(rows.tolist()),
            )
        except SutError as error:
            raise SutError(
                error.what, where=where, got=error.got, wanted=error.wanted, fix="Fix it in the file."
            ) from error

    def _masks_of(self, rows: list[int]) -> Masks | None:
        masks = [self._masks[row] for row in rows if row in self._masks]
        if not masks:
            return None
        sizes = sorted({mask.size for mask in masks})
        if len(masks) < len(rows) or len(sizes) > 1:
            got = f"{len(masks)} masks for {len(rows)} detections, of sizes {sizes}"
            raise SutError("the masks of an image do not fit together", got=got, wanted="one for each")
        return Masks(sizes[0], tuple(mask.counts for mask in masks))


class _CategoryError(KeyError):
    """An entry's category is not among those of the study."""

    def __init__(self, category: object) -> None:
        super().__init__(f"category_id {category!r} is not among the categories")
        self.category = category if isinstance(category, int | str) else repr(category)


class _RunLengths(msgspec.Struct):
    """A mask as COCO's results hold it."""

    size: list[int]
    counts: str | list[int]


class _Entry(msgspec.Struct):
    """An entry with nothing odd about it; the others come as plain values."""

    image_id: int | str
    category_id: int
    score: float
    bbox: tuple[float, float, float, float] | None = None
    segmentation: _RunLengths | None = None
    position_m: tuple[float, float, float] | None = None


class _Mask(NamedTuple):
    """A mask that was recorded: (height, width) and compressed run lengths."""

    size: tuple[int, int]
    counts: bytes


def _entries(path: Path) -> Iterator[tuple[int, _Entry | Any]]:
    """Yield the entries of a file with their numbers, a block of them in memory at a time."""
    for first, entries, values in _open_results(path).blocks(None, msgspec.json.Decoder(list[_Entry])):
        yield from enumerate(values if entries is None else entries, start=first)


def _open_results(path: Path) -> JsonArrays:
    try:
        results = JsonArrays(read_plain(path), path, "predictions", allow_nan=True)
        outline = results.outline()
    except OSError as error:
        raise SutError(
            "there are no recorded answers for this setting",
            where=str(path),
            got=error.strerror or str(error),
            fix="Record them under this name, or take the setting out of the study.",
        ) from error
    except DataError as error:
        raise SutError(error.what, where=error.where, got=error.got, fix=error.fix) from error
    if not isinstance(outline, list):
        raise SutError(
            "the file does not hold COCO results",
            where=str(path),
            got=type(outline).__name__,
            wanted=f"a list of {{{', '.join(FIELDS)}}}",
        )
    return results


def _image_id(entry: Any, number: int, path: Path) -> int | str:
    image_id = entry.get("image_id") if isinstance(entry, dict) else None
    if not isinstance(image_id, int | str) or isinstance(image_id, bool):
        raise SutError(
            "an entry does not say which image it belongs to",
            where=f"{path}, entry {number}",
            got=repr(entry)[:200],
            wanted="an object with image_id",
        )
    return image_id


def _mask(entry: _Entry | Mapping[str, Any]) -> _Mask | None:
    """Return the mask of one entry, if it has any; ValueError says what is wrong with it."""
    written = entry.segmentation if isinstance(entry, _Entry) else entry.get("segmentation")
    if written is None:
        return None
    if isinstance(written, _RunLengths):
        written = {"size": written.size, "counts": written.counts}
    if not isinstance(written, dict):
        raise ValueError("segmentation is not run lengths {size, counts}")  # noqa: TRY004 - of a file
    return _Mask(*coco_counts(written))


def _box_around(entry: _Entry | Mapping[str, Any], convention: Boxes) -> list[float]:
    """Return the box around the mask of an entry that has no other, in the file's convention."""
    mask = _mask(entry)
    if mask is None:
        raise KeyError("it has no bbox")
    x0, y0, x1, y1 = Masks(mask.size, (mask.counts,)).boxes[0].tolist()
    return [x0, y0, x1, y1] if convention == "xyxy" else [x0, y0, x1 - x0, y1 - y0]


def _detection(
    entry: _Entry | Mapping[str, Any], label_of: Mapping[int, int], convention: Boxes
) -> tuple[Iterable[float], float, int, Iterable[float] | None]:
    """Return box, score, label and position of one entry; the error that it raises says what is wrong."""
    if isinstance(entry, _Entry):
        if entry.category_id not in label_of:
            raise _CategoryError(entry.category_id)
        box = _box_around(entry, convention) if entry.bbox is None else entry.bbox
        return box, entry.score, label_of[entry.category_id], entry.position_m
    if "bbox" not in entry and "segmentation" in entry:
        entry = {**entry, "bbox": _box_around(entry, convention)}
    lacking = [field for field in FIELDS if field not in entry]
    if lacking:
        raise KeyError(f"it has no {lacking[0]}")
    category, box, score = entry["category_id"], entry["bbox"], entry["score"]
    if not isinstance(category, int) or isinstance(category, bool) or category not in label_of:
        raise _CategoryError(category)
    if not isinstance(box, list) or len(box) != 4 or not all(_is_number(v) for v in box):
        raise ValueError(f"bbox is {box!r}")
    if not _is_number(score):
        raise ValueError(f"score is {score!r}")
    position = entry.get("position_m")
    if position is not None and (
        not isinstance(position, list) or len(position) != 3 or not all(map(_is_finite, position))
    ):
        raise ValueError(f"position_m is {position!r}")
    return [float(v) for v in box], float(score), label_of[category], position


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_finite(value: Any) -> bool:
    return _is_number(value) and math.isfinite(value)


def _categories_of(annotations: Path) -> dict[int, str]:
    try:
        arrays = JsonArrays(read_plain(annotations), annotations, "annotation", allow_nan=True)
        blocks = arrays.blocks("categories", msgspec.json.Decoder(list[dict[str, Any]]))
        items = (item for block in blocks for item in (block.entries or block.values))
        categories = {int(item["id"]): str(item["name"]) for item in items}
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise StudyError(
            "the file of annotations lists no categories",
            where=f"annotations: {annotations}",
            got=f"{type(error).__name__}: {error}",
            wanted='"categories": [{"id": 1, "name": "person"}, ...]',
            fix="Give the COCO file of the ground truth, or name the ids in categories:.",
        ) from error
    return categories


PLACEHOLDER = "{mutation}"


def is_template(path: Path) -> bool:
    """Return whether a path stands for one file per setting."""
    return PLACEHOLDER in str(path)


def path_for(template: Path, setting: str) -> Path:
    """Return the file of one setting.

    >>> path_for(Path("vendor/{mutation}.json"), "blur(sigma_px=2)").as_posix()
    'vendor/blur(sigma_px=2).json'
    """
    return Path(str(template).replace(PLACEHOLDER, setting))


def files_of(template: Path) -> dict[str, Path]:
    """Return the files that exist for a template, by setting id."""
    parts = str(template).split(PLACEHOLDER)
    pattern = re.compile(re.escape(parts[0]) + "(.*)" + r"\1".join(map(re.escape, parts[1:])))
    files = {}
    for name in glob.glob("*".join(map(glob.escape, parts))):  # noqa: PTH207 - Path.glob does not escape
        match = pattern.fullmatch(name)
        if match and Path(name).is_file():
            files[match.group(1)] = Path(name)
    return dict(sorted(files.items()))

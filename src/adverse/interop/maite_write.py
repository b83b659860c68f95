"""MAITE data sets as files that a study can read: PNG images, and the truth in a format of ours."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from adverse.data.class_folders import NAMES_FILE, class_folders
from adverse.data.coco import coco
from adverse.data.write import write_image
from adverse.errors import DataError
from adverse.interop.maite_images import image_of
from adverse.suts.maite_model import names_of
from adverse.types import Dataset, Image

TRUTH_FILE, IMAGE_FOLDER = "truth.json", "images"
_SAFE_ID = re.compile(r"\w[\w.-]*(/\w[\w.-]*)*", re.ASCII)


def write_dataset(theirs: Any, folder: Path, *, scale: float | None = None) -> Dataset:
    """Write a MAITE data set into a folder as images and truth, and read it as ours.

    Object detection becomes the format `coco` (annotations: truth.json), classification `class-folders`.
    Images must be bytes, or `scale` brings their values to 0..255. Frames keep the ids of the data where
    these can be file names.
    """
    if len(theirs) and not hasattr(theirs[0][1], "boxes"):
        return _write_classes(theirs, folder, scale)
    return _write_boxes(theirs, folder, scale)


def _write_boxes(theirs: Any, folder: Path, scale: float | None) -> Dataset:
    names = names_of(theirs)
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for number in range(len(theirs)):
        planes, target, metadata = theirs[number]
        image = image_of(planes, scale=scale, where=f"datum {number}")
        file = f"{_file_name(metadata.get('id'), number)}.png"
        _write(folder / IMAGE_FOLDER / file, image)
        height, width = image.shape[:2]
        images.append({"id": number, "file_name": file, "width": width, "height": height})
        for box, label, ignored in _objects(target, metadata):
            x0, y0, x1, y1 = box
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": number,
                    "category_id": label + 1,
                    "bbox": [x0, y0, x1 - x0, y1 - y0],
                    "iscrowd": int(ignored),
                }
            )
    categories = [{"id": number, "name": name} for number, name in enumerate(names, start=1)]
    truth = {"images": images, "annotations": annotations, "categories": categories}
    (folder / TRUTH_FILE).write_text(json.dumps(truth), "utf-8")
    return coco(folder, annotations=TRUTH_FILE, images=IMAGE_FOLDER)


def _write_classes(theirs: Any, folder: Path, scale: float | None) -> Dataset:
    """Write one folder for each class, named by its number; class_names.json says what it is."""
    names = names_of(theirs)
    folders = [f"{number:04d}" for number in range(len(names))]
    for one in folders:
        (folder / one).mkdir(parents=True, exist_ok=True)
    for number in range(len(theirs)):
        planes, target, metadata = theirs[number]
        scores = np.asarray(target)
        if scores.shape != (len(names),):
            raise DataError(
                "a target is not one number for each class",
                where=f"datum {number}",
                got=f"shape {scores.shape}",
                wanted=f"({len(names)},)",
                fix="Give index2label of the data set a name for each class.",
            )
        file = f"{_file_name(metadata.get('id'), number)}.png"
        image = image_of(planes, scale=scale, where=f"datum {number}")
        _write(folder / folders[int(scores.argmax())] / file, image)
    (folder / NAMES_FILE).write_text(json.dumps(dict(zip(folders, names, strict=True))), "utf-8")
    return class_folders(folder)


def _write(path: Path, image: Image) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_image(path, image)


def _objects(target: Any, metadata: Mapping[str, Any]) -> Iterator[tuple[list[float], int, bool]]:
    """Give box, label and whether it is ignored, of the target's objects and of those that we kept aside."""
    aside = metadata.get("ignored_boxes", ()), metadata.get("ignored_labels", ())
    for (boxes, labels), ignored in (((target.boxes, target.labels), False), (aside, True)):
        rows = np.asarray(boxes, np.float64).reshape(-1, 4).tolist()
        for box, label in zip(rows, np.asarray(labels, np.int64).reshape(-1).tolist(), strict=True):
            yield box, label, ignored


def _file_name(own: Any, number: int) -> str:
    text = str(own)
    return text if own is not None and _SAFE_ID.fullmatch(text) else f"{number:06d}"

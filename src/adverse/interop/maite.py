"""MAITE in both directions: our data sets, SUTs and mutations as its own, its data sets and models as ours.

MAITE's protocols are structural, so the `maite` package is not imported. Images are (channel, row, column),
boxes (x0, y0, x1, y1). A data set is a sequence of (image, target, metadata), a model is called with a batch
of images, an augmentation with a batch of all three. Targets are boxes, or one number for each class.

    to MAITE      MaiteDataset(dataset), MaiteModel(system), MaiteAugmentation("gaussian_blur(sigma_px=2)")
    from MAITE    write_dataset(theirs, folder), MaiteDetector(theirs), MaiteClassifier(theirs),
                  and the SUT adapter `maite`

Our images are (row, column, channel) RGB bytes. `write_dataset` writes a MAITE data set as files that a study
can read: PNG images, and the truth in a format of ours.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from adverse import plugins
from adverse.data.class_folders import NAMES_FILE, class_folders
from adverse.data.coco import coco
from adverse.data.images import write_image
from adverse.errors import DataError, SutError
from adverse.mutations.settings import apply_setting, parse, refuse_moving
from adverse.suts.ask import ask, task_of
from adverse.suts.maite_model import MaiteClassifier, MaiteDetector, names_of
from adverse.types import ClassScores, Dataset, Detections, Frame, Image, Split, System


def planes_of(image: Image) -> Image:
    """Return one of our images as (channel, row, column)."""
    return np.ascontiguousarray(image.transpose(2, 0, 1))


def image_of(planes: Any, *, scale: float | None = None, where: str | None = None) -> Image:
    """Return a (channel, row, column) array as our (row, column, 3) RGB bytes; gray becomes RGB.

    >>> image_of(np.zeros((3, 4, 5), np.uint8)).shape
    (4, 5, 3)
    """
    array = np.asarray(planes)
    if array.ndim != 3 or array.shape[0] not in (1, 3) or array.size == 0:
        raise SutError(
            "this is not a MAITE image",
            where=where,
            got=f"shape {array.shape}",
            wanted="(channel, row, column) with 3 or 1 channels",
            fix="Move the channels to the front.",
        )
    if scale is not None:
        array = np.rint(array.astype(np.float64) * scale)
    whole = array.astype(np.uint8)
    if (array.dtype.kind == "f" and scale is None) or not np.array_equal(whole, array):
        raise SutError(
            "the values of an image are not bytes",
            where=where,
            got=f"{array.dtype} from {array.min()} to {array.max()}",
            wanted="whole numbers from 0 to 255",
            fix="Scale the image to 0..255 and make it uint8.",
        )
    return np.ascontiguousarray(np.broadcast_to(whole, (3, *whole.shape[1:])).transpose(1, 2, 0))


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
    for name in folders:
        (folder / name).mkdir(parents=True, exist_ok=True)
    for number in range(len(theirs)):
        planes, target, metadata = theirs[number]
        scores = np.asarray(target)
        if scores.shape != (len(names),):
            raise DataError(
                "a target does not hold one score for each class",
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


__all__ = [
    "MaiteAugmentation",
    "MaiteClassifier",
    "MaiteDataset",
    "MaiteDetector",
    "MaiteModel",
    "Target",
    "write_dataset",
]

Problem = Literal["detection", "classification"]
"""The problems that MAITE and we have in common."""


@dataclass(frozen=True, eq=False)
class Target:
    """An object-detection target of MAITE: N boxes (N, 4), labels (N,), scores (N,)."""

    boxes: NDArray[Any]
    labels: NDArray[np.int64]
    scores: NDArray[Any]


class MaiteDataset:
    """The frames of a data set, of one split, as a MAITE data set for object detection or classification.

    The truth has scores of 1. Objects that neither count as hit nor as miss have no place in MAITE's targets:
    they are in the metadata (`ignored_boxes`, `ignored_labels`). With `depth=True` so is `depth_m`.
    """

    def __init__(
        self, dataset: Dataset, *, task: Problem = "detection", split: Split = "test", depth: bool = False
    ) -> None:
        self.metadata: Any = {"id": dataset.name, "index2label": dict(enumerate(dataset.categories))}
        self._frames = [frame for log in dataset.logs if log.split == split for frame in log.frames]
        self._task = task
        self._depth = depth

    def __len__(self) -> int:
        return len(self._frames)

    def __getitem__(self, index: int, /) -> tuple[Image, Any, Any]:
        """Read one frame; a frame that cannot be used raises DataError."""
        frame = self._frames[index]
        if frame.fault is not None:
            raise DataError("the frame cannot be used", where=f"frame {frame.id!r}", got=frame.fault)
        target = self._boxes(frame) if self._task == "detection" else self._class(frame)
        return planes_of(frame.image()), target, self._told(frame)

    def _boxes(self, frame: Frame) -> Target:
        real = ~frame.truth.ignore
        return Target(frame.truth.boxes[real], frame.truth.labels[real], np.ones(int(real.sum())))

    def _class(self, frame: Frame) -> NDArray[np.float32]:
        if frame.category is None:
            raise DataError(
                "the frame has no category",
                where=f"frame {frame.id!r}",
                fix="Use data for classifiers, such as the format class-folders.",
            )
        target = np.zeros(len(self.metadata["index2label"]), np.float32)
        target[frame.category] = 1
        return target

    def _told(self, frame: Frame) -> dict[str, Any]:
        metadata: dict[str, Any] = {"id": frame.id, "log": frame.log_id}
        if self._task == "detection":
            aside = frame.truth.ignore
            metadata |= {
                "ignored_boxes": frame.truth.boxes[aside],
                "ignored_labels": frame.truth.labels[aside],
            }
        if self._depth and frame.depth_m is not None:
            metadata["depth_m"] = frame.depth_m()
        return metadata


class MaiteModel:
    """A detector or classifier of ours as a MAITE model. Every answer is checked, as in a study."""

    def __init__(self, system: System, *, name: str = "adverse") -> None:
        if task_of(system) not in ("detection", "classification"):
            raise SutError(
                "MAITE has no protocol for this task",
                where=name,
                got=task_of(system) or type(system).__name__,
                wanted="a detector or a classifier",
            )
        self.metadata: Any = {"id": name, "index2label": dict(enumerate(system.classes))}
        self._system = system

    def __call__(self, batch_input: Sequence[Any], /) -> list[Any]:
        """Return one target for each (channel, row, column) image of bytes."""
        images = [image_of(planes) for planes in batch_input]
        return [_target(answer) for answer in ask(self._system, images, name=self.metadata["id"])]


class MaiteAugmentation:
    """A mutation of ours, by its id, as a MAITE augmentation.

    What is random is drawn for the seed and the datum's id: the pixels are those of a study whose frame has
    that id. Depth, where it is needed, is the metadata's `depth_m`.
    """

    def __init__(self, mutation: str, *, seed: int = 0) -> None:
        self._registry = plugins.load()
        self._setting = parse(mutation, self._registry)
        refuse_moving([self._setting], self._registry)
        self._seed = seed
        self.metadata: Any = {"id": self._setting.id}

    def __call__(
        self, batch: tuple[Sequence[Any], Sequence[Any], Sequence[Any]], /
    ) -> tuple[list[Image], list[Any], list[Any]]:
        """Return the batch with changed images; targets stay, the metadata say what was done."""
        inputs, targets, metadata = batch
        changed = [self._changed(planes, datum) for planes, datum in zip(inputs, metadata, strict=True)]
        return changed, list(targets), [{**datum, "mutation": self._setting.id} for datum in metadata]

    def _changed(self, planes: Any, metadata: Mapping[str, Any]) -> Image:
        coherent = self._setting.coherent and "log" in metadata
        image = apply_setting(
            image_of(planes),
            self._setting,
            self._registry,
            seed=self._seed,
            key=str(metadata["log" if coherent else "id"]),
            log=str(metadata["log"]) if "log" in metadata else None,
            depth_m=metadata.get("depth_m"),
        )
        return planes_of(image)


def _target(answer: Any) -> Any:
    if isinstance(answer, Detections):
        return Target(answer.boxes, answer.labels, answer.scores)
    return answer.scores if isinstance(answer, ClassScores) else answer

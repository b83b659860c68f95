"""MAITE in both directions: our data sets, SUTs and mutations as its own, its data sets and models as ours.

MAITE's protocols are structural, so the `maite` package is not imported. Images are (channel, row, column),
boxes (x0, y0, x1, y1). A data set is a sequence of (image, target, metadata), a model is called with a batch
of images, an augmentation with a batch of all three. Targets are boxes, or one number for each class.

    to MAITE      MaiteDataset(dataset), MaiteModel(system), MaiteAugmentation("gaussian_blur(sigma_px=2)")
    from MAITE    write_dataset(theirs, folder), MaiteDetector(theirs), MaiteClassifier(theirs),
                  and the SUT adapter `maite`
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from adverse import plugins
from adverse.errors import DataError, SutError
from adverse.interop.maite_images import image_of, planes_of
from adverse.interop.maite_write import write_dataset
from adverse.mutations.settings import apply_setting, parse
from adverse.suts.ask import ask, task_of
from adverse.suts.maite_model import MaiteClassifier, MaiteDetector
from adverse.types import ClassScores, Dataset, Detections, Frame, Image, Split, System

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
        told: dict[str, Any] = {"id": frame.id, "log": frame.log_id}
        if self._task == "detection":
            aside = frame.truth.ignore
            told |= {"ignored_boxes": frame.truth.boxes[aside], "ignored_labels": frame.truth.labels[aside]}
        if self._depth and frame.depth_m is not None:
            told["depth_m"] = frame.depth_m()
        return told


class MaiteModel:
    """A detector or classifier of ours as a MAITE model. Every answer is checked, as in a study."""

    def __init__(self, system: System, *, name: str = "adverse") -> None:
        if task_of(system) not in ("detection", "classification"):
            raise SutError(
                "MAITE has no protocol for such a system",
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
        self._seed = seed
        self.metadata: Any = {"id": self._setting.id}

    def __call__(
        self, batch: tuple[Sequence[Any], Sequence[Any], Sequence[Any]], /
    ) -> tuple[list[Image], list[Any], list[Any]]:
        """Return the batch with changed images; targets stay, the metadata say what was done."""
        inputs, targets, metadata = batch
        changed = [self._changed(planes, one) for planes, one in zip(inputs, metadata, strict=True)]
        return changed, list(targets), [{**one, "mutation": self._setting.id} for one in metadata]

    def _changed(self, planes: Any, metadata: Mapping[str, Any]) -> Image:
        coherent = self._setting.coherent and "log" in metadata
        image = apply_setting(
            image_of(planes),
            self._setting,
            self._registry,
            seed=self._seed,
            key=str(metadata["log" if coherent else "id"]),
            depth_m=metadata.get("depth_m"),
        )
        return planes_of(image)


def _target(answer: Any) -> Any:
    if isinstance(answer, Detections):
        return Target(answer.boxes, answer.labels, answer.scores)
    return answer.scores if isinstance(answer, ClassScores) else answer

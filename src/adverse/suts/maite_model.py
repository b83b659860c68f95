"""MAITE models as systems under test: called with a batch of (channel, row, column) images.

The protocols are structural, so the `maite` package itself is not needed here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from adverse.errors import StudyError, SutError
from adverse.plugins import Positive, sut
from adverse.suts.ask import as_class_scores, read_answers
from adverse.suts.classes import class_names
from adverse.types import ClassScores, Detections, Image, System
from adverse.user_files import load_python


@sut(name="maite", libraries=("maite", "numpy"))
def maite_model(
    file: Path,
    *,
    function: str = "model",
    files: list[Path] | None = None,  # noqa: ARG001 - part of the fingerprint, which reads the options
    task: Literal["detection", "classification"] = "detection",
    classes: str | list[str] | None = None,
    scale: Positive | None = None,
) -> System:
    """Ask a MAITE model: what `function` of a Python file returns when called.

    `files` names what else decides its answers (weights). `classes` are taken from the model's index2label
    unless given. The model sees bytes, or with `scale` float32 values pixel * scale.
    """
    made = getattr(load_python(file), function, None)
    if not callable(made):
        raise StudyError(
            f"the file has no function {function!r}",
            where=f"{file}",
            wanted=f"def {function}(): ... that returns a MAITE model",
            fix="Check function:.",
        )
    kind = MaiteDetector if task == "detection" else MaiteClassifier
    return kind(made(), classes=classes, scale=scale)


class _Maite:
    """A MAITE model, called with our images."""

    def __init__(
        self,
        model: Callable[[Sequence[Any]], Sequence[Any]],
        *,
        classes: str | Sequence[str] | None = None,
        scale: float | None = None,
    ) -> None:
        if not callable(model):
            raise StudyError(
                "this is not a MAITE model",
                got=type(model).__name__,
                wanted="an object that is called with a batch of images",
            )
        self._model = model
        self._scale = scale
        self.classes = class_names(classes) if classes is not None else names_of(model)

    def _targets(self, images: Sequence[Image]) -> Sequence[Any]:
        return self._model([self._shown(image) for image in images])

    def _shown(self, image: Image) -> NDArray[Any]:
        planes = np.ascontiguousarray(image.transpose(2, 0, 1))
        return planes if self._scale is None else planes.astype(np.float32) * np.float32(self._scale)


class MaiteDetector(_Maite):
    """A MAITE object-detection model as a detector; use it with adverse.run(detectors={...}) too."""

    def detect(self, images: Sequence[Image]) -> list[Detections]:
        """Return one answer for each image, in order."""
        return read_answers(map(_fields, self._targets(images)), _detections, len(images))


class MaiteClassifier(_Maite):
    """A MAITE image-classification model as a classifier; use it with adverse.run(detectors={...}) too."""

    def classify(self, images: Sequence[Image]) -> list[ClassScores]:
        """Return one answer for each image, in order."""
        return read_answers(self._targets(images), as_class_scores, len(images))


def detections_of(target: Any) -> Detections:
    """Return a MAITE target as Detections; of scores for each class, the best one counts."""
    return _detections(_fields(target))


def _fields(target: Any) -> tuple[Any, Any, Any]:
    try:
        return target.boxes, target.labels, target.scores
    except AttributeError as error:
        raise SutError(
            "an answer is not an object-detection target of MAITE",
            got=f"{type(target).__name__}: {error}",
            wanted="an object with boxes, labels and scores",
        ) from error


def _detections(fields: tuple[Any, Any, Any]) -> Detections:
    boxes, labels, scores = map(np.asarray, fields)
    if scores.ndim == 2 and scores.size:
        scores = scores.max(axis=1)
    return Detections(boxes, scores, labels)


def names_of(component: Any) -> tuple[str, ...]:
    """Return the class names of a MAITE model or data set, from its index2label; gaps become `unused-N`."""
    metadata = getattr(component, "metadata", None)
    labels = metadata.get("index2label") if isinstance(metadata, Mapping) else None
    if not isinstance(labels, Mapping) or not labels:
        raise StudyError(
            "the MAITE object does not say what its labels mean",
            got="no index2label in its metadata",
            fix="Add classes: with the names in the order of its labels.",
        )
    names = {int(number): str(name) for number, name in labels.items()}
    return tuple(names.get(number, f"unused-{number}") for number in range(max(names) + 1))

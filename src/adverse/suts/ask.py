"""Show images to a detector and trust nothing about what comes back.

This is the one place where an answer is checked: whatever a system under test does wrong leaves here as
a SutError that names the system, so one bad answer costs one fault and never the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from adverse.errors import SutError, one_line
from adverse.types import Detections, Detector, Image

ANSWER_FIELDS = frozenset({"boxes", "scores", "labels"})


def ask(detector: Detector, images: Sequence[Image], *, name: str) -> list[Detections]:
    """Return one checked answer for each image, or raise SutError.

    An answer may be Detections, a tuple (boxes, scores) or (boxes, scores, labels), or a mapping with
    these names. Labels must be indexes into `detector.classes`.
    """
    try:
        answers = list(detector.detect(images))
    except SutError as error:
        raise named(error, name) from error
    except (Exception, SystemExit) as error:
        raise SutError(
            "the system under test failed on an image",
            where=name,
            got=one_line(error),
            fix="Mend the system and run again: a changed system is asked anew, the others are not.",
        ) from error
    if len(answers) != len(images):
        raise SutError(
            "the system under test did not answer every image once",
            where=name,
            got=f"{len(answers)} answers",
            wanted=f"{len(images)}, one for each image, in order",
            fix="Return a list as long as the images; an image without detections has an empty answer.",
        )
    try:
        checked = [as_detections(answer) for answer in answers]
        for answer in checked:
            check_labels(answer, detector.classes)
    except SutError as error:
        raise named(error, name) from error
    return checked


def as_detections(answer: Any) -> Detections:
    """Turn what a detector may say about one image into Detections.

    >>> len(as_detections(([[0, 0, 5, 9]], [0.5])))
    1
    >>> len(as_detections({"boxes": [], "scores": [], "labels": []}))
    0
    """
    if isinstance(answer, Detections):
        return answer
    if isinstance(answer, Mapping) and {"boxes", "scores"} <= set(answer) <= ANSWER_FIELDS:
        return Detections(answer["boxes"], answer["scores"], answer.get("labels"))
    if isinstance(answer, tuple) and len(answer) in (2, 3):
        return Detections(*answer)
    shown = f"keys {sorted(map(str, answer))}" if isinstance(answer, Mapping) else type(answer).__name__
    raise SutError(
        "an answer is not a set of detections",
        got=shown,
        wanted="Detections, (boxes, scores, labels), or a dict with boxes, scores and labels",
        fix="Return one of these for each image.",
    )


def check_labels(answer: Detections, classes: Sequence[str]) -> None:
    """Raise SutError when a label names no class."""
    outside = answer.labels[(answer.labels < 0) | (answer.labels >= len(classes))]
    if len(outside):
        raise SutError(
            "a label names no class",
            got=f"label {int(outside[0])}",
            wanted=f"0 to {len(classes) - 1}, an index into the {len(classes)} class names",
            fix="Give the class names the model was trained with, background included if it has one.",
        )


def named(error: SutError, name: str) -> SutError:
    """Return the error with the system's name in front of where it happened."""
    where = name if error.where in (None, name) else f"{name}, {error.where}"
    return SutError(error.what, where=where, got=error.got, wanted=error.wanted, fix=error.fix)

"""A plain Python function as a system under test, for studies that are run from Python."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from adverse.content import digest
from adverse.errors import StudyError
from adverse.plugins import sut
from adverse.suts.ask import as_detections, read_answers, task_of
from adverse.types import Detections, Image, System


@sut(name="python")
def python(detector: Any) -> System:
    """Use a Python object: one with detect, segment or classify, or a function; for adverse.run only."""
    if task_of(detector) is not None:
        system: System = detector
        return system
    if not callable(detector):
        raise StudyError(
            "this is not a detector",
            where="detectors",
            got=type(detector).__name__,
            wanted="an object with detect, segment or classify(images), or a function of a list of images",
            fix="In a study file, name a plug-in instead: docs/plug-ins.md.",
        )
    return PythonCallable(detector, getattr(detector, "classes", ("person",)))


def says_what_it_is(detector: Any) -> bool:
    """Return whether an object has a `fingerprint`, by which its answers can be used again."""
    return isinstance(getattr(detector, "fingerprint", None), str)


def object_fingerprint(detector: Any) -> str:
    """Return what an object is known by: its own `fingerprint`, if it has one.

    Whatever else an object may hold cannot be seen from outside, so its answers are never used again: the
    fingerprint of such an object is new each time. That goes for plain functions, too: the model that one
    calls may be a global variable, a default argument, or come from the command line.
    """
    if says_what_it_is(detector):
        return digest("own", detector.fingerprint)
    return digest("unknown", str(os.getpid()), str(time.time_ns()), str(id(detector)))


class PythonCallable:
    """Wrap `f(images) -> answers` as a Detector; one answer for each image, as `ask` allows them.

    >>> import numpy as np
    >>> whole = PythonCallable(lambda images: [([[0, 0, 4, 4]], [0.9]) for _ in images], classes=["person"])
    >>> whole.detect([np.zeros((4, 4, 3), np.uint8)])[0].boxes
    array([[0., 0., 4., 4.]], dtype=float32)
    """

    def __init__(self, function: Callable[[Sequence[Image]], Iterable[Any]], classes: Sequence[str]) -> None:
        self._function = function
        self.classes = tuple(classes)

    def detect(self, images: Sequence[Image]) -> list[Detections]:
        """Return one answer for each image, in order."""
        return read_answers(self._function(images), as_detections, len(images))

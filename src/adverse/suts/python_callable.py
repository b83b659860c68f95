"""A plain Python function as a system under test, for studies that are run from Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from adverse.suts.ask import as_detections
from adverse.types import Detections, Image


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
        return [as_detections(answer) for answer in self._function(images)]

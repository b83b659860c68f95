"""A detector made of a network, wherever that runs: image in, outputs out, and all that lies around it.

The adapters differ in how they run a model; how an image becomes its input and its outputs become
detections is the same for all of them, and is here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from adverse.suts.decoders import Candidates, Output
from adverse.suts.onnx import Finish
from adverse.suts.onnx_shape import Port, Reader
from adverse.suts.preprocess import Placement, Preprocess
from adverse.types import Detections, Image


class Network(Protocol):
    """A model that is loaded, or served: one batch of inputs in, the outputs that were asked for out."""

    @property
    def port(self) -> Port:
        """The image input."""

    def run(self, values: NDArray[Any], names: Sequence[str]) -> list[Output]:
        """Return the named outputs, in this order, or raise SutError."""


class NetworkDetector:
    """A network with all that turns an image into its input and its outputs into detections."""

    def __init__(
        self,
        classes: tuple[str, ...],
        network: Network,
        preprocess: Preprocess,
        reader: Reader,
        finish: Finish,
    ) -> None:
        self.classes = classes
        self._network = network
        self._preprocess = preprocess
        self._reader = reader
        self._finish = finish

    def detect(self, images: Sequence[Image]) -> list[Detections]:
        """Return one answer for each image, in order; they are run as one batch if the model allows it."""
        found: list[Detections] = []
        step = self._network.port.batch or max(len(images), 1)
        for start in range(0, len(images), step):
            some = images[start : start + step]
            found += [self._finish(candidates, placed) for candidates, placed in self._candidates(some)]
        return found

    def try_out(self) -> None:
        """Run one grey image, so that a decoder that does not fit is found before the study starts."""
        width, height = self._preprocess.size
        self._candidates([np.full((height, width, 3), 128, np.uint8)])

    def _candidates(self, images: Sequence[Image]) -> list[tuple[Candidates, Placement]]:
        values, placements = self._preprocess.batch(images)
        missing = (self._network.port.batch or len(images)) - len(images)
        if missing:  # a model with a fixed batch must be fed a full one
            values = np.concatenate([values, np.repeat(values[-1:], missing, axis=0)])
        outputs = self._network.run(values, self._reader.names)
        return [
            (self._reader.read(outputs, number, len(values)), placed)
            for number, placed in enumerate(placements)
        ]

"""A system under test made of a network, wherever that runs: what is before its input and after its outputs.

The adapters differ in how they run a model. How an image becomes its input and its outputs become an
answer is the same for all of them, and is here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from adverse.errors import SutError
from adverse.suts import onnx_shape
from adverse.suts.decoders import DECODERS, Candidates, Head, Output, Style, Unit
from adverse.suts.onnx import Finish, Triple
from adverse.suts.onnx_shape import Port, Reader
from adverse.suts.preprocess import Anchor, Channels, Interpolation, Placement, Preprocess, Resize
from adverse.types import Detections, Image


class Network(Protocol):
    """A model that is loaded, or served: one batch of inputs in, the outputs that were asked for out."""

    @property
    def port(self) -> Port:
        """The image input."""

    @property
    def output_names(self) -> list[str]:
        """All outputs there are."""

    def run(self, values: NDArray[Any], names: Sequence[str]) -> list[Output]:
        """Return the named outputs, in this order, or raise SutError."""


@dataclass(frozen=True)
class Shown:
    """How images are shown to a model; `scale` is 1/255 where it is None and the model takes floats."""

    resize: Resize
    anchor: Anchor
    pad: int
    interpolation: Interpolation
    channels: Channels
    scale: float | None
    mean: Triple
    std: Triple

    def preprocess(self, port: Port, where: str) -> Preprocess:
        """Return how images become the input of a port."""
        if port.dtype.kind != "f" and (self.scale is not None or any(self.mean) or set(self.std) != {1.0}):
            raise SutError(
                "this model takes pixels as whole numbers, which cannot be scaled",
                where=f"{where}, input {port.name!r}",
                fix="Take out scale:, mean: and std:.",
            )
        return Preprocess(
            port.size,
            port.dtype,
            resize=self.resize,
            anchor=self.anchor,
            pad=self.pad,
            interpolation=self.interpolation,
            channels=self.channels,
            layout=port.layout,
            scale=1 / 255 if self.scale is None else self.scale,
            mean=self.mean,
            std=self.std,
        )


@dataclass(frozen=True)
class Meant:
    """What the outputs of a model mean; None stands for what the decoder does by itself."""

    decoder: Style
    classes: tuple[str, ...]
    outputs: list[str] | None
    box_unit: Unit | None
    score_threshold: float
    nms_iou: float | None
    max_detections: int


def network_system(network: Network, shown: Shown, meant: Meant, *, where: str) -> NetworkDetector:
    """Put a system together and try it on a grey image, so that what does not fit is found at once."""
    preprocess = shown.preprocess(network.port, where)
    style = DECODERS[meant.decoder]
    roles = onnx_shape.assign_outputs(style, network.output_names, meant.outputs, where)
    in_pixels = (meant.box_unit or style.unit) == "pixels"
    head = Head(len(meant.classes), (1, 1) if in_pixels else network.port.size)
    overlap = style.nms_iou if meant.nms_iou is None else meant.nms_iou
    finish = Finish(meant.score_threshold, overlap, meant.max_detections)
    system = NetworkDetector(meant.classes, network, preprocess, Reader(style, roles, head), finish)
    system.try_out()
    return system


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

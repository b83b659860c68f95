"""A system under test made of a network, wherever that runs: what is before its input and after its outputs.

The adapters differ in how they run a model. How an image becomes its input and its outputs become an
answer is the same for all of them, and is here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from adverse.errors import SutError
from adverse.plugins import Fraction, Positive
from adverse.suts import onnx_shape
from adverse.suts.classes import class_names
from adverse.suts.decoders import DECODERS, Candidates, Head, Output, Style, Unit
from adverse.suts.dense import DenseStyle, class_scores, label_map
from adverse.suts.nms import Finish
from adverse.suts.onnx_shape import Port, Reader
from adverse.suts.preprocess import Anchor, Channels, Interpolation, Placement, Preprocess, Resize
from adverse.types import ClassScores, Detections, Image, LabelMap

Count = Annotated[int, Field(gt=0)]
Byte = Annotated[int, Field(ge=0, le=255)]
Triple = tuple[float, float, float]


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
class InputOptions:
    """How an image becomes the input of a model: the options that all adapters of networks share.

    Values are (pixel * scale - mean) / std; without a `scale`, it is 1/255 for models that take floats.
    """

    resize: Resize = "letterbox"
    anchor: Anchor = "centre"
    pad: Byte = 114
    interpolation: Interpolation = "linear"
    channels: Channels = "rgb"
    scale: Positive | None = None
    mean: Triple = (0.0, 0.0, 0.0)
    std: Triple = (1.0, 1.0, 1.0)

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
class DecodingOptions:
    """What the outputs of a model mean: the options that all adapters of networks share.

    `outputs` names the outputs in the decoder's order where their names do not tell; `box_unit` and `nms_iou`
    are the decoder's own unless given.
    """

    classes: str | list[str] = "coco-80"
    outputs: list[str] | None = None
    box_unit: Unit | None = None
    score_threshold: float = 0.001
    nms_iou: Fraction | None = None
    max_detections: Count = 300


LETTERBOXED = InputOptions()
STRETCHED = InputOptions(resize="stretch")
COCO_DECODING = DecodingOptions()


def network_system(
    network: Network,
    decoder: Style | DenseStyle,
    inputs: InputOptions,
    decoding: DecodingOptions,
    *,
    where: str,
) -> NetworkSystem:
    """Put a system together and try it on a grey image, so that what does not fit shows at once."""
    runner = Runner(network, inputs.preprocess(network.port, where))
    classes = class_names(decoding.classes)
    system: NetworkSystem
    if decoder == "segmentation":
        only = onnx_shape.only_output(network.output_names, decoding.outputs, where)
        system = NetworkSegmenter(classes, runner, only)
    elif decoder == "classification":
        only = onnx_shape.only_output(network.output_names, decoding.outputs, where)
        system = NetworkClassifier(classes, runner, only)
    else:
        style = DECODERS[decoder]
        roles = onnx_shape.assign_outputs(style, network.output_names, decoding.outputs, where)
        in_pixels = (decoding.box_unit or style.unit) == "pixels"
        head = Head(len(classes), (1, 1) if in_pixels else network.port.size, network.port.size)
        overlap = style.nms_iou if decoding.nms_iou is None else decoding.nms_iou
        finish = Finish(decoding.score_threshold, overlap, decoding.max_detections)
        system = NetworkDetector(classes, runner, Reader(style, roles, head), finish)
    system.try_out()
    return system


class BatchRun(NamedTuple):
    """What a model gave for a batch: its outputs, how many images it was fed, and where each one lies."""

    outputs: list[Output]
    fed: int
    placements: list[Placement]


class Runner:
    """A network with all that turns images into its input."""

    def __init__(self, network: Network, preprocess: Preprocess) -> None:
        self._network = network
        self._preprocess = preprocess

    @property
    def size(self) -> tuple[int, int]:
        """The input's (width, height)."""
        return self._preprocess.size

    def batches(self, images: Sequence[Image], names: list[str]) -> Iterator[BatchRun]:
        """Run all images, in one batch if the model allows it."""
        step = self._network.port.batch or max(len(images), 1)
        for start in range(0, len(images), step):
            yield self._run(images[start : start + step], names)

    def grey(self) -> Image:
        """Return an image to try the model out on before a study starts."""
        return np.full((self.size[1], self.size[0], 3), 128, np.uint8)

    def _run(self, images: Sequence[Image], names: list[str]) -> BatchRun:
        values, placements = self._preprocess.batch(images)
        missing = (self._network.port.batch or len(images)) - len(images)
        if missing:  # a model with a fixed batch must be fed a full one
            values = np.concatenate([values, np.repeat(values[-1:], missing, axis=0)])
        return BatchRun(self._network.run(values, names), len(values), placements)


class NetworkDetector:
    """A model whose outputs are read as boxes, scores and labels."""

    def __init__(self, classes: tuple[str, ...], runner: Runner, reader: Reader, finish: Finish) -> None:
        self.classes = classes
        self._runner = runner
        self._reader = reader
        self._finish = finish
        self.gives_masks = reader.decoder.masks

    def detect(self, images: Sequence[Image]) -> list[Detections]:
        """Return one answer for each image, in order."""
        size = self._runner.size
        return [self._finish(candidates, placed, size) for candidates, placed in self._candidates(images)]

    def try_out(self) -> None:
        """Find a decoder that does not fit before the study starts."""
        list(self._candidates([self._runner.grey()]))

    def _candidates(self, images: Sequence[Image]) -> Iterator[tuple[Candidates, Placement]]:
        for ran in self._runner.batches(images, self._reader.names):
            for number, placed in enumerate(ran.placements):
                yield self._reader.read(ran.outputs, number, ran.fed), placed


class NetworkSegmenter:
    """A model with one output: scores of every class, or labels, on a grid over the image."""

    def __init__(self, classes: tuple[str, ...], runner: Runner, output: str) -> None:
        self.classes = classes
        self._runner = runner
        self._output = output

    def segment(self, images: Sequence[Image]) -> list[LabelMap]:
        """Return one answer for each image, in order."""
        return [
            label_map(onnx_shape.of_one(ran.outputs[0], number, ran.fed, 2), len(self.classes), size, placed)
            for size in [self._runner.size]
            for ran in self._runner.batches(images, [self._output])
            for number, placed in enumerate(ran.placements)
        ]

    def try_out(self) -> None:
        """Find an output or a list of classes that does not fit before the study starts."""
        self.segment([self._runner.grey()])


class NetworkClassifier:
    """A model with one output: a score for every class."""

    def __init__(self, classes: tuple[str, ...], runner: Runner, output: str) -> None:
        self.classes = classes
        self._runner = runner
        self._output = output

    def classify(self, images: Sequence[Image]) -> list[ClassScores]:
        """Return one answer for each image, in order."""
        return [
            class_scores(onnx_shape.of_one(ran.outputs[0], number, ran.fed, 1), len(self.classes))
            for ran in self._runner.batches(images, [self._output])
            for number in range(len(ran.placements))
        ]

    def try_out(self) -> None:
        """Find an output or a list of classes that does not fit before the study starts."""
        self.classify([self._runner.grey()])


NetworkSystem = NetworkDetector | NetworkSegmenter | NetworkClassifier

"""ONNX models through ONNX Runtime: on the CPU, with one thread, the same answer every time.

ONNX Runtime is imported when a model is built, not before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import Field

from adverse.errors import SutError, one_line
from adverse.plugins import Fraction, Positive, sut
from adverse.suts import onnx_shape
from adverse.suts.classes import class_names
from adverse.suts.decoders import DECODERS, Candidates, Head, Output, Style, Unit
from adverse.suts.dense import DenseStyle, class_scores, label_map
from adverse.suts.nms import nms
from adverse.suts.onnx_shape import Port
from adverse.suts.preprocess import (
    Anchor,
    Channels,
    Interpolation,
    Layout,
    Placement,
    Preprocess,
    Resize,
)
from adverse.types import ClassScores, Detections, Image, LabelMap, System

Count = Annotated[int, Field(gt=0)]
Byte = Annotated[int, Field(ge=0, le=255)]
Triple = tuple[float, float, float]


@sut(name="onnx", libraries=("numpy", "onnxruntime", "opencv-python-headless"))
def onnx_model(
    model: Path,
    decoder: Style | DenseStyle,
    *,
    classes: str | list[str] = "coco-80",
    resize: Resize = "letterbox",
    anchor: Anchor = "centre",
    pad: Byte = 114,
    interpolation: Interpolation = "linear",
    size: tuple[Count, Count] | None = None,
    channels: Channels = "rgb",
    layout: Layout | None = None,
    scale: Positive | None = None,
    mean: Triple = (0.0, 0.0, 0.0),
    std: Triple = (1.0, 1.0, 1.0),
    outputs: list[str] | None = None,
    box_unit: Unit | None = None,
    score_threshold: float = 0.001,
    nms_iou: Fraction | None = None,
    max_detections: Count = 300,
) -> System:
    """Run an ONNX model: `decoder` says what its outputs mean, `classes` what its labels mean.

    The decoders `segmentation` and `classification` make it a segmenter or a classifier; all others, a
    detector.

    Inputs are (pixel * scale - mean) / std, scale 1/255 unless given. `size` [width, height] and `layout`
    are read from the model where it fixes them. `outputs` names the outputs in the decoder's order
    where their names do not tell. `box_unit` and `nms_iou` are the decoder's own unless given; nms_iou 1
    turns NMS off. The threshold is low so that trade-off curves are complete. A model whose batch axis is
    open runs all the images it is given at once.
    """
    names = class_names(classes)
    session = _session(model)
    port = onnx_shape.input_port(session.get_inputs(), str(model), size=size, layout=layout)
    if port.dtype.kind != "f" and (scale is not None or any(mean) or set(std) != {1.0}):
        raise SutError(
            "this model takes pixels as whole numbers, which cannot be scaled",
            where=f"{model}, input {port.name!r}",
            fix="Take out scale:, mean: and std:.",
        )
    preprocess = Preprocess(
        port.size,
        port.dtype,
        resize=resize,
        anchor=anchor,
        pad=pad,
        interpolation=interpolation,
        channels=channels,
        layout=port.layout,
        scale=1 / 255 if scale is None else scale,
        mean=mean,
        std=std,
    )
    runner = OnnxRunner(session, port, preprocess)
    there = [one.name for one in session.get_outputs()]
    system: OnnxSegmenter | OnnxClassifier | OnnxDetector
    if decoder == "segmentation":
        system = OnnxSegmenter(names, runner, onnx_shape.only_output(there, outputs, str(model)))
    elif decoder == "classification":
        system = OnnxClassifier(names, runner, onnx_shape.only_output(there, outputs, str(model)))
    else:
        style = DECODERS[decoder]
        roles = onnx_shape.assign_outputs(style, there, outputs, str(model))
        in_pixels = (box_unit or style.unit) == "pixels"
        system = OnnxDetector(
            names,
            runner,
            onnx_shape.Reader(style, roles, Head(len(names), (1, 1) if in_pixels else port.size)),
            Finish(score_threshold, style.nms_iou if nms_iou is None else nms_iou, max_detections),
        )
    system.try_out()
    return system


class Finish:
    """What happens to candidates of every style: threshold, back to the image, clipping, NMS."""

    def __init__(self, score_threshold: float, nms_iou: float | None, max_detections: int) -> None:
        self._score_threshold = score_threshold
        self._nms_iou = nms_iou
        self._max_detections = max_detections

    def __call__(self, found: Candidates, placed: Placement) -> Detections:
        """Return the answer for one image; NaN anywhere that counts is an error, never a 'no'."""
        good = found.scores >= self._score_threshold
        if not (np.isfinite(found.scores).all() and np.isfinite(found.boxes[good]).all()):
            raise SutError(
                "the model gives scores or boxes that are not finite numbers",
                got=f"{int((~np.isfinite(found.scores)).sum())} of {len(good)} scores are NaN or infinite",
            )
        edges = np.tile([placed.image_width, placed.image_height], 2)
        boxes = np.clip(placed.to_image(found.boxes[good]), 0, edges).astype(np.float32)
        scores, labels = found.scores[good].astype(np.float32), found.labels[good]
        solid = (boxes[:, 2:] > boxes[:, :2]).all(axis=1)
        boxes, scores, labels = boxes[solid], scores[solid], labels[solid]
        keep = nms(boxes, scores, labels, iou=self._nms_iou, limit=self._max_detections)
        return Detections(boxes[keep], scores[keep], labels[keep])


class Ran(NamedTuple):
    """What a model gave for a batch: its outputs, how many images it was fed, and where each one lies."""

    outputs: list[Output]
    fed: int
    placements: list[Placement]


class OnnxRunner:
    """A loaded model with all that turns images into its input."""

    def __init__(self, session: Any, port: Port, preprocess: Preprocess) -> None:
        self.session = session
        self.port = port
        self.preprocess = preprocess

    @property
    def size(self) -> tuple[int, int]:
        """The input's (width, height)."""
        return self.preprocess.size

    def batches(self, images: Sequence[Image], names: list[str]) -> Iterator[Ran]:
        """Run all images, in one batch if the model allows it."""
        step = self.port.batch or max(len(images), 1)
        for start in range(0, len(images), step):
            yield self._run(images[start : start + step], names)

    def grey(self) -> Image:
        """Return an image to try the model out on before a study starts."""
        return np.full((self.size[1], self.size[0], 3), 128, np.uint8)

    def _run(self, images: Sequence[Image], names: list[str]) -> Ran:
        values, placements = self.preprocess.batch(images)
        missing = (self.port.batch or len(images)) - len(images)
        if missing:  # a model with a fixed batch must be fed a full one
            values = np.concatenate([values, np.repeat(values[-1:], missing, axis=0)])
        try:
            arrays = self.session.run(names, {self.port.name: values})
        except Exception as error:
            raise SutError("ONNX Runtime cannot run the model", got=one_line(error)) from error
        outputs = [Output(*pair) for pair in zip(names, arrays, strict=True)]
        return Ran(outputs, len(values), placements)


class OnnxDetector:
    """A model whose outputs are read as boxes, scores and labels."""

    def __init__(
        self, classes: tuple[str, ...], runner: OnnxRunner, reader: onnx_shape.Reader, finish: Finish
    ) -> None:
        self.classes = classes
        self._runner = runner
        self._reader = reader
        self._finish = finish

    def detect(self, images: Sequence[Image]) -> list[Detections]:
        """Return one answer for each image, in order."""
        return [self._finish(candidates, placed) for candidates, placed in self._candidates(images)]

    def try_out(self) -> None:
        """Find a decoder that does not fit before the study starts."""
        list(self._candidates([self._runner.grey()]))

    def _candidates(self, images: Sequence[Image]) -> Iterator[tuple[Candidates, Placement]]:
        for ran in self._runner.batches(images, self._reader.names):
            for number, placed in enumerate(ran.placements):
                yield self._reader.read(ran.outputs, number, ran.fed), placed


class OnnxSegmenter:
    """A model with one output: scores of every class, or labels, on a grid over the image."""

    def __init__(self, classes: tuple[str, ...], runner: OnnxRunner, output: str) -> None:
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


class OnnxClassifier:
    """A model with one output: a score for every class."""

    def __init__(self, classes: tuple[str, ...], runner: OnnxRunner, output: str) -> None:
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


def _session(model: Path) -> Any:
    import onnxruntime  # noqa: PLC0415 - heavy, and only needed once a model is built

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.use_deterministic_compute = True
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise SutError(
            "ONNX Runtime cannot load the model",
            where=str(model),
            got=one_line(error),
            wanted="an ONNX model",
            fix="Check that the file is complete and of an opset that this onnxruntime knows.",
        ) from error

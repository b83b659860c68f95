"""ONNX models through ONNX Runtime: on the CPU, with one thread, the same answer every time.

ONNX Runtime is imported when a model is built, not before.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from adverse.errors import SutError, one_line
from adverse.plugins import Fraction, Positive, sut
from adverse.suts import onnx_shape
from adverse.suts.classes import class_names
from adverse.suts.decoders import DECODERS, Candidates, Head, Output, Style, Unit
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
from adverse.types import Detections, Detector, Image

Count = Annotated[int, Field(gt=0)]
Byte = Annotated[int, Field(ge=0, le=255)]
Triple = tuple[float, float, float]


@sut(name="onnx", libraries=("numpy", "onnxruntime", "opencv-python-headless"))
def onnx_model(
    model: Path,
    decoder: Style,
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
) -> Detector:
    """Run an ONNX detector: `decoder` says what its outputs mean, `classes` what its labels mean.

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
    style = DECODERS[decoder]
    roles = onnx_shape.assign_outputs(style, [o.name for o in session.get_outputs()], outputs, str(model))
    in_pixels = (box_unit or style.unit) == "pixels"
    detector = OnnxDetector(
        names,
        session,
        port,
        Preprocess(
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
        ),
        onnx_shape.Reader(style, roles, Head(len(names), (1, 1) if in_pixels else port.size)),
        Finish(score_threshold, style.nms_iou if nms_iou is None else nms_iou, max_detections),
    )
    detector.try_out()
    return detector


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


class OnnxDetector:
    """A loaded model with all that turns an image into its input and its outputs into detections."""

    def __init__(
        self,
        classes: tuple[str, ...],
        session: Any,
        port: Port,
        preprocess: Preprocess,
        reader: onnx_shape.Reader,
        finish: Finish,
    ) -> None:
        self.classes = classes
        self._session = session
        self._port = port
        self._preprocess = preprocess
        self._reader = reader
        self._finish = finish

    def detect(self, images: Sequence[Image]) -> list[Detections]:
        """Return one answer for each image, in order; they are run as one batch if the model allows it."""
        found: list[Detections] = []
        step = self._port.batch or max(len(images), 1)
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
        missing = (self._port.batch or len(images)) - len(images)
        if missing:  # a model with a fixed batch must be fed a full one
            values = np.concatenate([values, np.repeat(values[-1:], missing, axis=0)])
        try:
            arrays = self._session.run(self._reader.names, {self._port.name: values})
        except Exception as error:
            raise SutError("ONNX Runtime cannot run the model", got=one_line(error)) from error
        outputs = [Output(*pair) for pair in zip(self._reader.names, arrays, strict=True)]
        return [
            (self._reader.read(outputs, number, len(values)), placed)
            for number, placed in enumerate(placements)
        ]


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

"""What the outputs of a detection model mean: arrays in, boxes in pixels of the model's input out.

One pure function for each style of head, for one image at a time. Each box gets its best class. Nothing
is dropped here: thresholds, NMS and clipping come after, the same for all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.errors import SutError
from adverse.suts.network_masks import CandidateMasks, MaskMaps, PrototypeMasks

Floats = NDArray[np.float64]
Unit = Literal["pixels", "fraction"]
Style = Literal[
    "yolo",
    "yolo-v8",
    "ssd",
    "detr",
    "detr-sigmoid",
    "fastestdet",
    "decoded",
    "detection-output",
    "darknet",
    "yolo-seg",
    "mask-rcnn",
]


class Output(NamedTuple):
    """One output of a model for one image, under the model's own name for it."""

    name: str
    array: NDArray[Any]


class Candidates(NamedTuple):
    """Boxes (N, 4) xyxy in pixels of the input, scores (N,), labels (N,), and what some models add to them.

    Positions (N, 3) of a 3-D detector are in the frame of the camera, so that no resizing touches them.
    """

    boxes: Floats
    scores: Floats
    labels: NDArray[np.int64]
    positions_m: Floats | None = None
    masks: CandidateMasks | None = None


class Head(NamedTuple):
    """What a decoder must know besides the outputs: how many classes, and pixels per unit of x and of y.

    `size` is the input's (width, height).
    """

    classes: int
    scale: tuple[float, float]
    size: tuple[int, int] = (0, 0)


Outputs = Mapping[str, Output]
NO_CLASS = -1
"""Stands for a label that is not a number; to keep such a box is an error."""


@dataclass(frozen=True)
class Role:
    """One output that a decoder wants: its rank for one image, and words that its name may hold."""

    name: str
    rank: int
    words: tuple[str, ...] = ()
    optional: bool = False


@dataclass(frozen=True)
class Decoder:
    """A style of head: the sets of outputs it can be read from, its unit of length, whether it needs NMS."""

    decode: Callable[[Outputs, Head], Candidates]
    forms: tuple[tuple[Role, ...], ...]
    unit: Unit
    nms_iou: float | None
    masks: bool = False
    """Whether it gives a mask for each box."""


def yolo(outputs: Outputs, head: Head) -> Candidates:
    """Read (N, 5 + C): centre x, centre y, width, height, objectness, class scores (YOLOv5, v7, X, decoded).

    The score is objectness times the best class.
    """
    rows = _shaped(outputs["predictions"], ("N", 5 + head.classes))
    labels = rows[:, 5:].argmax(axis=1)
    scores = rows[:, 4] * _at(rows[:, 5:], labels)
    return Candidates(_corners(rows[:, :4], head.scale), scores, labels)


def yolo_v8(outputs: Outputs, head: Head) -> Candidates:
    """Read (4 + C, N) or (N, 4 + C): centre, size and class scores, no objectness (YOLOv8 and later)."""
    output, wide = outputs["predictions"], 4 + head.classes
    if output.array.shape[0] == wide:
        output = Output(output.name, output.array.T)
    elif output.array.shape[1] != wide:
        raise _misshapen(output, f"({wide}, N) or (N, {wide})")
    rows = _shaped(output, ("N", wide))
    labels = rows[:, 4:].argmax(axis=1)
    return Candidates(_corners(rows[:, :4], head.scale), _at(rows[:, 4:], labels), labels)


def ssd(outputs: Outputs, head: Head) -> Candidates:
    """Read TensorFlow's boxes (N, 4) as y0, x0, y1, x1, scores (N,) and labels (N,), and how many count."""
    candidates = decoded({**outputs, "boxes": _swapped(outputs["boxes"])}, head)
    if "number" not in outputs:
        return candidates
    number = float(outputs["number"].array.reshape(-1)[0])
    real = slice(int(number) if np.isfinite(number) else None)
    return Candidates(candidates.boxes[real], candidates.scores[real], candidates.labels[real])


def detr(outputs: Outputs, head: Head) -> Candidates:
    """Read logits (Q, C + 1), the last of them 'nothing here', and boxes (Q, 4) as centre and size."""
    logits = _shaped(outputs["scores"], ("Q", head.classes + 1))
    exp = np.exp(logits - logits.max(axis=1, keepdims=True))
    return _queries(outputs, head, exp[:, :-1] / exp.sum(axis=1, keepdims=True))


def detr_sigmoid(outputs: Outputs, head: Head) -> Candidates:
    """Read logits (Q, C) of independent classes, and boxes (Q, 4) as centre and size (RT-DETR)."""
    return _queries(outputs, head, _sigmoid(_shaped(outputs["scores"], ("Q", head.classes))))


def fastestdet(outputs: Outputs, head: Head) -> Candidates:
    """Read (5 + C, H, W): objectness, offset of the centre from the cell, size, class scores.

    In cells the centre is (column + tanh dx, row + tanh dy); as parts of the image the size is
    (sigmoid w, sigmoid h). The score is objectness^0.6 * class^0.4.
    """
    grid = _shaped(outputs["predictions"], (5 + head.classes, "H", "W"))
    rows, columns = grid.shape[1:]
    row, column = np.mgrid[:rows, :columns]
    x = (column + np.tanh(grid[1])) / columns
    y = (row + np.tanh(grid[2])) / rows
    middle = np.stack([x, y, _sigmoid(grid[3]), _sigmoid(grid[4])], axis=-1).reshape(-1, 4)
    classes = grid[5:].reshape(head.classes, -1).T
    labels = classes.argmax(axis=1)
    with np.errstate(invalid="ignore"):  # a negative score has no such power; NaN is refused later
        scores = grid[0].reshape(-1) ** 0.6 * _at(classes, labels) ** 0.4
    return Candidates(_corners(middle, head.scale), scores, labels)


def decoded(outputs: Outputs, head: Head) -> Candidates:
    """Read boxes (N, 4) xyxy, scores (N,) and labels (N,); or one array (N, 6) of box, score, label.

    A further output (N, 3) holds the positions of a 3-D detector, in metres of the camera's frame.
    """
    if "detections" in outputs:
        output = outputs["detections"]
        rows = _shaped(output, ("N", 6))
        boxes, scores, labels = rows[:, :4], rows[:, 4], Output(output.name, rows[:, 5])
    else:
        boxes = _shaped(outputs["boxes"], ("N", 4))
        scores = _shaped(outputs["scores"], (len(boxes),))
        labels = outputs["labels"]
    positions = _shaped(outputs["positions"], (len(boxes), 3)) if "positions" in outputs else None
    return Candidates(_scaled(boxes, head.scale), scores, _whole(labels, len(boxes)), positions)


def detection_output(outputs: Outputs, head: Head) -> Candidates:
    """Read (1, N, 7): image, label, score, x0, y0, x1, y1, as Caffe's DetectionOutput layer gives them.

    A row of a negative image number says that there is nothing.
    """
    output = outputs["detections"]
    rows = _shaped(output, (1, "N", 7))[0]
    rows = rows[~(rows[:, 0] < 0)]
    labels = _whole(Output(output.name, rows[:, 1]), len(rows))
    return Candidates(_scaled(rows[:, 3:], head.scale), rows[:, 2], labels)


def darknet(outputs: Outputs, head: Head) -> Candidates:
    """Read (N, 5 + C): centre, size, objectness, and class scores that hold the objectness already.

    This is how OpenCV gives the [region] and [yolo] layers of Darknet.
    """
    rows = _shaped(outputs["predictions"], ("N", 5 + head.classes))
    labels = rows[:, 5:].argmax(axis=1)
    return Candidates(_corners(rows[:, :4], head.scale), _at(rows[:, 5:], labels), labels)


def yolo_seg(outputs: Outputs, head: Head) -> Candidates:
    """Read (4 + C + M, N) or its transpose, as yolo-v8 with M coefficients, and prototypes (M, h, w)."""
    prototypes = _shaped(outputs["prototypes"], ("M", "h", "w"))
    output, wide = outputs["predictions"], 4 + head.classes + len(prototypes)
    if output.array.shape[0] == wide:
        output = Output(output.name, output.array.T)
    elif output.array.shape[1] != wide:
        parts = f"4 + {head.classes} classes + {len(prototypes)} coefficients"
        raise _misshapen(output, f"({wide}, N) or (N, {wide}): {parts}")
    rows = _shaped(output, ("N", wide))
    last = 4 + head.classes
    labels = rows[:, 4:last].argmax(axis=1)
    masks = PrototypeMasks(rows[:, last:], prototypes.astype(np.float32))
    return Candidates(_corners(rows[:, :4], head.scale), _at(rows[:, 4:last], labels), labels, masks=masks)


def mask_rcnn(outputs: Outputs, head: Head) -> Candidates:
    """Read boxes (N, 4) xyxy, scores (N,), labels (N,) and masks (N, 1, h, w) from 0 to 1.

    A mask covers its box or, where h x w is the input's size, the whole input.
    """
    candidates = decoded(outputs, head)
    maps = _shaped(outputs["masks"], (len(candidates.scores), 1, "h", "w"))[:, 0].astype(np.float32)
    over_input = maps.shape[:0:-1] == head.size
    return candidates._replace(masks=MaskMaps(maps, over_input))


_PREDICTIONS = (Role("predictions", 2),)
_BOXES = Role("boxes", 2, ("box", "bbox"))
_SCORES = Role("scores", 1, ("score", "conf"))
_LABELS = Role("labels", 1, ("label", "class"))
_LOGITS = Role("scores", 2, ("logit", "score", "class", "label"))
_NUMBER = Role("number", 0, ("num",), optional=True)
_POSITIONS = Role("positions", 2, ("position",), optional=True)
_WITH_PROTOTYPES = (
    Role("predictions", 2, ("output0", "pred", "det")),
    Role("prototypes", 3, ("output1", "proto")),
)
_MASKS = Role("masks", 4, ("mask",))
DECODERS: Mapping[Style, Decoder] = {
    "yolo": Decoder(yolo, (_PREDICTIONS,), "pixels", 0.45),
    "yolo-v8": Decoder(yolo_v8, (_PREDICTIONS,), "pixels", 0.45),
    "ssd": Decoder(ssd, ((_BOXES, _SCORES, _LABELS, _NUMBER),), "fraction", None),
    "detr": Decoder(detr, ((_LOGITS, _BOXES),), "fraction", None),
    "detr-sigmoid": Decoder(detr_sigmoid, ((_LOGITS, _BOXES),), "fraction", None),
    "fastestdet": Decoder(fastestdet, ((Role("predictions", 3),),), "fraction", 0.45),
    "decoded": Decoder(
        decoded,
        (
            (Role("detections", 2), _POSITIONS),
            (_BOXES, _SCORES, _LABELS, _POSITIONS),
        ),
        "pixels",
        None,
    ),
    "detection-output": Decoder(detection_output, ((Role("detections", 3),),), "fraction", None),
    "darknet": Decoder(darknet, (_PREDICTIONS,), "fraction", 0.45),
    "yolo-seg": Decoder(yolo_seg, (_WITH_PROTOTYPES,), "pixels", 0.45, masks=True),
    "mask-rcnn": Decoder(mask_rcnn, ((_BOXES, _SCORES, _LABELS, _MASKS),), "pixels", None, masks=True),
}


def _queries(outputs: Outputs, head: Head, chances: Floats) -> Candidates:
    boxes = _shaped(outputs["boxes"], (len(chances), 4))
    labels = chances.argmax(axis=1)
    return Candidates(_corners(boxes, head.scale), _at(chances, labels), labels)


def _corners(middle: Floats, scale: tuple[float, float]) -> Floats:
    """Turn centre x, centre y, width, height into x0, y0, x1, y1 in pixels."""
    half = middle[:, 2:] / 2
    corners: Floats = np.concatenate([middle[:, :2] - half, middle[:, :2] + half], axis=1)
    return _scaled(corners, scale)


def _scaled(boxes: Floats, scale: tuple[float, float]) -> Floats:
    return boxes * np.array([*scale, *scale], np.float64)


def _swapped(boxes: Output) -> Output:
    _shaped(boxes, ("N", 4))
    return Output(boxes.name, boxes.array[:, [1, 0, 3, 2]])


def _at(table: Floats, columns: NDArray[np.int64]) -> Floats:
    """Return one entry of each row."""
    picked: Floats = np.take_along_axis(table, columns[:, None], axis=1)
    return picked[:, 0]


def _sigmoid(x: Floats) -> Floats:
    return 0.5 * (1 + np.tanh(0.5 * x))  # the same function, without overflow


def _whole(labels: Output, count: int) -> NDArray[np.int64]:
    values = _shaped(labels, (count,))
    values = np.where(np.isfinite(values), values, NO_CLASS)
    whole = values.astype(np.int64)
    if (whole != values).any():
        raise SutError(
            "a label is not a whole number",
            where=f"output {labels.name!r}",
            got=str(values[whole != values][0]),
            fix="Check that outputs: names boxes, scores and labels in this order.",
        )
    return whole


def _shaped(output: Output, wanted: tuple[int | str, ...]) -> Floats:
    """Return an output as float64 after a look at its shape; a letter stands for any length."""
    shape = output.array.shape
    fits = len(shape) == len(wanted) and all(
        isinstance(want, str) or want == got for want, got in zip(wanted, shape, strict=True)
    )
    if not fits:
        raise _misshapen(output, str(wanted).replace("'", ""))
    return output.array.astype(np.float64)


def _misshapen(output: Output, wanted: str) -> SutError:
    return SutError(
        "an output of the model does not have the shape that its decoder reads",
        where=f"output {output.name!r}",
        got=f"{output.array.shape} for one image",
        wanted=wanted,
        fix="Check decoder: and the number of classes:.",
    )

"""Score cuts inside a model, below which no curve can go: found, and lowered where that is possible.

An ONNX model has them in its NonMaxSuppression nodes; the file is read as what it is, a protocol buffer, by
the few fields that matter, and a study reports them. Nothing is loaded or run. OpenCV drops what a Darknet
[yolo] layer scores below 0.2 unless its `thresh` says otherwise, and what a DetectionOutput layer scores
below its `confidence_threshold`; these are lowered to the adapter's own. Greedy NMS by falling score does not
let a weaker box change a stronger one, so lowering a cut adds detections and alters none.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

SCORE_INPUT = 4
"""Of NonMaxSuppression: boxes, scores, most boxes for each class, overlap, score threshold."""
GRAPH, NODE, INITIALIZER = 7, 1, 5
NODE_INPUT, NODE_OUTPUT, NODE_OP, NODE_ATTRIBUTE = 1, 2, 4, 5
ATTRIBUTE_FLOAT, ATTRIBUTE_TENSOR = 2, 5
TENSOR_FLOATS, TENSOR_NAME, TENSOR_RAW = 4, 8, 9
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


class Field(NamedTuple):
    """One field of a message: its number and its bytes (none for a whole number)."""

    number: int
    data: memoryview


def score_cut(model: Path) -> float | None:
    """Return the highest score that an ONNX model drops by itself; None where no constant says so."""
    try:
        cuts = list(_nms_cuts(np.memmap(model, np.uint8, mode="r").data))
    except (OSError, ValueError, IndexError):  # not ONNX: whoever loads it will say so
        return None
    return max(cuts, default=None)


def declared_cuts(options: Mapping[str, Any]) -> list[str]:
    """Say what the model file among a SUT's options cuts off before any threshold of the study can."""
    model = options.get("model")
    if not isinstance(model, Path) or model.suffix.lower() != ".onnx":
        return []
    cut = score_cut(model)
    if cut is None or cut <= float(options.get("score_threshold", 0)):
        return []
    return [f"scores below {cut:g} are dropped inside the model (NonMaxSuppression), so its curves end there"]


def _nms_cuts(model: memoryview) -> Iterator[float]:
    constants: dict[str, float] = {}
    thresholds: list[str] = []
    for graph in _named(model, GRAPH):
        for tensor in _named(graph, INITIALIZER):
            constants |= _constant(_text(tensor, TENSOR_NAME), tensor)
        for node in _named(graph, NODE):
            kind, inputs = _text(node, NODE_OP), [_word(data) for data in _named(node, NODE_INPUT)]
            if kind == "NonMaxSuppression" and len(inputs) > SCORE_INPUT:
                thresholds.append(inputs[SCORE_INPUT])
            elif kind == "Constant":
                name = _text(node, NODE_OUTPUT)
                for attribute in _named(node, NODE_ATTRIBUTE):
                    for data in _named(attribute, ATTRIBUTE_FLOAT):
                        constants[name] = _float(data)
                    for tensor in _named(attribute, ATTRIBUTE_TENSOR):
                        constants |= _constant(name, tensor)
    yield from (constants[name] for name in thresholds if math.isfinite(constants.get(name, math.nan)))


def _constant(name: str, tensor: memoryview) -> dict[str, float]:
    """Return the value of a tensor of one float by its name; nothing for any other."""
    held = [data for number in (TENSOR_RAW, TENSOR_FLOATS) for data in _named(tensor, number)]
    return {name: _float(held[0])} if len(held) == 1 and len(held[0]) == np.dtype("<f4").itemsize else {}


def _float(data: memoryview) -> float:
    return float(np.frombuffer(data, "<f4")[0])


def _text(message: memoryview, number: int) -> str:
    return next((_word(data) for data in _named(message, number)), "")


def _word(data: memoryview) -> str:
    return bytes(data).decode("utf-8", "replace")


def _named(message: memoryview, number: int) -> Iterator[memoryview]:
    return (field.data for field in _fields(message) if field.number == number)


def _fields(message: memoryview) -> Iterator[Field]:
    at = 0
    while at < len(message):
        key, at = _whole(message, at)
        kind = key & 7
        if kind == VARINT:
            _, end = _whole(message, at)
            start = end
        elif kind == BYTES:
            length, start = _whole(message, at)
            end = start + length
        elif kind in (FIXED32, FIXED64):
            start, end = at, at + (4 if kind == FIXED32 else 8)
        else:
            raise ValueError(f"no field of kind {kind}")
        if end > len(message):
            raise ValueError("a field ends beyond the end of the file")
        yield Field(key >> 3, message[start:end])
        at = end


def _whole(message: memoryview, at: int) -> tuple[int, int]:
    """Return a variable-length whole number and where it ends."""
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


REGIONS = ("yolo", "region")
"""Sections of a Darknet description that end a network; `thresh` in them is a training option of Darknet's,
0.6 in YOLOv2, which OpenCV takes for a score."""
NUMBER = rb"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
CONFIDENCE = {
    ".prototxt": re.compile(rb"(\bconfidence_threshold\s*:\s*)(" + NUMBER + rb")"),
    ".pbtxt": re.compile(
        rb"(\bkey\s*:\s*[\"']confidence_threshold[\"']\s*value\s*:?\s*\{\s*f\s*:\s*)(" + NUMBER + rb")"
    ),
}
"""The cut of a DetectionOutput layer in the text formats of Caffe and of TensorFlow."""


def uncut(description: bytes, kind: str, score_threshold: float) -> bytes:
    r"""Return a description (.cfg, .prototxt, .pbtxt) whose layers drop no score from `score_threshold` on.

    >>> uncut(b"[net]\nwidth=4\n[yolo]\nthresh=.2\nclasses=2", ".cfg", 0.001)
    b'[net]\nwidth=4\n[yolo]\nthresh=0\nclasses=2'
    >>> uncut(b"nms_threshold: 0.45 confidence_threshold: 0.25", ".prototxt", 0.001)
    b'nms_threshold: 0.45 confidence_threshold: 0.001'
    """
    if kind == ".cfg":
        return _uncut_regions(description)

    def lowered(match: re.Match[bytes]) -> bytes:
        own = match.group(2)
        return match.group(1) + (own if float(own) <= score_threshold else b"%g" % score_threshold)

    return CONFIDENCE[kind].sub(lowered, description)


def _uncut_regions(description: bytes) -> bytes:
    lines, in_region = [], False
    for line in description.split(b"\n"):
        text = line.strip()
        if text.startswith(b"["):
            in_region = text.strip(b"[] \t").decode("latin-1") in REGIONS
            lines += [line, b"thresh=0"] if in_region else [line]
        elif not (in_region and text.partition(b"=")[0].strip() == b"thresh"):
            lines.append(line)
    return b"\n".join(lines)

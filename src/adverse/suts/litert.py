"""TensorFlow Lite models (.tflite) through LiteRT: on the CPU, with one thread.

The `litert` extra brings the run-time, which is imported when a model is built, not before. Quantized inputs
and outputs are brought to and from real numbers by the scale and zero point that the model declares.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.errors import SutError, one_line
from adverse.plugins import sut
from adverse.suts import onnx_shape
from adverse.suts.decoders import Output, Style
from adverse.suts.dense import DenseStyle
from adverse.suts.network import (
    COCO_DECODING,
    STRETCHED,
    DecodingOptions,
    InputOptions,
    network_system,
)
from adverse.suts.onnx_shape import Port
from adverse.types import System

ONNX_TYPES = {np.float32: "tensor(float)", np.uint8: "tensor(uint8)", np.int8: "tensor(float)"}
"""Inputs as the onnx adapter knows them; int8 ones are fed real numbers, which are quantized here."""
POSTPROCESS = "TFLite_Detection_PostProcess"
POSTPROCESS_ORDER = ("", ":2", ":1", ":3")
"""Its outputs are boxes, labels, scores and their number; the ssd decoder wants scores before labels."""


@sut(name="litert", libraries=("ai-edge-litert", "numpy", "opencv-python-headless"))
def litert_model(
    model: Path,
    decoder: Style | DenseStyle,
    *,
    inputs: InputOptions = STRETCHED,
    decoding: DecodingOptions = COCO_DECODING,
) -> System:
    """Run a TensorFlow Lite model; the options are those of the onnx adapter.

    Models that take uint8 see the pixels as they are; quantized outputs become real numbers. The four
    outputs of TensorFlow's own detection post-processing are known by their names.
    """
    network = LiteRtNetwork(_interpreter(model), str(model))
    names = network.output_names
    if decoding.outputs is None and decoder == "ssd" and POSTPROCESS in names:
        ordered = [POSTPROCESS + tail for tail in POSTPROCESS_ORDER if POSTPROCESS + tail in names]
        decoding = replace(decoding, outputs=ordered)
    return network_system(
        network,
        decoder,
        inputs,
        decoding,
        where=str(model),
    )


class LiteRtNetwork:
    """A loaded model, run on one batch of its own size at a time."""

    def __init__(self, interpreter: Any, where: str) -> None:
        self._interpreter = interpreter
        inputs = interpreter.get_input_details()
        self.port: Port = onnx_shape.input_port(
            [_Input(entry["name"], entry["shape"].tolist(), _type(entry["dtype"])) for entry in inputs],
            where,
            size=None,
            layout=None,
        )
        self._input = inputs[0]
        self._outputs = {entry["name"]: entry for entry in interpreter.get_output_details()}
        self.output_names = list(self._outputs)

    def run(self, values: NDArray[Any], names: Sequence[str]) -> list[Output]:
        """Return the named outputs, in this order, or raise SutError."""
        try:
            self._interpreter.set_tensor(self._input["index"], _quantized(values, self._input))
            self._interpreter.invoke()
            arrays = [self._interpreter.get_tensor(self._outputs[name]["index"]) for name in names]
        except (RuntimeError, ValueError) as error:
            raise SutError("LiteRT cannot run the model", got=one_line(error)) from error
        pairs = zip(names, arrays, strict=True)
        return [Output(name, _real(array, self._outputs[name])) for name, array in pairs]


def _interpreter(model: Path) -> Any:
    try:
        from ai_edge_litert.interpreter import Interpreter  # noqa: PLC0415 - an extra, and heavy
    except ImportError as error:
        raise SutError(
            "LiteRT is not installed",
            where="litert",
            got=one_line(error),
            fix='pip install "adverse[litert]"',
        ) from error
    try:
        interpreter = Interpreter(model_path=os.fspath(model), num_threads=1)
        interpreter.allocate_tensors()
    except (RuntimeError, ValueError) as error:
        raise SutError(
            "LiteRT cannot load the model",
            where=str(model),
            got=one_line(error),
            wanted="a TensorFlow Lite model",
            fix="Check that the file is complete, and that LiteRT supports all its operations.",
        ) from error
    return interpreter


class _Input(NamedTuple):
    """An input as ONNX Runtime declares them."""

    name: str
    shape: list[int]
    type: str


def _type(dtype: Any) -> str:
    return ONNX_TYPES.get(dtype) or str(np.dtype(dtype).name)


def _quantized(values: NDArray[Any], declared: Any) -> NDArray[Any]:
    if declared["dtype"] is not np.int8:
        return values
    step, zero = declared["quantization"]
    whole = np.rint(values / (step or 1.0)) + zero
    fitting: NDArray[np.int8] = np.clip(whole, -128, 127).astype(np.int8)
    return fitting


def _real(array: NDArray[Any], declared: Any) -> NDArray[Any]:
    step, zero = declared["quantization"]
    if array.dtype.kind == "f" or not step:
        return np.array(array)
    real: NDArray[np.float32] = (array.astype(np.float32) - np.float32(zero)) * np.float32(step)
    return real

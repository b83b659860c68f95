"""Small TensorFlow Lite models, written by hand: constants, plus the mean of what they see where asked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

KINDS = {"float32": 0, "uint8": 3, "int64": 4, "int8": 9, "int32": 2}
FULLY_CONNECTED, RESHAPE, DEQUANTIZE, QUANTIZE = 9, 22, 6, 114
Steps = tuple[float, int]


class _Graph:
    def __init__(self) -> None:
        self.model = schema.ModelT()
        self.model.version = 3
        self.model.buffers = [schema.BufferT()]
        self.graph = schema.SubGraphT()
        self.graph.tensors, self.graph.operators = [], []
        self.model.subgraphs, self.model.operatorCodes = [self.graph], []
        self.codes: dict[int, int] = {}

    def tensor(
        self,
        name: str,
        shape: Any,
        kind: str,
        *,
        data: NDArray[Any] | None = None,
        steps: Steps | None = None,
    ) -> int:
        made = schema.TensorT()
        made.name, made.shape, made.type = name.encode(), list(shape), KINDS[kind]
        made.buffer = 0
        if data is not None:
            buffer = schema.BufferT()
            buffer.data = list(data.tobytes())
            self.model.buffers.append(buffer)
            made.buffer = len(self.model.buffers) - 1
        if steps is not None:
            made.quantization = schema.QuantizationParametersT()
            made.quantization.scale, made.quantization.zeroPoint = [steps[0]], [steps[1]]
        self.graph.tensors.append(made)
        return len(self.graph.tensors) - 1

    def run(self, code: int, inputs: list[int], output: int, options: Any = None, kind: int = 0) -> None:
        if code not in self.codes:
            entry = schema.OperatorCodeT()
            entry.builtinCode, entry.deprecatedBuiltinCode, entry.version = code, min(code, 127), 1
            self.codes[code] = len(self.codes)
            self.model.operatorCodes.append(entry)
        operator = schema.OperatorT()
        operator.opcodeIndex = self.codes[code]
        operator.inputs, operator.outputs = inputs, [output]
        operator.builtinOptions, operator.builtinOptionsType = options, kind
        self.graph.operators.append(operator)


def write_tflite(
    path: Path,
    outputs: Mapping[str, NDArray[Any]],
    *,
    shape: tuple[int, ...] = (1, 25, 50, 3),
    kind: str = "float32",
    steps: Steps | None = None,
    output_steps: Steps | None = None,
    sees: str | None = None,
) -> Path:
    """Write a model; to each number of the output `sees`, the mean of the input's real values is added."""
    made = _Graph()
    image = made.tensor("image", shape, kind, steps=steps)
    made.graph.inputs, made.graph.outputs = [image], []
    real = image
    if kind != "float32":
        real = made.tensor("real", shape, "float32")
        made.run(
            DEQUANTIZE, [image], real, schema.DequantizeOptionsT(), schema.BuiltinOptions.DequantizeOptions
        )
    count = int(np.prod(shape))
    for name, array in outputs.items():
        weights = np.full((array.size, count), 1 / count if name == sees else 0, np.float32)
        bias = array.astype(np.float32).ravel()
        inputs = [
            real,
            made.tensor(f"{name}/w", weights.shape, "float32", data=weights),
            made.tensor(f"{name}/b", bias.shape, "float32", data=bias),
        ]
        line = made.tensor(f"{name}/line", (1, array.size), "float32")
        made.run(
            FULLY_CONNECTED,
            inputs,
            line,
            schema.FullyConnectedOptionsT(),
            schema.BuiltinOptions.FullyConnectedOptions,
        )
        sides = np.array(array.shape, np.int32)
        target = made.tensor(f"{name}/shape", sides.shape, "int32", data=sides)
        options = schema.ReshapeOptionsT()
        options.newShape = array.shape
        last = name if output_steps is None else f"{name}/real"
        shaped = made.tensor(last, array.shape, "float32")
        made.run(RESHAPE, [line, target], shaped, options, schema.BuiltinOptions.ReshapeOptions)
        if output_steps is not None:
            whole = made.tensor(name, array.shape, "uint8", steps=output_steps)
            made.run(
                QUANTIZE, [shaped], whole, schema.QuantizeOptionsT(), schema.BuiltinOptions.QuantizeOptions
            )
            shaped = whole
        made.graph.outputs.append(shaped)
    builder = flatbuffers.Builder(1024)
    builder.Finish(made.model.Pack(builder), b"TFL3")
    path.write_bytes(bytes(builder.Output()))
    return path

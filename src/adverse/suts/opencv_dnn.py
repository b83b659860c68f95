"""Models that OpenCV's dnn module reads: TensorFlow graphs, Darknet, Caffe and ONNX, on the CPU, one thread.

OpenCV 5 has no readers for Darknet and Caffe; the error about them says to stay with OpenCV 4.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from adverse.errors import SutError, one_line
from adverse.plain_files import read_plain
from adverse.plugins import sut
from adverse.suts.decoders import DECODERS, Output, Style
from adverse.suts.dense import DenseStyle
from adverse.suts.network import (
    COCO_DECODING,
    STRETCHED,
    Count,
    DecodingOptions,
    InputOptions,
    network_system,
)
from adverse.suts.onnx_files import external_files
from adverse.suts.onnx_shape import Port
from adverse.suts.score_cuts import uncut
from adverse.types import System


class Importer(NamedTuple):
    """One kind of model: OpenCV's function that reads it, and the file it needs besides the weights."""

    kind: str
    function: str
    config: str | None


IMPORTERS = {
    ".pb": Importer("TensorFlow", "readNetFromTensorflow", ".pbtxt"),
    ".weights": Importer("Darknet", "readNetFromDarknet", ".cfg"),
    ".caffemodel": Importer("Caffe", "readNetFromCaffe", ".prototxt"),
    ".onnx": Importer("ONNX", "readNetFromONNX", None),
}
WEIGHTS_FIRST = frozenset({"readNetFromTensorflow"})
"""The others take the description first."""
JOINED = "+"
ONE_ROLE = frozenset(name for name, style in DECODERS.items() if len(style.forms) == len(style.forms[0]) == 1)
"""Decoders of one output; where a model has several, they are its parts."""


def _weights_beside(options: Mapping[str, Any]) -> list[Path]:
    """Return the files beside an ONNX model that hold its weights."""
    model: Path = options["model"]
    return external_files(model) if model.suffix == ".onnx" else []


@sut(name="opencv-dnn", libraries=("numpy", "opencv-python-headless"), extra_files=_weights_beside)
def opencv_dnn(
    model: Path,
    decoder: Style | DenseStyle,
    size: tuple[Count, Count],
    *,
    config: Path | None = None,
    inputs: InputOptions = STRETCHED,
    decoding: DecodingOptions = COCO_DECODING,
) -> System:
    """Run a model through OpenCV: a TensorFlow .pb, Darknet .weights, .caffemodel or .onnx file.

    `config` is the description that lies beside the weights (.pbtxt, .cfg, .prototxt). The other options
    are those of the onnx adapter; OpenCV does not tell the input's size, so `size` must be said. Heads
    that a model gives as several outputs of the same width are read as one. A score cut in the description
    is lowered to `score_threshold`.
    """
    joined = decoder in ONE_ROLE and decoding.outputs is None
    port = Port("image", np.dtype(np.float32), "nchw", size, 1)
    return network_system(
        OpenCvNetwork(load_net(model, config, decoding.score_threshold), port, joined=joined),
        decoder,
        inputs,
        decoding,
        where=str(model),
    )


class OpenCvNetwork:
    """A net of OpenCV's, run on one image at a time; an output a+b is that of a and b, joined by rows."""

    def __init__(self, net: Any, port: Port, *, joined: bool) -> None:
        self.port = port
        self._net = net
        names = list(net.getUnconnectedOutLayersNames())
        self.output_names: list[str] = [JOINED.join(names)] if joined else names

    def run(self, values: NDArray[Any], names: Sequence[str]) -> list[Output]:
        """Return the named outputs, in this order, or raise SutError."""
        wanted = [part for name in names for part in name.split(JOINED)]
        threads = cv2.getNumThreads()
        cv2.setNumThreads(1)
        try:
            self._net.setInput(values)
            arrays = dict(zip(wanted, self._net.forward(wanted), strict=True))
        except cv2.error as error:
            raise SutError(
                "OpenCV cannot run the model",
                got=one_line(error),
                fix="Check size:, and that this OpenCV supports all layers of the model.",
            ) from error
        finally:
            cv2.setNumThreads(threads)
        return [Output(name, _joined([arrays[part] for part in name.split(JOINED)], name)) for name in names]


def load_net(model: Path, config: Path | None, score_threshold: float) -> Any:
    """Read a model with the reader that its ending names, or say what is missing.

    Its layers drop no score from `score_threshold` on, whatever the description says.
    """
    importer = IMPORTERS.get(model.suffix)
    if importer is None:
        raise SutError(
            "OpenCV has no reader for such a model",
            where=str(model),
            got=model.suffix or "no ending",
            wanted=", ".join(f"{ending} ({reader.kind})" for ending, reader in IMPORTERS.items()),
            fix="Export the model as ONNX, or use the adapter made for it.",
        )
    if importer.config is not None and config is None:
        raise SutError(
            f"a {importer.kind} model has a second file, its description",
            where=str(model),
            wanted=f"config: with a {importer.config} file",
            fix=f"Add config: {model.with_suffix(importer.config).name}.",
        )
    reader: Callable[..., Any] | None = getattr(cv2.dnn, importer.function, None)
    if reader is None:
        raise SutError(
            f"this OpenCV cannot read {importer.kind} models",
            where=str(model),
            got=f"OpenCV {cv2.__version__}, without {importer.function}",
            wanted="OpenCV 4",
            fix='pip install "opencv-python-headless<5", or export the model as ONNX and use onnx.',
        )
    try:
        if importer.config is None or config is None:
            return reader(os.fspath(model))
        text = uncut(read_plain(config), importer.config, score_threshold)
        buffers = [np.frombuffer(data, np.uint8) for data in (text, read_plain(model))]
        return reader(*(reversed(buffers) if importer.function in WEIGHTS_FIRST else buffers))
    except (cv2.error, OSError) as error:
        raise SutError(
            f"OpenCV cannot read the {importer.kind} model",
            where=", ".join(str(path) for path in (config, model) if path is not None),
            got=one_line(error),
            fix="Check that the files are complete and belong together.",
        ) from error


def _joined(arrays: Sequence[NDArray[Any]], name: str) -> NDArray[Any]:
    if len(arrays) == 1:
        return np.array(arrays[0])  # OpenCV writes the next answer into the same memory
    if len({array.shape[-1] for array in arrays}) > 1 or {array.ndim for array in arrays} != {2}:
        raise SutError(
            "the model has several outputs that cannot be read as one",
            where=f"outputs {name}",
            got=", ".join(str(array.shape) for array in arrays),
            wanted="(N, 5 + C) each",
            fix="Check decoder:, or name the one to read in outputs:.",
        )
    return np.concatenate(arrays)

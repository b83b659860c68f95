"""ONNX models through ONNX Runtime: on the CPU, with one thread, the same answer every time; or on a GPU.

ONNX Runtime is imported when a model is built, not before. It never changes to another provider than the
study names: what was asked for is what ran.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from numpy.typing import NDArray

from adverse.errors import SutError, one_line
from adverse.plugins import sut
from adverse.remote_files import RemotePath, local_copies
from adverse.suts import onnx_shape
from adverse.suts.decoders import Output, Style
from adverse.suts.dense import DenseStyle
from adverse.suts.network import (
    COCO_DECODING,
    LETTERBOXED,
    Count,
    DecodingOptions,
    InputOptions,
    network_system,
)
from adverse.suts.onnx_files import external_files
from adverse.suts.preprocess import Layout
from adverse.types import System

ABOUT_WEIGHTS = re.compile(r"external|random-access reads", re.IGNORECASE)
"""What ONNX Runtime says about weights in other files that it cannot use."""
Provider = Literal["cpu", "cuda"]
Precision = Literal["float32", "tf32"]
PROVIDERS: Mapping[Provider, str] = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}
"""What ONNX Runtime calls each provider."""
CPU: tuple[Provider, ...] = ("cpu",)


def _weights_beside(options: Mapping[str, Any]) -> list[Path]:
    """Return the files beside the model that hold its weights."""
    return external_files(options["model"])


@sut(name="onnx", libraries=("numpy", "onnxruntime", "opencv-python-headless"), extra_files=_weights_beside)
def onnx_model(
    model: Path,
    decoder: Style | DenseStyle,
    *,
    size: tuple[Count, Count] | None = None,
    layout: Layout | None = None,
    providers: tuple[Provider, ...] = CPU,
    precision: Precision = "float32",
    inputs: InputOptions = LETTERBOXED,
    decoding: DecodingOptions = COCO_DECODING,
) -> System:
    """Run an ONNX model: `decoder` says what its outputs mean, `classes` what its labels mean.

    The decoders `segmentation` and `classification` make it a segmenter or a classifier; all others, a
    detector.

    Inputs are (pixel * scale - mean) / std, scale 1/255 unless given. `size` [width, height] and `layout`
    are read from the model where it fixes them. `outputs` names the outputs in the decoder's order
    where their names do not tell. `box_unit` and `nms_iou` are the decoder's own unless given; nms_iou 1
    turns NMS off. The threshold is low so that trade-off curves are complete. A model whose batch axis is
    open runs all the images it is given at once.

    `providers` say where it runs: each operator on the first of them that can run it. One that this
    onnxruntime lacks is an error, and so is an operator that none of them can run. `precision: tf32` lets a
    GPU round the factors of float32 products to 10 bits, which is faster.
    """
    network = open_model(model, size=size, layout=layout, providers=providers, precision=precision)
    return network_system(
        network,
        decoder,
        inputs,
        decoding,
        where=str(model),
    )


def open_model(
    model: Path,
    *,
    size: tuple[int, int] | None = None,
    layout: Layout | None = None,
    providers: Sequence[Provider] = CPU,
    precision: Precision = "float32",
) -> OnnxNetwork:
    """Load a model."""
    return OnnxNetwork(open_session(model, providers, precision), str(model), size=size, layout=layout)


class OnnxNetwork:
    """A session of ONNX Runtime."""

    def __init__(
        self, session: Any, where: str, *, size: tuple[int, int] | None, layout: Layout | None
    ) -> None:
        self._session = session
        self.port = onnx_shape.input_port(session.get_inputs(), where, size=size, layout=layout)
        self.output_names: list[str] = [output.name for output in session.get_outputs()]
        self.metadata: dict[str, str] = dict(session.get_modelmeta().custom_metadata_map)

    def run(self, values: NDArray[Any], names: Sequence[str]) -> list[Output]:
        """Return the named outputs, in this order, or raise SutError."""
        try:
            arrays = self._session.run(list(names), {self.port.name: values})
        except Exception as error:
            raise SutError("ONNX Runtime cannot run the model", got=one_line(error)) from error
        return [Output(*pair) for pair in zip(names, arrays, strict=True)]


def open_session(model: Path, providers: Sequence[Provider] = CPU, precision: Precision = "float32") -> Any:
    """Return a session of ONNX Runtime on these providers, with one thread, or raise SutError."""
    # it would keep a database of telemetry that every process changes, so that runs side by side break
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime  # noqa: PLC0415 - heavy, and only needed once a model is built

    onnxruntime.disable_telemetry_events()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.use_deterministic_compute = True
    options.log_severity_level = 3
    wanted = _runtime_providers(providers, precision, onnxruntime.get_available_providers(), str(model))
    if "cpu" not in providers:  # ONNX Runtime would add it
        options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    local = local_copies(model, external_files(model) if isinstance(model, RemotePath) else ())
    try:
        session = onnxruntime.InferenceSession(local, options, providers=wanted)
        session.disable_fallback()
    except Exception as error:
        raise SutError(
            "ONNX Runtime cannot load the model",
            where=str(model),
            got=one_line(error),
            wanted="an ONNX model",
            fix=_fix(model, str(error)),
        ) from error
    dropped = [name for name in providers if PROVIDERS[name] not in session.get_providers()]
    if dropped:  # it only logs that it could not start one
        raise SutError(
            f"ONNX Runtime could not start its provider {dropped[0]!r}",
            where=f"{model}, providers: [{', '.join(providers)}]",
            got=f"a session on {', '.join(session.get_providers())}",
            fix="See that nvidia-smi lists a GPU here, and that CUDA and cuDNN are those that this "
            "onnxruntime-gpu was built for; or set providers: [cpu].",
        )
    return session


def _runtime_providers(
    providers: Sequence[Provider], precision: Precision, available: Sequence[str], model: str
) -> list[str | tuple[str, dict[str, str]]]:
    """Return providers as ONNX Runtime wants them, or raise SutError where it was built without one."""
    where = f"{model}, providers: [{', '.join(providers)}]"
    if not providers or len(set(providers)) < len(providers):
        raise SutError(
            "providers: must name at least one provider, each once",
            where=where,
            fix="Write providers: [cuda, cpu], or leave it out for the CPU.",
        )
    if precision == "tf32" and "cuda" not in providers:
        raise SutError(
            "precision: tf32 is for GPUs", where=where, fix="Add cuda to providers:, or take out precision:."
        )
    for name in providers:
        if PROVIDERS[name] not in available:
            raise SutError(
                f"the installed ONNX Runtime has no provider {name!r}",
                where=where,
                got=", ".join(available),
                wanted=PROVIDERS[name],
                fix="pip uninstall onnxruntime && pip install onnxruntime-gpu, or set providers: [cpu].",
            )
    cuda = {"use_tf32": "1" if precision == "tf32" else "0", "cudnn_conv_algo_search": "DEFAULT"}
    return [(PROVIDERS[name], cuda) if name == "cuda" else PROVIDERS[name] for name in providers]


def _fix(model: Path, said: str) -> str:
    """Return what mends a model that cannot be loaded, by what ONNX Runtime said."""
    files = external_files(model) if ABOUT_WEIGHTS.search(said) else []
    if not files:
        return "Check that the file is complete and of an opset that this onnxruntime supports."
    names = ", ".join(file.name + ("" if file.is_file() else " (not there)") for file in files)
    return (
        f"The model's weights are in files beside it (external data): {names}. Copy them again, whole, from "
        "where the model was exported; where they are whole, export the model again."
    )

"""Models behind a server of the Open Inference Protocol (KServe v2): KServe, Triton, MLServer, OpenVINO, ...

Preprocessing and decoding happen here, as for a model on disk; the server only runs the network. Tensors
travel as JSON numbers or, where the server can, as bytes behind the JSON, little-endian, row by row.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field

from adverse.errors import SutError, one_line
from adverse.plugins import Positive, sut
from adverse.suts import onnx_shape
from adverse.suts.ask import METHODS, task_of
from adverse.suts.decoders import Output, Style
from adverse.suts.dense import DenseStyle
from adverse.suts.http_client import HttpClient
from adverse.suts.network import (
    COCO_DECODING,
    LETTERBOXED,
    Count,
    DecodingOptions,
    InputOptions,
    NetworkSystem,
    network_system,
)
from adverse.suts.onnx_shape import Port
from adverse.suts.preprocess import Layout


def _without_password(url: str) -> str:
    """Refuse a password while the study is read: later it would be in every record of the run."""
    if "@" in url.partition("://")[2].partition("/")[0]:
        raise ValueError("no name or password in an address; token_from: names a variable that holds a token")
    return url


Address = Annotated[str, AfterValidator(_without_password)]
ONNX_TYPES = {"FP32": "tensor(float)", "FP16": "tensor(float16)", "UINT8": "tensor(uint8)"}


class ServedSystem:
    """A system behind a server, of any task; every request ends by itself within its time."""

    watches_itself = True

    def __init__(self, system: NetworkSystem, client: HttpClient) -> None:
        self.take_requests = client.take_requests
        self.classes = system.classes
        self.task = task_of(system)
        self.detect = self.segment = self.classify = getattr(system, METHODS[self.task or "detection"])


@sut(name="http", libraries=("numpy", "opencv-python-headless"))
def served_model(
    url: Address,
    model: str,
    decoder: Style | DenseStyle,
    *,
    version: str | None = None,
    revision: str = "",  # noqa: ARG001 - part of the fingerprint, which reads the options
    timeout_s: Positive = 60,
    retries: Annotated[int, Field(ge=0, le=10)] = 2,
    late_is_fault: bool = False,
    max_response_mb: Annotated[int, Field(ge=1, le=1024)] = 64,
    use_environment: bool = False,
    token_from: str | None = None,
    binary: bool | None = None,
    size: tuple[Count, Count] | None = None,
    layout: Layout | None = None,
    inputs: InputOptions = LETTERBOXED,
    decoding: DecodingOptions = COCO_DECODING,
) -> ServedSystem:
    """Ask a model behind a server (Open Inference Protocol v2), such as `url: http://localhost:8000`.

    `timeout_s` is for one request with its repetitions: `retries` of them, when there is no connection or the
    server is not ready (429, 502, 503, 504). No answer in time leaves the run incomplete, to be asked for by
    the next one; `late_is_fault` counts it as the model's failure instead. Nothing is known here about the
    served model but its name: change `revision` (any text) when it changes, so that it is asked anew.
    `token_from` names an environment variable with a bearer token. All from `classes` on is as in the onnx
    adapter.
    """
    client = HttpClient(
        url,
        timeout_s=timeout_s,
        retries=retries,
        max_bytes=max_response_mb << 20,
        use_environment=use_environment,
        token=None if token_from is None else _token(token_from),
        late_is_fault=late_is_fault,
    )
    path = f"/v2/models/{quote(model, safe='')}" + (f"/versions/{quote(version, safe='')}" if version else "")
    where = f"{url}, model {model!r}"
    client.get(f"{path}/ready")
    declared = read_metadata(client.get(path).body)
    if binary is None:
        binary = has_binary(client.get("/v2").body)
    port = onnx_shape.input_port(
        [
            _Input(tensor.name, tensor.shape, ONNX_TYPES.get(tensor.datatype, tensor.datatype))
            for tensor in declared.inputs
        ],
        where,
        size=size,
        layout=layout,
    )
    if port.dtype.itemsize == 2 and not binary:
        raise SutError(
            "this model takes float16, which JSON cannot carry",
            where=f"{where}, input {port.name!r}",
            fix="Serve it with the binary tensor extension, or as float32.",
        )
    built = network_system(
        ServedNetwork(client, path, port, [tensor.name for tensor in declared.outputs], where, binary=binary),
        decoder,
        inputs,
        decoding,
        where=where,
    )
    return ServedSystem(built, client)


class ServedNetwork:
    """A model on a server, one request for each batch."""

    def __init__(
        self, client: HttpClient, path: str, port: Port, outputs: list[str], where: str, *, binary: bool
    ) -> None:
        self.port = port
        self.output_names = outputs
        self._where = where
        self._client = client
        self._path = path
        self._binary = binary

    def run(self, values: NDArray[Any], names: Sequence[str]) -> list[Output]:
        """Return the named outputs, in this order, or raise SutError."""
        body, headers = infer_request(self.port.name, values, names, binary=self._binary)
        reply = self._client.post(f"{self._path}/infer", body, headers)
        try:
            return read_reply(reply.body, reply.headers, names)
        except SutError as error:
            raise error.placed(self._where) from error


def _token(variable: str) -> str:
    token = os.environ.get(variable, "").strip()
    if not token.isascii() or not token.isprintable() or not token:
        raise SutError(
            "there is no token in the environment",
            where=f"token_from: {variable}",
            got=f"${variable} is not set" if not token else f"${variable} cannot be sent in a header",
            fix=f"Set {variable} to the token and run again.",
        )
    return token


class _Input(NamedTuple):
    """An input as ONNX Runtime declares them."""

    name: str
    shape: tuple[int | None, ...]
    type: str


BINARY_EXTENSION = "binary_tensor_data"
JSON_LENGTH = "inference-header-content-length"
"""Header that says how many bytes of a body are JSON; the rest are tensors."""
DATATYPES: Mapping[str, str] = {
    "BOOL": "?",
    "UINT8": "<u1",
    "UINT16": "<u2",
    "UINT32": "<u4",
    "UINT64": "<u8",
    "INT8": "<i1",
    "INT16": "<i2",
    "INT32": "<i4",
    "INT64": "<i8",
    "FP16": "<f2",
    "FP32": "<f4",
    "FP64": "<f8",
}


class Tensor(NamedTuple):
    """What a server declares about an input or output; open lengths are None."""

    name: str
    shape: tuple[int | None, ...]
    datatype: str


class ModelMetadata(NamedTuple):
    """What a server says about a model."""

    inputs: list[Tensor]
    outputs: list[Tensor]


def read_metadata(body: bytes) -> ModelMetadata:
    """Read the reply to GET v2/models/NAME."""
    content = _json(body)
    try:
        return ModelMetadata(*([_tensor(entry) for entry in content[key]] for key in ("inputs", "outputs")))
    except (KeyError, TypeError, ValueError) as error:
        raise _garbage(
            "the server does not describe the model",
            one_line(error),
            '{"inputs": [{"name", "datatype", "shape"}], "outputs": [...]}',
        ) from error


def has_binary(body: bytes) -> bool:
    """Return whether, by the reply to GET v2, tensors can travel as bytes."""
    extensions = _json(body).get("extensions")
    return isinstance(extensions, list) and BINARY_EXTENSION in extensions


def infer_request(
    name: str, values: NDArray[Any], outputs: Sequence[str], *, binary: bool
) -> tuple[bytes, dict[str, str]]:
    """Return body and headers of a request for some outputs of one input tensor."""
    kind = next(kind for kind, code in DATATYPES.items() if np.dtype(code) == values.dtype.newbyteorder("<"))
    tensor: dict[str, Any] = {"name": name, "shape": list(values.shape), "datatype": kind}
    if not binary:
        tensor["data"] = values.ravel().tolist()
        request = {"inputs": [tensor], "outputs": [{"name": output} for output in outputs]}
        return json.dumps(request).encode(), {"content-type": "application/json"}
    raw = np.ascontiguousarray(values, DATATYPES[kind]).tobytes()
    tensor["parameters"] = {"binary_data_size": len(raw)}
    wanted = [{"name": output, "parameters": {"binary_data": True}} for output in outputs]
    head = json.dumps({"inputs": [tensor], "outputs": wanted}).encode()
    return head + raw, {"content-type": "application/octet-stream", JSON_LENGTH: str(len(head))}


def read_reply(body: bytes, headers: Mapping[str, str], names: Sequence[str]) -> list[Output]:
    """Return the named outputs of a reply, in this order, or raise SutError."""
    try:
        length = int(headers.get(JSON_LENGTH, len(body)))
    except ValueError:
        length = -1
    if not 0 <= length <= len(body):
        raise _garbage(
            f"the header {JSON_LENGTH} is wrong", headers[JSON_LENGTH], f"a number up to {len(body)}"
        )
    content, rest = _json(body[:length]), memoryview(body)[length:]
    outputs: dict[str, Output] = {}
    try:
        for entry in content["outputs"]:
            name, shape = str(entry["name"]), [int(side) for side in entry["shape"]]
            size = (entry.get("parameters") or {}).get("binary_data_size")
            if size is None:
                array = np.array(entry["data"], DATATYPES[entry["datatype"]])
            else:
                array = np.frombuffer(rest[: int(size)], DATATYPES[entry["datatype"]])
                rest = rest[int(size) :]
            outputs[name] = Output(name, array.reshape(shape))
        return [outputs[name] for name in names]
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise _garbage(
            "the server's answer holds no outputs that can be read",
            one_line(error),
            f"outputs {', '.join(names)}, each with name, datatype, shape and data",
        ) from error


def _tensor(entry: Mapping[str, Any]) -> Tensor:
    shape = tuple(int(side) if int(side) > 0 else None for side in entry["shape"])
    return Tensor(str(entry["name"]), shape, str(entry["datatype"]))


def _json(body: bytes) -> dict[str, Any]:
    try:
        content = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise _garbage("the server's answer is not JSON", f"{body[:80]!r}", "a JSON object") from error
    if not isinstance(content, dict):
        raise _garbage("the server's answer is not a JSON object", type(content).__name__, "a JSON object")
    return content


def _garbage(what: str, got: str, wanted: str) -> SutError:
    return SutError(
        what, got=got, wanted=wanted, fix="Check that url: is a server of the Open Inference Protocol (v2)."
    )

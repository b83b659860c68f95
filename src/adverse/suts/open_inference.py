"""Models behind a server of the Open Inference Protocol (KServe v2): KServe, Triton, MLServer, OpenVINO, ...

Preprocessing and decoding happen here, as for a model on disk; the server only runs the network. Tensors
travel as JSON numbers or, where the server can, as bytes behind the JSON, little-endian, row by row.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field

from adverse.errors import SutError, one_line
from adverse.plugins import Positive, sut
from adverse.strict_json import DuplicateKeyError, each_key_once
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
        ServedNetwork(client, path, port, Expected.of(model, version, declared), where, binary=binary),
        decoder,
        inputs,
        decoding,
        where=where,
    )
    return ServedSystem(built, client)


class ServedNetwork:
    """A model on a server, one request for each batch."""

    def __init__(
        self, client: HttpClient, path: str, port: Port, expected: Expected, where: str, *, binary: bool
    ) -> None:
        self.port = port
        self.output_names = list(expected.datatypes)
        self._expected = expected
        self._where = where
        self._client = client
        self._path = path
        self._binary = binary

    def run(self, values: NDArray[Any], names: Sequence[str]) -> list[Output]:
        """Return the named outputs, in this order, or raise SutError."""
        request = infer_request(self.port.name, values, names, binary=self._binary)
        reply = self._client.post(f"{self._path}/infer", request.body, request.headers)
        try:
            return read_reply(reply.body, reply.headers, names, self._expected, request.id)
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


SHOWN = 200
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
    name: str | None = None


@dataclass
class Expected:
    """Whose answers are wanted: those of a model, by each name that it has, with outputs as declared.

    Where the study names no version, it is that of the first answer.
    """

    names: tuple[str, ...]
    version: str | None
    datatypes: Mapping[str, str]

    @classmethod
    def of(cls, model: str, version: str | None, declared: ModelMetadata) -> Expected:
        """Return what is wanted of a model by the study and by what its server declares."""
        names = tuple(dict.fromkeys([model, declared.name or model]))
        return cls(names, version, {tensor.name: tensor.datatype for tensor in declared.outputs})

    def check(self, content: Mapping[str, Any], request: str) -> None:
        """Refuse the answer of another model, another version of it, or to another request."""
        wrong: list[tuple[str, Any, str]] = []
        if (name := content.get("model_name")) is not None and name not in self.names:
            wrong.append(("another model", name, " or ".join(self.names)))
        if (version := content.get("model_version")) is not None:
            self.version = self.version or str(version)
            if str(version) != self.version:
                wrong.append(("another version of the model", version, self.version))
        if (number := content.get("id")) not in (None, "", request):
            wrong.append(("another request", number, request))
        for what, got, wanted in wrong:
            raise SutError(
                f"the server's answer is that of {what}",
                got=repr(got)[:SHOWN],
                wanted=wanted,
                fix="See what the server, or a gateway before it, does; version: asks for one version.",
            )


class InferRequest(NamedTuple):
    """A request as it is sent. Its `id`, which the server repeats, is a hash of what is asked."""

    id: str
    body: bytes
    headers: dict[str, str]


def read_metadata(body: bytes) -> ModelMetadata:
    """Read the reply to GET v2/models/NAME."""
    content = _json(body)
    try:
        inputs, outputs = ([_tensor(entry) for entry in content[key]] for key in ("inputs", "outputs"))
        return ModelMetadata(inputs, outputs, content.get("name"))
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


def infer_request(name: str, values: NDArray[Any], outputs: Sequence[str], *, binary: bool) -> InferRequest:
    """Return a request for some outputs of one input tensor."""
    kind = next(kind for kind, code in DATATYPES.items() if np.dtype(code) == values.dtype.newbyteorder("<"))
    raw = np.ascontiguousarray(values, DATATYPES[kind]).tobytes()
    number = hashlib.sha256(raw).hexdigest()[:16]
    tensor: dict[str, Any] = {"name": name, "shape": list(values.shape), "datatype": kind}
    if not binary:
        tensor["data"] = values.ravel().tolist()
        request = {"id": number, "inputs": [tensor], "outputs": [{"name": output} for output in outputs]}
        return InferRequest(number, json.dumps(request).encode(), {"content-type": "application/json"})
    tensor["parameters"] = {"binary_data_size": len(raw)}
    wanted = [{"name": output, "parameters": {"binary_data": True}} for output in outputs]
    head = json.dumps({"id": number, "inputs": [tensor], "outputs": wanted}).encode()
    headers = {"content-type": "application/octet-stream", JSON_LENGTH: str(len(head))}
    return InferRequest(number, head + raw, headers)


def read_reply(
    body: bytes, headers: Mapping[str, str], names: Sequence[str], expected: Expected, request: str
) -> list[Output]:
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
    expected.check(content, request)
    outputs: dict[str, Output] = {}
    try:
        for entry in content["outputs"]:
            name, shape = str(entry["name"]), [int(side) for side in entry["shape"]]
            if name in outputs:
                raise ValueError(f"output {name!r} twice")
            kind = str(entry["datatype"])
            if kind != expected.datatypes.get(name, kind):
                raise _other_datatype(name, kind, expected.datatypes[name])
            size = (entry.get("parameters") or {}).get("binary_data_size")
            if size is None:
                array = _whole(name, entry["data"], kind)
            else:
                array = np.frombuffer(rest[: int(size)], DATATYPES[kind])
                rest = rest[int(size) :]
            outputs[name] = Output(name, array.reshape(shape))
        return [outputs[name] for name in names]
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise _garbage(
            "the server's answer holds no outputs that can be read",
            one_line(error),
            f"outputs {', '.join(names)}, each with name, datatype, shape and data",
        ) from error


def _whole(name: str, data: Any, kind: str) -> NDArray[Any]:
    """Return the numbers of an output as its datatype, without cutting anything off them."""
    given = np.array(data)
    if given.size and given.dtype.kind not in "biuf":
        raise ValueError(f"data of output {name!r} that are no numbers")
    with np.errstate(invalid="ignore", over="ignore"):
        array = given.astype(DATATYPES[kind])
    if array.dtype.kind != "f" and not np.array_equal(array, given):
        raise _other_datatype(name, f"numbers that {kind} cannot hold", kind)
    return array


def _other_datatype(name: str, got: str, wanted: str) -> SutError:
    return SutError(
        f"output {name!r} has another datatype than the server declares",
        got=got,
        wanted=wanted,
        fix="Let the model's metadata and its answers agree.",
    )


def _tensor(entry: Mapping[str, Any]) -> Tensor:
    shape = tuple(int(side) if int(side) > 0 else None for side in entry["shape"])
    return Tensor(str(entry["name"]), shape, str(entry["datatype"]))


def _json(body: bytes) -> dict[str, Any]:
    try:
        content = json.loads(body, object_pairs_hook=each_key_once)
    except (ValueError, RecursionError) as error:
        got = str(error) if isinstance(error, DuplicateKeyError) else f"{body[:80]!r}"
        raise _garbage("the server's answer is not JSON", got, "a JSON object, each key once") from error
    if not isinstance(content, dict):
        raise _garbage("the server's answer is not a JSON object", type(content).__name__, "a JSON object")
    return content


def _garbage(what: str, got: str, wanted: str) -> SutError:
    return SutError(
        what, got=got, wanted=wanted, fix="Check that url: is a server of the Open Inference Protocol (v2)."
    )

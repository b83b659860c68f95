"""The Open Inference Protocol (KServe v2): what is sent to a served model, and how its replies are read.

Tensors travel as JSON numbers or, where the server can, as bytes behind the JSON, little-endian, row by row.
Pure functions; nothing here talks to anybody.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.errors import SutError, one_line
from adverse.suts.decoders import Output

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


class Declared(NamedTuple):
    """What a server says about a model."""

    inputs: list[Tensor]
    outputs: list[Tensor]


def read_metadata(body: bytes) -> Declared:
    """Read the reply to GET v2/models/NAME."""
    content = _json(body)
    try:
        return Declared(*([_tensor(entry) for entry in content[key]] for key in ("inputs", "outputs")))
    except (KeyError, TypeError, ValueError) as error:
        raise _garbage(
            "the server does not describe the model",
            one_line(error),
            '{"inputs": [{"name", "datatype", "shape"}], "outputs": [...]}',
        ) from error


def has_binary(body: bytes) -> bool:
    """Tell from the reply to GET v2 whether tensors can travel as bytes."""
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
        request = {"inputs": [tensor], "outputs": [{"name": one} for one in outputs]}
        return json.dumps(request).encode(), {"content-type": "application/json"}
    raw = np.ascontiguousarray(values, DATATYPES[kind]).tobytes()
    tensor["parameters"] = {"binary_data_size": len(raw)}
    wanted = [{"name": one, "parameters": {"binary_data": True}} for one in outputs]
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
    found: dict[str, Output] = {}
    try:
        for entry in content["outputs"]:
            name, shape = str(entry["name"]), [int(side) for side in entry["shape"]]
            size = (entry.get("parameters") or {}).get("binary_data_size")
            if size is None:
                array = np.array(entry["data"], DATATYPES[entry["datatype"]])
            else:
                array = np.frombuffer(rest[: int(size)], DATATYPES[entry["datatype"]])
                rest = rest[int(size) :]
            found[name] = Output(name, array.reshape(shape))
        return [found[name] for name in names]
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

"""The files beside an ONNX model that hold its weights, read from the model itself without loading it.

A tensor whose data_location is EXTERNAL names its file, relative to the model, under the key `location`.
It can be an initializer or an attribute of a node, in the main graph, in a branch or loop, or in a function.
The numbers below are those of the fields in onnx.proto3; everything else is skipped unread, so that
gigabytes of weights cost nothing.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from adverse.errors import StudyError
from adverse.plain_files import open_plain

Fields = Mapping[int, "Fields | str"]
"""The parts of a message to look into, by the number of their field; a text is the name of what it holds."""
TENSOR = "tensor"
GRAPH: dict[int, Any] = {}
SPARSE: Fields = {1: TENSOR, 2: TENSOR}
ATTRIBUTE: Fields = {5: TENSOR, 6: GRAPH, 10: TENSOR, 11: GRAPH, 22: SPARSE, 23: SPARSE}
NODE: Fields = {5: ATTRIBUTE}
GRAPH.update({1: NODE, 5: TENSOR, 15: SPARSE})
FUNCTION: Fields = {7: NODE, 11: ATTRIBUTE}
TRAINING: Fields = {1: GRAPH, 2: GRAPH}
MODEL: Fields = {7: GRAPH, 20: TRAINING, 25: FUNCTION}

EXTERNAL_DATA, DATA_LOCATION = 13, 14
"""Of a tensor: pairs of key and value, and where its data is."""
EXTERNAL = 1
LOCATION = b"location"
ORT_FORMAT = slice(4, 8), b"ORTM"
"""Where and how a model in ONNX Runtime's own format, which has no such files, says what it is."""
VARINT, FIXED_64, BYTES, FIXED_32 = 0, 1, 2, 5
"""How a field is written."""


def external_files(model: Path) -> list[Path]:
    """Return the files that a model's tensors are in, each once, in the order that the model names them.

    A file that cannot be opened has none: the reader of the model itself says what is wrong with it. A
    model that cannot be parsed, or names a file outside of its folder, is an error.
    """
    try:
        with open_plain(model) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            if content.find(LOCATION) < 0 or content[ORT_FORMAT[0]] == ORT_FORMAT[1]:
                return []
            with memoryview(content) as data:
                names = list(dict.fromkeys(_locations(data, 0, len(data), MODEL)))
    except (OSError, ValueError) as error:
        if isinstance(error, _MalformedError):
            raise _refused(
                "the ONNX model cannot be read", model, str(error), "a complete ONNX file"
            ) from None
        return []  # not there, a folder, or empty
    return [_beside(model, name) for name in names]


class _MalformedError(ValueError):
    """The bytes are no ONNX model."""


def _locations(data: memoryview, start: int, end: int, fields: Fields) -> Iterator[str]:
    """Yield the files of all external tensors in one message of a model."""
    for number, value in _fields(data, start, end):
        inner = fields.get(number)
        if inner is None:
            continue
        if isinstance(value, int):
            raise _MalformedError(f"field {number} at byte {start} is a number")
        if inner == TENSOR:
            yield from _locations_of_tensor(data, *value)
        elif isinstance(inner, Mapping):
            yield from _locations(data, *value, inner)


def _locations_of_tensor(data: memoryview, start: int, end: int) -> Iterator[str]:
    names = []
    where = 0
    for number, value in _fields(data, start, end):
        if number == DATA_LOCATION and isinstance(value, int):
            where = value
        elif number == EXTERNAL_DATA and not isinstance(value, int):
            texts = {
                key: bytes(data[slice(*at)]) for key, at in _fields(data, *value) if isinstance(at, tuple)
            }
            if texts.get(1) == LOCATION:
                names.append(texts.get(2, b"").decode("utf-8", "surrogateescape"))
    if where == EXTERNAL:
        yield from names


def _fields(data: memoryview, start: int, end: int) -> Iterator[tuple[int, int | tuple[int, int]]]:
    """Yield the fields of a protobuf message: the number of each, and its value or where its bytes are."""
    at = start
    while at < end:
        tag, at = _varint(data, at, end)
        number, kind = tag >> 3, tag & 7
        if kind == VARINT:
            value, at = _varint(data, at, end)
            yield number, value
            continue
        if kind == BYTES:
            size, at = _varint(data, at, end)
        elif kind in (FIXED_32, FIXED_64):
            size = 4 if kind == FIXED_32 else 8
        else:
            raise _MalformedError(f"byte {at} begins no field of a protobuf message")
        if at + size > end:
            raise _MalformedError(f"the field at byte {at} is cut off")
        if kind == BYTES:
            yield number, (at, at + size)
        at += size


def _varint(data: memoryview, at: int, end: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= end:
            break
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
    raise _MalformedError(f"the number at byte {at} is cut off")


def _beside(model: Path, name: str) -> Path:
    path = PurePosixPath(name)
    if not path.parts or path.is_absolute() or ".." in path.parts or "\0" in name:
        raise _refused(
            "the ONNX model keeps its weights outside of its folder",
            model,
            repr(name),
            "a path below the model's folder, such as 'model.onnx.data'",
        )
    return model.parent / path


def _refused(what: str, model: Path, got: str, wanted: str) -> StudyError:
    fix = "Export the model again, or save it with onnx.save, its weights in the same folder."
    return StudyError(what, where=str(model), got=got, wanted=wanted, fix=fix)

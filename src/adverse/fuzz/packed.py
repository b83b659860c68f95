"""What a worker hands back for a unit: rows, the time they took, and the files that are worth keeping."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Row = Mapping[str, Any]
_LENGTH = struct.Struct("<Q")


@dataclass(frozen=True)
class Packed:
    """Rows and files decide results and are the same wherever they are made; times are not."""

    rows: Sequence[Row]
    files: Mapping[str, bytes]
    times: Sequence[Row] = field(default_factory=list)


def pack(packed: Packed) -> bytes:
    """Write as bytes."""
    sizes = [[name, len(data)] for name, data in packed.files.items()]
    head = json.dumps({"rows": packed.rows, "times": packed.times, "files": sizes}, allow_nan=False).encode()
    return b"".join([_LENGTH.pack(len(head)), head, *packed.files.values()])


def unpack(data: bytes) -> Packed:
    """Read back what `pack` wrote.

    >>> unpack(pack(Packed([{"draw": 1}], {"a.png": b"xy"}))).files
    {'a.png': b'xy'}
    """
    (length,) = _LENGTH.unpack_from(data)
    at = _LENGTH.size + length
    head = json.loads(data[_LENGTH.size : at])
    files = {}
    for name, size in head["files"]:
        files[name] = data[at : at + size]
        at += size
    return Packed(head["rows"], files, head["times"])

"""Content hashes: what a result is known by."""

from __future__ import annotations

import hashlib
from pathlib import Path

CHUNK_BYTES = 1 << 20
MISSING = "missing"


def digest(*parts: str | bytes | memoryview, size: int = 16) -> str:
    """Return the blake2b hash of the parts as hex; the borders between parts count.

    >>> digest("ab", "c") == digest("a", "bc")
    False
    """
    hasher = hashlib.blake2b(digest_size=size)
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        hasher.update(memoryview(data).nbytes.to_bytes(8, "little"))
        hasher.update(data)
    return hasher.hexdigest()


def file_sha256(path: Path) -> str:
    """Return the sha256 of a file, read piece by piece."""
    hasher = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            hasher.update(chunk)
    return hasher.hexdigest()


def content_hash(path: Path) -> str:
    """Return the sha256 of a file, or `missing` where it cannot be read."""
    try:
        return file_sha256(path)
    except OSError:
        return MISSING

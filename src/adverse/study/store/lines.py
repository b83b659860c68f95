"""Append-only text whose every line carries a check of itself.

What was appended survives kill -9 and a power cut. A last line that a crash left unfinished was never
acknowledged and does not count; damage anywhere else is an error, never a guess.
"""

from __future__ import annotations

from pathlib import Path

from adverse.errors import StoreError
from adverse.hashes import digest


def checked(body: str) -> bytes:
    """Return a line that holds a text without line breaks, and its check."""
    return f"{digest(body, size=8)} {body}\n".encode()


def read_checked(path: Path, what: str) -> tuple[list[str], bool]:
    """Return the texts of a file, and whether its last line was never finished; no file holds none.

    `what` is what errors call the file.
    """
    raw = path.read_bytes() if path.exists() else b""
    lines = raw.splitlines(keepends=True)
    bodies: list[str] = []
    for number, line in enumerate(lines, start=1):
        body = _body(line)
        if body is None and number == len(lines):
            return bodies, True
        if body is None:
            raise StoreError(
                f"the {what} was changed or is damaged",
                where=f"{path}, line {number}",
                got="a line that does not match its own check",
                fix="Restore the folder from a copy, or run again with --fresh.",
            )
        bodies.append(body)
    return bodies, False


def _body(line: bytes) -> str | None:
    check, _, body = line.rstrip(b"\n").partition(b" ")
    if not line.endswith(b"\n") or digest(body, size=8).encode() != check:
        return None
    return body.decode()

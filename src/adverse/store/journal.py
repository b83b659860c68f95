"""The journal: one line for each finished work unit, on the disk before the unit counts as done.

Reading changes nothing: whoever holds the folder's lock calls `mend` before adding to it.

Append-only text whose every line carries a check of itself.

What was appended survives kill -9 and a power cut. A last line that a crash left unfinished was never
acknowledged and does not count; damage anywhere else is an error, never a guess.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from adverse.content import digest
from adverse.errors import StoreError
from adverse.store.durable import append_line, write_file


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


@dataclass(frozen=True)
class Entry:
    """A finished unit: its file in detections/, the file's hash, and the keys of the cells in it."""

    file: str
    sha256: str
    cells: tuple[tuple[str, str, str], ...]
    """(cell key, setting id, SUT name)"""


class Journal:
    """The finished units of a run folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        bodies, self.torn = read_checked(path, "journal")
        self.entries = [_parse(body) for body in bodies]
        self._stale = self.torn

    def forget(self, files: Collection[str]) -> None:
        """Let the units of lost files count no more; the file on disk follows with `mend`."""
        self.entries = [entry for entry in self.entries if entry.file not in files]
        self._stale = self._stale or bool(files)

    def mend(self) -> None:
        """Write the journal anew without a last line that was never finished and without lost units."""
        if self._stale:
            write_file(self.path, b"".join(_line(entry) for entry in self.entries))
            self._stale = self.torn = False

    def append(self, entry: Entry) -> None:
        """Record a finished unit durably."""
        append_line(self.path, _line(entry))
        self.entries.append(entry)

    def files_by_cell(self) -> dict[str, Entry]:
        """Map each finished cell to the unit that holds it; the latest wins."""
        return {cell[0]: entry for entry in self.entries for cell in entry.cells}


def _line(entry: Entry) -> bytes:
    return checked(json.dumps({"file": entry.file, "sha256": entry.sha256, "cells": entry.cells}))


def _parse(body: str) -> Entry:
    data = json.loads(body)
    cells = tuple((str(key), str(setting), str(sut)) for key, setting, sut in data["cells"])
    return Entry(str(data["file"]), str(data["sha256"]), cells)

"""The journal: one line for each finished work unit, on the disk before the unit counts as done.

Every line carries a check of its own text. A last line that a crash left unfinished does not count, since it
was never acknowledged; damage anywhere else is an error, never a guess. Reading changes nothing: whoever
holds the folder's lock calls `mend` before adding to it.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from adverse.errors import StoreError
from adverse.study.store.durable import append_line, write_file
from adverse.study.store.lines import body_of, checked_line


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
        self.entries: list[Entry] = []
        raw = path.read_bytes() if path.exists() else b""
        self.torn = not self._read(raw.splitlines(keepends=True))
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

    def _read(self, lines: list[bytes]) -> bool:
        """Take in the lines; return whether the last one is whole."""
        for number, line in enumerate(lines, start=1):
            entry = _parse(line)
            if entry is None and number == len(lines):
                return False
            if entry is None:
                raise StoreError(
                    "the journal was changed or is damaged",
                    where=f"{self.path}, line {number}",
                    got="a line that does not match its own check",
                    fix="Restore the folder from a copy, or run again with --fresh.",
                )
            self.entries.append(entry)
        return True


def _line(entry: Entry) -> bytes:
    body = json.dumps({"file": entry.file, "sha256": entry.sha256, "cells": entry.cells})
    return checked_line(body)


def _parse(line: bytes) -> Entry | None:
    body = body_of(line)
    if body is None:
        return None
    data = json.loads(body)
    cells = tuple((str(key), str(setting), str(sut)) for key, setting, sut in data["cells"])
    return Entry(str(data["file"]), str(data["sha256"]), cells)

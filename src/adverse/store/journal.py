"""Append-only text whose every line carries a check of itself: journals of finished work, votes, answers.

What was appended survives kill -9 and a power cut. A last line that a crash left unfinished was never
acknowledged and does not count; damage anywhere else is an error, never a guess. Reading changes nothing:
the holder of the folder's lock calls `mend` before adding to a journal.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from adverse.content import digest
from adverse.errors import StoreError
from adverse.store.durable import append_line, write_file

E = TypeVar("E")


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
                got="a line that does not match its checksum",
                fix="Restore the folder from a copy, or run again with --fresh.",
            )
        bodies.append(body)
    return bodies, False


def _body(line: bytes) -> str | None:
    check, _, body = line.rstrip(b"\n").partition(b" ")
    if not line.endswith(b"\n") or digest(body, size=8).encode() != check:
        return None
    return body.decode()


class Journal(ABC, Generic[E]):
    """Entries in a file of checked lines; what an entry is, and what errors call the file, subclasses say."""

    what: str

    def __init__(self, path: Path) -> None:
        self.path = path
        bodies, self.torn = read_checked(path, self.what)
        self.entries: list[E] = [self.parse(json.loads(body)) for body in bodies]
        self._stale = self.torn

    @abstractmethod
    def parse(self, data: Any) -> E:
        """Return the entry that a line holds."""

    @abstractmethod
    def plain(self, entry: E) -> dict[str, Any]:
        """Return what a line holds of an entry."""

    def forget(self, lost: Callable[[E], bool]) -> int:
        """Drop entries, and return how many; the file on disk follows with `mend`."""
        remaining = [entry for entry in self.entries if not lost(entry)]
        dropped = len(self.entries) - len(remaining)
        self.entries = remaining
        self._stale = self._stale or dropped > 0
        return dropped

    def replace(self, entries: Iterable[E]) -> None:
        """Have other entries; the file on disk follows with `mend`."""
        self.entries = list(entries)
        self._stale = True

    def mend(self) -> None:
        """Write the file anew without a last line that was never finished and without dropped entries."""
        if self._stale:
            write_file(self.path, b"".join(map(self._line, self.entries)))
            self._stale = self.torn = False

    def append(self, entry: E) -> None:
        """Add an entry; it is on the disk before this returns."""
        append_line(self.path, self._line(entry))
        self.entries.append(entry)

    def _line(self, entry: E) -> bytes:
        return checked(json.dumps(self.plain(entry), allow_nan=False, separators=(",", ":")))


@dataclass(frozen=True)
class RunEntry:
    """A finished unit of a run: its file in detections/, the file's hash, and the keys of the cells in it."""

    file: str
    sha256: str
    cells: tuple[tuple[str, str, str], ...]
    """(cell key, setting id, SUT name)"""
    files: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """The hash of each file that was read on the way, by its path, by whose code has read it."""
    environment: str = ""
    """The environment it was done in, as the manifest calls it."""
    faulty: tuple[str, ...] = ()
    """Keys of cells with a fault in them, or a mutation that was ended: asked again by --retry-faults."""
    late: Mapping[str, float] = field(default_factory=dict)
    """Keys of cells with a mutation that was ended for the time it took, and the limit in seconds."""
    unfinished: tuple[tuple[str, str, str], ...] = ()
    """Cells that an outage cut short; what was asked of them is in the file, and counts."""


class RunJournal(Journal[RunEntry]):
    """The finished units of a run: one line each, on the disk before the unit counts as done."""

    what = "journal"

    def parse(self, data: Any) -> RunEntry:
        """Return the finished unit that a line holds."""
        return RunEntry(
            str(data["file"]),
            str(data["sha256"]),
            _cells(data["cells"]),
            data.get("files", {}),
            data.get("environment", ""),
            tuple(str(key) for key in data.get("faulty", ())),
            {str(key): float(limit_s) for key, limit_s in data.get("late", {}).items()},
            _cells(data.get("unfinished", ())),
        )

    def plain(self, entry: RunEntry) -> dict[str, Any]:
        """Return what a line holds of a finished unit."""
        plain: dict[str, Any] = {
            "file": entry.file,
            "sha256": entry.sha256,
            "cells": entry.cells,
            "files": entry.files,
            "environment": entry.environment,
        }
        if entry.faulty:
            plain["faulty"] = entry.faulty
        if entry.late:
            plain["late"] = dict(entry.late)
        if entry.unfinished:
            plain["unfinished"] = entry.unfinished
        return plain

    def entry_of_cell(self) -> dict[str, RunEntry]:
        """Map each finished cell to the unit that holds it; the latest wins."""
        return {cell[0]: entry for entry in self.entries for cell in entry.cells}

    def asked(self) -> dict[str, list[RunEntry]]:
        """Map each cell to the units that hold what was asked of it: the last that finished it, and since."""
        entries: dict[str, list[RunEntry]] = {}
        for entry in self.entries:
            entries |= {key: [entry] for key, _, _ in entry.cells}
            for key, _, _ in entry.unfinished:
                entries.setdefault(key, []).append(entry)
        return entries

    def settled(self, *, mutation_timeout_s: float, retry_faults: bool = False) -> dict[str, RunEntry]:
        """Map each finished cell that need not be run again to the unit that holds it.

        One with a mutation that was ended for the time it took is run again once it may take longer.
        """
        return {
            key: entry
            for key, entry in self.entry_of_cell().items()
            if entry.late.get(key, mutation_timeout_s) >= mutation_timeout_s
            and not (retry_faults and key in entry.faulty)
        }


def _cells(data: Iterable[Any]) -> tuple[tuple[str, str, str], ...]:
    return tuple((str(key), str(setting), str(sut)) for key, setting, sut in data)

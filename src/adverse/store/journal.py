"""Append-only text whose every line carries a check of itself: journals of finished work, votes, answers.

What was appended survives kill -9 and a power cut. A last line that a crash left unfinished was never
acknowledged and does not count; damage anywhere else is an error, never a guess. Reading changes nothing:
the holder of the folder's lock calls `mend` before adding to a journal.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from adverse.content import digest
from adverse.errors import StoreError
from adverse.store.cell_keys import KEY, CellIndex, PackedCells, packed_keys
from adverse.store.durable import append_line, write_file

E = TypeVar("E")


def checked(body: str) -> bytes:
    """Return a line that holds a text without line breaks, and its check."""
    return f"{digest(body, size=8)} {body}\n".encode()


class CheckedLines:
    """Yields the texts of a file one by one; no file holds none. `what` is what errors call the file.

    At the end `torn` tells whether the last line was never finished.
    """

    def __init__(self, path: Path, what: str) -> None:
        self.path = path
        self.what = what
        self.torn = False

    def __iter__(self) -> Iterator[str]:
        """Yield each text, or raise StoreError for one that was changed."""
        if not self.path.exists():
            return
        with self.path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                body = _body(line)
                if body is not None:
                    yield body
                elif next(lines, None) is None:
                    self.torn = True
                else:
                    raise StoreError(
                        f"the {self.what} was changed or is damaged",
                        where=f"{self.path}, line {number}",
                        got="a line that does not match its checksum",
                        fix="Restore the folder from a copy, or run again with --fresh.",
                    )


def read_checked(path: Path, what: str) -> tuple[list[str], bool]:
    """Return the texts of a file, and whether its last line was never finished; no file holds none.

    `what` is what errors call the file.
    """
    lines = CheckedLines(path, what)
    return list(lines), lines.torn


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
        lines = CheckedLines(path, self.what)
        self.entries: list[E] = [self.parse(json.loads(body)) for body in lines]
        self._stale = self.torn = lines.torn

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


NamedCell = tuple[str, str, str]
"""A cell: its key, and the names of its setting and SUT."""


@dataclass(frozen=True)
class RunEntry:
    """A finished unit of a run: its file in detections/, the file's hash, and the keys of the cells in it."""

    file: str
    sha256: str
    cells: Sequence[NamedCell]
    """(cell key, setting id, SUT name)"""
    files: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """The hash of each file that was read on the way, by its path, by whose code has read it."""
    environment: str = ""
    """The environment it was done in, as the manifest calls it."""
    faulty: tuple[str, ...] = ()
    """Keys of cells with a fault in them, or a mutation that was ended: asked again by --retry-faults."""
    late: Mapping[str, float] = field(default_factory=dict)
    """Keys of cells with a mutation that was ended for the time it took, and the limit in seconds."""
    unfinished: Sequence[NamedCell] = ()
    """Cells that an outage cut short; what was asked of them is in the file, and counts."""


class RunJournal(Journal[RunEntry]):
    """The finished units of a run: one line each, on the disk before the unit counts as done."""

    what = "journal"

    def __init__(self, path: Path) -> None:
        self._pairs: dict[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]] = {}
        """One copy of each list of settings and SUTs: most units have the same."""
        super().__init__(path)

    def append(self, entry: RunEntry) -> None:
        """Add an entry; it is on the disk before this returns."""
        super().append(replace(entry, cells=self._cells(entry.cells)))

    def parse(self, data: Any) -> RunEntry:
        """Return the finished unit that a line holds."""
        return RunEntry(
            str(data["file"]),
            str(data["sha256"]),
            self._cells(data["cells"]),
            data.get("files", {}),
            data.get("environment", ""),
            tuple(str(key) for key in data.get("faulty", ())),
            {str(key): float(limit_s) for key, limit_s in data.get("late", {}).items()},
            self._cells(data.get("unfinished", ())),
        )

    def plain(self, entry: RunEntry) -> dict[str, Any]:
        """Return what a line holds of a finished unit."""
        plain: dict[str, Any] = {
            "file": entry.file,
            "sha256": entry.sha256,
            "cells": list(entry.cells),
            "files": entry.files,
            "environment": entry.environment,
        }
        if entry.faulty:
            plain["faulty"] = entry.faulty
        if entry.late:
            plain["late"] = dict(entry.late)
        if entry.unfinished:
            plain["unfinished"] = list(entry.unfinished)
        return plain

    def finished(self, unless: Callable[[RunEntry, str], bool] | None = None) -> FinishedCells:
        """Return the finished cells, each with the unit that holds it; the latest wins.

        `unless` tells of a unit and a key in its `late` or `faulty` whether that cell does not count.
        """
        return FinishedCells(self.entries, unless)

    def asked(self) -> AskedCells:
        """Return what was asked of each cell: the unit that last finished it, and those cut short since."""
        return AskedCells(self.entries)

    def settled(self, *, mutation_timeout_s: float, retry_faults: bool = False) -> FinishedCells:
        """Return the finished cells that need not be run again.

        One with a mutation that was ended for the time it took is run again once it may take longer.
        """

        def again(entry: RunEntry, key: str) -> bool:
            late = entry.late.get(key, mutation_timeout_s) < mutation_timeout_s
            return late or (retry_faults and key in entry.faulty)

        return self.finished(unless=again)

    def _cells(self, cells: Sequence[Sequence[Any]]) -> Sequence[NamedCell]:
        """Return cells as briefly as they can be held."""
        keys, pairs = [str(cell[0]) for cell in cells], tuple((str(cell[1]), str(cell[2])) for cell in cells)
        if not all(map(KEY.fullmatch, keys)):
            return tuple((key, *pair) for key, pair in zip(keys, pairs, strict=True))
        return PackedCells(bytes.fromhex("".join(keys)), self._pairs.setdefault(pairs, pairs), _named_cell)


class FinishedCells:
    """The finished cells of a run: which unit holds each."""

    def __init__(
        self, entries: Sequence[RunEntry] = (), unless: Callable[[RunEntry, str], bool] | None = None
    ) -> None:
        self.entries = tuple(entries)
        self._unless = unless
        self._index = CellIndex(_keys_of(entry.cells) for entry in self.entries)
        self._doubtful = frozenset(
            number for number, entry in enumerate(self.entries) if unless and (entry.late or entry.faulty)
        )

    def __bool__(self) -> bool:
        """Return whether there is any."""
        return bool(self._index)

    def are_among(self, cells: Sequence[Any]) -> NDArray[np.bool_]:
        """Return of each of some cells whether it is finished."""
        return self.numbers(cells) >= 0

    def get(self, key: str) -> RunEntry | None:
        """Return the unit that holds a cell, by its key."""
        number = int(self.numbers([(key, "", "")])[0])
        return None if number < 0 else self.entries[number]

    def in_use(self, units: Iterable[Sequence[Any]] | None = None) -> list[RunEntry]:
        """Return the units that hold some of these cells, or any, in their order."""
        if units is None:
            return [self.entries[number] for number in self._index.units()]
        wanted = {number for cells in units for number in np.unique(self.numbers(cells)).tolist()}
        return [self.entries[number] for number in sorted(wanted - {-1})]

    def numbers(self, cells: Sequence[Any]) -> NDArray[np.int64]:
        """Return the number in `entries` of the unit that holds each of some cells; -1: none does."""
        numbers = self._index.units_of(_keys_of(cells))
        if self._doubtful and self._unless is not None:
            for at in np.flatnonzero(np.isin(numbers, list(self._doubtful))).tolist():
                if self._unless(self.entries[numbers[at]], _key_of(cells[at])):
                    numbers[at] = -1
        return numbers


class AskedCells:
    """What was asked of each cell: the unit that last finished it, and those that were cut short since."""

    def __init__(self, entries: Sequence[RunEntry]) -> None:
        self._entries = tuple(entries)
        self._finished = CellIndex(_keys_of(entry.cells) for entry in self._entries)
        self._cut_short: dict[str, list[int]] = {}
        for number, entry in enumerate(self._entries):
            for key, _, _ in entry.unfinished:
                self._cut_short.setdefault(key, []).append(number)

    def get(self, key: str) -> list[RunEntry]:
        """Return the units that hold what was asked of a cell."""
        last = int(self._finished.units_of(packed_keys([key]))[0])
        since = [number for number in self._cut_short.get(key, ()) if number > last]
        return [self._entries[number] for number in ([last] if last >= 0 else []) + since]


def _named_cell(key: str, setting: str, sut: str) -> NamedCell:
    return key, setting, sut


def _key_of(cell: Any) -> str:
    return str(cell[0] if isinstance(cell, tuple) else cell.key)


def _keys_of(cells: Sequence[Any]) -> bytes:
    return cells.keys if isinstance(cells, PackedCells) else packed_keys(map(_key_of, cells))

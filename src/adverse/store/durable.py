"""Writing so that what was acknowledged survives kill -9 and a power cut.

A file is written beside its place, flushed to the disk, renamed over it, and the folder is flushed too. A
reader sees the old file or the new one, never half of one. Where the folder is a copy of one on an object
store, what is written goes there as well before it counts.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from adverse.errors import IncompleteError, StoreError


class Twin(Protocol):
    """The other place of a folder, which has what is written here before a write returns."""

    def put(self, path: Path, data: bytes) -> None:
        """Have a file that is here now."""

    def append(self, path: Path, at: int, line: bytes) -> None:
        """Have a line that was added to a file from a position on."""

    def settle(self) -> None:
        """Have all of it as it is here, without what was deleted."""

    def offer(self, path: Path) -> None:
        """Have a file that is worth no failure."""


_TWINS: dict[Path, Twin] = {}
"""By folder: as for a disk, whoever writes into it need not know."""


@contextlib.contextmanager
def replicated(folder: Path, twin: Twin) -> Iterator[None]:
    """Have a twin for a folder, while this lasts."""
    _TWINS[folder] = twin
    try:
        yield
    finally:
        del _TWINS[folder]


def twin_of(path: Path) -> Twin | None:
    """Return the twin of the folder that a path is, or is in."""
    return next((_TWINS[folder] for folder in (path, *path.parents) if folder in _TWINS), None)


def write_file(path: Path, data: bytes, *, flush: bool = True) -> None:
    """Put a file in its place, whole; with `flush`, on the disk before this returns."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.partial")
    with storage_errors(path):
        try:
            with temporary.open("wb") as file:
                file.write(data)
                file.flush()
                if flush:
                    os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:  # Ctrl-C included
            temporary.unlink(missing_ok=True)
            raise
        if flush:
            flush_folder(path.parent)
    if _TWINS and (twin := twin_of(path)) is not None:
        twin.put(path, data)


def append_line(path: Path, line: bytes) -> None:
    """Add a line to a file and wait until it is on the disk; where that fails, nothing of it stays behind."""
    with storage_errors(path):
        created = not path.exists()
        before = 0 if created else path.stat().st_size
        try:
            with path.open("ab") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
            if _TWINS and (twin := twin_of(path)) is not None:
                twin.append(path, before, line)
        except BaseException:  # else the next line would be added to half of this one
            with contextlib.suppress(FileNotFoundError):
                os.truncate(path, before)
            raise
        if created:
            flush_folder(path.parent)


@contextlib.contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Turn what a disk can do to us into errors that say what to do about it."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise IncompleteError(
                "the disk is full; finished work is kept",
                where=str(path),
                got=reason,
                fix="Free some space and run the same command again: it resumes where it stopped.",
            ) from error
        raise StoreError(
            "the run folder cannot be written",
            where=str(path),
            got=reason,
            fix="Choose a folder that you may write to with --out.",
        ) from error


def flush_tree(folder: Path) -> None:
    """Wait until all that is in a folder is on the disk."""
    for path in (*folder.rglob("*"), folder):
        flush_folder(path)


def flush_folder(folder: Path) -> None:
    """Wait until the names in a folder, or the bytes of a file, are on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

"""Writing so that what was acknowledged survives kill -9 and a power cut.

A file is written beside its place, flushed to the disk, renamed over it, and the folder is flushed too. A
reader sees the old file or the new one, never half of one.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from adverse.errors import IncompleteError, StoreError


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

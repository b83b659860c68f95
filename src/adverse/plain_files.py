"""Open a path that somebody gave us: only a plain file, never waiting for the other end of a pipe.

A pipe, a device or a socket would block, or never end; it is refused before it is opened, also behind a
symlink, and once more after, in case it was put there in between. Nothing of it is read.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Callable
from pathlib import Path

_KINDS: dict[str, Callable[[int], bool]] = {
    "a named pipe": stat.S_ISFIFO,
    "a device": lambda mode: stat.S_ISCHR(mode) or stat.S_ISBLK(mode),
    "a socket": stat.S_ISSOCK,
}


class NotPlainFileError(OSError):
    """There is something at the path that is no file: a pipe, a device, a socket or a folder."""


def open_plain(path: Path) -> io.BufferedReader:
    """Open a plain file for reading, or raise OSError; `strerror` says what else is there."""
    _check(path, path.stat().st_mode)
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    handle = os.open(path, flags)
    try:
        _check(path, os.fstat(handle).st_mode)
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def read_plain(path: Path, limit: int | None = None) -> bytes:
    """Read a whole plain file, or raise OSError; of a larger one than `limit` one byte more than that."""
    with open_plain(path) as file:
        return file.read() if limit is None else file.read(limit + 1)


def _check(path: Path, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise NotPlainFileError(errno.EISDIR, "it is a folder, not a file", str(path))
    if not stat.S_ISREG(mode):
        kind = next((name for name, is_it in _KINDS.items() if is_it(mode)), "something else")
        raise NotPlainFileError(errno.EINVAL, f"it is {kind}, not a plain file", str(path))

"""Note the files that Python code opens, in the log that a variable of the environment names.

This runs inside programs that are not ours (`at_start/sitecustomize.py`), maybe of an older Python: it needs
`os` and `sys` alone, and never raises. A record is a letter and a path: `r` opened to be read, `b` to be read
and written, `w` to be written or deleted, `t` a temporary folder that was made.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Word = str | bytes | os.PathLike[str]
    Records = Iterator[tuple[bytes, Word]]

LOG = "ADVERSE_FILE_ACCESS"
"""The variable with the path of the log; nothing is noted while it is not set."""
END = b"\0"
"""Ends a record."""
_INSTALLED = "_adverse_file_access"
_NOTED: set[tuple[str, bytes]] = set()


def install() -> None:
    """Begin to note, in this process and those that it forks; only once, as a hook stays for good."""
    if not hasattr(sys, _INSTALLED) and hasattr(sys, "addaudithook"):
        setattr(sys, _INSTALLED, True)
        sys.addaudithook(_hook)


def _hook(event: str, args: tuple[object, ...]) -> None:
    try:
        records = _RECORDS.get(event)
        log = os.environ.get(LOG) if records else None
        if records and log:
            for kind, path in records(*args):
                _note(log, kind, path)
    except Exception:  # noqa: BLE001, S110 - whatever is odd about a path, the program goes on
        pass


def _note(log: str, kind: bytes, path: Word) -> None:
    name = os.fsencode(path)
    if not name or name == os.fsencode(log):
        return
    record = kind + os.path.abspath(name) + END
    if (log, record) in _NOTED:
        return
    _NOTED.add((log, record))
    handle = os.open(log, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(handle, record)  # one write at the end of the file, so that processes do not mix
    finally:
        os.close(handle)


def _opened(path: Word | int, mode: str | None, flags: int) -> Records:
    if isinstance(path, int):
        return
    access = flags & (os.O_WRONLY | os.O_RDWR)
    if access == os.O_WRONLY or (access and flags & (os.O_TRUNC | os.O_CREAT)):
        kind = b"w"
    else:
        kind = b"b" if access else b"r"
    yield kind, path
    if mode is None and not os.path.isabs(path):  # os.open, maybe below a dir_fd, which no event tells
        for number in os.listdir("/proc/self/fd"):
            place = os.path.join("/proc/self/fd", number)
            if os.path.isdir(place):
                below = os.path.join(os.readlink(place), os.fsdecode(path))
                if os.path.isfile(below):
                    yield kind, below


def _connected(database: Word) -> Records:
    if database != ":memory:":
        yield b"b", database


def _imported(_module: str, path: str | None, *_: object) -> Records:
    if path:
        yield b"r", path


def _library(name: Word | None) -> Records:
    if name and os.sep in os.fsdecode(name):
        yield b"r", name


def _temporary(path: Word) -> Records:
    yield b"t", path


def _removed(path: Word, *_: object) -> Records:
    yield b"w", path


def _started(
    program: Word | None, words: Word | Sequence[Word], cwd: Word | None = None, *_: object
) -> Records:
    """Yield the words of a command that are files: the program given by its path, scripts, weights."""
    if isinstance(words, (str, bytes)):
        words = os.fsdecode(words).replace("'", " ").replace('"', " ").split()
    listed = [words] if hasattr(words, "__fspath__") else list(words)
    folder = os.fsdecode(cwd) if cwd else os.getcwd()
    for word in map(os.fsdecode, [program or "", *listed]):
        for part in (word, word.partition("=")[2]):
            path = os.path.join(folder, part)
            if part and path != sys.executable and os.path.isfile(path):
                yield b"r", path


_RECORDS: dict[str, Callable[..., Records]] = {
    "open": _opened,
    "sqlite3.connect": _connected,
    "import": _imported,
    "ctypes.dlopen": _library,
    "os.remove": _removed,
    "tempfile.mkdtemp": _temporary,
    "subprocess.Popen": _started,
    "os.posix_spawn": lambda path, words, _environment: _started(path, words),
    "os.exec": lambda path, words, _environment: _started(path, words),
    "os.system": lambda command: _started(None, command),
}

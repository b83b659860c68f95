"""Note the files that Python code opens and the variables that it reads, in the log that a variable names.

This runs inside programs that are not ours (`at_start/sitecustomize.py`), maybe of an older Python: it needs
`os` and `sys` alone, and never raises. A record is a letter and a path: `r` opened to be read, `b` to be read
and written, `w` to be written or deleted, `t` a temporary file or folder that was made; `e` and the name of a
variable of the environment. Where the path leads over a symbolic link, what it led to follows.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import CodeType
    from typing import Any

    Word = str | bytes | os.PathLike[str]
    Records = Iterator[tuple[bytes, Word]]

LOG = "ADVERSE_FILE_ACCESS"
"""The variable with the path of the log; nothing is noted while it is not set."""
LINK = b"\0"
"""Stands before what a path led to."""
END = b"\0\0"
"""Ends a record."""
NOTED: set[tuple[str, bytes]] = set()
"""What stands in which log; to be emptied when a new log may have the name of an old one."""
_INSTALLED = "_adverse_file_access"
_KERNEL = (b"/proc/", b"/dev/")
_IN_MEMORY = b"/dev/shm/"
_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_STANDARD_LIBRARY = os.path.dirname(os.__file__) + os.sep


def install(masked: dict[str, str | None] | None = None) -> None:
    """Begin to note, in this process and those that it forks; only once, as a hook stays for good.

    `masked` is filled with the variables that noted code has set here, as they were before.
    """
    if hasattr(sys, _INSTALLED) or not hasattr(sys, "addaudithook"):
        return
    setattr(sys, _INSTALLED, True)
    if masked is not None:
        _RECORDS["os.putenv"] = lambda name, _value: _masked(masked, name)
        _RECORDS["os.unsetenv"] = lambda name: _masked(masked, name)
    sys.addaudithook(_hook)
    os.environ.__class__ = _environment(type(os.environ))
    _compile_anew()


def _hook(event: str, args: tuple[object, ...]) -> None:
    try:
        records = _RECORDS.get(event)
        log = os.environ.get(LOG) if records else None
        if records and (log or event in _ALWAYS):
            for kind, path in records(*args):
                if log:
                    _note(log, kind, path)
    except Exception:  # noqa: BLE001, S110 - whatever is odd about a path, the program goes on
        pass


def _note(log: str, kind: bytes, path: Word) -> None:
    name = os.fsencode(path)
    if not name or name == os.fsencode(log):
        return
    if kind != b"e":
        name = os.path.abspath(name)
        real = os.path.realpath(name)
        if _kernels(name) and not _kernels(real) and not real.endswith(b" (deleted)"):
            name = real  # a way of the kernel to a file like any other: /proc/self/cwd, /dev/fd/3
        name = name if real == name else name + LINK + real
    record = kind + name + END
    if (log, record) in NOTED:
        return
    NOTED.add((log, record))
    handle = os.open(log, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(handle, record)  # one write at the end of the file, so that processes do not mix
    finally:
        os.close(handle)


def _kernels(name: bytes) -> bool:
    return name.startswith(_KERNEL) and not name.startswith(_IN_MEMORY)


def _opened(path: Word | int, mode: str | None, flags: int) -> Records:
    if isinstance(path, int):
        return
    access = flags & (os.O_WRONLY | os.O_RDWR)
    emptied = access == os.O_WRONLY or (access and _is_emptied(path, flags))
    kind = b"w" if emptied else b"b" if access else b"r"
    yield kind, path
    if mode is None and not os.path.isabs(path):  # os.open, maybe below a dir_fd, which no event tells
        for number in os.listdir("/proc/self/fd"):
            place = os.path.join("/proc/self/fd", number)
            if os.path.isdir(place):
                below = os.path.join(os.readlink(place), os.fsdecode(path))
                if os.path.isfile(below):
                    yield kind, below


def _is_emptied(path: Word, flags: int) -> bool:
    """Return whether nothing can be read from a file that is opened to be written, but what is written."""
    return bool(flags & os.O_TRUNC or (flags & os.O_CREAT and not os.path.exists(path)))


def _connected(database: Word) -> Records:
    name = os.fsdecode(database)
    if name.startswith("file:"):
        from urllib.parse import unquote, urlsplit  # noqa: PLC0415 - rarely needed

        name = unquote(urlsplit(name).path)
    if name and name != ":memory:":
        yield b"b", name


def _imported(_module: str, path: str | None, *_: object) -> Records:
    if path:
        yield b"r", path


def _library(name: Word | None) -> Records:
    if name and os.sep in os.fsdecode(name):
        yield b"r", name


def _temporary(path: Word) -> Records:
    yield b"t", path


def _written(*paths: Word | int) -> Records:
    for path in paths:
        if not isinstance(path, int):
            yield b"w", path


def _started(
    program: Word | None, words: Word | Sequence[Word], cwd: Word | None = None, *_: object
) -> Records:
    """Yield the words of a command that are files: the program given by its path, scripts, weights."""
    if isinstance(words, (str, bytes)):
        words = [words]
    listed = [words] if hasattr(words, "__fspath__") else list(words)
    folder = os.fsdecode(cwd) if cwd else os.getcwd()
    for word in map(os.fsdecode, [program or "", *listed]):
        for part in (word, word.partition("=")[2], *word.replace("'", " ").replace('"', " ").split()):
            path = os.path.join(folder, part)
            if part and path != sys.executable and os.path.isfile(path):
                yield b"r", path


def _masked(masked: dict[str, str | None], name: Word) -> Records:
    """Keep what a variable was before noted code sets it; what others set is as it shall be."""
    key = os.fsdecode(name)
    if LOG not in os.environ:
        masked.pop(key, None)
    else:
        value = os.environ._data.get(os.fsencode(key))  # type: ignore[attr-defined] # noqa: SLF001
        masked.setdefault(key, None if value is None else os.fsdecode(value))
    return iter(())


def _environment(plain: type[Any]) -> type[Any]:
    class Environment(plain):  # type: ignore[misc] # known only when it runs
        """The environment as it is, which notes the names of the variables that are read."""

        def __getitem__(self, key: Any) -> Any:
            if key != LOG and _is_read(key, _reader()):
                note_variable(key)
            return super().__getitem__(key)

    return Environment


def _is_read(name: Any, reader: str) -> bool:
    """Return whether code that looks at a variable uses it, and does not only go through all of them."""
    if reader.endswith(_NUMBA):
        return str(name).startswith("NUMBA_")
    return not reader.startswith(_NO_READERS)


def note_variable(name: str) -> None:
    """Note that a variable is read, or handed on."""
    _hook(_READ_VARIABLE, (name,))


def _reader() -> str:
    """Return the file of the code that reads a variable, by whatever method of a mapping."""
    frame = sys._getframe(2)  # noqa: SLF001 - there is no other way
    while frame.f_back is not None and frame.f_code.co_filename in _MAPPINGS:
        frame = frame.f_back
    return frame.f_code.co_filename


def _compile_anew() -> None:
    """Let Python compile users' modules from their source: what is in __pycache__ may be of another one.

    It goes by size and second, and so takes the place of a source that was changed within that second.
    """
    from importlib.machinery import SourceFileLoader  # noqa: PLC0415 - only where it is installed

    plain = SourceFileLoader.get_code

    def get_code(self: SourceFileLoader, fullname: str) -> CodeType | None:
        path = self.get_filename(fullname)
        installed = "site-packages" in path or "dist-packages" in path
        if installed or path.startswith((_OURS, _STANDARD_LIBRARY)):
            return plain(self, fullname)
        return self.source_to_code(self.get_data(path), path)

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign, assignment]


_MAPPINGS = (
    "<frozen os>",
    "<frozen _collections_abc>",
    os.__file__,
    _STANDARD_LIBRARY + "_collections_abc.py",
)
_NO_READERS = (_OURS, _STANDARD_LIBRARY + os.path.join("urllib", "request.py"))
"""Code that goes through the variables for itself: ours, and what looks for proxies."""
_NUMBA = os.path.join("numba", "core", "config.py")
"""It goes through all variables for its own ones each time that it compiles."""
_READ_VARIABLE = "adverse.variable"
_ALWAYS = ("os.putenv", "os.unsetenv")
_RECORDS: dict[str, Callable[..., Records]] = {
    "open": _opened,
    "sqlite3.connect": _connected,
    "import": _imported,
    "ctypes.dlopen": _library,
    "os.remove": lambda path, *_: _written(path),
    "os.rename": lambda source, target, *_: _written(source, target),
    "os.symlink": lambda _source, link, *_: _written(link),
    "tempfile.mkdtemp": _temporary,
    "tempfile.mkstemp": _temporary,
    "subprocess.Popen": _started,
    "os.posix_spawn": lambda path, words, _environment: _started(path, words),
    "os.exec": lambda path, words, _environment: _started(path, words),
    "os.system": lambda command: _started(None, command),
    _READ_VARIABLE: lambda name: iter(((b"e", name),)),
}

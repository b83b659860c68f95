"""The files that code which is not ours reads while it is loaded and run: what its answers rest on.

A study names the files of a SUT, and they are in its fingerprint. What else its code opens is known only
when it has run: an audit hook notes what Python opens, in this process, in those that it forks, and in the
Python programs that it starts; `/proc` shows which files a process has mapped or holds open, whatever
language it is written in. Files are hashed after the work that read them; one that was written to meanwhile
is named, and the work is done again.

Not seen: what compiled code opens and closes again, programs that are no Python, threads that open files
between two calls, and what comes over a network. A study names such files (`files:` of a SUT).
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import tempfile
import time
import weakref
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from adverse.content import MISSING, Stamp, content_hash, stamp
from adverse.file_access.hook import END, LOG, install
from adverse.file_access.identity import identity_of
from adverse.file_access.processes import files_of_process

AT_START = str(Path(__file__).with_name("at_start"))
LOOKS = 2
"""Calls around which the mapped files of this process are compared: loading, and the first request."""


class FileAccess:
    """The files that the code of one owner reads, from now on; to be used by one thread at a time.

    `before` is the same owner, loaded earlier in this process: what it has imported counts still.
    """

    def __init__(self, before: FileAccess | None = None) -> None:
        install()
        self.hashes: dict[str, str] = {}
        """The sha256 of each file, `missing` of those that were looked for in vain."""
        self._before: Mapping[str, str] = before.hashes if before else {}
        self._stamps: dict[str, Stamp] = {}
        self._kinds: dict[str, set[str]] = {path: {"r"} for path in self._before}
        self._since_ns = time.time_ns()
        self._handle, self._log = _new_log()
        weakref.finalize(self, _close_log, self._handle, self._log)
        self._log_bytes = 0
        self._looks = LOOKS

    @contextlib.contextmanager
    def noted(self) -> Iterator[None]:
        """Note what is opened while this lasts, also by programs that are started then.

        Inside of another owner's call, what is opened is that owner's.
        """
        if LOG in os.environ:
            yield
            return
        path = os.environ.get("PYTHONPATH")
        mapped = files_of_process(os.getpid()) if self._looks else set()
        os.environ[LOG] = self._log
        os.environ["PYTHONPATH"] = f"{AT_START}{os.pathsep}{path}" if path else AT_START
        try:
            yield
        finally:
            os.environ.pop(LOG, None)
            os.environ.pop("PYTHONPATH", None)
            if path is not None:
                os.environ["PYTHONPATH"] = path
            if self._looks:
                self._looks -= 1
                self.add(files_of_process(os.getpid()) - mapped)

    def add(self, paths: Iterable[str]) -> None:
        """Count further files as read."""
        for path in paths:
            self._kinds.setdefault(path, set()).add("r")

    def settle(self, besides: Iterable[str] = ()) -> set[Path]:
        """Hash what was opened since the last call, and return what was written to while it was used.

        `besides` are files that are looked after elsewhere.
        """
        self._read_log()
        written: set[Path] = set()
        for name, kinds in self._by_identity().items():
            if name in besides or not kinds & {"r", "b"}:
                continue
            path, own = Path(name), bool(kinds & {"b", "w"})
            now = stamp(path)
            if name not in self._stamps and self._is_settled(path, now, own=own):
                self._stamps[name] = now
            elif name in self._stamps and self._stamps[name] == now:
                continue
            elif own:  # what the code writes itself is not what it rests on
                self.hashes.pop(name, None)
            elif now is None or path.is_file():
                self.hashes[name] = content_hash(path)
                written.add(path)
        return written

    def _is_settled(self, path: Path, now: Stamp, *, own: bool) -> bool:
        """Hash a file, and return whether that is what was read: nobody has written to it since we began."""
        if now is None and not own:
            self.hashes[str(path)] = MISSING
            return True
        if now is None or not path.is_file():
            return False
        found = content_hash(path)
        if (now[-1] > self._since_ns and self._before.get(str(path)) != found) or stamp(path) != now:
            return False
        self.hashes[str(path)] = found
        return True

    def _read_log(self) -> None:
        data = os.pread(self._handle, os.fstat(self._handle).st_size - self._log_bytes, self._log_bytes)
        whole = data[: data.rfind(END) + 1]
        self._log_bytes += len(whole)
        for record in whole.split(END)[:-1]:
            self._kinds.setdefault(os.fsdecode(record[1:]), set()).add(record[:1].decode())

    def _by_identity(self) -> dict[str, set[str]]:
        """Return how each file was opened whose content stands for what was opened; no temporary ones."""
        temporary = tuple(f"{path}/" for path, kinds in self._kinds.items() if "t" in kinds)
        found: dict[str, set[str]] = {}
        for name, kinds in sorted(self._kinds.items()):
            for path in () if name.startswith(temporary) else identity_of(name):
                found.setdefault(path, set()).update(kinds if path == name else {"r"})
        return found


def _new_log() -> tuple[int, str]:
    """Return a file to append to that is gone with this process, however it ends, and its path for others."""
    if sys.platform == "linux":
        handle = os.memfd_create("adverse")
        return handle, f"/proc/{os.getpid()}/fd/{handle}"
    return tempfile.mkstemp(prefix="adverse-")


def _close_log(handle: int, path: str) -> None:
    os.close(handle)
    if sys.platform != "linux":
        Path(path).unlink(missing_ok=True)


@functools.cache
def access_of_plugin(file: Path) -> FileAccess:
    """Return what a plug-in file reads when this process imports it, which it does once."""
    del file
    return FileAccess()

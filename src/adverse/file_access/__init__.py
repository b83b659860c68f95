"""The files and variables that code which is not ours reads: what its answers rest on.

A study names the files of a SUT, and they are in its fingerprint. What else its code opens is known only
when it has run: an audit hook notes what Python opens, in this process, in those that it forks, and in the
Python programs that it starts; `/proc` shows which files a process has mapped or holds open, whatever
language it is written in. Files are hashed after the work that read them; one that was written to meanwhile,
or that a symbolic link no longer leads to, is named, and the work is done again. A file that the code writes
itself, besides reading it, is kept as it was left (`WRITTEN`).

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

from adverse.content import MASKED, MISSING, VARIABLE, WRITTEN, Stamp, content_hash, may_be_same, stamp
from adverse.file_access.hook import END, LINK, LOG, NOTED, install
from adverse.file_access.identity import identity_of
from adverse.file_access.processes import files_of_process

AT_START = str(Path(__file__).with_name("at_start"))
CLOCK_REALTIME_COARSE = 5
"""The clock of Linux that files are stamped by; Python has no name for it."""
LOOKS = 2
"""Calls around which the mapped files of this process are compared: loading, and the first request."""


class FileAccess:
    """The files that the code of one owner reads, from now on; to be used by one thread at a time.

    `before` is the same owner, loaded earlier in this process: what it has imported counts still.
    """

    def __init__(self, before: FileAccess | None = None) -> None:
        install(MASKED)
        NOTED.clear()
        self.hashes: dict[str, str] = {}
        """The sha256 of each file, `missing` of those that were looked for in vain."""
        self._before: Mapping[str, str] = before.hashes if before else {}
        self._stamps: dict[str, Stamp] = {}
        self._kinds: dict[str, list[str]] = {path: ["r"] for path in self._before}
        """How each path was opened, in the order in which it was first opened so."""
        self._targets: dict[str, set[str]] = {}
        """What a path led to that leads over a symbolic link."""
        self._since_ns = _file_clock_ns()
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
            self._count(path, "r")

    def settle(self, besides: Iterable[str] = ()) -> set[Path]:
        """Hash what was opened since the last call, and return what was written to while it was used.

        `besides` are files that are looked after elsewhere.
        """
        self._read_log()
        written = {Path(name) for name in self._led_elsewhere() if name in besides or identity_of(name)}
        for name, kinds in self._by_identity().items():
            if name in besides or not {"r", "b", "e"} & set(kinds):
                continue
            path, now = Path(name), stamp(Path(name))
            if "e" in kinds:
                self.hashes[name] = content_hash(path)
            elif self._is_unchanged(name, now) if name in self._stamps else self._is_settled(path, now):
                self._stamps[name] = now
            elif {"b", "w"} & set(kinds):
                self._keep_as_left(name, now, made="w" in kinds[0])
            elif now is None or path.is_file():
                self.hashes[name] = content_hash(path)
                written.add(path)
        return written

    def _is_unchanged(self, name: str, now: Stamp) -> bool:
        """Return whether a file that was hashed is the same; where its stamp leaves that open, hash it."""
        before = self._stamps[name]
        if before == now:
            return True
        return may_be_same(before, now) and content_hash(Path(name)) == self.hashes.get(name)

    def _is_settled(self, path: Path, now: Stamp) -> bool:
        """Hash a file, and return whether that is what was read: nobody has written to it since we began."""
        if now is None:
            written = {"b", "w"} & set(self._kinds.get(str(path), ()))
            if not written:
                self.hashes[str(path)] = MISSING
            return not written
        if not path.is_file():
            return False
        found = content_hash(path)
        if (now[-1] >= self._since_ns and self._before.get(str(path)) != found) or stamp(path) != now:
            return False
        self.hashes[str(path)] = found
        return True

    def _keep_as_left(self, name: str, now: Stamp, *, made: bool) -> None:
        """Keep a file as the code that reads it has left it; what it made and took away again is its own."""
        if now is None and made:
            self.hashes.pop(name, None)
        else:
            self.hashes[name] = WRITTEN + content_hash(Path(name))
        self._stamps[name] = now

    def _led_elsewhere(self) -> set[str]:
        """Return the paths that lead, or once led, to another file than when they were opened."""
        return {
            name
            for name, targets in self._targets.items()
            if "w" not in self._kinds[name] and targets != {os.path.realpath(name)}
        }

    def _read_log(self) -> None:
        data = os.pread(self._handle, os.fstat(self._handle).st_size - self._log_bytes, self._log_bytes)
        whole = data[: data.rfind(END) + len(END)] if END in data else b""
        self._log_bytes += len(whole)
        for record in whole.split(END)[:-1]:
            path, _, target = record[1:].partition(LINK)
            kind, name = record[:1].decode(), os.fsdecode(path)
            self._count(VARIABLE + name if kind == "e" else name, kind)
            if target and kind in "rb":
                self._targets.setdefault(name, set()).add(os.fsdecode(target))

    def _count(self, path: str, kind: str) -> None:
        kinds = self._kinds.setdefault(path, [])
        if kind not in kinds:
            kinds.append(kind)

    def _by_identity(self) -> dict[str, list[str]]:
        """Return how each file was opened whose content stands for what was opened; no temporary ones."""
        temporary = {path for path, kinds in self._kinds.items() if "t" in kinds}
        below = tuple(f"{path}/" for path in temporary)
        found: dict[str, list[str]] = {}
        for name, kinds in sorted(self._kinds.items()):
            for path in () if name in temporary or name.startswith(below) else identity_of(name):
                found.setdefault(path, []).extend(kinds if path == name else ["r"])
        return found


def _file_clock_ns() -> int:
    """Return the time as files are stamped with it, which may be some milliseconds behind the precise one."""
    if sys.platform == "linux":
        return time.clock_gettime_ns(CLOCK_REALTIME_COARSE)
    return time.time_ns()


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

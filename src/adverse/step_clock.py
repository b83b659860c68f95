"""A clock for steps of another process, which names each as it begins, and is ended if one takes too long.

What that process prints says nothing to the clock, and starting up and compiling do not count.
"""

from __future__ import annotations

import math
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import IO, Any

HOLD, GO = b"hold the clock", b"go on"
EVENTS = "numba.core.event"
"""The module by which numba says what it does."""
POLL_S = 0.2
"""How often a process is looked at that says nothing."""


def late_step(steps: IO[bytes], process: subprocess.Popen[str], timeout_s: float) -> str | None:
    """Wait for a checking process; return the step that took longer than it may, None if none did.

    The process names each step as it begins; the clock starts with the first, and stands on HOLD.
    """
    step, left, held = "", math.inf, True
    text = b""
    while True:
        before = time.monotonic()
        ready, _, _ = select.select([steps], [], [], POLL_S if held else min(left, POLL_S))
        left -= 0 if held else time.monotonic() - before
        if ready:
            data = steps.read(4096)
            if not data:
                return None
            *lines, text = (text + data).split(b"\n")
            for line in lines:
                if line in (HOLD, GO):
                    held = line == HOLD
                else:
                    step, left, held = line.decode(errors="replace"), timeout_s, False
        elif process.poll() is not None:
            return None
        elif left <= 0:
            return step


def watch_compiling(begins: Callable[[], None], ends: Callable[[], None]) -> None:
    """Call `begins` when numba begins to compile in this process, and `ends` when it is done.

    Functions that one in the making has made too are part of it. numba, which is slow to import, is not
    imported for that: where it is not there yet, the calls begin once somebody imports it.
    """
    if EVENTS in sys.modules:
        _listen(sys.modules[EVENTS], begins, ends)
    else:
        sys.meta_path.insert(0, _AfterImport(EVENTS, lambda event: _listen(event, begins, ends)))


def _listen(event: Any, begins: Callable[[], None], ends: Callable[[], None]) -> None:
    depth = 0  # numba compiles under a lock, one function and what it needs at a time

    class Compiling(event.Listener):  # type: ignore[misc]
        def on_start(self, event: object) -> None:
            nonlocal depth
            del event
            depth += 1
            if depth == 1:
                begins()

        def on_end(self, event: object) -> None:
            nonlocal depth
            del event
            depth -= 1
            if not depth:
                ends()

    event.register("numba:compile", Compiling())


class _AfterImport(MetaPathFinder):
    """Calls somebody once a module has been imported, and is gone then."""

    def __init__(self, name: str, call: Callable[[ModuleType], None]) -> None:
        self._name, self._call = name, call

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find the one module where it is, and have its loader call when it is done."""
        if fullname != self._name:
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_call(module: ModuleType) -> None:
                load(module)
                self._call(module)

            spec.loader.exec_module = load_and_call  # type: ignore[method-assign]
        return spec


class Steps:
    """Tells the process that watches the clock what begins, and when numba compiles."""

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)
        self._descriptor = descriptor

    def begin(self, step: str) -> None:
        """Begin a step."""
        self._tell(step.encode(errors="replace").replace(b"\n", b" "))

    def hold(self) -> None:
        """Have the clock stand until the next step begins."""
        self._tell(HOLD)

    def hold_while_compiling(self) -> None:
        """Have the clock stand while numba compiles: that is for the machine to do, once."""
        watch_compiling(lambda: self._tell(HOLD), lambda: self._tell(GO))

    def _tell(self, line: bytes) -> None:
        os.write(self._descriptor, line + b"\n")

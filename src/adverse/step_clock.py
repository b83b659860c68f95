"""A clock for steps of another process, which names each as it begins, and is ended if one takes too long.

What that process prints says nothing to the clock, and starting up and compiling do not count.
"""

from __future__ import annotations

import math
import os
import select
import subprocess
import time
from typing import IO

HOLD, GO = b"hold the clock", b"go on"
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


class Steps:
    """Tells the process that watches the clock what begins, and when numba compiles."""

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)
        self._descriptor = descriptor
        self._compiling = 0

    def begin(self, step: str) -> None:
        """Begin a step."""
        self._tell(step.encode(errors="replace").replace(b"\n", b" "))

    def hold(self) -> None:
        """Have the clock stand until the next step begins."""
        self._tell(HOLD)

    def hold_while_compiling(self) -> None:
        """Have the clock stand while numba compiles: that is for the machine to do, once."""
        from numba.core import event  # noqa: PLC0415 - numba is slow to import

        outer = self

        class Compiling(event.Listener):
            def on_start(self, event: object) -> None:
                del event
                outer._compiling += 1
                if outer._compiling == 1:
                    outer._tell(HOLD)

            def on_end(self, event: object) -> None:
                del event
                outer._compiling -= 1
                if not outer._compiling:
                    outer._tell(GO)

        event.register("numba:compile", Compiling())  # type: ignore[no-untyped-call]

    def _tell(self, line: bytes) -> None:
        os.write(self._descriptor, line + b"\n")

"""One life of a child program: its process, its pipes, and its output.

One loop moves all three pipes while it waits, so neither a large image nor a chatty program can block
the other side, and every wait has an end: a reply, the deadline, the memory limit, or the program's death.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import selectors
import signal
import subprocess
import time
from collections import deque
from collections.abc import Mapping

import psutil

from adverse.errors import BadAnswerError, CrashError, LateError, OutOfMemoryError, SutError
from adverse.processes import end_tied
from adverse.suts import wire
from adverse.suts.ask import MORE_MEMORY
from adverse.suts.free_memory import memory_is_short, oom_kills
from adverse.suts.wire import LineTooLongError, MarkedLines

PIPE_BYTES = 1 << 20
"""Asked of the system for each pipe: a 640x480 image then needs one switch of process, not fifteen."""
TAIL_BYTES = 1500
"""Of what the program writes to stderr, shown when it ends."""
OUTPUT_BYTES = 16_000
"""Kept of it for the log."""
STACK = "Fatal Python error"
"""How the stack that Python dumps when it crashes begins; it holds addresses, and goes to the log alone."""
WATCH_S = 0.1
"""How often its memory is looked at."""
EXIT_S = 2.0
"""How long a program may take to end once its input is closed."""
SHOWN_BYTES = 200
MAX_PARTS = 64
"""Pieces given to one writev."""


START_BY_HAND = (
    "Start the program by hand, with the same arguments in the same folder, and mend what it says; then run "
    "again, with --retry-faults if frames have failed for it."
)
ASK_ALONE = (
    "Ask the system about this frame outside of a study, to see why it ends; mend it, and run again with "
    "--retry-faults."
)


class LostError(Exception):
    """Why a program can no longer be used; `dying` when it ends by itself, so its exit code tells.

    `kind` says whose failure it is.
    """

    def __init__(
        self,
        what: str,
        *,
        got: str | None = None,
        wanted: str | None = None,
        fix: str | None = None,
        dying: bool = False,
        kind: type[SutError] = SutError,
    ) -> None:
        super().__init__(what)
        self.what = what
        self.got = got
        self.wanted = wanted
        self.fix = fix
        self.dying = dying
        self.kind = kind


class Running:
    """A started program. After LostError, or for any other reason, `end` must be called once.

    `share_mb` is what the machine can spare for it, `memory_limit_mb` what it may use: more is its own fault.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        memory_limit_mb: int | None,
        share_mb: int | None = None,
        *,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._environment = environment
        self.process = process
        self.requests = 0
        self.killed = False
        """Whether it was ended by SIGKILL, not by us; known once it has ended."""
        self.out_of_memory = False
        """Whether there is a sign then that the machine did it, for want of memory."""
        self._oom_kills = oom_kills()
        self._memory_limit_mb = share_mb if memory_limit_mb is None else memory_limit_mb
        self._of_machine = memory_limit_mb is None
        self._watched_at = 0.0
        self._lines = MarkedLines(wire.MARK, wire.MAX_LINE_BYTES)
        self._replies: deque[bytes] = deque()
        self._stderr = bytearray()
        self._new_stderr = 0
        pipes = [pipe for pipe in (process.stdin, process.stdout, process.stderr) if pipe is not None]
        self._in, self._out, self._err = (pipe.fileno() for pipe in pipes)
        self._selector = selectors.DefaultSelector()
        for fd in (self._in, self._out, self._err):
            os.set_blocking(fd, False)
            with contextlib.suppress(OSError, AttributeError):  # only a matter of speed, only on Linux
                fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        self._selector.register(self._out, selectors.EVENT_READ)
        self._selector.register(self._err, selectors.EVENT_READ)

    def exchange(self, parts: list[memoryview], timeout_s: float) -> bytes:
        """Write the parts and return the next reply, or raise LostError."""
        deadline = time.monotonic() + timeout_s
        if parts:
            self._refuse_replies_so_far()
            self._selector.register(self._in, selectors.EVENT_WRITE)
        while parts or not self._replies:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise self._late(timeout_s, reading=not parts)
            wait_s = left_s if self._memory_limit_mb is None else min(left_s, WATCH_S)
            for key, _ in self._selector.select(wait_s):
                if key.fd == self._in:
                    parts = self._write(parts)
                elif key.fd == self._out:
                    self._read_stdout()
                else:
                    self._read_stderr()
            self._watch_memory()
        return self._replies.popleft()

    def take_output(self) -> str:
        """Return what it wrote to stderr since this was last called, as far as it is kept."""
        with contextlib.suppress(OSError):
            self._read_stderr()  # what it wrote before its reply is there by now
        new, self._new_stderr = self._new_stderr, 0
        return bytes(self._stderr[-new:] if new else b"").decode(errors="replace")

    def end(self, *, grace_s: float = 0) -> str:
        """Close its input, wait, kill it with all it started, close the pipes; say how it ended."""
        with contextlib.suppress(OSError):
            self.process.stdin.close()  # type: ignore[union-attr]
        code: int | None = self.process.poll()
        if grace_s:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = self.process.wait(grace_s)
        self.killed = code == -signal.SIGKILL
        self.out_of_memory = self.killed and (oom_kills() > self._oom_kills or memory_is_short())
        with contextlib.suppress(OSError):  # its group outlives it as long as something it started does
            os.killpg(self.process.pid, signal.SIGKILL)
        if self._environment is not None:
            end_tied(self._environment)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(EXIT_S)
        with contextlib.suppress(OSError):
            self._read_stderr()
        self._selector.close()
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()
        return "it was killed" if code is None else _ending(code)

    def last_words(self) -> str:
        """Return the end of what it printed."""
        error = self.output().partition(STACK)[0][-TAIL_BYTES:].strip()
        noise = self._lines.noise()
        parts = [f"its stderr ends: {error}"] if error else []
        return "; ".join(parts + ([f"its stdout ends: {noise}"] if noise else []))

    def output(self) -> str:
        """Return what it wrote to stderr, as far as it is kept."""
        return bytes(self._stderr).decode(errors="replace")

    def _refuse_replies_so_far(self) -> None:
        """Raise LostError for what was said before the request: it would be taken for the reply to it."""
        for key, _ in self._selector.select(0):
            if key.fd == self._out:
                self._read_stdout()
            else:
                self._read_stderr()
        if self._replies:
            raise LostError(
                "the program answered before it was asked",
                got=repr(self._replies[0][:SHOWN_BYTES]),
                wanted="one reply to each request, once it has been read",
                kind=BadAnswerError,
            )

    def _write(self, parts: list[memoryview]) -> list[memoryview]:
        try:
            written = os.writev(self._in, parts[:MAX_PARTS])
        except BlockingIOError:
            return parts
        except OSError:
            raise LostError(
                "the program stopped reading its input", fix=ASK_ALONE, dying=True, kind=CrashError
            ) from None
        while parts and written >= len(parts[0]):
            written -= len(parts[0])
            parts = parts[1:]
        if not parts:
            self._selector.unregister(self._in)
            return parts
        return [parts[0][written:], *parts[1:]]

    def _read_stdout(self) -> None:
        data = _read(self._out)
        if data == b"":
            if not self.requests:
                raise LostError(
                    "the program ended before it was ready", fix=START_BY_HAND, dying=True, kind=CrashError
                )
            raise LostError("the program died", fix=ASK_ALONE, dying=True, kind=CrashError)
        try:
            self._replies += self._lines.feed(data or b"")
        except LineTooLongError:
            limit = f"{wire.MAX_LINE_BYTES >> 20} MB"
            raise LostError(
                "a reply is too long",
                got=f"more than {limit} without an end of line",
                wanted="one line",
                kind=BadAnswerError,
            ) from None

    def _read_stderr(self) -> None:
        data = _read(self._err)
        if data == b"" and self._err in self._selector.get_map():
            self._selector.unregister(self._err)
        self._stderr += data or b""
        self._new_stderr += len(data or b"")
        del self._stderr[:-OUTPUT_BYTES]

    def _watch_memory(self) -> None:
        limit_mb, now = self._memory_limit_mb, time.monotonic()
        if limit_mb is None or now - self._watched_at < WATCH_S:
            return
        self._watched_at = now
        if _memory_mb(self.process.pid) > limit_mb:
            if self._of_machine:
                raise LostError(
                    "the program needs more memory than the machine can spare for each worker",
                    got=f"over {limit_mb} MB",
                    fix=MORE_MEMORY,
                    kind=OutOfMemoryError,
                )
            raise LostError(
                "the program uses too much memory",
                got=f"over {limit_mb} MB",  # not the figure itself: the same fault reads the same each time
                wanted=f"at most {limit_mb} MB",
                fix="Raise memory_limit_mb, or look for a leak, and run again with --retry-faults.",
                kind=CrashError,
            )

    def _late(self, timeout_s: float, *, reading: bool) -> LostError:
        if not self.requests:
            return LostError(
                "the program did not start in time",
                got=f"no ready line after {timeout_s:g} s",
                fix="Raise start_timeout_s if it is only slow, and run again, with --retry-faults if frames "
                "have failed for it.",
                kind=LateError,
            )
        missing = "answered" if reading else "read its images"
        return LostError(
            "the program hung",
            got=f"it has not {missing} after {timeout_s:g} s",
            fix="Raise timeout_s if it is only slow, and run again with --retry-faults.",
            kind=LateError,
        )


def _read(fd: int) -> bytes | None:
    """Return what there is to read, b"" at the end, None when there is nothing yet."""
    try:
        return os.read(fd, PIPE_BYTES)
    except BlockingIOError:
        return None


def _memory_mb(pid: int) -> float:
    """Return the resident memory of a process and of all that it started."""
    total = 0
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        for member in [process, *process.children(recursive=True)]:
            with contextlib.suppress(psutil.Error):
                total += member.memory_info().rss
    return total / 2**20


def _ending(code: int) -> str:
    if code >= 0:
        return f"it ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"it was ended by {name}"

"""A worker process: receives units over a connection, does them, and says what it is doing.

Messages to it: plug-in files, the work, then (number, unit, SUTs to isolate, steps to avoid, attempts that
workers made at the unit before, those of them that died) again and again.
Messages from it: its process id, the number of the unit (0 before the first), and what it says: ("done",
result), ("failed", error that no retry can mend), ("bug", text). A copy of it, which a SUT may have forked,
says nothing. What it is about to do it writes on a board, what SUTs were asked in a log of attempts.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from adverse import plugins
from adverse.errors import AdverseError
from adverse.processes import adopt_orphans, die_with_parent, one_process
from adverse.step_clock import watch_compiling
from adverse.study.attempts import AttemptLog
from adverse.study.stages import Board, Stage


def main() -> None:
    """Serve the connection whose file descriptor is the first argument, until it closes."""
    die_with_parent()
    adopt_orphans()
    with contextlib.suppress(OSError):  # of all processes, those that run SUTs and mutations go first
        Path("/proc/self/oom_score_adj").write_text("800")
    connection: Connection = Connection(int(sys.argv[1]))
    board = Board(int(sys.argv[2]))
    attempts = AttemptLog(int(sys.argv[4]))
    faulthandler.enable()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # so that a KeyboardInterrupt is always a SUT's own
    ours, number = os.getpid(), 0

    def say(kind: str, value: object) -> None:
        _end_copy(ours)
        connection.send((ours, number, kind, value))

    def tell(stage: Stage) -> None:
        _end_copy(ours)
        board.write(stage)

    def unless_copy(act: Callable[[], None]) -> Callable[[], None]:
        return lambda: act() if os.getpid() == ours else None

    watch_compiling(unless_copy(board.hold), unless_copy(board.go_on))
    try:
        for path in connection.recv():
            with one_process():
                plugins.load_file(path)
        worker = connection.recv().worker(tell, memory_limit_mb=int(sys.argv[3]), attempts=attempts)
        messages: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threading.Thread(target=_receive, args=(connection, messages), daemon=True).start()
        while (message := messages.get()) is not None:
            number, unit, isolate, avoid, earlier, deaths = message
            board.begin()
            attempts.begin(number, earlier, deaths)
            say("done", worker.do(unit, isolate=isolate, avoid=avoid))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass  # whoever gave the work is gone or has no more
    except AdverseError as error:
        say("failed", error)
    except Exception as error:  # noqa: BLE001
        _end_copy(ours)
        traceback.print_exc()
        say("bug", f"{type(error).__name__}: {error}")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # a SUT's left-over threads must not keep the process alive


def _end_copy(ours: int) -> None:
    """End this process if it is a copy of the worker that code which is not ours has forked."""
    if os.getpid() != ours:
        os._exit(0)


def _receive(connection: Connection, messages: queue.SimpleQueue[Any]) -> None:
    """Take messages as they come, so that the sender never waits while a unit is done."""
    try:
        while True:
            messages.put(connection.recv())
    except (EOFError, OSError):
        messages.put(None)

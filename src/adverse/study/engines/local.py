"""Engines on this machine: worker processes, or this very process.

A SUT runs inside its worker, where asking it costs nothing extra. If a worker dies, hangs or eats the
memory while a SUT is asked, the worker is replaced, that SUT runs in a process of its own from then
on, and the unit is done again from its start; there, the suspect frame is tried once more alone and then
recorded as the SUT's fault. What took the worker down counts as the first attempt, unless it was the machine
(a kill from outside, no memory). Everything else goes on meanwhile.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import tempfile
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import Any

import psutil

from adverse.errors import AdverseError
from adverse.processes import ONE_THREAD, our_environment, our_module
from adverse.study.engines import Result, Stop, U, Watcher, Work
from adverse.study.stages import NOTHING_TO_AVOID, SIZE_BYTES, Avoid, Board, Stage

UNITS_AHEAD = 2
"""Units a worker holds: the one it does, and the next, so that it never waits for us."""
POLL_S = 0.2
DEATHS_BEFORE_AVOIDING = 3
STARTS_BEFORE_GIVING_UP = 3
FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""Signals that say nothing about the SUT: what sends them is the machine, or a person."""
MEMORY_SHARE = 0.8
"""Share of the machine's memory that all workers together may use."""


class LocalEngine:
    """`workers` processes, each on one core. What SUTs print goes to files in `log_folder`."""

    name = "local"

    def __init__(self, workers: int, log_folder: Path, *, memory_limit_mb: int | None = None) -> None:
        self.workers = workers
        self.log_folder = log_folder
        share = int(psutil.virtual_memory().total * MEMORY_SHARE / workers / 2**20)
        self.memory_limit_mb = memory_limit_mb or share

    def run(
        self, work: Work, units: Sequence[U], *, watch: Watcher, stop: Stop
    ) -> Iterator[tuple[U, Result]]:
        """Do the units, yielding each when it is finished."""
        yield from _Crew(self, work, units, watch, stop).run()


class InlineEngine:
    """Does units one after the other."""

    name = "inline"
    workers = 0

    def run(
        self, work: Work, units: Sequence[U], *, watch: Watcher, stop: Stop
    ) -> Iterator[tuple[U, Result]]:
        """Do the units, yielding each when it is finished."""
        del watch
        worker = work.worker(lambda _stage: None)
        waiting = units if isinstance(units, deque) else deque(units)
        try:
            while waiting and not (stop.soft or stop.hard):
                unit = waiting.popleft()
                yield unit, worker.do(unit, isolate=frozenset(), avoid=NOTHING_TO_AVOID)
        finally:
            worker.close()


class _Process:
    """One worker process, the units it holds, and what it said last."""

    def __init__(self, number: int, engine: LocalEngine, work: Work) -> None:
        ours, theirs = Pipe()
        self.connection: Connection = ours
        self.units: deque[Any] = deque()
        self.busy_since = time.monotonic()
        page = tempfile.TemporaryFile()  # noqa: SIM115 - closed below, the mapping stays
        page.truncate(SIZE_BYTES)
        self.board = Board(page.fileno())
        self.log = engine.log_folder / f"worker-{number}.log"
        command = our_module(
            "adverse.study.engines.worker_process",
            str(theirs.fileno()),
            str(page.fileno()),
            str(engine.memory_limit_mb),
        )
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(  # noqa: S603
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[theirs.fileno(), page.fileno()],
                env={**our_environment(), **dict.fromkeys(ONE_THREAD, "1")},
                start_new_session=True,  # Ctrl-C is for us, not for the workers
            )
        theirs.close()
        page.close()
        self._send(work.plugin_files)
        self._send(work)

    def give(self, unit: object, isolate: frozenset[int], avoid: Avoid) -> None:
        if not self.units:
            self.busy_since = time.monotonic()
        self.units.append(unit)
        self._send((unit, isolate, avoid))

    def overdue(self) -> Stage | None:
        """Return the step that has taken longer than it may, if there is one."""
        entry = self.board.read() if self.units else None
        if entry is None:
            return None
        since, stage = entry
        spent = time.monotonic() - max(since, self.busy_since)
        late = stage.limit_s is not None and spent > stage.limit_s
        return stage if late else None

    @property
    def stage(self) -> Stage | None:
        """What it said last."""
        entry = self.board.read()
        return None if entry is None else entry[1]

    def memory_mb(self) -> float:
        try:
            return float(psutil.Process(self.process.pid).memory_info().rss) / 2**20
        except psutil.Error:
            return 0.0

    def end(self) -> int:
        """Kill the process with all it has started, and return how it ended."""
        self.connection.close()
        with contextlib.suppress(psutil.Error):
            for child in psutil.Process(self.process.pid).children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    child.kill()
        self.process.kill()
        return self.process.wait()

    def last_words(self) -> str:
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "nothing in its log"

    def _send(self, message: object) -> None:
        with contextlib.suppress(OSError):  # it is gone; we hear of it when we listen next
            self.connection.send(message)


class _Crew:
    """The workers of one run and what is known about what kills them."""

    def __init__(
        self, engine: LocalEngine, work: Work, units: Sequence[Any], watch: Watcher, stop: Stop
    ) -> None:
        self.engine = engine
        self.work = work
        self.waiting = units if isinstance(units, deque) else deque(units)
        self.watch = watch
        self.stop = stop
        self.processes: list[_Process] = []
        self.isolate = frozenset(k for k, task in enumerate(work.suts) if task.memory_limit_mb is not None)
        self.avoid = Avoid()
        self.deaths: Counter[tuple[str, str | None]] = Counter()
        self.starts_lost = 0
        self.started = 0

    def run(self) -> Iterator[tuple[Any, Result]]:
        self.stop.heeded = True
        try:
            while (self.waiting and not self.stop.soft) or any(p.units for p in self.processes):
                if self.stop.hard:
                    return
                if not self.stop.soft:
                    self._hand_out()
                yield from self._listen()
                self._watch_over()
        finally:
            self.stop.heeded = False
            for process in self.processes:
                process.end()

    def _hand_out(self) -> None:
        while len(self.processes) < min(self.engine.workers, len(self.waiting) + len(self.processes)):
            self.processes.append(_Process(self.started, self.engine, self.work))
            self.started += 1
        for ahead in range(UNITS_AHEAD):
            for process in self.processes:
                if self.waiting and len(process.units) <= ahead:
                    process.give(self.waiting.popleft(), self.isolate, self.avoid)

    def _listen(self) -> Iterator[tuple[Any, Result]]:
        by_connection = {process.connection: process for process in self.processes}
        for connection in wait(list(by_connection), timeout=POLL_S):
            process = by_connection[connection]  # type: ignore[index]
            try:
                kind, value = process.connection.recv()
            except (EOFError, OSError):
                self._lost(process, None)
                continue
            if kind == "done":
                self.starts_lost = 0
                yield process.units.popleft(), value
            elif kind == "failed":
                raise value
            else:
                raise AdverseError(
                    "internal error in a worker",
                    where=str(process.stage or process.log),
                    got=str(value),
                    fix=f"Please report it with {process.log}. What is finished is kept.",
                )

    def _watch_over(self) -> None:
        for process in list(self.processes):
            late = process.overdue()
            if late is not None:
                self._lost(process, f"gave no answer in {late.limit_s:g} s")
            elif process.memory_mb() > self.engine.memory_limit_mb:
                self._lost(process, f"used more than {self.engine.memory_limit_mb} MB of memory")

    def _lost(self, process: _Process, reason: str | None) -> None:
        """Replace a worker: put its units back, and learn from what it was doing."""
        ended = process.end()
        self.processes.remove(process)
        self.waiting.extendleft(reversed(process.units))
        how = reason or f"died ({_how_it_ended(ended)})"
        stage = process.stage
        if stage is None:
            self.starts_lost += 1
            if self.starts_lost >= STARTS_BEFORE_GIVING_UP:
                raise AdverseError(
                    "workers crash while they start",
                    got=f"{how}; {process.last_words()}",
                    fix=f"See {process.log}.",
                )
            return
        text = f"a worker {how} while {stage}"
        memory = reason is not None and "memory" in reason
        if stage.sut is not None:
            self.isolate |= {stage.sut}
            outside = memory or (reason is None and -ended in FROM_OUTSIDE)
            if stage.frame is not None and stage.setting is not None and not outside:
                attempt = (stage.sut, stage.frame, stage.setting)
                self.avoid = replace(self.avoid, attempts={**self.avoid.attempts, attempt: f"a worker {how}"})
            text += f"; SUT {self.work.suts[stage.sut].name!r} runs in a process of its own from now on"
        elif memory:
            self.isolate = frozenset(range(len(self.work.suts)))
            text += "; every SUT runs in a process of its own from now on"
        elif stage.frame is not None:
            step = (stage.frame, stage.setting)
            self.deaths[step] += 1
            if self.deaths[step] >= DEATHS_BEFORE_AVOIDING:
                self.avoid = replace(self.avoid, steps=self.avoid.steps | {step})
                text += "; the frame is left out from now on"
        self.watch.note(text)


def _how_it_ended(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:
        return f"signal {-code}"

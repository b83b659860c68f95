"""Engines on this machine: worker processes, or this very process.

A SUT runs inside its worker, where asking it costs nothing extra. If a worker hangs or eats the memory while
a SUT is asked, the worker is replaced, that SUT runs in a process of its own from then on, and the unit is
done again; there, the suspect frame is tried once more alone and then recorded as the SUT's fault. What took
the worker down counts as the first attempt, with its kind; a kill from outside leaves no trace.

A worker that dies does not tell who did it: one SUT may have spoilt the memory of another. So every SUT of
the unit is tried in a process of its own before one is blamed, and those that die there stay there. If none
does, the death counts for each SUT that the worker held. A
mutation that takes too long or too much memory is ended too, and costs its frame. Everything else goes on.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import Any

import psutil

from adverse.errors import AdverseError, CrashError, LateError, OutOfMemoryError, SutError
from adverse.processes import ONE_THREAD, end_tied, our_environment, our_module, tied
from adverse.store.records import MUTATION_ENDED
from adverse.study.attempts import Attempt, WorkerDeath, read_attempts
from adverse.study.engines import Result, Stop, U, Watcher, Work
from adverse.study.stages import MUTATING, NOTHING_TO_AVOID, SIZE_BYTES, Avoid, Board, Stage

UNITS_AHEAD = 2
"""Units a worker holds: the one it does, and the next, so that it never waits for us."""
POLL_S = 0.2
DEATHS_BEFORE_AVOIDING = 3
STARTS_BEFORE_GIVING_UP = 3
FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""Signals that say nothing about the SUT: what sends them is the machine, or a person."""
LOG_BYTES = 8 << 20
"""Kept of what a worker prints, at most; what it printed last."""
OUTPUT_CHARACTERS = 8000
"""Of it, kept for an attempt that took the worker down."""
MEMORY_SHARE = 0.8
"""Share of the machine's memory that all workers together may use."""


class LocalEngine:
    """`workers` processes, each on one core. What SUTs print goes to files in `log_folder`."""

    name = "local"

    def __init__(self, workers: int, log_folder: Path, *, memory_limit_mb: int | None = None) -> None:
        self.workers = workers
        self.log_folder = log_folder
        self.crew: _Crew | None = None
        share = int(psutil.virtual_memory().total * MEMORY_SHARE / workers / 2**20)
        self.memory_limit_mb = memory_limit_mb or share

    def run(
        self, work: Work, units: Sequence[U], *, watch: Watcher, stop: Stop
    ) -> Iterator[tuple[U, Result]]:
        """Do the units, yielding each when it is finished."""
        self.crew = _Crew(self, work, units, watch, stop)
        yield from self.crew.run()

    def activity(self) -> Mapping[str, str]:
        """Say what each worker process does."""
        processes = list(self.crew.processes) if self.crew is not None else []
        return {
            f"process {process.process.pid}": str(process.stage or "starting") if process.units else "idle"
            for process in processes
        }


class InlineEngine:
    """Does units one after the other."""

    name = "inline"
    workers = 0

    def activity(self) -> Mapping[str, str]:
        """Say nothing: there are no workers."""
        return {}

    def run(
        self, work: Work, units: Sequence[U], *, watch: Watcher, stop: Stop
    ) -> Iterator[tuple[U, Result]]:
        """Do the units, yielding each when it is finished."""
        answered = 0

        def tell(stage: Stage) -> None:
            nonlocal answered
            answered += stage.answered
            watch.under_way(answered)

        worker = work.worker(tell)
        waiting = units if isinstance(units, deque) else deque(units)
        try:
            while waiting and not (stop.soft or stop.hard):
                unit, answered = waiting.popleft(), 0
                yield unit, worker.do(unit, isolate=frozenset(), avoid=NOTHING_TO_AVOID)
        finally:
            worker.close()


class _Process:
    """One worker process, the units it holds, and what it said last."""

    def __init__(self, number: int, engine: LocalEngine, work: Work) -> None:
        ours, theirs = Pipe()
        self.connection: Connection = ours
        self.units: deque[tuple[int, Any]] = deque()
        """The units it holds, each with the number that it knows it by."""
        self.given = 0
        self.busy_since = time.monotonic()
        page = tempfile.TemporaryFile()  # noqa: SIM115 - closed below, the mapping stays
        page.truncate(SIZE_BYTES)
        self.board = Board(page.fileno())
        self.attempts = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the worker has ended
        self.log = engine.log_folder / f"worker-{number}.log"
        command = our_module(
            "adverse.study.engines.worker_process",
            str(theirs.fileno()),
            str(page.fileno()),
            str(engine.memory_limit_mb),
            str(self.attempts.fileno()),
        )
        self.environment = tied({**our_environment(), **dict.fromkeys(ONE_THREAD, "1")})
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(  # noqa: S603
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[theirs.fileno(), page.fileno(), self.attempts.fileno()],
                env=self.environment,
                start_new_session=True,  # Ctrl-C is for us, not for the workers
            )
        theirs.close()
        page.close()
        self._send(work.plugin_files)
        self._send(work)

    def give(
        self,
        unit: object,
        isolate: frozenset[int],
        avoid: Avoid,
        earlier: Sequence[Attempt],
        deaths: Sequence[WorkerDeath],
    ) -> None:
        if not self.units:
            self.busy_since = time.monotonic()
        self.given += 1
        self.units.append((self.given, unit))
        self._send((self.given, unit, isolate, avoid, earlier, deaths))

    def is_at(self, number: int, *, finished: bool) -> bool:
        """Return whether it can be at a unit; `finished`: it says that it has done it."""
        expected = {self.units[0][0]} if self.units else set()
        return number in (expected if finished else {0, *expected})

    def unfinished(self) -> tuple[Any, list[Attempt]]:
        """Return the unit it was at when it ended, if any, with the attempts that it had made by then."""
        number, attempts = read_attempts(self.attempts.fileno())
        self.attempts.close()
        return next((unit for given, unit in self.units if given == number), None), attempts

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
        code = self.process.wait()
        end_tied(self.environment)
        return code

    def last_words(self) -> str:
        lines = self.output().strip().splitlines()
        return lines[-1] if lines else "nothing in its log"

    def output(self) -> str:
        """Return the end of what was printed."""
        with contextlib.suppress(OSError), self.log.open("rb") as log:
            log.seek(max(log.seek(0, os.SEEK_END) - OUTPUT_CHARACTERS, 0))
            return log.read().decode(errors="replace")
        return ""

    def trim_log(self) -> None:
        """Keep the second half of a log that has grown too long; the worker goes on behind it."""
        with contextlib.suppress(OSError):
            if self.log.stat().st_size > LOG_BYTES:
                with self.log.open("r+b") as log:
                    log.seek(-LOG_BYTES // 2, os.SEEK_END)
                    end = log.read()
                    log.seek(0)
                    log.write(b"(what was printed before is left out)\n" + end)
                    log.truncate()

    def _send(self, message: object) -> None:
        with contextlib.suppress(OSError):  # it is gone; we hear of it when we listen next
            self.connection.send(message)


@dataclass(frozen=True)
class _Trial:
    """A unit that is done with every SUT in a process of its own, after a death that nothing explains.

    `suspect` is the SUT that was asked when it happened, if one was; `isolated` had a process of their own
    already. `step` is set once the death is explained by the preparation of a frame.
    """

    suspect: int | None
    isolated: frozenset[int]
    step: bool = False


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
        self.trials: dict[int, _Trial] = {}
        self.earlier: dict[int, list[Attempt]] = {}
        """The attempts of workers that did not finish a unit, by the unit's id()."""
        self.unexplained: dict[int, list[WorkerDeath]] = {}
        """The deaths of workers that had a unit, by the unit's id()."""
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
                self.watch.under_way(
                    sum(process.board.answered for process in self.processes if process.units)
                )
        finally:
            self.stop.heeded = False
            for process in self.processes:
                process.end()
                process.attempts.close()

    def _hand_out(self) -> None:
        while len(self.processes) < min(self.engine.workers, len(self.waiting) + len(self.processes)):
            self.processes.append(_Process(self.started, self.engine, self.work))
            self.started += 1
        for ahead in range(UNITS_AHEAD):
            for process in self.processes:
                if self.waiting and len(process.units) <= ahead:
                    unit = self.waiting.popleft()
                    isolate = self.everyone if id(unit) in self.trials else self.isolate
                    earlier, deaths = self.earlier.get(id(unit), ()), self.unexplained.get(id(unit), ())
                    process.give(unit, isolate, self.avoid, earlier, deaths)

    def _listen(self) -> Iterator[tuple[Any, Result]]:
        by_connection = {process.connection: process for process in self.processes}
        for connection in wait(list(by_connection), timeout=POLL_S):
            process = by_connection[connection]  # type: ignore[index]
            try:
                sender, number, kind, value = process.connection.recv()
            except (EOFError, OSError):
                self._lost(process, None)
                continue
            except Exception:  # noqa: BLE001 - two that write at once leave bytes that may mean anything
                self._lost(process, "sent what cannot be read", foreign=True)
                continue
            if sender != process.process.pid or not process.is_at(number, finished=kind == "done"):
                self._lost(process, "sent a result that was not asked of it", foreign=True)
                continue
            if kind == "done":
                self.starts_lost = 0
                _, unit = process.units.popleft()
                self._learn(unit, value)
                yield unit, value
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
            process.trim_log()
            late = process.overdue()
            if process.connection.poll():
                continue  # it has finished something
            if late is not None:
                self._lost(process, f"gave no answer in {late.limit_s:g} s", late=late.limit_s)
            elif process.memory_mb() > self.engine.memory_limit_mb:
                self._lost(process, f"used more than {self.engine.memory_limit_mb} MB of memory", memory=True)

    @property
    def everyone(self) -> frozenset[int]:
        """All SUTs."""
        return frozenset(range(len(self.work.suts)))

    def _lost(
        self,
        process: _Process,
        reason: str | None,
        *,
        late: float | None = None,
        memory: bool = False,
        foreign: bool = False,
    ) -> None:
        """Replace a worker: put its units back, and learn from what it was doing.

        One that says something `foreign`, in another's name or about another unit, counts as dead: some SUT
        has spoilt it.
        """
        ended = process.end()
        self.processes.remove(process)
        self.waiting.extendleft(unit for _, unit in reversed(process.units))
        how = reason or f"died ({_how_it_ended(ended)})"
        stage = process.stage
        unit, attempts = process.unfinished()
        if unit is not None:
            self.earlier[id(unit)] = attempts
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
        died = foreign or (reason is None and -ended not in FROM_OUTSIDE)
        if died and unit is not None:
            held = self.everyone if id(unit) in self.trials else self.isolate
            death = WorkerDeath(stage.sut, stage.frame, stage.setting, f"a worker {how}", held)
            self.unexplained.setdefault(id(unit), []).append(death)
        if stage.sut is not None:
            if stage.frame is not None and (died or reason is not None):
                kind = CrashError if died else LateError if late is not None else OutOfMemoryError
                attempts.append(self._fatal(stage, kind(f"a worker {how}"), process.output()))
            if died and stage.frame is not None and len(self.work.suts) > 1 and unit is not None:
                self.trials[id(unit)] = _Trial(stage.sut, self.isolate)
                text += "; every SUT is tried in a process of its own on these frames"
            else:
                self.isolate |= {stage.sut}
                text += f"; SUT {self.work.suts[stage.sut].name!r} runs in a process of its own from now on"
        elif stage.frame is not None:
            text += self._suspect(stage, unit, how, late=late, memory=memory)
        self.watch.note(text)

    def _fatal(self, stage: Stage, error: SutError, output: str) -> Attempt:
        """Return the attempt that took a worker down."""
        unsure = isinstance(error, CrashError) and len(self.work.suts) > 1
        return Attempt(stage.sut or 0, stage.frame, stage.setting, error=error, output=output, unsure=unsure)

    def _suspect(self, stage: Stage, unit: object, how: str, *, late: float | None, memory: bool) -> str:
        """Find out who ended a worker while no SUT was asked; return what is done about it."""
        step = (str(stage.frame), stage.setting)
        self.deaths[step] += 1
        alone = unit is None or id(unit) in self.trials or self.isolate == self.everyone
        blamed = late is not None or (memory and alone) or self.deaths[step] >= DEATHS_BEFORE_AVOIDING
        if not blamed and not alone:
            self.trials[id(unit)] = _Trial(None, self.isolate)
            return "; every SUT is tried in a process of its own on these frames"
        if not blamed:
            return ""
        if id(unit) in self.trials:
            self.trials[id(unit)] = replace(self.trials[id(unit)], step=True)
        unexplained = self.unexplained.get(id(unit), [])
        unexplained[:] = [
            death for death in unexplained if death.sut is not None or (death.frame, death.setting) != step
        ]
        how = f"took longer than {late:g} s" if late is not None else how
        mutating = stage.text == MUTATING
        why = f"{MUTATION_ENDED}it {how}" if mutating else f"{stage.text} ended a worker: it {how}"
        if mutating and late is not None:
            why += ". Fix: Make the mutation faster, or raise mutation_timeout_s in the study."
        self.avoid = Avoid({**self.avoid.steps, step: why}, self.avoid.late)
        if mutating and late is not None:
            self.avoid = replace(self.avoid, late={**self.avoid.late, step: late})
        return "; the frame is left out from now on"

    def _learn(self, unit: object, result: Result) -> None:
        """After a unit for which every SUT was tried alone: keep those alone that died there.

        If none did, the death is still not explained, and they are not put together again.
        """
        self.earlier.pop(id(unit), None)
        self.unexplained.pop(id(unit), None)
        trial = self.trials.pop(id(unit), None)
        if trial is None:
            return
        died = getattr(result, "crashed", frozenset() if trial.suspect is None else {trial.suspect})
        crashed = frozenset(died) - trial.isolated  # who was elsewhere has not done it
        if crashed:
            new = sorted(crashed - self.isolate)
            self.isolate |= crashed
            for index in new:
                name = self.work.suts[index].name
                self.watch.note(f"SUT {name!r} died alone too; it runs in a process of its own from now on")
        elif not trial.step:
            self.isolate = self.everyone
            self.watch.note("no SUT died alone; each runs in a process of its own from now on")


def _how_it_ended(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:
        return f"signal {-code}"

"""Units done by the workers of a Dask cluster: one that runs somewhere, or one started here.

Dask brings units to workers, brings them again where a worker is lost, and takes in workers that join later.
What a worker does with a unit is in `dask_host`. Results come back here, and only here they are written and
acknowledged: a unit that was done twice counts once. A scheduler that goes away is waited for, and whatever
was under way is given to it again.
"""

from __future__ import annotations

import contextlib
import pickle
import queue
import secrets
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import dask
from distributed import Client, Future, KilledWorker, LocalCluster

from adverse.errors import AdverseError, IncompleteError, StudyError
from adverse.study.engines import Result, Stop, U, Watcher, Work
from adverse.study.engines.dask_host import (
    HostedSut,
    PackedWork,
    Requirement,
    UnitHost,
    do_unit,
    versions,
)

GPU = "GPU"
"""The resource of Dask workers that have one: as many units as they may do on it beside each other."""
HOSTS = "adverse-"
"""What the names of our plug-ins on Dask workers begin with."""
UNITS_AHEAD = 2
"""Units for each thread of the cluster: the one it does, and the next."""
POLL_S = 0.2
CONNECT_S = 30.0
RECONNECT_S = 120.0
"""How long a scheduler that went away, and workers that are still starting, are waited for."""
LOSSES_OF_A_UNIT = 20
"""Workers that may be lost while they hold one unit, before it is given up for this run."""


class DaskEngine:
    """The workers of the cluster at `scheduler`, or `workers` processes of one started here.

    `paths` must be there for every worker. Use it as a context: it closes the connection, and the cluster
    that it started.
    """

    name = "dask"

    def __init__(self, scheduler: str | None, workers: int, *, paths: Sequence[Path] = ()) -> None:
        self.scheduler = scheduler
        self.paths = tuple(paths)
        self.cluster: LocalCluster | None = None
        self.session: _Session | None = None
        if scheduler is None:
            with dask.config.set({"distributed.scheduler.allowed-failures": LOSSES_OF_A_UNIT}):
                self.cluster = LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    processes=True,
                    memory_limit=0,
                    dashboard_address=None,
                    host="127.0.0.1",
                )
        try:
            self.client = self._connect(CONNECT_S)
            self._wait_for_workers()
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(Exception):  # the scheduler may be gone
            self.client.close(timeout=5)
        if self.cluster is not None:
            with contextlib.suppress(Exception):
                self.cluster.close(timeout=10)

    @property
    def workers(self) -> int:
        """Threads of the cluster's workers, now."""
        return sum(worker["nthreads"] for worker in self._members()) or 1

    def slots(self, resources: Mapping[str, int]) -> int:
        """Return how many units that need resources can be done at a time."""
        if not resources:
            return self.workers
        able = ([worker["nthreads"], *_shares(worker, resources)] for worker in self._members())
        return int(sum(min(counts) for counts in able))

    def run(
        self, work: Work, units: Sequence[U], *, watch: Watcher, stop: Stop
    ) -> Iterator[tuple[U, Result]]:
        """Do the units, yielding each when it is finished."""
        self.session = _Session(self, work, units, watch, stop)
        yield from self.session.run()

    def activity(self) -> Mapping[str, str]:
        """Say how far each worker of the cluster is that told something since a unit was finished."""
        answered = {} if self.session is None else dict(self.session.answered)
        return {worker: f"{count} images of its units answered" for worker, count in answered.items()}

    def reconnect(self) -> None:
        """Find the scheduler again."""
        with contextlib.suppress(Exception):
            self.client.close(timeout=1)
        self.client = self._connect(RECONNECT_S)
        self._wait_for_workers()

    def threads_of_a_machine(self) -> int:
        """Return how many threads of workers are on the machine that has most."""
        threads: Counter[str] = Counter()
        for worker in self._members():
            threads[worker["host"]] += worker["nthreads"]
        return max(threads.values(), default=1)

    def _members(self) -> list[dict[str, Any]]:
        return list(self.client.scheduler_info(n_workers=-1).get("workers", {}).values())

    def _connect(self, seconds: float) -> Client:
        address = self.cluster or self.scheduler
        until = time.monotonic() + seconds
        while True:
            try:
                return _Connection(address, timeout=min(seconds, 10), set_as_default=False)
            except (OSError, ValueError, TypeError) as error:
                if time.monotonic() < until and isinstance(error, OSError):
                    time.sleep(POLL_S)
                    continue
                raise IncompleteError(
                    "the Dask scheduler cannot be reached",
                    where=str(self.scheduler),
                    got=f"{type(error).__name__}: {error}".splitlines()[0],
                    wanted="the address that `dask scheduler` prints, such as tcp://node1:8786",
                    fix="Start it, or correct --scheduler, and run the same command: finished work is kept.",
                ) from None

    def _wait_for_workers(self) -> None:
        try:
            self.client.wait_for_workers(1, timeout=RECONNECT_S)
        except TimeoutError:
            raise IncompleteError(
                "the Dask cluster has no workers",
                where=str(self.scheduler),
                fix=f"Start some: adverse worker {self.scheduler}. Finished work is kept.",
            ) from None


def _shares(worker: Mapping[str, Any], resources: Mapping[str, int]) -> list[float]:
    """Return how many units a worker has enough of each resource for."""
    has = worker.get("resources") or {}
    return [has.get(name, 0) // needed for name, needed in resources.items()]


class _Connection(Client):  # type: ignore[misc]  # Dask is typed in part
    """A client that closes itself where it cannot connect.

    Left to the garbage collector, it would be closed at any time, and wait for ever if that is while another
    client starts its loop: both need one lock.
    """

    def __init__(self, address: LocalCluster | str | None, **options: Any) -> None:
        try:
            super().__init__(address, **options)
        except BaseException:
            with contextlib.suppress(Exception):  # it may lack what closing needs
                self.close(timeout=1)
            raise


@dataclass
class _Given:
    """A unit that the cluster has."""

    unit: Any
    future: Future
    losses: int


class _Session:
    """One run on the cluster: what was given to it and has not come back."""

    def __init__(
        self, engine: DaskEngine, work: Work, units: Sequence[Any], watch: Watcher, stop: Stop
    ) -> None:
        self.engine = engine
        self.work = PackedWork(
            pickle.dumps(work),
            work.plugin_files,
            [HostedSut(sut.name, sut.memory_limit_mb, sut.gpu) for sut in work.suts],
        )
        self.resources = {GPU: 1} if any(sut.gpu for sut in work.suts) else {}
        self.waiting = units if isinstance(units, deque) else deque(units)
        self.watch = watch
        self.stop = stop
        self.host = ""
        self.given: dict[str, _Given] = {}
        self.losses: Counter[int] = Counter()
        """Workers lost with a unit, by the unit's id()."""
        self.finished: queue.SimpleQueue[Future] = queue.SimpleQueue()
        self.answered: dict[str, int] = {}

    def run(self) -> Iterator[tuple[Any, Result]]:
        self.stop.heeded = True
        try:
            self._settle_in()
            while (self.waiting and not self.stop.soft) or self.given:
                if self.stop.hard:
                    return
                if not self.stop.soft:
                    self._hand_out()
                yield from self._listen()
                self.watch.under_way(sum(self.answered.values()))
        finally:
            self.stop.heeded = False
            self._leave()

    def _settle_in(self) -> None:
        """Tell every worker, and those that join later, what the work is."""
        engine = self.engine
        if not engine.slots(self.resources):
            raise IncompleteError(
                "no worker of the Dask cluster has a GPU",
                where=str(engine.scheduler or "the cluster started here"),
                got=f"{engine.workers} workers without the resource {GPU}",
                wanted="one at least: a SUT has gpu: true, or a cuda provider",
                fix="Start one: adverse worker ADDRESS --gpus 1. Finished work is kept.",
            )
        self.host = f"{HOSTS}{secrets.token_hex(8)}"
        required = Requirement(versions(), (*self.work.plugin_files, *engine.paths))
        host = UnitHost(self.host, self.work, required, threads_here=engine.threads_of_a_machine())
        try:
            engine.client.register_plugin(host, name=self.host)
        except ImportError as error:
            raise StudyError(
                "a Dask worker does not have Adverse",
                where=str(engine.scheduler),
                got=str(error),
                fix="Install the same version there (pip install 'adverse[dask]') and restart the worker.",
            ) from None
        engine.client.subscribe_topic(self.host, self._hear)

    def _hear(self, event: tuple[float, dict[str, Any]]) -> None:
        _, told = event
        self.answered[told["worker"]] = told["answered"]

    def _hand_out(self) -> None:
        room = max(self.engine.slots(self.resources), 1) * UNITS_AHEAD - len(self.given)
        while self.waiting and room > 0:
            self._give(self.waiting.popleft())
            room -= 1

    def _give(self, unit: object) -> None:
        future = self.engine.client.submit(
            do_unit,
            self.host,
            pickle.dumps(unit),
            key=f"{self.host}-{secrets.token_hex(8)}",
            pure=False,
            resources=self.resources or None,
        )
        self.given[future.key] = _Given(unit, future, self.losses[id(unit)])
        future.add_done_callback(self.finished.put)

    def _listen(self) -> Iterator[tuple[Any, Result]]:
        if self.engine.client.status != "running":
            self._start_over()
        try:
            future = self.finished.get(timeout=POLL_S)
        except queue.Empty:
            return
        given = self.given.pop(future.key, None)
        if given is None:
            return  # of a scheduler that is gone; the unit was given again
        try:
            result, notes = future.result()
        except AdverseError:
            raise
        except Exception as error:
            if not self._is_a_loss(future, error):
                raise AdverseError(
                    "internal error on a Dask worker",
                    where=str(self.engine.scheduler or "the cluster started here"),
                    got=f"{type(error).__name__}: {error}",
                    fix="Please report it with the log of the worker. What is finished is kept.",
                ) from error
            if self._unprepared(error):  # a scheduler that was restarted knows nothing of the work
                self._settle_in()
                self.watch.note("the Dask scheduler is back; what was under way is done again")
            self._give_again(given.unit)
            return
        self.losses.pop(id(given.unit), None)
        self.answered.clear()  # of units that are finished; the others tell again in a second
        for note in notes:
            self.watch.note(note)
        yield given.unit, result

    def _is_a_loss(self, future: Future, error: Exception) -> bool:
        """Return whether a unit failed because its worker, or the way to it, was lost."""
        gone = future.status in {"cancelled", "lost"} or self.engine.client.status != "running"
        return isinstance(error, KilledWorker) or self._unprepared(error) or gone

    @staticmethod
    def _unprepared(error: Exception) -> bool:
        """Return whether a worker was given a unit of a work that nobody told it of."""
        return isinstance(error, KeyError) and HOSTS in str(error)

    def _give_again(self, unit: object) -> None:
        self.losses[id(unit)] += 1
        if self.losses[id(unit)] > LOSSES_OF_A_UNIT:
            raise IncompleteError(
                "Dask workers are lost again and again",
                where=str(self.engine.scheduler or "the cluster started here"),
                got=f"{self.losses[id(unit)]} of them with the same unit",
                fix="See the logs of the workers. Run the same command again: finished work is kept.",
            )
        self.watch.note("a Dask worker was lost; what it had is done again")
        self.waiting.appendleft(unit)

    def _start_over(self) -> None:
        """After the scheduler was lost: give everything that is not finished to the next one."""
        self.watch.note("the Dask scheduler was lost; waiting for it")
        units = [given.unit for given in self.given.values()]
        self.given.clear()
        self.engine.reconnect()
        self._settle_in()
        self.waiting.extendleft(reversed(units))
        self.watch.note("the Dask scheduler is back; what was under way is done again")

    def _leave(self) -> None:
        """Take back what is not finished, and let the workers end their processes."""
        client = self.engine.client
        with contextlib.suppress(Exception):  # the cluster may be gone
            client.cancel([given.future for given in self.given.values()])
            client.unsubscribe_topic(self.host)
            client.unregister_worker_plugin(self.host)

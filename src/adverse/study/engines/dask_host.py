"""What a Dask worker holds of a run: for each of its threads a worker process of ours that does units.

SUTs, mutations and plug-ins run in that process, never in the Dask worker: what they break, they break there,
and the rules about time, memory, blame and retries are those of the local engine, because it is that engine.
Work and units pass through Dask as bytes, and are unpacked only there, after the plug-ins.
"""

from __future__ import annotations

import importlib.metadata
import pickle
import platform
import queue
import shutil
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import psutil
from distributed import Worker, WorkerPlugin, get_worker

import adverse
from adverse.errors import AdverseError, StudyError
from adverse.study.engines import Result, Stop
from adverse.study.engines.local import MEMORY_SHARE, LocalEngine

IDLE_S = 120.0
"""After so long without a unit the worker process ends; whoever gave the work may be gone."""
TELLS_EVERY_S = 1.0
DECIDE = (
    "numpy",
    "opencv-python-headless",
    "onnxruntime",
    "numba",
    "scipy",
    "pyarrow",
    "pillow",
    "simplejpeg",
)
"""The libraries that results depend on."""


@dataclass(frozen=True)
class HostedSut:
    """What the engine knows of a SUT."""

    name: str
    memory_limit_mb: int | None
    gpu: bool = False


class Packed:
    """Something that stays packed until it is sent on: the receiver gets what is in it."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def __reduce__(self) -> tuple[Callable[[bytes], Any], tuple[bytes]]:
        return pickle.loads, (self.content,)


class PackedWork(Packed):
    """A work that only the worker process unpacks."""

    def __init__(self, content: bytes, plugin_files: Sequence[Path], suts: Sequence[HostedSut]) -> None:
        super().__init__(content)
        self.plugin_files = tuple(plugin_files)
        self.suts = tuple(suts)

    def worker(self, *_: object, **__: object) -> Any:
        """Never called: whoever does units has unpacked the work."""
        raise TypeError("a packed work does no units")


@dataclass(frozen=True)
class Requirement:
    """What must be the same on every machine: versions, and files that can be read."""

    versions: Mapping[str, str]
    paths: tuple[Path, ...]

    def refuse(self, where: str) -> None:
        """Raise where this machine is another."""
        here = versions()
        other = sorted(name for name, version in self.versions.items() if here.get(name) != version)
        if other:
            raise StudyError(
                "a Dask worker has other versions than this machine",
                where=where,
                got=", ".join(f"{name} {here.get(name, 'missing')}" for name in other),
                wanted=", ".join(f"{name} {self.versions[name]}" for name in other),
                fix="Install the same versions there (pip install -c constraints.txt 'adverse[dask]').",
            )
        hidden = [path for path in self.paths if not path.exists()]
        if hidden:
            raise StudyError(
                "a Dask worker cannot see a file of the study",
                where=where,
                got=f"{hidden[0]} is not there" + (f", nor {len(hidden) - 1} more" if hidden[1:] else ""),
                wanted="data, models and plug-ins under the same paths on every machine",
                fix="Mount the folder there, or copy it to the same place; what is finished is kept.",
            )


def versions() -> dict[str, str]:
    """Return the versions that decide results, here."""
    found = {"Python": ".".join(platform.python_version_tuple()[:2]), "adverse": adverse.__version__}
    for name in DECIDE:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


class UnitHost(WorkerPlugin):  # type: ignore[misc]
    """Does the units of one run on a Dask worker. Comes to every worker, also to those that join later."""

    idempotent: ClassVar[bool] = False

    def __init__(self, name: str, work: PackedWork, required: Requirement, *, threads_here: int) -> None:
        self.name = name
        self.packed = work.content
        self.plugin_files = work.plugin_files
        self.suts = work.suts
        self.required = required
        self.threads_here = threads_here
        """Threads of Dask workers on one machine, at most: they share its memory."""

    def setup(self, worker: Worker) -> None:
        """Look whether units can be done here. What is wrong is said when the first is asked for."""
        self.worker = worker
        self.lock = threading.Lock()
        self.idle: list[_Lane] = []
        self.lanes: list[_Lane] = []
        self.problem: AdverseError | None = None
        try:
            self.required.refuse(f"Dask worker {worker.name} at {worker.address}")
            self.folder = Path(tempfile.mkdtemp(prefix="adverse-", dir=worker.local_directory))
        except AdverseError as error:
            self.problem = error
        except OSError as error:
            self.problem = AdverseError(
                "a Dask worker cannot write into its own folder",
                where=f"Dask worker {worker.name} at {worker.address}, {worker.local_directory}",
                got=str(error),
                fix="Free space there, or start it with another --local-directory; what is finished is kept.",
            )

    def teardown(self, worker: Worker) -> None:  # noqa: ARG002 - Dask's signature
        """End the worker processes."""
        for lane in self.lanes:
            lane.end()
        if self.problem is None:
            shutil.rmtree(self.folder, ignore_errors=True)

    def do(self, unit: bytes) -> tuple[Result, list[str]]:
        """Return the result of a unit, and what happened meanwhile that is worth a line."""
        if self.problem is not None:
            raise self.problem
        with self.lock:
            lane = self.idle.pop() if self.idle else self._new_lane()
        try:
            return lane.do(Packed(unit))
        finally:
            with self.lock:
                self.idle.append(lane)

    def _new_lane(self) -> _Lane:
        total_mb = psutil.virtual_memory().total / 2**20
        work = PackedWork(self.packed, self.plugin_files, self.suts)
        folder = self.folder / str(len(self.lanes))
        folder.mkdir()
        limit = int(total_mb * MEMORY_SHARE / self.threads_here)
        lane = _Lane(LocalEngine(1, folder, memory_limit_mb=limit), work, self._tell)
        self.lanes.append(lane)
        return lane

    def _tell(self, answered: int) -> None:
        self.worker.log_event(self.name, {"worker": self.worker.address, "answered": answered})


def do_unit(host: str, unit: bytes) -> tuple[Result, list[str]]:
    """Do a unit on the Dask worker that this is called on."""
    plugin: UnitHost = get_worker().plugins[host]
    return plugin.do(unit)


class _Lane:
    """A thread that keeps one worker process busy. The process dies with the thread that started it."""

    def __init__(self, engine: LocalEngine, work: PackedWork, tell: Callable[[int], None]) -> None:
        self.engine = engine
        self.work = work
        self.tell = tell
        self.told = 0.0
        self.notes: list[str] = []
        self.stop = Stop()
        self.wanted: queue.SimpleQueue[tuple[Packed, Future[Result]] | None] = queue.SimpleQueue()
        threading.Thread(target=self._serve, daemon=True).start()

    def do(self, unit: Packed) -> tuple[Result, list[str]]:
        """Return the result of a unit, and the notes that it gave."""
        done: Future[Result] = Future()
        self.wanted.put((unit, done))
        result = done.result()
        notes, self.notes = self.notes, []
        return result, notes

    def end(self) -> None:
        """End the process at once."""
        self.stop.soft = self.stop.hard = True
        self.wanted.put(None)

    def note(self, text: str) -> None:
        """Keep a line for whoever gave the unit."""
        self.notes.append(text)

    def under_way(self, answered: int) -> None:
        """Tell now and then how far the unit is."""
        if time.monotonic() - self.told >= TELLS_EVERY_S:
            self.told = time.monotonic()
            self.tell(answered)

    def _serve(self) -> None:
        while (asked := self.wanted.get()) is not None:
            units: deque[Packed] = deque()
            results = self.engine.run(self.work, units, watch=self, stop=self.stop)
            try:
                while asked is not None:
                    unit, done = asked
                    units.append(unit)
                    try:
                        done.set_result(next(results)[1])
                    except StopIteration:
                        done.set_exception(AdverseError("the run was stopped"))
                    asked = self.wanted.get(timeout=IDLE_S)
            except queue.Empty:
                pass  # the process ends; the next unit starts another
            except BaseException as error:  # noqa: BLE001 - it belongs to whoever waits for the unit
                done.set_exception(error)
            finally:
                results.close()  # type: ignore[attr-defined]
            if asked is None:
                return

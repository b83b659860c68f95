"""The batch size of a SUT, where the study leaves it open: larger ones are tried until they no longer help.

The trial is work for an engine like any other, so that it runs where the study will: on a GPU of the cluster,
say. A SUT is tried in a process of its own. One that runs out of memory there, or dies, ends the trial at the
size below and costs nothing else. The number that was chosen is what keys record and a run folder keeps; how
long anything took decides no result.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil

from adverse.content import Changed, ChangedError, PlannedFiles
from adverse.errors import IncompleteError, InfrastructureError, StudyError, SutError, one_line
from adverse.plugins import Registry
from adverse.study.attempts import AttemptLog
from adverse.study.engines import Engine, Silent, Stop, Watcher
from adverse.study.frame_versions import FrameVersions
from adverse.study.job import StudyJob, SutTask, WorkUnit
from adverse.study.plan import StudyPlan, with_batches
from adverse.study.spec import AUTO, StudyFile
from adverse.study.stages import NOTHING_TO_AVOID, Avoid, Stage
from adverse.study.worker import Worker
from adverse.suts.ask import ask
from adverse.suts.build import is_recorded
from adverse.types import Image

LARGEST = 256
"""Images of the largest batch that is tried."""
ROUNDS = 3
"""How often each size is timed; the fastest counts, as others were disturbed."""
ENOUGH = 1.1
"""The smallest size is taken that takes at most so many times what an image of the best size takes."""
MEMORY_SHARE = 0.8
"""Of the memory that a SUT may use, what a batch may take: other frames may need more."""
IN_PROCESS = "python"
"""The adapter of Python objects, which live in this process and in no other."""
LONGEST_S = 60.0
"""No larger size is begun after so long."""


@dataclass(frozen=True)
class SizeTried:
    """What a batch of a size took for each of its images, and the most memory that the SUT's process had."""

    batch: int
    image_s: float
    memory_mb: float | None = None


@dataclass(frozen=True)
class BatchTrial:
    """All sizes that were tried, smallest first, and why no larger one was; `unreachable` before any was."""

    tried: tuple[SizeTried, ...]
    ended: str
    unreachable: InfrastructureError | None = None

    @property
    def chosen(self) -> int:
        """The smallest size that is about as fast as any.

        >>> BatchTrial((SizeTried(1, 0.9), SizeTried(2, 0.5), SizeTried(4, 0.48)), "").chosen
        2
        """
        best_s = min((size.image_s for size in self.tried), default=0.0)
        return next((size.batch for size in self.tried if size.image_s <= ENOUGH * best_s), 1)

    def facts(self) -> dict[str, Any]:
        """Return what the manifest says of it."""
        tried = [
            {"batch": one.batch, "image_s": round(one.image_s, 6), "memory_mb": one.memory_mb}
            for one in self.tried
        ]
        return {"tried": tried, "ended": self.ended}


@dataclass(frozen=True)
class TrialUnit:
    """One SUT, and frames of one unit of the study to try it on."""

    sut: int
    unit: WorkUnit


@dataclass(frozen=True)
class TrialWork:
    """The work of finding batch sizes, as engines know it."""

    job: StudyJob
    registry: Registry | None = None

    def __reduce__(self) -> tuple[type[TrialWork], tuple[StudyJob]]:
        """Leave the plug-ins behind: another process loads them itself."""
        return TrialWork, (self.job,)

    @property
    def plugin_files(self) -> tuple[Path, ...]:
        """Loaded before anything else is unpacked."""
        return self.job.plugin_files

    @property
    def suts(self) -> tuple[SutTask, ...]:
        """The SUTs of the study."""
        return self.job.suts

    def worker(
        self,
        tell: Callable[[Stage], None],
        *,
        memory_limit_mb: int | None = None,
        attempts: AttemptLog | None = None,  # noqa: ARG002 - requests of a trial count for no SUT
    ) -> TrialWorker:
        """Return what tries SUTs in the process that this is called in."""
        return TrialWorker(self, tell, memory_limit_mb)


class TrialWorker:
    """Tries one SUT after the other."""

    def __init__(self, work: TrialWork, tell: Callable[[Stage], None], memory_limit_mb: int | None) -> None:
        self.work = work
        self.tell = tell
        self.memory_limit_mb = memory_limit_mb

    def do(
        self,
        unit: TrialUnit,
        *,
        isolate: frozenset[int],  # noqa: ARG002 - each is tried alone in any case
        avoid: Avoid = NOTHING_TO_AVOID,
    ) -> BatchTrial | Changed:
        """Return what came of trying a SUT."""
        worker = Worker(
            self.work.job, self.tell, registry=self.work.registry, memory_limit_mb=self.memory_limit_mb
        )
        try:
            return worker.unless_changed(lambda: self._trial(worker, unit, avoid))
        finally:
            worker.close()

    def close(self) -> None:
        """Hold nothing."""

    def _trial(self, worker: Worker, unit: TrialUnit, avoid: Avoid) -> BatchTrial:
        images = _images(worker, unit.unit, avoid)
        if not images:
            return BatchTrial((), "no frame of the sample could be read")
        try:
            task = self.work.job.suts[unit.sut]
            loaded = worker.sut(unit.sut, alone=task.adapter != IN_PROCESS)
        except InfrastructureError as error:
            return BatchTrial((), str(error), error)
        limit_mb = loaded.task.memory_limit_mb or self.memory_limit_mb

        def show(batch: Sequence[Image]) -> None:
            stage = f"timing batches of {len(batch)} for SUT {loaded.task.name!r}"
            self.tell(Stage(stage, unit.unit.frames[0].id))
            with loaded.access.noted():
                loaded.check(ask(loaded.sut, list(batch), name=loaded.task.name))

        def memory_mb() -> float | None:
            pid = getattr(loaded.sut, "pid", None)
            return _most_memory_mb(pid) if isinstance(pid, int) else None

        return try_sizes(images, show, memory_mb=memory_mb, limit_mb=limit_mb)


def try_sizes(
    images: Sequence[Image],
    show: Callable[[Sequence[Image]], None],
    *,
    memory_mb: Callable[[], float | None],
    limit_mb: int | None,
    clock: Callable[[], float] = time.perf_counter,
) -> BatchTrial:
    """Show batches of 1, 2, 4 and so on images, and of all; stop where one fails or takes too much memory."""
    begun, tried = clock(), list[SizeTried]()
    for size in _sizes(len(images)):
        if clock() - begun > LONGEST_S:
            return BatchTrial(tuple(tried), f"{LONGEST_S:g} s were over")
        taken_s = []
        try:
            show(images[:size])  # whatever is done once for each size
            for _ in range(ROUNDS):
                before = clock()
                show(images[:size])
                taken_s.append(clock() - before)
        except InfrastructureError as error:
            return BatchTrial(tuple(tried), f"batch {size}: {one_line(error)}", None if tried else error)
        except SutError as error:
            return BatchTrial(tuple(tried), f"batch {size}: {one_line(error)}")
        used_mb = memory_mb()
        if tried and limit_mb is not None and used_mb is not None and used_mb > MEMORY_SHARE * limit_mb:
            share = f"more than {MEMORY_SHARE:.0%} of {limit_mb} MB"
            return BatchTrial(tuple(tried), f"batch {size}: {used_mb:.0f} MB, {share}")
        tried.append(SizeTried(size, min(taken_s) / size, used_mb))
    return BatchTrial(tuple(tried), f"a unit has no more than {len(images)} images under one setting")


def settle_batches(
    plan: StudyPlan, before: Mapping[str, Any], engine: Engine, *, watch: Watcher, stop: Stop
) -> StudyPlan:
    """Return a plan in which every batch size is a number: as the run folder has it, or as a trial finds it.

    `before` is the manifest of the folder, or nothing.
    """
    plan = kept_batches(plan, before)
    units: deque[TrialUnit] = deque()
    left = [index for index, task in enumerate(plan.job.suts) if task.name in plan.open_batches]
    if not left:
        return plan
    sample = _sample(plan)
    results = engine.run(TrialWork(plan.job, plan.registry), units, watch=_Notes(watch), stop=stop)
    found: dict[str, int] = {}
    facts: dict[str, Mapping[str, Any]] = {}
    with contextlib.closing(results) as trials:  # type: ignore[type-var]
        for index in left:  # one after the other: side by side they would time each other
            units.append(TrialUnit(index, sample))
            _, trial = next(trials, (None, None))
            name = plan.job.suts[index].name
            if trial is None:
                raise IncompleteError(
                    "the run was stopped before the batch sizes were found",
                    where=plan.file.where("suts", index),
                    fix="Run the same command again, or write a number: batch: 8.",
                )
            if isinstance(trial, Changed):
                raise ChangedError(trial.files)
            if trial.unreachable is not None:
                raise _unreachable(trial.unreachable, plan.file.where("suts", index))
            found[name], facts[name] = trial.chosen, trial.facts()
            watch.note(f"SUT {name!r} is shown {_counted(trial.chosen)} at once (batch: auto)")
    return with_batches(plan, found, facts)


def kept_batches(plan: StudyPlan, before: Mapping[str, Any]) -> StudyPlan:
    """Return a plan with the batch sizes that a run folder has for the same SUTs."""
    found: dict[str, int] = {}
    facts: dict[str, Mapping[str, Any]] = {}
    for task in plan.job.suts:
        entry = before.get("suts", {}).get(task.name, {})
        if is_recorded(plan.registry.get("sut", task.adapter)):
            found[task.name] = 1
        elif entry.get("fingerprint") == task.fingerprint and "batch" in entry:
            found[task.name] = int(entry["batch"])
            facts[task.name] = entry.get("batch_trial", {})
    open_ones = plan.open_batches
    found = {name: size for name, size in found.items() if name in open_ones}
    facts = {name: some for name, some in facts.items() if name in open_ones and some}
    return with_batches(plan, found, facts) if found else plan


def refuse_open_batches(file: StudyFile, command: str) -> None:
    """Raise where the study leaves a batch size open to a command that does not look for it."""
    for index, section in enumerate(file.study.suts):
        if section.batch == AUTO:
            raise StudyError(
                f"{command} does not look for batch sizes",
                where=file.where("suts", index, "batch"),
                got="batch: auto",
                wanted="a number",
                fix="Write the number that adverse run has found (in manifest.json), or leave batch: out.",
            )


def _sizes(most: int) -> list[int]:
    """Return the sizes to try.

    >>> _sizes(8), _sizes(6), _sizes(1)
    ([1, 2, 4, 8], [1, 2, 4, 6], [1])
    """
    most = min(most, LARGEST)
    return [*(2**power for power in range(most.bit_length()) if 2**power < most), most]


def _sample(plan: StudyPlan) -> WorkUnit:
    """Return the largest unit with the test frames that are left to do, without cells."""
    unit = max(plan.to_do or plan.units, key=lambda unit: len(unit.frames))
    return replace(unit, cells=(), frames=unit.frames[:LARGEST], twice=frozenset())


def _images(worker: Worker, unit: WorkUnit, avoid: Avoid) -> list[Image]:
    """Return the images of a unit without a mutation."""
    files = PlannedFiles(unit.inputs)
    versions = (
        FrameVersions(
            files.of(frame), worker.job, worker.registry, avoid=avoid, tell=worker.tell, twice=False
        ).version(worker.job.settings[0])
        for frame in unit.frames
    )
    images = [version.image for version in versions if version.image is not None]
    if files.changed:
        raise ChangedError(files.changed)
    return images


def _most_memory_mb(pid: int) -> float | None:
    """Return the most memory that a process has had; where the system does not say, what it has now."""
    with contextlib.suppress(OSError, ValueError, KeyError):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        facts = dict(line.split(":", 1) for line in lines)
        return round(int(facts["VmHWM"].split()[0]) / 1024, 1)
    with contextlib.suppress(psutil.Error):
        return round(psutil.Process(pid).memory_info().rss / 2**20, 1)
    return None


def _unreachable(error: InfrastructureError, where: str) -> IncompleteError:
    return IncompleteError(
        "the batch size cannot be found: the SUT cannot be reached",
        where=where,
        got=one_line(error),
        fix="Start what it needs and run the same command again, or write a number: batch: 8.",
    )


class _Notes(Silent):
    """Passes on what is worth a line, and not how far a trial is."""

    def __init__(self, watch: Watcher) -> None:
        self.note = watch.note  # type: ignore[method-assign]


def _counted(images: int) -> str:
    return "1 image" if images == 1 else f"{images} images"

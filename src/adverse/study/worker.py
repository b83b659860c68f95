"""The work of a run on any machine: the frames of a unit in, the records of its finished cells out.

Or nothing, where a file that the unit reads, or a SUT is made of, is not the one that was planned.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from adverse import plugins
from adverse.content import Changed, ChangedError, HeldFiles, PlannedFiles, content_hash
from adverse.errors import AdverseError, IncompleteError
from adverse.plugins import Plugin, Registry
from adverse.store.records import Record, to_parquet
from adverse.study.frame_versions import FrameVersions
from adverse.study.job import StudyJob, SutTask, UnitRecords, WorkUnit
from adverse.study.loaded_sut import LoadedSut
from adverse.study.stages import LOAD_LIMIT_S, NOTHING_TO_AVOID, Avoid, Stage
from adverse.study.sut_queue import SutQueue
from adverse.suts.build import build, is_recorded, watches_itself
from adverse.suts.child import isolated
from adverse.suts.fingerprint import described, hashes_of

R = TypeVar("R")
ATTEMPTS = 3
"""How often a unit is done while somebody writes to the files of its SUTs, although with the same bytes."""


@dataclass(frozen=True)
class StudyWork:
    """A job as engines know it. `registry` holds the plug-ins, where this process has loaded them already."""

    job: StudyJob
    registry: Registry | None = None

    def __reduce__(self) -> tuple[type[StudyWork], tuple[StudyJob]]:
        """Leave the plug-ins behind: another process loads them itself."""
        return StudyWork, (self.job,)

    @property
    def plugin_files(self) -> tuple[Path, ...]:
        """LoadedSut before anything else is unpacked."""
        return self.job.plugin_files

    @property
    def suts(self) -> tuple[SutTask, ...]:
        """The SUTs of the study."""
        return self.job.suts

    def worker(self, tell: Callable[[Stage], None], *, memory_limit_mb: int | None = None) -> Worker:
        """Return what does units in the process that this is called in."""
        return Worker(self.job, tell, registry=self.registry, memory_limit_mb=memory_limit_mb)


class Worker:
    """Does units and keeps its SUTs loaded between them. `tell` hears of every step before it is taken."""

    def __init__(
        self,
        job: StudyJob,
        tell: Callable[[Stage], None],
        *,
        registry: Registry | None = None,
        memory_limit_mb: int | None = None,
    ) -> None:
        self.job = job
        self.memory_limit_mb = memory_limit_mb
        self.tell = tell
        self.registry = plugins.load(job.plugin_files) if registry is None else registry
        self._check_code()
        self._suts: dict[tuple[int, bool], LoadedSut] = {}
        self._held: dict[tuple[int, bool], HeldFiles] = {}

    def do(
        self, unit: WorkUnit, *, isolate: frozenset[int] = frozenset(), avoid: Avoid = NOTHING_TO_AVOID
    ) -> UnitRecords | Changed:
        """Return the records of a unit; `isolate` names the SUTs to run in a process of their own."""
        return self.unless_changed(lambda: self._records(unit, isolate, avoid))

    def unless_changed(self, work: Callable[[], R]) -> R | Changed:
        """Return what some work comes to if all files it rests on are what was planned, from start to end."""
        written: set[Path] = set()
        for _ in range(ATTEMPTS):
            try:
                result = work()
            except ChangedError as error:
                return Changed(error.files)
            except AdverseError:
                touched = self._let_go_of_touched()
                if not touched:
                    raise
            else:
                touched = self._let_go_of_touched()
                if not touched:
                    return result
            written |= touched
        return Changed({path: content_hash(path) for path in written})

    def _records(self, unit: WorkUnit, isolate: frozenset[int], avoid: Avoid) -> UnitRecords:
        """Return the records of a unit.

        Setting by setting, so that a batch holds frames of one setting and does not depend on which other
        cells the unit has.
        """
        records: dict[tuple[str, str, str], Record] = {}

        def keep(record: Record) -> None:
            records[record.frame, record.setting, record.sut] = record

        suts = {index: self.sut(index, alone=index in isolate) for index in {c.sut for c in unit.cells}}
        for sut in suts.values():
            sut.outage = None
        files = PlannedFiles(unit.inputs)
        frames = [
            FrameVersions(files.of(frame), self.job, self.registry, avoid=avoid, tell=self.tell)
            for frame in unit.frames
        ]
        for index in sorted({cell.setting for cell in unit.cells}):
            setting = self.job.settings[index]
            suts_of_setting = [suts[cell.sut] for cell in unit.cells if cell.setting == index]
            queues = [
                SutQueue(sut, twice=unit.twice, avoid=avoid, tell=self.tell, keep=keep)
                for sut in suts_of_setting
            ]
            looking = any(sut.looks and sut.outage is None for sut in suts_of_setting)
            for frame in frames:
                version = frame.version(setting) if looking else frame.unseen(setting)
                for queue in queues:
                    queue.add(version)
            for queue in queues:
                queue.flush()
            if files.changed:
                raise ChangedError(files.changed)
        order = [
            (frame.id, self.job.settings[cell.setting].id, self.job.suts[cell.sut].name)
            for frame in unit.frames
            for cell in unit.cells
        ]
        return _unit_records([records[key] for key in order])

    def close(self) -> None:
        """Let go of the SUTs that hold something."""
        for loaded in self._suts.values():
            _close(loaded)

    def _check_code(self) -> None:
        """Raise where a plug-in that this process has loaded is another one than was planned."""
        for (kind, name), code in self.job.code.items():
            if self.registry.get(kind, name).code != code:
                raise IncompleteError(
                    f"the code of the {kind} {name!r} was changed after the run was planned",
                    where=", ".join(map(str, self.job.plugin_files)) or None,
                    fix="Run the same command again: what the change affects is run again.",
                )

    def _let_go_of_touched(self) -> set[Path]:
        """Return the files of SUTs that were written to since loading; these SUTs are loaded again."""
        touched: set[Path] = set()
        for key, held in list(self._held.items()):
            written = held.written_to()
            if written:
                del self._held[key]
                loaded = self._suts.pop(key, None)
                if loaded is not None:
                    _close(loaded)
                touched.update(written)
        return touched

    def sut(self, index: int, *, alone: bool) -> LoadedSut:
        """Return a SUT, loaded on first use; `alone` in a process of its own.

        Raises ChangedError where its files are not those that were planned.
        """
        task = self.job.suts[index]
        plugin = self.registry.get("sut", task.adapter)
        guarded = watches_itself(plugin)
        alone = alone and not guarded and not is_recorded(plugin)
        loaded = self._suts.get((index, alone))
        if loaded is not None:
            return loaded
        suspect, limit_s = (None, None) if alone or guarded else (index, LOAD_LIMIT_S)
        self.tell(Stage(f"loading SUT {task.name!r}", sut=suspect, limit_s=limit_s))
        planned = hashes_of(task.made_of)
        self._held[index, alone] = HeldFiles(planned, lambda: _files_now(plugin, task.options, planned))
        default_class = self.job.targets[0]
        if alone:
            sut: Any = isolated(
                task.adapter,
                task.options,
                self.job.plugin_files,
                name=task.name,
                timeout_s=task.timeout_s,
                memory_limit_mb=task.memory_limit_mb,
                share_mb=self.memory_limit_mb,
                default_class=default_class,
            )
        else:
            sut = build(plugin, task.options, name=task.name, default_class=default_class)
        self._suts[index, alone] = LoadedSut(index, sut, self.job, isolated=alone or guarded)
        return self._suts[index, alone]


def _unit_records(records: Sequence[Record]) -> UnitRecords:
    """Leave out the cells whose SUT could not be reached for one of their images, and count the others."""
    unreachable = {
        (record.setting, record.sut): record.reason or ""
        for record in records
        if record.status == "unreachable"
    }
    finished = [record for record in records if (record.setting, record.sut) not in unreachable]
    statuses = Counter(
        "retried" if record.status == "ok" and record.failed_attempts else record.status
        for record in finished
    )
    return UnitRecords(to_parquet(finished), statuses, unreachable)


def _files_now(plugin: Plugin, options: Mapping[str, Any], planned: Mapping[Path, str]) -> dict[Path, str]:
    """Return the hashes of the files that a SUT would be loaded from now."""
    try:
        return hashes_of(described(plugin, options))
    except AdverseError:  # one of them is gone
        return {path: content_hash(path) for path in planned}


def _close(loaded: LoadedSut) -> None:
    closing = getattr(loaded.sut, "close", None)
    if callable(closing):
        closing()

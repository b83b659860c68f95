"""The work of a run on any machine: the frames of a unit in, the records of its finished cells out.

Or nothing, where a file that the unit reads, or a SUT is made of, is not the one that was planned.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from adverse import plugins
from adverse.content import Changed, ChangedError, HeldFiles, PlannedFiles, content_hash
from adverse.errors import AdverseError, IncompleteError, SutError
from adverse.file_access import FileAccess, access_of_plugin
from adverse.file_access.identity import is_code
from adverse.file_access.processes import files_of_program
from adverse.mutations.settings import BASELINE
from adverse.plugins import Plugin, Registry
from adverse.store.records import MUTATION_ENDED, Record, to_parquet
from adverse.study.attempts import AttemptLog, WorkerDeath
from adverse.study.basis import MUTATIONS, PLUGINS, sut_owner
from adverse.study.environment import environment
from adverse.study.frame_versions import FrameVersions
from adverse.study.job import StudyJob, SutTask, UnitRecords, WorkUnit
from adverse.study.loaded_sut import LoadedSut
from adverse.study.stages import LOAD_LIMIT_S, NOTHING_TO_AVOID, Avoid, Stage
from adverse.study.sut_queue import SutQueue, with_death
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
        attempts: AttemptLog | None = None,
    ) -> Worker:
        """Return what does units in the process that this is called in."""
        return Worker(
            self.job, tell, registry=self.registry, memory_limit_mb=memory_limit_mb, attempts=attempts
        )


class Worker:
    """Does units and keeps its SUTs loaded between them. `tell` hears of every step before it is taken."""

    def __init__(
        self,
        job: StudyJob,
        tell: Callable[[Stage], None],
        *,
        registry: Registry | None = None,
        memory_limit_mb: int | None = None,
        attempts: AttemptLog | None = None,
    ) -> None:
        self.job = job
        self.attempts = AttemptLog() if attempts is None else attempts
        self.memory_limit_mb = memory_limit_mb
        self.tell = tell
        self.registry = plugins.load(job.plugin_files) if registry is None else registry
        self._check_code()
        self._suts: dict[tuple[int, bool], LoadedSut] = {}
        self._held: dict[tuple[int, bool], HeldFiles] = {}
        self._access: dict[tuple[int, bool], FileAccess] = {}
        self._mutations = FileAccess()
        self._plugins = [access_of_plugin(path.resolve()) for path in job.plugin_files]
        self._sources = frozenset(map(str, self.registry.sources()))
        self._changed_code: dict[Path, str] = {}

    def do(
        self, unit: WorkUnit, *, isolate: frozenset[int] = frozenset(), avoid: Avoid = NOTHING_TO_AVOID
    ) -> UnitRecords | Changed:
        """Return the records of a unit; `isolate` names the SUTs to run in a process of their own."""
        unit = replace(unit, cells=tuple(unit.cells))
        done = self.unless_changed(lambda: self._records(unit, isolate, avoid))
        if isinstance(done, Changed):
            return done
        return replace(
            done,
            files=self.files_read({cell.sut for cell in unit.cells}, mutated=_is_mutated(self.job, unit)),
            environment=environment(),
        )

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
            if self._changed_code:
                break
            written |= touched
            self.attempts.restart()
        return Changed({path: content_hash(path) for path in written} | self._changed_code)

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
            sut.begin()
        files = PlannedFiles(unit.inputs)
        frames = [
            FrameVersions(
                files.of(frame),
                self.job,
                self.registry,
                avoid=avoid,
                tell=self.tell,
                access=self._mutations,
                twice=frame.id in unit.twice,
            )
            for frame in unit.frames
        ]
        sampled: list[SutQueue] = []
        for index in sorted({cell.setting for cell in unit.cells}):
            setting = self.job.settings[index]
            suts_of_setting = [suts[cell.sut] for cell in unit.cells if cell.setting == index]
            queues = [SutQueue(sut, twice=unit.twice, tell=self.tell, keep=keep) for sut in suts_of_setting]
            looking = any(sut.looks and sut.outage is None for sut in suts_of_setting)
            looking = looking or self.job.localizes_on_mutated  # depth then needs the image
            for frame in frames:
                version = frame.version(setting) if looking else frame.unseen(setting)
                for queue in queues:
                    queue.add(version)
            for queue in queues:
                queue.flush()
            sampled += [queue for queue in queues if queue.sampled]
            if files.changed:
                raise ChangedError(files.changed)
        for queue in sampled:
            queue.ask_again()
        order = [
            (frame.id, self.job.settings[cell.setting].id, self.job.suts[cell.sut].name)
            for frame in unit.frames
            for cell in unit.cells
        ]
        for death in self.attempts.deaths:
            self._count_death(death, suts, records)
        late = {
            (setting.id, self.job.suts[cell.sut].name): avoid.late[frame.id, setting.id]
            for cell in unit.cells
            for setting in (self.job.settings[cell.setting],)
            for frame in unit.frames
            if (frame.id, setting.id) in avoid.late
        }
        made = _unit_records([records[key] for key in order])
        return replace(
            made,
            late=late,
            crashed=frozenset(sut.index for sut in suts.values() if sut.crashed),
            faults=tuple(fault for sut in suts.values() for fault in sut.faults),
        )

    def _count_death(
        self,
        death: WorkerDeath,
        suts: Mapping[int, LoadedSut],
        records: dict[tuple[str, str, str], Record],
    ) -> None:
        """Count the death of a worker for the SUT that did it; where that cannot be told, for each it held.

        Whoever dies in a process of its own too has done it, and has faults of its own by then. Of a SUT that
        was asked when the worker died, the attempt counts in any case.
        """
        asked = [sut for index, sut in suts.items() if index == death.sut]
        if any((death.frame, death.setting) in sut.own_deaths for sut in asked):
            return
        held = [
            sut for index, sut in suts.items() if self._runs_inside(index) and index not in death.isolated
        ]
        guilty = [sut for sut in held if sut.crashed] or (asked if held == asked else [])
        kind, how, blamed = "unattributed", death.how, asked
        if not guilty:
            blamed = held
            how += "; no SUT died alone, so it counts for each SUT that the worker held"
        elif set(asked) <= set(guilty):
            kind = "crash"
        else:
            how += f"; {' and '.join(repr(sut.task.name) for sut in guilty)}, which it held too, died alone"
        for sut in blamed:
            _count_for(sut, death, kind, how, records)

    def _runs_inside(self, index: int) -> bool:
        """Return whether the code of a SUT runs in workers unless it is isolated."""
        plugin = self.registry.get("sut", self.job.suts[index].adapter)
        return not watches_itself(plugin) and not is_recorded(plugin)

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
        """Return the files of SUTs that were written to since loading; these SUTs are loaded again.

        What a process cannot load again, such as a module, is changed for as long as the process lives.
        """
        touched: set[Path] = set()
        fixed = self._mutations.settle(self._sources)
        fixed |= {path for access in self._plugins for path in access.settle(self._sources)}
        for key, held in list(self._held.items()):
            read = self._read_by_sut(key)
            written = [*held.written_to(), *read]
            fixed |= {path for path in read if is_code(path)}
            if written:
                del self._held[key]
                loaded = self._suts.pop(key, None)
                if loaded is not None:
                    _close(loaded)
                touched.update(written)
        self._changed_code |= {path: content_hash(path) for path in fixed}
        return touched | set(self._changed_code)

    def _read_by_sut(self, key: tuple[int, bool]) -> set[Path]:
        """Hash what a SUT has read, and return what was written to meanwhile."""
        access, loaded = self._access[key], self._suts.get(key)
        program = getattr(loaded.sut, "pid", None) if loaded is not None else None
        if isinstance(program, int):
            access.add(files_of_program(program))
        planned = frozenset(str(path) for path in hashes_of(self.job.suts[key[0]].made_of))
        return access.settle(self._sources | planned)

    def files_read(self, suts: set[int], *, mutated: bool) -> dict[str, dict[str, str]]:
        """Return the hashes of the files that the answers of SUTs rest on, by whose code has read them."""
        found: dict[str, dict[str, str]] = {}
        for (index, _), access in self._access.items():
            if index in suts:
                found.setdefault(sut_owner(self.job.suts[index].name), {}).update(access.hashes)
        if mutated:
            found[MUTATIONS] = dict(self._mutations.hashes)
        found[PLUGINS] = {path: sha256 for access in self._plugins for path, sha256 in access.hashes.items()}
        return {owner: hashes for owner, hashes in found.items() if hashes}

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
        self._held[index, alone] = HeldFiles(planned, lambda: _files_now(plugin, task, planned))
        access = self._access[index, alone] = FileAccess(self._access.get((index, alone)))
        try:
            with access.noted():
                sut = self._built(task, plugin, alone=alone)
                loaded = LoadedSut(
                    index, sut, self.job, isolated=alone or guarded, access=access, attempts=self.attempts
                )
        except SutError as error:
            if task.name in (error.where or ""):
                raise
            raise error.placed(f"SUT {task.name!r}") from error
        self._suts[index, alone] = loaded
        return loaded

    def _built(self, task: SutTask, plugin: Plugin, *, alone: bool) -> Any:
        default_class = self.job.targets[0]
        if not alone:
            return build(plugin, task.options, name=task.name, default_class=default_class)
        return isolated(
            task.adapter,
            task.options,
            self.job.plugin_files,
            name=task.name,
            timeout_s=task.timeout_s,
            memory_limit_mb=task.memory_limit_mb,
            share_mb=self.memory_limit_mb,
            default_class=default_class,
        )


def _count_for(
    sut: LoadedSut, death: WorkerDeath, kind: str, how: str, records: dict[tuple[str, str, str], Record]
) -> None:
    """Count the death of a worker as an attempt about the frame of its last step, or the first one."""
    name = sut.task.name
    mine = [key for key, record in records.items() if key[2] == name and record.attempts]
    key = next((key for key in mine if key[:2] == (death.frame, death.setting)), mine[0] if mine else None)
    if key is not None:
        records[key] = with_death(records[key], how, kind)


def _is_mutated(job: StudyJob, unit: WorkUnit) -> bool:
    return any(job.settings[cell.setting].id != BASELINE for cell in unit.cells)


def _unit_records(records: Sequence[Record]) -> UnitRecords:
    """Leave out the cells whose SUT could not be reached for one of their images, and count the others."""
    unreachable = {
        (record.setting, record.sut): record.reason or ""
        for record in records
        if record.status == "unreachable"
    }
    finished = [record for record in records if (record.setting, record.sut) not in unreachable]
    statuses = Counter(
        "retried" if record.status == "ok" and record.retried else record.status for record in finished
    )
    faulty = frozenset((record.setting, record.sut) for record in finished if _again(record))
    cut_short = [record for record in records if (record.setting, record.sut) in unreachable]
    asked = [record for record in cut_short if record.attempts or record.outages]
    unfinished = to_parquet(asked) if asked else b""
    return UnitRecords(to_parquet(finished), statuses, unreachable, faulty=faulty, unfinished=unfinished)


def _again(record: Record) -> bool:
    """Return whether --retry-faults asks again: for a fault, or a frame whose preparation was ended."""
    ended = record.status == "quarantined" and (record.reason or "").startswith(MUTATION_ENDED)
    return record.status == "fault" or ended


def _files_now(plugin: Plugin, task: SutTask, planned: Mapping[Path, str]) -> dict[Path, str]:
    """Return the hashes of the files that a SUT would be loaded from now."""
    try:
        return hashes_of(described(plugin, task.options, task.files))
    except AdverseError:  # one of them is gone
        return {path: content_hash(path) for path in planned}


def _close(loaded: LoadedSut) -> None:
    closing = getattr(loaded.sut, "close", None)
    if callable(closing):
        closing()

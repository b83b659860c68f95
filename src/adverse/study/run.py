"""Run a study: plan, do what is not done yet, make each finished unit durable. Resuming is the same thing.

What a SUT could not do, for want of a connection or of memory, is not done: such a run ends incomplete,
and the next one asks again.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, Protocol

from adverse.content import Changed, ChangedError, content_hash, digest
from adverse.errors import IncompleteError, StoreError
from adverse.store.durable import storage_errors, write_file
from adverse.store.earlier_attempts import Key, added, attempts_in, with_earlier
from adverse.store.folder import RunFolder, sut_log
from adverse.store.journal import AskedCells, FinishedCells, RunEntry, RunJournal
from adverse.store.records import keys_in
from adverse.store.run import differences, input_differences, kill_remarks
from adverse.store.seal_list import SIGNATURE
from adverse.store.seals import drop_of_other_states, mark_pages, state_of, sweep
from adverse.store.status import StatusFile
from adverse.study.basis import (
    Basis,
    Owners,
    environments_in_use,
    forget_changed,
    written_warnings,
)
from adverse.study.batch_trial import kept_batches, settle_batches
from adverse.study.depth_maps import prune_cache, summary
from adverse.study.engines import Engine, Stop, Watcher
from adverse.study.environment import environment, environment_id, mixture
from adverse.study.job import SutFault, UnitRecords, WorkUnit
from adverse.study.plan import StudyPlan, make_plan
from adverse.study.provenance import (
    cells_table,
    describe,
    frames_table,
    inputs_table,
    planned_table,
    truth_table,
)
from adverse.study.shifted_truth import shift_warnings
from adverse.study.spec import StudyFile, to_yaml
from adverse.study.time_estimate import WORTH_TIMING, TimeEstimate, estimate_time
from adverse.study.unit_size import settle_unit_frames
from adverse.study.units import frames_of
from adverse.study.worker import StudyWork
from adverse.suts.build import is_recorded

SUT_LOG_BYTES = 1 << 20
"""From this length on the log of a SUT takes no more faults."""
KILLED = (
    "the run before was killed: what SUTs were asked in units that it had begun but not finished "
    "is not in the counts of attempts"
)
Status = Literal["complete", "interrupted", "incomplete"]


class RunWatcher(Watcher, Protocol):
    """Hears how a run goes on."""

    def begin(self, total: int, done: int) -> None:
        """Work starts: so many (frame, mutation, SUT) in all, so many done before."""

    def advance(self, statuses: Counter[str]) -> None:
        """So many more are finished, by status; `retried` are ok, but only on a retry."""

    def end(self) -> None:
        """No more work."""


@dataclass(frozen=True)
class StudyRun:
    """How a run went; `problem` says why it is incomplete."""

    folder: RunFolder
    plan: StudyPlan
    status: Status
    units_run: int
    problem: IncompleteError | None = None


def run_study(
    file: StudyFile,
    out: Path,
    engine: Engine,
    *,
    watch: RunWatcher,
    stop: Stop,
    fresh: bool = False,
    retry_faults: bool = False,
    tell_time: Callable[[TimeEstimate | None], None] | None = None,
) -> StudyRun:
    """Run what is not done yet of a study, in its run folder; `retry_faults`: also what SUTs failed at.

    With `tell_time`, a sample is timed first where much is left to do, and it hears how long that takes.
    """
    folder = RunFolder(out)
    watch = StatusFile(folder, watch, engine.name, engine.activity)
    signed = (out / SIGNATURE).exists()
    with folder.in_use(fresh=fresh, note=watch.note):
        if signed and not (out / SIGNATURE).exists():
            watch.note(f"deleted {SIGNATURE}: the run it signed is gone")
        ended_before = _ended(folder)
        plan, journal, manifest, basis = _prepare(
            file, folder, engine, watch, stop, retry_faults=retry_faults
        )
        units = plan.to_do
        total = plan.pictures(plan.units)
        if tell_time is not None and plan.pictures(units) >= WORTH_TIMING:
            tell_time(estimate_time(plan, workers=engine.workers or 1, stop=stop))
        watch.begin(total, total - plan.pictures(units))
        finished = dropped = 0
        changed: dict[Path, str] = {}
        outages, asked = Outages(), journal.asked()
        try:
            work = StudyWork(plan.job, plan.registry)
            for unit, result in engine.run(work, units, watch=watch, stop=stop):
                others = result.files if isinstance(result, Changed) else basis.other_files(result.files)
                if isinstance(result, Changed) or others:
                    changed |= others
                    dropped += 1
                    continue
                if not basis.knows(result):
                    folder.write_manifest(_running(manifest, basis))
                basis.add(result.files)
                _keep(folder, journal, plan, unit, result, outages, asked)
                watch.advance(result.statuses)
                finished += 1
        finally:
            watch.end()
            done = journal.finished()
            write_file(folder.cells, cells_table(plan, done))
            status = _status(len(units), finished, dropped, outages)
            environments = environments_in_use(done.in_use(), basis)
            files_read = Basis.of(journal.entries, {}).as_left()
            written = written_warnings(files_read)
            doubts = [*written, *_shift_warnings(folder, plan, done)]
            _warn(watch, doubts)
            facts = {
                "status": status,
                "warnings": [*plan.warnings, *mixture(environments), *doubts],
                "environments": environments,
                "files_read": files_read,
                "changed": {str(path): sha256 for path, sha256 in sorted(changed.items())},
                "outages": outages.facts(),
                "depth": summary(frames_of(plan.dataset), plan.inputs),
                "finished": _now() if finished else ended_before,
            }
            folder.write_manifest({**manifest, **facts})
            if facts["depth"] is not None:
                _prune_depths(plan, watch)
            if status == "complete":
                _tidy(folder, watch)
    problem: IncompleteError | None = ChangedError(changed, where=out) if changed else None
    if problem is None and status == "incomplete":
        problem = outages.error(plan, folder)
    return StudyRun(folder, plan, status, finished, problem)


def _shift_warnings(folder: RunFolder, plan: StudyPlan, done: FinishedCells) -> list[str]:
    with contextlib.suppress(OSError, ValueError):  # a file was damaged meanwhile: `verify` says which
        return shift_warnings(folder, plan, done)
    return []


def _tidy(folder: RunFolder, watch: RunWatcher) -> None:
    """Leave nothing in the folder of a complete run that is not of it, and say what somebody may miss."""
    sweep(folder)
    for line in drop_of_other_states(folder, state_of(folder, folder.read_manifest())):
        watch.note(line)
    mark_pages(folder, older=False)


def _prune_depths(plan: StudyPlan, watch: RunWatcher) -> None:
    pruned = prune_cache(frames_of(plan.dataset), plan.inputs)
    if pruned.deleted:
        watch.note(pruned.words())


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _as_begun(file: StudyFile, folder: RunFolder) -> StudyFile:
    """Return a study cut into units as in the folder, so that what a search ran there serves again."""
    with contextlib.suppress(StoreError):
        if folder.read_manifest().get("study", {}).get("log_by_log") and not file.log_by_log:
            file = copy.copy(file)
            file.log_by_log = True
    return file


def _manifest(folder: RunFolder) -> Mapping[str, Any]:
    """Return what the folder says of the last run in it; nothing where there was none."""
    return folder.read_manifest() if folder.manifest.exists() else {}


def _ended(folder: RunFolder) -> str | None:
    """Return when the last unit of an earlier run in this folder was done."""
    with contextlib.suppress(StoreError):  # none there, or damaged: the run is told so elsewhere
        return folder.read_manifest().get("finished")
    return None


def _files_read(folder: RunFolder) -> Owners:
    """Return the files that code has read by itself, as they were at the end of an earlier run here."""
    with contextlib.suppress(StoreError):
        files: Owners = folder.read_manifest().get("files_read", {})
        return files
    return {}


def _status(units: int, finished: int, dropped: int, outages: Outages) -> Status:
    if finished + dropped < units:
        return "interrupted"
    return "incomplete" if dropped or outages.reasons else "complete"


@dataclass
class Outages:
    """The images that could not be sent to SUTs: how many for each SUT, and why."""

    reasons: dict[str, Counter[str]] = field(default_factory=dict)

    def add(self, sut: str, reason: str, images: int) -> None:
        """Count images of a cell that is not finished."""
        self.reasons.setdefault(sut, Counter())[reason] += images

    def facts(self) -> dict[str, dict[str, object]]:
        """Return what the manifest says about them."""
        return {
            sut: {"images": images.total(), "reason": _commonest(images)}
            for sut, images in self.reasons.items()
        }

    def error(self, plan: StudyPlan, folder: RunFolder) -> IncompleteError:
        """Say which SUTs are concerned, why, and that the same command goes on."""
        planned = Counter(
            {
                task.name: sum(len(u.frames) for u in plan.units for cell in u.cells if cell.sut == number)
                for number, task in enumerate(plan.job.suts)
            }
        )
        what = " and ".join(
            f"SUT {sut!r} could not be reached; {images.total()} of {planned[sut]} images are left to ask"
            for sut, images in self.reasons.items()
        )
        reason, _, fix = _commonest(sum(self.reasons.values(), Counter())).partition(". Fix: ")
        return IncompleteError(
            f"the run is incomplete: {what}",
            where=str(folder.path),
            got=reason,
            fix=fix or "Run the same command again: only what is missing is run.",
        )


def plan_study(file: StudyFile, out: Path) -> StudyPlan:
    """Work out what a run would do, writing nothing."""
    folder = RunFolder(out)
    journal = RunJournal(folder.journal)
    again = [f"detections/{name} was changed or lost" for name in _forget_lost(folder, journal)]
    again += forget_changed(journal, _files_read(folder))
    file = _as_begun(file, folder)
    plan = make_plan(file, journal.settled(mutation_timeout_s=file.study.mutation_timeout_s))
    if folder.manifest.exists():
        with contextlib.suppress(StoreError):
            before = folder.read_manifest()
            plan = settle_unit_frames(kept_batches(plan, before), before, workers=1)
            again += _differences_since(folder, plan, describe(plan, engine="", workers=0))
    return replace(plan, again=tuple(again))


def _prepare(
    file: StudyFile,
    folder: RunFolder,
    engine: Engine,
    watch: RunWatcher,
    stop: Stop,
    *,
    retry_faults: bool,
) -> tuple[StudyPlan, RunJournal, dict[str, object], Basis]:
    journal = RunJournal(folder.journal)
    if journal.torn:
        watch.note("the last line of the journal was never finished; its unit is run again")
    for name in _forget_lost(folder, journal):
        watch.note(f"detections/{name} was changed or lost; its part is run again")
    for line in forget_changed(journal, _files_read(folder)):
        watch.note(f"{line}; what rests on it is run again")
    file = _as_begun(file, folder)
    limit_s = file.study.mutation_timeout_s
    plan = make_plan(file, journal.settled(mutation_timeout_s=limit_s, retry_faults=retry_faults))
    if plan.blocked:
        raise plan.blocked[0]
    _warn(watch, plan.warnings)
    before_this = _manifest(folder)
    plan = settle_batches(plan, before_this, engine, watch=watch, stop=stop)
    plan = settle_unit_frames(plan, before_this, workers=engine.workers, stop=stop)
    manifest = describe(plan, engine=engine.name, workers=engine.workers)
    basis = Basis.of(journal.entries, {environment_id(environment()): environment()})
    if folder.manifest.exists():
        before = folder.read_manifest()
        basis.environments |= before.get("environments", {})
        kills = manifest["kills"] = _kills(before, plan)
        if before["status"] == "running":
            watch.note(KILLED)
            _warn(watch, kill_remarks(kills))
        for difference in _differences_since(folder, plan, manifest):
            watch.note(f"since the last run in this folder: {difference}")
    journal.mend()
    mark_pages(folder, older=True)
    write_file(folder.study, to_yaml(file.study).encode())
    write_file(folder.frames, frames_table(plan.dataset.logs, plan.dataset.categories))
    write_file(folder.truth, truth_table(plan.dataset.logs, plan.dataset.categories))
    write_file(folder.inputs, inputs_table(plan.inputs))
    if file.selection is not None:
        write_file(folder.selection, planned_table(plan, file.selection))
    elif folder.selection.exists():
        with storage_errors(folder.selection):
            folder.selection.unlink()
    folder.write_manifest(_running(manifest, basis))
    held = journal.finished().in_use(unit.cells for unit in plan.units)
    used = environments_in_use(held, basis)
    _warn(watch, mixture({**used, environment_id(environment()): environment()} if plan.to_do else used))
    return plan, journal, manifest, basis


def _warn(watch: RunWatcher, lines: Iterable[str]) -> None:
    for line in lines:
        watch.note(f"warning: {line}")


def _kills(before: Mapping[str, Any], plan: StudyPlan) -> dict[str, int]:
    """Return how often a run was killed while each live SUT had work left; it may have been the SUT's doing.

    Of a SUT that is another one now, what was before does not count.
    """
    had_work = {cell.sut for unit in plan.to_do for cell in unit.cells}
    kills: dict[str, int] = {}
    for index, task in enumerate(plan.job.suts):
        same = before["suts"].get(task.name, {}).get("fingerprint") == task.fingerprint
        live = not is_recorded(plan.registry.get("sut", task.adapter))
        count = before.get("kills", {}).get(task.name, 0) if same else 0
        count += before["status"] == "running" and same and live and index in had_work
        if count:
            kills[task.name] = count
    return kills


def _running(manifest: Mapping[str, object], basis: Basis) -> dict[str, object]:
    """Return the manifest of a run under way: it knows an environment before a unit counts that has it."""
    return {**manifest, "status": "running", "environments": basis.environments}


def _differences_since(folder: RunFolder, plan: StudyPlan, manifest: Mapping[str, Any]) -> list[str]:
    """Say what is not as it was when the folder was last run in."""
    before = folder.read_inputs()
    now = {str(path): sha256 for path, sha256 in plan.inputs.items()}
    changed = input_differences(before, now) if before else []
    return [*changed, *differences(folder.read_manifest(), manifest)]


def _forget_lost(folder: RunFolder, journal: RunJournal) -> list[str]:
    """Drop the finished units whose file is no longer what was acknowledged; return these files."""
    latest = {entry.file: entry for entry in journal.entries}
    lost = {name for name, entry in latest.items() if content_hash(folder.detections / name) != entry.sha256}
    journal.forget(lambda entry: entry.file in lost)
    return sorted(lost)


def _keep(
    folder: RunFolder,
    journal: RunJournal,
    plan: StudyPlan,
    unit: WorkUnit,
    records: UnitRecords,
    outages: Outages,
    asked: AskedCells,
) -> None:
    """Make the finished cells of a unit durable, and count the others as outages.

    `asked` holds what was asked of cells by earlier runs in the folder: it counts on.
    """
    cells = [
        (cell.key, plan.job.settings[cell.setting].id, plan.job.suts[cell.sut].name) for cell in unit.cells
    ]
    finished = tuple(cell for cell in cells if cell[1:] not in records.unreachable)
    for (_, sut), reason in records.unreachable.items():
        outages.add(sut, reason, len(unit.frames))
    if finished:
        before = {key: some for key, _, _ in finished if (some := asked.get(key))}  # asked again
        parquet = with_earlier(records.parquet, _earlier(folder, finished, before))
        _refuse_misfiled(folder, unit, finished, parquet, whole=True)
        hashes = (entry.sha256 for some in before.values() for entry in some)
        name = _file_name(unit, finished, hashes)  # never that of a file that still counts
        write_file(folder.detections / name, parquet)
        faulty = tuple(key for key, *cell in finished if tuple(cell) in records.faulty)
        late = {
            key: records.late[setting, sut]
            for key, setting, sut in finished
            if (setting, sut) in records.late
        }
        sha256 = hashlib.sha256(parquet).hexdigest()
        done_in = environment_id(records.environment)
        journal.append(RunEntry(name, sha256, finished, records.files, done_in, faulty, late))
    if records.unfinished:
        cut_short = tuple(cell for cell in cells if cell[1:] in records.unreachable)
        _refuse_misfiled(folder, unit, cut_short, records.unfinished, whole=False)
        sha256 = hashlib.sha256(records.unfinished).hexdigest()
        hashes = (entry.sha256 for key, _, _ in cut_short for entry in asked.get(key))
        name = _file_name(unit, cut_short, ("unfinished", *hashes))
        write_file(folder.detections / name, records.unfinished)
        done_in = environment_id(records.environment)
        journal.append(RunEntry(name, sha256, (), records.files, done_in, unfinished=cut_short))
    for fault in records.faults:
        _log(folder, fault)


def _refuse_misfiled(
    folder: RunFolder,
    unit: WorkUnit,
    cells: Sequence[tuple[str, str, str]],
    parquet: bytes,
    *,
    whole: bool,
) -> None:
    """Raise where rows are not those of a unit, each once; `whole`: all of them."""
    planned = {(frame.id, setting, sut) for frame in unit.frames for _, setting, sut in cells}
    found = keys_in(parquet)
    if len(found) == len(set(found)) and (set(found) == planned if whole else set(found) <= planned):
        return
    strange = sorted({*found} - planned)
    raise StoreError(
        "the results of a worker are not those of the unit that it was asked for",
        where=f"{folder.path}, unit {unit.id}",
        got=f"{len(found)} rows, {len(strange)} of them of others"
        + (f", such as frame {strange[0][0]!r}" if strange else ""),
        wanted=f"{len(planned)}, one for each frame, setting and SUT",
        fix="Run the same command again, with --workers 0 or one SUT at a time to see whose code does it; "
        "what is finished is kept.",
    )


def _file_name(unit: WorkUnit, cells: Iterable[tuple[str, str, str]], besides: Iterable[str]) -> str:
    return f"{unit.id}-{digest(*(key for key, _, _ in cells), *besides, size=4)}.parquet"


def _earlier(
    folder: RunFolder, cells: Sequence[tuple[str, str, str]], before: Mapping[str, Sequence[RunEntry]]
) -> dict[Key, Mapping[str, Any]]:
    """Return the attempts that cells took in earlier runs, by frame, setting and SUT."""
    of_file: dict[str, list[tuple[str, str]]] = {}
    for key, *cell in cells:
        for entry in before.get(key, ()):
            of_file.setdefault(entry.file, []).append((cell[0], cell[1]))
    attempts: dict[Key, Mapping[str, Any]] = {}
    for name, some in of_file.items():
        added(attempts, attempts_in(folder.detections / name, some))
    return attempts


def _log(folder: RunFolder, fault: SutFault) -> None:
    """Keep what a fault left behind, as long as the log of the SUT is not too long."""
    path = folder.logs / sut_log(fault.sut)
    size = path.stat().st_size if path.exists() else 0
    if size >= SUT_LOG_BYTES:
        return
    text = f"== {fault.where}\n{fault.message}\n{fault.output}".rstrip() + "\n\n"
    if size + len(text) >= SUT_LOG_BYTES:
        text += "(further faults are left out)\n"
    with path.open("ab") as log:
        log.write(text.encode(errors="replace"))


def _commonest(reasons: Counter[str]) -> str:
    """Return the reason with the largest count; of equal ones the first by its text."""
    return min(reasons, key=lambda reason: (-reasons[reason], reason))

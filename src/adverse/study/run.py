"""Run a study: plan, do what is not done yet, make each finished unit durable. Resuming is the same thing.

What a SUT could not do, for want of a connection or of memory, is not done: such a run ends incomplete,
and the next one asks again.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from adverse.content import Changed, ChangedError, content_hash, digest
from adverse.errors import IncompleteError
from adverse.store.durable import write_file
from adverse.store.folder import RunFolder
from adverse.store.journal import RunEntry, RunJournal
from adverse.store.owned_folder import FileHashes
from adverse.store.run import (
    differences,
    input_differences,
)
from adverse.store.seals import drop_of_other_states, state_of
from adverse.study.engines import Engine, Stop, Watcher
from adverse.study.job import UnitRecords, WorkUnit
from adverse.study.plan import StudyPlan, make_plan
from adverse.study.provenance import cells_table, describe, frames_table, inputs_table, truth_table
from adverse.study.spec import StudyFile, to_yaml
from adverse.study.worker import StudyWork

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
    file: StudyFile, out: Path, engine: Engine, *, watch: RunWatcher, stop: Stop, fresh: bool = False
) -> StudyRun:
    """Run what is not done yet of a study, in its run folder."""
    folder = RunFolder(out)
    with folder.in_use(fresh=fresh, note=watch.note) as hashes:
        plan, journal, manifest = _prepare(file, folder, engine, watch, hashes)
        units = plan.to_do
        total = plan.pictures(plan.units)
        watch.begin(total, total - plan.pictures(units))
        finished = dropped = 0
        changed: dict[Path, str] = {}
        outages = Outages()
        try:
            work = StudyWork(plan.job, plan.registry)
            for unit, result in engine.run(work, units, watch=watch, stop=stop):
                if isinstance(result, Changed):
                    changed |= result.files
                    dropped += 1
                    continue
                _keep(folder, journal, plan, unit, result, outages)
                watch.advance(result.statuses)
                finished += 1
        finally:
            watch.end()
            if changed:
                hashes.forget(changed)
                hashes.remember()
            files = {key: entry.file for key, entry in journal.entry_of_cell().items()}
            write_file(folder.cells, cells_table(plan, files))
            status = _status(len(units), finished, dropped, outages)
            facts = {
                "status": status,
                "changed": {str(path): sha256 for path, sha256 in sorted(changed.items())},
                "outages": outages.facts(),
            }
            folder.write_manifest({**manifest, **facts})
            if status == "complete":
                drop_of_other_states(folder, state_of(folder, folder.read_manifest()))
    problem: IncompleteError | None = ChangedError(changed, where=out) if changed else None
    if problem is None and status == "incomplete":
        problem = outages.error(plan, folder)
    return StudyRun(folder, plan, status, finished, problem)


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
            f"SUT {sut!r} could not be asked about {images.total()} of {planned[sut]} images"
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
    return make_plan(file, FileHashes(folder.file_hashes), journal.entry_of_cell())


def _prepare(
    file: StudyFile, folder: RunFolder, engine: Engine, watch: RunWatcher, hashes: FileHashes
) -> tuple[StudyPlan, RunJournal, dict[str, object]]:
    journal = RunJournal(folder.journal)
    if journal.torn:
        watch.note("the last line of the journal was never finished; its unit is run again")
    _forget_lost(folder, journal, watch)
    plan = make_plan(file, hashes, journal.entry_of_cell())
    if plan.blocked:
        raise plan.blocked[0]
    for warning in plan.warnings:
        watch.note(f"warning: {warning}")
    hashes.remember()
    manifest = describe(plan, engine=engine.name, workers=engine.workers)
    if folder.manifest.exists():
        before = folder.read_inputs()
        now = {str(path): sha256 for path, sha256 in plan.inputs.items()}
        changed = input_differences(before, now) if before else []
        for difference in [*changed, *differences(folder.read_manifest(), manifest)]:
            watch.note(f"since the last run in this folder: {difference}")
    journal.mend()
    write_file(folder.study, to_yaml(file.study).encode())
    write_file(folder.frames, frames_table(plan.dataset.logs, plan.dataset.categories))
    write_file(folder.truth, truth_table(plan.dataset.logs, plan.dataset.categories))
    write_file(folder.inputs, inputs_table(plan.inputs))
    folder.write_manifest({**manifest, "status": "running"})
    return plan, journal, manifest


def _forget_lost(folder: RunFolder, journal: RunJournal, watch: RunWatcher) -> None:
    """Drop the finished units whose file is no longer what was acknowledged."""
    latest = {entry.file: entry for entry in journal.entries}
    lost = {name for name, entry in latest.items() if content_hash(folder.detections / name) != entry.sha256}
    for name in sorted(lost):
        watch.note(f"detections/{name} was changed or lost; its part is run again")
    journal.forget(lambda entry: entry.file in lost)


def _keep(
    folder: RunFolder,
    journal: RunJournal,
    plan: StudyPlan,
    unit: WorkUnit,
    records: UnitRecords,
    outages: Outages,
) -> None:
    """Make the finished cells of a unit durable, and count the others as outages."""
    cells = [
        (cell.key, plan.job.settings[cell.setting].id, plan.job.suts[cell.sut].name) for cell in unit.cells
    ]
    finished = tuple(cell for cell in cells if cell[1:] not in records.unreachable)
    for (_, sut), reason in records.unreachable.items():
        outages.add(sut, reason, len(unit.frames))
    if finished:
        name = f"{unit.id}-{digest(*(key for key, _, _ in finished), size=4)}.parquet"
        write_file(folder.detections / name, records.parquet)
        journal.append(RunEntry(name, hashlib.sha256(records.parquet).hexdigest(), finished))


def _commonest(reasons: Counter[str]) -> str:
    """Return the reason with the largest count; of equal ones the first by its text."""
    return min(reasons, key=lambda reason: (-reasons[reason], reason))

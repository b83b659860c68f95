"""Run a study: plan, do what is not done yet, make each finished unit durable. Resuming is the same thing."""

from __future__ import annotations

import hashlib
import io
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import pyarrow.parquet as pq

from adverse.hashes import content_hash, digest
from adverse.planned import Changed, ChangedError
from adverse.study.engines import Engine, Stop
from adverse.study.inputs import FileHashes
from adverse.study.plan import Plan, Unit, make_plan
from adverse.study.provenance import describe
from adverse.study.spec import StudyFile, to_yaml
from adverse.study.store.durable import write_file
from adverse.study.store.folder import RunFolder
from adverse.study.store.journal import Entry, Journal
from adverse.study.store.lock import locked
from adverse.study.store.manifest import (
    differences,
    input_differences,
    read_inputs,
    read_manifest,
    write_manifest,
)
from adverse.study.store.seals import clear_run, drop_of_other_states, state_of
from adverse.study.tables import cells_table, frames_table, inputs_table, truth_table

Status = Literal["complete", "interrupted", "incomplete"]


class Watcher(Protocol):
    """Hears how a run goes on."""

    def note(self, text: str) -> None:
        """Something worth a line."""

    def begin(self, total: int, done: int) -> None:
        """Work starts: so many (frame, mutation, SUT) in all, so many done before."""

    def advance(self, statuses: Counter[str]) -> None:
        """So many more are finished, by status."""

    def end(self) -> None:
        """No more work."""


@dataclass(frozen=True)
class Ran:
    """How a run went; `problem` says why it is incomplete."""

    folder: RunFolder
    plan: Plan
    status: Status
    units_run: int
    problem: ChangedError | None = None


def run_study(
    file: StudyFile, out: Path, engine: Engine, *, watch: Watcher, stop: Stop, fresh: bool = False
) -> Ran:
    """Run what is not done yet of a study, in its run folder."""
    folder = RunFolder(out)
    folder.create()
    with locked(folder.path) as left_over:
        if left_over:
            watch.note(left_over)
        if fresh:
            clear_run(folder)
        hashes = FileHashes(folder.file_hashes)
        plan, journal, manifest = _prepare(file, folder, engine, watch, hashes)
        units = plan.to_do
        total = plan.pictures(plan.units)
        watch.begin(total, total - plan.pictures(units))
        finished = dropped = 0
        changed: dict[Path, str] = {}
        try:
            for unit, result in engine.run(plan.job, units, watch=watch, stop=stop):
                if isinstance(result, Changed):
                    changed |= result.files
                    dropped += 1
                    continue
                _keep(folder, journal, plan, unit, result)
                finished += 1
                watch.advance(_statuses(result))
        finally:
            watch.end()
            if changed:
                hashes.forget(changed)
                hashes.remember()
            files = {key: entry.file for key, entry in journal.files_by_cell().items()}
            write_file(folder.cells, cells_table(plan, files))
            status = _status(len(units), finished, dropped)
            found = {str(path): sha256 for path, sha256 in sorted(changed.items())}
            write_manifest(folder, {**manifest, "status": status, "changed": found})
            if status == "complete":
                drop_of_other_states(folder, state_of(folder, read_manifest(folder)))
    problem = ChangedError(changed, where=out) if changed else None
    return Ran(folder, plan, status, finished, problem)


def _status(units: int, finished: int, dropped: int) -> Status:
    if finished + dropped < units:
        return "interrupted"
    return "incomplete" if dropped else "complete"


def plan_study(file: StudyFile, out: Path) -> Plan:
    """Work out what a run would do, writing nothing."""
    folder = RunFolder(out)
    journal = Journal(folder.journal)
    return make_plan(file, FileHashes(folder.file_hashes), journal.files_by_cell())


def _prepare(
    file: StudyFile, folder: RunFolder, engine: Engine, watch: Watcher, hashes: FileHashes
) -> tuple[Plan, Journal, dict[str, object]]:
    journal = Journal(folder.journal)
    if journal.torn:
        watch.note("the last line of the journal was never finished; its unit is run again")
    _forget_lost(folder, journal, watch)
    plan = make_plan(file, hashes, journal.files_by_cell())
    if plan.blocked:
        raise plan.blocked[0]
    for warning in plan.warnings:
        watch.note(f"warning: {warning}")
    hashes.remember()
    manifest = describe(plan, engine=engine.name, workers=engine.workers)
    if folder.manifest.exists():
        before = read_inputs(folder)
        now = {str(path): found for path, found in plan.inputs.items()}
        changed = input_differences(before, now) if before else []
        for difference in [*changed, *differences(read_manifest(folder), manifest)]:
            watch.note(f"since the last run in this folder: {difference}")
    journal.mend()
    write_file(folder.study, to_yaml(file.study).encode())
    write_file(folder.frames, frames_table(plan.dataset.logs, plan.dataset.categories))
    write_file(folder.truth, truth_table(plan.dataset.logs, plan.dataset.categories))
    write_file(folder.inputs, inputs_table(plan.inputs))
    write_manifest(folder, {**manifest, "status": "running"})
    return plan, journal, manifest


def _forget_lost(folder: RunFolder, journal: Journal, watch: Watcher) -> None:
    """Drop the finished units whose file is no longer what was acknowledged."""
    latest = {entry.file: entry for entry in journal.entries}
    lost = {name for name, entry in latest.items() if content_hash(folder.detections / name) != entry.sha256}
    for name in sorted(lost):
        watch.note(f"detections/{name} was changed or lost; its part is run again")
    journal.forget(lost)


def _keep(folder: RunFolder, journal: Journal, plan: Plan, unit: Unit, data: bytes) -> None:
    keys = [cell.key for cell in unit.cells]
    name = f"{unit.id}-{digest(*keys, size=4)}.parquet"
    write_file(folder.detections / name, data)
    cells = tuple(
        (cell.key, plan.job.settings[cell.setting].id, plan.job.suts[cell.sut].name) for cell in unit.cells
    )
    journal.append(Entry(name, hashlib.sha256(data).hexdigest(), cells))


def _statuses(data: bytes) -> Counter[str]:
    column: Iterable[str] = pq.read_table(io.BytesIO(data), columns=["status"])["status"].to_pylist()
    return Counter(column)

"""Run a study: plan, do what is not done yet, make each finished unit durable. Resuming is the same thing.

What a SUT could not be asked, for want of a connection or of memory, is not done: such a run ends incomplete,
and the next one asks again.
"""

from __future__ import annotations

import hashlib
import io
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from adverse.content import Changed, ChangedError, content_hash, digest
from adverse.errors import IncompleteError
from adverse.store.durable import write_file
from adverse.store.folder import RunFolder
from adverse.store.journal import Entry, Journal
from adverse.store.lock import locked
from adverse.store.manifest import (
    differences,
    input_differences,
    read_inputs,
    read_manifest,
    write_manifest,
)
from adverse.store.records import table_bytes
from adverse.store.seals import clear_run, drop_of_other_states, state_of
from adverse.study.engines import Engine, Stop
from adverse.study.inputs import FileHashes
from adverse.study.plan import Plan, Unit, make_plan
from adverse.study.provenance import describe
from adverse.study.spec import StudyFile, to_yaml
from adverse.study.tables import cells_table, frames_table, inputs_table, truth_table

Status = Literal["complete", "interrupted", "incomplete"]
UNREACHABLE = "unreachable"


class Watcher(Protocol):
    """Hears how a run goes on."""

    def note(self, text: str) -> None:
        """Something worth a line."""

    def begin(self, total: int, done: int) -> None:
        """Work starts: so many (frame, mutation, SUT) in all, so many done before."""

    def advance(self, statuses: Counter[str]) -> None:
        """So many more are finished, by status; `retried` are ok, but only when asked again."""

    def end(self) -> None:
        """No more work."""


@dataclass(frozen=True)
class Ran:
    """How a run went; `problem` says why it is incomplete."""

    folder: RunFolder
    plan: Plan
    status: Status
    units_run: int
    problem: IncompleteError | None = None


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
        outages = Outages()
        try:
            for unit, result in engine.run(plan.job, units, watch=watch, stop=stop):
                if isinstance(result, Changed):
                    changed |= result.files
                    dropped += 1
                    continue
                watch.advance(_keep(folder, journal, plan, unit, result, outages))
                finished += 1
        finally:
            watch.end()
            if changed:
                hashes.forget(changed)
                hashes.remember()
            files = {key: entry.file for key, entry in journal.files_by_cell().items()}
            write_file(folder.cells, cells_table(plan, files))
            status = _status(len(units), finished, dropped, outages)
            found = {str(path): sha256 for path, sha256 in sorted(changed.items())}
            write_manifest(
                folder, {**manifest, "status": status, "changed": found, "outages": outages.facts()}
            )
            if status == "complete":
                drop_of_other_states(folder, state_of(folder, read_manifest(folder)))
    problem: IncompleteError | None = ChangedError(changed, where=out) if changed else None
    if problem is None and status == "incomplete":
        problem = outages.error(plan, folder)
    return Ran(folder, plan, status, finished, problem)


def _status(units: int, finished: int, dropped: int, outages: Outages) -> Status:
    if finished + dropped < units:
        return "interrupted"
    return "incomplete" if dropped or outages.reasons else "complete"


@dataclass
class Outages:
    """The images that SUTs could not be asked about: how many of each SUT, and why."""

    reasons: dict[str, Counter[str]] = field(default_factory=dict)

    def add(self, sut: str, reason: str, images: int) -> None:
        """Count images of a cell that is not finished."""
        self.reasons.setdefault(sut, Counter())[reason] += images

    def facts(self) -> dict[str, dict[str, object]]:
        """Return what the manifest says about them."""
        return {
            sut: {"images": known.total(), "reason": _commonest(known)} for sut, known in self.reasons.items()
        }

    def error(self, plan: Plan, folder: RunFolder) -> IncompleteError:
        """Say which SUTs are concerned, why, and that the same command goes on."""
        planned = Counter(
            {
                task.name: sum(len(u.frames) for u in plan.units for cell in u.cells if cell.sut == number)
                for number, task in enumerate(plan.job.suts)
            }
        )
        what = " and ".join(
            f"SUT {sut!r} could not be asked about {known.total()} of {planned[sut]} images"
            for sut, known in self.reasons.items()
        )
        reason, _, fix = _commonest(sum(self.reasons.values(), Counter())).partition(". Fix: ")
        return IncompleteError(
            f"the run is incomplete: {what}",
            where=str(folder.path),
            got=reason,
            fix=fix or "Run the same command again: only what is missing is asked.",
        )


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


def _keep(
    folder: RunFolder, journal: Journal, plan: Plan, unit: Unit, data: bytes, outages: Outages
) -> Counter[str]:
    """Make the finished cells of a unit durable, and return how many images came to which status."""
    rows = pq.read_table(
        io.BytesIO(data), columns=["setting", "sut", "status", "reason", "failed_attempts"]
    ).to_pylist()
    lost = {(row["setting"], row["sut"]): row["reason"] for row in rows if row["status"] == UNREACHABLE}
    names = [
        (cell.key, plan.job.settings[cell.setting].id, plan.job.suts[cell.sut].name) for cell in unit.cells
    ]
    done = tuple(cell for cell in names if cell[1:] not in lost)
    for (_, sut), reason in lost.items():
        outages.add(sut, reason, len(unit.frames))
    if done:
        kept = data if len(done) == len(names) else _without(data, set(lost))
        name = f"{unit.id}-{digest(*(key for key, _, _ in done), size=4)}.parquet"
        write_file(folder.detections / name, kept)
        journal.append(Entry(name, hashlib.sha256(kept).hexdigest(), done))
    return Counter(
        "retried" if row["status"] == "ok" and row["failed_attempts"] else row["status"]
        for row in rows
        if (row["setting"], row["sut"]) not in lost
    )


def _without(data: bytes, cells: set[tuple[str, str]]) -> bytes:
    """Return the rows of a unit but those of some cells: (setting, SUT)."""
    table = pq.read_table(io.BytesIO(data))
    pairs = zip(table["setting"].to_pylist(), table["sut"].to_pylist(), strict=True)
    return table_bytes(table.filter(pa.array([pair not in cells for pair in pairs])))


def _commonest(reasons: Counter[str]) -> str:
    """Return the reason with the largest count; of equal ones the first by its text."""
    return min(reasons, key=lambda reason: (-reasons[reason], reason))

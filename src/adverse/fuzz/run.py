"""Run a campaign, or go on with it: bases un-mutated first, then rounds of tests, each unit made durable."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import adverse
from adverse.content import WRITTEN, Changed, ChangedError, content_hashes, what_happened
from adverse.errors import StoreError
from adverse.fuzz.donors import build_resources
from adverse.fuzz.folder import VERSION, CampaignFolder, FinishedUnit, other_version
from adverse.fuzz.guide import Guide
from adverse.fuzz.job import BaseUnit, FuzzJob, ReplayUnit, Row, TestUnit
from adverse.fuzz.plan import CampaignPlan, PrunedBases, plan_campaign, pruned
from adverse.fuzz.rounds import Rounds, Stream
from adverse.fuzz.worker import FuzzWork
from adverse.store.durable import write_file
from adverse.store.seals import mark_pages
from adverse.study.basis import Basis, Owners
from adverse.study.engines import Engine, Stop
from adverse.study.run import RunWatcher
from adverse.study.spec import StudyFile, to_yaml

Status = Literal["complete", "saturated", "interrupted"]
BASELINE, TESTS = "baseline", "tests"
OTHERWISE = "data, SUTs, options, seed or the version of adverse"
TELL_EVERY_S = 10.0
FRAMES = 16
"""Frames of a unit of bases."""


@dataclass(frozen=True)
class CampaignRun:
    """How a campaign went: saturated means that no more tests could be made than were."""

    folder: CampaignFolder
    status: Status
    tests: int


class InterruptedCampaignError(Exception):
    """The engine gave back fewer units than it was given: somebody wished to stop."""


def run_campaign(
    file: StudyFile,
    out: Path,
    engine: Engine,
    *,
    tests: int,
    watch: RunWatcher,
    stop: Stop,
    guided: bool = False,
    seed: int | None = None,
    fresh: bool = False,
) -> CampaignRun:
    """Run what is not done yet of a campaign, in its folder."""
    folder = CampaignFolder(out)
    with folder.in_use(fresh=fresh, note=watch.note):
        campaign = plan_campaign(file, seed=seed)
        manifest = begin(folder, campaign, guided=guided)
        progress = CampaignInProgress(folder, campaign, manifest, engine, watch, stop)
        status: Status = "interrupted"
        tests_made = 0
        try:
            bases = progress.bases()
            status, rounds = progress.tests(bases, tests, guided=guided)
            tests_made = len(rounds.tests)
            facts = {
                "files_read": progress.basis.as_left(),
                "pruned": bases.facts(),
                "bases": list(bases.places),
                "resources": progress.resources_key,
                "results": rounds.digest(),
            }
            folder.write_manifest(manifest | facts | {"status": status, "asked": tests, "tests": tests_made})
            folder.seal()
        except InterruptedCampaignError:
            folder.write_manifest(manifest | {"status": "interrupted", "asked": tests})
        except ChangedError as error:
            folder.write_manifest(manifest | {"status": "interrupted", "asked": tests})
            raise ChangedError(error.files, where=out) from error
    return CampaignRun(folder, status, tests_made)


class CampaignInProgress:
    """A campaign under way in a folder."""

    def __init__(
        self,
        folder: CampaignFolder,
        campaign: CampaignPlan,
        manifest: dict[str, Any],
        engine: Engine,
        watch: RunWatcher,
        stop: Stop,
    ) -> None:
        self.manifest = manifest
        self.basis = Basis(manifest["files_read"])
        self.folder, self.campaign, self.engine = folder, campaign, engine
        self.watch, self.stop = watch, stop
        self.journal = folder.journal()
        self.resources_key: str | None = None
        self._begun = False
        self._stream: Stream | None = None
        self._made: set[str] = set()
        """The pictures of the tests that the round under way has so far."""
        self.done: dict[tuple[str, str], FinishedUnit] = {}
        self._read_journal()

    def bases(self) -> PrunedBases:
        """Show all frames un-mutated where that is not done, and drop those that are too hard already."""
        bases = pruned(self.shown_clean(range(len(self.campaign.job.frames))), self.campaign)
        for line in bases.words():
            self.watch.note(line)
        return bases

    def shown_clean(self, frames: Sequence[int]) -> list[Row]:
        """Return the rows of some frames, by their places, un-mutated; those that are missing are made."""
        places = [frames[at : at + FRAMES] for at in range(0, len(frames), FRAMES)]
        units = [BaseUnit(f"{some[0]:08d}", tuple(some)) for some in places]
        missing = [unit for unit in units if (BASELINE, unit.id) not in self.done]
        if missing:
            self.watch.note(f"{len(frames)} frames are shown clean first")
            to_do = sum(len(unit.frames) for unit in missing)
            self.watch.begin(len(frames), len(frames) - to_do)
            pump = self._pump(self.campaign.job, BASELINE, deque(missing))
            try:
                for _ in missing:
                    self.watch.advance(Counter(map(_status, next(pump).rows)))
            finally:
                self.watch.end()
        return [row for unit in units for row in self.done[BASELINE, unit.id].rows]

    def replayed(self, bases: PrunedBases, units: Sequence[ReplayUnit]) -> list[Row]:
        """Return the rows of the tests of an earlier campaign; those that are missing are made."""
        job = self.with_resources(bases)
        missing = [unit for unit in units if (TESTS, unit.id) not in self.done]
        if missing:
            total = sum(len(unit.tests) for unit in units)
            self._begun = True
            self.watch.begin(total, total - sum(len(unit.tests) for unit in missing))
            pump = self._pump(job, TESTS, deque(missing))
            try:
                for _ in missing:
                    next(pump)
            finally:
                self.watch.end()
        return [row for unit in units for row in self.done[TESTS, unit.id].rows]

    def tests(self, bases: PrunedBases, wanted: int, *, guided: bool) -> tuple[Status, Rounds]:
        """Do rounds of tests until there are as many as wanted."""
        campaign = self.campaign
        job = self.with_resources(bases)
        guide = Guide(campaign.classes, campaign.seed) if guided else None
        rounds = Rounds(campaign.shares, bases.places, campaign.seed, wanted, guide)
        feed: deque[TestUnit] = deque()
        pump = self._pump(job, TESTS, feed)
        try:
            for stream in rounds.streams:
                while not stream.over:
                    stream.take(self._round(stream, feed, pump, wanted, len(rounds.tests)))
        finally:
            if self._begun:
                self.watch.end()
        for name, (made, of) in rounds.short.items():
            self.watch.note(f"no more tests of {name} could be made: {made} of {of}")
        return ("saturated" if rounds.short else "complete"), rounds

    def _round(
        self, stream: Stream, feed: deque[TestUnit], pump: Iterator[FinishedUnit], wanted: int, made: int
    ) -> list[Sequence[Any]]:
        """Return the rows of the round's units: all of them, or as many as the missing tests need."""
        units = stream.next_round()
        needed = min(len(units), -(-stream.missing // len(units[0].arms)))
        self._stream, self._made = stream, set()
        before = [self.done[TESTS, unit.id] for unit in units if (TESTS, unit.id) in self.done]
        known = self._new_tests([row for unit in before for row in unit.rows])
        while True:
            to_do = [unit for unit in units[:needed] if (TESTS, unit.id) not in self.done]
            if to_do and not self._begun:
                self._begun = True
                self.watch.begin(wanted, made + len(known))
                known = []
            elif known and self._begun:
                self.watch.advance(Counter(map(_status, known)))
                known = []
            feed.extend(to_do)
            for _ in to_do:
                next(pump)
            finished = [self.done[TESTS, unit.id].rows for unit in units[:needed]]
            if needed == len(units) or stream.enough(finished):
                return finished
            needed += 1

    def _pump(self, job: FuzzJob, phase: str, feed: deque[Any]) -> Iterator[FinishedUnit]:
        """Yield units as they are finished and made durable; raises when somebody wishes to stop.

        All that follows rests on every unit, so a campaign also ends where a file is not what was planned.
        """
        work = FuzzWork(job, self.campaign.registry)
        for unit, result in self.engine.run(work, feed, watch=self.watch, stop=self.stop):
            if isinstance(result, Changed):
                raise ChangedError(result.files)
            self._rest_on(result.files_read)
            finished = self.folder.keep(self.journal, phase, unit.id, result)
            self.done[phase, unit.id] = finished
            self._advance(finished)
            yield finished
        raise InterruptedCampaignError

    def _rest_on(self, files: Owners) -> None:
        """Write down which files code has read by itself, before a unit counts that rests on them."""
        other = self.basis.other_files(files)
        if other:
            raise ChangedError(other)
        if self.basis.add(files):
            self.manifest["files_read"] = self.basis.as_left()
            self.folder.write_manifest(self.manifest | {"status": "running"})

    def _advance(self, unit: FinishedUnit) -> None:
        """Tell how many more tests are done."""
        if self._begun:
            self.watch.advance(Counter(map(_status, self._new_tests(unit.rows))))

    def _new_tests(self, rows: Sequence[Row]) -> list[Row]:
        """Return which rows are tests: pictures that the stream does not have, as many as it still wants."""
        tests = [row for row in rows if "picture" in row]
        if self._stream is None:
            return tests
        new = []
        for row in tests:
            picture = row["picture"]
            wanted = len(self._made) < self._stream.missing
            if wanted and picture not in self._made and not self._stream.has(picture):
                self._made.add(picture)
                new.append(row)
        return new

    def with_resources(self, bases: PrunedBases) -> FuzzJob:
        """Cut out the objects of the bases, and return the job with them and the scores of the bases."""
        campaign = self.campaign
        chosen = {campaign.job.frames[place].id for place in bases.places}
        began = time.monotonic()
        resources, path = build_resources(
            campaign.dataset,
            campaign.donors,
            chosen,
            hashes=campaign.job.inputs,
            watch=_Building(self.watch),
        )
        self.resources_key = resources.key
        counted = ", ".join(f"{count} {name}" for name, count in resources.classes.items())
        self.watch.note(f"resource set: {counted or 'no objects'} ({time.monotonic() - began:.1f} s)")
        return replace(campaign.job, resources=path, before=bases.before)

    def _read_journal(self) -> None:
        journal = self.journal
        if journal.torn:
            self.watch.note("the last line of the log was never finished; its unit is run again")
        lost = journal.forget(self.folder.lost)
        if lost:
            self.watch.note(f"{lost} units lost files that they kept; they are run again")
        journal.mend()
        self.done = {(unit.phase, unit.id): unit for unit in journal.entries}
        if self.done:
            self.watch.note(f"{len(journal.entries)} units were done before; resuming")


def _status(row: Mapping[str, Any]) -> str:
    """Return how the SUTs answered a test or a clean frame, the worst first."""
    if row.get("unusable"):
        return "quarantined"
    scores = row["suts"].values()
    if any(score["fault"] for score in scores):
        return "fault"
    return "retried" if any("retried" in score for score in scores) else "ok"


class _Building:
    """Tells how far the resource set is, now and then: a large data set takes minutes, once."""

    def __init__(self, watch: RunWatcher) -> None:
        self.watch = watch
        self.last_note_s = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        if time.monotonic() - self.last_note_s > TELL_EVERY_S:
            self.last_note_s = time.monotonic()
            self.watch.note(f"cutting out objects: {done} of {total} frames")


def begin(
    folder: CampaignFolder,
    campaign: CampaignPlan,
    *,
    guided: bool,
    replays: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Write down what the campaign is; a folder that holds another one is refused."""
    study = campaign.file.study
    manifest: dict[str, Any] = {
        "adverse": adverse.__version__,
        "kind": "fuzz campaign",
        "version": VERSION,
        "key": campaign.key,
        "guided": guided,
        "replays": replays,
        "study": study.name,
        "task": study.task,
        "seed": campaign.seed,
        "shares": dict(campaign.shares),
        "bins": dict(campaign.job.bins),
        "classes": campaign.classes,
        "scorer": campaign.job.scorer,
        "prune_below": campaign.prune_below,
        "threshold": campaign.job.threshold,
        "suts": {task.name: task.fingerprint for task in campaign.job.suts},
        "data": {"name": campaign.dataset.name, "frames": len(campaign.job.frames)},
        "pixel_classes": {str(k): v for k, v in campaign.job.study.pixel_classes.items()},
        "scene_classes": {str(k): v for k, v in campaign.job.meaning.pixel_classes.items()},
        "remnant_share": campaign.job.remnant_share,
        "visible_share": campaign.job.visible_share,
        "targets": list(study.targets),
        "files_read": {},
    }
    if folder.manifest.exists():
        before = folder.read_manifest()
        if before.get("version") != VERSION:
            raise other_version(folder, before)
        differ = [name for name in ("key", "guided", "replays") if before.get(name) != manifest[name]]
        if differ:
            words = {"guided": "guided or not", "replays": "the tests that it replays"}
            difference = words[differ[0]] if len(differ) == 1 and differ[0] in words else OTHERWISE
            raise StoreError(
                "the folder holds another campaign",
                where=str(folder.path),
                got=f"a campaign of {before.get('study')!r} that differs in {difference}",
                fix="Give another --out, or discard its results with --fresh.",
            )
        manifest["files_read"] = before.get("files_read", {})
        read = {
            Path(path): sha256.removeprefix(WRITTEN)
            for hashes in manifest["files_read"].values()
            for path, sha256 in hashes.items()
        }
        now = content_hashes(read)
        changed = [f"{path} {what_happened(now[path])}" for path in read if now[path] != read[path]]
        if changed:
            raise StoreError(
                "the folder holds a campaign with other files, which its SUTs or plug-ins read",
                where=str(folder.path),
                got="; ".join(changed),
                fix="Put them back, give another --out, or discard its results with --fresh.",
            )
    mark_pages(folder, older=True)
    write_file(folder.study, to_yaml(study).encode())
    folder.write_manifest(manifest | {"status": "running"})
    return manifest

"""The folder of a campaign, readable without our code.

.adverse        the mark of a folder that adverse made; written first
manifest.json   what the campaign is: study, SUTs, seed, options, and the hash that tells it from others
study.yaml      the study as resolved
log             one checked line for each finished unit: its rows and the files it kept
suts/           what the labels of each SUT mean
bases/          by base frame: what SUTs said un-mutated; image and truth where something failed
failures/       by recipe: mutated image, truth, recipe, what SUTs said
results/        tables, curves, tests.csv; a pure function of the log
times.jsonl     how long things took; the one thing that is different each time
votes           what reviewers said; votes.json seals what was acknowledged of it
seals.json      the hashes of results and page, and the state of the campaign they were made from
logs/           what SUTs printed
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adverse.content import MISSING, content_hash, digest
from adverse.errors import IncompleteError, StoreError
from adverse.fuzz.job import FuzzRecords, Row
from adverse.store.durable import storage_errors, write_file
from adverse.store.journal import Journal
from adverse.store.owned_folder import OwnedFolder, is_marked
from adverse.store.seals import drop_of_other_states, mark_pages, seal_as_is, sweep_leftovers, write_derived

VERSION = "fuzz-5"
"""Changes whenever the same campaign would find something else."""
FINISHED = ("complete", "saturated")
OURS = {
    ".": r"(manifest|seals)\.json|study\.yaml|log|times\.jsonl|fuzz\.html",
    "suts": r"said-[0-9a-f]{12}\.json",
    "results": r"(causes|counts|discovery|guided|objects|overlap|refusals|review|tests|times)"
    r"\.(csv|json|svg)",
    "logs": r"worker-\d+\.log",
}
"""The names of the files that we write, by sub-folder; failures and bases have a folder each."""
KEPT = r"(image|labels|instances|said-[0-9a-f]{12})\.(png|json)|recipe\.json"
UNGUIDED = "unguided"
"""The folder, inside that of a guided campaign, of the unguided one that it is compared with."""


def failure_file(key: str, name: str) -> str:
    """Return where a file of a failure lies, by its recipe's key."""
    return f"failures/{key}/{name}"


def base_file(frame: str, name: str) -> str:
    """Return where a file of a base frame lies; ids can hold anything, so their hash is the name."""
    return f"bases/{digest(frame, size=8)}/{name}"


def sut_stem(name: str) -> str:
    """Return the name of a SUT's file, that no other SUT of a study has and that is none of ours."""
    return f"said-{digest(name, size=6)}"


def names_file(sut: str) -> str:
    """Return where it is written what a SUT's labels mean."""
    return f"suts/{sut_stem(sut)}.json"


@dataclass(frozen=True)
class FinishedUnit:
    """A finished unit as the log has it."""

    phase: str
    id: str
    rows: Sequence[Row]
    files: Mapping[str, tuple[int, str]]
    """The files it kept: their size and their sha256."""


class CampaignJournal(Journal[FinishedUnit]):
    """The finished units of a campaign: one line each, on the disk before the unit counts as done."""

    what = "log of the campaign"

    def parse(self, data: Any) -> FinishedUnit:
        """Return the finished unit that a line holds."""
        files = {name: (int(size), str(sha256)) for name, (size, sha256) in data["files"].items()}
        return FinishedUnit(data["phase"], data["id"], data["rows"], files)

    def plain(self, entry: FinishedUnit) -> dict[str, Any]:
        """Return what a line holds of a finished unit."""
        return {"phase": entry.phase, "id": entry.id, "rows": entry.rows, "files": entry.files}


@dataclass(frozen=True)
class FinishedCampaign:
    """What a finished campaign was, and what it came to: its manifest as a typed value."""

    study: str
    task: str
    seed: int
    shares: Mapping[str, float]
    """How many tests each mutation was to have, relatively; a guided campaign chooses itself."""
    bins: Mapping[str, float]
    """The kinds of inconsistency, and the drop at which each begins."""
    classes: Mapping[str, Sequence[str]]
    scorer: str
    threshold: float
    suts: Mapping[str, str]
    """The fingerprint of each SUT by its name."""
    data: str
    frames: int
    pixel_classes: Mapping[int, str]
    guided: bool
    key: str
    status: str
    requested: int
    tests: int
    bases: tuple[int, ...]
    pruned: Mapping[str, Any]
    resources: str
    results: str
    """The hash of all that tests came to."""
    made_by: str
    """The version of adverse."""
    scene_classes: Mapping[int, str] = field(default_factory=dict)
    """The names of the labels of scenes, as the data set has them."""
    remnant_share: float = 0.0
    """What shows less than this of what it showed before is ignored in the truth."""
    visible_share: float | None = None
    """Of what shows less than this of what it showed before, nobody is told that it is lost."""
    targets: tuple[str, ...] | None = None
    """The classes that detectors are asked for."""
    prune_below: float = 0.0
    """The score, in percent, that a frame had to reach to become a base."""
    replays: Mapping[str, Any] | None = None
    """The campaign whose tests these are, and which of them; None for tests of its own."""

    @property
    def mutations(self) -> tuple[str, ...]:
        """The mutations of the study."""
        return tuple(self.shares)


class CampaignFolder(OwnedFolder):
    """Where everything of a campaign lies."""

    kind = "fuzz campaign"
    command = "adverse fuzz"
    guest = UNGUIDED

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.log = path / "log"
        self.times = path / "times.jsonl"
        self.votes = path / "votes"
        self._files: dict[str, tuple[int, str]] | None = None

    @property
    def recomputed_by(self) -> str:
        """The command that computes results again from what the folder holds."""
        return f"adverse fuzz report {self.path}"

    def seal(self) -> None:
        """Seal what a finished campaign wrote bit by bit; drop what was computed from an earlier state."""
        state = self.state(self.read_manifest())
        drop_of_other_states(self, state)
        sweep_leftovers(self)
        written = (self.study, self.log, self.times, *sorted(self.logs.glob("*")))
        seal_as_is(self, state, written)
        mark_pages(self, older=False)

    def state(self, manifest: Mapping[str, Any]) -> str:
        """Return the hash of what results are made from, which they are sealed with."""
        decides = ("key", "guided", "replays", "results", "asked")
        return digest(json.dumps([manifest.get(key) for key in decides]))

    def write_derived(self, files: Mapping[str, bytes]) -> list[Path]:
        """Write files computed from the campaign, by path below its folder, and seal them."""
        sweep_leftovers(self)
        write_derived(self, self.state(self.read_manifest()), files)
        return [self.path / name for name in files]

    def own_files(self) -> dict[str, str]:
        """Return the names of the files that adverse writes; not the votes, which people gave."""
        stored = {
            f"{name}/{place.name}": KEPT
            for name in ("failures", "bases")
            for place in (self.path / name).glob("*")
        }
        return {**OURS, "failures": "", "bases": "", **stored}

    def journal(self) -> CampaignJournal:
        """Return the finished units."""
        return CampaignJournal(self.log)

    def finished(self) -> FinishedCampaign:
        """Return the description of a campaign that must be finished, and of this version."""
        manifest = self.read_manifest()
        if manifest["status"] not in FINISHED:
            raise IncompleteError(
                "the campaign is not finished",
                where=str(self.path),
                got=f"status {manifest['status']}",
                fix="Run the same adverse fuzz command again: it resumes where it stopped.",
            )
        if manifest.get("version") != VERSION:
            raise other_version(self, manifest)
        return FinishedCampaign(
            study=manifest["study"],
            task=manifest["task"],
            seed=int(manifest["seed"]),
            shares=manifest["shares"],
            bins=manifest["bins"],
            classes=manifest["classes"],
            scorer=manifest["scorer"],
            threshold=float(manifest["threshold"]),
            suts=manifest["suts"],
            data=manifest["data"]["name"],
            frames=manifest["data"]["frames"],
            pixel_classes={int(number): name for number, name in manifest["pixel_classes"].items()},
            guided=manifest["guided"],
            key=manifest["key"],
            status=manifest["status"],
            requested=manifest["asked"],
            tests=manifest["tests"],
            bases=tuple(manifest["bases"]),
            pruned=manifest["pruned"],
            resources=manifest["resources"],
            results=manifest["results"],
            made_by=manifest["adverse"],
            scene_classes={int(number): name for number, name in manifest["scene_classes"].items()},
            remnant_share=float(manifest["remnant_share"]),
            visible_share=manifest.get("visible_share"),
            targets=None if manifest.get("targets") is None else tuple(manifest["targets"]),
            prune_below=float(manifest["prune_below"]),
            replays=manifest["replays"],
        )

    def kept_file(self, name: str) -> Path:
        """Return a file that a finished unit kept, by its path below the folder, as it was written."""
        path = self.path / name
        stored = self._kept().get(name)
        sha256 = content_hash(path)
        if stored is None or sha256 != stored[1]:
            gone = sha256 == MISSING
            raise StoreError(
                "a picture of the campaign is missing" if gone else "a file of the campaign was changed",
                where=str(path),
                got=None if gone else f"sha256 {sha256}",
                wanted=None if stored is None else f"sha256 {stored[1]}",
                fix="Delete it and run the campaign again in the same folder: missing files are made again.",
            )
        return path

    def keeps(self, name: str) -> bool:
        """Tell whether a finished unit kept such a file."""
        return name in self._kept()

    def _kept(self) -> Mapping[str, tuple[int, str]]:
        if self._files is None:
            self._files = {
                name: facts for unit in self.journal().entries for name, facts in unit.files.items()
            }
        return self._files

    def keep(self, journal: CampaignJournal, phase: str, name: str, records: FuzzRecords) -> FinishedUnit:
        """Make a finished unit durable: its files first, then the line that acknowledges them."""
        stored = {file: (len(data), hashlib.sha256(data).hexdigest()) for file, data in records.files.items()}
        for file, data in records.files.items():
            path = self.path / file
            with storage_errors(path):
                path.parent.mkdir(parents=True, exist_ok=True)
            if content_hash(path) != stored[file][1]:
                write_file(path, data)
        unit = FinishedUnit(phase, name, records.rows, stored)
        journal.append(unit)
        with storage_errors(self.times), self.times.open("a") as file_times:
            file_times.writelines(json.dumps(row) + "\n" for row in records.times)
        return unit

    def lost(self, unit: FinishedUnit) -> bool:
        """Tell whether a file that a unit kept is gone or was changed."""
        return any(content_hash(self.path / file) != sha256 for file, (_, sha256) in unit.files.items())


def is_campaign(path: Path) -> bool:
    """Tell whether a folder is that of a fuzz campaign."""
    return is_marked(path, CampaignFolder.kind)


def existing_campaign(path: Path) -> CampaignFolder:
    """Return the folder of a campaign that must be there already."""
    folder = CampaignFolder(path)
    folder.read_manifest()
    return folder


def other_version(folder: CampaignFolder, manifest: Mapping[str, Any]) -> StoreError:
    """Return the error for a campaign of another version: its tests are other ones, counted otherwise."""
    return StoreError(
        "the campaign was made by another version of adverse",
        where=str(folder.path),
        got=f"campaigns of version {manifest.get('version', 'fuzz-1')}",
        wanted=f"{VERSION}: a quota of distinct pictures for each mutation, and verdicts about objects",
        fix="Run it again into another --out, or discard its results with --fresh.",
    )

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
votes           what reviewers said
logs/           what SUTs printed
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adverse.content import MISSING, content_hash, digest
from adverse.errors import IncompleteError, StoreError
from adverse.fuzz.packed import Packed
from adverse.store.durable import append_line, storage_errors, write_file
from adverse.store.folder import claim, delete_ours
from adverse.store.journal import checked, read_checked

Row = Mapping[str, Any]
KIND = "fuzz campaign"
FINISHED = ("complete", "saturated")
OURS = {
    ".": r"manifest\.json|study\.yaml|log|times\.jsonl|file-hashes\.json|fuzz\.html",
    "suts": r"said-[0-9a-f]{12}\.json",
    "results": r"(counts|discovery|guided|overlap|refusals|review|tests|times)\.(csv|json|svg)",
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
class Unit:
    """A finished unit as the log has it."""

    phase: str
    id: str
    rows: Sequence[Row]
    files: Mapping[str, tuple[int, str]]
    """The files it kept: their size, for a quick look, and their sha256."""


class CampaignFolder:
    """Where everything of a campaign lies."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.manifest = path / "manifest.json"
        self.study = path / "study.yaml"
        self.log = path / "log"
        self.results = path / "results"
        self.times = path / "times.jsonl"
        self.votes = path / "votes"
        self.logs = path / "logs"
        self._files: dict[str, tuple[int, str]] | None = None

    def create(self) -> None:
        """Make the folder, refusing to mix into one that holds something else."""
        claim(self.path, KIND, besides=UNGUIDED)
        with storage_errors(self.path):
            for folder in (self.results, self.logs):
                folder.mkdir(exist_ok=True)

    def clear(self) -> None:
        """Delete what was found so far, and nothing of others; votes stay, since people gave them."""
        kept = {
            f"{name}/{place.name}": KEPT
            for name in ("failures", "bases")
            for place in (self.path / name).glob("*")
        }
        delete_ours(self.path, KIND, {**OURS, "failures": "", "bases": "", **kept})
        self.create()

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Write what the campaign is, with a hash of itself."""
        body = {**manifest, "digest": _own_digest(manifest)}
        write_file(self.manifest, json.dumps(body, indent=2).encode() + b"\n")

    def read_manifest(self) -> dict[str, Any]:
        """Return the manifest of a campaign that must be there, as it was written."""
        try:
            manifest = dict(json.loads(self.manifest.read_bytes()))
        except (OSError, ValueError) as error:
            raise StoreError(
                "this is not the folder of a fuzz campaign",
                where=str(self.path),
                got="no manifest.json that can be read",
                fix="Give the folder that adverse fuzz printed.",
            ) from error
        if manifest.get("digest") != _own_digest({k: v for k, v in manifest.items() if k != "digest"}):
            raise StoreError(
                "the manifest was changed after it was written",
                where=str(self.manifest),
                fix="Restore it from a copy, or run the campaign again with --fresh.",
            )
        return manifest

    def finished_manifest(self) -> dict[str, Any]:
        """Return the manifest of a campaign that must be finished."""
        manifest = self.read_manifest()
        if manifest["status"] not in FINISHED:
            raise IncompleteError(
                "the campaign is not finished",
                where=str(self.path),
                got=f"status {manifest['status']}",
                fix="Run the same adverse fuzz command again: it goes on where it stopped.",
            )
        return manifest

    def kept_file(self, name: str) -> Path:
        """Return a file that a finished unit kept, by its path below the folder, as it was written."""
        path = self.path / name
        known = self._kept().get(name)
        found = content_hash(path)
        if known is None or found != known[1]:
            gone = found == MISSING
            raise StoreError(
                "a picture of the campaign is missing" if gone else "a file of the campaign was changed",
                where=str(path),
                got=None if gone else f"sha256 {found}",
                wanted=None if known is None else f"sha256 {known[1]}",
                fix="Delete it and run the campaign again in the same folder: what is missing is made anew.",
            )
        return path

    def keeps(self, name: str) -> bool:
        """Tell whether a finished unit kept such a file."""
        return name in self._kept()

    def _kept(self) -> Mapping[str, tuple[int, str]]:
        if self._files is None:
            units, _ = self.units()
            self._files = {name: known for unit in units for name, known in unit.files.items()}
        return self._files

    def units(self) -> tuple[list[Unit], bool]:
        """Return the finished units, and whether a last line was never finished."""
        bodies, torn = read_checked(self.log, "log of the campaign")
        return [_parse(body) for body in bodies], torn

    def mend(self, units: Sequence[Unit]) -> None:
        """Write the log anew with these units alone."""
        write_file(self.log, b"".join(_line(unit) for unit in units))

    def keep(self, phase: str, name: str, packed: Packed) -> Unit:
        """Make a finished unit durable: its files first, then the line that acknowledges them."""
        kept = {file: (len(data), hashlib.sha256(data).hexdigest()) for file, data in packed.files.items()}
        for file, data in packed.files.items():
            path = self.path / file
            with storage_errors(path):
                path.parent.mkdir(parents=True, exist_ok=True)
            if content_hash(path) != kept[file][1]:
                write_file(path, data)
        unit = Unit(phase, name, packed.rows, kept)
        append_line(self.log, _line(unit))
        with storage_errors(self.times), self.times.open("a") as file_times:
            file_times.writelines(json.dumps(row) + "\n" for row in packed.times)
        return unit

    def lost(self, unit: Unit) -> bool:
        """Tell whether a file that a unit kept is gone or of another size."""
        return any(_size(self.path / file) != size for file, (size, _) in unit.files.items())


def existing_campaign(path: Path) -> CampaignFolder:
    """Return the folder of a campaign that must be there already."""
    folder = CampaignFolder(path)
    folder.read_manifest()
    return folder


def _own_digest(body: Mapping[str, Any]) -> str:
    return digest(json.dumps(body, sort_keys=True))


def _parse(body: str) -> Unit:
    data = json.loads(body)
    files = {name: (int(size), str(sha256)) for name, (size, sha256) in data["files"].items()}
    return Unit(data["phase"], data["id"], data["rows"], files)


def other_version(folder: CampaignFolder, manifest: Mapping[str, Any]) -> StoreError:
    """Return the error for a campaign of another version: its tests are other ones, counted otherwise."""
    return StoreError(
        "the campaign was made by another version of adverse",
        where=str(folder.path),
        got=f"campaigns of version {manifest.get('version', 'fuzz-1')}",
        wanted="a test for each distinct picture; earlier versions counted recipes, several of one picture",
        fix="Run it again into another --out, or throw away what it found with --fresh.",
    )


def _line(unit: Unit) -> bytes:
    fields = {"phase": unit.phase, "id": unit.id, "rows": unit.rows, "files": unit.files}
    return checked(json.dumps(fields, allow_nan=False, separators=(",", ":")))


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None

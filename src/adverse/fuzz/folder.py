"""The folder of a campaign, readable without our code.

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

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adverse.errors import StoreError
from adverse.fuzz.packed import Packed
from adverse.hashes import digest
from adverse.study.store.durable import append_line, storage_errors, write_file
from adverse.study.store.lines import checked, read_checked

Row = Mapping[str, Any]
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
    files: Mapping[str, int]


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

    def create(self) -> None:
        """Make the folder, refusing to mix into one that holds something else."""
        if self.path.exists() and not self.path.is_dir():
            raise StoreError("the run folder is a file", where=str(self.path), fix="Give another --out.")
        if self.path.is_dir() and not self.is_campaign() and self._holds_others():
            raise StoreError(
                "the folder holds something that is not a fuzz campaign",
                where=str(self.path),
                fix="Give an empty or a new folder with --out.",
            )
        with storage_errors(self.path):
            for folder in (self.path, self.results, self.logs):
                folder.mkdir(parents=True, exist_ok=True)

    def _holds_others(self) -> bool:
        return any(path.name != UNGUIDED for path in self.path.iterdir())

    def is_campaign(self) -> bool:
        """Tell whether the folder is one of ours."""
        return self.log.exists() or self.manifest.exists() or (self.path / "lock").exists()

    def clear(self) -> None:
        """Delete what was found so far; votes stay, since people gave them."""
        with storage_errors(self.path):
            for name in ("failures", "bases", "suts", "results", "logs"):
                shutil.rmtree(self.path / name, ignore_errors=True)
            for file in (self.log, self.manifest, self.times):
                file.unlink(missing_ok=True)
        self.create()

    def read_manifest(self) -> dict[str, Any]:
        """Return the manifest of a campaign that must be there."""
        try:
            return dict(json.loads(self.manifest.read_bytes()))
        except (OSError, ValueError) as error:
            raise StoreError(
                "this is not the folder of a fuzz campaign",
                where=str(self.path),
                got="no manifest.json that can be read",
                fix="Give the folder that adverse fuzz printed.",
            ) from error

    def units(self) -> tuple[list[Unit], bool]:
        """Return the finished units, and whether a last line was never finished."""
        bodies, torn = read_checked(self.log, "log of the campaign")
        return [Unit(**json.loads(body)) for body in bodies], torn

    def mend(self, units: Sequence[Unit]) -> None:
        """Write the log anew with these units alone."""
        write_file(self.log, b"".join(_line(unit) for unit in units))

    def keep(self, phase: str, name: str, packed: Packed) -> Unit:
        """Make a finished unit durable: its files first, then the line that acknowledges them."""
        for file, data in packed.files.items():
            path = self.path / file
            with storage_errors(path):
                path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                write_file(path, data)
        unit = Unit(phase, name, packed.rows, {file: len(data) for file, data in packed.files.items()})
        append_line(self.log, _line(unit))
        with storage_errors(self.times), self.times.open("a") as file_times:
            file_times.writelines(json.dumps(row) + "\n" for row in packed.times)
        return unit

    def lost(self, unit: Unit) -> bool:
        """Tell whether a file that a unit kept is gone or of another size."""
        return any(_size(self.path / file) != size for file, size in unit.files.items())


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

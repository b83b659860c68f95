"""The run folder: the seam between the slow half and the quick one, readable without our code.

.adverse            the mark of a folder that adverse made; written first
manifest.json       provenance: versions, hashes, counts, settings
study.yaml          the study as resolved, every default spelt out
frames.parquet      every frame: log, split, pose, camera
truth.parquet       every true object
inputs.parquet      every input file and its hash
journal             one line for each finished unit; what is in it survives a power cut
detections/         one Parquet file for each finished unit
results/            curves, tables, summary.json; a pure function of the above
verdicts/           verdicts of adverse check (rules.json) and adverse requirements check (requirements.json)
logs/               what SUTs printed
seals.json          the hashes of results, verdicts and report, and the state of the run they were made from
file-hashes.json    a memory of hashes, safe to delete
lock                who is using the folder

Folders that are ours: the mark that says so, and deleting in them what we wrote and nothing else.

The mark is the first file written into a new folder. Without it a folder is somebody's, whatever is in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from adverse.errors import StoreError
from adverse.store.durable import storage_errors, write_file

MARK = ".adverse"
PARTIAL = re.compile(r"\..+\.\d+\.partial")
"""What a write that was cut short leaves behind (`durable.write_file`)."""


def claim(folder: Path, kind: str, *, besides: str | None = None) -> None:
    """Make a folder ours, or raise where it holds something else; nothing else is written into it first.

    `besides` is the one thing that an unmarked folder may hold.
    """
    if folder.exists() and not folder.is_dir():
        raise StoreError(f"the {kind} is a file", where=str(folder), fix="Give another folder (--out).")
    if is_marked(folder, kind):
        return
    if folder.is_dir() and any(path.name != besides for path in folder.iterdir()):
        raise StoreError(
            f"the folder holds something that is not a {kind}",
            where=str(folder),
            got=f"other files, and no {MARK} file as adverse writes it",
            fix="Give an empty or a new folder (--out).",
        )
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        write_file(folder / MARK, _content(kind))


def is_marked(folder: Path, kind: str) -> bool:
    """Tell whether we made a folder, for this kind of content."""
    path = folder / MARK
    try:
        return not path.is_symlink() and path.read_bytes() == _content(kind)
    except OSError:
        return False


def delete_ours(folder: Path, kind: str, files: Mapping[str, str]) -> None:
    """Delete the files we wrote: by sub-folder (`.`: the folder itself), those whose whole name matches.

    Other files stay, and so do folders that still hold some. Nothing is followed: where one of the folders
    is a symbolic link, nothing at all is deleted.
    """
    if not is_marked(folder, kind):
        raise StoreError(
            f"the folder is not marked as a {kind} of ours, so nothing in it is deleted",
            where=str(folder),
            got=f"no {MARK} file as adverse writes it",
            fix="Give an empty or a new folder (--out).",
        )
    for place in (folder, *(folder / name for name in files)):
        if place.is_symlink():
            raise StoreError(
                "nothing is deleted through a symbolic link",
                where=str(place),
                got=f"a link to {place.resolve()}",
                fix="Name the folder itself with --out, or another one.",
            )
    with storage_errors(folder):
        for name, pattern in files.items():
            place = folder / name
            for path in sorted(place.iterdir()) if place.is_dir() else ():
                known = re.fullmatch(pattern, path.name) or PARTIAL.fullmatch(path.name)
                if known and path.is_file() and not path.is_symlink():
                    path.unlink()
        for name in sorted(files, key=len, reverse=True):
            place = folder / name
            if place != folder and place.is_dir() and not any(place.iterdir()):
                place.rmdir()


def _content(kind: str) -> bytes:
    return (
        f"This folder is a {kind} of adverse, 5d1c0f6e-7b0b-4c39-9f0a-3e6f1f5c2a84. While this file is here, "
        "--fresh deletes what adverse wrote into the folder.\n"
    ).encode()


KIND = "run folder"
OURS = {
    ".": r"(manifest|file-hashes|seals)\.json|study\.yaml|(frames|truth|inputs|cells)\.parquet|journal"
    r"|(report|requirements)\.html|requirements\.csv",
    "detections": r"[0-9a-f]{16}(-[0-9a-f]{8})?\.parquet",
    "results": r"(curves|exact|outcomes|required|troubles)\.parquet|(summary|requirements)\.json|drive\.svg"
    r"|(adr|differences|drive|expected|loop|loop_rates|magnitudes|means|required|visual_change)\.csv"
    r"|benchmark\.(csv|json)",
    "verdicts": r"(rules|requirements)\.json",
    "logs": r"worker-\d+\.log",
}
"""The names of the files that we write, by sub-folder; tables of the report are found by their seals."""
BENCHMARK = "benchmark"
"""What the files in results are called that a run only has when somebody asked for them."""


class RunFolder:
    """Where everything of a run lies."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.manifest = path / "manifest.json"
        self.study = path / "study.yaml"
        self.frames = path / "frames.parquet"
        self.truth = path / "truth.parquet"
        self.inputs = path / "inputs.parquet"
        self.cells = path / "cells.parquet"
        self.journal = path / "journal"
        self.detections = path / "detections"
        self.results = path / "results"
        self.verdicts = path / "verdicts"
        self.logs = path / "logs"
        self.file_hashes = path / "file-hashes.json"
        self.seals = path / "seals.json"

    def create(self) -> None:
        """Make the folder, refusing to mix into one that holds something else."""
        claim(self.path, KIND)
        with storage_errors(self.path):
            for folder in (self.detections, self.results, self.logs):
                folder.mkdir(exist_ok=True)


def existing_run(path: Path) -> RunFolder:
    """Return a run folder that must be there already."""
    folder = RunFolder(path)
    if not folder.manifest.exists():
        raise StoreError(
            "this is not a run folder",
            where=str(path),
            got="no manifest.json in it" if path.exists() else "no such folder",
            fix="Give the folder that adverse run printed.",
        )
    return folder

"""The run folder: the seam between the slow half and the quick one, readable without our code.

manifest.json       provenance: versions, hashes, counts, settings
study.yaml          the study as resolved, every default spelt out
frames.parquet      every frame: log, split, pose, camera
truth.parquet       every true object
inputs.parquet      every input file and its hash
journal             one line for each finished unit; what is in it survives a power cut
detections/         one Parquet file for each finished unit
results/            curves, tables, summary.json; a pure function of the above
verdicts/           what commands that judge the run by requirements came to
logs/               what SUTs printed
file-hashes.json    a memory of hashes, safe to delete
lock                who is using the folder
"""

from __future__ import annotations

import shutil
from pathlib import Path

from adverse.errors import StoreError
from adverse.study.store.durable import storage_errors

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

    def create(self) -> None:
        """Make the folder, refusing to mix into one that holds something else."""
        if self.path.exists() and not self.path.is_dir():
            raise StoreError("the run folder is a file", where=str(self.path), fix="Give another --out.")
        if self.path.is_dir() and not self.is_run() and any(self.path.iterdir()):
            raise StoreError(
                "the folder holds something that is not a run",
                where=str(self.path),
                fix="Give an empty or a new folder with --out.",
            )
        with storage_errors(self.path):
            for folder in (self.path, self.detections, self.results, self.logs):
                folder.mkdir(parents=True, exist_ok=True)

    def is_run(self) -> bool:
        """Tell whether the folder is one of ours."""
        return self.manifest.exists() or self.journal.exists() or (self.path / "lock").exists()

    def clear(self) -> None:
        """Delete what the run has made so far; the lock stays."""
        with storage_errors(self.path):
            for folder in (self.detections, self.results, self.logs):
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
            shutil.rmtree(self.verdicts, ignore_errors=True)
            for file in (self.journal, self.manifest, self.file_hashes):
                file.unlink(missing_ok=True)


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

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
verdicts/           what commands that judge the run by requirements came to
logs/               what SUTs printed
seals.json          the hashes of results, verdicts and report, and the state of the run they were made from
file-hashes.json    a memory of hashes, safe to delete
lock                who is using the folder
"""

from __future__ import annotations

from pathlib import Path

from adverse.errors import StoreError
from adverse.study.store.durable import storage_errors
from adverse.study.store.owned import claim

KIND = "run folder"
OURS = {
    ".": r"(manifest|file-hashes|seals)\.json|study\.yaml|(frames|truth|inputs|cells)\.parquet|journal"
    r"|(report|requirements)\.html|requirements\.csv",
    "detections": r"[0-9a-f]{16}(-[0-9a-f]{8})?\.parquet",
    "results": r"(curves|exact|outcomes|required|troubles)\.parquet|(summary|requirements)\.json|drive\.svg"
    r"|(adr|differences|drive|expected|loop|loop_rates|magnitudes|means|required|visual_change)\.csv"
    r"|benchmark\.(csv|json)",
    "verdicts": r"(check|requirements)\.json",
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

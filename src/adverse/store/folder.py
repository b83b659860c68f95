"""The run folder: the seam between the slow half and the quick one, readable without our code.

.adverse            the mark of a folder that adverse made; written first
manifest.json       provenance: versions, settings, the hash of every file that results are made from
study.yaml          the study as resolved, every default spelt out
frames.parquet      every frame: log, split, pose, camera
truth.parquet       every true object
inputs.parquet      every input file and its hash
cells.parquet       every finished cell, and the file that holds it
selection.parquet   what a search asked for: every frame, setting and SUT; runs of all of them have none
journal             one line for each finished unit; what is in it survives a power cut
detections/         one Parquet file for each finished unit
results/            curves, tables, summary.json; a pure function of the above
verdicts/           verdicts of adverse check (rules.json, and rules.yaml, what it checked) and of
                    adverse requirements check (requirements.json)
logs/               what SUTs printed; sut-NAME.log: tracebacks and stderr of their faults
report.html         the report; report_tables/ its tables
seals.json          the hashes of results, verdicts and report, and the state of the run they were made from
signature.dsse.json a signed statement of all of it, if somebody signed it (adverse seal)
lock                who is using the folder
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from adverse.content import file_sha256
from adverse.errors import StoreError
from adverse.store.owned_folder import PARTIAL, OwnedFolder, files_of_others
from adverse.store.seal_list import read_seals

FORMAT = 7
"""Of the run folder; raised when what is in it changes its meaning."""
OURS = {
    ".": r"(manifest|seals|status)\.json|study\.yaml|(frames|truth|inputs|cells|selection)\.parquet|journal"
    r"|(report|requirements|until)\.html|requirements\.csv|until\.(csv|json)|report_film\.webp"
    r"|signature\.dsse\.json",
    "detections": r"[0-9a-f]{16}(-[0-9a-f]{8})?\.parquet",
    "results": r"(attempts|curves|frames|objects|outcomes|required|sensitivity|slice_members)\.parquet"
    r"|(stops|troubles)\.parquet"
    r"|(summary|requirements)\.json|drive\.svg"
    r"|(adr|detection_range|differences|drive|expected|families|loop|loop_rates|magnitudes|means|metrics)\.csv"
    r"|(outstanding_slices|plain_metrics|relations|required|slices|unseen|visual_change)\.csv"
    r"|benchmark\.(csv|json)",
    "analysis": r"[0-9a-f]{32}\.arrow",
    "verdicts": r"(rules|requirements)\.json|rules\.yaml",
    "logs": r"worker-\d+\.log|sut-[\w .-]+\.log",
}
"""The names of the files that we write, by sub-folder; tables of the report are found by their seals."""
TABLE = r"\w+\.(csv|json)"
"""The names of tables of the report, which depend on SUTs and settings."""
BENCHMARK = "benchmark"
"""What the files in results are called that a run has only on request."""


class RunFolder(OwnedFolder):
    """Where everything of a run lies."""

    kind = "run folder"
    command = "adverse run"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.frames = path / "frames.parquet"
        self.truth = path / "truth.parquet"
        self.inputs = path / "inputs.parquet"
        self.cells = path / "cells.parquet"
        self.selection = path / "selection.parquet"
        self.journal = path / "journal"
        self.detections = path / "detections"
        self.verdicts = path / "verdicts"

    @property
    def recomputed_by(self) -> str:
        """The command that computes results again from what the folder holds."""
        return f"adverse analyze {self.path}"

    def subfolders(self) -> tuple[Path, ...]:
        """Return the folders that are there from the start."""
        return self.detections, self.results, self.logs

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Write the manifest with the hashes of the files that results are made from, and of itself."""
        sealed = [self.study, self.frames, self.truth, self.inputs, self.selection]
        if manifest["status"] != "running":  # while units are done, the journal still grows
            sealed += [self.cells, self.journal]
        if manifest["status"] == "complete":
            sealed += [path for path in sorted(self.logs.rglob("*")) if not PARTIAL.fullmatch(path.name)]
        files = {
            path.relative_to(self.path).as_posix(): file_sha256(path) for path in sealed if path.is_file()
        }
        body = {key: value for key, value in manifest.items() if key != "files"}
        super().write_manifest({**body, "format": FORMAT, "files": files})

    def read_inputs(self) -> dict[str, str]:
        """Return the hash of every input file by its path; nothing where the table cannot be read."""
        try:
            table = pq.read_table(self.inputs).to_pydict()
        except (OSError, pa.ArrowException):
            return {}
        return dict(zip(table["path"], table["sha256"], strict=True))

    def own_files(self) -> dict[str, str]:
        """Return the names of the files that adverse writes, as a pattern for each sub-folder."""
        tables: list[str] = []
        with contextlib.suppress(StoreError):  # a damaged list names nothing
            names = read_seals(self)
            tables = [re.escape(Path(name).name) for name in names if name.startswith("report_tables/")]
        return {**OURS, "report_tables": "|".join(tables)}

    def files_of_others(self) -> list[Path]:
        """Return what others put into the sub-folders; tables may be ours though no seal lists them yet."""
        return files_of_others(self.path, {**OURS, "report_tables": TABLE})


def sut_log(sut: str) -> str:
    """Return the name of the file in logs/ that holds tracebacks and stderr of a SUT's faults."""
    return f"sut-{sut}.log"


def existing_run(path: Path) -> RunFolder:
    """Return a run folder that must be there already."""
    folder = RunFolder(path)
    folder.read_manifest()
    return folder


def refuse_other_format(folder: RunFolder, manifest: Mapping[str, Any]) -> None:
    """Raise for a run of another version, with the command that makes it again."""
    if manifest.get("format") != FORMAT:
        study = manifest.get("study", {}).get("file", "STUDY")
        raise StoreError(
            "the run was made by another version of adverse",
            where=str(folder.manifest),
            got=f"format {manifest.get('format')}",
            wanted=f"format {FORMAT}",
            fix=f"Make it again: adverse run {study} --out {folder.path}",
        )

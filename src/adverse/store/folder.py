"""The run folder: the seam between the slow half and the quick one, readable without our code.

.adverse            the mark of a folder that adverse made; written first
manifest.json       provenance: versions, settings, the hash of every file that results are made from
study.yaml          the study as resolved, every default spelt out
frames.parquet      every frame: log, split, pose, camera
truth.parquet       every true object
inputs.parquet      every input file and its hash
cells.parquet       every finished cell, and the file that holds it
journal             one line for each finished unit; what is in it survives a power cut
detections/         one Parquet file for each finished unit
results/            curves, tables, summary.json; a pure function of the above
verdicts/           verdicts of adverse check (rules.json) and adverse requirements check (requirements.json)
logs/               what SUTs printed
seals.json          the hashes of results, verdicts and report, and the state of the run they were made from
file-hashes.json    a memory of hashes, safe to delete
lock                who is using the folder
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from adverse.content import file_sha256
from adverse.errors import StoreError
from adverse.store.owned_folder import OwnedFolder, digest_of

FORMAT = 5
"""Of the run folder; raised when what is in it changes its meaning."""
OURS = {
    ".": r"(manifest|file-hashes|seals)\.json|study\.yaml|(frames|truth|inputs|cells)\.parquet|journal"
    r"|(report|requirements)\.html|requirements\.csv",
    "detections": r"[0-9a-f]{16}(-[0-9a-f]{8})?\.parquet",
    "results": r"(curves|outcomes|required|retries|sensitivity|stops|troubles)\.parquet"
    r"|(summary|requirements)\.json|drive\.svg"
    r"|(adr|detection_range|differences|drive|expected|families|loop|loop_rates|magnitudes|means|metrics)\.csv"
    r"|(outstanding_slices|plain_metrics|required|slices|visual_change)\.csv"
    r"|benchmark\.(csv|json)",
    "verdicts": r"(rules|requirements)\.json",
    "logs": r"worker-\d+\.log",
}
"""The names of the files that we write, by sub-folder; tables of the report are found by their seals."""
BENCHMARK = "benchmark"
"""What the files in results are called that a run has only on request."""
SEALED = re.compile(
    r"(results|verdicts|report_tables)/\w[\w.-]*|(report|requirements)\.html|requirements\.csv"
)
"""The files that can be sealed; nothing else is deleted because a list says so."""


class Seal(NamedTuple):
    """The hash of a file, and the state of the run that it was made from."""

    sha256: str
    state: str


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
        self.journal = path / "journal"
        self.detections = path / "detections"
        self.verdicts = path / "verdicts"
        self.seals = path / "seals.json"

    def subfolders(self) -> tuple[Path, ...]:
        """Return the folders that are there from the start."""
        return self.detections, self.results, self.logs

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Write the manifest with the hashes of the files that results are made from, and of itself."""
        sealed = [self.study, self.frames, self.truth, self.inputs]
        if manifest["status"] != "running":  # while units are done, the journal still grows
            sealed += [self.cells, self.journal]
        files = {path.name: file_sha256(path) for path in sealed if path.is_file()}
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


def existing_run(path: Path) -> RunFolder:
    """Return a run folder that must be there already."""
    folder = RunFolder(path)
    folder.read_manifest()
    return folder


def read_seals(folder: RunFolder) -> dict[str, Seal]:
    """Return the seals by path below the run folder; none where nothing was computed yet."""
    try:
        data = json.loads(folder.seals.read_bytes())
        allowed = all(SEALED.fullmatch(name) for name in data["files"])
        if allowed and data["digest"] == digest_of(data["files"]):
            return {name: Seal(*entry) for name, entry in data["files"].items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError):
        pass
    raise StoreError(
        "the list of results was changed after it was written",
        where=str(folder.seals),
        fix=f"Delete it and run adverse analyze {folder.path}: results are computed again.",
    )

"""Re-check every hash of a run folder, and of its inputs, and name what changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from adverse.errors import AdverseError, StoreError
from adverse.hashes import MISSING, content_hash
from adverse.study.store.folder import RunFolder
from adverse.study.store.journal import Journal
from adverse.study.store.manifest import read_manifest


@dataclass(frozen=True)
class Checked:
    """How many files were checked, and what was wrong with which."""

    files: int
    problems: tuple[AdverseError, ...]


def verify(folder: RunFolder, *, inputs: bool = True) -> Checked:
    """Check a run folder; `inputs` also reads the data files again."""
    count = 0
    problems: list[AdverseError] = []
    for path, wanted in _expected(folder, inputs=inputs):
        count += 1
        found = content_hash(path)
        if found != wanted:
            missing = found == MISSING
            problems.append(
                StoreError(
                    "a file is gone" if missing else "a file was changed",
                    where=str(path),
                    got="nothing there" if missing else f"sha256 {found}",
                    wanted=f"sha256 {wanted}",
                    fix="Restore it from a copy, or run the study again: only what changed is re-run.",
                )
            )
    return Checked(count, tuple(problems))


def _expected(folder: RunFolder, *, inputs: bool) -> Iterator[tuple[Path, str]]:
    manifest = read_manifest(folder)
    for name, wanted in manifest["files"].items():
        yield folder.path / name, wanted
    for entry in Journal(folder.journal).entries:
        yield folder.detections / entry.file, entry.sha256
    if inputs:
        for path, wanted in manifest["data"]["annotations"].items():
            yield Path(path), wanted
        table = pq.read_table(folder.inputs).to_pydict()
        for path, wanted in zip(table["path"], table["sha256"], strict=True):
            yield Path(path), wanted

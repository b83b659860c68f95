"""Re-check every hash of a run folder, and of its inputs, and name what changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adverse.errors import AdverseError, StoreError
from adverse.hashes import MISSING, content_hash
from adverse.study.store.folder import RunFolder
from adverse.study.store.journal import Journal
from adverse.study.store.manifest import read_inputs, read_manifest
from adverse.study.store.seals import broken_seal, derived_files, read_seals, state_of


@dataclass(frozen=True)
class Checked:
    """How many files were checked, and what was wrong with which."""

    files: int
    problems: tuple[AdverseError, ...]


def verify(folder: RunFolder, *, inputs: bool = True, results: bool = True) -> Checked:
    """Check a run folder; `inputs` reads data, SUTs and plug-ins again, `results` what was worked out."""
    manifest = read_manifest(folder)
    sealed = {folder.path / name: wanted for name, wanted in manifest["files"].items()}
    problems: list[AdverseError] = _wrong(sealed)
    expected: dict[Path, str] = {}
    try:
        for entry in Journal(folder.journal).entries:
            expected[folder.detections / entry.file] = entry.sha256
    except StoreError as error:
        problems.append(error)
    if inputs:
        expected |= {Path(path): wanted for path, wanted in manifest["data"]["annotations"].items()}
        expected |= {Path(path): wanted for path, wanted in read_inputs(folder).items()}
        expected |= {Path(path): wanted for path, wanted in manifest.get("plugins", {}).items()}
        systems = manifest["suts"].values()
        expected |= {Path(file["path"]): file["sha256"] for sut in systems for file in sut["files"].values()}
    problems += _wrong(expected)
    files = len(sealed) + len(expected)
    if results:
        found = _results(folder, manifest, whole=not problems and manifest["status"] == "complete")
        files, problems = files + found.files, [*problems, *found.problems]
    return Checked(files, tuple(problems))


def _results(folder: RunFolder, manifest: Mapping[str, Any], *, whole: bool) -> Checked:
    """Check what was worked out; against the state of the run only where that is `whole`."""
    try:
        seals, names = read_seals(folder), derived_files(folder)
    except StoreError as error:
        return Checked(1, (error,))
    state = state_of(folder, manifest) if whole else None
    broken = (broken_seal(folder, name, seals.get(name), state) for name in names)
    return Checked(len(names), tuple(problem for problem in broken if problem is not None))


def _wrong(expected: Mapping[Path, str]) -> list[AdverseError]:
    problems: list[AdverseError] = []
    for path, wanted in expected.items():
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
    return problems

"""What was computed from a run: the hash of every such file, and the state of the run it was made from.

seals.json lists the files of results/, verdicts/ and the report that our commands wrote. A file whose content
is another one, or that nobody sealed, is not read. Neither is one that was made from another state of the run
than manifest, tables and detections now describe: its figures are true, but of another run.

A seal shows a change, not a forgery: who edits a file can write its hash anew. What must not rest on
that, the gate works out again from the detections (docs/gate.md). `verify` checks every hash of a run folder,
and of its inputs, and names what changed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from adverse.content import MISSING, content_hash, digest
from adverse.errors import AdverseError, StoreError
from adverse.store.durable import storage_errors, write_file
from adverse.store.folder import BENCHMARK, RunFolder, Seal, read_seals
from adverse.store.journal import RunJournal
from adverse.store.owned_folder import digest_of

DECIDES = ("format", "adverse", "data", "suts", "settings", "statistics")
"""Parts of the manifest that decide results; the machine and the number of workers do not."""
READ = (
    "summary.json",
    "curves.parquet",
    "outcomes.parquet",
    "sensitivity.parquet",
    "required.parquet",
    "retries.parquet",
    "troubles.parquet",
    f"{BENCHMARK}.json",
    "requirements.json",
)
"""Results that commands read."""
TABLES = ("frames.parquet", "truth.parquet", "inputs.parquet", "cells.parquet", "study.yaml")


def state_of(folder: RunFolder, manifest: Mapping[str, Any]) -> str:
    """Return the hash of all that results are made from; the same however the work was cut or ordered."""
    study = {key: value for key, value in manifest["study"].items() if key not in ("file", "folder")}
    description = {"study": study, **{key: manifest.get(key) for key in DECIDES}}
    tables = {name: manifest["files"].get(name) for name in TABLES}
    used = set(pq.read_table(folder.cells, columns=["file"])["file"].to_pylist())
    detections = {unit.file: unit.sha256 for unit in RunJournal(folder.journal).entries if unit.file in used}
    whole = [description, tables, detections]
    return digest(json.dumps(whole, sort_keys=True, default=str))


def write_derived(folder: RunFolder, state: str, files: Mapping[str, bytes]) -> None:
    """Write files that were computed from a state of the run (by path below its folder), and seal them."""
    hashes = {}
    for name, data in files.items():
        path = folder.path / name
        with storage_errors(path):
            path.parent.mkdir(exist_ok=True)
        write_file(path, data)
        hashes[name] = Seal(content_hash(path), state)
    _write_seals(folder, read_seals(folder) | hashes)


def drop_derived(folder: RunFolder, names: Iterable[str]) -> None:
    """Delete sealed files, and their seals; a file that somebody changed since then is left where it is."""
    seals = read_seals(folder)
    gone = [name for name in names if name in seals]
    for name in gone:
        path = folder.path / name
        if content_hash(path) == seals[name].sha256 and not path.is_symlink():
            with storage_errors(path):
                path.unlink()
    if gone:
        _write_seals(folder, {name: seal for name, seal in seals.items() if name not in gone})


def drop_of_other_states(folder: RunFolder, state: str) -> None:
    """Delete what was computed from other states of the run."""
    drop_derived(folder, [name for name, seal in read_seals(folder).items() if seal.state != state])


def broken_seal(folder: RunFolder, name: str, seal: Seal | None, state: str | None) -> AdverseError | None:
    """Return why a derived file must not be read; None if it may, or if it is neither sealed nor there.

    `state` is that of the run; None: the run is not finished, so that whatever there is was made before.
    """
    path = folder.path / name
    sha256 = content_hash(path)
    if seal is None and sha256 == MISSING and not path.is_symlink():
        return None
    again = f"Have it made again: {made_by(folder, name)}."
    if seal is None:
        return StoreError(
            "the file was not written by adverse",
            where=str(path),
            got="a file that is not in seals.json",
            fix=f"Delete it. {again}",
        )
    if sha256 != seal.sha256:
        return StoreError(
            "a file is missing" if sha256 == MISSING else "a file was changed",
            where=str(path),
            got="no such file" if sha256 == MISSING else f"sha256 {sha256}",
            wanted=f"sha256 {seal.sha256}",
            fix=again,
        )
    if state is not None and seal.state != state:
        return StoreError(
            "the results were made from another state of the run",
            where=str(path),
            got=f"state {seal.state}",
            wanted=f"state {state}, as manifest.json and the detections now are",
            fix=again,
        )
    return None


def derived_files(folder: RunFolder) -> list[str]:
    """Return the files that must be as they were sealed, and those in their places that are not sealed.

    Pages and pictures are not among them: no command reads them, and who likes may delete or change them.
    """
    there = [*(folder.results / name for name in READ), *folder.verdicts.glob("*.json")]
    names = {f"{path.parent.name}/{path.name}" for path in there if path.exists() or path.is_symlink()}
    sealed = {name for name in read_seals(folder) if name.startswith(("results/", "verdicts/"))}
    return sorted(names | {name for name in sealed if not name.startswith("results/drive.")})


def made_by(folder: RunFolder, name: str) -> str:
    """Return the command that writes a derived file."""
    run = folder.path
    if name.startswith("report"):
        return f"adverse report {run}"
    if name.startswith(f"results/{BENCHMARK}."):
        return f"adverse bench-table {run} --save"
    if name == "verdicts/rules.json":
        return f"adverse check {run} RULES --save"
    if name.startswith("verdicts/") or "requirements" in name:
        return f"adverse requirements check FILE --out {run}"
    if name.startswith("results/drive."):
        return f"adverse drive {run}"
    return f"adverse analyze {run}"


def _write_seals(folder: RunFolder, seals: Mapping[str, Seal]) -> None:
    files = {name: list(seals[name]) for name in sorted(seals)}
    data = {"files": files, "digest": digest_of(files)}
    write_file(folder.seals, json.dumps(data, indent=1).encode() + b"\n")


@dataclass(frozen=True)
class Verification:
    """How many files were checked, and what was wrong with which."""

    files: int
    problems: tuple[AdverseError, ...]


def verify(folder: RunFolder, *, inputs: bool = True, results: bool = True) -> Verification:
    """Check a run folder; `inputs` reads data, SUTs and plug-ins again, `results` what was computed."""
    manifest = folder.read_manifest()
    sealed = {folder.path / name: wanted for name, wanted in manifest["files"].items()}
    problems: list[AdverseError] = _wrong(sealed)
    expected: dict[Path, str] = {}
    try:
        for entry in RunJournal(folder.journal).entries:
            expected[folder.detections / entry.file] = entry.sha256
    except StoreError as error:
        problems.append(error)
    if inputs:
        expected |= {Path(path): wanted for path, wanted in manifest["data"]["annotations"].items()}
        expected |= {Path(path): wanted for path, wanted in folder.read_inputs().items()}
        expected |= {Path(path): wanted for path, wanted in manifest.get("plugins", {}).items()}
        systems = manifest["suts"].values()
        expected |= {Path(file["path"]): file["sha256"] for sut in systems for file in sut["files"].values()}
    problems += _wrong(expected)
    files = len(sealed) + len(expected)
    if results:
        derived = _results(folder, manifest, whole=not problems and manifest["status"] == "complete")
        files, problems = files + derived.files, [*problems, *derived.problems]
    return Verification(files, tuple(problems))


def _results(folder: RunFolder, manifest: Mapping[str, Any], *, whole: bool) -> Verification:
    """Check what was computed; against the state of the run only where that is `whole`."""
    try:
        seals, names = read_seals(folder), derived_files(folder)
    except StoreError as error:
        return Verification(1, (error,))
    state = state_of(folder, manifest) if whole else None
    broken = (broken_seal(folder, name, seals.get(name), state) for name in names)
    return Verification(len(names), tuple(problem for problem in broken if problem is not None))


def _wrong(expected: Mapping[Path, str]) -> list[AdverseError]:
    problems: list[AdverseError] = []
    for path, wanted in expected.items():
        sha256 = content_hash(path)
        if sha256 != wanted:
            missing = sha256 == MISSING
            problems.append(
                StoreError(
                    "a file is missing" if missing else "a file was changed",
                    where=str(path),
                    got="no such file" if missing else f"sha256 {sha256}",
                    wanted=f"sha256 {wanted}",
                    fix="Restore it from a copy, or run the study again: only what changed is re-run.",
                )
            )
    return problems

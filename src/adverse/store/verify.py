"""Look at every file of a run folder, and of its inputs, and name what is not as it was written.

All that adverse wrote has its hash somewhere: the manifest in itself, tables, journal and logs in the
manifest, detections in the journal, what was computed in seals.json. Whatever else lies where only our files
belong was added by somebody.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adverse.content import VARIABLE, WRITTEN, content_hash
from adverse.errors import AdverseError, StoreError
from adverse.remote_files import named_path
from adverse.store.folder import RunFolder
from adverse.store.journal import RunJournal
from adverse.store.owned_folder import MARK, PARTIAL, OwnedFolder
from adverse.store.queries import DetectionFiles
from adverse.store.seal_list import lost_list, read_seals
from adverse.store.seals import (
    broken_seal,
    changed,
    derived_files,
    hash_inside,
    inside,
    made_by,
    state_of,
)

AGAIN = "Restore it from a copy, or run the study again: only what changed is re-run."
NAMED = 5
"""Files of others that are named in one line."""


@dataclass(frozen=True)
class Verification:
    """How many files were checked, what was wrong with which, and what else is to be said."""

    files: int
    problems: tuple[AdverseError, ...]
    notes: tuple[str, ...] = ()
    tolerated: tuple[AdverseError, ...] = ()
    """What was wrong with files that are about to be made again."""
    unfinished: bool = False
    state: str | None = None
    """The state of a finished run without problems, which everything computed from it is sealed with."""
    detections: DetectionFiles | None = None
    """The detections of a finished run without problems, as they were read for the check."""


def verify(folder: RunFolder, *, inputs: bool = True, rewrites: Sequence[str] = ()) -> Verification:
    """Check a run folder; `inputs` reads data, SUTs and plug-ins again.

    `rewrites` says how the names of derived files begin that the caller is about to make again.
    """
    manifest = folder.read_manifest()
    try:
        return _verify(folder, manifest, inputs=inputs, rewrites=rewrites)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StoreError(
            "the manifest does not describe a run",
            where=str(folder.manifest),
            got=f"{type(error).__name__}: {error}",
            fix="Run the study again in the same folder: what is still valid is reused.",
        ) from error


def _verify(
    folder: RunFolder, manifest: Mapping[str, Any], *, inputs: bool, rewrites: Sequence[str]
) -> Verification:
    finished = manifest["status"] == "complete"
    sealed = {folder.path / name: wanted for name, wanted in manifest["files"].items()}
    problems = wrong_inside(folder, sealed)
    whole = not problems
    detections: dict[Path, str] = {}
    try:
        detections = {
            folder.detections / entry.file: entry.sha256 for entry in RunJournal(folder.journal).entries
        }
    except (StoreError, OSError, ValueError, KeyError, TypeError) as error:
        if whole:
            problems.append(error if isinstance(error, StoreError) else changed_journal(folder.journal))
    problems += wrong_inside(folder, detections)
    read: DetectionFiles | None = None
    if finished and whole:
        known = {*sealed, *detections}
        problems += added((folder.detections, folder.logs), known)
        if not problems:
            read = DetectionFiles(folder)
            problems += _misfiled(read, manifest)
    outside = _inputs(folder, manifest) if inputs and whole else {}
    problems += [
        changed(path, sha256, wanted, AGAIN)
        for path, wanted in outside.items()
        if (sha256 := content_hash(path)) != wanted
    ]
    state = state_of(folder, manifest) if finished and not problems else None
    names, broken = broken_seals(folder, state, lambda name: made_by(folder, name))
    tolerated = made_again(folder, broken, rewrites)
    problems += [error for error in broken.values() if error not in tolerated]
    files = len(sealed) + len(detections) + len(outside) + names
    notes = [] if finished else [f"the run is not finished ({manifest['status']}): {UNFINISHED}"]
    notes += _others(folder)
    notes += _variables(manifest) if inputs else []
    return Verification(
        files,
        tuple(problems),
        tuple(notes),
        tuple(tolerated),
        unfinished=not finished,
        state=state,
        detections=read,
    )


UNFINISHED = (
    "results, verdicts and pages in the folder are of an older state, and no command reads them. "
    "Run the same command to resume"
)


def _misfiled(files: DetectionFiles, manifest: Mapping[str, Any]) -> list[AdverseError]:
    """Return an error where the rows are not those of the plan: one for each frame, setting and SUT."""
    wrong = files.misfiled(list(manifest["settings"]), list(manifest["suts"]))
    if not wrong:
        return []
    more = f"; and {len(wrong) - NAMED} more" if len(wrong) > NAMED else ""
    error = StoreError(
        "the results are not those of the planned frames",
        where=str(files.folder.detections),
        got="; ".join(wrong[:NAMED]) + more,
        wanted="one row for each planned frame, setting and SUT",
        fix="Run the study again with --fresh.",
    )
    return [error]


def _inputs(folder: RunFolder, manifest: Mapping[str, Any]) -> dict[Path, str]:
    """Return the hash of everything outside the folder that the run was made from."""
    expected = {named_path(path): wanted for path, wanted in manifest["data"]["annotations"].items()}
    expected |= {named_path(path): wanted for path, wanted in folder.read_inputs().items()}
    expected |= {named_path(path): wanted for path, wanted in manifest.get("plugins", {}).items()}
    for hashes in manifest.get("files_read", {}).values():
        expected |= {
            named_path(path): wanted.removeprefix(WRITTEN)
            for path, wanted in hashes.items()
            if not path.startswith(VARIABLE)
        }
    files = [file for sut in manifest["suts"].values() for file in sut["files"].values()]
    return expected | {named_path(file["path"]): file["sha256"] for file in files}


def _variables(manifest: Mapping[str, Any]) -> list[str]:
    """Say which variables of the environment are others here and now; the run is what it was all the same."""
    others = sorted(
        {
            name
            for hashes in manifest.get("files_read", {}).values()
            for name, hashed in hashes.items()
            if name.startswith(VARIABLE) and content_hash(Path(name)) != hashed
        }
    )
    if not others:
        return []
    return [f"{', '.join(others)}: read by the run with another value than here, so a run here repeats work"]


def broken_seals(
    folder: OwnedFolder, state: str | None, again: Callable[[str], str]
) -> tuple[int, dict[str, AdverseError]]:
    """Return how many derived files there are, and by name what is wrong with some of them."""
    try:
        seals, names = read_seals(folder), derived_files(folder)
    except StoreError as error:
        return 1, {folder.seals.name: error}
    if names and not folder.seals.exists():  # said once, not of each file; those of others stay errors
        others = {path.relative_to(folder.path).as_posix() for path in folder.files_of_others()}
        foreign = {name: broken_seal(folder, name, None, state, again(name)) for name in others & set(names)}
        lost: dict[str, AdverseError] = {folder.seals.name: lost_list(folder)}
        return 1, lost | {name: error for name, error in foreign.items() if error is not None}
    broken = {name: broken_seal(folder, name, seals.get(name), state, again(name)) for name in names}
    return len(names) + 1, {name: error for name, error in broken.items() if error is not None}


def made_again(
    folder: OwnedFolder, broken: Mapping[str, AdverseError], rewrites: Sequence[str]
) -> list[AdverseError]:
    """Return the errors about files that the caller is about to make again: none about files of others."""
    if not broken:
        return []
    others = {path.relative_to(folder.path).as_posix() for path in folder.files_of_others()}
    return [
        error for name, error in broken.items() if name.startswith(tuple(rewrites)) and name not in others
    ]


def still_broken(folder: RunFolder, state: str) -> list[AdverseError]:
    """Return what is wrong with sealed files of a run after a command made again what it makes."""
    seals = read_seals(folder)
    checked = (broken_seal(folder, name, seal, state, made_by(folder, name)) for name, seal in seals.items())
    return [error for error in checked if error is not None]


def wrong_inside(
    folder: OwnedFolder, expected: Mapping[Path, str], *, fix: str = AGAIN
) -> list[AdverseError]:
    """Return an error for each file of a folder whose hash is another one."""
    problems: list[AdverseError] = []
    for path, wanted in expected.items():
        sha256 = hash_inside(folder.path, path)
        if sha256 != wanted:
            problems.append(changed(path, sha256, wanted, fix))
    return problems


def added(places: Sequence[Path], known: set[Path]) -> list[AdverseError]:
    """Return an error for each file that somebody put where only files of ours belong."""
    return [
        StoreError(
            "the file was not written by adverse",
            where=str(path),
            got="a file that the folder does not list",
            fix="Move it elsewhere: nothing reads it, but the folder is not what was written.",
        )
        for place in places
        for path in inside(place)
        if path not in known
    ]


def changed_journal(path: Path) -> StoreError:
    """Return the error for a journal that cannot be read at all."""
    return StoreError("the journal was changed or is damaged", where=str(path), fix=AGAIN)


def _others(folder: RunFolder) -> list[str]:
    """Say what in the folder is not ours, and so is not checked, and which writes were cut short."""
    ours = folder.own_files()
    names = [path.name for path in sorted(folder.path.iterdir())]
    known = {MARK, "lock", *ours}
    foreign = [name for name in names if name not in known and not re.fullmatch(ours["."], name)]
    foreign = [name for name in foreign if not PARTIAL.fullmatch(name)]
    cut_short = [path for path in folder.path.rglob(".*.partial") if PARTIAL.fullmatch(path.name)]
    notes = []
    if foreign:
        more = f", and {len(foreign) - NAMED} more" if len(foreign) > NAMED else ""
        notes.append(f"not written by adverse, and not checked: {', '.join(foreign[:NAMED])}{more}")
    if cut_short:
        notes.append(f"{len(cut_short)} .partial files of writes that were cut short; nothing reads them")
    return notes

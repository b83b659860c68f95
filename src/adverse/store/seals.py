"""What was computed from a run: the hash of every such file, and the state of the run it was made from.

seals.json lists the files of results/, verdicts/ and report_tables/, the pages and the signature, as our
commands wrote them. A file whose content is another one, or that nobody sealed, is not read. Neither is one
that was made from another state of the run than manifest, tables and detections now describe: its figures
are true, but of another run.

A seal shows a change, not a forgery: who edits a file can write its hash anew. Verdicts do not rest on that,
they are worked out again from the detections (docs/gate.md); against forgery there are signatures
(`store/signature.py`).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from adverse.content import MISSING, content_hash, digest
from adverse.errors import AdverseError, StoreError
from adverse.store.durable import storage_errors, write_file
from adverse.store.folder import BENCHMARK, OURS, RunFolder
from adverse.store.journal import RunJournal
from adverse.store.owned_folder import PARTIAL, OwnedFolder
from adverse.store.seal_list import ANALYSIS, DERIVED, PLACES, SIGNATURE, Seal, read_seals, write_seals

DECIDES = ("format", "adverse", "data", "suts", "settings", "statistics")
"""Parts of the manifest that decide results; the machine and the number of workers do not."""
TABLES = ("frames.parquet", "truth.parquet", "inputs.parquet", "cells.parquet", "study.yaml")
EVERYTHING = ("",)
"""For those who make anew whatever was computed: every name begins with it."""
OLDER = (
    b'<p role="alert" '
    b'style="margin:0;padding:.7em 1em;background:#b00020;color:#fff;font:bold 16px sans-serif">'
    b"This page is of an older state: its run was started again and is not finished.</p>"
)
"""What a page begins with while its run is under way again, or was stopped."""


def state_of(folder: RunFolder, manifest: Mapping[str, Any]) -> str:
    """Return the hash of all that results are made from; the same however the work was cut or ordered."""
    tables = {name: manifest["files"].get(name) for name in TABLES}
    tables |= {name: sha256 for name, sha256 in manifest["files"].items() if name == "selection.parquet"}
    used = set(pq.read_table(folder.cells, columns=["file"])["file"].to_pylist())
    detections = {unit.file: unit.sha256 for unit in RunJournal(folder.journal).entries if unit.file in used}
    whole = [_decisive(manifest), tables, detections]
    return digest(json.dumps(whole, sort_keys=True, default=str))


def state_of_all_suts(manifest: Mapping[str, Any]) -> str:
    """Return the hash of what the figures of every single SUT are made from, apart from any SUT."""
    description = {key: value for key, value in _decisive(manifest).items() if key != "suts"}
    statistics = {key: value for key, value in manifest["statistics"].items() if key != "operating_points"}
    tables = {name: manifest["files"].get(name) for name in ("frames.parquet", "truth.parquet")}
    return digest(json.dumps([{**description, "statistics": statistics}, tables], default=str))


def states_of_suts(folder: RunFolder, manifest: Mapping[str, Any]) -> dict[str, str]:
    """Return, by SUT, the hash of what its figures are made from besides that."""
    hashes = {unit.file: unit.sha256 for unit in RunJournal(folder.journal).entries}
    cells = pq.read_table(folder.cells, columns=["sut", "setting", "file"])
    detections: dict[str, set[tuple[str, str]]] = {sut: set() for sut in manifest["suts"]}
    for sut, setting, file in zip(*(column.to_pylist() for column in cells.columns), strict=True):
        detections[sut].add((setting, hashes[file]))
    points = manifest["statistics"]["operating_points"]
    return {
        sut: digest(json.dumps([sut, facts, points.get(sut), sorted(detections[sut])], default=str))
        for sut, facts in manifest["suts"].items()
    }


def _decisive(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of a manifest that decide results."""
    study = {key: value for key, value in manifest["study"].items() if key not in ("file", "folder")}
    selected = {"selection": manifest["selection"]} if "selection" in manifest else {}
    return {"study": study, **{key: manifest.get(key) for key in DECIDES}, **selected}


def write_derived(folder: OwnedFolder, state: str, files: Mapping[str, bytes]) -> None:
    """Write files that were computed from a state of the folder (by path below it), and seal them."""
    hashes = {}
    for name, data in files.items():
        path = folder.path / name
        with storage_errors(path):
            path.parent.mkdir(exist_ok=True)
        write_file(path, data)
        hashes[name] = Seal(hashlib.sha256(data).hexdigest(), state)
    write_seals(folder, read_seals(folder) | hashes)


def seal_as_is(folder: OwnedFolder, state: str, paths: Iterable[Path]) -> None:
    """Seal files that were written bit by bit, as they are now; of leftovers of cut writes none."""
    names = {path.relative_to(folder.path).as_posix(): path for path in paths}
    hashes = {
        name: Seal(content_hash(path), state)
        for name, path in names.items()
        if path.is_file() and not PARTIAL.fullmatch(path.name)
    }
    write_seals(folder, read_seals(folder) | hashes)


def drop_derived(folder: OwnedFolder, names: Iterable[str]) -> list[str]:
    """Delete sealed files, and their seals; a file that somebody changed since then is left where it is.

    Return the files that were deleted.
    """
    deleted = []
    seals = read_seals(folder)
    gone = [name for name in names if name in seals and DERIVED.fullmatch(name)]
    for name in gone:
        path = folder.path / name
        if content_hash(path) == seals[name].sha256 and not path.is_symlink():
            with storage_errors(path):
                path.unlink()
            deleted.append(name)
    if gone:
        write_seals(folder, {name: seal for name, seal in seals.items() if name not in gone})
    return deleted


def drop_of_other_states(folder: OwnedFolder, state: str) -> list[str]:
    """Delete what was computed from other states of the run; not what may be true of this one too.

    Return a line for each command that must be given again to have its files; `adverse run` itself makes
    results and report again.
    """
    seals = read_seals(folder).items()
    stale = [name for name, seal in seals if seal.state != state and not _of_any_state(name)]
    again: dict[str, list[str]] = {}
    for name in drop_derived(folder, stale):
        again.setdefault(made_by(folder, name), []).append(name)
    unasked = [made_by(folder, name) for name in ("results/", "report")]
    return [
        f"deleted {', '.join(names)}: of the run before it changed. Make them again: {command}"
        for command, names in again.items()
        if command not in unasked
    ]


def mark_pages(folder: OwnedFolder, *, older: bool) -> None:
    """Begin the pages of a folder with a banner that says that they are of an older state, or end that.

    Only pages that are as they were sealed are touched: what somebody changed is not sealed anew.
    """
    with contextlib.suppress(StoreError):  # a damaged list names nothing
        for name, seal in read_seals(folder).items():
            path = folder.path / name
            if not name.endswith(".html") or path.is_symlink() or not path.is_file():
                continue
            page = path.read_bytes()
            plain = page.replace(OLDER, b"", 1)
            start = plain.find(b"<body")
            at = plain.find(b">", start) + 1 if start >= 0 else 0
            wanted = plain[:at] + OLDER + plain[at:] if older else plain
            ours = seal.sha256 in (hashlib.sha256(page).hexdigest(), hashlib.sha256(plain).hexdigest())
            if ours and wanted != page:
                write_derived(folder, seal.state, {name: wanted})


def sweep(folder: RunFolder) -> None:
    """Delete what writes that were cut short left behind, and detections that were never acknowledged."""
    acknowledged = {entry.file for entry in RunJournal(folder.journal).entries}
    sweep_leftovers(folder)
    with storage_errors(folder.path):
        place = folder.detections
        for path in sorted(place.iterdir()) if place.is_dir() and not place.is_symlink() else ():
            orphan = re.fullmatch(OURS["detections"], path.name) and path.name not in acknowledged
            if orphan and path.is_file() and not path.is_symlink():
                path.unlink(missing_ok=True)


def sweep_leftovers(folder: OwnedFolder) -> None:
    """Delete what writes that were cut short left behind."""
    with storage_errors(folder.path):
        for path in leftovers(folder):
            path.unlink(missing_ok=True)


def leftovers(folder: OwnedFolder) -> list[Path]:
    """Return what writes left behind that were cut short, of processes that are gone."""
    places = [folder.path / name for name in folder.own_files()]
    return [
        path
        for place in places
        for path in (_entries(place) if not place.is_symlink() else ())
        if PARTIAL.fullmatch(path.name)
        and not _running(int(path.name.split(".")[-2]))
        and path.is_file()
        and not path.is_symlink()
    ]


def _of_any_state(name: str) -> bool:
    """Return whether a file stays as the run changes: it is another's word, or says itself what it is of."""
    return name == SIGNATURE or name.startswith(f"{ANALYSIS}/")


def broken_seal(
    folder: OwnedFolder, name: str, seal: Seal | None, state: str | None, again: str
) -> AdverseError | None:
    """Return why a derived file must not be read; None if it may, or if it is neither sealed nor there.

    `state` is that of the run; None: the run is not finished, so that whatever there is was made before.
    `again` is the command that makes it again.
    """
    path = folder.path / name
    sha256 = hash_inside(folder.path, path)
    if seal is None and sha256 == MISSING:
        return None
    again = f"Have it made again: {again}."
    if seal is None:
        return StoreError(
            "the file was not written by adverse",
            where=str(path),
            got="a file that is not in seals.json",
            fix="Move it elsewhere." if path in folder.files_of_others() else f"Delete it. {again}",
        )
    if sha256 != seal.sha256:
        return changed(path, sha256, seal.sha256, again)
    if state is not None and seal.state != state and not _of_any_state(name):
        return StoreError(
            "the results were made from another state of the run",
            where=str(path),
            got=f"state {seal.state}",
            wanted=f"state {state}, as manifest.json and the detections now are",
            fix=again,
        )
    return None


def changed(path: Path, found: str, wanted: str, fix: str) -> StoreError:
    """Return the error for a file that is not what it was; `found` is its hash, or what it is instead."""
    if found == MISSING:
        return StoreError(
            "a file is missing", where=str(path), got="no such file", wanted=f"sha256 {wanted}", fix=fix
        )
    got = found if " " in found else f"sha256 {found}"
    return StoreError("a file was changed", where=str(path), got=got, wanted=f"sha256 {wanted}", fix=fix)


def hash_inside(root: Path, path: Path) -> str:
    """Return the sha256 of a file in one of our folders, `missing`, or in words what is in its place.

    We write plain files. A link, pipe or device in the place of one is not followed, opened or waited for.
    """
    for place in (path, *path.parents):
        if place == root:
            break
        if place.is_symlink():
            return f"a symbolic link, {place.relative_to(root)}"
    if path.exists() and not path.is_file():
        return "something that is not a file"
    return content_hash(path)


def derived_files(folder: OwnedFolder) -> list[str]:
    """Return the files that must be as they were sealed, and those in their places that are not sealed.

    Results come first: all else is made from them.
    """
    names = set(read_seals(folder))
    for place in PLACES:
        names |= {path.relative_to(folder.path).as_posix() for path in inside(folder.path / place)}
    names |= {path.name for path in _entries(folder.path) if DERIVED.fullmatch(path.name)}
    return sorted(names, key=lambda name: (not name.startswith("results/"), name))


def inside(place: Path) -> list[Path]:
    """Return all that is below a folder but folders, and leftovers of writes that were cut short."""
    if place.is_symlink():
        return [place]
    found: list[Path] = []
    for path in _entries(place):
        if path.is_dir() and not path.is_symlink():
            found += inside(path)
        elif not PARTIAL.fullmatch(path.name):
            found.append(path)
    return found


def _entries(place: Path) -> list[Path]:
    return sorted(place.iterdir()) if place.is_dir() else []


MADE_BY = {
    "report": "adverse report {run}",
    f"results/{BENCHMARK}.": "adverse bench-table {run} --save",
    "results/drive.": "adverse drive {run}",
    "results/requirements.": "adverse requirements check FILE --out {run}",
    "results/": "adverse analyze {run}",
    f"{ANALYSIS}/": "adverse analyze {run}",
    "verdicts/rules.": "adverse check {run} RULES --save",
    "verdicts/": "adverse requirements check FILE --out {run}",
    "requirements.": "adverse report {run}",
    "until.": "adverse run STUDY --until RULES --fresh --out {run}",
    SIGNATURE: "adverse seal {run} --key KEY --replace",
}
"""The commands that write derived files, by how the names of these begin."""


def made_by(folder: OwnedFolder, name: str) -> str:
    """Return the command that writes a derived file."""
    command = next((words for start, words in MADE_BY.items() if name.startswith(start)), "{run}")
    return command.replace("{run}", str(folder.path))


def _running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True

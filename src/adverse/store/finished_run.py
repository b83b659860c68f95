"""The door to a run: opened only if it is finished and as it was written, in the state it is in now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from adverse.content import ChangedError
from adverse.errors import IncompleteError, StoreError
from adverse.store.folder import RunFolder, refuse_other_format
from adverse.store.read import Store
from adverse.store.selection import SelectionKind
from adverse.store.verify import verify


def finished(path: Path, *, rewrites: Sequence[str] = (), selected: Sequence[SelectionKind] = ()) -> Store:
    """Open a finished run, or raise: for a file that changed, a run that is not finished, an older state.

    Every file of the folder is hashed, once, and what was worked out must be of the state that the run is in
    now. Only files that the caller is about to make again may be different: `rewrites` says how their names
    begin, and `tolerated` of the store what was wrong with them. A run that a search chose the frames of is
    opened to those who say that they know how to read it: `selected`.
    """
    folder = RunFolder(path)
    manifest = folder.read_manifest()
    refuse_other_format(folder, manifest)
    _refuse_selected(folder, manifest, selected)
    if manifest["status"] == "incomplete" and manifest["changed"]:
        changed = {Path(name): sha256 for name, sha256 in manifest["changed"].items()}
        raise ChangedError(changed, where=path)
    if manifest["status"] != "complete":
        outages = manifest.get("outages", {}).items()
        unasked = [
            f"SUT {sut!r} could not be reached; {facts['images']} images are left to ask"
            for sut, facts in outages
        ]
        raise IncompleteError(
            "the run is not finished, so its numbers would be wrong",
            where=str(path),
            got=", ".join(unasked) or _older_results(folder),
            fix="Run the study again with the same command: it resumes where it stopped.",
        )
    checked = verify(folder, inputs=False, rewrites=rewrites)
    for problem in checked.problems:
        raise problem  # what was changed by hand must not be sealed anew under our name
    store = Store(folder, state=checked.state, detections=checked.detections)
    store.tolerated = checked.tolerated
    _refuse_mixed(store)
    return store


def _refuse_selected(folder: RunFolder, manifest: Mapping[str, Any], known: Sequence[str]) -> None:
    """Raise for a run whose frames were chosen by its own answers: most figures of it would be biased."""
    part = manifest.get("selection")
    if part is None or part["kind"] in known:
        return
    what, fix = SELECTED_WORDS[part["kind"]]
    study = manifest.get("study", {}).get("file", "STUDY")
    raise StoreError(what, where=str(folder.path), fix=fix.format(run=folder.path, study=study))


SELECTED_WORDS = {
    "margins": (
        "the run is a search for margins: its frames were chosen by what was found on them",
        "See margins.html beside it, or run the whole study: adverse run {study}",
    ),
    "until": (
        "the run stopped early, when its rules were settled: intervals of other figures would claim too much",
        "See until.html in it, or go on to the whole study: adverse run {study} --out {run}",
    ),
}
"""Why a run of a selection is not to be read as one of everything, and what to do instead."""


def _older_results(folder: RunFolder) -> str | None:
    """Say of results that are there that they are not of this run."""
    there = (folder.results / "summary.json").exists()
    return "results that were made before the run was started again" if there else None


def _refuse_mixed(store: Store) -> None:
    """Raise where results of one frame come from different pixels: their difference says nothing."""
    mixed = store.frames_of_two_images()
    if mixed:
        raise StoreError(
            "one frame was decoded to different images",
            where=f"{store.folder.path}, frame {mixed[0]!r}",
            got=f"{len(mixed)} frame{'s' if len(mixed) > 1 else ''} with more than one hash of the pixels",
            wanted="all settings and SUTs of a frame on the same image",
            fix="Run the study again with --fresh.",
        )

"""The one door to a run folder for whoever makes or shows numbers: finished, and as it was written."""

from __future__ import annotations

from pathlib import Path

from adverse.content import ChangedError
from adverse.errors import IncompleteError, StoreError
from adverse.store.folder import RunFolder, existing_run
from adverse.store.manifest import read_manifest
from adverse.store.read import Store
from adverse.store.seals import verify


def finished(path: Path, *, results: bool = True) -> Store:
    """Open a finished run, or raise: for a file that changed, a run that is not finished, an older state.

    Every file that results are made from is hashed, once. So is what was worked out from them, which must
    also be of the state that the run is in now; without `results`, for those who make it anew, it may be not.
    """
    folder = existing_run(path)
    manifest = read_manifest(folder)
    if manifest["status"] == "incomplete" and manifest["changed"]:
        changed = {Path(name): found for name, found in manifest["changed"].items()}
        raise ChangedError(changed, where=path)
    if manifest["status"] != "complete":
        outages = manifest.get("outages", {}).items()
        unasked = [f"SUT {sut!r} could not be asked about {one['images']} images" for sut, one in outages]
        raise IncompleteError(
            "the run is not finished, and half of it would give half-true numbers",
            where=str(path),
            got=", ".join(unasked) or _left(folder),
            fix="Run the study again with the same command: it goes on where it stopped.",
        )
    for problem in verify(folder, inputs=False, results=results).problems:
        raise problem  # what was changed by hand must not be sealed anew under our name
    store = Store(folder)
    _refuse_mixed(store)
    return store


def _left(folder: RunFolder) -> str | None:
    """Say of results that are there whose they are."""
    there = (folder.results / "summary.json").exists()
    return "results that were made before the run was started again" if there else None


def _refuse_mixed(store: Store) -> None:
    """Raise where results of one frame come from different pixels: their difference says nothing."""
    mixed = store.frames_of_two_images()
    if mixed:
        raise StoreError(
            "answers about one frame are about two images",
            where=f"{store.folder.path}, frame {mixed[0]!r}",
            got=f"{len(mixed)} frame{'s' if len(mixed) > 1 else ''} with more than one hash of the pixels",
            wanted="all settings and SUTs of a frame on the same image",
            fix="Run the study again with --fresh.",
        )

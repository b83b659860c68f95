"""A run folder that numbers may be made from: finished, and as it was written."""

from __future__ import annotations

from pathlib import Path

from adverse.errors import IncompleteError, StoreError
from adverse.planned import ChangedError
from adverse.study.store.folder import existing_run
from adverse.study.store.read import Store
from adverse.study.store.verify import verify


def finished(path: Path, *, results: bool = False) -> Store:
    """Open a finished run, or raise; with `results` also what was worked out from it must be untouched."""
    folder = existing_run(path)
    for problem in verify(folder, inputs=False, results=results).problems:
        raise problem  # what was changed by hand must not be sealed anew under our name
    store = Store(folder)
    if store.manifest["status"] == "incomplete":
        changed = {Path(name): found for name, found in store.manifest["changed"].items()}
        raise ChangedError(changed, where=path)
    if store.manifest["status"] != "complete":
        raise IncompleteError(
            "the run is not finished, and half of it would give half-true numbers",
            where=str(path),
            fix="Run the study again with the same command: it goes on where it stopped.",
        )
    _refuse_mixed(store)
    return store


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

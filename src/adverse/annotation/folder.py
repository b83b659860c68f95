"""The folder of annotations: which data set they are of, and the journal of all changes.

ANNOTATIONS/
  annotations.json    the data set, how it is read, its classes, and a digest of what it says
  changes             one line with a checksum for each change
  lock                who is using the folder
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from adverse.annotation.changes import Changes, State
from adverse.content import digest
from adverse.errors import DataError, StoreError
from adverse.store.durable import write_file
from adverse.store.owned_folder import is_marked
from adverse.types import Dataset

KIND = "annotation folder"
MANIFEST, JOURNAL = "annotations.json", "changes"
LAYOUT = 1


@dataclass(frozen=True)
class AnnotatedData:
    """Which data set is annotated, how it is read, and the classes that boxes can have."""

    path: str
    format: str | None
    options: tuple[str, ...]
    plugins: tuple[str, ...]
    categories: tuple[str, ...]
    fingerprint: str
    offset_px: float | None = None
    """The offset that was given instead of that of the cameras."""


def open_state(folder: Path, data: AnnotatedData, dataset: Dataset) -> tuple[State, tuple[str, ...]]:
    """Return the state of a folder of ours and its classes; whoever calls it holds the folder's lock.

    A new folder is told its data set; one that is gone on with may be given more classes.
    """
    path = folder / MANIFEST
    before = read_manifest(folder) if path.exists() else None
    categories = data.categories
    if before is not None:
        check_data(folder, before, dataset)
        categories = tuple(dict.fromkeys((*before.categories, *data.categories)))
    now = replace(data, categories=categories)
    if now != before:
        write_file(path, (json.dumps({"layout": LAYOUT, **asdict(now)}, indent=1) + "\n").encode())
    journal = Changes(folder / JOURNAL)
    journal.mend()
    return State(dataset, journal), categories


def read_state(folder: Path, dataset: Dataset) -> State:
    """Return the state of a folder without touching it; a server may be adding to it."""
    return State(dataset, Changes(folder / JOURNAL))


def read_manifest(folder: Path) -> AnnotatedData:
    """Return what a folder of annotations says it is of."""
    path = folder / MANIFEST
    if not path.is_file() or not is_marked(folder, KIND):
        raise StoreError(
            f"this is not an {KIND}",
            where=str(folder),
            got=f"no {MANIFEST} in it" if folder.is_dir() else "no such folder",
            fix="Give the folder that `adverse annotate DATA --out FOLDER` made.",
        )
    try:
        body: Mapping[str, Any] = json.loads(path.read_bytes())
        return AnnotatedData(
            body["path"],
            body["format"],
            tuple(body["options"]),
            tuple(body["plugins"]),
            tuple(body["categories"]),
            body["fingerprint"],
            body.get("offset_px"),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(
            "the description of the annotations cannot be read",
            where=str(path),
            got=f"{type(error).__name__}: {error}",
            fix="Restore the file from a copy.",
        ) from error


def fingerprint(dataset: Dataset) -> str:
    """Return a digest of what annotations refer to: logs, frames, their ground truth, cameras and poses."""
    parts: list[str | bytes] = [repr(dataset.categories)]
    for log in dataset.logs:
        parts.append(log.id)
        for frame in log.frames:
            truth = frame.truth
            parts += [frame.id, repr((frame.camera, frame.time_s)), truth.boxes.tobytes()]
            parts += [truth.labels.tobytes(), truth.ignore.tobytes(), truth.ids.tobytes()]
            pose = frame.world_from_camera
            parts.append(b"" if pose is None else pose.tobytes())
    return digest(*parts)


def all_categories(dataset: Dataset, more: Sequence[str]) -> tuple[str, ...]:
    """Return the classes that boxes can have: those of the data set, then others; at least `person`."""
    return tuple(dict.fromkeys((*dataset.categories, *more))) or ("person",)


def check_data(folder: Path, annotated: AnnotatedData, dataset: Dataset) -> None:
    """Raise where a data set is not the one that was annotated."""
    if annotated.fingerprint != fingerprint(dataset):
        raise DataError(
            "the data set is not the one that was annotated here",
            where=str(folder),
            got="other frames, boxes, cameras or poses",
            wanted=f"{annotated.path}, as it was",
            fix="Give the same data set, or another folder with --out.",
        )

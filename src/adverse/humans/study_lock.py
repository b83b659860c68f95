"""What a study was when its first image was given out: answers belong to that study and to no other.

Answers to another question, on other images or after another exposure are other answers. So the study file is
kept beside them, with checksums of its plug-ins and of every image, and a study that no longer is what
it was is refused: it goes on as it was, or begins anew under another file name. Every batch of images carries
the checksum of what was kept, so that it cannot be lost or replaced unnoticed. The text that people agree
to has versions of its own, and what a platform needs says nothing about answers: both may change.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from adverse.content import content_hash, file_sha256
from adverse.errors import StoreError, StudyError
from adverse.humans.records import OWNER_ONLY, State
from adverse.humans.study_file import HumanStudyFile
from adverse.store.durable import storage_errors, write_file
from adverse.text import counted, shown

Images = Mapping[str, tuple[str, Path]]
"""The category and the file of each image, by its id."""
FILE = "study.json"
IMAGES = "images"
NAMED = 3
"""Changed images that an error names; the rest are counted."""
FREE = ("consent", "platform")
"""What may change while a study runs."""


def lock_study_file(file: HumanStudyFile, state: State, images: Images) -> str:
    """Refuse a study that is not the one its answers belong to; before its first image, keep this one.

    Return the checksum of what is kept, which belongs into every batch of images.
    """
    now = {**_settings(file), IMAGES: _checksums(images)}
    path = file.folder / FILE
    if state.trials:
        _refuse_changes(file, _kept(file, state), now)
        return file_sha256(path)
    write_file(path, (json.dumps(now, indent=1, sort_keys=True) + "\n").encode())
    with storage_errors(path):
        path.chmod(OWNER_ONLY)
    return file_sha256(path)


def refuse_another_study(file: HumanStudyFile, state: State, images: Callable[[], Images]) -> None:
    """Refuse answers that were given in another study than this file says, or on other images."""
    if state.trials:
        before = _kept(file, state)
        _refuse_changes(file, {**before, IMAGES: None}, {**_settings(file), IMAGES: None})
        _refuse_changes(file, {IMAGES: before.get(IMAGES)}, {IMAGES: _checksums(images())})


def _checksums(images: Images) -> dict[str, list[str]]:
    """Return what is bound of each image: its category, and the checksum of its file."""
    return {name: [truth, content_hash(path)] for name, (truth, path) in sorted(images.items())}


def _settings(file: HumanStudyFile) -> dict[str, Any]:
    settings = file.study.model_dump(mode="json", exclude=set(FREE))
    files = {name: file_sha256((file.path.parent / name).resolve()) for name in file.study.plugins}
    return {**settings, "plugins": files}


def _kept(file: HumanStudyFile, state: State) -> dict[str, Any]:
    """Return what the study was when it began, or raise where that is lost or no longer what it was."""
    path = file.folder / FILE
    try:
        kept = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise StoreError(
            "what the study was when it began cannot be read",
            where=str(path),
            got=f"{type(error).__name__}: {error}",
            fix="Restore the file from a copy.",
        ) from error
    if state.studies - {file_sha256(path)}:  # none are known of batches written before they carried it
        raise StoreError(
            "what the study was when it began is not what its answers were given under",
            where=str(path),
            got="another checksum than the answers carry",
            fix="Restore the file from a copy.",
        )
    return dict(kept)


def _refuse_changes(file: HumanStudyFile, before: dict[str, Any], now: dict[str, Any]) -> None:
    changed = sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
    if changed:
        words = [f"another value of {name}" for name in changed if name != IMAGES]
        words += _image_changes(before.get(IMAGES), now[IMAGES]) if IMAGES in changed else []
        raise StudyError(
            "the study is not what it was when its answers were given",
            where=str(file.path),
            got="; ".join(words),
            wanted=f"the study as it began, which {file.folder / FILE} holds",
            fix="Change it back, or begin a new study: copy the file to another name.",
        )


def _image_changes(before: object, now: dict[str, list[str]]) -> list[str]:
    """Say which images are not what they were."""
    if not isinstance(before, dict):
        return ["images whose pixels were not recorded when the study began"]
    both = before.keys() & now.keys()
    kinds = {
        "added": now.keys() - before.keys(),
        "removed": before.keys() - now.keys(),
        "of another category": {name for name in both if before[name][0] != now[name][0]},
        "with other pixels": {name for name in both if before[name][1] != now[name][1]},
    }
    return [
        f"{counted(len(names), 'image')} {kind}: {', '.join(shown(name) for name in sorted(names)[:NAMED])}"
        + (", ..." if len(names) > NAMED else "")
        for kind, names in kinds.items()
        if names
    ]

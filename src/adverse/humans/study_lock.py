"""What a study was when its first image was given out: answers belong to that study and to no other.

Answers to another question, on other images or after another exposure are other answers. So the study file is
kept beside them, with checksums of its plug-ins and of its list of images, and a study that no longer is what
it was is refused: it goes on as it was, or begins anew under another file name. The text that people agree
to has versions of its own, and what a platform needs says nothing about answers: both may change.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from adverse.content import digest, file_sha256
from adverse.errors import StoreError, StudyError
from adverse.humans.records import OWNER_ONLY, State
from adverse.humans.study_file import HumanStudyFile
from adverse.store.durable import storage_errors, write_file

FILE = "study.json"
FREE = ("consent", "platform")
"""What may change while a study runs."""


def lock_study_file(file: HumanStudyFile, state: State, pictures: Sequence[tuple[str, str]]) -> None:
    """Refuse a study that is not the one its answers belong to; before its first image, keep this one."""
    listed = digest(*(part for picture in sorted(pictures) for part in picture))
    now = {**_settings(file), "images": listed}
    before = _kept(file)
    if state.trials and before is not None:
        _refuse_changes(file, before, now)
        return
    path = file.folder / FILE
    write_file(path, (json.dumps(now, indent=1, sort_keys=True) + "\n").encode())
    with storage_errors(path):
        path.chmod(OWNER_ONLY)


def refuse_another_study(file: HumanStudyFile, state: State) -> None:
    """Refuse answers that were given in another study than this file says; images are not looked at."""
    before = _kept(file)
    if state.trials and before is not None:
        now = _settings(file)
        _refuse_changes(file, {name: value for name, value in before.items() if name in now}, now)


def _settings(file: HumanStudyFile) -> dict[str, Any]:
    settings = file.study.model_dump(mode="json", exclude=set(FREE))
    files = {name: file_sha256((file.path.parent / name).resolve()) for name in file.study.plugins}
    return {**settings, "plugins": files}


def _kept(file: HumanStudyFile) -> dict[str, Any] | None:
    path = file.folder / FILE
    try:
        kept = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise StoreError(
            "what the study was when it began cannot be read",
            where=str(path),
            got=f"{type(error).__name__}: {error}",
            fix="Restore the file from a copy.",
        ) from error
    return dict(kept)


def _refuse_changes(file: HumanStudyFile, before: dict[str, Any], now: dict[str, Any]) -> None:
    changed = sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
    if changed:
        raise StudyError(
            "the study is not what it was when its answers were given",
            where=str(file.path),
            got=f"another value of {', '.join(changed)}",
            wanted=f"the study as it began, which {file.folder / FILE} holds",
            fix="Change it back, or begin a new study: copy the file to another name.",
        )

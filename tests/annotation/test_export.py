"""An export is whole or not there, wherever it is killed."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adverse.annotation.changes import Annotation, Change, Changes, Edit, State
from adverse.annotation.export import export_coco, export_folder, image_root
from adverse.data.folder import folder
from adverse.data.images import write_image
from adverse.errors import StudyError
from adverse.types import Dataset

CHANGES = ("open", "os.mkdir", "os.rename", "os.rmdir", "os.remove")
"""Audit events of what changes files (`open` also of what reads them)."""


def annotated(root: Path) -> tuple[Dataset, State]:
    for number in range(2):
        (root / "data" / "log" / "images").mkdir(parents=True, exist_ok=True)
        write_image(root / "data" / "log" / "images" / f"{number}.png", np.full((6, 8, 3), 9, np.uint8))
    dataset = folder(root / "data")
    state = State(dataset, Changes(root / "changes"))
    state.make(Change("log", "", (Edit(1, 3, Annotation((1.0, 2.0, 5.0, 6.0), "person")),)))
    return dataset, state


def export(dataset: Dataset, state: State, out: Path) -> None:
    options: dict[str, Any] = {"smooth_s": 0.5, "inside_m": 0.0}
    if out.suffix == ".json":
        export_coco(dataset, state, ("person",), out, root=image_root(dataset, out.parent), **options)
    else:
        export_folder(dataset, state, ("person",), out, **options)


def content(out: Path) -> dict[str, bytes]:
    files = [out] if out.is_file() else [path for path in out.rglob("*") if path.is_file()]
    return {str(path.relative_to(out)): path.read_bytes() for path in files}


def killed_at(number: int, dataset: Dataset, state: State, out: Path) -> bool:
    """Export in a fork that is killed before an operation; return whether it ended before that."""
    child = os.fork()
    if not child:
        left = [number]

        def watch(event: str, _: tuple[Any, ...]) -> None:
            if event in CHANGES:
                left[0] -= 1
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(watch)
        export(dataset, state, out)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, -signal.SIGKILL)
    return code == 0


@pytest.mark.parametrize("name", ["out", "truth.json"])
def test_an_export_that_is_killed_anywhere_is_whole_or_not_there(tmp_path: Path, name: str) -> None:
    dataset, state = annotated(tmp_path)
    export(dataset, state, tmp_path / f"whole-{name}")
    whole = content(tmp_path / f"whole-{name}")
    assert len(whole) == (3 if name == "out" else 1)
    there = []
    for number in range(1, 200, 4):
        out = tmp_path / f"{number}-{name}"
        ended = killed_at(number, dataset, state, out)
        there.append(out.exists())
        if there[-1]:
            assert content(out) == whole
        if ended:
            break
    assert ended
    export(dataset, state, tmp_path / f"1-{name}")  # what the killed one left is not in the way
    assert there == sorted(there)
    assert there.count(False) > 1


def test_an_export_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset, state = annotated(tmp_path)
    out = tmp_path / "out"
    with monkeypatch.context() as patched:
        patched.setattr("adverse.annotation.export._write_camera", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            export(dataset, state, out)
    assert {path.name for path in tmp_path.iterdir()} == {"data", "changes"}
    export(dataset, state, out)
    with pytest.raises(StudyError, match="something already"):
        export(dataset, state, out)

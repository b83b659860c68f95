"""A changed byte is found and its file named, wherever it is; and nothing half-done is analysed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from .cases import CANNOT_RUN, INCOMPLETE, PASS
from .command import adverse_here
from .good_study import GoodStudy


def flip(path: Path) -> None:
    """Change one byte in the middle of a file, keeping its size."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def first(folder: str) -> Callable[[GoodStudy], Path]:
    return lambda study: min((study.run / folder).iterdir())


FILES: dict[str, Callable[[GoodStudy], Path]] = {
    "detections": first("detections"),
    "journal": lambda study: study.run / "journal",
    "manifest": lambda study: study.run / "manifest.json",
    "study as resolved": lambda study: study.run / "study.yaml",
    "frames": lambda study: study.run / "frames.parquet",
    "truth": lambda study: study.run / "truth.parquet",
    "inputs": lambda study: study.run / "inputs.parquet",
    "cells": lambda study: study.run / "cells.parquet",
    "summary": lambda study: study.run / "results" / "summary.json",
    "curves": lambda study: study.run / "results" / "curves.parquet",
    "image": lambda study: study.images[3],
    "annotations": lambda study: study.annotations,
}


@pytest.mark.fault(58)
@pytest.mark.parametrize("name", FILES)
def test_a_changed_byte(done: GoodStudy, name: str) -> None:
    path = FILES[name](done)
    flip(path)
    done.adverse("verify").expect(CANNOT_RUN, str(path), "changed", "fix")


@pytest.mark.fault(58)
@pytest.mark.parametrize("name", [name for name in FILES if name != "manifest"])
def test_a_file_that_is_gone(done: GoodStudy, name: str) -> None:
    path = FILES[name](done)
    path.unlink()
    done.adverse("verify").expect(CANNOT_RUN, str(path), "no such file", "fix")


@pytest.mark.fault(58)
def test_every_change_is_named_at_once(done: GoodStudy) -> None:
    flip(FILES["detections"](done))
    flip(done.images[3])
    names = (str(FILES["detections"](done)), str(done.images[3]))
    done.adverse("verify").expect(CANNOT_RUN, *names)
    adverse_here("verify", done.run, "--no-inputs").expect(CANNOT_RUN, names[0])


def test_a_whole_line_cut_from_the_journal(done: GoodStudy) -> None:
    journal = done.run / "journal"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-1]))
    done.adverse("verify").expect(CANNOT_RUN, str(journal), "fix")


def test_not_a_run_folder(coco: GoodStudy) -> None:
    for command in ("verify", "analyze"):
        adverse_here(command, coco.data).expect(CANNOT_RUN, str(coco.data), "no manifest.json in it", "fix")
        adverse_here(command, coco.run).expect(CANNOT_RUN, str(coco.run), "no such folder", "fix")


def test_analyze_reads_no_tampered_detections(done: GoodStudy) -> None:
    path = FILES["detections"](done)
    flip(path)
    done.adverse("analyze").expect(CANNOT_RUN, str(path), "changed", "fix")


def test_analyze_reads_no_tampered_truth(done: GoodStudy) -> None:
    flip(done.run / "truth.parquet")
    done.adverse("analyze").expect(CANNOT_RUN, "run/truth.parquet", "changed", "fix")


@pytest.mark.fault(57)
def test_analyze_an_unfinished_run(done: GoodStudy) -> None:
    manifest = json.loads((done.run / "manifest.json").read_text())
    assert manifest["status"] == "complete"
    done.study["mutations"].append("brightness(scale=0.8)")
    done.sut(mood="interrupt", at=1)
    done.rewrite()
    done.adverse().expect(130, "Run the same command to resume")
    done.adverse("analyze").expect(INCOMPLETE, str(done.run), "not finished", "fix")


def test_a_file_of_others_among_the_detections_is_refused_by_every_command(done: GoodStudy) -> None:
    """Also by a new run, which leaves it where it is: it is not ours to delete. Moved away, all is well."""
    other = done.run / "detections" / "notes.txt"
    other.write_text("mine")
    for words in (("run", "--fresh"), ("run",), ("verify",), ("analyze",), ("report",)):
        said = done.adverse(*words)
        said.expect(CANNOT_RUN, "the file was not written by adverse", str(other), "Move it elsewhere")
    assert other.read_text() == "mine"
    other.unlink()
    for mended in ("analyze", "verify"):
        done.adverse(mended).expect(PASS)

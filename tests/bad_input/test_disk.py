"""Folders that cannot be written, disks that are full, and folders in use."""

from __future__ import annotations

import errno
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .cases import CANNOT_RUN, INCOMPLETE, PASS
from .command import adverse_here, run_alone, started
from .good_study import GoodStudy


class Disk:
    """fsync that counts, and finds the disk full after so many calls."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, room: float) -> None:
        self.calls = 0
        self.room = room
        self.real = os.fsync
        monkeypatch.setattr(os, "fsync", self)

    def __call__(self, handle: int) -> None:
        self.calls += 1
        if self.calls > self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.real(handle)


@pytest.mark.fault(42)
def test_full_disk(coco: GoodStudy, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that was finished is lost, and the same command goes on; all moments: `every_operation.py`."""
    with monkeypatch.context() as patch:
        disk = Disk(patch, math.inf)
        coco.adverse().expect(PASS)
    for room in range(0, disk.calls, disk.calls // 3):
        coco.run = coco.folder / f"run-{room}"
        with monkeypatch.context() as patch:
            Disk(patch, room)
            said = coco.adverse()
        said.expect(INCOMPLETE, "the disk is full", str(coco.run), "No space left", "Free some space")
        assert not list(coco.run.rglob("*.partial"))
        kept = len((coco.run / "journal").read_text().splitlines()) if room > 20 else 0
        coco.adverse().expect(PASS, f"{8 * kept} of 16 images were done before" if kept else "results:")
        coco.adverse("verify").expect(PASS)
        assert {row["area"] for row in coco.rows()} == {1.0}


@pytest.mark.fault(42)
def test_a_disk_that_takes_small_files_only(coco: GoodStudy) -> None:
    """In a process of its own, with a limit the system enforces: a write then stops half-way."""
    coco.write()
    limited = (
        "import resource as r; r.setrlimit(r.RLIMIT_FSIZE, (2000, 2000)); import adverse.cli as c; c.main()"
    )
    said = run_alone("-c", limited, "run", coco.file, "--out", coco.run, "--workers", "0")
    said.expect(INCOMPLETE, "the disk is full", str(coco.run), "File too large", "Free some space")
    coco.adverse().expect(PASS, "results:")


@pytest.mark.fault(43)
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_parent_that_cannot_be_written(coco: GoodStudy) -> None:
    """/proc takes no folders, not even from root."""
    coco.write()
    said = adverse_here("run", coco.file, "--out", "/proc/run", "--workers", "0")
    said.expect(CANNOT_RUN, "/proc/run", "cannot be written", "--out")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder(coco: GoodStudy) -> None:
    coco.run.mkdir()
    coco.run.chmod(0o500)
    coco.adverse().expect(CANNOT_RUN, str(coco.run), "Permission denied", "--out")


@pytest.mark.fault(43)
def test_a_run_folder_that_became_read_only(done: GoodStudy, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a remounted disk: everything can be read, nothing written."""

    def refuse(*_args: object, **_more: object) -> int:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "fsync", refuse)
    done.study["mutations"].append("brightness(scale=2)")
    done.rewrite()
    done.adverse().expect(CANNOT_RUN, str(done.run), "Read-only file system", "--out")
    monkeypatch.undo()
    done.adverse().expect(PASS, "16 of 24 images were done before")


def test_a_file_where_the_folder_should_be(coco: GoodStudy) -> None:
    coco.run.write_text("notes")
    coco.adverse().expect(CANNOT_RUN, str(coco.run), "is a file", "--out")
    assert coco.run.read_text() == "notes"


def test_a_folder_of_something_else(coco: GoodStudy) -> None:
    coco.run.mkdir()
    (coco.run / "thesis.tex").write_text("chapter 1")
    coco.adverse("run", "--fresh").expect(CANNOT_RUN, str(coco.run), "not a run", "--out")
    assert (coco.run / "thesis.tex").exists()


def waiting(process: subprocess.Popen[str], folder: Path) -> dict[str, object]:
    """Wait until a run holds the folder's lock, and return what the lock says."""
    while process.poll() is None:
        try:
            held: dict[str, object] = json.loads((folder / "lock").read_text())
        except (OSError, ValueError):
            continue
        return held
    pytest.fail("the run ended before it took the lock")


@pytest.mark.fault(47)
def test_two_runs_on_one_folder_and_a_stale_lock(coco: GoodStudy) -> None:
    coco.sut(mood="hang")
    coco.write()
    with started("-m", "adverse", "run", coco.file, "--out", coco.run, "--workers", "0") as process:
        holder = waiting(process, coco.run)
        assert holder["pid"] == process.pid
        in_use = f"process {process.pid} on {holder['host']}"
        coco.adverse().expect(
            CANNOT_RUN, "another process is using this folder", in_use, str(coco.run), "--out"
        )
        coco.adverse("run", "--fresh").expect(CANNOT_RUN, in_use)
        process.kill()
        process.wait()
    coco.sut(mood="good")
    coco.rewrite()
    coco.adverse().expect(PASS, f"took over the lock of process {holder['pid']}", "which is gone")
    again = coco.adverse()
    again.expect(PASS)
    assert "took over" not in again.text


def test_an_error_leaves_no_lock_behind(coco: GoodStudy) -> None:
    coco.study["mutations"] = ["no_such_mutation"]
    coco.adverse().expect(CANNOT_RUN, "no_such_mutation")
    coco.study.pop("mutations")
    coco.rewrite()
    said = coco.adverse()
    said.expect(PASS)
    assert "took over" not in said.text

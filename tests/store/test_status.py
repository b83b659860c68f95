"""How far a run is, said from outside while it goes on, and after."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from adverse.cli.status import status_lines, status_page
from adverse.errors import StoreError
from adverse.store.folder import RunFolder
from adverse.store.status import STATUS, RunStatus, StatusFile, run_status
from adverse.store.verify import verify
from small_study import write_study
from watching import Quiet


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[tuple[Path, subprocess.Popen[bytes]]]:
    """A run of some images, of which each takes a while, in a process of its own."""
    study = write_study(
        tmp_path, frames=8, logs=4, size=(64, 48), sleep_s=0.5, mutations="[brightness(scale=0.5)]"
    )
    run = tmp_path / "run"
    command = [sys.executable, "-m", "adverse", "run", str(study), "--out", str(run), "--workers", "2"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        while not (run / STATUS).exists() and process.poll() is None:
            time.sleep(0.1)
        yield run, process
        process.kill()


def test_a_run_from_start_to_a_kill(slow: tuple[Path, subprocess.Popen[bytes]]) -> None:
    run, process = slow
    status = run_status(run)
    assert (status.state, status.pid, status.total, status.before) == ("running", process.pid, 64, 0)
    assert len(status.workers) == 2
    lines = status_lines(status, run, status.written)
    assert lines[0].startswith(f"{run}: running on {status.host} (local, process {process.pid}) for ")
    assert lines[1].startswith("images   ")
    assert "identity" not in "\n".join(lines)
    process.send_signal(signal.SIGKILL)
    process.wait()
    killed = run_status(run)
    assert killed.state == "killed"
    assert "it resumes" in status_lines(killed, run, time.time())[0]
    notes = verify(RunFolder(run), inputs=False).notes
    assert not [note for note in notes if STATUS in note]  # it is ours


def test_rate_and_time_left() -> None:
    status = RunStatus(total=100, before=10, done=40, answered=4, warm=(1000.0, 14), written=1010.0)
    assert status.rate == 3.0
    assert status.left_s == pytest.approx(56 / 3)
    assert RunStatus(total=100).left_s is None
    status.statuses = dict(Counter(ok=30, fault=2))
    status.notes, status.noted = ["a worker <died>"], 1
    lines = status_lines(status, Path("run"), 1010.0)
    assert "images   44 of 100 (44%), 10 of them before, 3.0/s, about 19 s left" in lines
    assert "faults   2 faults" in lines
    page = status_page(status, Path("run"), 1010.0)
    assert "a worker &lt;died&gt;" in page
    assert 'http-equiv="refresh"' in page
    status.state = "complete"
    assert "refresh" not in status_page(status, Path("run"), 1010.0)


def test_what_is_heard_is_passed_on_and_a_full_disk_does_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quiet = Quiet()
    file = StatusFile(RunFolder(tmp_path / "nowhere"), quiet, "local", lambda: {"process 1": "idle"})
    monkeypatch.setattr("adverse.store.status.EVERY_S", 0.0)
    file.note("one")
    file.begin(10, 2)
    file.advance(Counter(ok=2, retried=1))
    file.under_way(3)
    file.end()
    assert (quiet.notes, quiet.done, quiet.answered) == (["one"], [3], [3])
    assert (file.status.done, file.status.answered, file.status.warm is not None) == (5, 0, True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ended", ["interrupted", "incomplete", "running"])
def test_a_run_that_stopped_says_how_far_it_came_until_all_is_done(tmp_path: Path, ended: str) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.create()
    folder.write_manifest({"status": ended})
    file = StatusFile(folder, Quiet(), "local", dict)
    file.begin(10, 2)
    file.advance(Counter(ok=2, fault=1))
    file.under_way(4)
    file.end()
    status = run_status(folder.path)
    assert status.state == ("killed" if ended == "running" else ended)
    lines = status_lines(status, folder.path, time.time())
    assert lines[1:] == ["images   5 of 10 (50%), 2 of them before", "faults   1 fault"]
    file.advance(Counter(ok=5))
    file.end()
    assert not (folder.path / STATUS).exists()


def test_bad_input(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="not a run folder"):
        run_status(tmp_path)
    folder = RunFolder(tmp_path / "run")
    folder.create()
    folder.write_manifest({"status": "running"})
    assert run_status(folder.path).state == "killed"
    (folder.path / STATUS).write_text("{}")
    with pytest.raises(StoreError, match="status of the run cannot be read"):
        run_status(folder.path)
    os.remove(folder.path / STATUS)  # noqa: PTH107
    folder.write_manifest({"status": "interrupted"})
    assert run_status(folder.path) == RunStatus(state="interrupted")

"""Ctrl-C once, twice, and kill: what is finished is kept, no process is left behind, a second run goes on."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from .cases import INTERRUPTED, PASS
from .command import ended, started
from .good_study import GoodStudy


def command(study: GoodStudy) -> tuple[str | Path, ...]:
    study.rewrite()
    return ("-m", "adverse", "run", study.file, "--out", study.run, "--workers", "1")


def first_unit_done(process: subprocess.Popen[str], study: GoodStudy) -> list[psutil.Process]:
    """Wait for the first finished unit; return the processes that the run has started."""
    while process.poll() is None:
        journal = study.run / "journal"
        if journal.exists() and journal.read_bytes().count(b"\n"):
            return psutil.Process(process.pid).children(recursive=True)
        time.sleep(0.02)
    pytest.fail(f"the run ended by itself: {process.communicate()[0]}")


def results(study: GoodStudy) -> dict[str, Any]:
    """Return all that a run came to: the detections to the byte, and the summary."""
    files = {path.name: path.read_bytes() for path in (study.run / "detections").glob("*.parquet")}
    return {**files, "summary": study.summary()}


@pytest.fixture
def slow(coco: GoodStudy) -> GoodStudy:
    coco.study["unit_frames"] = 1
    coco.sut(mood="slow")
    return coco


def test_ctrl_c_once(slow: GoodStudy) -> None:
    """What is under way is finished; the second run does the rest, and all is as if nothing had been."""
    with started(*command(slow)) as process:
        workers = first_unit_done(process, slow)
        process.send_signal(signal.SIGINT)
        said = ended(process)
    said.expect(
        INTERRUPTED, "stopping after the units under way", str(slow.run), "Run the same command to go on"
    )
    assert not [worker for worker in workers if worker.is_running()]
    units = (slow.run / "journal").read_text().splitlines()
    assert 1 <= len(units) < 8
    slow.adverse("analyze").expect(3, str(slow.run), "not finished", "fix")
    slow.adverse().expect(PASS, f"{2 * len(units)} of 16 images were done before")
    interrupted = results(slow)
    slow.run = slow.folder / "straight"
    slow.adverse().expect(PASS)
    assert results(slow) == interrupted


def test_a_polite_kill_is_a_ctrl_c(slow: GoodStudy) -> None:
    with started(*command(slow)) as process:
        workers = first_unit_done(process, slow)
        process.terminate()
        ended(process).expect(
            INTERRUPTED, "stopping after the units under way", "Run the same command to go on"
        )
    assert not [worker for worker in workers if worker.is_running()]


@pytest.mark.parametrize("workers", [0, 1])
def test_ctrl_c_twice(coco: GoodStudy, workers: int) -> None:
    """The SUT hangs in the second unit, so the first Ctrl-C alone would wait for it."""
    coco.sut(mood="hang", at=6)
    with started(*command(coco), "--workers", str(workers)) as process:
        children = first_unit_done(process, coco)
        while not (coco.folder / "hanging").exists() and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        while "stopping" not in (line := str(process.stdout.readline() if process.stdout else "")):
            assert line
        process.send_signal(signal.SIGINT)
        said = ended(process)
    said.expect(INTERRUPTED, str(coco.run), "Run the same command to go on")
    assert not [child for child in children if child.is_running()]
    coco.study["suts"][0]["at"] = 99
    coco.rewrite()
    coco.adverse().expect(PASS, "SUT probe changed", "16/16 images done")


def test_kill(slow: GoodStudy) -> None:
    """kill -9 of the main process: its workers end too, and a second run goes on."""
    with started(*command(slow)) as process:
        workers = first_unit_done(process, slow)
        process.kill()
        process.wait()
    psutil.wait_procs(workers)
    units = (slow.run / "journal").read_text().splitlines()
    words = f"{2 * len(units)} of 16 images were done before"
    slow.adverse().expect(PASS, f"took over the lock of process {process.pid}", words)
    slow.adverse("verify").expect(PASS)


def test_a_worker_that_is_killed_is_replaced(slow: GoodStudy) -> None:
    """As the system does when memory runs out: the run does not even stop."""
    with started(*command(slow)) as process:
        (worker,) = first_unit_done(process, slow)
        worker.kill()
        said = ended(process)
    said.expect(PASS, "a worker died (signal SIGKILL) while asking SUT 'probe'", "16/16 images done")
    assert {row["area"] for row in slow.rows()} == {1.0}
    assert {row["faults"] for row in slow.rows()} == {0}

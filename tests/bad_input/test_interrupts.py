"""Ctrl-C once, twice, and kill: what is finished is kept, no process is left behind, a second run goes on."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from .cases import INCOMPLETE, INTERRUPTED, PASS
from .command import ended, started
from .good_study import GoodStudy


def command(study: GoodStudy) -> tuple[str | Path, ...]:
    study.rewrite()
    return ("-m", "adverse", "run", study.file, "--out", study.run, "--workers", "1")


def in_the_middle(process: subprocess.Popen[str], study: GoodStudy) -> list[psutil.Process]:
    """Wait until a unit is finished and the SUT waits in another; return what the run has started."""
    journal, waiting = study.run / "journal", study.folder / "waiting"
    while process.poll() is None:
        if waiting.exists() and journal.exists() and journal.read_bytes().count(b"\n"):
            started = psutil.Process(process.pid).children(recursive=True)
            return [child for child in started if "-I" not in child.cmdline()]  # but who ends strays
        time.sleep(0.02)
    pytest.fail(f"the run ended by itself: {process.communicate()[0]}")


def ctrl_c(process: subprocess.Popen[str], number: signal.Signals = signal.SIGINT) -> None:
    """Send the signal and wait until the run has heard it."""
    process.send_signal(number)
    while "stopping after the units under way" not in (
        line := str(process.stdout.readline() if process.stdout else "")
    ):
        assert line


def go(study: GoodStudy) -> None:
    """Let the SUT answer."""
    (study.folder / "go").touch()


def results(study: GoodStudy) -> dict[str, Any]:
    """Return all that a run came to: the detections to the byte, and the summary."""
    files = {path.name: path.read_bytes() for path in (study.run / "detections").glob("*.parquet")}
    return {**files, "summary": study.summary()}


@pytest.fixture
def gated(coco: GoodStudy) -> GoodStudy:
    """The SUT waits at the third picture until the test says go."""
    coco.study["unit_frames"] = 1
    coco.sut(mood="gate", at=2)
    return coco


@pytest.mark.fault(46)
def test_ctrl_c_once(gated: GoodStudy) -> None:
    """What is under way is finished; the second run does the rest, and all is as if nothing had been."""
    with started(*command(gated)) as process:
        workers = in_the_middle(process, gated)
        ctrl_c(process)
        go(gated)
        said = ended(process)
    said.expect(INTERRUPTED, str(gated.run), "Run the same command to resume")
    assert not [worker for worker in workers if worker.is_running()]
    units = (gated.run / "journal").read_text().splitlines()
    assert 3 <= len(units) < 8
    gated.adverse("analyze").expect(INCOMPLETE, str(gated.run), "not finished", "fix")
    gated.adverse().expect(PASS, f"{2 * len(units)} of 16 images were done before")
    interrupted = results(gated)
    gated.run = gated.folder / "straight"
    gated.adverse().expect(PASS)
    assert results(gated) == interrupted


@pytest.mark.fault(46)
def test_a_polite_kill_is_a_ctrl_c(gated: GoodStudy) -> None:
    with started(*command(gated)) as process:
        workers = in_the_middle(process, gated)
        ctrl_c(process, signal.SIGTERM)
        go(gated)
        ended(process).expect(INTERRUPTED, "Run the same command to resume")
    assert not [worker for worker in workers if worker.is_running()]


def test_a_polite_kill_while_results_are_worked_out_loses_nothing(coco: GoodStudy) -> None:
    arguments = [str(part) for part in command(coco)[2:]]
    code = (
        "import os, signal, sys, time\n"
        "from adverse import cli\n"
        "from adverse.analysis import results\n"
        "results.analyze_store = lambda *_, **__: (os.kill(os.getpid(), signal.SIGTERM), time.sleep(60))\n"
        "cli.main(sys.argv[1:])"
    )
    with started("-c", code, *arguments) as process:
        ended(process).expect(INTERRUPTED, "all units are done")
    assert not (coco.run / "results" / "summary.json").exists()
    with started(*command(coco)) as process:
        ended(process).expect(PASS, "results:")


@pytest.mark.fault(46)
@pytest.mark.parametrize("workers", [0, 1])
def test_ctrl_c_twice(coco: GoodStudy, workers: int) -> None:
    """The SUT hangs in the second unit, so the first Ctrl-C alone would wait for it."""
    coco.sut(mood="hang", at=6)
    with started(*command(coco), "--workers", str(workers)) as process:
        children = in_the_middle(process, coco)
        ctrl_c(process)
        process.send_signal(signal.SIGINT)
        said = ended(process)
    said.expect(INTERRUPTED, str(coco.run), "Run the same command to resume")
    assert not [child for child in children if child.is_running()]
    coco.study["suts"][0]["at"] = 99
    coco.rewrite()
    coco.adverse().expect(PASS, "SUT probe changed", "16/16 images done")


@pytest.mark.fault(44)
def test_kill(gated: GoodStudy) -> None:
    """kill -9 of the main process: its workers end too, and a second run goes on."""
    with started(*command(gated)) as process:
        workers = in_the_middle(process, gated)
        process.kill()
        process.wait()
    psutil.wait_procs(workers)
    go(gated)
    units = (gated.run / "journal").read_text().splitlines()
    words = f"{2 * len(units)} of 16 images were done before"
    gated.adverse().expect(PASS, f"took over the lock of process {process.pid}", words)
    gated.adverse("verify").expect(PASS)


@pytest.mark.fault(44)
def test_a_worker_that_is_killed_is_replaced(gated: GoodStudy) -> None:
    """As the system does when memory runs out: the run does not even stop."""
    with started(*command(gated)) as process:
        (worker,) = in_the_middle(process, gated)
        worker.kill()
        go(gated)
        said = ended(process)
    said.expect(
        PASS, "a worker died (signal SIGKILL) while asking SUT 'probe', frame '2'", "16/16 images done"
    )
    assert {(row["area"], row["faults"]) for row in gated.rows()} == {(1.0, 0)}


def test_a_reader_that_goes_away_does_not_stop_the_run(coco: GoodStudy) -> None:
    """As in `adverse run study.yaml | head -1`."""
    with started(*command(coco)) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait() == PASS
    coco.adverse("verify").expect(PASS)
    assert {row["area"] for row in coco.rows()} == {1.0}

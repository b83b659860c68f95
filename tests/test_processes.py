"""What our processes start does not outlive us, in whatever session it is and however we end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import psutil
import pytest

from adverse.processes import end_tied, run_side_by_side, tied
from adverse.suts.ask import ask
from adverse.types import Detections, Image

STRAY = """import os, subprocess, sys, time
stray = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(1000)"]
pid = subprocess.Popen(stray, start_new_session=True).pid
open(sys.argv[1] + ".new", "w").write(str(pid))
os.rename(sys.argv[1] + ".new", sys.argv[1])
"""
HOST = """import os, subprocess, sys, time
from adverse.processes import tied
subprocess.run([sys.executable, "-I", "-S", "-c", sys.argv[2], sys.argv[1]], env=tied(os.environ))
time.sleep(1000)
"""


def stray_of(path: Path) -> psutil.Process:
    while not path.exists():
        time.sleep(0.01)
    return psutil.Process(int(path.read_text()))


def wait_for_end(process: psutil.Process) -> None:
    while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.01)


@pytest.mark.skipif(sys.platform != "linux", reason="environments of processes are read from /proc")
@pytest.mark.parametrize("way", ["ended", "killed"])
def test_strays_are_ended(tmp_path: Path, way: str) -> None:
    """Its parent is gone and it leads a session of its own: only the tie finds it."""
    path = tmp_path / "pid"
    if way == "ended":
        environment = tied(os.environ)
        subprocess.run([sys.executable, "-I", "-S", "-c", STRAY, path], env=environment, check=True)
        stray = stray_of(path)
        end_tied(environment)
        wait_for_end(stray)
        return
    host = subprocess.Popen([sys.executable, "-c", HOST, path, STRAY])
    stray = stray_of(path)
    host.send_signal(signal.SIGKILL)
    host.wait()
    wait_for_end(stray)


@pytest.mark.parametrize("copy_ends", ["returns", "exits", "fails"])
def test_a_copy_that_a_sut_forks_never_comes_back(copy_ends: str) -> None:
    ours, copies = os.getpid(), []

    class Forking:
        classes = ("person",)

        def detect(self, images: Sequence[Image]) -> list[Detections]:
            copies.append(os.fork())
            if not copies[-1] and copy_ends == "exits":
                sys.exit(0)
            if not copies[-1] and copy_ends == "fails":
                raise ValueError
            return [Detections.none() for _ in images]

    try:
        assert len(ask(Forking(), [np.zeros((4, 4, 3), np.uint8)], name="mine")) == 1
    finally:
        if os.getpid() != ours:
            os._exit(7)  # it came back
    assert os.waitpid(copies[0], 0)[1] == 0


def test_programs_side_by_side_have_their_own_cores_and_variables(tmp_path: Path) -> None:
    code = "import os; open(os.environ['OUT'], 'w').write(str(sorted(os.sched_getaffinity(0)))); exit(3)"
    files, ours = [tmp_path / "0", tmp_path / "1"], sorted(os.sched_getaffinity(0))
    own = [{"OUT": str(file)} for file in files]
    assert run_side_by_side([[sys.executable, "-c", code]] * 2, own) == 3
    shares = [json.loads(file.read_text()) for file in files]
    assert shares == ([ours[::2], ours[1::2]] if len(ours) > 1 else [ours, ours])
    assert sorted(os.sched_getaffinity(0)) == ours

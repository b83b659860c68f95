"""kill -9 the run, or one of its workers, again and again; resume each time; nothing acknowledged is lost.

After every kill each unit in the journal must still be there with its hash, and the finished run must
equal a straight one to the byte.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from adverse.content import file_sha256
from adverse.store.journal import RunJournal
from small_study import results_hash, write_study


def start(study: Path, out: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "adverse", "run", str(study), "--out", str(out), "--workers", "2"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def lost_units(out: Path, acknowledged: set[tuple[str, str]]) -> int:
    """Count what was acknowledged before and is not in the journal and on disk now; remember what is new."""
    found = {(entry.file, entry.sha256) for entry in RunJournal(out / "journal").entries}
    broken = {e for e in found if file_sha256(out / "detections" / e[0]) != e[1]}
    lost = len(acknowledged - found) + len(broken)
    acknowledged |= found
    return lost


def kill_something(process: subprocess.Popen[bytes], chance: random.Random) -> str:
    workers = []
    with contextlib.suppress(psutil.Error):
        workers = psutil.Process(process.pid).children()
    if workers and chance.random() < 0.5:
        with contextlib.suppress(ProcessLookupError):
            os.kill(chance.choice(workers).pid, signal.SIGKILL)
        return "worker"
    process.kill()
    process.wait()
    return "main"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    chance = random.Random(chosen.seed)
    kills = {"main": 0, "worker": 0}
    lost = finished = equal = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        study = write_study(folder, frames=24, logs=8, size=(160, 120), sleep_s=0.02)
        straight = folder / "straight"
        if start(study, straight).wait() != 0:
            sys.exit("the straight run failed")
        wanted = results_hash(straight)
        out = folder / "killed"
        acknowledged: set[tuple[str, str]] = set()
        while sum(kills.values()) < chosen.kills:
            process = start(study, out)
            while process.poll() is None and sum(kills.values()) < chosen.kills:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(chance.uniform(0.8, 4.0))
                if process.poll() is None:
                    kills[kill_something(process, chance)] += 1
            if process.poll() is None:
                process.wait()
            lost += lost_units(out, acknowledged)
            if process.returncode == 0:
                finished += 1
                equal += results_hash(out) == wanted
                shutil.rmtree(out)
                acknowledged = set()
            time.sleep(0.05)
        if out.exists() or not finished:
            if start(study, out).wait() != 0:
                sys.exit("the last resume failed")
            lost += lost_units(out, acknowledged)
            finished += 1
            equal += results_hash(out) == wanted
    print(f"kills: {kills['main']} of the main process, {kills['worker']} of workers")
    print(f"acknowledged units lost: {lost}")
    print(f"finished runs equal to the straight run: {equal} of {finished}")
    sys.exit(0 if lost == 0 and equal == finished else 1)


if __name__ == "__main__":
    main()

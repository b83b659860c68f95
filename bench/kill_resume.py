"""kill -9 the run, or one of its workers, again and again; resume each time; nothing acknowledged is lost.

Every second kill is of the main process, every other one of a worker: while the run starts, or a moment after
it acknowledged some more units. After every kill each unit in the journal must still be there with its hash;
a run must end by itself or by our kill alone, without a traceback and without hanging, and every finished run
must equal a straight one to the byte. Runs and workers are forked from this warm process; with --spawn
workers start anew.
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
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import IO

import psutil

from adverse.cli import main as adverse
from adverse.content import file_sha256
from adverse.store.journal import RunJournal
from adverse.study.engines import local, worker_process
from progress import Progress
from small_study import results_hash, write_study

HANG_S = 600.0
"""Nothing in a run of half a minute waits so long for its next unit, even on a busy machine."""


class ForkedWorker:
    """A worker as a fork of the warm run, in place of a new interpreter: its start is not what is tested."""

    def __init__(self, command: list[str], *, stdout: IO[bytes], **_others: object) -> None:
        self.pid = os.fork()
        if self.pid:
            return
        os.setsid()
        for number in (1, 2):
            os.dup2(stdout.fileno(), number)
        sys.argv = ["worker", *command[-4:]]
        worker_process.main()

    def kill(self) -> None:
        """Kill it, unless it was waited for."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        """Return how it ended."""
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


class Started:
    """A run in a fork of this process."""

    def __init__(self, study: Path, out: Path) -> None:
        self.out = out
        self.said = study.with_name("said.txt")
        self.code: int | None = None
        self.pid = os.fork()
        if self.pid:
            return
        code: object = 1
        try:
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
            handle = os.open(self.said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(handle, 1)
            os.dup2(handle, 2)
            adverse(["run", str(study), "--out", str(out), "--workers", "2"])
            code = 0
        except SystemExit as end:
            code = end.code or 0
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code if isinstance(code, int) else 1)

    def ended(self) -> bool:
        """Tell whether it is over; then `code` says how."""
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if pid else None
        return self.code is not None

    def wait(self, until_s: float = HANG_S) -> bool:
        """Wait until it is over, or for so long; return whether it is over."""
        limit = time.monotonic() + until_s
        while not self.ended() and time.monotonic() < limit:
            time.sleep(0.01)
        return self.ended()

    def units(self) -> int:
        """Return how many units are acknowledged."""
        with contextlib.suppress(OSError):
            return (self.out / "journal").read_bytes().count(b"\n")
        return 0

    def wait_for_moment(self, chance: random.Random) -> None:
        """Wait for a random moment: as the run starts, or after a few more units."""
        if chance.random() > 0.2:
            wanted = self.units() + chance.randrange(1, 5)
            limit = time.monotonic() + HANG_S
            while self.units() < wanted and not self.ended() and time.monotonic() < limit:
                time.sleep(0.01)
        self.wait(chance.uniform(0, 0.2))

    def kill_worker(self, chance: random.Random) -> bool:
        """Kill a worker, as soon as there is one; return whether there was."""
        while not self.ended():
            with contextlib.suppress(psutil.Error, ProcessLookupError):
                children = psutil.Process(self.pid).children()
                workers = [child for child in children if "-S" not in child.cmdline()]  # not the guardian
                if workers:
                    os.kill(chance.choice(workers).pid, signal.SIGKILL)
                    return True
            time.sleep(0.02)
        return False

    def kill(self) -> bool:
        """Kill the run itself; return whether it was still going."""
        if self.ended():
            return False
        os.kill(self.pid, signal.SIGKILL)
        self.wait()
        return self.code == -signal.SIGKILL


def lost_units(out: Path, acknowledged: set[tuple[str, str]]) -> int:
    """Count what was acknowledged before and is not in the journal and on disk now; remember what is new."""
    found = {(entry.file, entry.sha256) for entry in RunJournal(out / "journal").entries}
    broken = {e for e in found if file_sha256(out / "detections" / e[0]) != e[1]}
    lost = len(acknowledged - found) + len(broken)
    acknowledged |= found
    return lost


def told(count: Counter[str], seed: int) -> int:
    """Print what came of it; return how much of it is wrong."""
    print(f"seed {seed}; kills: {count['main']} of the main process, {count['worker']} of workers")
    print(f"acknowledged units lost: {count['lost']}")
    print(f"tracebacks: {count['tracebacks']}; hangs: {count['hangs']}; other exits: {count['other exits']}")
    print(f"finished runs equal to the straight run: {count['equal']} of {count['finished']}")
    wrong = count["lost"] + count["tracebacks"] + count["hangs"] + count["other exits"]
    return wrong + count["finished"] - count["equal"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--start", type=int, default=0, help="go on after so many kills; --kills is the last")
    parser.add_argument("--spawn", action="store_true", help="start workers as new interpreters: slower")
    chosen = parser.parse_args()
    if not chosen.spawn:
        vars(local)["subprocess"] = SimpleNamespace(Popen=ForkedWorker, DEVNULL=subprocess.DEVNULL)
    chance = random.Random(f"{chosen.seed}/{chosen.start}")
    count: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # many small units: what is tested is what becomes of them, not what is in them
        study = write_study(
            folder,
            frames=4,
            logs=6,
            size=(64, 48),
            sleep_s=0.01,
            mutations="[{brightness: {scale: 0.5}}, {salt_pepper: {fraction: 0.1}}]",
            unit_frames=1,
        )
        straight = Started(study, folder / "straight")
        if not straight.wait() or straight.code != 0:
            sys.exit(f"the straight run failed:\n{straight.said.read_text()}")
        wanted = results_hash(straight.out)
        out = folder / "killed"
        acknowledged: set[tuple[str, str]] = set()
        progress = Progress(chosen.kills, chosen.start)
        while progress.going or out.exists():
            run = Started(study, out)
            while not run.ended() and progress.going:
                run.wait_for_moment(chance)
                kind = "worker" if count["worker"] < count["main"] else "main"
                killed = run.kill_worker(chance) if kind == "worker" else run.kill()
                count[kind] += killed
                progress.done(str(dict(count)), cases=int(killed))
            if progress.stopped:
                run.kill()
                break
            if not run.wait():
                run.kill()
                count["hangs"] += 1
            said = run.said.read_text(errors="replace")
            count["tracebacks"] += "Traceback" in said or "internal error" in said
            if run.code not in (0, -signal.SIGKILL) and not progress.stopped:
                count["other exits"] += 1
                print(f"exit {run.code}:\n{said}", flush=True)
            if (out / "journal").exists():
                count["lost"] += lost_units(out, acknowledged)
            if run.code == 0:
                count["finished"] += 1
                count["equal"] += results_hash(out) == wanted
                shutil.rmtree(out)
                acknowledged = set()
    wrong = told(count, chosen.seed)
    progress.end(f"wrong: {wrong}")
    sys.exit(1 if wrong or progress.stopped else 0)


if __name__ == "__main__":
    main()

"""kill -9 of workers, of their nanny, of the scheduler and of the client, all in one run on a Dask cluster.

For each seed the kills come in another order, each after some more units were acknowledged. Whatever was
killed is started again, as an operator would. At the end no unit may be missing that the journal ever held,
and detections and results must be those of a straight local run, to the byte.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import psutil

from adverse.store.journal import RunJournal
from small_study import results_hash, write_study

HANG_S = 600.0
"""No unit of such a study takes so long, even on a busy machine."""
COMMAND = (sys.executable, "-c", "from adverse.cli import main; main()")


class Cluster:
    """A scheduler, one `adverse worker` and the client of a run, each a process of its own."""

    def __init__(self, study: Path, out: Path, workers: int) -> None:
        self.study, self.out, self.workers = study, out, workers
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        self.scheduler = self._scheduler()
        self.nanny = self._nanny()
        self.client = self._client()

    def _started(self, *command: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def _scheduler(self) -> subprocess.Popen[bytes]:
        port = self.address.rpartition(":")[2]
        words = ("--host", "127.0.0.1", "--no-dashboard", "--port", port)
        return self._started(sys.executable, "-m", "distributed.cli.dask_scheduler", *words)

    def _nanny(self) -> subprocess.Popen[bytes]:
        return self._started(*COMMAND, "worker", self.address, "--workers", str(self.workers))

    def _client(self) -> subprocess.Popen[bytes]:
        words = ("--out", str(self.out), "--scheduler", self.address, "--quiet", "--no-estimate")
        return self._started(*COMMAND, "run", str(self.study), *words)

    def kill(self, what: str, chance: random.Random) -> bool:
        """Kill something and start it again; return whether there was such a thing."""
        if what == "worker":
            return self._kill_worker(chance)
        process: subprocess.Popen[bytes] = getattr(self, what)
        process.send_signal(signal.SIGKILL)
        process.wait()
        setattr(self, what, getattr(self, f"_{what}")())
        if what == "scheduler":  # its workers end with it
            self.nanny.kill()
            self.nanny.wait()
            self.nanny = self._nanny()
        return True

    def _kill_worker(self, chance: random.Random) -> bool:
        """Kill one of the nanny's workers, which starts another."""
        try:
            children = psutil.Process(self.nanny.pid).children()
            workers = [child for child in children if "spawn_main" in " ".join(child.cmdline())]
            if workers:
                chance.choice(workers).kill()
        except psutil.NoSuchProcess:
            return False
        return bool(workers)

    def end(self) -> None:
        """End all of it."""
        for process in (self.client, self.nanny, self.scheduler):
            process.kill()
            process.wait()


def acknowledged(out: Path) -> set[tuple[str, str]]:
    """Return the units in the journal, each by its file and hash."""
    return {(entry.file, entry.sha256) for entry in RunJournal(out / "journal").entries}


def faulty_run(study: Path, out: Path, seed: int, *, workers: int, kills: int) -> tuple[Counter[str], int]:
    """Run a study while everything is killed; return what was killed, and how many units were lost."""
    chance = random.Random(seed)
    waiting = [*("worker",) * kills, "nanny", "scheduler", "client"]
    chance.shuffle(waiting)
    killed: Counter[str] = Counter()
    ever: set[tuple[str, str]] = set()
    cluster = Cluster(study, out, workers)
    since, seen = time.monotonic(), 0
    try:
        while cluster.client.poll() is None:
            now = acknowledged(out)
            ever |= now
            if len(now) > seen:
                seen, since = len(now), time.monotonic()
                if waiting and cluster.kill(waiting[-1], chance):
                    killed[waiting.pop()] += 1
            elif time.monotonic() - since > HANG_S:
                raise SystemExit(f"seed {seed}: nothing was finished for {HANG_S:.0f} s")
            time.sleep(0.02)
        if cluster.client.returncode:
            raise SystemExit(f"seed {seed}: the run ended with {cluster.client.returncode}")
    finally:
        cluster.end()
    return killed, len(ever - acknowledged(out))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--kills", type=int, default=20, help="of workers, for each seed")
    parser.add_argument("--frames", type=int, default=40)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        study = write_study(
            folder,
            frames=chosen.frames,
            logs=2,
            size=(64, 48),
            sleep_s=0.1,
            mutations="[brightness(scale=0.5)]",
            unit_frames=1,
        )
        straight = folder / "straight"
        words = ("--workers", "2", "--quiet", "--no-estimate")
        subprocess.run([*COMMAND, "run", str(study), "--out", str(straight), *words], check=True)
        wanted, units = results_hash(straight), len(acknowledged(straight))
        print(f"straight: {units} units, {wanted[:16]}", flush=True)
        wrong = 0
        for seed in range(chosen.seeds):
            out = folder / "run"
            killed, lost = faulty_run(study, out, seed, workers=chosen.workers, kills=chosen.kills)
            found = results_hash(out)
            wrong += lost > 0 or found != wanted
            said = ", ".join(f"{count} x {what}" for what, count in sorted(killed.items()))
            print(f"seed {seed}: killed {said}; {lost} units lost, {found[:16]}", flush=True)
            shutil.rmtree(out)
        print(f"{chosen.seeds} seeds, {wrong} with units lost or other results")
        sys.exit(wrong > 0)


if __name__ == "__main__":
    main()

"""The scale of the Field Robotics paper through `adverse analyze`: how long it takes, and how much memory.

12 SUTs x 23 conditions x 24,000 frames x about 5 detections, all levels, 1000 resamples. The run folder is
synthetic (`synthetic_run.py`); everything from there on is what a user's run goes through.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from synthetic_run import Size, write_run

LIMIT_S, LIMIT_GB = 240.0, 4.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=240, help="test logs of 100 frames")
    parser.add_argument("--keep", type=Path, help="write the run folder here, or use the one that is there")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = chosen.keep or Path(name) / "run"
        size = Size(logs=chosen.logs, validation_logs=max(chosen.logs // 10, 2))
        if not folder.exists():
            start = time.perf_counter()
            write_run(folder, size)
            print(f"run folder written in {time.perf_counter() - start:.0f} s")
        frames = size.logs * size.frames_per_log
        print(
            f"{size.suts} SUTs x {size.conditions} conditions x {frames} frames x about {size.detections:g} "
            f"detections, {size.bootstrap} resamples, {os.cpu_count()} cores"
        )
        start = time.perf_counter()
        command = [sys.executable, "-m", "adverse", "analyze", str(folder)]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
        wall = time.perf_counter() - start
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    memory = used.ru_maxrss / 2**20 if sys.platform == "linux" else used.ru_maxrss / 2**30
    print(f"exit code {done.returncode}; wall {wall:.0f} s, CPU {used.ru_utime + used.ru_stime:.0f} s")
    print(f"peak memory {memory:.2f} GB")
    print(f"under {LIMIT_S:g} s: {wall < LIMIT_S}; under {LIMIT_GB:g} GB: {memory < LIMIT_GB}")


if __name__ == "__main__":
    main()

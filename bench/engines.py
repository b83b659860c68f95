"""The same study on every engine: the hash of its results, and what a unit costs besides the SUT.

Local with 0, 1, 2, 4 and 16 workers, Dask (a cluster started here) with 1, 2, 4 and 16, or those that are
asked for. Every hash must be the same. The SUT does next to nothing, so the time per unit, from the first
finished unit to the last, is decoding, mutating, writing and the engine; what a unit takes on one worker of
each engine tells them apart. Time to the first result has the start of processes in it.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from adverse.study.engines import Engine, Stop
from adverse.study.engines.dask import DaskEngine
from adverse.study.engines.local import InlineEngine, LocalEngine
from adverse.study.run import run_study
from adverse.study.spec import read_study
from small_study import results_hash, write_study


class Clock:
    """Notes when units are finished."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.started = time.perf_counter()

    def note(self, text: str) -> None:
        """Hear nothing."""

    def under_way(self, answered: int) -> None:
        """Hear nothing."""

    def begin(self, total: int, done: int) -> None:
        """Start."""

    def advance(self, statuses: Counter[str]) -> None:
        """Note a unit."""
        del statuses
        self.times.append(time.perf_counter() - self.started)

    def end(self) -> None:
        """Hear nothing."""


@contextlib.contextmanager
def engine_of(name: str, workers: int, logs: Path) -> Iterator[Engine]:
    """Give an engine."""
    if name == "dask":
        with DaskEngine(None, workers) as engine:
            yield engine
    else:
        yield LocalEngine(workers, logs) if workers else InlineEngine()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=40)
    parser.add_argument("--local", type=int, nargs="*", default=[0, 1, 2, 4, 16])
    parser.add_argument("--dask", type=int, nargs="*", default=[1, 2, 4, 16])
    chosen = parser.parse_args()
    hashes = set()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        study = write_study(
            folder,
            frames=chosen.frames,
            logs=2,
            size=(64, 48),
            sleep_s=0,
            mutations="[brightness(scale=0.5), salt_pepper(fraction=0.1)]",
            unit_frames=2,
        )
        wanted = [*(("local", count) for count in chosen.local), *(("dask", count) for count in chosen.dask)]
        for kind, count in wanted:
            out = folder / "run"
            clock = Clock()
            with engine_of(kind, count, out / "logs") as engine:
                run_study(read_study(study), out, engine, watch=clock, stop=Stop())
            found = results_hash(out)
            hashes.add(found)
            per_unit = (clock.times[-1] - clock.times[0]) / max(len(clock.times) - 1, 1)
            print(
                f"{kind:5} {count:2} workers  {found[:16]}  {len(clock.times)} units, first after "
                f"{clock.times[0]:.1f} s, then {1000 * per_unit:.1f} ms each",
                flush=True,
            )
            shutil.rmtree(out)
    print(f"all the same: {len(hashes) == 1}")


if __name__ == "__main__":
    main()

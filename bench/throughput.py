"""Frames per second of the whole left half with a SUT that does nothing, and what we ourselves cost.

Scaling is a ratio within one run on one machine: the steady rate with two workers over that with one.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from adverse.analysis.results import analyze
from adverse.study import frame_versions, sut_queue
from adverse.study.engines import Stop
from adverse.study.engines.local import InlineEngine, LocalEngine
from adverse.study.run import run_study
from adverse.study.spec import read_study
from small_study import results_hash, write_study


class Clock:
    """Hears of finished work and remembers when."""

    def __init__(self) -> None:
        self.ticks: list[tuple[float, int]] = []

    def note(self, text: str) -> None:
        print("note:", text)

    def under_way(self, answered: int) -> None:
        pass

    def begin(self, total: int, done: int) -> None:
        self.ticks = [(time.perf_counter(), done)]
        del total

    def advance(self, statuses: Counter[str]) -> None:
        self.ticks.append((time.perf_counter(), statuses.total()))

    def end(self) -> None:
        pass

    def whole(self) -> float:
        return sum(n for _, n in self.ticks[1:]) / (self.ticks[-1][0] - self.ticks[0][0])

    def steady(self, skip: int = 4) -> float:
        """Rate after the first units, when every worker has started."""
        done = sum(n for _, n in self.ticks[skip + 1 :])
        return done / (self.ticks[-1][0] - self.ticks[skip][0])


def timed(function: Callable[..., Any], spent: Counter[str], name: str) -> Callable[..., Any]:
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        start = time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            spent[name] += time.perf_counter() - start  # type: ignore[assignment]

    return wrapped


def overhead(study: Path, folder: Path) -> None:
    """Time the left half in this process, apart from decoding, mutating and asking."""
    spent: Counter[str] = Counter()
    for module, attribute, what in (
        (frame_versions, "apply_setting", "mutating"),
        (sut_queue, "ask", "asking"),
        (frame_versions, "_Loaded", "decoding and hashing pixels"),
    ):
        setattr(module, attribute, timed(getattr(module, attribute), spent, what))
    clock = Clock()
    start = time.perf_counter()
    run_study(read_study(study), folder / "inline", InlineEngine(), watch=clock, stop=Stop())
    total = time.perf_counter() - start
    pictures = sum(n for _, n in clock.ticks[1:])
    for name, seconds in spent.items():
        print(f"{name:30} {1e3 * seconds / pictures:7.3f} ms per mutated image")
    rest = total - sum(spent.values())
    print(f"{'everything else of ours':30} {1e3 * rest / pictures:7.3f} ms per mutated image")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=64)
    parser.add_argument("--logs", type=int, default=8)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        study = write_study(folder, frames=chosen.frames, logs=chosen.logs, size=(640, 480), sleep_s=0)
        rates, hashes = {}, set()
        for workers in (1, 2):
            clock = Clock()
            out = folder / f"run{workers}"
            engine = LocalEngine(workers, out / "logs")
            run_study(read_study(study), out, engine, watch=clock, stop=Stop())
            analyze(out)
            hashes.add(results_hash(out))
            rates[workers] = clock.steady()
            print(
                f"{workers} worker{'s' if workers > 1 else ' '}: {clock.whole():7.1f} mutated images/s with "
                f"start-up, {clock.steady():7.1f} steady"
            )
        print(f"scaling from 1 to 2 workers: {rates[2] / rates[1]:.2f}")
        print(f"results equal: {len(hashes) == 1}")
        overhead(study, folder)


if __name__ == "__main__":
    main()

"""A thousand workers, simulated: how long a study takes on them by the size of its units, and which is best.

Nothing is run. What a unit takes is drawn from a frame's time: each worker has a speed of its own, some are
stragglers from some moment on, workers are lost and come back a while later, and what they held is done again
from its start. One process writes all results, one unit at a time, as `adverse run` does. The same draws for
every size (common random numbers); the chosen size is that of `unit_frames: auto`.
"""

from __future__ import annotations

import argparse
import heapq
import statistics
from dataclasses import dataclass

import numpy as np

from adverse.seeds import generator
from adverse.study.unit_size import UNIT_S, WRITING_S, best_unit_frames

SIZES = (1, 2, 4, 8, 16, 32, 64, 128)


@dataclass(frozen=True)
class Crew:
    """Workers: how many, how unequal, and how often they straggle or are lost."""

    workers: int
    speed_spread: float = 0.1
    """Standard deviation of the logarithm of a worker's speed."""
    stragglers: float = 0.02
    """Share of workers that are `slow` times as slow."""
    slow: float = 3.0
    lost_every_s: float = 6 * 3600.0
    """Mean time between losses of one worker."""
    back_s: float = 90.0
    """How long until another takes its place."""


def wall_s(size: int, *, frame_s: float, frames: int, crew: Crew, seed: int) -> tuple[float, int]:
    """Return how long a study takes, and how many units were done again."""
    rng = generator(seed, "many workers")
    pace = np.exp(rng.normal(0.0, crew.speed_spread, crew.workers))
    pace[rng.random(crew.workers) < crew.stragglers] *= crew.slow
    losses = [generator(seed, "losses", str(worker)) for worker in range(crew.workers)]
    ends = [float(some.exponential(crew.lost_every_s)) for some in losses]
    left, again = [size] * (frames // size) + ([frames % size] if frames % size else []), 0
    free = [(0.0, worker) for worker in range(crew.workers)]
    heapq.heapify(free)
    arrivals: list[float] = []
    lost: list[tuple[float, int]] = []  # when it is known, and the unit
    while left or lost:
        now, worker = heapq.heappop(free)
        if lost and (not left or lost[0][0] <= now):
            known, unit = heapq.heappop(lost)
            now = max(now, known)
        else:
            unit = left.pop()
        done = now + unit * frame_s * float(pace[worker]) + UNIT_S
        if done > ends[worker]:
            gone = max(ends[worker], now)
            heapq.heappush(lost, (gone, unit))
            ends[worker] = gone + crew.back_s + float(losses[worker].exponential(crew.lost_every_s))
            heapq.heappush(free, (gone + crew.back_s, worker))
            again += 1
            continue
        arrivals.append(done)
        heapq.heappush(free, (done, worker))
    written = 0.0
    for arrival in sorted(arrivals):
        written = max(written, arrival) + WRITING_S
    return written, again


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=1000)
    parser.add_argument("--frames", type=int, default=24_000)
    parser.add_argument("--images", type=int, default=23 * 12, help="settings times SUTs")
    parser.add_argument("--seeds", type=int, default=5)
    chosen = parser.parse_args()
    crew = Crew(chosen.workers)
    print(
        f"{chosen.frames} frames x {chosen.images} images on {crew.workers} workers: {crew.stragglers:.0%} "
        f"{crew.slow:g} times as slow, each lost every {crew.lost_every_s / 3600:g} h; {chosen.seeds} seeds"
    )
    print("image      ideal  " + "".join(f"{size:>9}" for size in SIZES) + "   best  auto  auto/best")
    for image_s in (0.001, 0.01, 0.1, 0.5):
        frame_s = image_s * chosen.images
        means = []
        for size in SIZES:
            runs = [
                wall_s(size, frame_s=frame_s, frames=chosen.frames, crew=crew, seed=seed)[0]
                for seed in range(chosen.seeds)
            ]
            means.append(statistics.mean(runs))
        auto = best_unit_frames(frame_s=frame_s, frames=chosen.frames, workers=crew.workers)
        auto_s = means[SIZES.index(auto)] if auto in SIZES else float("nan")
        best = min(means)
        print(
            f"{1000 * image_s:4g} ms {frame_s * chosen.frames / crew.workers:8.0f} s  "
            + "".join(f"{mean:7.0f} s" for mean in means)
            + f"   {SIZES[means.index(best)]:4}  {auto:4}  {auto_s / best:9.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()

"""Closed-loop playback against the same control as a plain Python loop: equality, and how much faster.

Both are measured by CPU time, in turns. A log takes the plain loop long and ours next to nothing, so ours
is repeated, and the mean counts.
"""

from __future__ import annotations

import statistics
import time

import numpy as np

from adverse.robot.playback import drive
from adverse.robot.profile import Robot
from plain_playback import plain_loop, random_log

LOGS, FRAMES, LEVELS = 6, 150, 100
ROUNDS, REPEATS = 5, 20
WANTED = 200


def main() -> None:
    robot = Robot(control_radius_m=2.0, safety_radius_m=1.0)
    equal = True
    drive(*random_log(0, levels=2, frames=3)[:3], 10.0, robot, positive=True)  # compile
    ratios, plain_s, ours_s = [], [], []
    for _ in range(ROUNDS):
        spent = {"ours": 0.0, "plain": 0.0}
        for seed in range(LOGS):
            stations, obstacles, person = random_log(seed, levels=LEVELS, frames=FRAMES)
            end, positive = float(stations[-1]), seed % 2 == 0
            columns, places, people = obstacles.T.tolist(), stations.tolist(), person.tolist()
            start = time.process_time()
            for _ in range(REPEATS):
                found = drive(stations, obstacles, person, end, robot, positive=positive)
            middle = time.process_time()
            wanted = [plain_loop(places, one, people, end, robot, positive=positive) for one in columns]
            spent["ours"] += (middle - start) / REPEATS
            spent["plain"] += time.process_time() - middle
            got = zip(found.stop_m, found.time_s, found.stops, found.speed_inside_mps, strict=True)
            pairs = zip(got, wanted, strict=True)
            equal = equal and all(np.array_equal(a, b, equal_nan=True) for a, b in pairs)
        plain_s.append(spent["plain"])
        ours_s.append(spent["ours"])
        ratios.append(spent["plain"] / spent["ours"])
    print(f"{LOGS} logs of {FRAMES} frames at {LEVELS} sensitivities, CPU time, median of {ROUNDS} rounds")
    print(f"plain Python loop {statistics.median(plain_s):.3f} s, ours {statistics.median(ours_s):.5f} s")
    times = statistics.median(ratios)
    print(f"times as fast: {times:.0f} ({min(ratios):.0f} to {max(ratios):.0f}); wanted {WANTED}")
    print(f"results identical: {equal}")


if __name__ == "__main__":
    main()

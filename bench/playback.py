"""Closed-loop playback against the same control as a plain Python loop: equality, and how much faster."""

from __future__ import annotations

import time

import numpy as np

from adverse.robot.playback import drive
from adverse.robot.profile import Robot
from plain_playback import plain_loop, random_log

LOGS, FRAMES, LEVELS = 6, 150, 100


def main() -> None:
    robot = Robot(control_radius_m=2.0, safety_radius_m=1.0)
    spent = {"ours": 0.0, "plain": 0.0}
    equal = True
    drive(*random_log(0, levels=2, frames=3)[:3], 10.0, robot, positive=True)  # compile
    for seed in range(LOGS):
        stations, obstacles, person = random_log(seed, levels=LEVELS, frames=FRAMES)
        end, positive = float(stations[-1]), seed % 2 == 0
        start = time.process_time()
        found = drive(stations, obstacles, person, end, robot, positive=positive)
        middle = time.process_time()
        wanted = [
            plain_loop(stations.tolist(), column, person.tolist(), end, robot, positive=positive)
            for column in obstacles.T.tolist()
        ]
        spent["ours"] += middle - start
        spent["plain"] += time.process_time() - middle
        got = zip(found.stop_m, found.time_s, found.stops, found.violated, strict=True)
        equal = equal and all(np.array_equal(a, b, equal_nan=True) for a, b in zip(got, wanted, strict=True))
    print(f"{LOGS} logs of {FRAMES} frames at {LEVELS} sensitivities, CPU time")
    print(f"plain Python loop {spent['plain']:.3f} s, ours {spent['ours']:.5f} s")
    print(f"times as fast: {spent['plain'] / spent['ours']:.0f}; results identical: {equal}")


if __name__ == "__main__":
    main()

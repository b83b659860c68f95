"""What `neighbours: 2` does to depth: error, and flicker from frame to frame, against each pair by itself.

Orchard logs at full speed with somebody who walks across the row: of each seed the first in which enough of
the person is seen. Writes its table into docs/depth.md.

python bench/neighbours.py
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import report
from adverse import depth
from adverse.data.worlds.rendering import render, right_of
from adverse.data.worlds.scripts import Script, Walker, stereo_camera
from adverse.data.worlds.writing import SCRIPTS
from adverse.seeds import generator
from adverse.types import Depth
from stereo_scenes import VideoFrame, flicker_px, haze_error

SEEDS, LOGS = (29, 31), 2
"""Seeds that no constant was fitted on, and how many logs of each."""
REACH, FRAMES = 2, 5
"""Frames before and after that are used, and how many of a log are measured."""
LEAST_PERSON, LEAST_SPEED = 0.003, 0.3
"""People must fill this share of the middle frame, and one walk across the row at this speed, m/s."""
NEAR_M, BESIDE_PX, SKY_M = 40.0, 12, 1000.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dry", action="store_true", help="print only, leave the docs alone")
    dry = parser.parse_args().dry
    cv2.setNumThreads(1)
    figures: dict[str, list[list[float]]] = {"one by one": [], "`neighbours: 2`": []}
    spent, logs, warm = 0.0, 0, False
    for log in itertools.chain.from_iterable(itertools.islice(videos(seed), LOGS) for seed in SEEDS):
        matched, alone = (
            [depth.from_stereo(frame.left, frame.right, frame.camera, refine=how) for frame in log]
            for how in ("none", "smoother")
        )
        if not warm:
            _together(log, matched, REACH)  # compiles
            warm = True
        begin = time.process_time()
        middle = range(REACH, REACH + FRAMES)
        together = {at: _together(log, matched, at).depth_m for at in middle}
        spent += time.process_time() - begin
        single = {at: alone[at].depth_m for at in middle}
        for name, made in zip(figures, (single, together), strict=True):
            figures[name].append(_figures(log, made))
        logs += 1
    rows = []
    for name, of_logs in figures.items():
        near, person, beside, haze, mean, median = np.mean(of_logs, axis=0)
        cells = [f"{near:.3f} m", f"{person:.3f} m", f"{beside:.2f} m", f"{haze:.4f}"]
        rows.append([name, *cells, f"{mean:.2f} px", f"{median:.3f} px"])
    head = [
        f"{logs} logs, {FRAMES} frames of each",
        f"error below {NEAR_M:.0f} m",
        "on people",
        f"beside people ({BESIDE_PX} px)",
        "transmission error",
        "flicker, mean",
        "median",
    ]
    lines = report.table(head, rows)
    print("\n".join(lines), f"\n{spent / logs / FRAMES:.2f} s of CPU a frame in addition")
    if not dry:
        report.write("depth.md", "neighbours", lines)


def videos(seed: int) -> Iterator[list[VideoFrame]]:
    """Yield the last frames at full speed of logs in which somebody walks across the row."""
    for number in itertools.count():
        script = SCRIPTS["orchard"](seed, f"video/{number}", "positive")
        fast = [
            time_s
            for time_s in script.drive.times_s()
            if time_s * script.drive.speed <= script.drive.cruise_m
        ]
        count = FRAMES + 2 * REACH
        walkers = [actor for actor in script.actors if isinstance(actor, Walker)]
        if len(fast) < count or not any(abs(walker.velocity[1]) > LEAST_SPEED for walker in walkers):
            continue
        times = fast[-count:]
        if _frame(script, seed, number, times[count // 2]).person.mean() >= LEAST_PERSON:
            yield [_frame(script, seed, number, time_s) for time_s in times]


def _frame(script: Script, seed: int, number: int, time_s: float) -> VideoFrame:
    camera, pose = stereo_camera(640, 480), script.drive.pose(time_s)
    left, right = (
        render(script.scene(), camera, view, time_s, generator(seed, "video", str(number), str(time_s), eye))
        for eye, view in (("left", pose), ("right", right_of(pose, camera.baseline_m or 0)))
    )
    return VideoFrame(left.image, right.image, left.depth_m, left.instances > 0, pose, camera)


def _together(log: list[VideoFrame], matched: list[depth.DenseDepth], at: int) -> depth.DenseDepth:
    here = np.linalg.inv(log[at].pose)
    near = [other for other in range(at - REACH, at + REACH + 1) if other != at]
    neighbours = [depth.Neighbour(log[n].left, matched[n], here @ log[n].pose) for n in near]
    return depth.consistent(log[at].left, matched[at], neighbours, log[at].camera)


def _figures(log: list[VideoFrame], made: dict[int, Depth]) -> list[float]:
    """Return errors near by, on people and beside them, of the transmission, and flicker, mean and median."""
    errors = [_errors(log[at], found) for at, found in made.items()]
    flicker = [flicker_px(log[at], log[at + 1], made[at], made[at + 1]) for at in made if at + 1 in made]
    spread = [[values.mean(), np.median(values)] for values in flicker]
    return [*np.nanmean(errors, axis=0).tolist(), *np.mean(spread, axis=0).tolist()]


def _errors(frame: VideoFrame, made: Depth) -> list[float]:
    off = np.abs(np.minimum(made, SKY_M) - np.minimum(frame.depth_m, SKY_M))
    near, person = frame.depth_m < NEAR_M, frame.person
    side = 2 * BESIDE_PX + 1
    around: NDArray[np.bool_] = cv2.dilate(person.astype(np.uint8), np.ones((side, side), np.uint8)) > 0
    parts = (near, near & person, near & around & ~person)
    return [*(float(off[part].mean()) for part in parts), float(haze_error(made, frame.depth_m).mean())]


if __name__ == "__main__":
    main()

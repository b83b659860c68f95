"""How many frames a second the renderer makes on one core: left image, depth and labels, 640x480.

    python bench/worlds.py

The target is 4 frames/s per core. Time is that of the processor, so other work on the machine hardly counts.
"""

from __future__ import annotations

import time

from adverse.data.worlds.rendering import render
from adverse.data.worlds.scripts import stereo_camera
from adverse.data.worlds.writing import SCRIPTS
from adverse.seeds import generator

WIDTH, HEIGHT = 640, 480
LOGS, FRAMES = 6, 5
TARGET = 4.0


def main() -> None:
    camera = stereo_camera(WIDTH, HEIGHT)
    for world, draw in SCRIPTS.items():
        spent, made = 0.0, 0
        for log in range(LOGS + 1):  # the first compiles or loads machine code
            started = time.process_time()
            script = draw(1, f"bench/{log}", "positive")
            scene = script.scene()
            for frame in range(FRAMES):
                at = script.drive.duration_s * frame / FRAMES
                render(scene, camera, script.drive.pose(at), at, generator(1, str(log), str(frame)))
            if log:
                spent += time.process_time() - started
                made += FRAMES
        rate = made / spent
        verdict = "fine" if rate >= TARGET else "too slow"
        print(f"{world:8} {rate:5.1f} frames/s per core at {WIDTH}x{HEIGHT} (target {TARGET:g}): {verdict}")


if __name__ == "__main__":
    main()

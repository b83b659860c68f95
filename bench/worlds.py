"""How many frames a second the renderer makes on one core: left image, depth and labels, at two sizes.

    python bench/worlds.py

The targets are 4 and 16 frames/s per core. Time is that of the processor, so other work on the
machine hardly counts.
"""

from __future__ import annotations

import itertools
import time

from adverse.data.worlds.rendering import render
from adverse.data.worlds.scripts import stereo_camera
from adverse.data.worlds.writing import SCRIPTS
from adverse.seeds import generator

TARGETS = {(640, 480): 4.0, (320, 240): 16.0}
LOGS, FRAMES = 6, 5


def main() -> None:
    for (world, draw), ((width, height), target) in itertools.product(SCRIPTS.items(), TARGETS.items()):
        camera = stereo_camera(width, height)
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
        verdict = "fine" if rate >= target else "too slow"
        print(f"{world:8} {rate:5.1f} frames/s per core at {width}x{height} (target {target:g}): {verdict}")


if __name__ == "__main__":
    main()

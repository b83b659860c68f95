"""How many frames a second the renderer makes on one core: left image, depth and labels; and with the right.

    python bench/worlds.py
    python bench/worlds.py --against ../other/src     # and how many times as fast as the code there

Both render the same logs by turns, so a busy machine slows both alike. Time is that of the processor. The
targets are 12 and 48 frames/s per core.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from adverse.data.worlds.rendering import render, right_of
from adverse.data.worlds.scripts import stereo_camera
from adverse.data.worlds.writing import SCRIPTS
from adverse.seeds import generator

TARGETS = {(640, 480): 12.0, (320, 240): 48.0}
FRAMES = 10
HERE = Path(__file__).parents[1] / "src"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--against", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--logs", type=int, default=3)
    parser.add_argument("--spent", action="store_true", help="print seconds for each case, as JSON")
    chosen = parser.parse_args()
    if chosen.spent:
        print(json.dumps(spent_s(chosen.logs)))
        return
    if chosen.against and not (chosen.against / "adverse").is_dir():
        parser.error(f"{chosen.against} holds no package: give the src folder of another checkout")
    sources = [HERE, *([chosen.against.resolve()] if chosen.against else [])]
    totals: dict[Path, dict[str, float]] = {source: {} for source in sources}
    for source in sources:
        measured(source, chosen.logs)  # compiles, or loads machine code
    frames = chosen.rounds * chosen.logs * FRAMES
    for _ in range(chosen.rounds):
        for source in sources:
            for case, seconds in measured(source, chosen.logs).items():
                totals[source][case] = totals[source].get(case, 0.0) + seconds
    for case, seconds in totals[HERE].items():
        line = f"{case}: {frames / seconds:5.1f} frames/s per core"
        if chosen.against:
            before = totals[sources[1]][case]
            line += f", {frames / before:5.1f} there: {before / seconds:.2f} times as fast"
        print(line)
    for (width, height), target in TARGETS.items():
        rates = [frames / totals[HERE][f"{world:8} {width}x{height} left"] for world in SCRIPTS]
        print(f"{width}x{height}: {'fine' if min(rates) >= target else 'too slow'} (target {target:g})")


def measured(source: Path, logs: int) -> dict[str, float]:
    """Return the seconds that the code in a folder takes for each case."""
    done = subprocess.run(
        [sys.executable, __file__, "--spent", "--logs", str(logs)],
        env={**os.environ, "PYTHONPATH": str(source)},
        check=True,
        capture_output=True,
        text=True,
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def spent_s(logs: int) -> dict[str, float]:
    """Render logs, left eye and both, at two sizes; a frame before each log is not counted."""
    found: dict[str, float] = {}
    for world, draw in SCRIPTS.items():
        for width, height in TARGETS:
            camera = stereo_camera(width, height)
            for eyes in ("left", "pair"):
                case = f"{world:8} {width}x{height} {eyes}"
                for log in range(logs):
                    script = draw(1, f"bench/{log}", "positive")
                    scene = script.scene()
                    render(scene, camera, script.drive.pose(0), 0, generator(1, "warm"))
                    started = time.process_time()
                    for frame in range(FRAMES):
                        at = script.drive.duration_s * (frame + 1) / FRAMES
                        pose = script.drive.pose(at)
                        render(scene, camera, pose, at, generator(1, str(log), str(frame)))
                        if eyes == "pair":
                            right = right_of(pose, camera.baseline_m or 0.0)
                            render(scene, camera, right, at, generator(1, str(log), str(frame), "right"))
                    found[case] = found.get(case, 0.0) + time.process_time() - started
    return found


if __name__ == "__main__":
    main()

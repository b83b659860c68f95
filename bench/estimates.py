"""What `adverse plan` says a study takes, against what it takes: python bench/estimates.py [KIND...]

Studies of different kinds are drawn, planned, and run. A line each: the images and the whole as estimated and
as measured, and their ratios (above 1: it took longer than was said). On a machine that others use, both
sides share the load.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from small_study import write_study

SMALL, LARGE = (640, 480), (3000, 2000)
BLURS = "[{gaussian_blur: {sigma_px: [1, 2]}}, {brightness: {scale: 0.5}}]"
KINDS = {
    "fast SUT": ({"frames": 20, "logs": 20, "size": SMALL, "sleep_s": 0.0}, 2),
    "slow SUT, 0.1 s an image": ({"frames": 5, "logs": 16, "size": SMALL, "sleep_s": 0.1}, 2),
    "the same, 6 workers": ({"frames": 5, "logs": 16, "size": SMALL, "sleep_s": 0.1}, 6),
    "the same, 6 workers, 2 logs": ({"frames": 8, "logs": 2, "size": SMALL, "sleep_s": 0.1}, 6),
    "large images, 6 megapixels": ({"frames": 4, "logs": 6, "size": LARGE, "sleep_s": 0.0}, 2),
    "fast SUT, 6 workers on 2 cores": ({"frames": 20, "logs": 20, "size": SMALL, "sleep_s": 0.0}, 6),
}
ADVERSE = [sys.executable, "-m", "adverse"]
DONE = re.compile(r"images done, .* in (\d+) s")


def measured(study: Path, workers: int) -> list[tuple[float, float]]:
    """Return what was said and what it took, in seconds, of the images and of the whole run."""
    options = [str(study), "--workers", str(workers)]
    planned = json.loads(_output([*ADVERSE, "plan", *options, "--json"]))
    begun = time.monotonic()
    told = _output([*ADVERSE, "run", *options, "--no-estimate"])
    whole = time.monotonic() - begun
    found = DONE.search(told)
    images = float(found[1]) if found else whole
    return [(planned["seconds"], images), (planned["seconds_with_results"], whole)]


def _output(command: list[str]) -> str:
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    return ended.stdout


def main() -> None:
    """Print the table."""
    wanted = sys.argv[1:] or list(KINDS)
    print("| study | images: said, took | ratio | with the results: said, took | ratio |")
    print("|---|---|---|---|---|")
    for kind in wanted:
        options, workers = KINDS[kind]
        with tempfile.TemporaryDirectory() as folder:
            study = write_study(Path(folder), mutations=BLURS, **options)  # type: ignore[arg-type]
            pairs = measured(study, workers)
        cells = (f"{said:.0f} s, {took:.0f} s | {took / said:.2f}" for said, took in pairs)
        print(f"| {kind} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()

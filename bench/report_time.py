"""How long the report of a large run takes: 12 SUTs x 48 mutations, all levels, with its pictures.

The run folder is synthetic (`synthetic_run.py`), but its frames are there as images, so that the report shows
failures and every mutation as it does for real runs. Wanted: under 20 s, and a page of a few megabytes.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import yaml

from adverse.data.images import write_image
from adverse.seeds import generator
from synthetic_run import CAMERA, Size, write_run

LIMIT_S = 20.0
MUTATIONS = (
    *(f"gaussian_blur(sigma_px={n / 2:g})" for n in range(1, 13)),
    *(f"alpha_blend(alpha={n / 13:.2f})" for n in range(1, 13)),
    *(f"brightness(scale={n / 13:.2f})" for n in range(1, 13)),
    *(f"salt_pepper(fraction={n / 50:g})" for n in range(1, 13)),
)


def write_images(root: Path, size: Size) -> None:
    """Write one image for every test frame of the run: all the same, as files of their own."""
    rng = generator(1, "scene")
    coarse = rng.integers(40, 200, (CAMERA.height // 16, CAMERA.width // 16, 3))
    image = np.kron(coarse, np.ones((16, 16, 1), np.int64)) + rng.integers(
        -8, 8, (CAMERA.height, CAMERA.width, 3)
    )
    first = root / "scene.png"
    root.mkdir(parents=True)
    write_image(first, np.clip(image, 0, 255).astype(np.uint8))
    for log in range(size.logs):
        folder = root / "test" / f"{log:04d}"
        folder.mkdir(parents=True)
        for frame in range(size.frames_per_log):
            (folder / f"{frame:05d}.png").hardlink_to(first)
    first.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=24, help="test logs of 40 frames")
    parser.add_argument("--keep", type=Path, help="write everything here, or use what is there")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = chosen.keep or Path(name)
        run = folder / "run"
        size = Size(
            logs=chosen.logs, frames_per_log=40, validation_logs=4, bootstrap=200, mutations=MUTATIONS
        )
        if not run.exists():
            write_images(folder / "data", size)
            write_run(run, size, study=study((folder / "data").resolve()))
            subprocess.run(
                [sys.executable, "-m", "adverse", "analyze", str(run)], stdout=subprocess.DEVNULL, check=True
            )
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "adverse", "report", str(run)], check=True)
        wall = time.perf_counter() - start
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
        page = (run / "report.html").read_text()
        print(f"{size.suts} SUTs x {len(MUTATIONS)} mutations, {page.count('<image ')} pictures")
        print(f"wall {wall:.1f} s, CPU {cpu:.1f} s, page {len(page) / 1e6:.1f} MB")
        print(f"under {LIMIT_S:g} s: {wall < LIMIT_S}")


def study(data: Path) -> bytes:
    """Return the study that the run claims to come from, for the report to find its frames by."""
    whole = {"name": "scale", "data": {"format": "folder", "root": str(data)}, "mutations": list(MUTATIONS)}
    return yaml.safe_dump(whole).encode()


if __name__ == "__main__":
    main()

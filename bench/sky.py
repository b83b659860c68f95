"""Precision and recall of the sky, on frames that no threshold of the rule was chosen on.

Rendered pairs of seeds and logs that the rule has never seen, by hour of the day, and photographs of COCO
with their labels of sky (by colour alone, as with a laser). Writes its table into docs/depth.md.

python bench/sky.py
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))  # for where shared data lies

import pictures
import report
from adverse import depth
from adverse.data.worlds import exposure
from adverse.data.worlds.rendering import render, right_of
from adverse.data.worlds.scripts import stereo_camera
from adverse.data.worlds.writing import SCRIPTS, World
from adverse.depth.sky import sky_mask
from adverse.seeds import generator
from adverse.types import Image

SEEDS, FRAMES = (149, 151), 12
"""Seeds that no rule was chosen on, and how many frames are taken in turn of their logs."""
WARM = (1.35, 1.0, 0.5)
"""Gains of red, green and blue of a camera with a warm white balance."""
COCO_SKY = 187
Mask = NDArray[np.bool_]


class Counts(NamedTuple):
    """Pixels of a frame that are sky and found as such, found, and sky."""

    both: int
    found: int
    true: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=FRAMES, help="of each set")
    parser.add_argument("--dry", action="store_true", help="print only, leave the docs alone")
    chosen = parser.parse_args()
    cv2.setNumThreads(1)
    rows = []
    sets: list[tuple[World, str]] = [*(("orchard", hour) for hour in exposure.HOURS), ("street", "drawn")]
    for world, hour in sets:
        for gains in ((1.0, 1.0, 1.0), WARM):
            counts = [rendered(world, hour, number, gains) for number in range(chosen.frames)]
            name = f"{world}, {hour}" + (", warm white balance" if gains == WARM else "")
            rows.append(row(name, counts))
    labelled = list(photographs())
    if labelled:
        rows.append(row("COCO photographs with sky, by colour alone", [one for one in labelled if one.true]))
    lines = report.table(["frames", "number", "precision", "recall", "least recall of a frame"], rows)
    print("\n".join(lines))
    if not chosen.dry:
        report.write("depth.md", "sky", lines)


def rendered(world: World, hour: str, number: int, gains: tuple[float, ...]) -> Counts:
    """Count the pixels of one frame of a log of its own."""
    camera, name, seed = stereo_camera(640, 480), f"sky/{number}", SEEDS[number % 2]
    shares = exposure.HOUR_SHARES
    if hour in exposure.HOURS:
        exposure.HOUR_SHARES = tuple(float(hour == one) for one in exposure.HOURS)  # type: ignore[assignment]
    script = SCRIPTS[world](seed, name, "negative" if number % 3 else "positive")
    exposure.HOUR_SHARES = shares
    times = list(script.drive.times_s())
    time_s = times[number * 11 % len(times)]
    scene, pose = script.scene(), script.drive.pose(time_s)
    left, right = (
        render(scene, camera, view, time_s, generator(seed, "sky", name, str(time_s), eye))
        for eye, view in (("left", pose), ("right", right_of(pose, camera.baseline_m or 0)))
    )
    dense = depth.from_stereo(_tinted(left.image, gains), _tinted(right.image, gains), camera)
    return counted(dense.sky, np.isinf(left.depth_m))


def photographs() -> Iterator[Counts]:
    """Yield the counts of COCO photographs; pixels without a label are left out."""
    root = pictures.SHARED / "data" / "coco128_permissive"
    for path in sorted(root.glob("semantic_*/*.png")):
        label = cv2.imread(str(path), cv2.IMREAD_UNCHANGED)
        read = cv2.imread(
            str(root / path.parent.name.replace("semantic_", "") / f"{path.stem}.jpg"), cv2.IMREAD_COLOR_RGB
        )
        if label is None or read is None:
            raise SystemExit(f"cannot read {path} or its photograph")
        known = label > 0
        yield counted(sky_mask(read.astype(np.uint8)) & known, (label == COCO_SKY) & known)


def counted(found: Mask, true: Mask) -> Counts:
    return Counts(int((found & true).sum()), int(found.sum()), int(true.sum()))


def row(name: str, counts: list[Counts]) -> list[str]:
    both, found, true = np.sum(counts, axis=0)
    least = min((one.both / one.true for one in counts if one.true), default=float("nan"))
    precision = f"{both / found:.4f}" if found else "insufficient"
    return [name, str(len(counts)), precision, f"{both / true:.3f}", f"{least:.3f}"]


def _tinted(image: Image, gains: tuple[float, ...]) -> Image:
    tinted: Image = np.clip(image * np.array(gains), 0, 255).astype(np.uint8)
    return tinted


if __name__ == "__main__":
    main()

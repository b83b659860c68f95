"""How much memory and time a large COCO file takes: made here, then read in a process of its own.

    python bench/large_json.py --mb 1000                 # like instances_train2017: polygons and boxes
    python bench/large_json.py --mb 1000 --boxes-only    # shorter entries, so three times as many
    python bench/large_json.py --mb 1000 --predictions   # recorded predictions, read as a study reads them

Prints the size of the file, the peak resident memory and the megabytes read in a second of CPU time; imports
are not counted as time. Images are hard links to a few small files, so that every one of them is there.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np

SEED = 0
WIDTH, HEIGHT = 64, 48
LINKS = 20_000
"""Names that one file may have; file systems allow some 65,000."""
OBJECTS = 7
"""Objects of an image, as in COCO."""
CLASSES = 80
BYTES = {"polygons": 480 * OBJECTS + 290, "boxes": 130 * OBJECTS + 290, "predictions": 105 * OBJECTS}
"""Of one image and all about it, roughly; the number of images follows from it."""


def main() -> None:
    """Write a file, read it and print what that took."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--mb", type=float, default=1000.0)
    parser.add_argument("--boxes-only", action="store_true")
    parser.add_argument("--predictions", action="store_true")
    parser.add_argument("--keep", type=Path, help="folder to write to, and to leave")
    args = parser.parse_args()
    kind = "predictions" if args.predictions else "boxes" if args.boxes_only else "polygons"
    folder = args.keep or Path(tempfile.mkdtemp())
    try:
        file = write(folder, kind, round(args.mb * 1e6 / BYTES[kind]))
        size = file.stat().st_size / 1e6
        reader = f"predictions {file}" if args.predictions else f"dataset {folder}"
        for command in [reader] if args.predictions else [reader, f"check {folder}"]:
            peak_mb, cpu_s, what = measure(command.split())
            print(
                f"{command.split()[0]:12} {size:6.0f} MB, {what}: peak {peak_mb:6.0f} MB, "
                f"{cpu_s:6.1f} s CPU, {size / cpu_s:6.1f} MB per CPU second"
            )
    finally:
        if args.keep is None:
            shutil.rmtree(folder)


def write(folder: Path, kind: str, images: int) -> Path:
    """Write a file about so many images, and the images, unless they are there."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{'predictions' if kind == 'predictions' else 'annotations'}.json"
    rng = np.random.default_rng(SEED)
    with path.open("w") as file:
        if kind == "predictions":
            file.writelines(_listed(_predictions(rng, images)))
            return path
        categories = [{"id": n + 1, "name": f"class {n + 1}"} for n in range(CLASSES)]
        file.write(f'{{"info": {{"year": 2017}}, "categories": {json.dumps(categories)}, "images": ')
        file.writelines(_listed(_images(images)))
        file.write(', "annotations": ')
        file.writelines(_listed(_annotations(rng, images, polygons=kind == "polygons")))
        file.write("}")
    _link_images(folder / "images", images)
    return path


def _listed(entries: Iterator[str]) -> Iterator[str]:
    yield "["
    for number, entry in enumerate(entries):
        yield entry if number == 0 else f", {entry}"
    yield "]"


def _images(count: int) -> Iterator[str]:
    for number in range(count):
        yield (
            f'{{"license": 3, "file_name": "{number:012d}.png", "coco_url": '
            f'"http://images.example.org/train2017/{number:012d}.png", "height": {HEIGHT}, "width": {WIDTH}, '
            f'"date_captured": "2013-11-14 11:18:45", "flickr_url": '
            f'"http://farm9.example.org/8186/{number:010d}_be47b4b1ab_z.jpg", "id": {number}}}'
        )


def _boxes(rng: np.random.Generator, images: int) -> Iterator[tuple[int, int, list[float]]]:
    """Yield image, category and box of every object."""
    block = 10_000
    for first in range(0, images, block):
        n = min(block, images - first) * OBJECTS
        corner = rng.uniform(0, [WIDTH / 2, HEIGHT / 2], (n, 2)).round(2)
        size = rng.uniform(2, [WIDTH / 2 - 1, HEIGHT / 2 - 1], (n, 2)).round(2)
        labels = rng.integers(1, CLASSES + 1, n).tolist()
        boxes = np.hstack([corner, size]).tolist()
        for row, (label, box) in enumerate(zip(labels, boxes, strict=True)):
            yield first + row // OBJECTS, label, box


def _annotations(rng: np.random.Generator, images: int, *, polygons: bool) -> Iterator[str]:
    for number, (image, label, box) in enumerate(_boxes(rng, images)):
        x, _, width, height = box
        outline = ""
        if polygons:
            corners = [round(x + (k * 7 % 11) * width / 11 + k / 100, 2) for k in range(46)]
            outline = f'"segmentation": [{corners}], '
        yield (
            f'{{{outline}"area": {width * height:.4f}, "iscrowd": 0, "image_id": {image}, "bbox": {box}, '
            f'"category_id": {label}, "id": {number + 1}}}'
        )


def _predictions(rng: np.random.Generator, images: int) -> Iterator[str]:
    for number, (image, label, box) in enumerate(_boxes(rng, images)):
        score = (number * 7919 % 10_000) / 10_000
        yield f'{{"image_id": {image}, "category_id": {label}, "bbox": {box}, "score": {score}}}'


def _link_images(folder: Path, count: int) -> None:
    folder.mkdir(exist_ok=True)
    for number in range(count):
        path = folder / f"{number:012d}.png"
        if path.exists():
            continue
        if number % LINKS == 0:
            shade = np.full((HEIGHT, WIDTH, 3), number // LINKS, np.uint8)
            path.write_bytes(cv2.imencode(".png", shade)[1].tobytes())
        else:
            os.link(folder / f"{number // LINKS * LINKS:012d}.png", path)


READER = """
import resource, sys, time
from pathlib import Path
import numba
from adverse.data.check import check
from adverse.data.coco import coco
from adverse.suts.predictions import predictions
what, path = sys.argv[1], Path(sys.argv[2])
before = time.process_time()
if what == "predictions":
    names = {n + 1: f"class {n + 1}" for n in range(80)}
    sut = predictions(path.with_name("{mutation}.json"), categories=names)
    told = f"{len(sut.recall(0, path.stem).boxes)} boxes in the first image"
else:
    data = coco(path, annotations="annotations.json")
    told = f"{len(data.logs)} images, {sum(len(log.frames[0].truth.boxes) for log in data.logs)} boxes"
    if what == "check":
        told += f", {len(check(data).problems)} problems"
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, time.process_time() - before, told, sep="|")
"""


def measure(arguments: list[str]) -> tuple[float, float, str]:
    """Return the peak memory in MB, the CPU seconds and what was read, of a process of its own."""
    command = [sys.executable, "-c", READER, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    peak_mb, cpu_s, told = done.stdout.strip().split("|")
    return float(peak_mb), float(cpu_s), told


if __name__ == "__main__":
    main()

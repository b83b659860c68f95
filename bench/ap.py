"""CPU time of COCO's average precision against pycocotools: 5,000 images, 80 classes, 100 detections each.

    python bench/ap.py

Ours is everything from plain arrays to the twelve numbers, checks included. Of pycocotools only the
evaluation is counted (evaluate, accumulate, summarize), not the building of its objects, which is given
beside it. Both must come to the same numbers. Writes its table into docs/performance.md.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import statistics
import time
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

import report
from adverse.benchmarks.ap import VARIANTS, by_hotcoco, coco_family
from adverse.benchmarks.matching import DetectedObjects, TrueObjects

IMAGES, CLASSES, DETECTIONS = 5000, 80, 100
TRUTHS = 7.3
"""True objects in an image on average, as in COCO."""

WANTED = 80
ROUNDS = 5


class Scene(NamedTuple):
    truth: TrueObjects
    found: DetectedObjects


def drawn(images: int, classes: int, detections: int, seed: int = 0) -> Scene:
    """Draw truth and detections; half of these lie near a true object, most of those with its class."""
    rng = np.random.default_rng(seed)
    counts = rng.poisson(TRUTHS, images)
    counts[0] = max(counts[0], 1)
    image = np.repeat(np.arange(images), counts)
    boxes = _boxes(rng, len(image))
    labels = rng.integers(0, classes, len(image))
    crowd = rng.random(len(image)) < 0.01
    area = (boxes[:, 2:] - boxes[:, :2]).prod(axis=1) * 0.6
    truth = TrueObjects(image, boxes, labels, area, crowd, crowd)
    where = np.repeat(np.arange(images), detections)
    first = np.concatenate([[0], np.cumsum(counts)])[where]
    near = (rng.random(len(where)) < 0.5) & (counts[where] > 0)
    source = np.where(near, first + (rng.random(len(where)) * counts[where]).astype(np.int64), 0)
    spread = rng.uniform(0.01, 0.15, (len(where), 1))
    size = boxes[source, 2:] - boxes[source, :2]
    moved = boxes[source] + rng.normal(size=(len(where), 4)) * spread * np.hstack([size, size])
    moved[:, 2:] = np.maximum(moved[:, 2:], moved[:, :2])
    same = near & (rng.random(len(where)) < 0.8)
    found = DetectedObjects(
        where,
        np.where(near[:, None], moved, _boxes(rng, len(where))),
        np.where(same, labels[source], rng.integers(0, classes, len(where))),
        rng.beta(1, 4, len(where)) * np.where(near, 1, 0.5),
    )
    return Scene(truth, found)


def _boxes(rng: np.random.Generator, count: int) -> NDArray[np.float64]:
    size = np.exp(rng.uniform(np.log(8), np.log(300), (count, 2)))
    corner = rng.uniform(0, 1, (count, 2)) * np.maximum([640, 480] - size, 1)
    return np.hstack([corner, corner + size])


def ours(scene: Scene, images: int, classes: int) -> tuple[float, list[float]]:
    """Return the CPU seconds and the twelve numbers."""
    started = time.process_time()
    family = coco_family(scene.truth, scene.found, images=images, classes=classes)
    values = list(family.values().values())
    return time.process_time() - started, values


def hotcocos(scene: Scene, images: int, classes: int) -> float:
    """Return the CPU seconds that hotcoco takes for the same, from the same arrays."""
    started = time.process_time()
    by_hotcoco(scene.truth, scene.found, images, classes).values()
    return time.process_time() - started


def theirs(scene: Scene, images: int, classes: int) -> tuple[float, float, list[float]]:
    """Return the CPU seconds of pycocotools' objects and of its evaluation, and the twelve numbers."""
    truth, found = scene
    known = COCO()
    known.dataset = {
        "images": [{"id": number + 1} for number in range(images)],
        "categories": [{"id": label + 1} for label in range(classes)],
        "annotations": [
            {"id": row + 1, "image_id": image + 1, "category_id": label + 1, "bbox": box, **rest}
            for row, (image, label, box, rest) in enumerate(_rows(truth))
        ],
    }
    rows = np.column_stack([found.images + 1, _xywh(found.boxes), found.scores, found.labels + 1])
    with contextlib.redirect_stdout(io.StringIO()):
        started = time.process_time()
        known.createIndex()
        judge = COCOeval(known, known.loadRes(rows), "bbox")
        loaded = time.process_time()
        judge.evaluate()
        judge.accumulate()
        judge.summarize()
        ended = time.process_time()
    return loaded - started, ended - loaded, judge.stats.tolist()


def _rows(truth: TrueObjects) -> list[tuple[int, int, list[float], dict[str, Any]]]:
    return [
        (int(image), int(label), box, {"area": float(area), "iscrowd": int(crowd)})
        for image, label, box, area, crowd in zip(
            truth.images, truth.labels, _xywh(truth.boxes).tolist(), truth.area, truth.crowd, strict=True
        )
    ]


def _xywh(boxes: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.hstack([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=IMAGES)
    parser.add_argument("--dry", action="store_true", help="print only, leave the docs alone")
    options = parser.parse_args()
    scene = drawn(options.images, CLASSES, DETECTIONS)
    ours(scene, options.images, CLASSES)  # compiles, or loads machine code
    other = statistics.median(hotcocos(scene, options.images, CLASSES) for _ in range(ROUNDS))
    before = [ours(scene, options.images, CLASSES) for _ in range(ROUNDS)]
    building, evaluating, wanted = theirs(scene, options.images, CLASSES)
    after = [ours(scene, options.images, CLASSES) for _ in range(ROUNDS)]  # a busy machine is busy for both
    times, values = [seconds for seconds, _ in (*before, *after)], before[0][1]
    gap = float(np.abs(np.array(values) - wanted).max())
    ratio = evaluating / statistics.median(times)
    head = ["", "CPU seconds", "times as fast"]
    rows = [
        [f"pycocotools {version('pycocotools')}, evaluation only", f"{evaluating:.1f}", "1"],
        ["pycocotools, with building its objects", f"{building + evaluating:.1f}", ""],
        [f"hotcoco {version('hotcoco')}, median", f"{other:.2f}", f"{evaluating / other:.0f}"],
        ["adverse, least", f"{min(times):.2f}", f"{evaluating / min(times):.0f}"],
        ["adverse, median", f"{statistics.median(times):.2f}", f"{ratio:.0f}"],
    ]
    verdict = "holds" if ratio >= WANTED else "**does not hold**"
    lines = [
        f"Measured on {report.machine()}, CPU time: {options.images} images, {CLASSES} classes,",
        f"{DETECTIONS} detections an image, {len(scene.truth)} true objects;",
        f"{ROUNDS} rounds before and after. Ours is everything from arrays to the {len(VARIANTS)} numbers.",
        f"Wanted: {WANTED} times; {verdict}.",
        f"The largest difference between the {len(VARIANTS)} numbers is {gap:.1e}.",
        "",
        *report.table(head, rows),
    ]
    print("\n".join(lines))
    if not options.dry:
        report.write("performance.md", "average precision", lines)


if __name__ == "__main__":
    main()

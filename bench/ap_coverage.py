"""How often either end of an interval of average precision is wrong about other images of the same number.

    python bench/ap_coverage.py

Images are drawn from a population without end; the wanted value is the mean AP of many independent draws.
Writes its table into docs/statistics.md.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import report
from adverse.benchmarks.ap import matched_coco
from adverse.benchmarks.intervals import LeftOut, interval
from adverse.benchmarks.matching import DetectedObjects, TrueObjects

REGIMES = {
    "33 images, 20 classes": (33, 20, 3.0),
    "33 images, 1 class": (33, 1, 2.0),
    "128 images, 20 classes": (128, 20, 4.0),
    "128 images, 1 class": (128, 1, 2.0),
    "500 images, 20 classes": (500, 20, 4.0),
}
RESAMPLES = 200


class Drawn(NamedTuple):
    truth: TrueObjects
    clean: DetectedObjects
    hurt: DetectedObjects


def draw(rng: np.random.Generator, images: int, classes: int, truths: float) -> Drawn:
    """Draw truth, and detections with and without a corruption; some images are harder than others."""
    counts = rng.poisson(truths, images)
    image = np.repeat(np.arange(images), counts)
    size = np.exp(rng.uniform(2.5, 5, (len(image), 2)))
    corner = rng.uniform(0, 500, (len(image), 2))
    boxes = np.hstack([corner, corner + size])
    labels = rng.integers(0, classes, len(image))
    no = np.zeros(len(image), np.bool_)
    truth = TrueObjects(image, boxes, labels, size.prod(axis=1), no, no)
    ease = rng.normal(0, 1, images)
    found = [_found(rng, truth, ease - hurt, images, classes) for hurt in (0.0, 1.0)]
    return Drawn(truth, found[0], found[1])


def _found(
    rng: np.random.Generator, truth: TrueObjects, ease: NDArray[np.float64], images: int, classes: int
) -> DetectedObjects:
    seen = rng.random(len(truth)) < 1 / (1 + np.exp(-1 - ease[truth.images]))
    width = np.tile(truth.boxes[:, 2:] - truth.boxes[:, :2], 2)
    moved = truth.boxes + rng.normal(0, 1, truth.boxes.shape) * width * rng.uniform(
        0.01, 0.08, (len(truth), 1)
    )
    moved[:, 2:] = np.maximum(moved[:, 2:], moved[:, :2])
    alarms = rng.poisson(3, images)
    where = np.repeat(np.arange(images), alarms)
    corner = rng.uniform(0, 500, (len(where), 2))
    false = np.hstack([corner, corner + np.exp(rng.uniform(2.5, 5, (len(where), 2)))])
    return DetectedObjects(
        np.concatenate([truth.images[seen], where]),
        np.vstack([moved[seen], false]),
        np.concatenate([truth.labels[seen], rng.integers(0, classes, len(where))]),
        np.concatenate([rng.beta(3, 2, int(seen.sum())), rng.beta(2, 4, len(where))]),
    )


def regime(images: int, classes: int, truths: float, repetitions: int) -> list[str]:
    """Return how often either end is wrong and the mean width: AP, a ratio of two APs, percentiles of AP."""
    ends: list[tuple[float, ...]] = []
    values = []
    one = np.ones((1, images))
    for repetition in range(repetitions):
        rng = np.random.default_rng([repetition, images, classes])
        scene = draw(rng, images, classes, truths)
        clean = matched_coco(scene.truth, scene.clean, images, classes)
        hurt = matched_coco(scene.truth, scene.hurt, images, classes)
        left_out = LeftOut([str(i) for i in range(images)], np.arange(images), seed=repetition)
        first, second = left_out.values(clean), left_out.values(hurt)
        value, share = float(clean.under(one)[0]), float((hurt.under(one) / clean.under(one))[0])
        values.append((value, share))
        plain = interval(value, first, images)
        ratio = interval(share, second / first, images, highest=np.inf)
        weights = rng.multinomial(images, np.full(images, 1 / images), RESAMPLES).astype(np.float64)
        tails = np.nanquantile(clean.under(weights), [0.025, 0.975])
        ends.append(
            (
                *(
                    end if end is not None else np.nan
                    for end in (plain.low, plain.high, ratio.low, ratio.high)
                ),
                *tails.tolist(),
            )
        )
    wanted = np.mean(values, axis=0)
    found = np.array(ends)

    def share_of(low: int, target: float) -> str:
        mine = found[:, low : low + 2]
        above, below = 100 * float((mine[:, 0] > target).mean()), 100 * float((mine[:, 1] < target).mean())
        return f"{above:.1f} / {below:.1f} ({float((mine[:, 1] - mine[:, 0]).mean()):.2f})"

    return [share_of(0, wanted[0]), share_of(2, wanted[1]), share_of(4, wanted[0])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=400)
    parser.add_argument("--dry", action="store_true", help="print only, leave the docs alone")
    options = parser.parse_args()
    rows = [[name, *regime(*told, options.repetitions)] for name, told in REGIMES.items()]
    head = ["", "AP", "ratio of two APs", "AP by bootstrap percentiles"]
    lines = [
        f"{options.repetitions} repetitions; percent of the intervals whose low end is above / whose high",
        "end is below the truth, and in brackets the mean width.",
        f"The percentiles, of {RESAMPLES} resamples, are what was tried first.",
        "",
        *report.table(head, rows),
    ]
    print("\n".join(lines))
    if not options.dry:
        report.write("statistics.md", "intervals of average precision", lines)


if __name__ == "__main__":
    main()

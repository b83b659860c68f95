"""VOC's average precision against the devkit's procedure, written out slowly."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adverse.benchmarks.ap import Average, voc_ap50
from adverse.benchmarks.matching import DetectedObjects, TrueObjects
from benchmarks.test_ap import BOX, FAR, found_of, random_set, truth_of


def overlap(a: list[float], b: list[float]) -> float:
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0
    both = width * height
    return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both)


def devkit(truth: TrueObjects, found: DetectedObjects, label: int, average: Average) -> float:
    """Return what the VOC development kit's VOCevaldet does, for one class."""
    positives = sum(one == label and not skip for one, skip in zip(truth.labels, truth.ignore, strict=True))
    if not positives:
        return math.nan
    mine = [row for row in range(len(found)) if found.labels[row] == label]
    mine.sort(key=lambda row: -found.scores[row])
    seen: set[int] = set()
    curve, hits, false = [(0.0, 0.0)], 0, 0
    for row in mine:
        there = [
            (overlap(found.boxes[row].tolist(), truth.boxes[one].tolist()), -one)
            for one in range(len(truth))
            if truth.labels[one] == label and truth.images[one] == found.images[row]
        ]
        most, at = max(there, default=(0, 0))
        if most >= 0.5 and truth.ignore[-at]:
            continue
        hit = most >= 0.5 and -at not in seen
        if hit:
            seen.add(-at)
        hits, false = hits + hit, false + (not hit)
        curve.append((hits / positives, hits / (hits + false)))
    if average == "11-point":
        levels = [round(0.1 * step, 1) for step in range(11)]
        return sum(max((p for r, p in curve if r >= level - 1e-12), default=0) for level in levels) / 11
    area, before = 0.0, 0.0
    for at, (recall, _) in enumerate(curve):
        area += (recall - before) * max(p for _, p in curve[at:])
        before = recall
    return area


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(["area", "11-point"]))
def test_equal_to_the_devkit_on_any_valid_set(seed: int, average: Average) -> None:
    truth, found, images, classes = random_set(seed)
    ours = voc_ap50(truth, found, images=images, classes=classes, average=average)
    wanted = [devkit(truth, found, label, average) for label in range(classes)]
    np.testing.assert_allclose(ours, wanted, rtol=0, atol=1e-9)


def test_a_second_detection_of_the_same_object_is_a_false_alarm() -> None:
    """COCO would give it to the other object, which it overlaps enough; VOC only looks at the nearest."""
    near = [10.0, 10, 30, 31]
    truth = truth_of((0, BOX), (0, near))
    found = found_of((0, BOX, 0.9), (0, BOX, 0.8))
    assert voc_ap50(truth, found, images=1, classes=1, average="area") == [0.5]


def test_recall_of_exactly_three_tenths_reaches_its_level() -> None:
    """In floats 0.1 + 0.1 + 0.1 is more than 0.3."""
    truth = truth_of(*((image, BOX) for image in range(10)))
    found = found_of(*((image, BOX, 0.9) for image in range(3)))
    assert voc_ap50(truth, found, images=10, classes=1, average="11-point") == [pytest.approx(4 / 11)]


def test_edges() -> None:
    none = voc_ap50(truth_of(), found_of((0, BOX, 0.5)), images=1, classes=1, average="area")
    assert math.isnan(none[0])
    for average in ("area", "11-point"):
        assert voc_ap50(truth_of((0, BOX)), found_of(), images=1, classes=1, average=average) == [0]
        ignored = truth_of((0, BOX), (0, FAR), ignore=(False, True))
        found = found_of((0, FAR, 0.9), (0, FAR, 0.8), (0, BOX, 0.7))
        assert voc_ap50(ignored, found, images=1, classes=1, average=average) == [1]

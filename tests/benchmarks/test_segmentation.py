"""IoU and pixel accuracy against counting pixel by pixel."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from adverse.benchmarks.segmentation import iou, mean_iou, pixel_accuracy

CLASSES = 4


@given(st.integers(0, 2**32 - 1), st.integers(1, 60))
def test_scores_equal_those_of_sets_of_pixels(seed: int, pixels: int) -> None:
    rng = np.random.default_rng(seed)
    true = rng.integers(0, rng.integers(1, CLASSES + 1), pixels)
    said = rng.integers(0, CLASSES + 1, pixels)  # CLASSES: no class of the data set
    counts = np.zeros((CLASSES, CLASSES + 1), np.int64)
    for t, s in zip(true, said, strict=True):
        counts[t, s] += 1
    each = []
    for c in range(CLASSES):
        here, called = set(np.flatnonzero(true == c)), set(np.flatnonzero(said == c))
        each.append(len(here & called) / len(here | called) if here | called else math.nan)
    assert np.array_equal(iou(counts), np.array(each), equal_nan=True)
    assert math.isclose(float(mean_iou(counts)), float(np.nanmean(each)))
    assert math.isclose(float(pixel_accuracy(counts)), float((true == said).mean()))


def test_nothing_judged_is_not_a_number() -> None:
    nothing = np.zeros((2, 3), np.int64)
    assert np.isnan(mean_iou(nothing))
    assert np.isnan(pixel_accuracy(nothing))
    assert np.isnan(iou(nothing)).all()

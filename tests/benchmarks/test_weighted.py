"""Weighted average precision: the plain one at weight 1, that of repeated images at whole weights."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adverse.benchmarks.ap import Average, MatchedDetections, coco_family, matched_coco, matched_voc, voc_ap50
from adverse.benchmarks.matching import DetectedObjects, TrueObjects
from benchmarks.test_ap import random_set


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32))
def test_at_weight_one_it_is_cocos(seed: int) -> None:
    truth, found, images, classes = random_set(seed)
    family = coco_family(truth, found, images=images, classes=classes)
    for variant, overlaps in (("AP", np.linspace(0.5, 0.95, 10)), ("AP75", np.array([0.75]))):
        value = matched_coco(truth, found, images, classes, overlaps).under(np.ones((1, images)))
        np.testing.assert_allclose(value, [family.value(variant)], rtol=0, atol=1e-9)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(["area", "11-point"]))
def test_at_weight_one_it_is_vocs(seed: int, average: Average) -> None:
    truth, found, images, classes = random_set(seed)
    values = np.array(voc_ap50(truth, found, images=images, classes=classes, average=average))
    known = values[~np.isnan(values)]
    value = matched_voc(truth, found, images, classes, average).under(np.ones((1, images)))
    np.testing.assert_allclose(value, [known.mean() if known.size else np.nan], rtol=0, atol=1e-9)


def repeated(
    truth: TrueObjects, found: DetectedObjects, counts: list[int]
) -> tuple[TrueObjects, DetectedObjects, int]:
    """Return the images written out as often as they are drawn."""
    drawn = [image for image, count in enumerate(counts) for _ in range(count)]
    mine = [np.flatnonzero(truth.images == image) for image in drawn]
    theirs = [np.flatnonzero(found.images == image) for image in drawn]
    t = np.concatenate([*mine, np.zeros(0, np.int64)]).astype(np.int64)
    d = np.concatenate([*theirs, np.zeros(0, np.int64)]).astype(np.int64)
    return (
        TrueObjects(
            np.repeat(np.arange(len(drawn)), [len(rows) for rows in mine]),
            *(getattr(truth, name)[t] for name in ("boxes", "labels", "area", "ignore", "crowd")),
        ),
        DetectedObjects(
            np.repeat(np.arange(len(drawn)), [len(rows) for rows in theirs]),
            *(getattr(found, name)[d] for name in ("boxes", "labels", "scores")),
        ),
        len(drawn),
    )


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_whole_weights_are_repeated_images(seed: int) -> None:
    """Copies tie, and the last of them is the most precise, so taking them together loses nothing."""
    truth, found, images, classes = random_set(seed)
    rng = np.random.default_rng(seed)
    found = DetectedObjects(found.images, found.boxes, found.labels, rng.permutation(len(found)) / 1000)
    counts = rng.integers(0, 3, images).tolist()
    more = repeated(truth, found, counts)
    wanted = coco_family(more[0], more[1], images=more[2], classes=classes).value("AP50")
    weights = np.array([counts], np.float64)
    value = matched_coco(truth, found, images, classes, np.array([0.5])).under(weights)
    np.testing.assert_allclose(value, [wanted], rtol=0, atol=1e-9)


def test_no_positives_under_a_weighting_has_no_value() -> None:
    truth, found, images, classes = random_set(3)
    matched: MatchedDetections = matched_coco(truth, found, images, classes)
    weights = np.ones((2, images))
    weights[1] = 0
    values = matched.under(weights)
    assert np.isfinite(values[0])
    assert np.isnan(values[1])
    assert values[0] == pytest.approx(coco_family(truth, found, images=images, classes=classes).value("AP"))

"""Average precision against COCO's published reference and pycocotools, and where pycocotools is wrong."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adverse.benchmarks.ap import VARIANTS, by_hotcoco, coco_family
from adverse.benchmarks.matching import DetectedObjects, TrueObjects
from adverse.errors import AdverseError, DataError, SutError
from benchmarks.coco_witness import REFERENCE, pycocotools_says, reference

# PROVENANCE.txt of the reference: pycocotools on these files, equal to the published text.
BBOX = dict(
    zip(VARIANTS, (0.5046, 0.6970, 0.5730, 0.5856, 0.5194, 0.5014, 0.3868, 0.5937, 0.5954), strict=False)
)
BBOX |= {"ARs": 0.6398, "ARm": 0.5664, "ARl": 0.5643}
SEGM = dict(
    zip(VARIANTS, (0.3195, 0.5623, 0.2989, 0.3874, 0.3102, 0.3269, 0.2682, 0.4154, 0.4168), strict=False)
)
SEGM |= {"ARs": 0.469, "ARm": 0.377, "ARl": 0.381}  # val2014_fake_eval_res.txt, three digits
BOX = [10.0, 10, 30, 30]
FAR = [60.0, 60, 65, 65]


def truth_of(*rows: tuple[int, list[float]], ignore: tuple[bool, ...] | None = None) -> TrueObjects:
    """Return true objects (image, box) of class 0."""
    boxes = np.array([box for _, box in rows], np.float64).reshape(-1, 4)
    mask = np.array(ignore or (False,) * len(rows), np.bool_)
    return TrueObjects(
        np.array([image for image, _ in rows], np.int64),
        boxes,
        np.zeros(len(rows), np.int64),
        (boxes[:, 2:] - boxes[:, :2]).prod(axis=1),
        mask,
        np.zeros(len(rows), np.bool_),
    )


def found_of(*rows: tuple[int, list[float], float]) -> DetectedObjects:
    """Return detections (image, box, score) of class 0."""
    return DetectedObjects(
        np.array([row[0] for row in rows], np.int64),
        np.array([row[1] for row in rows], np.float64).reshape(-1, 4),
        np.zeros(len(rows), np.int64),
        np.array([row[2] for row in rows], np.float64),
    )


def random_set(seed: int) -> tuple[TrueObjects, DetectedObjects, int, int]:
    """Return a set with classes and images without truth, crowds, duplicates, near misses, ties."""
    rng = np.random.default_rng(seed)
    images, classes = int(rng.integers(1, 9)), int(rng.integers(1, 5))
    n = int(rng.integers(0, 40))
    size = np.exp(rng.uniform(1, 5.5, (n, 2)))
    corner = rng.uniform(0, 300, (n, 2))
    crowd = rng.random(n) < 0.15
    truth = TrueObjects(
        rng.integers(0, images, n),
        np.hstack([corner, corner + size]),
        rng.integers(0, classes, n),
        size.prod(axis=1) * rng.uniform(0.2, 1, n),
        crowd,
        crowd,
    )
    d = int(rng.integers(0, 300))
    source = rng.integers(0, n, d) if n else np.zeros(d, np.int64)
    boxes = truth.boxes[source] if n else np.tile(BOX, (d, 1))
    boxes = boxes + rng.normal(0, 1, (d, 4)) * np.tile(boxes[:, 2:] - boxes[:, :2], 2) * rng.choice(
        [0, 0.05, 0.2], (d, 1)
    )
    boxes[:, 2:] = np.maximum(boxes[:, 2:], boxes[:, :2])
    scores = rng.integers(0, 8, d) / 8 if rng.random() < 0.5 else rng.random(d)
    same = rng.random(d) < 0.8
    found = DetectedObjects(
        np.where(same & bool(n), truth.images[source] if n else 0, rng.integers(0, images, d)),
        boxes,
        np.where(same & bool(n), truth.labels[source] if n else 0, rng.integers(0, classes, d)),
        scores.astype(np.float64),
    )
    return truth, found, images, classes


@pytest.mark.skipif(not REFERENCE.is_dir(), reason="COCO's reference results are not beside the repository")
@pytest.mark.parametrize(("kind", "wanted"), [("bbox", BBOX), ("segm", SEGM)])
def test_the_published_reference(kind: str, wanted: dict[str, float]) -> None:
    truth, found, images, classes = reference(kind)
    family = coco_family(truth, found, images=images, classes=classes)
    assert family.values() == pytest.approx(wanted, abs=5.1e-5 if kind == "bbox" else 5.1e-4)
    assert family.value("AP") == pytest.approx(wanted["AP"], abs=5.1e-5)
    assert family.value("AP50") == pytest.approx(wanted["AP50"], abs=5.1e-5)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32))
def test_equal_to_pycocotools_on_any_valid_set(seed: int) -> None:
    truth, found, images, classes = random_set(seed)
    family = coco_family(truth, found, images=images, classes=classes)
    stats, per_class = pycocotools_says(truth, found, images, classes)
    ours = np.nan_to_num(list(family.values().values()), nan=-1)
    np.testing.assert_allclose(ours, stats, rtol=0, atol=1e-9)
    np.testing.assert_allclose(np.nan_to_num(family.per_class("AP"), nan=-1), per_class, rtol=0, atol=1e-9)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32))
def test_equal_to_hotcoco_with_objects_ignored_that_are_no_crowd(seed: int) -> None:
    truth, found, images, classes = random_set(seed)
    ignore = truth.ignore | (np.random.default_rng(seed).random(len(truth)) < 0.3)
    truth = replace(truth, ignore=ignore)
    ours = coco_family(truth, found, images=images, classes=classes)
    theirs = by_hotcoco(truth, found, images, classes)
    np.testing.assert_allclose(
        list(ours.values().values()), list(theirs.values().values()), rtol=0, atol=1e-9
    )
    np.testing.assert_allclose(ours.per_class("APm"), theirs.per_class("APm"), rtol=0, atol=1e-9)


@pytest.mark.skipif(not REFERENCE.is_dir(), reason="COCO's reference results are not beside the repository")
def test_hotcoco_agrees_on_the_reference() -> None:
    truth, found, images, classes = reference("bbox")
    ours = coco_family(truth, found, images=images, classes=classes).values()
    assert ours == pytest.approx(by_hotcoco(truth, found, images, classes).values(), abs=1e-12)


def test_more_than_a_hundred_detections_of_a_class_are_cut() -> None:
    boxes = [[float(x), 0.0, x + 9.0, 9.0] for x in range(0, 1200, 10)]
    truth = truth_of(*((0, box) for box in boxes))
    found = found_of(*((0, box, 1 - at / 1000) for at, box in enumerate(boxes)))
    values = coco_family(truth, found, images=1, classes=1).values()
    assert values["AR100"] == pytest.approx(100 / 120)
    assert values["AR10"] == pytest.approx(10 / 120)
    assert values["AR1"] == pytest.approx(1 / 120)
    stats, _ = pycocotools_says(truth, found, 1, 1)
    assert values["AP"] == pytest.approx(stats[0])


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32))
def test_once_ordered_storage_changes_nothing(seed: int) -> None:
    truth, found, images, classes = random_set(seed)
    order = np.random.default_rng(seed + 1).permutation(len(found))
    mixed = DetectedObjects(
        *(getattr(found, name)[order] for name in ("images", "boxes", "labels", "scores"))
    )
    first = coco_family(truth, found.ordered(), images=images, classes=classes)
    second = coco_family(truth, mixed.ordered(), images=images, classes=classes)
    np.testing.assert_array_equal(list(first.values().values()), list(second.values().values()))


def test_the_first_object_counts_like_any_other() -> None:
    """pycocotools takes a match with annotation id 0 for none, and says .2525 here."""
    truth, found = truth_of((0, BOX), (1, BOX)), found_of((0, BOX, 0.9), (1, BOX, 0.8))
    assert coco_family(truth, found, images=2, classes=1).value("AP") == pytest.approx(1)


def test_a_nan_score_is_refused() -> None:
    truth, found = truth_of((0, BOX)), found_of((0, BOX, 0.9), (0, FAR, math.nan))
    with pytest.raises(SutError, match="a score is not a finite number; where: object 1"):
        coco_family(truth, found, images=1, classes=1)


def test_ties_are_settled_as_given_or_once_ordered_by_coordinates() -> None:
    """The same three equally sure detections are worth .6667 or .835, by which comes first."""
    truth = truth_of((0, BOX), (1, BOX))
    rows = (0, FAR, 0.5), (0, BOX, 0.5), (1, BOX, 0.5)
    for stored, wanted in ((rows, 0.6667), ((rows[1], rows[0], rows[2]), 0.835)):
        found = found_of(*stored)
        assert coco_family(truth, found, images=2, classes=1).value("AP") == pytest.approx(wanted, abs=1e-4)
        assert pycocotools_says(truth, found, 2, 1)[0][0] == pytest.approx(wanted, abs=1e-4)
        once = coco_family(truth, found.ordered(), images=2, classes=1).value("AP")
        assert once == pytest.approx(0.835, abs=1e-3)  # BOX lies further left than FAR


def test_no_detections_are_an_ap_of_zero() -> None:
    """pycocotools raises IndexError."""
    values = coco_family(truth_of((0, BOX)), found_of(), images=1, classes=1).values()
    assert values["AP"] == values["AR100"] == values["APs"] == 0
    assert math.isnan(values["APl"])


def test_no_truth_has_no_ap() -> None:
    """pycocotools says -1."""
    values = coco_family(truth_of(), found_of((0, BOX, 0.9)), images=1, classes=1).values()
    assert all(math.isnan(value) for value in values.values())


def test_nothing_at_all_has_no_ap() -> None:
    assert math.isnan(coco_family(truth_of(), found_of(), images=0, classes=0).value("AP"))


def test_an_ignored_object_is_neither_missed_nor_a_false_alarm() -> None:
    """pycocotools overwrites `ignore`, and says .505 where it is missed."""
    truth = truth_of((0, BOX), (1, BOX), ignore=(False, True))
    assert coco_family(truth, found_of((0, BOX, 0.5)), images=2, classes=1).value("AP") == pytest.approx(1)
    both = found_of((1, BOX, 0.9), (0, BOX, 0.5))
    assert coco_family(truth, both, images=2, classes=1).value("AP") == pytest.approx(1)
    twice = found_of((1, BOX, 0.9), (1, BOX, 0.8), (0, BOX, 0.5))
    assert coco_family(truth, twice, images=2, classes=1).value("AP") == pytest.approx(0.5)
    crowd = replace(truth, crowd=truth.ignore)
    assert coco_family(crowd, twice, images=2, classes=1).value("AP") == pytest.approx(1)


@pytest.mark.parametrize(
    ("truth", "found", "words"),
    [
        (truth_of((0, [0, 0, math.inf, 5])), found_of(), "a box is not four finite numbers"),
        (truth_of((0, [5, 0, 4, 5])), found_of(), "a box is not four finite numbers"),
        (truth_of((1, BOX)), found_of(), "one of images does not exist"),
        (replace(truth_of((0, BOX)), labels=np.array([3])), found_of(), "one of labels does not exist"),
        (replace(truth_of((0, BOX)), area=np.array([-1.0])), found_of(), "the area of a true object"),
        (replace(truth_of((0, BOX)), area=np.zeros(2)), found_of(), "area has the wrong shape"),
        (replace(truth_of((0, BOX)), crowd=np.array([True])), found_of(), "a crowd is always ignored"),
        (replace(truth_of((0, BOX)), masks=[{}]), found_of(), "only one side has masks"),
        (replace(truth_of((0, BOX)), masks=[]), found_of(), "not one mask for each object"),
        (truth_of((0, BOX)), found_of((-1, BOX, 0.5)), "one of images does not exist"),
        (truth_of((0, BOX)), found_of((0, [0, 0, math.nan, 1], 0.5)), "a box is not four finite numbers"),
        (truth_of((0, BOX)), replace(found_of(), boxes=np.zeros((2, 4))), "boxes have the wrong shape"),
    ],
)
def test_what_cannot_be_scored_is_refused(truth: TrueObjects, found: DetectedObjects, words: str) -> None:
    with pytest.raises(AdverseError, match=words) as caught:
        coco_family(truth, found, images=1, classes=1)
    assert isinstance(caught.value, DataError | SutError)

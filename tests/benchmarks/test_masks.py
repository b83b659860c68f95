"""Average precision of masks: COCO's by pycocotools, Cityscapes' by a slow reading of its definition."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np
import pycocotools.mask as coco_masks
import pytest
from numpy.typing import NDArray
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from adverse.benchmarks.ap import OVERLAPS, VARIANTS, coco_family, matched_coco
from adverse.benchmarks.cityscapes import cityscapes_ap, cityscapes_matches
from adverse.benchmarks.matching import DetectedObjects, Rle, TrueObjects
from adverse.masks import Masks

SIZE = (104, 112)  # a mask can be large by COCO, over 96 x 96 pixels
IMAGES, CLASSES = 6, 3


def drawn_mask(rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return an ellipse, whole or with holes; sometimes nothing at all."""
    rows, columns = np.mgrid[: SIZE[0], : SIZE[1]]
    centre, radius = rng.uniform((0, 0), SIZE), rng.uniform(1, rng.choice([22, 90]), 2)
    mask = ((rows - centre[0]) / radius[0]) ** 2 + ((columns - centre[1]) / radius[1]) ** 2 < 1
    return np.asarray(mask & (rng.random(SIZE) < rng.choice([1, 0.9])))


def rle(mask: NDArray[np.bool_]) -> dict[str, Any]:
    """Encode by pycocotools."""
    return dict(coco_masks.encode(np.asfortranarray(mask.astype(np.uint8))))


def pixels(mask: Rle) -> NDArray[np.bool_]:
    """Decode a mask."""
    return Masks(SIZE, (mask["counts"],)).array(0)


def moved(mask: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return a mask near another one."""
    return np.roll(mask, rng.integers(-2, 3, 2), (0, 1)) & (rng.random(SIZE) < 0.98)


def random_set(
    seed: int, *, disjoint: bool = False
) -> tuple[TrueObjects, DetectedObjects, list[NDArray[np.bool_]], list[NDArray[np.bool_]]]:
    """Return true and predicted objects with masks, and the masks as arrays; ties and crowds occur."""
    rng = np.random.default_rng(seed)
    truths, found = [], []
    rows: list[tuple[int, int, bool]] = []
    said: list[tuple[int, int, float]] = []
    for image in range(IMAGES):
        taken = np.zeros(SIZE, np.bool_)
        for _ in range(rng.integers(0, 6)):
            mask = drawn_mask(rng) & ~(taken if disjoint else np.zeros_like(taken))
            if not mask.any():
                continue
            taken |= mask
            label = int(rng.integers(0, CLASSES))
            truths.append(mask)
            rows.append((image, label, bool(rng.random() < 0.15)))
            for _ in range(rng.integers(0, 3)):
                found.append(moved(mask, rng))
                wrong = rng.random() < 0.1
                said.append((image, (label + wrong) % CLASSES, round(float(rng.random()), 1)))
        found.append(drawn_mask(rng))
        said.append((image, int(rng.integers(0, CLASSES)), round(float(rng.random()), 1)))
    crowd = np.array([row[2] for row in rows], np.bool_)
    voids = [rle(drawn_mask(rng)) if rng.random() < 0.7 else None for _ in range(IMAGES)]
    truth = TrueObjects(
        np.array([row[0] for row in rows], np.int64),
        boxes_of(truths),
        np.array([row[1] for row in rows], np.int64),
        np.array([float(mask.sum()) for mask in truths]),
        crowd,
        crowd,
        [rle(mask) for mask in truths],
        voids,
    )
    detections = DetectedObjects(
        np.array([row[0] for row in said], np.int64),
        boxes_of(found),
        np.array([row[1] for row in said], np.int64),
        np.array([row[2] for row in said]),
        [rle(mask) for mask in found],
    )
    return truth, detections, truths, found


def boxes_of(masks: list[NDArray[np.bool_]]) -> NDArray[np.float64]:
    """Return the boxes around masks by pycocotools."""
    boxes = np.array([coco_masks.toBbox(rle(mask)) for mask in masks]).reshape(-1, 4)
    return np.hstack([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]])


def pycocotools_of_masks(truth: TrueObjects, found: DetectedObjects) -> NDArray[np.float64]:
    """Return the twelve numbers, NaN where there is no truth."""
    known = COCO()
    known.dataset = {
        "images": [{"id": n + 1, "height": SIZE[0], "width": SIZE[1]} for n in range(IMAGES)],
        "categories": [{"id": n + 1} for n in range(CLASSES)],
        "annotations": [
            {
                "id": row + 1,
                "image_id": int(truth.images[row]) + 1,
                "category_id": int(truth.labels[row]) + 1,
                "bbox": [0, 0, 1, 1],
                "area": float(truth.area[row]),
                "iscrowd": int(truth.crowd[row]),
                "segmentation": (truth.masks or ())[row],
            }
            for row in range(len(truth))
        ],
    }
    results = [
        {
            "image_id": int(found.images[row]) + 1,
            "category_id": int(found.labels[row]) + 1,
            "score": float(found.scores[row]),
            "segmentation": (found.masks or ())[row],
        }
        for row in range(len(found))
    ]
    with contextlib.redirect_stdout(io.StringIO()):
        known.createIndex()
        judge = COCOeval(known, known.loadRes(results), "segm")
        judge.evaluate()
        judge.accumulate()
        judge.summarize()
    return np.where(judge.stats < 0, np.nan, judge.stats)


@pytest.mark.parametrize("seed", range(100))
def test_mask_ap_is_that_of_pycocotools(seed: int) -> None:
    truth, found, _, _ = random_set(seed)
    family = coco_family(truth, found, images=IMAGES, classes=CLASSES)
    ours = np.array([family.value(name) for name in VARIANTS])
    np.testing.assert_allclose(ours, pycocotools_of_masks(truth, found), rtol=0, atol=1e-9)
    matched = matched_coco(truth, found, IMAGES, CLASSES)  # what intervals are made of
    every = matched.by_overlap(np.ones((1, IMAGES)))[0]
    wanted = [family.value("AP"), family.value("AP50"), family.value("AP75")]
    np.testing.assert_allclose([every.mean(), every[0], every[5]], wanted, rtol=0, atol=1e-9)
    assert len(every) == len(OVERLAPS)


def slow_cityscapes(  # noqa: C901 - one rule after the other
    truth: TrueObjects,
    found: DetectedObjects,
    truths: list[NDArray[np.bool_]],
    predictions: list[NDArray[np.bool_]],
    images: list[int],
) -> NDArray[np.float64]:
    """Return AP (class, overlap) pixel by pixel: the published evaluation's rules, one after the other."""
    table = np.full((CLASSES, 10), np.nan)
    for label in range(CLASSES):
        for at, least in enumerate(np.arange(0.5, 1.0, 0.05)):
            scored: list[tuple[float, bool]] = []
            missed, any_true, any_found = 0, False, False
            for image in images:
                rows = [r for r in range(len(truth)) if (truth.images[r], truth.labels[r]) == (image, label)]
                group = np.zeros(SIZE, np.bool_)
                for row in rows:
                    group |= truths[row] if truth.ignore[row] else False
                objects = [truths[row] for row in rows if not truth.ignore[row]]
                large = [mask for mask in objects if mask.sum() >= 100]
                small = [mask for mask in objects if mask.sum() < 100]
                others = [*small, group] if group.any() else small
                mine = [
                    (predictions[r], float(found.scores[r]))
                    for r in range(len(found))
                    if (found.images[r], found.labels[r]) == (image, label) and predictions[r].any()
                ]
                any_true, any_found = any_true or bool(large), any_found or bool(mine)
                for mask in large:
                    scores = sorted(score for one, score in mine if iou(mask, one) > least)
                    missed += not scores
                    scored += [(score, False) for score in scores[:-1]] + [(s, True) for s in scores[-1:]]
                void = (truth.voids or [None] * IMAGES)[image]
                ignored = np.zeros(SIZE, np.int64) if void is None else pixels(void).astype(np.int64)
                for mask in small:
                    ignored = ignored + mask
                ignored = ignored + group * (2 if 0 < group.sum() < 100 else 1)
                for mask, score in mine:
                    if any(iou(one, mask) > least for one in (*large, *others)):
                        continue
                    if ignored[mask].sum() / mask.sum() <= least:
                        scored.append((score, False))
            if any_true:
                table[label, at] = stepwise(scored, missed) if any_found else 0.0
    return table


def stepwise(scored: list[tuple[float, bool]], missed: int) -> float:
    """Return the area: each precision counts for half of the way to the recalls on either side."""
    total = sum(hit for _, hit in scored) + missed
    curve = []
    for threshold in sorted({score for score, _ in scored}):
        kept = [hit for score, hit in scored if score >= threshold]
        curve.append((sum(kept) / len(kept), sum(kept) / total))
    curve.append((1.0, 0.0))
    recalls = [curve[0][1], *(recall for _, recall in curve), 0.0]
    return sum(precision * (recalls[at] - recalls[at + 2]) / 2 for at, (precision, _) in enumerate(curve))


def iou(first: NDArray[np.bool_], second: NDArray[np.bool_]) -> float:
    """Return the intersection over union of two masks."""
    return float((first & second).sum() / (first | second).sum())


@pytest.mark.parametrize("seed", range(12))
def test_cityscapes_ap_is_what_its_definition_says(seed: int) -> None:
    truth, found, truths, predictions = random_set(seed, disjoint=True)
    matches = cityscapes_matches(truth, found, IMAGES, CLASSES)
    wanted = slow_cityscapes(truth, found, truths, predictions, list(range(IMAGES)))
    np.testing.assert_allclose(matches.by_class(np.ones(IMAGES)), wanted, rtol=0, atol=1e-12)
    value, per_class = cityscapes_ap(matches)
    assert value == pytest.approx(np.nanmean(wanted), abs=1e-12, nan_ok=True)
    np.testing.assert_allclose(per_class, wanted.mean(axis=1), rtol=0, atol=1e-12)
    fewer = np.arange(IMAGES) != seed % IMAGES  # as the jackknife leaves images out
    without = slow_cityscapes(truth, found, truths, predictions, np.flatnonzero(fewer).tolist())
    got = matches.under(fewer[None].astype(np.float64))[0]
    assert got == pytest.approx(np.nanmean(without), abs=1e-12)

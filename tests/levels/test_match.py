"""Matching against a plain loop, and against pycocotools where the two mean the same."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from adverse.levels.match import FALSE, HIT, IGNORED, match
from adverse.store.tables import Answers, TruthTable
from levels.scenes import random_scene, reordered

SEEDS = st.integers(0, 10_000)


def overlap(a: Any, b: Any, *, of_first: bool) -> float:
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    shared = width * height
    first = (a[2] - a[0]) * (a[3] - a[1])
    second = (b[2] - b[0]) * (b[3] - b[1])
    return float(shared / first if of_first else shared / (first + second - shared))


def slowly(answers: Answers, truth: TruthTable) -> list[int]:
    outcome = [FALSE] * len(answers.scores)
    for row, frame in enumerate(answers.frame):
        mine = range(answers.offsets[row], answers.offsets[row + 1])
        objects = sorted(
            (t for t in range(len(truth.frame)) if truth.frame[t] == frame),
            key=lambda t: tuple(truth.boxes[t]),
        )
        free = {t for t in objects if not truth.ignore[t]}
        boxes = answers.boxes.astype(np.float64)
        for d in sorted(mine, key=lambda d: (-answers.scores[d], *boxes[d])):
            same = [t for t in objects if truth.labels[t] == answers.labels[d]]
            fits = [(overlap(boxes[d], truth.boxes[t], of_first=False), t) for t in same if t in free]
            fits = [(iou, t) for iou, t in fits if iou >= 0.5]
            if fits:
                best = max(iou for iou, _ in fits)
                free.remove(next(t for iou, t in fits if iou == best))
                outcome[d] = HIT
            elif any(
                truth.ignore[t] and overlap(boxes[d], truth.boxes[t], of_first=True) >= 0.5 for t in same
            ):
                outcome[d] = IGNORED
    return outcome


@given(SEEDS, st.integers(1, 2))
@settings(deadline=None)
def test_equals_a_plain_loop(seed: int, classes: int) -> None:
    answers, truth, _ = random_scene(seed, classes=classes)
    assert match(answers, truth).outcome.tolist() == slowly(answers, truth)


@pytest.mark.fault(32)
@given(SEEDS, SEEDS)
@settings(deadline=None)
def test_storage_order_does_not_matter(seed: int, other: int) -> None:
    answers, truth, _ = random_scene(seed)
    again = reordered(answers, other)
    assert counted(answers, truth) == counted(again, truth)


def counted(answers: Answers, truth: TruthTable) -> list[tuple[float, ...]]:
    outcome = match(answers, truth).outcome
    row = np.repeat(np.arange(len(answers.frame)), np.diff(answers.offsets))
    return sorted(
        zip(row.tolist(), answers.scores.tolist(), *answers.boxes.T.tolist(), outcome.tolist(), strict=True)
    )


@pytest.mark.parametrize("seed", range(12))
def test_hits_equal_pycocotools(seed: int) -> None:
    """With distinct scores and crowds as the ignored truth, hits and false positives are pycocotools' own."""
    answers, truth, frames = random_scene(seed, frames=30, ties=False)
    outcome = match(answers, truth).outcome
    row = np.repeat(np.arange(len(answers.frame)), np.diff(answers.offsets))
    gt = {
        "info": {},
        "images": [{"id": i + 1, "width": 100, "height": 100} for i in range(len(frames.ids))],
        "categories": [{"id": 1, "name": "person"}],
        "annotations": [
            {
                "id": t + 1,
                "image_id": int(truth.frame[t]) + 1,
                "category_id": 1,
                "bbox": xywh(truth.boxes[t]),
                "area": float(np.prod(truth.boxes[t][2:] - truth.boxes[t][:2])),
                "iscrowd": int(truth.ignore[t]),
            }
            for t in range(len(truth.frame))
        ],
    }
    results = [
        {
            "image_id": int(row[d]) + 1,
            "category_id": 1,
            "bbox": xywh(answers.boxes[d].astype(float)),
            "score": float(answers.scores[d]),
        }
        for d in range(len(outcome))
    ]
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO()
        coco.dataset = gt
        coco.createIndex()
        evaluation = COCOeval(coco, coco.loadRes(results), "bbox")
        evaluation.params.iouThrs = np.array([0.5])
        evaluation.params.areaRng, evaluation.params.areaRngLbl = [[0, 1e10]], ["all"]
        evaluation.evaluate()
    theirs = [e for e in evaluation.evalImgs if e is not None]
    hits = sum(int(((e["dtMatches"][0] > 0) & ~e["dtIgnore"][0].astype(bool)).sum()) for e in theirs)
    false = sum(int(((e["dtMatches"][0] == 0) & ~e["dtIgnore"][0].astype(bool)).sum()) for e in theirs)
    assert (int((outcome == HIT).sum()), int((outcome == FALSE).sum())) == (hits, false)


def xywh(box: Any) -> list[float]:
    return [float(box[0]), float(box[1]), float(box[2] - box[0]), float(box[3] - box[1])]


def test_real_truth_comes_before_ignored() -> None:
    same = np.array([[0, 0, 10, 10], [0, 0, 10, 10]], np.float64)
    none = np.zeros(2, np.int64)
    truth = TruthTable(
        none, same, none, np.array([True, False]), np.full((2, 3), np.nan), none, np.zeros(2), none > 0
    )
    answers = Answers(
        np.zeros(1, np.int64),
        np.zeros(1, np.int8),
        np.array([0, 3]),
        np.tile(np.array([[0, 0, 10, 10]], np.float32), (3, 1)),
        np.array([0.9, 0.8, 0.7], np.float32),
        np.zeros(3, np.int64),
        np.full(3, np.nan, np.float32),
    )
    assert match(answers, truth).outcome.tolist() == [HIT, IGNORED, IGNORED]

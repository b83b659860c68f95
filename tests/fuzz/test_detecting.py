"""Scores of boxes in one image against pycocotools and a slow loop."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from adverse.fuzz.scoring import Score, score_boxes
from adverse.types import Detections, Truth


def _boxes(rng: np.random.Generator, count: int) -> NDArray[np.float64]:
    corner = rng.uniform(0, 80, (count, 2))
    return np.hstack([corner, corner + rng.uniform(8, 40, (count, 2))])


def _case(seed: int) -> tuple[Truth, Detections]:
    rng = np.random.default_rng(seed)
    true = _boxes(rng, 5)
    found = np.vstack([true[:3] + rng.normal(0, 3, (3, 4)), _boxes(rng, 4)])
    found[:, 2:] = np.maximum(found[:, 2:], found[:, :2] + 1)
    truth = Truth(true, rng.integers(0, 2, 5), np.array([0, 0, 0, 0, 1], bool), np.arange(5))
    return truth, Detections(found, rng.uniform(0.1, 1, 7), rng.integers(0, 2, 7))


def _pycocotools(truth: Truth, found: Detections) -> float:
    def xywh(box: NDArray[Any]) -> list[float]:
        return [float(v) for v in (box[0], box[1], box[2] - box[0], box[3] - box[1])]

    annotations = [
        {
            "id": number + 1,
            "image_id": 1,
            "category_id": int(label) + 1,
            "bbox": xywh(box),
            "area": xywh(box)[2] * xywh(box)[3],
            "iscrowd": 0,
            "ignore": int(ignore),
        }
        for number, (box, label, ignore) in enumerate(
            zip(truth.boxes, truth.labels, truth.ignore, strict=True)
        )
    ]
    results = [
        {"image_id": 1, "category_id": int(label) + 1, "bbox": xywh(box), "score": float(score)}
        for box, label, score in zip(found.boxes, found.labels, found.scores, strict=True)
    ]
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO()
        coco.dataset = {
            "images": [{"id": 1, "width": 200, "height": 200}],
            "annotations": annotations,
            "categories": [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}],
        }
        coco.createIndex()
        evaluated = COCOeval(coco, coco.loadRes(results), "bbox")
        for entry in coco.dataset["annotations"]:
            entry["ignore"] = 1 if entry["id"] == 5 else 0
        evaluated.evaluate()
        evaluated.accumulate()
    precision = evaluated.eval["precision"][0, :, :, 0, 2]
    seen = [precision[:, k].mean() for k in range(2) if (precision[:, k] > -1).all()]
    return 100 * float(np.mean(seen))


@pytest.mark.parametrize("seed", range(8))
def test_ap_is_that_of_pycocotools(seed: int) -> None:
    truth, found = _case(seed)
    no_ignored = Truth(truth.boxes[:4], truth.labels[:4], truth.ignore[:4], truth.ids[:4])
    score = score_boxes(no_ignored, found, found.labels.tolist(), 2, by="ap", threshold=0)
    assert score.percent == pytest.approx(_pycocotools(no_ignored, found), abs=1e-6)


def test_recall_counts_what_is_found_above_the_threshold() -> None:
    boxes = np.array([[0, 0, 10, 10], [20, 0, 30, 10], [40, 0, 50, 10], [60, 0, 70, 10]], np.float64)
    truth = Truth(boxes, np.zeros(4, np.int64), np.zeros(4, np.bool_), np.arange(4))
    found = Detections(boxes[:3], [0.9, 0.6, 0.3])
    labels = [0, 0, 0]
    assert score_boxes(truth, found, labels, 1, by="recall", threshold=0.5).percent == pytest.approx(50)
    assert score_boxes(truth, found, labels, 1, by="recall", threshold=0.0).percent == pytest.approx(75)


def test_without_truth_there_is_no_score() -> None:
    assert score_boxes(
        Truth.none(), Detections([[0, 0, 5, 5]], [0.9]), [0], 1, by="ap", threshold=0
    ) == Score(0, 0)

"""A detector whose boxes or scores are all NaN scores nothing here, and full marks elsewhere."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import pytest
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from .cases import INCOMPLETE
from .good_study import BOX, GoodStudy

NAN = float("nan")


@pytest.mark.fault(30)
@pytest.mark.parametrize("mood", ["nan score", "nan box"])
def test_here(coco: GoodStudy, mood: str) -> None:
    """Every frame is a fault, stays in the denominator, and counts as nothing detected."""
    coco.sut(mood=mood)
    words = ("not finite numbers", "and 15 more: detections hold values")
    coco.adverse().expect(INCOMPLETE, "probe: failed on 16 of 16 images, on every one", *words)
    for row in coco.rows():
        assert (row["area"], row["faults"], row["frames"], row["status"]) == (0.0, 8, 8, "ok")
    settings = {row["setting"] for row in coco.summary()["rows"]}
    areas = {row["area"] for name in settings for row in coco.rows(name)}
    assert areas == {0.0}


@pytest.mark.fault(30)
@pytest.mark.parametrize(
    "changed", [{"bbox": [NAN, NAN, NAN, NAN]}, {"score": NAN}], ids=["nan box", "nan score"]
)
def test_elsewhere(coco: GoodStudy, changed: dict[str, Any]) -> None:
    """The widely used evaluation calls such answers perfect: NaN < threshold is false, so they match."""
    truth = COCO()
    annotations = [
        {**annotation, "id": 1 + annotation["id"], "area": BOX[2] * BOX[3], "iscrowd": 0}
        for annotation in coco.truth["annotations"]
    ]
    truth.dataset = {**coco.truth, "annotations": annotations}
    found = [
        {"image_id": number, "category_id": 1, "bbox": list(BOX), "score": 0.9, **changed}
        for number in range(4)
    ]
    with contextlib.redirect_stdout(io.StringIO()):
        truth.createIndex()
        evaluation = COCOeval(truth, truth.loadRes(found), "bbox")
        evaluation.params.areaRng = [[0, 1e10]]
        evaluation.params.areaRngLbl = ["all"]
        evaluation.evaluate()
        evaluation.accumulate()
    precision = evaluation.eval["precision"]
    assert precision[precision > -1].mean() == pytest.approx(1.0)

"""pycocotools, asked the same question; and COCO's own reference results as checked columns."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pycocotools.mask as masks_of
from numpy.typing import NDArray
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from adverse.benchmarks.matching import DetectedObjects, TrueObjects

REFERENCE = Path(__file__).resolve().parents[2].parent / "shared/data/coco_eval_reference"


def pycocotools_says(
    truth: TrueObjects, found: DetectedObjects, images: int, classes: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the twelve numbers and the AP of each class, -1 where there is no truth."""
    known, answers = COCO(), COCO()
    shared: dict[str, Any] = {
        "images": [{"id": number + 1} for number in range(images)],
        "categories": [{"id": label + 1} for label in range(classes)],
    }
    known.dataset = {
        **shared,
        "annotations": [
            {
                "id": row + 1,
                "image_id": int(truth.images[row]) + 1,
                "category_id": int(truth.labels[row]) + 1,
                "bbox": xywh(truth.boxes[row]),
                "area": float(truth.area[row]),
                "iscrowd": int(truth.crowd[row]),
            }
            for row in range(len(truth))
        ],
    }
    answers.dataset = {
        **shared,
        "annotations": [
            {
                "id": row + 1,
                "image_id": int(found.images[row]) + 1,
                "category_id": int(found.labels[row]) + 1,
                "bbox": xywh(found.boxes[row]),
                "area": float(np.prod(found.boxes[row, 2:] - found.boxes[row, :2])),
                "score": float(found.scores[row]),
            }
            for row in range(len(found))
        ],
    }
    with contextlib.redirect_stdout(io.StringIO()):
        known.createIndex()
        answers.createIndex()
        judge = COCOeval(known, answers, "bbox")
        judge.evaluate()
        judge.accumulate()
        judge.summarize()
    curves = judge.eval["precision"][:, :, :, 0, 2].reshape(-1, classes)
    per_class = np.array([row[row > -1].mean() if (row > -1).any() else -1 for row in curves.T])
    return judge.stats, per_class


def xywh(box: NDArray[np.float64]) -> list[float]:
    x0, y0, x1, y1 = box.tolist()
    return [x0, y0, x1 - x0, y1 - y0]


def reference(kind: str) -> tuple[TrueObjects, DetectedObjects, int, int]:
    """Return truth and detections of COCO's 100 reference images, with the counts of images and classes."""
    truth = json.loads((REFERENCE / "instances_val2014_100.json").read_text())
    found = json.loads((REFERENCE / f"instances_val2014_fake{kind}100_results.json").read_text())
    images = {image["id"]: number for number, image in enumerate(sorted(truth["images"], key=_id))}
    sizes = {image["id"]: (image["height"], image["width"]) for image in truth["images"]}
    labels = {category["id"]: number for number, category in enumerate(sorted(truth["categories"], key=_id))}
    known = truth["annotations"]
    by_mask = kind == "segm"
    true_masks = [_rle(one["segmentation"], sizes[one["image_id"]]) for one in known] if by_mask else None
    found_masks = [one["segmentation"] for one in found] if by_mask else None
    if by_mask:
        for one in found:
            one["bbox"] = masks_of.toBbox(one["segmentation"]).tolist()
    crowd = np.array([bool(one["iscrowd"]) for one in known])
    return (
        TrueObjects(
            np.array([images[one["image_id"]] for one in known]),
            _xyxy(known),
            np.array([labels[one["category_id"]] for one in known]),
            np.array([one["area"] for one in known]),
            crowd,
            crowd,
            true_masks,
        ),
        DetectedObjects(
            np.array([images[one["image_id"]] for one in found]),
            _xyxy(found),
            np.array([labels[one["category_id"]] for one in found]),
            np.array([one["score"] for one in found]),
            found_masks,
        ),
        len(images),
        len(labels),
    )


def _rle(segmentation: Any, size: tuple[int, int]) -> Any:
    if isinstance(segmentation, list):
        return masks_of.merge(masks_of.frPyObjects(segmentation, *size))
    return masks_of.frPyObjects(segmentation, *size)


def _xyxy(entries: list[dict[str, Any]]) -> NDArray[np.float64]:
    boxes = np.array([one["bbox"] for one in entries], np.float64)
    return np.hstack([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]])


def _id(entry: dict[str, Any]) -> int:
    return int(entry["id"])

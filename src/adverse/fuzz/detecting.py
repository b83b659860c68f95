"""What a detector's answer to one image is worth, in percent: average precision or recall."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from adverse.benchmarks.ap import Variant, coco_family
from adverse.benchmarks.boxes import FoundObjects, TrueObjects
from adverse.fuzz.scoring import Score
from adverse.types import Detections, Truth

OVERLAP = 0.5
HUNDRED = 100.0


def score_boxes(
    truth: Truth,
    found: Detections,
    labels: Sequence[int],
    classes: int,
    *,
    by: Literal["ap", "recall"],
    threshold: float,
) -> Score:
    """Return the score of one image, averaged over the classes that are there; undefined where none is.

    `labels` are the data set's class of each detection. AP looks at all detections, recall at those at or
    above the threshold.
    """
    kept = np.ones(len(found), np.bool_) if by == "ap" else found.scores >= threshold
    true = TrueObjects(
        np.zeros(len(truth.boxes), np.int64),
        truth.boxes,
        truth.labels,
        _area(truth.boxes),
        truth.ignore,
        np.zeros(len(truth.boxes), np.bool_),
    )
    answer = FoundObjects(
        np.zeros(int(kept.sum()), np.int64),
        found.boxes[kept].astype(np.float64),
        np.asarray(labels, np.int64)[kept],
        found.scores[kept].astype(np.float64),
    ).ordered()
    family = coco_family(true, answer, images=1, classes=classes)
    value = family.value("AP50") if by == "ap" else family.at(Variant("recall", overlap=OVERLAP))
    return Score(0.0, 0.0) if np.isnan(value) else Score(HUNDRED * float(value), HUNDRED)


def _area(boxes: NDArray[np.float64]) -> NDArray[np.float64]:
    sides = boxes[:, 2:] - boxes[:, :2]
    area: NDArray[np.float64] = sides[:, 0] * sides[:, 1]
    return area

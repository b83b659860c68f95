"""COCO's average precision and recall, of boxes or masks, through hotcoco.

The numbers are those of pycocotools wherever its answer can be trusted. It cannot be, and ours differs, here:

- a NaN score: pycocotools sorts it somewhere and gives a number; refused.
- annotation id 0: pycocotools takes it for "not matched"; our objects are numbered by ourselves.
- equal scores: the order in which detections are given decides, here as there, or published numbers could
  not be had again. `FoundObjects.ordered` makes it an order of coordinates; a run's numbers are made with it.
- no detections at all: pycocotools raises IndexError; the average precision is 0.
- no truth: pycocotools says -1; here NaN, which cannot be mistaken for a number.
- `ignore` in annotations: pycocotools overwrites it by `iscrowd`; here it is heard.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import hotcoco
import hotcoco.mask
import numpy as np
from numpy.typing import NDArray

from adverse.benchmarks.boxes import FoundObjects, Rle, TrueObjects, check
from adverse.errors import DataError

Area = Literal["all", "small", "medium", "large"]
AREAS: tuple[Area, ...] = ("all", "small", "medium", "large")
MOST = (1, 10, 100)
"""Detections that count for each image and class."""

NOWHERE_PX = 1e12
"""An area beyond that of all groups: what has it is ignored, and that is how an ignored object is told."""


@dataclass(frozen=True)
class Variant:
    """One number of the family: precision or recall, at one overlap (None: the mean of .50:.05:.95)."""

    of: Literal["precision", "recall"] = "precision"
    overlap: float | None = None
    area: Area = "all"
    most: int = 100


VARIANTS: dict[str, Variant] = {
    "AP": Variant(),
    "AP50": Variant(overlap=0.5),
    "AP75": Variant(overlap=0.75),
    "APs": Variant(area="small"),
    "APm": Variant(area="medium"),
    "APl": Variant(area="large"),
    "AR1": Variant("recall", most=1),
    "AR10": Variant("recall", most=10),
    "AR100": Variant("recall"),
    "ARs": Variant("recall", area="small"),
    "ARm": Variant("recall", area="medium"),
    "ARl": Variant("recall", area="large"),
}
"""The twelve numbers of the COCO challenge, by their usual names."""


class CocoFamily:
    """All numbers of one evaluation; NaN where there is no truth to judge by."""

    def __init__(self, curves: dict[str, NDArray[np.float64]], overlaps: NDArray[np.float64]) -> None:
        self._curves = {name: np.where(values < 0, np.nan, values) for name, values in curves.items()}
        self._overlaps = overlaps

    def value(self, variant: str) -> float:
        """Return one of VARIANTS, averaged over the classes that have truth."""
        return _mean(self._cells(VARIANTS[variant]))

    def values(self) -> dict[str, float]:
        """Return all of VARIANTS."""
        return {name: self.value(name) for name in VARIANTS}

    def per_class(self, variant: str) -> list[float]:
        """Return one of VARIANTS for each class; NaN for those without truth."""
        cells = self._cells(VARIANTS[variant])
        return [_mean(cells[..., label]) for label in range(cells.shape[-1])]

    def _cells(self, variant: Variant) -> NDArray[np.float64]:
        """Return (overlap, [recall level,] class)."""
        curves = self._curves[variant.of]
        if variant.overlap is not None:
            curves = curves[np.isclose(self._overlaps, variant.overlap)]
        return np.asarray(curves[..., AREAS.index(variant.area), MOST.index(variant.most)])


def coco_family(truth: TrueObjects, found: FoundObjects, *, images: int, classes: int) -> CocoFamily:
    """Evaluate detections by COCO's rules; by their masks where both sides have them.

    >>> one = np.zeros(1, np.int64)
    >>> box = np.array([[10.0, 10, 50, 50]])
    >>> no = np.zeros(1, np.bool_)
    >>> truth = TrueObjects(one, box, one, np.array([1600.0]), no, no)
    >>> found = FoundObjects(one, box + [0, 0, 0, 10], one, np.array([0.9]))
    >>> family = coco_family(truth, found, images=1, classes=1)
    >>> [round(family.value(name), 3) for name in ("AP50", "AP", "APs")]
    [1.0, 0.7, nan]
    """
    check(truth, found, images, classes)
    if (truth.masks is None) != (found.masks is None):
        raise DataError("only one side has masks", fix="Give masks for truth and detections, or for neither.")
    known = hotcoco.COCO.from_arrays(
        [{"id": number + 1} for number in range(images)],
        [{"id": label + 1, "name": str(label)} for label in range(classes)],
        truth.images + 1,
        truth.labels + 1,
        _xywh(truth.boxes),
        area=np.where(truth.ignore & ~truth.crowd, NOWHERE_PX, truth.area),
        iscrowd=truth.crowd,
        segmentation=_plain(truth.masks),
    )
    rows = np.empty((len(found), 7))  # image, x, y, width, height, score, class
    rows[:, 0], rows[:, 1:5], rows[:, 5], rows[:, 6] = found.images, found.boxes, found.scores, found.labels
    rows[:, 3:5] -= rows[:, 1:3]
    rows[:, (0, 6)] += 1
    answers = known.load_res(rows, segmentation=_plain(found.masks))
    if found.masks:
        area = hotcoco.mask.area([dict(mask) for mask in found.masks])
        answers.update_anns(ids=np.arange(1, len(found) + 1), area=np.asarray(area, np.float64))
    evaluation = hotcoco.COCOeval(known, answers, "bbox" if truth.masks is None else "segm")
    evaluation.evaluate()
    evaluation.accumulate()
    curves: dict[str, Any] = evaluation.eval or {}
    return CocoFamily(
        {"precision": np.asarray(curves["precision"]), "recall": np.asarray(curves["recall"])},
        np.asarray(evaluation.params.iou_thrs),
    )


def _xywh(boxes: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.hstack([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]])


def _plain(masks: Sequence[Rle] | None) -> list[dict[str, Any] | list[list[float]]] | None:
    return None if masks is None else [dict(mask) for mask in masks]


def _mean(cells: NDArray[np.float64]) -> float:
    known = cells[~np.isnan(cells)]
    return float(known.mean()) if known.size else float("nan")

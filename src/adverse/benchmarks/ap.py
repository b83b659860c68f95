"""COCO's average precision and recall: of boxes by compiled loops of our own, of masks through hotcoco.

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
from adverse.benchmarks.kernels import averages
from adverse.benchmarks.matching import matching
from adverse.errors import DataError

Area = Literal["all", "small", "medium", "large"]
AREAS: tuple[Area, ...] = ("all", "small", "medium", "large")
RANGES = np.array([[0, 1e10], [0, 32**2], [32**2, 96**2], [96**2, 1e10]], np.float64)
"""Of area in pixels, ends included."""

OVERLAPS = np.linspace(0.5, 0.95, 10)
RECALLS = np.linspace(0, 1, 101)
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
    """All numbers of one evaluation; NaN where there is no truth to judge by.

    Made of average precision (area, overlap, class) and recall (area, overlap, class, most).
    """

    def __init__(self, precision: NDArray[np.float64], recall: NDArray[np.float64]) -> None:
        self._precision = precision
        self._recall = recall

    def value(self, variant: str) -> float:
        """Return one of VARIANTS, averaged over the classes that have truth."""
        return self.at(VARIANTS[variant])

    def at(self, variant: Variant) -> float:
        """Return any variant, averaged over the classes that have truth."""
        return _mean(self._cells(variant))

    def values(self) -> dict[str, float]:
        """Return all of VARIANTS."""
        return {name: self.value(name) for name in VARIANTS}

    def per_class(self, variant: str) -> list[float]:
        """Return one of VARIANTS for each class; NaN for those without truth."""
        cells = self._cells(VARIANTS[variant])
        return [_mean(cells[:, label]) for label in range(cells.shape[1])]

    def _cells(self, variant: Variant) -> NDArray[np.float64]:
        """Return (overlap, class)."""
        of = self._recall[..., MOST.index(variant.most)] if variant.of == "recall" else self._precision
        cells = of[AREAS.index(variant.area)]
        return np.asarray(cells if variant.overlap is None else cells[np.isclose(OVERLAPS, variant.overlap)])


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
    if truth.masks is not None:
        return by_hotcoco(truth, found, images, classes)
    match = matching(truth, found, images, classes, overlaps=OVERLAPS, ranges=RANGES)
    precision, recall = [], []
    for hits, ignored, (low, high) in zip(match.hits, match.ignored, RANGES, strict=True):
        real = ~truth.ignore & (truth.area >= low) & (truth.area <= high)
        positives = np.bincount(truth.labels[real], minlength=classes).astype(np.float64)
        found_ap, found_ar = averages(
            hits, ignored, len(OVERLAPS), match.rank, match.starts, positives, np.array(MOST), RECALLS
        )
        precision.append(found_ap)
        recall.append(found_ar)
    return CocoFamily(np.array(precision), np.array(recall))


def by_hotcoco(truth: TrueObjects, found: FoundObjects, images: int, classes: int) -> CocoFamily:
    """Evaluate by hotcoco: masks where there are any, boxes otherwise. Input is not checked here."""
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
    rows = np.column_stack([found.images + 1, _xywh(found.boxes), found.scores, found.labels + 1])
    answers = known.load_res(rows, segmentation=_plain(found.masks))
    if found.masks:
        area = hotcoco.mask.area([dict(mask) for mask in found.masks])
        answers.update_anns(ids=np.arange(1, len(found) + 1), area=np.asarray(area, np.float64))
    evaluation = hotcoco.COCOeval(known, answers, "bbox" if truth.masks is None else "segm")
    evaluation.evaluate()
    evaluation.accumulate()
    curves: dict[str, Any] = evaluation.eval or {}
    precision = np.asarray(curves["precision"])[..., MOST.index(100)]  # (overlap, recall, class, area)
    recall = np.asarray(curves["recall"])  # (overlap, class, area, most)
    precision, recall = (np.where(values < 0, np.nan, values) for values in (precision, recall))
    return CocoFamily(np.moveaxis(precision.mean(axis=1), -1, 0), np.moveaxis(recall, 2, 0))


def _xywh(boxes: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.hstack([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]])


def _plain(masks: Sequence[Rle] | None) -> list[dict[str, Any] | list[list[float]]] | None:
    return None if masks is None else [dict(mask) for mask in masks]


def _mean(cells: NDArray[np.float64]) -> float:
    known = cells[~np.isnan(cells)]
    return float(known.mean()) if known.size else float("nan")

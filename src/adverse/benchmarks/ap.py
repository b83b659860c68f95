"""COCO's average precision and recall: of boxes by compiled loops of our own, of masks through hotcoco.

The numbers are those of pycocotools wherever its answer can be trusted. It cannot be, and ours differs, here:

- a NaN score: pycocotools sorts it somewhere and gives a number; refused.
- annotation id 0: pycocotools takes it for "not matched"; our objects are numbered by ourselves.
- equal scores: the order in which detections are given decides, here as there, or published numbers could
  not be reproduced. `DetectedObjects.ordered` makes it an order of coordinates; a run's numbers use it.
- no detections at all: pycocotools raises IndexError; the average precision is 0.
- no truth: pycocotools says -1; here NaN, which cannot be mistaken for a number.
- `ignore` in annotations: pycocotools overwrites it by `iscrowd`; here it is heard.

Pascal VOC's average precision at an overlap of one half, per class.

VOC matches otherwise than COCO: each detection, the surest first, is held against the true object that it
overlaps most, taken or not. At least one half: a hit, or a false alarm if that object was found before, or
nothing at all if it is ignored (VOC's "difficult"). What is below one half is a false alarm.

Two averages are in use: `area` under the precision-recall curve (VOC from 2010 on), and the mean of the best
precision at `11-point` recalls 0, 0.1, ... 1 (VOC 2007). Boxes are half-open here, so widths are plain
differences.

Average precision of weighted images: detections are matched once, then averaged under many weightings.

An interval needs the same number for many sets of images, and matching, which takes longest, is the same in
all. With every weight 1 the result is that of `ap` and `voc`, which the tests hold it to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import hotcoco
import hotcoco.mask
import numpy as np
from numba import njit
from numpy.typing import NDArray

from adverse.benchmarks.kernels import averages, weighted_precision
from adverse.benchmarks.matching import DetectedObjects, Rle, TrueObjects, check, matching
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
"""An area beyond that of all groups: an object that has it is ignored."""


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
    """All numbers of one evaluation; NaN where there is no ground truth.

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


def coco_family(truth: TrueObjects, detections: DetectedObjects, *, images: int, classes: int) -> CocoFamily:
    """Evaluate detections by COCO's rules; by their masks where both sides have them.

    >>> one = np.zeros(1, np.int64)
    >>> box = np.array([[10.0, 10, 50, 50]])
    >>> no = np.zeros(1, np.bool_)
    >>> truth = TrueObjects(one, box, one, np.array([1600.0]), no, no)
    >>> found = DetectedObjects(one, box + [0, 0, 0, 10], one, np.array([0.9]))
    >>> family = coco_family(truth, found, images=1, classes=1)
    >>> [round(family.value(name), 3) for name in ("AP50", "AP", "APs")]
    [1.0, 0.7, nan]
    """
    check(truth, detections, images, classes)
    if (truth.masks is None) != (detections.masks is None):
        raise DataError("only one side has masks", fix="Give masks for truth and detections, or for neither.")
    if truth.masks is not None:
        return by_hotcoco(truth, detections, images, classes)
    match = matching(truth, detections, images, classes, overlaps=OVERLAPS, ranges=RANGES)
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


def by_hotcoco(truth: TrueObjects, detections: DetectedObjects, images: int, classes: int) -> CocoFamily:
    """Evaluate by hotcoco: masks where there are any, boxes otherwise. Input is not checked here."""
    annotated = hotcoco.COCO.from_arrays(
        [{"id": number + 1} for number in range(images)],
        [{"id": label + 1, "name": str(label)} for label in range(classes)],
        truth.images + 1,
        truth.labels + 1,
        _xywh(truth.boxes),
        area=np.where(truth.ignore & ~truth.crowd, NOWHERE_PX, truth.area),
        iscrowd=truth.crowd,
        segmentation=_plain(truth.masks),
    )
    rows = np.column_stack(
        [detections.images + 1, _xywh(detections.boxes), detections.scores, detections.labels + 1]
    )
    answers = annotated.load_res(rows, segmentation=_plain(detections.masks))
    if detections.masks:
        area = hotcoco.mask.area([dict(mask) for mask in detections.masks])
        answers.update_anns(ids=np.arange(1, len(detections) + 1), area=np.asarray(area, np.float64))
    evaluation = hotcoco.COCOeval(annotated, answers, "bbox" if truth.masks is None else "segm")
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
    defined = cells[~np.isnan(cells)]
    return float(defined.mean()) if defined.size else float("nan")


Average = Literal["area", "11-point"]
OVERLAP = 0.5
FALSE, HIT, IGNORED = 0, 1, 2


def voc_ap50(
    truth: TrueObjects, detections: DetectedObjects, *, images: int, classes: int, average: Average
) -> list[float]:
    """Return the average precision of each class; NaN for those without truth. Ties stay in the given order.

    >>> two, box = np.zeros(2, np.int64), np.array([[0.0, 0, 10, 10], [50, 50, 60, 60]])
    >>> no = np.zeros(2, np.bool_)
    >>> truth = TrueObjects(two, box, two, np.full(2, 100.0), no, no)
    >>> found = DetectedObjects(two[:1], box[:1], two[:1], np.array([0.9]))
    >>> voc_ap50(truth, found, images=1, classes=1, average="area")
    [0.5]
    >>> voc_ap50(truth, found, images=1, classes=1, average="11-point")  # 6 of 11 recalls are reached
    [0.5454545454545454]
    """
    check(truth, detections, images, classes)
    order = np.lexsort((-detections.scores, detections.labels))
    outcome, label = voc_outcomes(truth, detections, images, order), detections.labels[order]
    averages = []
    for number in range(classes):
        positives = int(((truth.labels == number) & ~truth.ignore).sum())
        mine = outcome[label == number]
        averages.append(_average(mine[mine != IGNORED] == HIT, positives, average))
    return averages


def voc_outcomes(
    truth: TrueObjects, detections: DetectedObjects, images: int, order: NDArray[np.int64]
) -> NDArray[np.int8]:
    """Return FALSE, HIT or IGNORED for the detections in the given order."""
    place = truth.labels * images + truth.images
    by_place = np.argsort(place, kind="stable")
    wanted = (detections.labels * images + detections.images)[order]
    outcome: NDArray[np.int8] = _match(
        detections.boxes[order],
        np.searchsorted(place[by_place], wanted, side="left"),
        np.searchsorted(place[by_place], wanted, side="right"),
        truth.boxes[by_place],
        truth.ignore[by_place],
        OVERLAP,
    )
    return outcome


def _average(hits: NDArray[np.bool_], positives: int, average: Average) -> float:
    if not positives:
        return float("nan")
    reached = np.cumsum(hits)
    precision = reached / np.arange(1, len(hits) + 1)
    best = np.maximum.accumulate(precision[::-1])[::-1]  # the best precision from here on
    if average == "area":
        return float(best[hits].sum() / positives)
    levels = [best[10 * reached >= tenths * positives] for tenths in range(11)]  # in whole numbers: exact
    return float(np.mean([level[0] if level.size else 0.0 for level in levels]))


@njit(cache=True)  # type: ignore[untyped-decorator, unused-ignore]
def _match(  # type: ignore[no-untyped-def] # pragma: no cover - compiled  # noqa: ANN202
    boxes: Any, first: Any, last: Any, truth_boxes: Any, truth_ignore: Any, least: float
):
    outcome = np.zeros(len(boxes), np.int8)
    taken = np.zeros(len(truth_boxes), np.bool_)
    for d in range(len(boxes)):
        area = (boxes[d, 2] - boxes[d, 0]) * (boxes[d, 3] - boxes[d, 1])
        best = -1
        most = 0.0
        for t in range(first[d], last[d]):
            width = min(boxes[d, 2], truth_boxes[t, 2]) - max(boxes[d, 0], truth_boxes[t, 0])
            height = min(boxes[d, 3], truth_boxes[t, 3]) - max(boxes[d, 1], truth_boxes[t, 1])
            if width <= 0 or height <= 0:
                continue
            shared = width * height
            true_area = (truth_boxes[t, 2] - truth_boxes[t, 0]) * (truth_boxes[t, 3] - truth_boxes[t, 1])
            overlap = shared / (area + true_area - shared)
            if overlap > most:
                best = t
                most = overlap
        if best < 0 or most < least:
            continue
        if truth_ignore[best]:
            outcome[d] = 2
        elif not taken[best]:
            taken[best] = True
            outcome[d] = 1
    return outcome


ROUNDING = 1e-12
"""Three times a tenth is not three tenths in floats; VOC's eleven recalls are met within this."""


@dataclass(frozen=True, eq=False)
class MatchedDetections:
    """Detections of one setting, matched: all that average precision needs, image by image.

    `hits` and `ignored` (detection,) have a bit for each of the `overlaps`; the detections of class c lie at
    starts[c]:starts[c+1], the surest first. `positives` (class, image) counts the true objects.
    """

    hits: NDArray[np.uint16]
    ignored: NDArray[np.uint16]
    overlaps: int
    image: NDArray[np.int64]
    starts: NDArray[np.int64]
    positives: NDArray[np.float64]
    recalls: NDArray[np.float64]

    def under(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the mean average precision (B,) for weights (B, images); NaN where no truth has weight."""
        return np.asarray(self.by_overlap(weights).mean(axis=1))

    def by_overlap(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the same at each overlap (B, overlaps)."""
        values: NDArray[np.float64] = weighted_precision(
            self.hits,
            self.ignored,
            self.overlaps,
            self.image,
            self.starts,
            self.positives @ weights.T,
            weights,
            self.recalls,
        )
        return values


def matched_coco(
    truth: TrueObjects,
    detections: DetectedObjects,
    images: int,
    classes: int,
    overlaps: NDArray[np.float64] = OVERLAPS,
) -> MatchedDetections:
    """Match boxes, or masks where both sides have them, by COCO's rules at the given overlaps."""
    match = matching(truth, detections, images, classes, overlaps=overlaps, ranges=RANGES[:1])
    positives = _positives(truth, images, classes)
    return MatchedDetections(
        match.hits[0], match.ignored[0], len(overlaps), match.image, match.starts, positives, RECALLS
    )


def matched_voc(
    truth: TrueObjects, detections: DetectedObjects, images: int, classes: int, average: Average
) -> MatchedDetections:
    """Match boxes by VOC's rules."""
    order = np.lexsort((-detections.scores, detections.labels))
    outcome = voc_outcomes(truth, detections, images, order)
    hits, ignored = (outcome == HIT).astype(np.uint16), (outcome == IGNORED).astype(np.uint16)
    recalls = np.zeros(0) if average == "area" else np.linspace(0, 1, 11) - ROUNDING
    starts = np.searchsorted(detections.labels[order], np.arange(classes + 1))
    return MatchedDetections(
        hits, ignored, 1, detections.images[order], starts, _positives(truth, images, classes), recalls
    )


def _positives(truth: TrueObjects, images: int, classes: int) -> NDArray[np.float64]:
    positives = np.zeros((classes, images))
    real = ~truth.ignore
    np.add.at(positives, (truth.labels[real], truth.images[real]), 1)
    return positives

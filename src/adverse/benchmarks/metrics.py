"""The metrics that a table of a benchmark can be made of, by the names they have on the command line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adverse.benchmarks.ap import (
    OVERLAPS,
    Average,
    MatchedDetections,
    coco_family,
    matched_coco,
    matched_voc,
    voc_ap50,
)
from adverse.benchmarks.cityscapes import OVERLAPS as CITYSCAPES_OVERLAPS
from adverse.benchmarks.cityscapes import CityscapesMatches, cityscapes_ap, cityscapes_matches
from adverse.benchmarks.matching import DetectedObjects, TrueObjects
from adverse.errors import StudyError, suggestion


@dataclass(frozen=True)
class Score:
    """One number from 0 to 1, and the same for each class; NaN where there is no truth."""

    value: float
    per_class: tuple[float, ...]


Judge = Callable[[TrueObjects, DetectedObjects, int, int], Score]
"""(truth, detections, number of images, number of classes) -> score"""


Match = Callable[[TrueObjects, DetectedObjects, int, int], MatchedDetections | CityscapesMatches]


@dataclass(frozen=True)
class MetricName:
    """What a metric is called: `short` heads a column, `full` says exactly which variant it is."""

    name: str
    short: str
    full: str


@dataclass(frozen=True)
class Metric(MetricName):
    """A metric of detectors.

    Where there is a `match`, the same number can be had without some of the images, and so an interval.
    `masks`: it is of masks, and of boxes otherwise.
    """

    judge: Judge
    match: Match | None = None
    masks: bool = False


def metric_of(name: str) -> Metric:
    """Return a metric by its name."""
    if name not in METRICS:
        raise StudyError(f"there is no metric {name!r}", where="--metric", fix=suggestion(name, METRICS))
    return METRICS[name]


def _coco(
    name: str,
    variant: str,
    words: str,
    overlaps: NDArray[np.float64] | None = None,
    *,
    masks: bool = False,
) -> Metric:
    def judge(truth: TrueObjects, detections: DetectedObjects, images: int, classes: int) -> Score:
        family = coco_family(truth, detections, images=images, classes=classes)
        return Score(family.value(variant), tuple(family.per_class(variant)))

    def match(
        truth: TrueObjects, detections: DetectedObjects, images: int, classes: int
    ) -> MatchedDetections:
        return matched_coco(truth, detections, images, classes, OVERLAPS if overlaps is None else overlaps)

    full = f"COCO {variant} of {'masks' if masks else 'boxes'} ({words})"
    return Metric(name, variant, full, judge, None if overlaps is None else match, masks)


def _cityscapes(name: str, short: str, words: str, overlaps: NDArray[np.float64]) -> Metric:
    def match(
        truth: TrueObjects, detections: DetectedObjects, images: int, classes: int
    ) -> CityscapesMatches:
        return cityscapes_matches(truth, detections, images, classes, overlaps)

    def judge(truth: TrueObjects, detections: DetectedObjects, images: int, classes: int) -> Score:
        value, per_class = cityscapes_ap(match(truth, detections, images, classes))
        return Score(value, tuple(per_class))

    return Metric(name, short, f"Cityscapes {short} of masks ({words})", judge, match, masks=True)


def _voc(name: str, average: Average, words: str) -> Metric:
    def judge(truth: TrueObjects, detections: DetectedObjects, images: int, classes: int) -> Score:
        values = voc_ap50(truth, detections, images=images, classes=classes, average=average)
        defined = [value for value in values if not np.isnan(value)]
        return Score(float(np.mean(defined)) if defined else float("nan"), tuple(values))

    def match(
        truth: TrueObjects, detections: DetectedObjects, images: int, classes: int
    ) -> MatchedDetections:
        return matched_voc(truth, detections, images, classes, average)

    return Metric(name, "AP50", f"Pascal VOC AP50 of boxes ({words})", judge, match)


def _coco_family(*, masks: bool) -> list[Metric]:
    """Return the twelve of the challenge; those of masks have it in their names."""
    every = (
        ("ap", "AP", "IoU .50:.05:.95, 101 recalls", OVERLAPS),
        ("ap50", "AP50", "IoU .50, 101 recalls", np.array([0.5])),
        ("ap75", "AP75", "IoU .75, 101 recalls", np.array([0.75])),
        ("ap-small", "APs", "objects up to 32x32 pixels", None),
        ("ap-medium", "APm", "objects from 32x32 to 96x96 pixels", None),
        ("ap-large", "APl", "objects from 96x96 pixels", None),
        ("ar1", "AR1", "1 detection for each image and class", None),
        ("ar10", "AR10", "10 detections for each image and class", None),
        ("ar100", "AR100", "100 detections for each image and class", None),
        ("ar-small", "ARs", "objects up to 32x32 pixels", None),
        ("ar-medium", "ARm", "objects from 32x32 to 96x96 pixels", None),
        ("ar-large", "ARl", "objects from 96x96 pixels", None),
    )
    return [
        _coco(f"mask-{name}" if masks else name, variant, words, overlaps, masks=masks)
        for name, variant, words, overlaps in every
    ]


METRICS = {
    metric.name: metric
    for metric in (
        *_coco_family(masks=False),
        _voc("voc-ap50", "area", "area under the curve, as VOC 2010-2012"),
        _voc("voc-ap50-11", "11-point", "mean at 11 recalls, as VOC 2007"),
        *_coco_family(masks=True),
        _cityscapes("cityscapes-ap", "AP", "IoU above .50:.05:.95, from 100 pixels", CITYSCAPES_OVERLAPS),
        _cityscapes("cityscapes-ap50", "AP50", "IoU above .50, from 100 pixels", np.array([0.5])),
    )
}

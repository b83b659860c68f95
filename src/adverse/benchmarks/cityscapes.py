"""Cityscapes' average precision of masks, by its own definition (evalInstanceLevelSemanticLabeling).

It differs from COCO's: an overlap must be above a threshold, not at least equal to it; every prediction above
it competes for a true object, and all but the surest are false positives; true objects below 100 pixels,
groups of objects and void pixels are ignored, and so is a prediction with more than the threshold's share of
its pixels on them; there is no limit of predictions; the area under the curve is summed step by step between
neighbouring scores, from a point of precision 1 and recall 0.

True objects that are ignored are taken together, class by class and image by image: they are the group.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import hotcoco.mask
import numpy as np
from numpy.typing import NDArray

from adverse.benchmarks.matching import DetectedObjects, Rle, TrueObjects, check
from adverse.errors import DataError

Floats = NDArray[np.float64]
OVERLAPS = np.arange(0.5, 1.0, 0.05)
LEAST_PX = 100
"""True objects below this are ignored."""


@dataclass(frozen=True, eq=False)
class Examples:
    """What one class comes to at one overlap: matched objects and false positives with their scores.

    Sorted by score; `missed` (images,) are the true objects that nothing matched.
    """

    true: NDArray[np.bool_]
    scores: Floats
    image: NDArray[np.int64]
    missed: Floats

    def average_precision(self, weights: Floats) -> float:
        """Return the average precision with images taken as often as their weights (images,) say."""
        weight = weights[self.image]
        used = weight > 0
        hits = np.where(self.true, weight, 0.0)[used]
        below, below_true = (np.concatenate([[0.0], np.cumsum(some)]) for some in (weight[used], hits))
        scores = self.scores[used]
        starts = np.flatnonzero(np.diff(scores, prepend=np.nan) != 0)
        found = below_true[-1] - below_true[starts]
        lost = below_true[starts] + float(self.missed @ weights)
        precision = np.append(found / (below[-1] - below[starts]), 1.0)
        recall = np.append(found / (found + lost), 0.0)
        around = np.concatenate([recall[:1], recall, [0.0]])
        return float(precision @ (around[:-2] - around[2:]) / 2)


@dataclass(frozen=True, eq=False)
class CityscapesMatches:
    """All examples by class and overlap; in which images each class (class, image) is true, or predicted."""

    examples: Sequence[Sequence[Examples]]
    has_truth: NDArray[np.bool_]
    has_predictions: NDArray[np.bool_]

    def by_class(self, weights: Floats) -> Floats:
        """Return (class, overlap): 0 without any prediction, NaN without truth."""
        seen = weights > 0
        values = np.full((len(self.examples), len(self.examples[0]) if self.examples else 0), np.nan)
        for number, by_overlap in enumerate(self.examples):
            if not (self.has_truth[number] & seen).any():
                continue
            predicted = (self.has_predictions[number] & seen).any()
            values[number] = [one.average_precision(weights) if predicted else 0.0 for one in by_overlap]
        return values

    def under(self, weights: Floats) -> Floats:
        """Return the mean over classes and overlaps (B,) for weights (B, images); NaN without truth."""
        values = (self.by_class(row) for row in weights)
        return np.array([_mean(some) for some in values])


def cityscapes_matches(
    truth: TrueObjects,
    detections: DetectedObjects,
    images: int,
    classes: int,
    overlaps: Floats = OVERLAPS,
) -> CityscapesMatches:
    """Match masks by Cityscapes' rules at the given overlaps."""
    check(truth, detections, images, classes)
    if truth.masks is None or detections.masks is None:
        raise DataError("Cityscapes' AP is of masks", fix="Give masks for truth and detections.")
    places = [_Place(truth, detections, label, images) for label in range(classes)]
    return CityscapesMatches(
        [[place.examples(overlap) for overlap in overlaps.tolist()] for place in places],
        np.array([place.has_truth for place in places]).reshape(classes, images),
        np.array([place.has_predictions for place in places]).reshape(classes, images),
    )


def cityscapes_ap(matches: CityscapesMatches) -> tuple[float, list[float]]:
    """Return the average precision of all classes, and of each; NaN where there is no truth."""
    values = matches.by_class(np.ones(matches.has_truth.shape[1]))
    return _mean(values), [float(row.mean()) for row in values]


@dataclass(frozen=True, eq=False)
class _Overlap:
    """The predictions of one class in one image: IoU (D,T) with objects, large ones first, and the rest."""

    image: int
    scores: Floats
    iou: Floats
    large: int
    ignored: Floats
    """The share of each prediction (D,) on what is ignored."""


class _Place:
    """One class: overlaps of its predictions and true objects, image by image."""

    def __init__(self, truth: TrueObjects, detections: DetectedObjects, label: int, images: int) -> None:
        self.images = images
        self.has_truth = np.zeros(images, np.bool_)
        self.has_predictions = np.zeros(images, np.bool_)
        self.overlaps = list(self._measured(truth, detections, label))

    def _measured(self, truth: TrueObjects, detections: DetectedObjects, label: int) -> Iterator[_Overlap]:
        mine, found = np.flatnonzero(truth.labels == label), np.flatnonzero(detections.labels == label)
        for image in np.union1d(truth.images[mine], detections.images[found]).tolist():
            true, said = mine[truth.images[mine] == image], found[detections.images[found] == image]
            predicted = _masks(detections.masks, said)
            area = _areas(predicted)
            solid = area > 0
            predicted = [mask for mask, real in zip(predicted, solid.tolist(), strict=True) if real]
            area, scores = area[solid], detections.scores[said][solid]
            objects = _masks(truth.masks, true[~truth.ignore[true]])
            sizes = _areas(objects)
            order = np.argsort(sizes < LEAST_PX, kind="stable")
            objects, sizes = [objects[at] for at in order.tolist()], sizes[order]
            large = int((sizes >= LEAST_PX).sum())
            self.has_truth[image], self.has_predictions[image] = large > 0, len(predicted) > 0
            shared = _shared(predicted, area, objects)
            group = _masks(truth.masks, true[truth.ignore[true]])
            group_size, in_group = _areas(group).sum(), _shared(predicted, area, group).sum(axis=1)
            void = None if truth.voids is None else truth.voids[image]
            in_void = _shared(predicted, area, [] if void is None else [void]).sum(axis=1)
            # A group below the least size counts twice, as it does there.
            ignored = in_void + in_group * (2 if group_size < LEAST_PX else 1) + shared[:, large:].sum(axis=1)
            if group:
                shared = np.hstack([shared, in_group[:, None]])
                sizes = np.append(sizes, group_size)
            union = area[:, None] + sizes[None, :] - shared
            iou = np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)
            share = np.divide(ignored, area, out=np.zeros_like(area), where=area > 0)
            yield _Overlap(image, scores, iou, large, share)

    def examples(self, overlap: float) -> Examples:
        """Return what the class comes to at an overlap."""
        true: list[bool] = []
        scores: list[float] = []
        image: list[int] = []
        missed = np.zeros(self.images)
        for here in self.overlaps:
            above = here.iou > overlap
            for target in range(here.large):
                matched = sorted(here.scores[above[:, target]].tolist(), reverse=True)
                missed[here.image] += not matched
                true += [True, *[False] * (len(matched) - 1)] if matched else []
                scores += matched
            wrong = here.scores[~above.any(axis=1) & (here.ignored <= overlap)].tolist()
            true += [False] * len(wrong)
            scores += wrong
            image += [here.image] * (len(scores) - len(image))
        order = np.argsort(scores, kind="stable")
        return Examples(
            np.array(true, np.bool_)[order],
            np.array(scores, np.float64)[order],
            np.array(image, np.int64)[order],
            missed,
        )


def _masks(masks: Sequence[Rle] | None, rows: NDArray[np.int64]) -> list[Rle]:
    return [] if masks is None else [masks[row] for row in rows.tolist()]


def _areas(masks: Sequence[Rle]) -> Floats:
    return np.asarray(hotcoco.mask.area([dict(mask) for mask in masks]), np.float64).reshape(-1)


def _shared(predicted: Sequence[Rle], area: Floats, others: Sequence[Rle]) -> Floats:
    """Return the pixels (D,T) that masks have in common: of a crowd, the overlap is their share."""
    if not predicted or not others:
        return np.zeros((len(predicted), len(others)))
    share = hotcoco.mask.iou(
        [dict(mask) for mask in predicted], [dict(mask) for mask in others], [True] * len(others)
    )
    return np.asarray(np.rint(np.asarray(share, np.float64) * area[:, None]))


def _mean(values: Floats) -> float:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if defined.size else float("nan")

"""P, mPC and rPC of segmenters and classifiers: the same table as for detectors, by other metrics."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adverse.benchmarks import classification, segmentation
from adverse.benchmarks.intervals import LeftOut, Without, without_groups
from adverse.benchmarks.metrics import MetricName
from adverse.benchmarks.mpc import Cell, Robustness, per_class, under_corruption
from adverse.errors import StudyError, suggestion
from adverse.store.read import Store
from adverse.store.tables import FAULT, PixelCounts, RankedClasses
from adverse.types import Task

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ImageScores:
    """The scores of a SUT under one setting on the images that count, image by image.

    `scores` gives the metric of the images by weight: weights (G, images) -> (G,); `classes` the same number
    for each class with all images, NaN where there is no truth.
    """

    scores: Callable[[Array], Array]
    classes: Mapping[str, float]
    faults: int


@dataclass(frozen=True)
class TaskMetric(MetricName):
    """A metric of segmenters or classifiers."""

    task: Task
    of_counts: Callable[[NDArray[Any]], Array] | None = None
    best: int = 0


TASK_METRICS = {
    metric.name: metric
    for metric in (
        TaskMetric("miou", "mIoU", "mean IoU over the pixel classes", "segmentation", segmentation.mean_iou),
        TaskMetric(
            "pixel-accuracy",
            "pixel acc.",
            "share of the judged pixels that are right",
            "segmentation",
            segmentation.pixel_accuracy,
        ),
        TaskMetric("top1", "top-1", "top-1 accuracy", "classification", best=1),
        TaskMetric("top5", "top-5", "top-5 accuracy", "classification", best=5),
    )
}
DEFAULTS: Mapping[Task, str] = {"detection": "ap", "segmentation": "miou", "classification": "top1"}
MASK_DEFAULT = "mask-ap"
"""For detectors whose runs have masks."""


def task_metric(name: str, task: Task) -> TaskMetric:
    """Return a metric of a task by its name."""
    names = [metric.name for metric in TASK_METRICS.values() if metric.task == task]
    if name not in names:
        raise StudyError(f"{task} has no metric {name!r}", where="--metric", fix=suggestion(name, names))
    return TASK_METRICS[name]


def settings_scores(
    store: Store, sut: str, metric: TaskMetric, counted: NDArray[np.bool_]
) -> dict[str, ImageScores]:
    """Return the scores of a SUT under every setting, on the frames that count."""
    return {
        name: image_scores(store, answers, metric, counted)
        for name, answers in answers_of(store, sut).items()
    }


def answers_of(store: Store, sut: str) -> Mapping[str, PixelCounts | RankedClasses]:
    """Return the answers of a segmenter or classifier, by setting; refuse those without any truth."""
    shown = np.array([name is not None for name in store.categories_shown], np.bool_)
    if store.task == "classification" and not shown[store.frames.test].all():
        raise StudyError(
            "accuracy needs a category for every frame",
            where=str(store.folder.path),
            got=f"{int((~shown & store.frames.test).sum())} test frames have none",
            fix="This run compares answers with each other: adverse requirements check shows the results.",
        )
    return store.pixel_counts(sut) if store.task == "segmentation" else store.ranked(sut)


def image_scores(
    store: Store, answers: PixelCounts | RankedClasses, metric: TaskMetric, counted: NDArray[np.bool_]
) -> ImageScores:
    """Return the scores of a SUT under one setting, on the frames that count."""
    chosen = counted[answers.frame]
    faults = int((answers.status[chosen] == FAULT).sum())
    if isinstance(answers, PixelCounts):
        return _segmented(answers.counts[chosen], store.pixel_classes, metric, faults)
    rows = np.flatnonzero(chosen).tolist()
    truth = [store.categories_shown[answers.frame[row]] or "" for row in rows]
    right = classification.hits([answers.best[row] for row in rows], truth, metric.best)
    return _classified(right.astype(np.float64), truth, faults)


def numbers(
    scores: Mapping[str, ImageScores],
    cells: Mapping[Cell, str],
    baseline: str,
    metric: TaskMetric,
    left_out: LeftOut | None,
    images: int,
    *,
    partial: bool,
    trained_on: Collection[str] = (),
) -> tuple[Robustness, dict[str, Robustness], Without | None]:
    """Return P, mPC and rPC as a whole, by class, and without each group of logs, if there are groups."""
    everything = np.ones((1, images))
    whole = under_corruption(
        float(scores[baseline].scores(everything)[0]),
        {cell: float(scores[setting].scores(everything)[0]) for cell, setting in cells.items()},
        metric=metric.short,
        partial=partial,
        trained_on=trained_on,
    )
    classes = per_class(
        scores[baseline].classes,
        {cell: scores[setting].classes for cell, setting in cells.items()},
        metric=metric.short,
        partial=partial,
        trained_on=trained_on,
    )
    if left_out is None:
        return whole, classes, None
    without = {cell: scores[setting].scores(left_out.weights) for cell, setting in cells.items()}
    plain = scores[baseline].scores(left_out.weights)
    return whole, classes, without_groups(whole, plain, without, left_out.logs)


def _segmented(counts: NDArray[Any], classes: Sequence[str], metric: TaskMetric, faults: int) -> ImageScores:
    flat = counts.reshape(len(counts), -1).astype(np.float64)

    def scores(weights: Array) -> Array:
        summed = (weights @ flat).reshape(len(weights), *counts.shape[1:])
        return metric.of_counts(summed) if metric.of_counts else np.full(len(weights), np.nan)

    total = counts.sum(axis=0)
    true = total.sum(axis=-1)
    each = segmentation.iou(total).tolist()
    named = {
        name: value if true[number] else float("nan")
        for number, (name, value) in enumerate(zip(classes, each, strict=True))
    }
    return ImageScores(scores, named, faults)


def _classified(right: Array, truth: list[str], faults: int) -> ImageScores:
    def scores(weights: Array) -> Array:
        return np.asarray((weights @ right) / weights.sum(axis=1), np.float64)

    names = np.array(truth)
    return ImageScores(
        scores, {name: float(right[names == name].mean()) for name in sorted(set(truth))}, faults
    )

"""What the three tasks measure: how right answers are, and how alike two answers to one frame are.

A measure is kept row by row, so that it can be computed for any weighting of the rows. A row is one image as
it is, or one changed version of it. A batch of images is a weight for each row, so thousands of batches are a
product of matrices; nothing is matched or counted twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import cv2
import numpy as np
from numpy.typing import NDArray

from adverse.benchmarks.ap import OVERLAPS, MatchedDetections, matched_coco
from adverse.benchmarks.classification import hits
from adverse.benchmarks.matching import DetectedObjects, TrueObjects
from adverse.benchmarks.segmentation import iou_parts
from adverse.levels.match import FALSE, HIT, above, as_truth, false_scores, match, match_detections
from adverse.levels.outcomes import standardize
from adverse.store.read import Store
from adverse.store.tables import FAULT, OK, PixelCounts

Array = NDArray[np.float64]


class MeasureTally(Protocol):
    """A measure from 0 to 1 of weighted rows."""

    @property
    def size(self) -> Array:
        """How much of the measure each row (R,) is: the objects of an image; 0 where it says nothing."""

    def under(self, weights: Array) -> Array:
        """Return the measure (B,) for weights (B, R); NaN where it is not defined."""


@dataclass(frozen=True, eq=False)
class Ratio:
    """A ratio of sums: accuracy, recall, F1, share of equal pixels.

    >>> Ratio(np.array([1.0, 0.0]), np.array([1.0, 1.0])).under(np.array([[1.0, 1.0], [3.0, 1.0]])).tolist()
    [0.5, 0.75]
    """

    part: Array
    whole: Array

    @property
    def size(self) -> Array:
        """What each row adds to the whole."""
        return self.whole

    def under(self, weights: Array) -> Array:
        """Return the ratio of the weighted sums."""
        whole = weights @ self.whole
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(whole > 0, weights @ self.part / whole, np.nan)


@dataclass(frozen=True, eq=False)
class MeanRatio:
    """The mean of the ratios of several classes, (R, C) each: mean IoU. A class without one is left out."""

    part: Array
    whole: Array

    @property
    def size(self) -> Array:
        """What each row adds to the classes, all of which count the same."""
        return _over_classes(self.whole)

    def under(self, weights: Array) -> Array:
        """Return the mean ratio."""
        whole = weights @ self.whole
        there = whole > 0
        with np.errstate(invalid="ignore", divide="ignore"):
            ratios = np.where(there, weights @ self.part / whole, 0.0)
            return np.where(there.any(axis=1), ratios.sum(axis=1) / there.sum(axis=1), np.nan)


@dataclass(frozen=True, eq=False)
class AveragePrecision:
    """Average precision of detections that were matched once."""

    matched: MatchedDetections

    @property
    def size(self) -> Array:
        """What each row adds to the true objects of the classes; false positives alone prove nothing."""
        return _over_classes(np.asarray(self.matched.positives, np.float64).T)

    def under(self, weights: Array) -> Array:
        """Return the mean average precision."""
        return self.matched.under(np.ascontiguousarray(weights))


def _over_classes(whole: Array) -> Array:
    """Return the mean share (R,) that each row has in the classes (R, C) that there are."""
    total = whole.sum(axis=0)
    shares: Array = (whole[:, total > 0] / total[total > 0]).sum(axis=1)
    return shares


@dataclass(frozen=True, eq=False)
class Side:
    """One side of a requirement: its tally, and which image (an index) each row belongs to."""

    tally: MeasureTally
    image: NDArray[np.int64]

    @property
    def informs(self) -> NDArray[np.bool_]:
        """Which rows (R,) can change the measure at all: an image without objects says nothing of recall."""
        return np.asarray(self.tally.size > 0, np.bool_)


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a requirement is judged on: what is required, what is measured, and the log of each image.

    `log` (N,) indexes independent logs; where every image is taken by itself it is `arange(N)`.
    """

    required: Side
    measured: Side
    log: NDArray[np.int64]

    @property
    def images(self) -> int:
        """How many images inform the side that fewer inform."""
        return min(len(np.unique(side.image[side.informs])) for side in (self.required, self.measured))

    @property
    def logs(self) -> int:
        """How many logs do."""
        return min(
            len(np.unique(self.log[side.image[side.informs]])) for side in (self.required, self.measured)
        )


Status = tuple[NDArray[np.int64], NDArray[np.int8]]


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a tally: frame `frame[r]` (an index into the store's frames) under `settings[setting[r]]`."""

    frame: NDArray[np.int64]
    setting: NDArray[np.int64]
    settings: tuple[str, ...]


class TaskAnswers(Protocol):
    """The answers of one SUT under all settings of a run."""

    def status(self, setting: str) -> Status:
        """Return the frames that were planned under a setting, and how each ended."""

    def correct(self, measure: str, rows: Rows) -> MeasureTally:
        """Return how right the answers are."""

    def alike(self, rows: Rows) -> MeasureTally:
        """Return how alike the answers are to those on the frames as they are."""


class DetectorAnswers:
    """A detector. `threshold` is the score from which on a detection counts, unless its AP is asked for."""

    def __init__(self, store: Store, sut: str, *, sensitivity: float | None, score: float | None) -> None:
        self.store = store
        self.answers = store.answers(sut)
        self.baseline = store.run.baseline.id
        self.source = "given"
        self.threshold = np.float32(score if score is not None else -np.inf)
        if score is None and sensitivity is not None:
            self.threshold, self.source = self._standardized(sensitivity)
        self._counting = {name: above(answers, self.threshold) for name, answers in self.answers.items()}

    def status(self, setting: str) -> Status:
        """Return the frames that were planned under a setting, and how each ended."""
        return self.answers[setting].frame, self.answers[setting].status

    def correct(self, measure: str, rows: Rows) -> MeasureTally:
        """Return recall, F1 or average precision."""
        if measure in ("ap", "ap50"):
            return AveragePrecision(self._matched(rows, OVERLAPS if measure == "ap" else np.array([0.5])))
        frames = len(self.store.frames.ids)
        truth = self.store.truth
        real = np.bincount(truth.frame[~truth.ignore], minlength=frames).astype(np.float64)
        hits, false = np.zeros(len(rows.frame)), np.zeros(len(rows.frame))
        for number, setting in enumerate(rows.settings):
            mine = rows.setting == number
            judged = match_detections(self._counting[setting], truth)
            frame = judged.answers.frame[judged.row]
            for outcome, counts in ((HIT, hits), (FALSE, false)):
                counts[mine] = np.bincount(frame[judged.outcome == outcome], minlength=frames)[
                    rows.frame[mine]
                ]
        if measure == "recall":
            return Ratio(hits, real[rows.frame])
        return Ratio(2 * hits, real[rows.frame] + hits + false)

    def alike(self, rows: Rows) -> MeasureTally:
        """Return the F1 of the boxes that match those found on the frame as it is."""
        frames = len(self.store.frames.ids)
        plain = self._counting[self.baseline]
        reference = as_truth(plain)
        before = np.bincount(reference.frame, minlength=frames).astype(np.float64)
        same, after = np.zeros(len(rows.frame)), np.zeros(len(rows.frame))
        for number, setting in enumerate(rows.settings):
            mine = rows.setting == number
            answers = self._counting[setting]
            frame = np.repeat(answers.frame, np.diff(answers.offsets))
            hit = match(answers, reference).outcome == HIT
            same[mine] = np.bincount(frame[hit], minlength=frames)[rows.frame[mine]]
            after[mine] = np.bincount(frame, minlength=frames)[rows.frame[mine]]
        return Ratio(2 * same, before[rows.frame] + after)

    def _standardized(self, rate: float) -> tuple[np.float32, str]:
        """Return the threshold that costs so many false positives per un-mutated validation image."""
        judged = match_detections(self.answers[self.baseline], self.store.truth)
        test = self.store.frames.test
        source = "test" if test.all() else "validation"
        ran = np.zeros(len(test), np.bool_)
        ran[judged.answers.frame[np.isin(judged.answers.status, (OK, FAULT))]] = True
        counted = (test if source == "test" else ~test) & ran
        standard = standardize(false_scores(judged, counted), int(counted.sum()), np.array([rate]))
        return standard.thresholds[0], source

    def _matched(self, rows: Rows, overlaps: NDArray[np.float64]) -> Any:
        """Match all rows at once, each as an image of its own."""
        truth, classes = self.store.truth, len(self.store.targets)
        of_row, objects = _members(truth.frame, rows.frame)
        images, boxes, labels, scores = [], [], [], []
        for number, setting in enumerate(rows.settings):
            answers = self.answers[setting]
            mine = np.flatnonzero(rows.setting == number)
            row, place = _members(np.repeat(answers.frame, np.diff(answers.offsets)), rows.frame[mine])
            images.append(mine[row])
            boxes.append(answers.boxes[place].astype(np.float64))
            labels.append(answers.labels[place])
            scores.append(answers.scores[place].astype(np.float64))
        detections = DetectedObjects(
            np.concatenate(images), np.concatenate(boxes), np.concatenate(labels), np.concatenate(scores)
        )
        true = TrueObjects(
            of_row,
            truth.boxes[objects],
            truth.labels[objects],
            truth.area[objects],
            truth.ignore[objects],
            truth.crowd[objects] & truth.ignore[objects],
        )
        return matched_coco(true, detections.ordered(), len(rows.frame), classes, overlaps)


class ClassifierAnswers:
    """A classifier; an answer that did not come is wrong, and like no other."""

    def __init__(self, store: Store, sut: str) -> None:
        self.store = store
        self.ranked = store.ranked(sut)
        self.baseline = store.run.baseline.id

    def status(self, setting: str) -> Status:
        """Return the frames that were planned under a setting, and how each ended."""
        return self.ranked[setting].frame, self.ranked[setting].status

    def correct(self, measure: str, rows: Rows) -> MeasureTally:
        """Return top-1 or top-5 accuracy."""
        best = [self._best[rows.settings[s]].get(f, []) for f, s in _pairs(rows)]
        truth = [self.store.categories_shown[f] or "" for f in rows.frame.tolist()]
        right = hits(best, truth, {"top1": 1, "top5": 5}[measure])
        return Ratio(right.astype(np.float64), np.ones(len(best)))

    def alike(self, rows: Rows) -> MeasureTally:
        """Return the share of equal first answers."""
        plain = self._best[self.baseline]
        same = [
            bool(plain.get(f)) and plain[f][:1] == self._best[rows.settings[s]].get(f, [])[:1]
            for f, s in _pairs(rows)
        ]
        return Ratio(np.array(same, np.float64), np.ones(len(same)))

    @cached_property
    def _best(self) -> dict[str, dict[int, list[str]]]:
        return {
            setting: dict(zip(ranking.frame.tolist(), ranking.best, strict=True))
            for setting, ranking in self.ranked.items()
        }


class SegmenterAnswers:
    """A segmenter; where there is no answer no pixel is right."""

    def __init__(self, store: Store, sut: str) -> None:
        self.store = store
        self.sut = sut
        self.statuses = store.statuses(sut)
        self.baseline = store.run.baseline.id

    def status(self, setting: str) -> Status:
        """Return the frames that were planned under a setting, and how each ended."""
        return self.statuses[setting]

    @cached_property
    def counts(self) -> dict[str, PixelCounts]:
        """The pixels by true and predicted class, by setting."""
        return self.store.pixel_counts(self.sut)

    def correct(self, measure: str, rows: Rows) -> MeasureTally:
        """Return mean IoU or pixel accuracy."""
        classes = len(self.store.pixel_classes)
        counts = np.zeros((len(rows.frame), classes, classes + 1), np.int64)
        for number, setting in enumerate(rows.settings):
            mine = rows.setting == number
            stored = self.counts[setting]
            counts[mine] = stored.counts[_places(stored.frame, rows.frame[mine])]
        right, union = iou_parts(counts)
        if measure == "mean_iou":
            return MeanRatio(right, union)
        return Ratio(right.sum(axis=1), counts.sum(axis=(1, 2)).astype(np.float64))

    def alike(self, rows: Rows) -> MeasureTally:
        """Return the share of pixels that are given the same class as on the frame as it is."""
        same, whole = np.zeros(len(rows.frame)), np.zeros(len(rows.frame))
        order = np.argsort(rows.frame, kind="stable")
        frame, plain = -1, None
        for row in order.tolist():
            if rows.frame[row] != frame:
                frame = int(rows.frame[row])
                plain = self._labels(self.baseline, frame)
            other = self._labels(rows.settings[int(rows.setting[row])], frame)
            present = plain if plain is not None else other
            whole[row] = 0 if present is None else present.size
            same[row] = 0 if plain is None or other is None else np.count_nonzero(plain == other)
        return Ratio(same, whole)

    def _labels(self, setting: str, frame: int) -> NDArray[Any] | None:
        data = self._maps[setting].get(self.store.frames.ids[frame])
        return None if data is None else cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)

    @cached_property
    def _maps(self) -> Mapping[str, Mapping[str, bytes | None]]:
        return self.store.label_maps(self.sut)


def task_answers(store: Store, sut: str, *, sensitivity: float | None, score: float | None) -> TaskAnswers:
    """Return the answers of a SUT, by the run's task."""
    if store.task == "segmentation":
        return SegmenterAnswers(store, sut)
    if store.task == "classification":
        return ClassifierAnswers(store, sut)
    return DetectorAnswers(store, sut, sensitivity=sensitivity, score=score)


def _members(
    group: NDArray[np.int64], wanted: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return, for each wanted group in turn, its number among the wanted and the places of its members.

    >>> _members(np.array([0, 0, 2]), np.array([2, 0, 0]))
    (array([0, 1, 1, 2, 2]), array([2, 0, 1, 0, 1]))
    """
    order = np.argsort(group, kind="stable")
    first = np.searchsorted(group[order], wanted, side="left")
    count = np.searchsorted(group[order], wanted, side="right") - first
    number = np.repeat(np.arange(len(wanted)), count)
    inside = np.arange(len(number)) - np.repeat(np.cumsum(count) - count, count)
    return number, order[first[number] + inside]


def _places(frames: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    order = np.argsort(frames, kind="stable")
    return order[np.searchsorted(frames[order], wanted)]


def _pairs(rows: Rows) -> list[tuple[int, int]]:
    return list(zip(rows.frame.tolist(), rows.setting.tolist(), strict=True))

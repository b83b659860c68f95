"""What an answer is worth, in percent, and how far a mutation lowers it, in percentage points.

For detectors: average precision or recall on one image. For segmenters: the share of judged pixels that are
right. `compat` reproduces the scorer behind the numbers that Woodlief, Elbaum and Sullivan (2022) published:
its maps held trainIds, and it left out every pixel whose trainId is, read as a labelId, one of the evaluation
classes. So traffic sign (7), vegetation (8), person (11), rider (12), car (13) and motorcycle (17) never
counted: a car that a system does not see costs nothing there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.benchmarks.ap import Variant, coco_family
from adverse.benchmarks.matching import DetectedObjects, TrueObjects
from adverse.types import Detections, Truth

EVALUATION = {
    "road": 7,
    "sidewalk": 8,
    "building": 11,
    "wall": 12,
    "fence": 13,
    "pole": 17,
    "traffic light": 19,
    "traffic sign": 20,
    "vegetation": 21,
    "terrain": 22,
    "sky": 23,
    "person": 24,
    "rider": 25,
    "car": 26,
    "truck": 27,
    "bus": 28,
    "train": 31,
    "motorcycle": 32,
    "bicycle": 33,
}
"""The labelId of each evaluation class of Cityscapes, in the order of their trainIds."""
COMPAT_IGNORED = frozenset(
    name for train_id, name in enumerate(EVALUATION) if train_id in EVALUATION.values()
)
"""The classes that the published scorer left out."""
VOID, NOTHING = 255, 254
"""In judged maps: a pixel that does not count; an answer that is no judged class."""
Bins = Mapping[str, float]
"""Percentage points from which on a drop is an inconsistency of each kind, the mildest first."""
BINS: Bins = {"moderate": 1.0, "significant": 5.0, "extreme": 10.0}
"""The paper's."""
ALL = "all"
"""In tables: all mutations or bins together."""

Scorer = Literal["pixels", "compat", "ap", "recall"]


class Score(NamedTuple):
    """So much right of so much judged; pixels, or for detectors a figure in percent of 100."""

    right: float
    judged: float

    @property
    def percent(self) -> float | None:
        """Right over judged in percent; None where nothing is judged."""
        return 100.0 * self.right / self.judged if self.judged else None


@dataclass(frozen=True, eq=False)
class Judge:
    """Turns label maps of the data set and of one SUT into a common numbering, and counts.

    `truth` (65536,) and `answer` (65536,) map labels to judged classes, VOID or NOTHING.
    """

    truth: NDArray[np.uint8]
    answer: NDArray[np.uint8]

    def score(
        self, true: NDArray[Any], answer: NDArray[Any], ignored: NDArray[np.bool_] | None = None
    ) -> Score:
        """Return right and judged pixels of an answer (H,W) to a true map (H,W), those ignored left out.

        >>> judge = judge_of({7: "road", 26: "car"}, {0: "car", 1: "road"})
        >>> judge.score(np.array([[7, 26, 0]]), np.array([[1, 1, 1]]))
        Score(right=1, judged=2)
        """
        wanted = self.truth[true]
        if ignored is not None:
            wanted[ignored] = VOID
        judged = int(np.count_nonzero(wanted != VOID))
        return Score(int(np.count_nonzero(wanted == self.answer[answer])), judged)


def judge_of(
    pixel_classes: Mapping[int, str], names: Mapping[int, str], *, ignored: Iterable[str] = ()
) -> Judge:
    """Return the judge for a data set's classes and a SUT's: label -> the data set's name of it."""
    left_out = frozenset(ignored)
    judged = [name for name in dict.fromkeys(pixel_classes.values()) if name not in left_out]
    number = {name: place for place, name in enumerate(judged)}
    truth = np.full(2**16, VOID, np.uint8)
    answer = np.full(2**16, NOTHING, np.uint8)
    for label, name in pixel_classes.items():
        truth[label] = number.get(name, VOID)
    for label, name in names.items():
        answer[label] = number.get(name, NOTHING)
    return Judge(truth, answer)


def drop_of(before: Score, after: Score) -> float | None:
    """Return by how many percentage points a score fell; None where either is undefined.

    >>> drop_of(Score(95, 100), Score(90, 100))
    5.0
    """
    was, now = before.percent, after.percent
    return None if was is None or now is None else was - now


def bin_of(drop: float | None, bins: Bins = BINS) -> str | None:
    """Return the kind of inconsistency that a drop is; None for what is none.

    >>> [bin_of(drop) for drop in (0.99, 1.0, 5.0, 10.0, 100.0, -3.0, None)]
    [None, 'moderate', 'significant', 'extreme', 'extreme', None, None]
    """
    return None if drop is None else next((name for name in [*bins][::-1] if drop >= bins[name]), None)


def least_drop(bins: Bins) -> float:
    """Return the percentage points from which on a drop is an inconsistency at all."""
    return min(bins.values())


def worst_drop(bins: Bins) -> float:
    """Return the percentage points from which on a drop is of the worst kind."""
    return max(bins.values())


def bin_range(name: str, bins: Bins) -> str:
    """Return from where to where a kind goes.

    >>> [bin_range(name, BINS) for name in BINS]
    ['[1, 5)', '[5, 10)', '[10, 100]']
    """
    ends = dict(zip(bins, [*list(bins.values())[1:], None], strict=True))
    return f"[{bins[name]:g}, 100]" if ends[name] is None else f"[{bins[name]:g}, {ends[name]:g})"


OVERLAP = 0.5
HUNDRED = 100.0


def score_boxes(
    truth: Truth,
    detections: Detections,
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
    counts_as = np.ones(len(detections), np.bool_) if by == "ap" else detections.scores >= threshold
    true = TrueObjects(
        np.zeros(len(truth.boxes), np.int64),
        truth.boxes,
        truth.labels,
        _area(truth.boxes),
        truth.ignore,
        np.zeros(len(truth.boxes), np.bool_),
    )
    answer = DetectedObjects(
        np.zeros(int(counts_as.sum()), np.int64),
        detections.boxes[counts_as].astype(np.float64),
        np.asarray(labels, np.int64)[counts_as],
        detections.scores[counts_as].astype(np.float64),
    ).ordered()
    family = coco_family(true, answer, images=1, classes=classes)
    value = family.value("AP50") if by == "ap" else family.at(Variant("recall", overlap=OVERLAP))
    return Score(0.0, 0.0) if np.isnan(value) else Score(HUNDRED * float(value), HUNDRED)


def _area(boxes: NDArray[np.float64]) -> NDArray[np.float64]:
    sides = boxes[:, 2:] - boxes[:, :2]
    area: NDArray[np.float64] = sides[:, 0] * sides[:, 1]
    return area

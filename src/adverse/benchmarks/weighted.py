"""Average precision of weighted images: detections are matched once, then averaged under many weightings.

hotcoco gives a number for one set of images. An interval needs many sets, so here matching and averaging are
taken apart. With every weight 1 the result is that of `ap` and `voc`, which the tests hold it to.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adverse.benchmarks.boxes import FoundObjects, TrueObjects
from adverse.benchmarks.voc import Average, voc_outcomes
from adverse.benchmarks.weighted_kernels import coco_match, weighted_precision

OVERLAPS = np.linspace(0.5, 0.95, 10)
RECALLS = np.linspace(0, 1, 101)
MOST = 100
ROUNDING = 1e-12
"""Three times a tenth is not three tenths in floats; VOC's eleven recalls are met within this."""


@dataclass(frozen=True, eq=False)
class Matched:
    """Detections of one setting, matched: all that average precision needs, image by image.

    `outcome` (overlap, detection) is FALSE, HIT or IGNORED; the detections of class c lie at
    starts[c]:starts[c+1], the surest first. `positives` (class, image) counts the true objects.
    """

    outcome: NDArray[np.int8]
    image: NDArray[np.int64]
    starts: NDArray[np.int64]
    positives: NDArray[np.float64]
    recalls: NDArray[np.float64]

    def under(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the mean average precision (B,) for weights (B, images); NaN where no truth has weight."""
        values: NDArray[np.float64] = weighted_precision(
            self.outcome, self.image, self.starts, self.positives @ weights.T, weights, self.recalls
        )
        return values


def matched_coco(
    truth: TrueObjects,
    found: FoundObjects,
    images: int,
    classes: int,
    overlaps: NDArray[np.float64] = OVERLAPS,
) -> Matched:
    """Match boxes by COCO's rules at the given overlaps."""
    order = np.lexsort((-found.scores, found.images, found.labels))
    place = (found.labels * images + found.images)[order]
    groups, starts = np.unique(place, return_index=True)
    home = truth.labels * images + truth.images
    known = np.lexsort((truth.ignore, home))
    outcome = coco_match(
        found.boxes[order],
        np.asarray(np.searchsorted(home[known], groups, side="left"), np.int64),
        np.asarray(np.searchsorted(home[known], groups, side="right"), np.int64),
        np.append(starts, len(order)),
        truth.boxes[known],
        truth.ignore[known],
        truth.crowd[known],
        overlaps,
        MOST,
    )
    surest = np.lexsort((-found.scores[order], found.labels[order]))
    return _matched(truth, found, order[surest], outcome[:, surest], images, classes, RECALLS)


def matched_voc(
    truth: TrueObjects, found: FoundObjects, images: int, classes: int, average: Average
) -> Matched:
    """Match boxes by VOC's rules."""
    order = np.lexsort((-found.scores, found.labels))
    outcome = voc_outcomes(truth, found, images, order)[None, :]
    recalls = np.zeros(0) if average == "area" else np.linspace(0, 1, 11) - ROUNDING
    return _matched(truth, found, order, outcome, images, classes, recalls)


def _matched(
    truth: TrueObjects,
    found: FoundObjects,
    order: NDArray[np.int64],
    outcome: NDArray[np.int8],
    images: int,
    classes: int,
    recalls: NDArray[np.float64],
) -> Matched:
    starts = np.searchsorted(found.labels[order], np.arange(classes + 1))
    positives = np.zeros((classes, images))
    real = ~truth.ignore
    np.add.at(positives, (truth.labels[real], truth.images[real]), 1)
    return Matched(np.ascontiguousarray(outcome), found.images[order], starts, positives, recalls)

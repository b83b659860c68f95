"""Average precision of weighted images: detections are matched once, then averaged under many weightings.

An interval needs the same number for many sets of images, and matching, which takes longest, is the same in
all. With every weight 1 the result is that of `ap` and `voc`, which the tests hold it to.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adverse.benchmarks.ap import OVERLAPS, RANGES, RECALLS
from adverse.benchmarks.boxes import FoundObjects, TrueObjects
from adverse.benchmarks.kernels import weighted_precision
from adverse.benchmarks.matching import matching
from adverse.benchmarks.voc import HIT, IGNORED, Average, voc_outcomes

ROUNDING = 1e-12
"""Three times a tenth is not three tenths in floats; VOC's eleven recalls are met within this."""


@dataclass(frozen=True, eq=False)
class Matched:
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
    found: FoundObjects,
    images: int,
    classes: int,
    overlaps: NDArray[np.float64] = OVERLAPS,
) -> Matched:
    """Match boxes by COCO's rules at the given overlaps."""
    match = matching(truth, found, images, classes, overlaps=overlaps, ranges=RANGES[:1])
    positives = _positives(truth, images, classes)
    return Matched(
        match.hits[0], match.ignored[0], len(overlaps), match.image, match.starts, positives, RECALLS
    )


def matched_voc(
    truth: TrueObjects, found: FoundObjects, images: int, classes: int, average: Average
) -> Matched:
    """Match boxes by VOC's rules."""
    order = np.lexsort((-found.scores, found.labels))
    outcome = voc_outcomes(truth, found, images, order)
    hits, ignored = (outcome == HIT).astype(np.uint16), (outcome == IGNORED).astype(np.uint16)
    recalls = np.zeros(0) if average == "area" else np.linspace(0, 1, 11) - ROUNDING
    starts = np.searchsorted(found.labels[order], np.arange(classes + 1))
    return Matched(hits, ignored, 1, found.images[order], starts, _positives(truth, images, classes), recalls)


def _positives(truth: TrueObjects, images: int, classes: int) -> NDArray[np.float64]:
    positives = np.zeros((classes, images))
    real = ~truth.ignore
    np.add.at(positives, (truth.labels[real], truth.images[real]), 1)
    return positives

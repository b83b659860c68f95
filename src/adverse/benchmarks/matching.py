"""Detections of many images matched with the truth by COCO's rules, once for all numbers made from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adverse.benchmarks.boxes import FoundObjects, TrueObjects
from adverse.benchmarks.kernels import coco_match, counting_order

MOST = 100
"""Detections that count for each image and class."""

SPARSE = 8
"""Sorting by counting pays up to this many bins for each entry."""


@dataclass(frozen=True, eq=False)
class Matching:
    """The detections by class, the surest first; equally sure ones by image, and then as they were given.

    `hits` and `ignored` (area range, detection) have a bit for each overlap. The detections of class c lie at
    starts[c]:starts[c+1]. `rank` counts the surer ones of the same class in the same image.
    """

    hits: NDArray[np.uint16]
    ignored: NDArray[np.uint16]
    image: NDArray[np.int64]
    rank: NDArray[np.int64]
    starts: NDArray[np.int64]


def matching(
    truth: TrueObjects,
    found: FoundObjects,
    images: int,
    classes: int,
    *,
    overlaps: NDArray[np.float64],
    ranges: NDArray[np.float64],
) -> Matching:
    """Match boxes at each of the overlaps, and for objects in each of the ranges (A,2) of area.

    Overlaps rise, and there are at most 16 of them.
    """
    order = _order(found.images, images)
    order = order[np.argsort(-found.scores[order], kind="stable")]
    order = order[_order(found.labels[order], classes)]
    image, label = found.images[order], found.labels[order]
    place = label * images + image
    members = _order(place, classes * images)
    sorted_place = place[members]
    begins = np.flatnonzero(np.diff(sorted_place, prepend=-1))
    home = truth.labels * images + truth.images
    known = np.argsort(home, kind="stable")
    hits, ignored = coco_match(
        _xywh(found.boxes[order]),
        members,
        np.append(begins, len(members)),
        np.asarray(np.searchsorted(home[known], sorted_place[begins], side="left"), np.int64),
        np.asarray(np.searchsorted(home[known], sorted_place[begins], side="right"), np.int64),
        _xywh(truth.boxes[known]),
        truth.area[known],
        truth.ignore[known],
        truth.crowd[known],
        overlaps,
        ranges,
        MOST,
    )
    rank = np.empty(len(members), np.int64)
    sizes = np.diff(np.append(begins, len(members)))
    rank[members] = np.arange(len(members)) - np.repeat(begins, sizes)
    return Matching(hits, ignored, image, rank, np.searchsorted(label, np.arange(classes + 1)))


def _order(keys: NDArray[np.int64], bins: int) -> NDArray[np.int64]:
    """Return the stable order of whole numbers from 0 to bins - 1."""
    if bins > SPARSE * len(keys):
        return np.argsort(keys, kind="stable")
    return counting_order(np.asarray(keys, np.int64), bins)


def _xywh(boxes: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.hstack([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]])

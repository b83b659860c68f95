"""Detections of many images matched with the truth by COCO's rules, once for all numbers made from it.

What average precision is computed from: true and detected objects of many images, as checked columns.

Invalid input is refused here, by name: NaN and infinite values, boxes that end before
they begin, images and classes that do not exist.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import hotcoco.mask
import numpy as np
from numpy.typing import NDArray

from adverse.benchmarks.kernels import coco_match, counting_order
from adverse.errors import AdverseError, DataError, SutError

Rle = Mapping[str, Any]
"""A mask as COCO writes it: size [height, width] and run-length counts."""


@dataclass(frozen=True, eq=False)
class TrueObjects:
    """The truth: boxes (N,4) xyxy pixels; `images` and `labels` count from 0; `area` (N,) in pixels.

    `ignore` marks objects that count neither way: a detection matched with one is not a false positive. An
    ignored object that is a `crowd` takes any number of detections, each by the share of it that is covered;
    one that is not takes a single one, by overlap. `masks` are needed for the AP of masks only, and `voids`,
    the pixels of each image in which nothing is evaluated, for that of Cityscapes.
    """

    images: NDArray[np.int64]
    boxes: NDArray[np.float64]
    labels: NDArray[np.int64]
    area: NDArray[np.float64]
    ignore: NDArray[np.bool_]
    crowd: NDArray[np.bool_]
    masks: Sequence[Rle] | None = None
    voids: Sequence[Rle | None] | None = None

    def __len__(self) -> int:
        return len(self.images)


@dataclass(frozen=True, eq=False)
class DetectedObjects:
    """What a detector found: boxes (N,4) xyxy pixels, scores (N,); `images` and `labels` count from 0."""

    images: NDArray[np.int64]
    boxes: NDArray[np.float64]
    labels: NDArray[np.int64]
    scores: NDArray[np.float64]
    masks: Sequence[Rle] | None = None

    def __len__(self) -> int:
        return len(self.images)

    def ordered(self) -> DetectedObjects:
        """Return the same by image, then falling score; equal scores by class and coordinates.

        So the order never depends on how they were stored. Ties between images are settled by the
        order of the images.

        >>> box = np.array([[0.0, 0, 5, 5], [0, 0, 4, 4]])
        >>> zero = np.zeros(2, np.int64)
        >>> DetectedObjects(zero, box, zero, np.array([0.5, 0.5])).ordered().boxes[:, 2]
        array([4., 5.])
        """
        order = np.lexsort((*self.boxes.T[::-1], self.labels, -self.scores, self.images))
        masks = None if self.masks is None else [self.masks[row] for row in order.tolist()]
        return DetectedObjects(
            self.images[order], self.boxes[order], self.labels[order], self.scores[order], masks
        )


def check(truth: TrueObjects, detections: DetectedObjects, images: int, classes: int) -> None:
    """Raise DataError or SutError where columns do not fit together or hold what cannot be scored."""
    _check_columns(truth, ("area", "ignore", "crowd"), images, classes, DataError)
    _check_columns(detections, ("scores",), images, classes, SutError)
    if (truth.crowd & ~truth.ignore).any():
        raise DataError(
            "a crowd is always ignored", where=_row(truth.crowd & ~truth.ignore), fix="Set ignore."
        )
    bad = ~(np.isfinite(truth.area) & (truth.area >= 0))
    if bad.any():
        raise DataError(
            "the area of a true object is not a finite number from 0 up",
            where=_row(bad),
            got=str(truth.area[bad][0]),
            fix="Give the pixels that it covers, or the area of its box.",
        )
    bad = ~np.isfinite(detections.scores)
    if bad.any():
        raise SutError(
            "a score is not a finite number",
            where=_row(bad),
            got=str(detections.scores[bad][0]),
            wanted="finite scores: they decide which detection counts first",
            fix="Find out why the system gives it; an invalid detection must not be returned.",
        )
    for objects, kind in ((truth, DataError), (detections, SutError)):
        if objects.masks is not None and len(objects.masks) != len(objects):
            raise kind(
                "there is not one mask for each object", got=f"{len(objects.masks)} for {len(objects)}"
            )


def _check_columns(
    objects: TrueObjects | DetectedObjects,
    names: tuple[str, ...],
    images: int,
    classes: int,
    kind: type[AdverseError],
) -> None:
    size = len(objects)
    for name in ("labels", *names):
        column = getattr(objects, name)
        if column.shape != (size,):
            raise kind(f"{name} has the wrong shape", got=str(column.shape), wanted=f"({size},)")
    if objects.boxes.shape != (size, 4):
        raise kind("boxes have the wrong shape", got=str(objects.boxes.shape), wanted=f"({size}, 4)")
    for name, count in (("images", images), ("labels", classes)):
        column = getattr(objects, name)
        bad = (column < 0) | (column >= count)
        if bad.any():
            raise kind(
                f"one of {name} does not exist",
                where=_row(bad),
                got=str(column[bad][0]),
                wanted=f"a number from 0 to {count - 1}",
            )
    boxes = objects.boxes
    if not (np.isfinite(boxes).all() and (boxes[:, 2:] >= boxes[:, :2]).all()):
        right = np.isfinite(boxes).all(axis=1) & (boxes[:, 2:] >= boxes[:, :2]).all(axis=1)
        bad = np.asarray(~right, np.bool_)
        raise kind(
            "a box is not four finite numbers with its end after its beginning",
            where=_row(bad),
            got=str(boxes[bad][0].tolist()),
            wanted="x0 <= x1 and y0 <= y1",
        )


def _row(bad: NDArray[np.bool_]) -> str:
    return f"object {int(np.flatnonzero(bad)[0])}"


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
    detections: DetectedObjects,
    images: int,
    classes: int,
    *,
    overlaps: NDArray[np.float64],
    ranges: NDArray[np.float64],
) -> Matching:
    """Match boxes, or masks where both sides have them, at each of the overlaps.

    And for objects in each of the ranges (A,2) of area. Overlaps rise, and there are at most 16 of them.
    """
    order = _order(detections.images, images)
    order = order[np.argsort(-detections.scores[order], kind="stable")]
    order = order[_order(detections.labels[order], classes)]
    image, label = detections.images[order], detections.labels[order]
    place = label * images + image
    members = _order(place, classes * images)
    sorted_place = place[members]
    begins = np.flatnonzero(np.diff(sorted_place, prepend=-1))
    home = truth.labels * images + truth.images
    by_home = np.argsort(home, kind="stable")
    starts = np.append(begins, len(members))
    first, last = (
        np.asarray(np.searchsorted(home[by_home], sorted_place[begins], side=side), np.int64)
        for side in ("left", "right")
    )
    boxes = _xywh(detections.boxes[order])
    areas, given, at = boxes[:, 2] * boxes[:, 3], np.zeros(0), np.zeros(0, np.int64)
    if truth.masks is not None and detections.masks is not None:
        areas = np.asarray(hotcoco.mask.area([dict(mask) for mask in detections.masks]), np.float64)
        areas = areas.reshape(-1)[order]
        groups = zip(starts[:-1].tolist(), starts[1:].tolist(), first.tolist(), last.tolist(), strict=True)
        shares = [
            _mask_overlaps(
                [detections.masks[row] for row in order[members[begin : min(end, begin + MOST)]].tolist()],
                [truth.masks[row] for row in by_home[low:high].tolist()],
                truth.crowd[by_home[low:high]],
            )
            for begin, end, low, high in groups
        ]
        given = np.concatenate([share.reshape(-1) for share in shares]) if shares else given
        at = np.cumsum([0, *(share.size for share in shares[:-1])])[: len(shares)].astype(np.int64)
    hits, ignored = coco_match(
        boxes,
        members,
        starts,
        first,
        last,
        _xywh(truth.boxes[by_home]),
        truth.area[by_home],
        truth.ignore[by_home],
        truth.crowd[by_home],
        overlaps,
        ranges,
        MOST,
        areas,
        given,
        at,
    )
    rank = np.empty(len(members), np.int64)
    sizes = np.diff(np.append(begins, len(members)))
    rank[members] = np.arange(len(members)) - np.repeat(begins, sizes)
    return Matching(hits, ignored, image, rank, np.searchsorted(label, np.arange(classes + 1)))


def _mask_overlaps(
    masks: Sequence[Rle], truths: Sequence[Rle], crowd: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return the overlap of masks with true ones (D,T); of a crowd, the share of the mask that it covers."""
    if not masks or not truths:
        return np.zeros((len(masks), len(truths)))
    plain = [dict(mask) for mask in masks], [dict(mask) for mask in truths]
    return np.asarray(hotcoco.mask.iou(*plain, crowd.tolist()), np.float64)


def _order(keys: NDArray[np.int64], bins: int) -> NDArray[np.int64]:
    """Return the stable order of whole numbers from 0 to bins - 1."""
    if bins > SPARSE * len(keys):
        return np.argsort(keys, kind="stable")
    return counting_order(np.asarray(keys, np.int64), bins)


def _xywh(boxes: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.hstack([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]])

"""Recorded files that are mixed up: one of mutated images against the one of the same images as they are.

A mutation moves no object. So where a file fits its neighbours' images better than its own, or calls every
car a person and every person a car, it was written down wrongly; it would pass as a lack of robustness.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.suts.recorded_rows import Boxes, Floats, ImageId, Needed, RecordedRows, overlaps

COMPARED = 300
"""Images that are compared, the first ones: what was mixed up is so from the start."""
FEWEST = 10
"""Boxes that must fit elsewhere before anything is said."""
TIMES = 3
"""How many times better the other reading must fit."""
IOU = 0.5


def same_rows(clean: RecordedRows, mutated: RecordedRows) -> bool:
    """Return whether two files hold the same entries in the same order, and any at all."""
    return (
        len(clean.images) > 0
        and list(clean.images) == list(mutated.images)
        and np.array_equal(clean.boxes, mutated.boxes)
        and np.array_equal(clean.scores, mutated.scores)
        and np.array_equal(clean.labels, mutated.labels)
    )


def exchanged(clean: RecordedRows, mutated: RecordedRows, wanted: Needed, boxes: Boxes) -> str | None:
    """Return why a file of mutated images is hardly about them: ids shifted by one, or classes exchanged."""
    ids = [frame.image_id for split in wanted.splits.values() for frame in split][:COMPARED]
    before, after = _by_image(clean, ids, boxes), _by_image(mutated, ids, boxes)
    own = _fitting(before, after, ids, 0)
    for step, words in ((1, "before"), (-1, "after")):
        other = _fitting(before, after, ids, step)
        if other >= max(FEWEST, TIMES * own):
            return (
                f"image ids may be off by one: {other} boxes are where those of the image {words} theirs "
                f"were without the mutation, {own} where those of their own were"
            )
    return _swapped_classes(before, after, ids)


class _Image(NamedTuple):
    corners: Floats
    labels: NDArray[np.int64]


def _by_image(rows: RecordedRows, ids: Sequence[ImageId], boxes: Boxes) -> Mapping[ImageId, _Image]:
    wanted = set(ids)
    places: dict[ImageId, list[int]] = {}
    for row, image in enumerate(rows.images):
        if image in wanted:
            places.setdefault(image, []).append(row)
    found = {}
    for image, mine in places.items():
        corners = rows.boxes[mine].copy()
        if boxes == "xywh":
            corners[:, 2:] += corners[:, :2]
        usable = np.isfinite(corners).all(axis=1)
        found[image] = _Image(corners[usable], rows.labels[mine][usable])
    return found


def _fitting(
    before: Mapping[ImageId, _Image], after: Mapping[ImageId, _Image], ids: Sequence[ImageId], step: int
) -> int:
    """Count the boxes of mutated images that are where a box of the image `step` before theirs was."""
    count = 0
    for place, image in enumerate(ids):
        if 0 <= place - step < len(ids) and image in after and ids[place - step] in before:
            there = overlaps(after[image].corners, before[ids[place - step]].corners)
            count += int((there >= IOU).any(axis=1).sum())
    return count


def _swapped_classes(
    before: Mapping[ImageId, _Image], after: Mapping[ImageId, _Image], ids: Sequence[ImageId]
) -> str | None:
    """Say so if boxes that stayed in place changed from one class to another, and back."""
    counts: dict[tuple[int, int], int] = {}
    for image in ids:
        if image in before and image in after and len(before[image].corners) and len(after[image].corners):
            there = overlaps(after[image].corners, before[image].corners)
            best = there.argmax(axis=1)
            for row in np.flatnonzero(there.max(axis=1) >= IOU).tolist():
                pair = int(before[image].labels[best[row]]), int(after[image].labels[row])
                counts[pair] = counts.get(pair, 0) + 1
    for (old, new), count in sorted(counts.items()):
        back = counts.get((new, old), 0)
        kept = counts.get((old, old), 0), counts.get((new, new), 0)
        if (
            old < new
            and min(count, back) >= FEWEST // 2
            and count > TIMES * kept[0]
            and back > TIMES * kept[1]
        ):
            return (
                f"two classes may be exchanged: {count} boxes of class {old} are of class {new} here, and "
                f"{back} the other way round (classes in the order of their category ids, from 0)"
            )
    return None

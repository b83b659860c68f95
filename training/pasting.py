"""Cut people and things out of one frame and put them into another: more company for the same people.

They stay at their height in the picture, so that distance and size still agree, and move to the side. Things
are pasted as well as people, so that the seam says nothing about who is a person.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.data.worlds import classes
from scenes import Frames

THINGS = np.isin(np.arange(256), (classes.STATIC, classes.POLE))
"""By label: is it a thing that is nobody?"""


class View(NamedTuple):
    """A frame that may be changed: image, depth codes, boxes padded with zeros, and which do not count."""

    image: NDArray[np.uint8]
    depth: NDArray[np.uint8]
    boxes: NDArray[np.float32]
    ignore: NDArray[np.bool_]


def view(data: Frames, row: int) -> View:
    """Return a copy of a frame."""
    return View(*(values[row].copy() for values in (data.images, data.depth, data.boxes, data.ignore)))


def with_person(target: View, data: Frames, row: int, which: int, rng: np.random.Generator) -> int | None:
    """Paste a person of another frame into a view, beside all others; return its place among the boxes.

    None, and nothing done, where there is no room.
    """
    x0, y0, x1, y1 = (int(value) for value in data.boxes[row, which])
    wide = target.image.shape[1]
    left = x0 if x0 == 0 or x1 == wide else int(rng.integers(wide - (x1 - x0) + 1))  # who is cut off stays
    box = np.array([left, y0, left + x1 - x0, y1], np.float32)
    real = target.boxes[:, 2] > 0
    apart = (target.boxes[:, :2] >= box[2:]).any(axis=1) | (target.boxes[:, 2:] <= box[:2]).any(axis=1)
    free = np.flatnonzero(~real)
    if not len(free) or not apart[real].all():
        return None
    mask = data.labels[row, y0:y1, x0:x1] == classes.PERSON
    _paste(
        target, (slice(y0, y1), slice(left, left + x1 - x0)), data, row, (slice(y0, y1), slice(x0, x1)), mask
    )
    target.boxes[free[0]], target.ignore[free[0]] = box, False
    return int(free[0])


def with_things(target: View, data: Frames, row: int, rng: np.random.Generator) -> None:
    """Paste the things of another frame into a view, moved to the side, over nobody."""
    wide = target.image.shape[1]
    shift = int(rng.integers(-wide // 2, wide // 2))
    here = slice(max(shift, 0), min(wide + shift, wide))
    there = slice(max(-shift, 0), min(wide - shift, wide))
    mask = THINGS[data.labels[row, :, there]]
    for x0, y0, x1, y1 in target.boxes[target.boxes[:, 2] > 0].astype(int):
        mask[y0:y1, max(x0 - here.start, 0) : max(x1 - here.start, 0)] = False
    _paste(target, (slice(None), here), data, row, (slice(None), there), mask)


def _paste(
    target: View,
    here: tuple[slice, slice],
    data: Frames,
    row: int,
    there: tuple[slice, slice],
    mask: NDArray[np.bool_],
) -> None:
    target.image[here][mask] = data.images[row][there][mask]
    target.depth[here][mask] = data.depth[row][there][mask]

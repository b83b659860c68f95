"""Boxes that belong to a neighbour's image: ids counted from 1 instead of 0, a line lost in a list.

Such a file looks like a detector that finds nothing. Its boxes are compared with the truth of their own image
and with that of the images a few ids, or a few places in the order of ids or file names, away. Where
neighbours are alike, as in video, the boxes fit both, and nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from adverse.suts.recorded_rows import Boxes, Floats, ImageId, Needed, RecordedRows, overlaps
from adverse.types import Frame

FARTHEST = 5
"""Ids or places that a file may be shifted by."""
COMPARED = 150
"""Images with true objects that are compared, spread over the file."""
BEST_BOXES = 5
"""Boxes of an image that are compared, by score: among hundreds of faint ones some fit anything."""
FEWEST = 10
"""True objects that must fit elsewhere before anything is said."""
FEWEST_CLEAR, CLEAR = 4, 0.8
"""Fewer will do where so large a share of all true objects fits."""
TIMES = 3
"""How many times better the other reading must fit."""
IOU = 0.5
FIX = "Write the image_id of the image that each box was found in"


class Shift(NamedTuple):
    """A reading of the ids that fits the truth far better than they do as written."""

    got: str
    fix: str


class _Better(NamedTuple):
    """How much better another reading fits, and which."""

    got: str
    words: str
    fix: str


class _Reading(NamedTuple):
    """Whose truth the boxes of an image are compared with, if not its own."""

    words: str
    fix: str
    image_of: Mapping[ImageId, ImageId]


def shifted(rows: RecordedRows, wanted: Needed, boxes: Boxes) -> Shift | None:
    """Return how the image ids of a file are shifted against the truth, if they are."""
    frames = {frame.image_id: frame for frame in wanted.all_frames}
    truth = {
        image: np.asarray(frame.truth.boxes[~frame.truth.ignore], np.float64)
        for image, frame in frames.items()
    }
    better = _better_reading(_best_boxes(rows, boxes, frames), truth, list(frames.values()))
    return (
        None
        if better is None
        else Shift(f"{better.got} if each box is read as of {better.words}", better.fix)
    )


def shifted_truth(found: Mapping[str, Floats], frames: Sequence[Frame]) -> str | None:
    """Return how the answers of a SUT, by frame, fit the truth of other frames far better than their own.

    `found` holds the corners (N,4) of its surest boxes, for frames spread over the data.
    """
    named = [replace(frame, image_id=frame.id) for frame in frames]
    truth: dict[ImageId, Floats] = {
        frame.id: np.asarray(frame.truth.boxes[~frame.truth.ignore], np.float64) for frame in frames
    }
    better = _better_reading(dict(found.items()), truth, named)
    return None if better is None else f"{better.got} if each is compared with the truth of {better.words}"


def _better_reading(
    found: Mapping[ImageId, Floats], truth: Mapping[ImageId, Floats], frames: Sequence[Frame]
) -> _Better | None:
    """Return the first reading of the ids by which boxes fit the truth far better than as written."""
    own, total = _hits(found, truth, {image: image for image in found})
    if own * 2 > total >= FEWEST:
        return None  # they fit as they are
    for reading in _readings(frames):
        other, objects = _hits(found, truth, reading.image_of)
        enough = other >= FEWEST or (other >= FEWEST_CLEAR and other >= CLEAR * objects)
        if enough and other >= TIMES * own:
            got = f"{own} of {total} true objects are hit, and {other} of {objects}"
            return _Better(got, reading.words, reading.fix)
    return None


def _best_boxes(rows: RecordedRows, boxes: Boxes, frames: Mapping[ImageId, Frame]) -> dict[ImageId, Floats]:
    """Return the corners (N,4) of the boxes with the highest scores, for images spread over the file."""
    places: dict[ImageId, list[int]] = {}
    usable = np.isfinite(rows.boxes).all(axis=1) & np.isfinite(rows.scores)
    for row in np.flatnonzero(usable).tolist():
        if rows.images[row] in frames:
            places.setdefault(rows.images[row], []).append(row)
    images = list(places)
    spread = np.linspace(0, len(images) - 1, min(COMPARED, len(images)))
    found = {}
    for image in (images[int(at)] for at in spread):
        mine = np.array(places[image])
        mine = mine[np.argsort(-rows.scores[mine], kind="stable")[:BEST_BOXES]]
        corners = rows.boxes[mine].copy()
        if boxes == "xywh":
            corners[:, 2:] += corners[:, :2]
        found[image] = corners
    return found


def _readings(frames: Sequence[Frame]) -> Iterator[_Reading]:
    """Yield the shifts to try, the nearest first: of the numbers, then of places in each order."""
    orders: dict[str, list[ImageId]] = {}
    numbers = sorted(frame.image_id for frame in frames if isinstance(frame.image_id, int))
    if numbers:
        orders["in the order of image ids"] = [*numbers]
    for words, names in (
        ("in the order of file names", sorted(frames, key=lambda frame: (frame.image.path.name, frame.id))),
        ("in the order of the data set", list(frames)),
    ):
        order = [frame.image_id for frame in names]
        if order not in orders.values():
            orders[words] = order
    for step in (sign * size for size in range(1, FARTHEST + 1) for sign in (1, -1)):
        if numbers:
            image_of: dict[ImageId, ImageId] = {number: number - step for number in numbers}
            here, there = ("subtract", "add") if step > 0 else ("add", "subtract")
            fix = f"{FIX}: {here} {abs(step)} in the predictions, or {there} it in the truth."
            yield _Reading(f"image_id {-step:+d}", fix, image_of)
        for words, order in orders.items():
            start, end = max(step, 0), len(order) + min(step, 0)
            side = "before" if step > 0 else "after"
            count = f"{abs(step)} place{'s' if abs(step) > 1 else ''}"
            fix = f"{FIX}: the list that they were numbered by may lack an image, or have one too many."
            image_of = {order[at]: order[at - step] for at in range(start, end)}
            yield _Reading(f"the image {count} {side} {words}", fix, image_of)


def _hits(
    found: Mapping[ImageId, Floats], truth: Mapping[ImageId, Floats], image_of: Mapping[ImageId, ImageId]
) -> tuple[int, int]:
    """Count the true objects that a box overlaps by half when read as of other images, and all of them."""
    hits = total = 0
    for image, corners in found.items():
        objects = truth.get(image_of[image]) if image in image_of else None
        if objects is not None and len(objects):
            total += len(objects)
            hits += int((overlaps(corners, objects) >= IOU).any(axis=0).sum())
    return hits, total

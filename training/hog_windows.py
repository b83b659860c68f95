"""Windows to train the HOG detector on: around people of one shape, and anywhere in frames without any."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from adverse.suts.hog_views import BINS, CELL, cell_features
from scenes import HEIGHT, WIDTH, Frames

SCALE = 1.2
"""The ratio of sizes that the detector tries."""
COPIES = 3
"""So often each person is shown, moved and resized by up to half a step of the search."""
MARGIN = 2
"""Cells between a person and the window's upper and lower edge."""
PER_FRAME = 10
Floats = NDArray[np.float32]
Halves = NDArray[np.float16]
Image = NDArray[np.uint8]


class Shape(NamedTuple):
    """A view: its window in cells (width, height), the least and the most width of a person over height."""

    cells: tuple[int, int]
    slim: float
    wide: float
    cut: bool
    """Whether these people are cut off by the lower edge of the image."""
    trust: float
    """Added to the scores; chosen on validation logs, since some shapes are told from things better."""


SHAPES = (
    Shape((7, 14), 0.0, 0.31, cut=False, trust=0.0),
    Shape((8, 13), 0.31, 0.5, cut=False, trust=0.2),
    Shape((10, 12), 0.5, 0.78, cut=False, trust=0.0),
    Shape((12, 11), 0.78, 9.0, cut=False, trust=-0.4),
    Shape((8, 13), 0.0, 0.5, cut=True, trust=0.0),
    Shape((11, 11), 0.5, 9.0, cut=True, trust=-0.6),
)


class People(NamedTuple):
    """Windows around people: features (N, F), the people's boxes in cells (N, 4), places (N, 2).

    A place is the height of the window's middle and the window's own height, as parts of the image's.
    """

    features: Halves
    boxes: Floats
    places: Floats


class Place(NamedTuple):
    """Where a window is: its upper left corner in cells, and how many pixels wide a cell is."""

    left: float
    top: float
    unit: float


def people(data: Frames, shape: Shape, table: NDArray[np.uint8], rng: np.random.Generator) -> People:
    """Return windows around people of one shape, half of them mirrored."""
    made, boxes, places = [], [], []
    tall = shape.cells[1] - 2 * MARGIN
    for row, which in np.argwhere((data.boxes[:, :, 2] > 0) & ~data.ignore):
        x0, y0, x1, y1 = data.boxes[row, which].tolist()
        if (y1 > HEIGHT - 2) != shape.cut or not shape.slim <= (x1 - x0) / (y1 - y0) < shape.wide:
            continue
        chosen = []
        for _ in range(COPIES):
            unit = max((y1 - y0) / tall, (x1 - x0) / (shape.cells[0] - 1)) * SCALE ** rng.uniform(-0.5, 0.5)
            left = (x0 + x1) / 2 / unit - shape.cells[0] / 2 + rng.uniform(-0.5, 0.5)
            top = (y0 + y1) / 2 / unit - shape.cells[1] / 2 + rng.uniform(-0.5, 0.5)
            chosen.append(Place(left, top, unit))
            box = np.array([x0, y0, x1, y1]) / unit - [left, top, left, top]
            boxes.append(box)
            places.append(((top + shape.cells[1] / 2) * unit / HEIGHT, shape.cells[1] * unit / HEIGHT))
        made.append(_seen(data.images[row], shape, chosen, table))
    features, where = np.concatenate(made), np.array(boxes, np.float32)
    turned = np.arange(len(features)) % 2 == 1
    features[turned] = features[turned][:, mirror(shape, features.shape[1])]
    where[turned] = _mirrored(where[turned], shape)
    return People(features, where, np.array(places, np.float32))


def anywhere(
    data: Frames,
    rows: NDArray[np.int64],
    shape: Shape,
    places: Floats,
    table: NDArray[np.uint8],
    rng: np.random.Generator,
) -> Halves:
    """Return windows of frames without people, at heights and of sizes at which there might be some."""
    made = []
    for row in rows:
        chosen = []
        for middle, tall in places[rng.integers(len(places), size=PER_FRAME)]:
            unit = tall * HEIGHT / shape.cells[1]
            left = rng.uniform(-2, WIDTH / unit + 2 - shape.cells[0])
            chosen.append(Place(left, middle * HEIGHT / unit - shape.cells[1] / 2, unit))
        made.append(_seen(data.images[row], shape, chosen, table))
    return np.concatenate(made)


def mirror(shape: Shape, features: int) -> NDArray[np.int64]:
    """Return where each feature of a window is in the mirrored window."""
    wide, high = shape.cells
    depth = features // (wide * high)
    # directions run from 0 to 180 degrees; the four strengths are those of blocks left, left, right, right
    inside = [*range(BINS)[::-1], BINS + 2, BINS + 3, BINS, BINS + 1, *range(BINS + 4, depth)]
    return np.arange(features).reshape(high, wide, depth)[:, ::-1][:, :, inside].reshape(-1)


def _mirrored(boxes: Floats, shape: Shape) -> Floats:
    """Return boxes (N, 4) in cells as they are in the mirrored window."""
    turned: Floats = boxes[:, [2, 1, 0, 3]] * np.float32([-1, 1, -1, 1])
    turned[:, ::2] += shape.cells[0]
    return turned


def _seen(image: Image, shape: Shape, places: Sequence[Place], table: NDArray[np.uint8]) -> Halves:
    """Return the features of windows, all found at once on a strip of them with a cell around each."""
    wide, high = ((side + 2) * CELL for side in shape.cells)
    strip = np.empty((len(places) * high, wide, 3), np.uint8)
    smaller = {1.0: image}
    for number, (left, top, unit) in enumerate(places):
        shrunk = 1.0
        while unit / CELL / shrunk > 1.5:
            shrunk *= 2
            if shrunk not in smaller:
                smaller[shrunk] = cv2.resize(
                    smaller[shrunk / 2], None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA
                )
        ratio = CELL / unit * shrunk
        shift = 0.5 * ratio - 0.5
        move = np.array([[ratio, 0, CELL * (1 - left) + shift], [0, ratio, CELL * (1 - top) + shift]])
        cv2.warpAffine(
            smaller[shrunk],
            move,
            (wide, high),
            strip[number * high : (number + 1) * high],
            flags=cv2.INTER_LINEAR,
            borderMode=cv2.BORDER_REPLICATE,
        )
    cells = cell_features(strip, table).reshape(len(places), shape.cells[1] + 2, shape.cells[0] + 2, -1)
    return cells[:, 1:-1, 1:-1].reshape(len(places), -1).astype(np.float16)

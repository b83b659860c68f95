"""A HOG detector of several views: people upright, bent, sitting or cut off have a window each.

Every view is a linear classifier over the cells of its window, and four more linear functions say where in
the window the person is (as in Felzenszwalb et al. 2010, section 7).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

from adverse.suts.hog_grid import BINS, CELL, Floats, cell_features, colour_table
from adverse.types import Image

PAD = 3
"""Cells of border around an image, so that people at its edge fill a window."""
MOST = 60
"""So many windows of each view at each size are looked at further."""
_Finite = Annotated[float, Field(allow_inf_nan=False)]
_Part = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_Cells = Annotated[int, Field(ge=2, le=64)]
_Byte = Annotated[float, Field(ge=0, le=255)]


class View(BaseModel):
    """One window, `cells` (width, height) large, and its linear functions of the features in it.

    `weights` (height, width, features) and `bias` give the score; `person` is where people are on average,
    x0, y0, x1, y1 in cells, and `corrections` (height, width, features, 4) is added to it. A camera on a
    vehicle sees people of one size at one height in the image: `bands` says for windows that are so tall
    between which two heights their middle is looked for, all three as parts of the image's height.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    cells: tuple[_Cells, _Cells]
    bias: _Finite
    weights: tuple[_Finite, ...]
    person: tuple[_Finite, _Finite, _Finite, _Finite]
    corrections: tuple[_Finite, ...]
    bands: Annotated[tuple[tuple[_Part, _Finite, _Finite], ...], Field(min_length=1)]

    def rows(self, height: int) -> tuple[int, int]:
        """Return the first row of cells, and the one after the last, where the window is put in an image."""
        tall, low, high = np.array(self.bands).T
        mine = self.cells[1] * CELL / height
        if not tall[0] <= mine <= tall[-1]:
            return 0, 0
        first, last = (float(np.interp(np.log(mine), np.log(tall), edge)) for edge in (low, high))
        start, stop = ((edge - mine / 2) * height / CELL + PAD for edge in (first, last))
        return max(math.ceil(start), 0), math.floor(stop) + 1


class HogViews(BaseModel):
    """The colours to tell apart, RGB in 0..255, and the views."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    colours: Annotated[tuple[tuple[_Byte, _Byte, _Byte], ...], Field(min_length=1, max_length=64)]
    views: Annotated[tuple[View, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _fits(self) -> HogViews:
        for number, view in enumerate(self.views):
            wanted = view.cells[0] * view.cells[1] * (BINS + 4 + len(self.colours))
            if (len(view.weights), len(view.corrections)) != (wanted, 4 * wanted):
                got = f"{len(view.weights)} weights and {len(view.corrections)} corrections"
                msg = f"view {number} has {got} instead of {wanted} and {4 * wanted}"
                raise ValueError(msg)
        return self


class Windows(NamedTuple):
    """Windows of one view in an image: scores (N,), boxes (N, 4) of people in pixels, and what was seen."""

    view: int
    scores: Floats
    boxes: Floats
    features: Floats


class ViewFinder:
    """Slides the views of a model over images of falling size."""

    def __init__(self, model: HogViews, enlarge: float, scale: float) -> None:
        self._table = colour_table(np.array(model.colours, np.float32))
        depth = BINS + 4 + len(model.colours)
        self._views = model.views
        self._sizes = [view.cells for view in model.views]
        self._weights = [np.array(v.weights, np.float32).reshape(-1, depth) for v in model.views]
        self._biases = [view.bias for view in model.views]
        self._people = [np.array(view.person, np.float32) for view in model.views]
        self._corrections = [np.array(v.corrections, np.float32).reshape(-1, 4) for v in model.views]
        self._enlarge, self._scale = enlarge, scale

    def people(self, image: Image, threshold: float) -> tuple[Floats, Floats]:
        """Return boxes (N, 4) and scores (N,) of the windows that score at least `threshold`."""
        found = list(self.windows(image, threshold))
        if not found:
            return np.zeros((0, 4), np.float32), np.zeros(0, np.float32)
        return np.concatenate([one.boxes for one in found]), np.concatenate([one.scores for one in found])

    def windows(self, image: Image, threshold: float) -> Iterator[Windows]:
        """Yield the windows that score at least `threshold`, the best of each view at each size."""
        zoom = self._enlarge
        smallest = min(max(size) for size in self._sizes) * CELL
        while min(image.shape[:2]) * zoom >= smallest - PAD * CELL:
            yield from self._at_size(image, zoom, threshold)
            zoom /= self._scale

    def _at_size(self, image: Image, zoom: float, threshold: float) -> Iterator[Windows]:
        width, height = (max(round(side * zoom), 1) for side in image.shape[1::-1])
        bands = [(number, *view.rows(height)) for number, view in enumerate(self._views)]
        bands = [(number, start, stop) for number, start, stop in bands if stop > start]
        if not bands:
            return
        how = cv2.INTER_AREA if zoom < 1 else cv2.INTER_LINEAR
        resized = cv2.resize(image, (width, height), interpolation=how)
        edge = PAD * CELL
        padded = cv2.copyMakeBorder(resized, edge, edge, edge, edge, cv2.BORDER_REPLICATE)
        # two rows more than needed, so that the edge of what is cut out changes nothing
        top = max(min(start for _, start, _ in bands) - 2, 0)
        bottom = max(stop + self._sizes[number][1] for number, _, stop in bands) + 1
        strip = padded[top * CELL : bottom * CELL].astype(np.uint8, copy=False)
        cells = cell_features(strip, self._table)
        ratio = np.array([image.shape[1] / width, image.shape[0] / height] * 2) * CELL
        for number, start, stop in bands:
            wide, high = self._sizes[number]
            scores = self._scores(number, cells[start - top : stop - top + high - 1])
            best = _best(scores, threshold)
            rows, columns = np.unravel_index(best, scores.shape)
            rows = rows + start - top
            inside = np.array(
                [cells[r : r + high, c : c + wide].reshape(-1) for r, c in zip(rows, columns, strict=True)],
                np.float32,
            ).reshape(len(best), len(self._corrections[number]))
            people = self._people[number] + inside @ self._corrections[number]
            people += np.stack([columns, rows + top, columns, rows + top], axis=1) - PAD
            boxes = (people * ratio).astype(np.float32)
            yield Windows(number, scores.reshape(-1)[best], boxes, inside)

    def _scores(self, number: int, cells: Floats) -> Floats:
        """Return the scores of a view at every cell of a part of the image, (rows, columns)."""
        height, width, depth = cells.shape
        wide, high = self._sizes[number]
        rows, columns = height - high + 1, width - wide + 1
        if rows < 1 or columns < 1:
            return np.zeros((0, 0), np.float32)
        parts = (self._weights[number] @ cells.reshape(-1, depth).T).reshape(high, wide, height, width)
        total = np.full((rows, columns), self._biases[number], np.float32)
        for y in range(high):
            for x in range(wide):
                total += parts[y, x, y : y + rows, x : x + columns]
        return total


def _best(scores: Floats, threshold: float) -> NDArray[np.int64]:
    """Return the places of the best scores, at most MOST, best first."""
    flat = scores.reshape(-1)
    over = np.flatnonzero(flat >= threshold)
    return over[np.argsort(-flat[over], kind="stable")[:MOST]]

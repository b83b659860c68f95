"""A HOG detector of several views: people upright, bent, sitting or cut off have a window each.

Every view is a linear classifier over the cells of its window, and four more linear functions say where in
the window the person is (as in Felzenszwalb et al. 2010, section 7). A cell has edges by direction and the
share of each colour. The edges are OpenCV's HOG blocks (Dalal, Triggs 2005), folded to one vector for each
cell (Felzenszwalb et al. 2010, section 6): the mean of its four normalized histograms, and how strong each of
the four is. All are given as square roots, so that a little of something where there was none says more than
a little more of much (the Hellinger kernel of Vedaldi, Zisserman 2012).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from adverse.errors import SutError
from adverse.plain_files import read_plain
from adverse.strict_json import parse_json
from adverse.types import Image

CELL, BINS = 4, 9
LEVELS = 32
"""Steps of red, green and blue in the table of colours."""
Floats = NDArray[np.float32]


def cell_features(image: Image, table: NDArray[np.uint8]) -> Floats:
    """Return (H // 4, W // 4, 13 + K) for an RGB image of at least 8 x 8 pixels and a table of K colours."""
    rows, columns = image.shape[0] // CELL, image.shape[1] // CELL
    cut = np.ascontiguousarray(image[: rows * CELL, : columns * CELL])
    both = [_edges(cut, rows, columns), _colours(cut, table, rows, columns)]
    return np.sqrt(np.concatenate(both, axis=2))


def colour_table(colours: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Return (32, 32, 32): which of the colours (K, 3), RGB in 0..255, is nearest to a red, green, blue."""
    step = 256 / LEVELS
    axis = (np.arange(LEVELS) + 0.5) * step
    every = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1)[..., None, :]
    nearest: NDArray[np.uint8] = ((every - colours) ** 2).sum(axis=-1).argmin(axis=-1).astype(np.uint8)
    return nearest


def _edges(image: Image, rows: int, columns: int) -> Floats:
    size = (columns * CELL, rows * CELL)
    hog = cv2.HOGDescriptor(size, (2 * CELL, 2 * CELL), (CELL, CELL), (CELL, CELL), BINS)
    # OpenCV lists blocks column by column, and so the four cells of each
    blocks = np.asarray(hog.compute(image)).reshape(columns - 1, rows - 1, 2, 2, BINS)
    mean = np.zeros((columns, rows, BINS), np.float32)
    strength = np.zeros((columns, rows, 2, 2), np.float32)
    for x in (0, 1):
        for y in (0, 1):
            place = slice(x, x + columns - 1), slice(y, y + rows - 1)
            mean[place] += blocks[:, :, x, y] / 4
            strength[(*place, x, y)] = blocks[:, :, x, y].sum(axis=2) / BINS
    both = np.concatenate([mean, strength.reshape(columns, rows, 4)], axis=2)
    return both.transpose(1, 0, 2)


def _colours(image: Image, table: NDArray[np.uint8], rows: int, columns: int) -> Floats:
    step = 256 // LEVELS
    red, green, blue = (image // step).transpose(2, 0, 1)
    seen = table[red, green, blue]
    shares = [
        cv2.resize((seen == bin_).astype(np.float32), (columns, rows), interpolation=cv2.INTER_AREA)
        for bin_ in range(int(table.max()) + 1)
    ]
    return np.stack(shares, axis=2).astype(np.float32)


PAD = 3
"""Cells of border around an image, so that people at its edge fill a window."""
MOST = 60
"""So many windows of each view at each size are looked at further."""
_Finite = Annotated[float, Field(allow_inf_nan=False)]
_Part = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_Cells = Annotated[int, Field(ge=2, le=64)]
_Byte = Annotated[float, Field(ge=0, le=255)]


class HogView(BaseModel):
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
    views: Annotated[tuple[HogView, ...], Field(min_length=1)]

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
        by_view = list(self.windows(image, threshold))
        if not by_view:
            return np.zeros((0, 4), np.float32), np.zeros(0, np.float32)
        return np.concatenate([windows.boxes for windows in by_view]), np.concatenate(
            [windows.scores for windows in by_view]
        )

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


_Pixels = Annotated[int, Field(ge=2, le=256)]
_Share = Annotated[float, Field(gt=0, le=1)]
_Pair = tuple[_Pixels, _Pixels]


class HogModel(BaseModel):
    """A HOG model; sizes are (width, height) in pixels, `person` is the part of the window a person fills.

    `weights` are those of OpenCV's descriptor of that shape, with the bias at the end.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    window: _Pair
    block: _Pair
    stride: _Pair
    cell: _Pair
    bins: Annotated[int, Field(ge=2, le=36)]
    person: tuple[_Share, _Share]
    weights: tuple[_Finite, ...]

    def descriptor(self) -> Any:
        """Return OpenCV's descriptor with the weights set."""
        hog = cv2.HOGDescriptor(self.window, self.block, self.stride, self.cell, self.bins)
        hog.setSVMDetector(np.array(self.weights, np.float32))
        return hog


def built_in() -> HogModel:
    """Return OpenCV's own people detector (Dalal, Triggs 2005).

    A person fills 96 of the window's 128 rows, with a margin as in the training images, and is as wide as
    somebody walking is on average, 0.4 of the height.
    """
    weights = np.asarray(cv2.HOGDescriptor.getDefaultPeopleDetector()).reshape(-1).tolist()
    sizes: dict[str, _Pair] = {"window": (64, 128), "block": (16, 16), "stride": (8, 8), "cell": (8, 8)}
    return HogModel(**sizes, bins=9, person=(0.6, 0.75), weights=tuple(weights))


def read_hog_model(path: Path) -> HogModel | HogViews:
    """Read a model from JSON: one window, or several views as `training/hog.py` writes them."""
    try:
        stored = parse_json(read_plain(path), path, "HOG model")
        if isinstance(stored, dict) and "views" in stored:
            return HogViews.model_validate(stored)
        model = HogModel.model_validate(stored)
        wanted = cv2.HOGDescriptor(model.window, model.block, model.stride, model.cell, model.bins)
        size = wanted.getDescriptorSize() + 1
    except OSError as error:
        raise _wrong(path, error.strerror or str(error), "a file that can be read") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise _wrong(path, f"{'.'.join(map(str, first['loc']))}: {first['msg']}", "a HOG model") from error
    except cv2.error as error:
        raise _wrong(path, " ".join(str(error).split()), "sizes that fit into each other") from error
    if len(model.weights) != size:
        raise _wrong(path, f"{len(model.weights)} weights", f"{size}: one for each feature, and the bias")
    return model


def _wrong(path: Path, got: str, wanted: str) -> SutError:
    fix = "Write it again with training/hog.py."
    return SutError("the HOG model cannot be used", where=str(path), got=got, wanted=wanted, fix=fix)

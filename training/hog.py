"""Train the bundled HOG detector: python training/hog.py. Needs no PyTorch.

People are sorted into views by their shape. For each view a linear SVM (squared hinge loss, L-BFGS) learns
windows around people against windows from frames without any, and then again, several times, with the false
alarms of the last round added (Dalal and Triggs 2005, section 5). A ridge regression learns where in the
window they are.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from adverse.data.worlds import classes
from adverse.suts.hog_grid import CELL, cell_features, colour_table
from adverse.suts.hog_views import HogViews, ViewFinder
from recipe import LOGS, LOOKED, PER_LOG, ROUNDS, SEED
from scenes import HEIGHT, WIDTH, Frames, frames

BUNDLED = Path(__file__).parents[1] / "src" / "adverse" / "suts" / "bundled"
COLOURS = 16
ENLARGE, SCALE = 1.6, 1.2
"""How the detector is used: the largest image of its pyramid, and the ratio of sizes."""
COPIES = 2
"""So often each person is shown, mirrored, moved and resized by up to half a step of the search."""
STEPS = 80
SHRINK = 1e-3
"""Of the weights, in the loss of the SVM."""
EASY = -1.3
"""Windows without people that score lower have taught what they can and are forgotten."""
ALARMS = 0.01
"""Scores of the views are moved so that 0 is an alarm on this share of the frames without people."""
RIDGE = 30.0
Floats = NDArray[np.float32]
Image = NDArray[np.uint8]


class People(NamedTuple):
    """Windows around people: features (N, F), the people's boxes in cells (N, 4), places (N, 2).

    A place is the height of the window's middle and the window's own height, as parts of the image's.
    """

    features: Floats
    boxes: Floats
    places: Floats


class Shape(NamedTuple):
    """A view: its window in cells (width, height), the least and the most width of a person over height."""

    cells: tuple[int, int]
    slim: float
    wide: float
    cut: bool
    """Whether these people are cut off by the lower edge of the image."""


SHAPES = (
    Shape((7, 14), 0.0, 0.31, cut=False),
    Shape((8, 13), 0.31, 0.5, cut=False),
    Shape((10, 12), 0.5, 0.78, cut=False),
    Shape((12, 11), 0.78, 9.0, cut=False),
    Shape((8, 13), 0.0, 0.5, cut=True),
    Shape((11, 11), 0.5, 9.0, cut=True),
)
MARGIN = 2
"""Cells between a person and the window's upper and lower edge."""


def main() -> None:
    """Train, write the weights, and say how it went."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=BUNDLED)
    told = parser.parse_args()
    cv2.setNumThreads(1)
    started = time.monotonic()
    data = frames("orchard", "train", LOGS, PER_LOG)
    rng = np.random.default_rng(SEED)
    colours = _colours(data, rng)
    table = colour_table(colours)
    samples = [_people(data, shape, table, rng) for shape in SHAPES]
    views = [_view(shape, sample) for shape, sample in zip(SHAPES, samples, strict=True)]
    counts = [len(sample.features) for sample in samples]
    print(f"{counts} people after {time.monotonic() - started:.0f} s", flush=True)
    empty = rng.permutation(np.flatnonzero(~(data.boxes[:, :, 2] > 0).any(axis=1)))
    others = [
        [_anywhere(data, empty[:LOOKED], shape, sample.places, table, rng)]
        for shape, sample in zip(SHAPES, samples, strict=True)
    ]
    for number in range(ROUNDS):
        for view, people, wrong in zip(views, samples, others, strict=True):
            every = np.concatenate(wrong)
            weights = _fitted(people.features, every)
            wrong[:] = [every[every @ weights[:-1] + weights[-1] > EASY]]
            view["weights"], view["bias"] = _rounded(weights[:-1]), float(weights[-1])
        model = {"colours": colours.round(1).tolist(), "views": views}
        finder = ViewFinder(HogViews.model_validate(model), ENLARGE, SCALE)
        looked = data.images[empty[number * LOOKED : (number + 1) * LOOKED]]
        if number < ROUNDS - 1:
            for found in (found for image in looked for found in finder.windows(image, -0.8)):
                others[found.view].append(found.features[:6])
        counts = [sum(map(len, wrong)) for wrong in others]
        print(f"round {number + 1}: {counts} others after {time.monotonic() - started:.0f} s", flush=True)
    for view, alarm in zip(views, _alarms(finder, looked), strict=True):
        view["bias"] = float(view["bias"] - alarm)
    told.out.mkdir(parents=True, exist_ok=True)
    (told.out / "orchard-hog.json").write_text(json.dumps(model, separators=(",", ":")))


def _colours(data: Frames, rng: np.random.Generator) -> Floats:
    """Return the colours that pixels of people, and of all else, gather around."""
    pixels = []
    for row in rng.choice(len(data.images), 600, replace=False):
        person = data.labels[row] == classes.PERSON
        for part in (person, ~person):
            inside = data.images[row][part]
            pixels.append(inside[rng.integers(len(inside), size=60)] if len(inside) else inside[:0])
    values = np.concatenate(pixels).astype(np.float32)
    cv2.setRNGSeed(SEED)
    stop = (cv2.TERM_CRITERIA_EPS + cv2.TERM_CRITERIA_MAX_ITER, 30, 0.5)
    return cv2.kmeans(values, COLOURS, None, stop, 3, cv2.KMEANS_PP_CENTERS)[2]


def _people(data: Frames, shape: Shape, table: NDArray[np.uint8], rng: np.random.Generator) -> People:
    """Return windows around people of one shape."""
    made, boxes, places = [], [], []
    tall = shape.cells[1] - 2 * MARGIN
    for row, which in np.argwhere((data.boxes[:, :, 2] > 0) & ~data.ignore):
        x0, y0, x1, y1 = data.boxes[row, which].tolist()
        slim = (x1 - x0) / (y1 - y0)
        if (y1 > HEIGHT - 2) != shape.cut or not shape.slim <= slim < shape.wide:
            continue
        for copy in range(COPIES):
            # a cell is so many pixels; the detector tries sizes SCALE apart
            unit = max((y1 - y0) / tall, (x1 - x0) / (shape.cells[0] - 1)) * SCALE ** rng.uniform(-0.5, 0.5)
            left = (x0 + x1) / 2 / unit - shape.cells[0] / 2 + rng.uniform(-0.5, 0.5)
            top = (y0 + y1) / 2 / unit - shape.cells[1] / 2 + rng.uniform(-0.5, 0.5)
            seen, box = _window(data.images[row], shape, left, top, unit), np.array([x0, y0, x1, y1]) / unit
            box -= [left, top, left, top]
            if copy % 2:
                seen = np.ascontiguousarray(seen[:, ::-1])
                box = np.array([shape.cells[0] - box[2], box[1], shape.cells[0] - box[0], box[3]])
            made.append(_inner(seen, table))
            boxes.append(box)
            places.append(((top + shape.cells[1] / 2) * unit / HEIGHT, shape.cells[1] * unit / HEIGHT))
    return People(*(np.array(column, np.float32) for column in (made, boxes, places)))


def _anywhere(
    data: Frames,
    rows: NDArray[np.int64],
    shape: Shape,
    places: Floats,
    table: NDArray[np.uint8],
    rng: np.random.Generator,
) -> Floats:
    """Return windows of frames without people, at heights and of sizes at which there might be some."""
    made = []
    for row in rows:
        for middle, tall in places[rng.integers(len(places), size=10)]:
            unit = tall * HEIGHT / shape.cells[1]
            left, top = (
                rng.uniform(-2, WIDTH / unit + 2 - shape.cells[0]),
                middle * HEIGHT / unit - shape.cells[1] / 2,
            )
            made.append(_inner(_window(data.images[row], shape, left, top, unit), table))
    return np.array(made, np.float32)


def _alarms(finder: ViewFinder, images: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return for each view the score that its best window reaches on few of the images without people."""
    best = np.full((len(images), len(SHAPES)), -10.0)
    for row, image in enumerate(images):
        for found in finder.windows(image, -10.0):
            if len(found.scores):
                best[row, found.view] = max(best[row, found.view], found.scores[0])
    return np.quantile(best, 1 - ALARMS, axis=0)


def _window(image: Image, shape: Shape, left: float, top: float, unit: float) -> Image:
    """Return a window, with one cell more on each side, of cells that are `unit` pixels wide."""
    ratio = CELL / unit
    smooth = cv2.GaussianBlur(image, (0, 0), max(0.45 / ratio - 0.4, 0.01)) if ratio < 0.7 else image
    shift = 0.5 * ratio - 0.5
    move = np.array([[ratio, 0, CELL * (1 - left) + shift], [0, ratio, CELL * (1 - top) + shift]])
    size = ((shape.cells[0] + 2) * CELL, (shape.cells[1] + 2) * CELL)
    return cv2.warpAffine(smooth, move, size, flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)


def _inner(window: Image, table: NDArray[np.uint8]) -> Floats:
    return cell_features(window, table)[1:-1, 1:-1].reshape(-1)


def _view(shape: Shape, people: People) -> dict[str, object]:
    """Return a view that has learnt where people are, in the image and in its window, and no score yet."""
    features, boxes, _ = people
    mean, middle = boxes.mean(axis=0), features.mean(axis=0)
    spread = features - middle
    cover = spread.T @ spread + RIDGE * np.eye(spread.shape[1], dtype=np.float32)
    corrections = np.linalg.solve(cover, spread.T @ (boxes - mean))
    person = mean - middle @ corrections
    return {
        "cells": shape.cells,
        "person": person.tolist(),
        "corrections": _rounded(corrections.reshape(-1)),
        "bands": _bands(people.places),
    }


def _bands(places: Floats) -> list[tuple[float, ...]]:
    """Return for windows of rising height between which heights in the image nearly all their middles are."""
    middle, tall = places.T
    bands = []
    for knot in np.geomspace(*np.quantile(tall, (0.002, 0.998)), 8):
        near = np.abs(np.log(tall / knot)) <= max(0.2, np.sort(np.abs(np.log(tall / knot)))[20])
        low, high = np.quantile(middle[near], (0.01, 0.99))
        bands.append(tuple(round(float(value), 4) for value in (knot, low - 0.02, high + 0.02)))
    return bands


def _fitted(people: Floats, others: Floats) -> NDArray[np.float64]:
    """Return the weights and the bias of a linear SVM."""
    values = np.concatenate([people, others])
    sides = np.concatenate([np.ones(len(people)), -np.ones(len(others))]).astype(np.float32)
    share = np.where(sides > 0, 0.5 / len(people), 0.5 / len(others)).astype(np.float32)

    def loss(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        plain = weights.astype(np.float32)
        short = np.maximum(1 - sides * (values @ plain[:-1] + plain[-1]), 0)
        pull = -2 * sides * share * short
        slope = np.append(pull @ values, pull.sum()) + SHRINK * weights
        return float((share * short**2).sum() + SHRINK / 2 * (weights**2).sum()), slope

    start = np.zeros(values.shape[1] + 1)
    found: NDArray[np.float64] = minimize(
        loss, start, jac=True, method="L-BFGS-B", options={"maxiter": STEPS}
    ).x
    return found


def _rounded(values: NDArray[np.float32]) -> list[float]:
    return [float(f"{value:.4g}") for value in values]


if __name__ == "__main__":
    main()

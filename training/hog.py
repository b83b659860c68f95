"""Train the bundled HOG detector: python training/hog.py. Needs no PyTorch.

People are sorted into views by their shape. For each view a linear SVM learns windows around people against
windows from frames without any, and then again, several times, with the false alarms of the last round
added (Dalal and Triggs 2005, section 5). A ridge regression learns where in the window they are.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from adverse.data.worlds import classes
from adverse.suts.hog_views import HogViews, ViewFinder, colour_table
from hog_fit import background, box_regression, svm
from hog_windows import SCALE, SHAPES, Floats, Halves, People, Shape, anywhere, mirror, people
from recipe import HOG_LOGS, HOG_PER_LOG, LOOKED, ROUNDS, SEED
from scenes import Frames, frames

BUNDLED = Path(__file__).parents[1] / "src" / "adverse" / "suts" / "bundled"
COLOURS = 16
ENLARGE = 1.6
"""The largest image of the detector's pyramid."""
ALARM, PER_SIZE = -0.8, 4
"""A window without people that scores higher is a false alarm; so many are taken of each size."""
SPREAD = 800
"""So many frames without people show what windows look like anywhere."""
KEPT = 15_000
"""So many windows without people, the most difficult ones, a view remembers."""
QUIET = 0.01
"""Scores of the views are moved so that 0 is an alarm on this share of the frames without people."""


class Learner:
    """What is known of one view: its people, windows without people, and its weights so far."""

    def __init__(self, shape: Shape, sample: People, others: Halves) -> None:
        self.shape, self.sample, self.others = shape, sample, others
        self.spread = background(others)
        self.mirror = mirror(shape, others.shape[1])
        self.weights, self.bias = np.zeros(others.shape[1], np.float32), np.float32(0)
        self.quiet = 0.0

    def learn(self) -> None:
        """Fit the weights, then forget the windows that are easiest for them."""
        both = np.concatenate([self.others, self.others[:, self.mirror]])
        told = svm(self.sample.features, both, self.spread)
        self.weights, self.bias = told[:-1], told[-1]
        hardest = np.argsort(-(self.others.astype(np.float32) @ self.weights), kind="stable")[:KEPT]
        self.others = self.others[hardest]

    def view(self, *, final: bool) -> dict[str, object]:
        """Return the view as a model has it; its box and its trust only at the end."""
        constant, weights = np.zeros(4, np.float32), np.zeros((len(self.weights), 4), np.float32)
        if final:
            constant, weights = box_regression(self.sample.features, self.sample.boxes)
        return {
            "cells": self.shape.cells,
            "bands": _bands(self.sample.places),
            "bias": float(self.bias) - self.quiet + (self.shape.trust if final else 0),
            "weights": _rounded(self.weights),
            "person": constant.tolist(),
            "corrections": _rounded(weights.reshape(-1)),
        }


def main() -> None:
    """Train, write the weights, and say how it went."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=BUNDLED)
    told = parser.parse_args()
    cv2.setNumThreads(1)
    started = time.monotonic()
    data = frames("orchard", "train", HOG_LOGS, HOG_PER_LOG)
    rng = np.random.default_rng(SEED)
    colours = _colours(data, rng)
    table = colour_table(colours)
    empty = rng.permutation(np.flatnonzero(~(data.boxes[:, :, 2] > 0).any(axis=1)))
    learners = []
    for shape in SHAPES:
        sample = people(data, shape, table, rng)
        others = anywhere(data, empty[:SPREAD], shape, sample.places, table, rng)
        learners.append(Learner(shape, sample, others))
        spent = time.monotonic() - started
        print(f"{len(sample.features)} windows of people after {spent:.0f} s", flush=True)
    for number in range(ROUNDS):
        for learner in learners:
            learner.learn()
        looked = data.images[empty[number * LOOKED : (number + 1) * LOOKED]]
        finder = ViewFinder(HogViews.model_validate(_model(colours, learners, final=False)), ENLARGE, SCALE)
        if number < ROUNDS - 1:
            _mine(finder, looked, learners)
        counts = [len(learner.others) for learner in learners]
        print(f"round {number + 1}: {counts} others after {time.monotonic() - started:.0f} s", flush=True)
    _calm(finder, looked, learners)
    told.out.mkdir(parents=True, exist_ok=True)
    model = _model(colours, learners, final=True)
    (told.out / "orchard-hog.json").write_text(json.dumps(model, separators=(",", ":")))


def _model(colours: Floats, learners: list[Learner], *, final: bool) -> dict[str, object]:
    return {
        "colours": colours.round(1).tolist(),
        "views": [learner.view(final=final) for learner in learners],
    }


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


def _mine(finder: ViewFinder, images: NDArray[np.uint8], learners: list[Learner]) -> None:
    """Add the false alarms on images without people to what each view knows."""
    alarms: list[list[Halves]] = [[one.others] for one in learners]
    for found in (found for image in images for found in finder.windows(image, ALARM)):
        alarms[found.view].append(found.features[:PER_SIZE].astype(np.float16))
    for learner, seen in zip(learners, alarms, strict=True):
        learner.others = np.concatenate(seen)


def _calm(finder: ViewFinder, images: NDArray[np.uint8], learners: list[Learner]) -> None:
    """Set for each view the score that its best window reaches on few of the images without people."""
    best = np.full((len(images), len(learners)), -10.0)
    for row, image in enumerate(images):
        for found in finder.windows(image, -10.0):
            if len(found.scores):
                best[row, found.view] = max(best[row, found.view], found.scores[0])
    for learner, quiet in zip(learners, np.quantile(best, 1 - QUIET, axis=0), strict=True):
        learner.quiet = float(quiet)


def _bands(places: Floats) -> list[tuple[float, ...]]:
    """Return for windows of rising height between which heights in the image nearly all their middles are."""
    middle, tall = places.T
    bands = []
    for knot in np.geomspace(*np.quantile(tall, (0.002, 0.998)), 8):
        near = np.abs(np.log(tall / knot)) <= max(0.2, np.sort(np.abs(np.log(tall / knot)))[20])
        low, high = np.quantile(middle[near], (0.01, 0.99))
        bands.append(tuple(round(float(value), 4) for value in (knot, low - 0.02, high + 0.02)))
    return bands


def _rounded(values: Floats) -> list[float]:
    return [float(f"{value:.4g}") for value in values]


if __name__ == "__main__":
    main()

"""A HOG model of several views: its scores are those of a slow loop, its boxes are where they should be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from adverse.errors import SutError
from adverse.suts.hog_views import (
    PAD,
    HogView,
    HogViews,
    ViewFinder,
    cell_features,
    colour_table,
    read_hog_model,
)
from adverse.suts.opencv_hog import opencv_hog
from adverse.types import Image

COLOURS = [[100.0, 100.0, 100.0], [220.0, 30.0, 30.0]]
DEPTH = 13 + len(COLOURS)


def view(wide: int, high: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    count = wide * high * DEPTH
    return {
        "cells": [wide, high],
        "bias": 0.25,
        "weights": rng.normal(0, 0.1, count).tolist(),
        "bands": [[0.01, -9.0, 9.0], [9.0, -9.0, 9.0]],
        "person": [1.0, 1.0, wide - 1.0, high - 1.0],
        "corrections": [0.0] * (4 * count),
    }


MODEL: dict[str, Any] = {"colours": COLOURS, "views": [view(4, 6, 1), view(5, 5, 2)]}
RED = {**view(4, 6, 3), "bias": -10.0}
RED["weights"] = np.tile([0.0] * 14 + [0.5], 24).tolist()  # likes red cells, nothing else


def noise(width: int = 70, height: int = 50) -> Image:
    return np.random.default_rng(9).integers(0, 256, (height, width, 3), np.uint8)


def test_the_scores_are_those_of_every_window_by_itself() -> None:
    image = noise()
    finder = ViewFinder(HogViews.model_validate(MODEL), enlarge=1.0, scale=10.0)
    first, second = finder.windows(image, threshold=-100.0)
    edge = PAD * 4
    padded = cv2.copyMakeBorder(image, edge, edge, edge, edge, cv2.BORDER_REPLICATE).astype(np.uint8)
    cells = cell_features(padded, colour_table(np.array(COLOURS, np.float32)))
    for found, told in ((first, MODEL["views"][0]), (second, MODEL["views"][1])):
        wide, high = told["cells"]
        slow = {}
        for row in range(cells.shape[0] - high + 1):
            for column in range(cells.shape[1] - wide + 1):
                seen = cells[row : row + high, column : column + wide].reshape(-1)
                score = seen @ np.array(told["weights"]) + told["bias"]
                slow[((column - PAD + 1) * 4.0, (row - PAD + 1) * 4.0)] = float(score)
        best = sorted(slow.values(), reverse=True)[: len(found.scores)]
        np.testing.assert_allclose(found.scores, best, rtol=1e-4, atol=1e-5)
        for box, score in zip(found.boxes, found.scores, strict=True):
            assert slow[float(box[0]), float(box[1])] == pytest.approx(float(score), rel=1e-4, abs=1e-5)
            assert (box[2] - box[0], box[3] - box[1]) == ((wide - 2) * 4, (high - 2) * 4)


def test_windows_are_put_only_where_their_band_is() -> None:
    # windows of 24 pixels in an image of 120: a fifth; the band is half way between the two that are told
    told = HogView.model_validate({**view(4, 6, 1), "bands": [[0.1, 0.2, 0.4], [0.4, 0.4, 0.6]]})
    start, stop = told.rows(120)
    middles = [((row - PAD) * 4 + 12) / 120 for row in range(start - 1, stop + 1)]
    assert middles[0] < 0.3 <= middles[1]
    assert middles[-2] <= 0.5 < middles[-1]
    assert told.rows(30) == (0, 0)  # too tall there
    assert told.rows(1000) == (0, 0)  # too small


def test_a_band_only_takes_windows_away() -> None:
    narrow = {**MODEL["views"][0], "bands": [[0.01, 0.3, 0.6], [9.0, 0.3, 0.6]]}
    every, some = (
        next(
            ViewFinder(HogViews.model_validate({"colours": COLOURS, "views": [one]}), 1.0, 10.0).windows(
                noise(), -99
            )
        )
        for one in (MODEL["views"][0], narrow)
    )
    middle = every.boxes[:, 1::2].mean(axis=1) / 50
    inside = (middle >= 0.3) & (middle <= 0.6)
    assert inside.any()
    assert not inside.all()
    known = {tuple(box): score for box, score in zip(some.boxes.tolist(), some.scores.tolist(), strict=True)}
    for box, score in zip(every.boxes[inside].tolist(), every.scores[inside].tolist(), strict=True):
        assert known[tuple(box)] == pytest.approx(score, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("enlarge", [1.0, 2.0])
def test_the_detector_finds_a_red_post_at_its_place(tmp_path: Path, enlarge: float) -> None:
    path = tmp_path / "red.json"
    path.write_text(json.dumps({"colours": COLOURS, "views": [RED]}))
    image = np.full((120, 160, 3), 100, np.uint8)
    image[40:64, 80:96] = (220, 30, 30)
    best = opencv_hog(model=path, enlarge=enlarge, scale=1.2).detect([image])[0]
    assert len(best) > 0
    x0, y0, x1, y1 = best.boxes[0]
    assert 80 <= (x0 + x1) / 2 <= 96
    assert 40 <= (y0 + y1) / 2 <= 64


def test_corrections_move_the_box() -> None:
    corrections = np.zeros((24, DEPTH, 4))
    corrections[:, -1, 0] = -0.5 / 24  # half a cell to the left where all is red
    moved = {**RED, "corrections": corrections.reshape(-1).tolist()}
    image = np.full((60, 80, 3), (220, 30, 30), np.uint8)
    plain, other = (
        next(
            ViewFinder(HogViews.model_validate({"colours": COLOURS, "views": [one]}), 1.0, 2.0).windows(
                image, 0
            )
        )
        for one in (RED, moved)
    )
    expected = np.tile([-2.0, 0.0, 0.0, 0.0], (len(plain.boxes), 1))
    np.testing.assert_allclose(other.boxes - plain.boxes, expected, atol=1e-4)


def test_nothing_is_found_in_an_image_smaller_than_the_window(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_text(json.dumps({"colours": COLOURS, "views": [view(20, 20, 1)]}))
    assert len(opencv_hog(model=path, hit_threshold=-100).detect([noise(20, 10)])[0]) == 0


@pytest.mark.parametrize(
    "wrong", [{"views": []}, {"colours": []}, {"views": [{**RED, "weights": [1.0]}]}, {"x": 1}]
)
def test_a_wrong_model_is_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    path = tmp_path / "model.json"
    path.write_text(json.dumps({**MODEL, **wrong}))
    with pytest.raises(SutError, match="HOG model"):
        read_hog_model(path)

"""The features of cells squared, against slow loops over OpenCV's blocks and over pixels."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from adverse.suts.hog_views import BINS, CELL, cell_features, colour_table
from adverse.types import Image

COLOURS = np.array([[20, 20, 20], [200, 40, 40], [60, 160, 70]], np.float32)


def image(width: int = 46, height: int = 33) -> Image:
    rng = np.random.default_rng(5)
    return cv2.GaussianBlur(rng.integers(0, 256, (height, width, 3), np.uint8), (0, 0), 1.5).astype(np.uint8)


def test_a_cell_has_the_mean_of_its_normalized_histograms_and_how_strong_they_are() -> None:
    picture = image()
    found = cell_features(picture, colour_table(COLOURS)) ** 2
    rows, columns = 33 // CELL, 46 // CELL
    assert found.shape == (rows, columns, BINS + 4 + len(COLOURS))
    cut = np.ascontiguousarray(picture[: rows * CELL, : columns * CELL])
    hog = cv2.HOGDescriptor((columns * CELL, rows * CELL), (8, 8), (4, 4), (4, 4), BINS)
    flat = np.asarray(hog.compute(cut)).reshape(-1)
    for row in range(1, rows - 1):
        for column in range(1, columns - 1):
            seen = []
            for x in (0, 1):
                for y in (
                    0,
                    1,
                ):  # this cell is the one right and below by x, y in the block that starts there
                    block = (column - x) * (rows - 1) + row - y
                    start = (block * 4 + x * 2 + y) * BINS
                    seen.append(flat[start : start + BINS])
            np.testing.assert_allclose(found[row, column, :BINS], np.mean(seen, axis=0), rtol=1e-5, atol=1e-7)
            strengths = [float(one.mean()) for one in seen]
            np.testing.assert_allclose(found[row, column, BINS : BINS + 4], strengths, rtol=1e-5, atol=1e-7)


def test_a_cell_has_the_share_of_each_colour() -> None:
    picture = image()
    shares = cell_features(picture, colour_table(COLOURS))[..., BINS + 4 :] ** 2
    np.testing.assert_allclose(shares.sum(axis=2), 1, atol=1e-6)
    for row, column in ((0, 0), (3, 5), (7, 10)):
        pixels = picture[row * 4 : row * 4 + 4, column * 4 : column * 4 + 4].reshape(-1, 3)
        middles = pixels // 8 * 8 + 4.0  # the table has steps of 8
        nearest = [int(((COLOURS - pixel) ** 2).sum(axis=1).argmin()) for pixel in middles]
        counted = [nearest.count(k) / 16 for k in range(len(COLOURS))]
        np.testing.assert_allclose(shares[row, column], counted, atol=1e-6)


@pytest.mark.parametrize("colour", [0, 1, 2])
def test_a_plain_image_is_all_of_its_colour_and_has_no_edges(colour: int) -> None:
    plain = np.full((24, 24, 3), COLOURS[colour], np.uint8)
    found = cell_features(plain, colour_table(COLOURS))
    assert (found[..., : BINS + 4] == 0).all()
    assert (found[..., BINS + 4 + colour] == 1).all()

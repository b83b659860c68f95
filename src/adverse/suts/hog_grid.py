"""What a HOG detector sees: for every cell of an image, edges by direction and the share of each colour.

The edges are OpenCV's HOG blocks (Dalal, Triggs 2005), folded to one vector for each cell (Felzenszwalb et
al. 2010, section 6): the mean of its four normalized histograms, and how strong each of the four is. All
are given as square roots, so that a little of something where there was none says more than a little more
of much (the Hellinger kernel of Vedaldi, Zisserman 2012).
"""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

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
        cv2.resize((seen == one).astype(np.float32), (columns, rows), interpolation=cv2.INTER_AREA)
        for one in range(int(table.max()) + 1)
    ]
    return np.stack(shares, axis=2).astype(np.float32)

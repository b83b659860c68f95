"""Label maps of segmenters in colours: laid over a frame, or by themselves."""

from __future__ import annotations

import colorsys
from functools import cache

import cv2
import numpy as np
from numpy.typing import NDArray

from adverse.store.read import Store
from adverse.types import Image

PALETTE = ("#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7", "#000000")
"""Okabe and Ito's, for the first labels; those beyond take hues as far apart as can be."""
LABELS = 256
GOLDEN = 0.618034
OPACITY = 0.55


def label_map(store: Store, sut: str, setting: str, frame: str) -> NDArray[np.uint8] | None:
    """Return the labels (H,W) that a segmenter gave a frame; None where the run did not keep them."""
    record = store.record(sut, setting, frame)
    if record is None or record["label_map"] is None:
        return None
    labels = np.asarray(cv2.imdecode(np.frombuffer(record["label_map"], np.uint8), cv2.IMREAD_UNCHANGED))
    return np.asarray(labels.astype(np.int64) % LABELS, np.uint8)


def coloured(labels: NDArray[np.uint8]) -> Image:
    """Return labels (H,W) as colours (H,W,3)."""
    return label_colours()[labels]


def laid_over(image: Image, labels: NDArray[np.uint8], *, bare: int) -> Image:
    """Return a frame with its labels over it, half transparent, but for one of them (as background)."""
    size = (image.shape[1], image.shape[0])
    labels = np.asarray(cv2.resize(labels, size, interpolation=cv2.INTER_NEAREST), np.uint8)
    drawn = np.asarray(cv2.addWeighted(image, 1 - OPACITY, coloured(labels), OPACITY, 0), np.uint8)
    return np.where((labels == bare)[..., None], image, drawn)


def most_frequent(labels: NDArray[np.uint8]) -> int:
    """Return the label that most pixels have."""
    return int(np.bincount(labels.ravel()).argmax())


@cache
def label_colours() -> NDArray[np.uint8]:
    """Return the colour of every label (256, 3), RGB."""
    first = [[int(colour[n : n + 2], 16) for n in (1, 3, 5)] for colour in PALETTE]
    rest = [colorsys.hsv_to_rgb(n * GOLDEN % 1, 0.55, 0.9) for n in range(LABELS - len(first))]
    return np.array([*first, *(np.array(rest) * 255).round().tolist()]).astype(np.uint8)

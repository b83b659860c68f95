"""Scores of segmenters from counts of pixels by true and predicted class.

Counts are (..., C, C + 1): row t, column p are the pixels of class t that were called p; the last column
holds what was called something that is no class of the data set, or nothing at all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Counts = NDArray[Any]


def iou_parts(counts: Counts) -> tuple[Array, Array]:
    """Return, for each class, the pixels it was rightly found at, and those where it is or was said to be.

    Both are (..., C); the first over the second is the intersection over union.
    """
    square = counts[..., :-1].astype(np.float64)
    right = np.diagonal(square, axis1=-2, axis2=-1)
    true = counts.sum(axis=-1, dtype=np.float64)
    return right, true + square.sum(axis=-2) - right


def iou(counts: Counts) -> Array:
    """Return the intersection over union of each class; NaN for a class that is neither there nor said.

    >>> iou(np.array([[3, 1, 0], [0, 4, 0]])).tolist()
    [0.75, 0.8]
    """
    right, union = iou_parts(counts)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(union > 0, right / union, np.nan)


def mean_iou(counts: Counts) -> Array:
    """Return the mean over the classes that are there or were said; NaN where there is none."""
    right, union = iou_parts(counts)
    classes = (union > 0).sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        total = np.where(union > 0, right / union, 0.0).sum(axis=-1)
        return np.where(classes > 0, total / classes, np.nan)


def pixel_accuracy(counts: Counts) -> Array:
    """Return the share of judged pixels whose class was said; NaN where none is judged."""
    right, _ = iou_parts(counts)
    judged = counts.sum(axis=(-2, -1), dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(judged > 0, right.sum(axis=-1) / judged, np.nan)

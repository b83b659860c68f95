"""Scores of segmenters from counts of pixels by true and predicted class.

Counts are (..., C, C + 1): row t, column p are the pixels of class t that were called p; the last column
holds pixels predicted as no class of the data set, or not at all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Counts = NDArray[Any]


def iou_parts(counts: Counts) -> tuple[Array, Array]:
    """Return, for each class, its true positives, and the union of its true and predicted pixels.

    Both are (..., C); the first over the second is the intersection over union.
    """
    square = counts[..., :-1].astype(np.float64)
    right = np.diagonal(square, axis1=-2, axis2=-1)
    true = counts.sum(axis=-1, dtype=np.float64)
    return right, true + square.sum(axis=-2) - right


def iou(counts: Counts) -> Array:
    """Return the intersection over union of each class; NaN for one neither present nor predicted.

    >>> iou(np.array([[3, 1, 0], [0, 4, 0]])).tolist()
    [0.75, 0.8]
    """
    right, union = iou_parts(counts)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(union > 0, right / union, np.nan)


def mean_iou(counts: Counts) -> Array:
    """Return the mean over the classes that are present or predicted; NaN where there is none."""
    right, union = iou_parts(counts)
    classes = (union > 0).sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        total = np.where(union > 0, right / union, 0.0).sum(axis=-1)
        return np.where(classes > 0, total / classes, np.nan)


def pixel_accuracy(counts: Counts) -> Array:
    """Return the share of evaluated pixels whose class is right; NaN where none is evaluated."""
    right, _ = iou_parts(counts)
    judged = counts.sum(axis=(-2, -1), dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(judged > 0, right.sum(axis=-1) / judged, np.nan)

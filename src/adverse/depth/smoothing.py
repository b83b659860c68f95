"""Edge-aware refinement of a noisy map with confidence: a fast global smoother.

Weighted least squares (data term by confidence, smoothness cut at the edges of a guide image) solved as
one-dimensional systems along rows and columns in turn, with less smoothing each time (Min et al. 2014). Map
times confidence and confidence are smoothed alike; their ratio is the result, so that what is unsure takes
its value from sure pixels that look alike and are connected.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from adverse.types import Image

ITERATIONS = 3
ATTENUATION = 4.0
"""How much weaker the smoothing is from one iteration to the next."""
_LEAST = 1e-12

Floats = NDArray[np.float32]


class Smoothed(NamedTuple):
    """The refined map (H,W), and how much confidence reached each pixel (H,W)."""

    values: Floats
    support: Floats


def fast_global_smoother(
    values: Floats,
    confidence: Floats,
    guide: Image,
    *,
    strength: float = 50.0,
    edge_levels: float = 9.0,
    cut: NDArray[np.bool_] | None = None,
) -> Smoothed:
    """Smooth values (H,W) by confidence (H,W) in 0..1, along what looks alike in a guide (H,W,3).

    `strength` is the weight of smoothness against data; a step of `edge_levels` in the guide weakens it
    e-fold. Nothing passes between pixels inside and outside of `cut`. Where no confidence arrives, values
    stay.

    >>> values = np.array([[1, 1, 9, 5, 5]], np.float32)
    >>> sure = np.array([[1, 1, 0, 1, 1]], np.float32)
    >>> guide = np.repeat(np.array([[[9], [9], [9], [200], [200]]], np.uint8), 3, axis=2)
    >>> fast_global_smoother(values, sure, guide).values.round(2)
    array([[1., 1., 1., 5., 5.]], dtype=float32)
    """
    across, down = _likeness(guide, edge_levels, cut)
    data = np.ascontiguousarray(values * confidence, np.float32)
    weight = np.ascontiguousarray(confidence, np.float32).copy()
    total = ATTENUATION**ITERATIONS - 1
    for turn in range(ITERATIONS):
        share = 1.5 * ATTENUATION ** (ITERATIONS - 1 - turn) / total * strength
        _along_rows(data, weight, across, np.float32(share))
        _along_columns(data, weight, down, np.float32(share))
    with np.errstate(invalid="ignore", divide="ignore"):
        smooth = np.where(weight > _LEAST, data / weight, values).astype(np.float32)
    return Smoothed(smooth, weight)


def _likeness(guide: Image, levels: float, cut: NDArray[np.bool_] | None) -> tuple[Floats, Floats]:
    """Return how alike neighbours are, 0..1: across (H,W-1) and down (H-1,W)."""
    table = np.exp(-np.arange(256) / levels).astype(np.float32)
    found = []
    for one, other, axis in (
        (guide[:, :-1], guide[:, 1:], 1),
        (guide[:-1], guide[1:], 0),
    ):
        step = np.maximum(one, other) - np.minimum(one, other)
        alike = table[
            step if step.ndim == 2 else np.maximum(np.maximum(step[..., 0], step[..., 1]), step[..., 2])
        ]
        if cut is not None:
            alike[np.diff(cut, axis=axis)] = 0
        found.append(np.ascontiguousarray(alike))
    return found[0], found[1]


@njit(cache=True, nogil=True, error_model="numpy")  # type: ignore[untyped-decorator, unused-ignore]
def _along_rows(data: Any, weight: Any, alike: Any, strength: Any) -> None:  # pragma: no cover - compiled
    """Solve the tridiagonal system of each row in place, for data and weight at once."""
    rows, columns = data.shape
    upper = np.empty(columns, np.float32)
    for y in range(rows):
        before = np.float32(0.0)  # coupling with the pixel to the left
        for x in range(columns):
            after = strength * alike[y, x] if x + 1 < columns else np.float32(0.0)
            diagonal = np.float32(1.0) + before + after
            if x:
                pivot = np.float32(1.0) / (diagonal - before * upper[x - 1])
                data[y, x] = (data[y, x] + before * data[y, x - 1]) * pivot
                weight[y, x] = (weight[y, x] + before * weight[y, x - 1]) * pivot
            else:
                pivot = np.float32(1.0) / diagonal
                data[y, x] *= pivot
                weight[y, x] *= pivot
            upper[x] = after * pivot
            before = after
        for x in range(columns - 2, -1, -1):
            data[y, x] += upper[x] * data[y, x + 1]
            weight[y, x] += upper[x] * weight[y, x + 1]


@njit(cache=True, nogil=True, error_model="numpy")  # type: ignore[untyped-decorator, unused-ignore]
def _along_columns(data: Any, weight: Any, alike: Any, strength: Any) -> None:  # pragma: no cover - compiled
    """Solve the tridiagonal system of each column in place; row by row, so that memory is read in order."""
    rows, columns = data.shape
    upper = np.empty((rows, columns), np.float32)
    for y in range(rows):
        for x in range(columns):
            after = strength * alike[y, x] if y + 1 < rows else np.float32(0.0)
            before = strength * alike[y - 1, x] if y else np.float32(0.0)
            diagonal = np.float32(1.0) + before + after
            if y:
                pivot = np.float32(1.0) / (diagonal - before * upper[y - 1, x])
                data[y, x] = (data[y, x] + before * data[y - 1, x]) * pivot
                weight[y, x] = (weight[y, x] + before * weight[y - 1, x]) * pivot
            else:
                pivot = np.float32(1.0) / diagonal
                data[y, x] *= pivot
                weight[y, x] *= pivot
            upper[y, x] = after * pivot
    for y in range(rows - 2, -1, -1):
        for x in range(columns):
            data[y, x] += upper[y, x] * data[y + 1, x]
            weight[y, x] += upper[y, x] * weight[y + 1, x]

"""The area that a trade-off curve dominates, and the same for more than two objectives."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def area(safety: ArrayLike, efficiency: ArrayLike) -> float:
    """Return the area of the union of the rectangles [0, efficiency] x [0, safety] of all points.

    It never credits performance between points that was not realised (Pezzementi et al. 2021, section 6).
    Points may come in any order; no points have area 0.

    >>> area([1, 0], [0, 1])
    0.0
    >>> area([0.5, 1.0], [1.0, 0.5])
    0.75
    """
    s = np.asarray(safety, np.float64).ravel()
    e = np.asarray(efficiency, np.float64).ravel()
    if s.shape != e.shape:
        raise ValueError(f"safety and efficiency differ in length: {len(s)} and {len(e)}")
    if np.isnan(s).any() or np.isnan(e).any() or (s < 0).any() or (e < 0).any():
        raise ValueError("a curve's safety and efficiency must be numbers >= 0")
    return float(areas(s, e))


def areas(safety: NDArray[np.float64], efficiency: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the area of many curves at once: (..., K) points each, (...) areas, without any checks.

    >>> areas(np.array([[0.5, 1.0], [1.0, 1.0]]), np.array([[1.0, 0.5], [0.5, 1.0]]))
    array([0.75, 1.  ])
    """
    reached, width, _ = staircase(safety, efficiency)
    total: NDArray[np.float64] = np.sum(reached * width, axis=-1)
    return total


def staircase(
    safety: NDArray[np.float64], efficiency: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64] | None]:
    """Return the steps whose heights times widths add up to the area, from high efficiency to low.

    All arrays are (..., K). Step j is as wide as the j-th efficiency is above the next one, and as high as
    the best safety reached so far. The third array is the order of the points, None when they came in it.
    """
    order: NDArray[np.int64] | None = None
    if (np.diff(efficiency, axis=-1) > 0).any():
        order = np.argsort(-efficiency, axis=-1, kind="stable")
        safety = np.take_along_axis(safety, order, axis=-1)
        efficiency = np.take_along_axis(efficiency, order, axis=-1)
    reached: NDArray[np.float64] = np.maximum.accumulate(safety, axis=-1)
    return reached, -np.diff(efficiency, axis=-1, append=0.0), order


def hypervolume(points: ArrayLike) -> float:
    """Return the volume of the union of the boxes [0, p] of `points` (n, m), m >= 2 objectives.

    With two objectives it is `area`. The last objective is cut into slices at the values of the points; a
    slice is as thick as the step and holds what the points above it dominate in the other objectives. No
    points have volume 0. The time grows as n to the power m - 1: fine for curves and a few objectives.

    >>> hypervolume([[1, 1, 0.5], [0.5, 0.5, 1]])
    0.625
    """
    given = np.asarray(points, np.float64)
    if given.size == 0:
        return 0.0
    if given.ndim != 2 or given.shape[1] < 2:
        raise ValueError(f"points must be (n, m) with m >= 2 objectives, not {given.shape}")
    if not np.isfinite(given).all() or (given < 0).any():
        raise ValueError("points must be numbers >= 0")
    return _volume(given)


def _volume(points: NDArray[np.float64]) -> float:
    points = points[(points > 0).all(axis=1)]  # a box without extent in one objective is empty
    if points.shape[1] == 2:
        return float(areas(points[:, 0], points[:, 1]))
    points = points[np.argsort(-points[:, -1], kind="stable")]
    thickness = -np.diff(points[:, -1], append=0.0)
    total = 0.0
    for slab in np.flatnonzero(thickness):
        total += float(thickness[slab]) * _volume(points[: slab + 1, :-1])
    return total

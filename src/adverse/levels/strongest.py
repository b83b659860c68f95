"""The detections of each frame, strongest first; equals in an order that does not depend on storage."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray


def strongest_first(
    offsets: NDArray[np.int64], scores: NDArray[np.float32], ties: NDArray[np.floating]
) -> NDArray[np.int64]:
    """Return the order of detections by falling score within each row, those of row r before those of r+1.

    The detections of row r are `offsets[r]:offsets[r+1]`. Equal scores go by their columns of `ties` (N,M),
    smallest first, NaN last.

    >>> strongest_first(np.array([0, 3]), np.float32([1, 2, 1]), np.array([[5.0], [0], [4]]))
    array([1, 2, 0])
    """
    order: NDArray[np.int64] = _strongest_first(offsets, scores, np.ascontiguousarray(ties))
    return order


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _strongest_first(offsets: Any, scores: Any, ties: Any) -> Any:  # pragma: no cover - compiled
    order = np.arange(len(scores))
    for row in range(len(offsets) - 1):
        for place in range(offsets[row] + 1, offsets[row + 1]):
            i = place
            while i > offsets[row] and _before(place, order[i - 1], scores, ties):
                order[i] = order[i - 1]
                i -= 1
            order[i] = place
    return order


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _before(a: int, b: int, scores: Any, ties: Any) -> bool:  # pragma: no cover - compiled
    if scores[a] != scores[b]:
        return bool(scores[a] > scores[b])
    for m in range(ties.shape[1]):
        first, second = ties[a, m], ties[b, m]
        if first == second or (np.isnan(first) and np.isnan(second)):
            continue
        return bool(first < second or np.isnan(second))
    return False

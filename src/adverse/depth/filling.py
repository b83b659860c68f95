"""Fill what a map does not know from its surroundings: along each row, from the side that is farther away.

What one camera of a pair sees and the other does not lies behind what hides it, so it belongs to the
farther of its two neighbours: the smaller disparity.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float32]


def filled_from_farther(disparity: Floats, valid: NDArray[np.bool_]) -> Floats:
    """Return disparity (H,W) with every pixel filled that is not valid.

    A row without any valid pixel takes the values of the nearest row that has some.

    >>> row = np.array([[0, 7, 0, 3, 0]], np.float32)
    >>> filled_from_farther(row, row > 0)
    array([[7., 7., 3., 3., 3.]], dtype=float32)
    """
    filled = np.ascontiguousarray(disparity, np.float32).copy()
    _fill(filled, np.ascontiguousarray(valid))
    return filled


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _fill(values: Any, valid: Any) -> None:  # pragma: no cover - compiled
    rows, columns = values.shape
    done = np.zeros(rows, np.bool_)
    for y in range(rows):
        done[y] = _fill_row(values[y], valid[y], columns)
    for y in range(1, rows):
        if done[y - 1] and not done[y]:
            values[y], done[y] = values[y - 1], True
    for y in range(rows - 2, -1, -1):
        if done[y + 1] and not done[y]:
            values[y], done[y] = values[y + 1], True


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _fill_row(values: Any, valid: Any, columns: int) -> bool:  # pragma: no cover - compiled
    """Fill one row, or return False where nothing in it is valid."""
    last = -1  # the valid pixel before
    for x in range(columns):
        if valid[x]:
            least = values[x] if last < 0 else min(values[last], values[x])
            values[last + 1 : x] = least
            last = x
    if last >= 0:
        values[last + 1 :] = values[last]
    return last >= 0

"""Fill what a map does not know from its surroundings: along each row, from the side that is farther away.

What one camera of a pair sees and the other does not lies behind what hides it, so it belongs to the farther of
its two neighbours: the smaller disparity.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float32]


def filled_from_farther(disparity: Floats, valid: NDArray[np.bool_]) -> Floats:
    """Return disparity (H,W) with every pixel that is not valid filled; rows without any take the row above's.

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
    empty = np.zeros(rows, np.bool_)
    for y in range(rows):
        last = -1  # the valid pixel before
        for x in range(columns + 1):
            if x < columns and not valid[y, x]:
                continue
            for gap in range(last + 1, x):
                if last < 0 and x == columns:
                    empty[y] = True
                elif last < 0:
                    values[y, gap] = values[y, x]
                elif x == columns:
                    values[y, gap] = values[y, last]
                else:
                    values[y, gap] = min(values[y, last], values[y, x])
            last = x
    for y in range(1, rows):
        if empty[y] and not empty[y - 1]:
            values[y] = values[y - 1]
            empty[y] = False
    for y in range(rows - 2, -1, -1):
        if empty[y] and not empty[y + 1]:
            values[y] = values[y + 1]
            empty[y] = False

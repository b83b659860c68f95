"""The depth of a box: the median of its rows' medians (Pezzementi et al. 2021, section 6.1.1).

NaN, zero and negative pixels are left out; a box without any valid pixel has no depth (NaN). The sky's +inf
counts as far away.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from adverse.types import Depth


def box_depths_m(depth_m: Depth, boxes: NDArray[np.floating]) -> NDArray[np.float32]:
    """Return the depth (N,) in metres of boxes (N,4) xyxy on a depth map (H,W).

    >>> box_depths_m(np.array([[2, 4, np.nan]], np.float32), np.array([[0, 0, 3, 1]], np.float32))
    array([3.], dtype=float32)
    """
    depths: NDArray[np.float32] = _box_depths(np.ascontiguousarray(depth_m), np.asarray(boxes, np.float64))
    return depths


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _box_depths(depth: Any, boxes: Any) -> Any:  # pragma: no cover - compiled
    rows, columns = depth.shape
    depths = np.full(len(boxes), np.nan, np.float32)
    line = np.empty(columns, np.float32)
    medians = np.empty(rows, np.float32)
    for b in range(len(boxes)):
        left, right = max(int(np.floor(boxes[b, 0])), 0), min(int(np.ceil(boxes[b, 2])), columns)
        top, bottom = max(int(np.floor(boxes[b, 1])), 0), min(int(np.ceil(boxes[b, 3])), rows)
        rows_used = 0
        for y in range(top, bottom):
            count = 0
            for x in range(left, right):
                if depth[y, x] > 0:
                    line[count] = depth[y, x]
                    count += 1
            if count:
                medians[rows_used] = np.median(line[:count])
                rows_used += 1
        if rows_used:
            depths[b] = np.median(medians[:rows_used])
    return depths

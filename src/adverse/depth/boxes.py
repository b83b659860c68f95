"""The depth of a box: how far away the object is that the box was drawn around.

A box holds more than its object: ground before it, background beside it, sometimes something in front.

- `foreground`, the default: pixels count by how near they are to the middle of the box, and depth is that of
  the nearest of the strong modes of their log-depth. docs/localizer.md has its errors on the rendered worlds.
- `box_median`: the median of the rows' medians (Pezzementi et al. 2021, section 6.1.1).

NaN, zero and negative pixels are left out; a box without any valid pixel has no depth (NaN). The sky's +inf
counts as far away: a box that holds mostly sky is at +inf.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.types import Depth, Localizer


def box_depths_m(
    depth_m: Depth, boxes: NDArray[np.floating], localizer: Localizer = "foreground"
) -> NDArray[np.float32]:
    """Return the depth (N,) in metres of boxes (N,4) xyxy on a depth map (H,W).

    >>> depth = np.array([[9, 9, 4, np.nan, 9], [9, 4, 4, 9, 9], [0, 9, 4, 9, 9]], np.float32)
    >>> box_depths_m(depth, np.array([[0, 0, 5, 3]], np.float32))
    array([4.], dtype=float32)
    >>> box_depths_m(depth, np.array([[0, 0, 5, 3]], np.float32), "box_median")
    array([9.], dtype=float32)
    """
    from adverse.depth import box_kernels  # noqa: PLC0415 - numba is slow to import, and many runs have no depth

    read = box_kernels.foreground if localizer == "foreground" else box_kernels.box_medians
    found: NDArray[np.float32] = read(np.ascontiguousarray(depth_m), np.asarray(boxes, np.float64))
    return found


class BoxPixels(NamedTuple):
    """Quantiles of the depth inside boxes (N,Q), each of an equal share of the pixels, and how many (N,)."""

    quantiles_m: NDArray[np.float32]
    pixels: NDArray[np.int32]


def box_pixels(depth_m: Depth, boxes: NDArray[np.floating], quantiles: int) -> BoxPixels:
    """Return the distribution of depth over the pixels of each box (N,4), nearest first.

    The quantiles are those in the middle of equal shares: of four, at 1/8, 3/8, 5/8 and 7/8.

    >>> depth = np.array([[1, 2, 3, 4], [5, 6, 7, np.nan]], np.float32)
    >>> box_pixels(depth, np.array([[0, 0, 4, 2], [9, 9, 9, 9]]), 4)
    BoxPixels(quantiles_m=array([[ 1.,  3.,  5.,  7.],
           [nan, nan, nan, nan]], dtype=float32), pixels=array([7, 0], dtype=int32))
    """
    from adverse.depth.box_kernels import touched_pixels  # noqa: PLC0415 - as above

    depths = np.full((len(boxes), quantiles), np.nan, np.float32)
    pixels = np.zeros(len(boxes), np.int32)
    middle = (np.arange(quantiles) + 0.5) / quantiles
    for number, box in enumerate(np.asarray(boxes, np.float64)):
        left, top, right, bottom = touched_pixels(depth_m.shape, box)
        inside = depth_m[top : max(top, bottom), left : max(left, right)]
        valid = np.sort(inside[inside > 0])
        pixels[number] = len(valid)
        if len(valid):
            depths[number] = valid[(middle * len(valid)).astype(np.int64)]
    return BoxPixels(depths, pixels)

"""The plane a scene stands on, in the image: on it one over the distance is an affine function of the pixel.

For a pinhole camera, 1/z of the points of a plane is a*u + b*v + c at column u and row v. So the size of a
thing that is moved over the ground scales as that number does, and no camera matrix is needed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

LEAST_PIXELS = 50
MOST_PIXELS = 20_000
"""Road pixels that are looked at; more tell nothing new."""
OUTLIER = 3.0
"""In robust standard deviations."""


class GroundPlane(NamedTuple):
    """1/z at column u and row v is a*u + b*v + c: per metre if `metric`, else up to a factor."""

    a: float
    b: float
    c: float
    metric: bool

    def nearness(self, u: float, v: float) -> float:
        """Return 1/z where the ground is seen at column u and row v; at and above the horizon 0 or less."""
        return self.a * u + self.b * v + self.c


def ground_plane(
    road: NDArray[np.bool_], depth_m: NDArray[np.float32] | None, horizon_row: float | None
) -> GroundPlane | None:
    """Fit the plane to the depth of the road (H,W); without depth take a level ground below the horizon.

    >>> depth = np.repeat(1 / (np.arange(1, 21, dtype=np.float32)[:, None] * 0.01), 20, axis=1)
    >>> plane = ground_plane(np.ones((20, 20), np.bool_), depth, None)
    >>> round(plane.nearness(3, 9), 6), plane.metric
    (0.1, True)
    """
    fitted = None if depth_m is None else _fitted(road, depth_m)
    if fitted is not None or horizon_row is None:
        return fitted
    return GroundPlane(0.0, 1.0, -horizon_row, metric=False)


def _fitted(road: NDArray[np.bool_], depth_m: NDArray[np.float32]) -> GroundPlane | None:
    rows, columns = np.nonzero(road & np.isfinite(depth_m) & (depth_m > 0))
    if len(rows) < LEAST_PIXELS:
        return None
    step = max(len(rows) // MOST_PIXELS, 1)
    rows, columns = rows[::step], columns[::step]
    nearness = 1 / depth_m[rows, columns].astype(np.float64)
    terms = np.stack([columns, rows, np.ones(len(rows))], axis=1).astype(np.float64)
    kept = np.ones(len(rows), np.bool_)
    found = np.zeros(3)
    for _ in range(3):  # what is no road, or wrongly measured, falls out
        found[:] = np.linalg.lstsq(terms[kept], nearness[kept], rcond=None)[0]
        off = np.abs(terms @ found - nearness)
        kept = off <= max(OUTLIER * 1.4826 * float(np.median(off)), 1e-6)
    a, b, c = (float(value) for value in found)
    return GroundPlane(a, b, c, metric=True) if b > 0 else None

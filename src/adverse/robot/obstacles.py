"""Obstacle map: how far the vehicle is from violating a radius (Pezzementi et al. 2021, section 6.2.2).

The *pathified distance* of a point is the arc length from the vehicle to the first place of the forward path
within the radius of it: 0 when already inside, infinite when never. The path is met exactly, segment by
segment, so that grazing counts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from adverse.robot.trajectory import Trajectory


def pathified_distance_m(
    path: Trajectory, stations: NDArray[np.float64], points_m: NDArray[np.float64], radius_m: float
) -> NDArray[np.float64]:
    """Return the pathified distance (N,) of ground points (N,2) seen from places (N,) on the path.

    Points that are not known (NaN) are never in the way.
    """
    distances: NDArray[np.float64] = _pathify(
        path.corners,
        path.along_m,
        np.asarray(stations, np.float64),
        np.asarray(points_m, np.float64),
        radius_m,
    )
    return distances


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _pathify(corners: Any, along: Any, stations: Any, points: Any, radius: float) -> Any:  # pragma: no cover
    found = np.full(len(points), np.inf)
    for n in range(len(points)):
        px, py = points[n, 0], points[n, 1]
        if not (np.isfinite(px) and np.isfinite(py)):
            continue
        start = stations[n]
        first = min(np.searchsorted(along[1:], start, side="right"), len(corners) - 2)
        for s in range(first, len(corners) - 1):
            length = along[s + 1] - along[s]
            ux = (corners[s + 1, 0] - corners[s, 0]) / length
            uy = (corners[s + 1, 1] - corners[s, 1]) / length
            low = max(start - along[s], 0.0)
            # nearest point of the segment's line, and half the chord inside the circle
            foot = (px - corners[s, 0]) * ux + (py - corners[s, 1]) * uy
            off2 = (px - corners[s, 0] - foot * ux) ** 2 + (py - corners[s, 1] - foot * uy) ** 2
            if off2 > radius * radius:
                continue
            half = np.sqrt(radius * radius - off2)
            if foot + half < low or foot - half > length:
                continue
            found[n] = max(along[s] + max(foot - half, low) - start, 0.0)
            break
    return found

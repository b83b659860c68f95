"""Clearance: how near the robot came to anybody, on the ground and in a straight line.

While it drives, people are where the last image passed shows them, as the obstacles of the playback are. So
how near a run came to anybody depends on its speeds only through where it ended: at its stop, or at the end
of the path.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from adverse.robot.trajectory import Trajectory
from adverse.robot.vehicle import TOUCHING_M


def clearance_m(
    path: Trajectory,
    stations: NDArray[np.float64],
    image: NDArray[np.int64],
    points_m: NDArray[np.float64],
    reached_m: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the smallest distance (K,) to anybody on the way from the start to each of K places on the path.

    `stations` (N,) is where images were taken, ascending; `image` (P,), ascending, says which image shows
    each of P people, `points_m` (P,2) where (NaN: not known). It is inf where nobody was in sight.
    """
    known = np.isfinite(points_m).all(axis=1)
    order = np.argsort(reached_m, kind="stable")
    nearest = np.empty(len(order))
    nearest[order] = _clearance(
        path.corners,
        path.along_m,
        np.asarray(stations, np.float64),
        np.searchsorted(image[known], np.arange(len(stations) + 1)),
        np.asarray(points_m[known], np.float64),
        np.asarray(reached_m, np.float64)[order],
    )
    return nearest


def distances_m(
    path: Trajectory,
    stations: NDArray[np.float64],
    image: NDArray[np.int64],
    points_m: NDArray[np.float64],
    places_m: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return how far away the nearest person is (K,) at each of K places on the path; inf: nobody in sight.

    The rest is as in `clearance_m`, which is the smallest of these up to a place.
    """
    known = np.isfinite(points_m).all(axis=1)
    image, points_m = image[known], points_m[known]
    here = np.stack([np.interp(places_m, path.along_m, corner) for corner in path.corners.T], axis=1)
    away = np.hypot(*(here[:, None] - points_m[None]).transpose(2, 0, 1))
    seen = images_passed(stations, places_m)[:, None] == image[None]
    nearest: NDArray[np.float64] = np.where(seen, away, np.inf).min(axis=1, initial=np.inf)
    return nearest


def images_passed(stations: NDArray[np.float64], places_m: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the last image passed (K,) at each of K places on the path; -1: none yet."""
    passed: NDArray[np.int64] = np.searchsorted(stations, places_m + TOUCHING_M, side="right") - 1
    return passed


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _clearance(  # pragma: no cover - compiled
    corners: Any, along: Any, stations: Any, first: Any, points: Any, reached: Any
) -> Any:
    found = np.empty(len(reached))
    passed, near = -1, np.inf  # the last image passed, and the least distance before that
    for k in range(len(reached)):
        if k > 0 and reached[k] == reached[k - 1]:
            found[k] = found[k - 1]
            continue
        while passed + 1 < len(stations) and stations[passed + 1] <= reached[k] + TOUCHING_M:
            if passed >= 0 and stations[passed + 1] > stations[passed] + TOUCHING_M:
                people = points[first[passed] : first[passed + 1]]
                near = min(near, _least(corners, along, people, stations[passed], stations[passed + 1]))
            passed += 1  # of several images at one place the last counts
        found[k] = near
        if passed >= 0:
            people = points[first[passed] : first[passed + 1]]
            found[k] = min(near, _least(corners, along, people, stations[passed], reached[k]))
    return found


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _least(corners: Any, along: Any, points: Any, low: float, high: float) -> float:  # pragma: no cover
    """Return the least distance between points and the part of a path between two places on it."""
    least = np.inf
    if len(points) == 0:
        return least
    start = min(max(int(np.searchsorted(along, low, side="right")) - 1, 0), len(corners) - 2)
    for s in range(start, len(corners) - 1):
        if s > start and along[s] > high:
            break
        length = along[s + 1] - along[s]
        ux = (corners[s + 1, 0] - corners[s, 0]) / length
        uy = (corners[s + 1, 1] - corners[s, 1]) / length
        near, far = max(low - along[s], 0.0), max(min(high - along[s], length), 0.0)
        for n in range(len(points)):
            dx, dy = points[n, 0] - corners[s, 0], points[n, 1] - corners[s, 1]
            at = min(max(dx * ux + dy * uy, near), far)
            away = np.hypot(dx - at * ux, dy - at * uy)
            least = min(least, away)
    return float(least)

"""The tracker between detector and controller: what was there a moment ago is still there.

It knows objects by their place on the ground. A detection near a track is the same object, the nearest pairs
first; a track without a detection coasts, staying in its place, for some frames and is then given up. Its
place on the path is the one that its last detection had. Each sensitivity has its own tracks, as each is
another robot.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray


def tracked_m(
    offsets: NDArray[np.int64],
    level: NDArray[np.int64],
    points_m: NDArray[np.float64],
    place_m: NDArray[np.float64],
    levels: int,
    *,
    coast_frames: int,
    association_m: float,
) -> NDArray[np.float64]:
    """Return where on the path the nearest tracked obstacle is after each of N frames (N, levels); inf: none.

    The detections of frame n are `offsets[n]:offsets[n+1]`; each counts from a `level` on, stands at
    `points_m` on the ground, and is in the way at `place_m` of the path (inf: not in the way).
    """
    found: NDArray[np.float64] = _tracked(
        offsets, level, np.ascontiguousarray(points_m), place_m, levels, coast_frames, association_m
    )
    return found


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
def _tracked(  # noqa: C901, PLR0912 - one loop over frames
    offsets: Any, level: Any, points: Any, place: Any, levels: int, coast: int, gate: float
) -> Any:  # pragma: no cover - compiled
    frames = len(offsets) - 1
    nearest = np.full((frames, levels), np.inf)
    x, y = np.empty(len(level)), np.empty(len(level))
    where, missed = np.empty(len(level)), np.empty(len(level), np.int64)
    taken = np.empty(len(level), np.bool_)
    for k in range(levels):
        tracks = 0
        for n in range(frames):
            before = tracks
            for t in range(before):
                missed[t] += 1
            for d in range(offsets[n], offsets[n + 1]):
                taken[d] = level[d] > k
            while True:  # the nearest pair of a track and a detection that have none yet
                best, track, detection = gate, -1, -1
                for t in range(before):
                    if missed[t] == 0:
                        continue
                    for d in range(offsets[n], offsets[n + 1]):
                        if taken[d]:
                            continue
                        away = np.hypot(x[t] - points[d, 0], y[t] - points[d, 1])
                        if away < best or (away == best and track < 0):
                            best, track, detection = away, t, d
                if track < 0:
                    break
                x[track], y[track] = points[detection, 0], points[detection, 1]
                where[track], missed[track] = place[detection], 0
                taken[detection] = True
            kept = 0
            for t in range(before):
                if missed[t] <= coast:
                    x[kept], y[kept], where[kept], missed[kept] = x[t], y[t], where[t], missed[t]
                    kept += 1
            tracks = kept
            for d in range(offsets[n], offsets[n + 1]):
                if not taken[d]:
                    x[tracks], y[tracks] = points[d, 0], points[d, 1]
                    where[tracks], missed[tracks] = place[d], 0
                    tracks += 1
            for t in range(tracks):
                nearest[n, k] = min(nearest[n, k], where[t])
    return nearest

"""Trajectory: where the vehicle went, and would have gone on (001, section 6.2.1).

The polyline of the camera's positions on the ground plane, extended 10 m beyond the last one along the end
direction of a smoothing cubic spline through each axis. Later steps lock the vehicle to this path and vary
only its speed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import make_smoothing_spline

EXTENSION_M = 10.0
STILL_M = 1e-3
"""Positions nearer to each other than this are one: the vehicle stood."""
SPLINE_POINTS = 5
"""Fewest points that a smoothing spline can be fitted to; with less, the last piece gives the direction."""


@dataclass(frozen=True, eq=False)
class Trajectory:
    """A path on the ground: corners (M,2) with their distance along it (M,), and where the frames are on it.

    `stations` (N,) are the frames' distances along the path; it was really driven up to `recorded_m`.
    """

    corners: NDArray[np.float64]
    along_m: NDArray[np.float64]
    stations: NDArray[np.float64]
    recorded_m: float

    @property
    def length_m(self) -> float:
        """The length of the path with its extension."""
        return float(self.along_m[-1])


def trajectory(positions_m: NDArray[np.float64], forward: NDArray[np.float64]) -> Trajectory:
    """Return the path through the frames' ground positions (N,2), N >= 1.

    `forward` (2,) is where the camera looks; it gives the direction of a vehicle that never moved.
    """
    kept = [0]
    for index in range(1, len(positions_m)):
        if np.hypot(*(positions_m[index] - positions_m[kept[-1]])) > STILL_M:
            kept.append(index)
    corners = positions_m[kept]
    along = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(corners, axis=0).T))])
    place = np.searchsorted(kept, np.arange(len(positions_m)), side="right") - 1
    end = corners[-1] + EXTENSION_M * _direction(corners, along, forward)
    return Trajectory(
        corners=np.vstack([corners, end]),
        along_m=np.append(along, along[-1] + EXTENSION_M),
        stations=along[place],
        recorded_m=float(along[-1]),
    )


def _direction(
    corners: NDArray[np.float64], along: NDArray[np.float64], forward: NDArray[np.float64]
) -> NDArray[np.float64]:
    if len(corners) == 1:
        direction = forward
    elif len(corners) < SPLINE_POINTS:
        direction = corners[-1] - corners[-2]
    else:
        splines = [make_smoothing_spline(along, corners[:, axis]) for axis in (0, 1)]
        direction = np.array([float(spline.derivative()(along[-1])) for spline in splines])
    return np.asarray(direction / np.hypot(*direction))

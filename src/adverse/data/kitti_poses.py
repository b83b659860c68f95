"""Where KITTI's car was: odometry poses, or GPS and inertial data (OXTS); both as ours, x forward, z up.

The world of a log begins where the log begins and looks along x there.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from adverse.data.kitti_calibration import Calibration, rigid
from adverse.data.number_lines import lines_of, numbers, wrong_line
from adverse.data.poses import CAMERA_AXES, turned

Matrix = NDArray[np.float64]
EARTH_RADIUS_M = 6378137.0
"""Of the Mercator projection that the data's makers use."""
WORLD_FROM_RECTIFIED = np.block([[CAMERA_AXES, np.zeros((3, 1))], [np.zeros((1, 3)), np.eye(1)]])
"""From the rectified camera frame to world axes, same origin."""
OXTS_VALUES = 30


def read_odometry_poses(path: Path) -> list[Matrix]:
    """Return world_from_rectified (4,4) for each line: 12 numbers, a 3x4 matrix in camera axes."""
    found = []
    for where, words in lines_of(path, "pose"):
        placed = rigid(numbers(words, 12, where, "pose"), where, "pose")
        found.append(WORLD_FROM_RECTIFIED @ placed)
    return found


def read_times(path: Path) -> list[float]:
    """Return the times of a sequence in seconds, one on each line, each later than the one before."""
    found: list[float] = []
    for where, words in lines_of(path, "time"):
        (time_s,) = numbers(words, 1, where, "time")
        if found and time_s <= found[-1]:
            raise wrong_line(where, "time", f"{time_s:g} after {found[-1]:g}", "a later time on each line")
        found.append(time_s)
    return found


def read_oxts(path: Path) -> list[list[float]]:
    """Return the lines of an OXTS file: latitude, longitude, altitude, roll, pitch, yaw, and 24 more."""
    found = []
    for where, words in lines_of(path, "OXTS"):
        values = numbers(words, OXTS_VALUES, where, "OXTS")
        latitude, longitude, *_ = values
        if abs(latitude) >= 90 or abs(longitude) > 180:
            got = f"latitude {latitude:g}, longitude {longitude:g}"
            raise wrong_line(where, "OXTS", got, "degrees on the earth")
        found.append(values)
    return found


def rectified_poses(oxts: Sequence[Sequence[float]], calibration: Calibration) -> list[Matrix] | None:
    """Return world_from_rectified for each OXTS line, or None where the sensors' places are not known.

    Position by Mercator projection at the first latitude; rotation by yaw, then pitch, then roll.
    """
    velodyne, imu = calibration.rectified_from_velodyne, calibration.velodyne_from_imu
    if velodyne is None or imu is None or not oxts:
        return None
    imu_from_rectified = np.linalg.inv(velodyne @ imu)
    scale = float(np.cos(np.radians(oxts[0][0])))
    placed = [_world_from_imu(line, scale) for line in oxts]
    begin = np.eye(4)
    begin[:3, :3] = turned(oxts[0][5], 0, 0)
    begin[:3, 3] = placed[0][:3, 3]
    start = np.linalg.inv(begin)
    return [start @ one @ imu_from_rectified for one in placed]


def _world_from_imu(line: Sequence[float], scale: float) -> Matrix:
    latitude, longitude, altitude, roll, pitch, yaw = line[:6]
    placed = np.eye(4)
    placed[:3, :3] = turned(yaw, pitch, roll)
    placed[0, 3] = scale * EARTH_RADIUS_M * np.radians(longitude)
    placed[1, 3] = scale * EARTH_RADIUS_M * np.log(np.tan(np.pi / 4 + np.radians(latitude) / 2))
    placed[2, 3] = altitude
    return placed

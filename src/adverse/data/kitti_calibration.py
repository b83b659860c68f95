"""KITTI's calibration files: how a camera sees, and where it and the laser scanner and the GPS are.

The *rectified* frame is that of the reference camera 0, x right, y down, z forward. A camera's projection P
is K [I | t]: the camera itself sits at -t of the rectified frame.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from adverse.data.images import Size
from adverse.data.number_lines import lines_of, numbers, wrong_line
from adverse.errors import DataError
from adverse.types import Camera

Matrix = NDArray[np.float64]
WHAT = "calibration"
_TOLERANCE = 1e-3  # files are rounded; a matrix further from a rotation is something else


@dataclass(frozen=True, eq=False)
class Calibration:
    """What is known about a camera: its projection (3,4), that of the right one, and the other sensors."""

    projection: Matrix
    right_projection: Matrix | None = None
    rectified_from_velodyne: Matrix | None = None
    velodyne_from_imu: Matrix | None = None

    def camera(self, size: Size) -> Camera:
        """Return the pinhole camera, with the baseline to the right one where that is known."""
        p = self.projection
        baseline = None
        if self.right_projection is not None:
            baseline = float((p[0, 3] - self.right_projection[0, 3]) / p[0, 0])
        known = baseline if baseline is not None and baseline > 0 else None
        return Camera(float(p[0, 0]), float(p[1, 1]), float(p[0, 2]), float(p[1, 2]), *size, known)

    @property
    def rectified_from_camera(self) -> Matrix:
        """Where the camera is in the rectified frame, (4,4)."""
        placed = np.eye(4)
        placed[:3, 3] = -np.linalg.solve(self.projection[:, :3], self.projection[:, 3])
        return placed

    @property
    def pixels_from_velodyne(self) -> tuple[float, ...] | None:
        """The projection of scanned points, row by row, where the scanner's place is known."""
        if self.rectified_from_velodyne is None:
            return None
        return tuple((self.projection @ self.rectified_from_velodyne).ravel().tolist())


def read_calibration(path: Path, cameras: tuple[int, int]) -> Calibration:
    """Read calib/000000.txt or a sequence's calib.txt; `cameras` are the numbers of left and right."""
    table = read_table(path)
    left, right = (f"P{number}" for number in cameras)
    turned = np.eye(4)
    if (rectify := _either(table, "R0_rect", "R_rect")) is not None:
        turned[:3, :3] = _rotation(rectify)
    velodyne = _either(table, "Tr_velo_to_cam", "Tr_velo_cam", "Tr")
    imu = _either(table, "Tr_imu_to_velo", "Tr_imu_velo")
    return Calibration(
        _projection(path, table, left),
        _projection(path, table, right) if right in table else None,
        None if velodyne is None else turned @ _placed(velodyne),
        None if imu is None else _placed(imu),
    )


def read_raw_calibration(folder: Path, cameras: tuple[int, int]) -> Calibration:
    """Read the three calibration files of a day of the raw data."""
    path = folder / "calib_cam_to_cam.txt"
    table = read_table(path)
    left, right = (f"P_rect_{number:02}" for number in cameras)
    turned = np.eye(4)
    turned[:3, :3] = _rotation(_needed(path, table, "R_rect_00"))
    velodyne, imu = folder / "calib_velo_to_cam.txt", folder / "calib_imu_to_velo.txt"
    return Calibration(
        _projection(path, table, left),
        _projection(path, table, right) if right in table else None,
        turned @ _raw_placed(velodyne) if velodyne.is_file() else None,
        _raw_placed(imu) if imu.is_file() else None,
    )


@dataclass(frozen=True)
class Entry:
    """A named row of numbers, and where it stands."""

    where: str
    values: list[float]


def read_table(path: Path) -> Mapping[str, Entry]:
    """Read lines of a name (with or without a colon) and numbers; rows of text (a date) are left out."""
    found: dict[str, Entry] = {}
    for where, words in lines_of(path, WHAT):
        name = words[0].rstrip(":")
        if name in found:
            raise wrong_line(where, WHAT, f"{name} again", "each name once")
        if name in ("calib_time", "corner_dist"):
            continue
        found[name] = Entry(where, numbers(words[1:], None, where, WHAT))
    return found


def rigid(values: list[float], where: str, what: str) -> Matrix:
    """Return the (4,4) of a 3x4 rotation and translation given row by row."""
    found = np.eye(4)
    found[:3] = np.array(values).reshape(3, 4)
    if not _is_rotation(found[:3, :3]):
        raise wrong_line(
            where, what, "a matrix that is no rotation", "a rotation and a translation in metres"
        )
    return found


def _is_rotation(matrix: Matrix) -> bool:
    return bool(np.allclose(matrix @ matrix.T, np.eye(3), atol=_TOLERANCE) and np.linalg.det(matrix) > 0)


def _either(table: Mapping[str, Entry], *names: str) -> Entry | None:
    return next((table[name] for name in names if name in table), None)


def _needed(path: Path, table: Mapping[str, Entry], name: str) -> Entry:
    if name not in table:
        raise DataError(
            f"the {WHAT} file has no {name}",
            where=str(path),
            got=", ".join(table)[:80] or "nothing",
            wanted=f"a line {name}: with its numbers",
            fix="Add the line, or choose other cameras in the study's data section.",
        )
    return table[name]


def _projection(path: Path, table: Mapping[str, Entry], name: str) -> Matrix:
    entry = _needed(path, table, name)
    if len(entry.values) != 12:
        raise wrong_line(entry.where, WHAT, f"{len(entry.values)} numbers", "12 numbers")
    p = np.array(entry.values).reshape(3, 4)
    if p[0, 0] <= 0 or p[1, 1] <= 0 or not np.allclose(p[2, :3], [0, 0, 1], atol=_TOLERANCE):
        raise wrong_line(
            entry.where, WHAT, f"{name} that is no projection", "K [I | t] with positive focal lengths"
        )
    return p


def _rotation(entry: Entry) -> Matrix:
    if len(entry.values) != 9:
        raise wrong_line(entry.where, WHAT, f"{len(entry.values)} numbers", "9 numbers")
    found = np.array(entry.values).reshape(3, 3)
    if not _is_rotation(found):
        raise wrong_line(entry.where, WHAT, "a matrix that is no rotation", "a rotation")
    return found


def _placed(entry: Entry) -> Matrix:
    if len(entry.values) != 12:
        raise wrong_line(entry.where, WHAT, f"{len(entry.values)} numbers", "12 numbers")
    return rigid(entry.values, entry.where, WHAT)


def _raw_placed(path: Path) -> Matrix:
    table = read_table(path)
    placed = np.eye(4)
    placed[:3, :3] = _rotation(_needed(path, table, "R"))
    shift = _needed(path, table, "T")
    if len(shift.values) != 3:
        raise wrong_line(shift.where, WHAT, f"{len(shift.values)} numbers", "3 numbers")
    placed[:3, 3] = shift.values
    return placed

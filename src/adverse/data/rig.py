"""The camera, its poses and the robot that carried it: `camera.json`, `poses.csv` and `robot.json`.

Of several `camera.json` the one nearest to the log wins, so one file can serve a whole data set. `poses.csv`
of a log has one line per frame, in order of time. Its columns, in any order: frame (image name without
ending), time_s, x_m, y_m, z_m, qw, qx, qy, qz. The rotation is a unit quaternion that turns camera axes (x
right, y down, z forward) into world axes (x forward, y left, z up); the position is the camera's, in the
world. `robot.json` is at the root of a data set.
"""

from __future__ import annotations

import csv
import io
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from adverse.data.files import read_bytes, read_model
from adverse.errors import DataError
from adverse.types import Camera

CAMERA_FILE = "camera.json"
_Finite = Annotated[float, Field(allow_inf_nan=False)]
_Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_Pixels = Annotated[int, Field(gt=0)]


class _CameraFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    fx: _Positive
    fy: _Positive
    cx: _Finite
    cy: _Finite
    width: _Pixels
    height: _Pixels
    baseline_m: _Positive | None = None
    offset_px: _Finite = 0.0


def read_camera(path: Path) -> Camera:
    """Read a calibration; unknown fields are refused, since a misspelt one would be lost."""
    return Camera(**read_model(path, "camera", _CameraFile).model_dump())


def camera_fields(camera: Camera) -> dict[str, float]:
    """Return what a `camera.json` says of a camera: all that is known."""
    known = {name: value for name, value in asdict(camera).items() if value is not None}
    if not camera.offset_px:
        del known["offset_px"]
    return known


def camera_file(folder: Path, root: Path) -> Path | None:
    """Return the `camera.json` of a folder, or of the nearest folder above it up to root."""
    for candidate in (folder, *folder.parents):
        if (candidate / CAMERA_FILE).is_file():
            return candidate / CAMERA_FILE
        if candidate == root:
            return None
    return None


POSES_FILE = "poses.csv"
_NUMBERS = ("time_s", "x_m", "y_m", "z_m", "qw", "qx", "qy", "qz")
COLUMNS = ("frame", *_NUMBERS)
_UNIT_TOLERANCE = 1e-3
CAMERA_AXES = np.array([[0.0, 0, 1], [-1, 0, 0], [0, -1, 0]])
"""Turns camera axes (x right, y down, z forward) into the world's (x forward, y left, z up)."""


class Pose(NamedTuple):
    """When and where a frame was taken; `world_from_camera` is (4,4)."""

    time_s: float
    world_from_camera: NDArray[np.float64]


def read_poses(path: Path) -> dict[str, Pose]:
    """Read a pose file; frames are in the order of the file, which is that of time."""
    try:
        text = read_bytes(path, what="pose").decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _wrong(path, 1, f"byte {error.start} is not UTF-8", "UTF-8 text") from error
    rows = csv.reader(io.StringIO(text, newline=""))
    header = [name.strip() for name in next(rows, [])]
    if sorted(header) != sorted(COLUMNS):
        raise _wrong(path, 1, f"columns {','.join(header)}", f"the columns {','.join(COLUMNS)}")
    poses: dict[str, Pose] = {}
    last_s = -np.inf
    for row in rows:
        if not any(cell.strip() for cell in row):
            continue
        if len(row) != len(header):
            raise _wrong(path, rows.line_num, f"{len(row)} values", f"{len(header)} values")
        cells = {name: cell.strip() for name, cell in zip(header, row, strict=True)}
        frame, pose = cells["frame"], _pose(cells, path, rows.line_num)
        if frame in poses or not frame:
            raise _wrong(path, rows.line_num, f"frame {frame!r} again", "one line for each frame")
        if pose.time_s <= last_s:
            got = f"time_s {pose.time_s:g} after {last_s:g}"
            raise _wrong(path, rows.line_num, got, "a time later than that of the line before")
        poses[frame], last_s = pose, pose.time_s
    return poses


def _pose(cells: dict[str, str], path: Path, line: int) -> Pose:
    values = {}
    for name in _NUMBERS:
        try:
            values[name] = float(cells[name])
        except ValueError as error:
            raise _wrong(path, line, f"{name} = {cells[name]!r}", "a number") from error
        if not np.isfinite(values[name]):
            raise _wrong(path, line, f"{name} = {cells[name]}", "a finite number")
    quaternion = np.array([values[name] for name in ("qw", "qx", "qy", "qz")])
    norm = float(np.linalg.norm(quaternion))
    if abs(norm - 1) > _UNIT_TOLERANCE:
        raise _wrong(
            path, line, f"a quaternion of length {norm:.4g}", "a rotation: qw, qx, qy, qz of length 1"
        )
    matrix = np.eye(4)
    matrix[:3, :3] = rotation(quaternion / norm)
    matrix[:3, 3] = values["x_m"], values["y_m"], values["z_m"]
    matrix.flags.writeable = False
    return Pose(values["time_s"], matrix)


def rotation(quaternion: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the (3,3) rotation of a unit quaternion (w, x, y, z).

    The camera that looks along world x has (0.5, -0.5, 0.5, -0.5):

    >>> rotation(np.array([0.5, -0.5, 0.5, -0.5])) @ np.array([0.0, 0.0, 1.0])
    array([1., 0., 0.])
    """
    w, x, y, z = quaternion
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def turned(yaw: float, pitch: float, roll: float) -> NDArray[np.float64]:
    """Return the rotation about x by roll, then y by pitch (down), then z by yaw (left), all in radians.

    >>> turned(np.pi / 2, 0, 0).round() @ np.array([1.0, 0.0, 0.0])
    array([0., 1., 0.])
    """
    (cy, sy), (cp, sp), (cr, sr) = ((np.cos(angle), np.sin(angle)) for angle in (yaw, pitch, roll))
    about_z = np.array([[cy, -sy, 0], [sy, cy, 0], [0, 0, 1]])
    about_y = np.array([[cp, 0, sp], [0, 1, 0], [-sp, 0, cp]])
    about_x = np.array([[1, 0, 0], [0, cr, -sr], [0, sr, cr]])
    rotation: NDArray[np.float64] = about_z @ about_y @ about_x
    return rotation


def _wrong(path: Path, line: int, got: str, wanted: str) -> DataError:
    return DataError(
        "the pose file is wrong",
        where=f"{path}, line {line}",
        got=got,
        wanted=wanted,
        fix="Correct the line; docs/data-formats.md describes the columns.",
    )


ROBOT_FILE = "robot.json"


class _RobotFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    control_radius_m: _Positive
    safety_radius_m: _Positive


def read_robot(path: Path) -> dict[str, float]:
    """Read a robot file: when it should stop (control radius), what it must never touch (safety)."""
    robot = read_model(path, "robot", _RobotFile)
    if robot.safety_radius_m > robot.control_radius_m:
        raise DataError(
            "the robot's safety radius is larger than its control radius",
            where=str(path),
            got=f"safety_radius_m {robot.safety_radius_m:g}, control_radius_m {robot.control_radius_m:g}",
            wanted="safety_radius_m <= control_radius_m",
            fix="Correct the one that is wrong.",
        )
    return robot.model_dump()

"""KITTI's files: calibration, poses and labels.

Calibration says how a camera sees, and where it, the laser scanner and the GPS are. The *rectified* frame is
that of the reference camera 0, x right, y down, z forward. A camera's projection P is K [I | t]: the camera
itself sits at -t of the rectified frame. Poses are from odometry, or GPS and inertial data (OXTS), brought to
our convention, x forward, z up; the world of a log begins where the log begins and looks along x there.

A label line: type, truncation, occlusion, alpha, left, top, right, bottom, height, width, length, x, y, z,
turn. The tracking data put frame and track before it. (x, y, z) is the middle of the object's lower side in
the rectified camera frame. Boxes are kept as they stand: the devkit compares them without adding a pixel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from adverse.data.files import lines_of, numbers, wrong_line
from adverse.data.images import Size
from adverse.data.rig import CAMERA_AXES, turned
from adverse.data.truth import AnnotatedObject, Box, for_each_class, renamed
from adverse.errors import DataError, suggestion
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
        baseline_m = baseline if baseline is not None and baseline > 0 else None
        return Camera(float(p[0, 0]), float(p[1, 1]), float(p[0, 2]), float(p[1, 2]), *size, baseline_m)

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
    entries: dict[str, Entry] = {}
    for where, words in lines_of(path, WHAT):
        name = words[0].rstrip(":")
        if name in entries:
            raise wrong_line(where, WHAT, f"{name} again", "each name once")
        if name in ("calib_time", "corner_dist"):
            continue
        entries[name] = Entry(where, numbers(words[1:], None, where, WHAT))
    return entries


def rigid(values: list[float], where: str, what: str) -> Matrix:
    """Return the (4,4) of a 3x4 rotation and translation given row by row."""
    transform = np.eye(4)
    transform[:3] = np.array(values).reshape(3, 4)
    if not _is_rotation(transform[:3, :3]):
        raise wrong_line(
            where, what, "a matrix that is not a rotation", "a rotation and a translation in metres"
        )
    return transform


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
            entry.where,
            WHAT,
            f"{name} that is not a projection matrix",
            "K [I | t] with positive focal lengths",
        )
    return p


def _rotation(entry: Entry) -> Matrix:
    if len(entry.values) != 9:
        raise wrong_line(entry.where, WHAT, f"{len(entry.values)} numbers", "9 numbers")
    rotation = np.array(entry.values).reshape(3, 3)
    if not _is_rotation(rotation):
        raise wrong_line(entry.where, WHAT, "a matrix that is not a rotation", "a rotation")
    return rotation


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


EARTH_RADIUS_M = 6378137.0
"""Of the Mercator projection that the data's makers use."""
WORLD_FROM_RECTIFIED = np.block([[CAMERA_AXES, np.zeros((3, 1))], [np.zeros((1, 3)), np.eye(1)]])
"""From the rectified camera frame to world axes, same origin."""
OXTS_VALUES = 30


def read_odometry_poses(path: Path) -> list[Matrix]:
    """Return world_from_rectified (4,4) for each line: 12 numbers, a 3x4 matrix in camera axes."""
    poses = []
    for where, words in lines_of(path, "pose"):
        placed = rigid(numbers(words, 12, where, "pose"), where, "pose")
        poses.append(WORLD_FROM_RECTIFIED @ placed)
    return poses


def read_times(path: Path) -> list[float]:
    """Return the times of a sequence in seconds, one on each line, each later than the one before."""
    times: list[float] = []
    for where, words in lines_of(path, "time"):
        (time_s,) = numbers(words, 1, where, "time")
        if times and time_s <= times[-1]:
            raise wrong_line(where, "time", f"{time_s:g} after {times[-1]:g}", "a later time on each line")
        times.append(time_s)
    return times


def read_oxts(path: Path) -> list[list[float]]:
    """Return the lines of an OXTS file: latitude, longitude, altitude, roll, pitch, yaw, and 24 more."""
    poses = []
    for where, words in lines_of(path, "OXTS"):
        values = numbers(words, OXTS_VALUES, where, "OXTS")
        latitude, longitude, *_ = values
        if abs(latitude) >= 90 or abs(longitude) > 180:
            got = f"latitude {latitude:g}, longitude {longitude:g}"
            raise wrong_line(where, "OXTS", got, "degrees on the earth")
        poses.append(values)
    return poses


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
    return [start @ pose @ imu_from_rectified for pose in placed]


def _world_from_imu(line: Sequence[float], scale: float) -> Matrix:
    latitude, longitude, altitude, roll, pitch, yaw = line[:6]
    placed = np.eye(4)
    placed[:3, :3] = turned(yaw, pitch, roll)
    placed[0, 3] = scale * EARTH_RADIUS_M * np.radians(longitude)
    placed[1, 3] = scale * EARTH_RADIUS_M * np.log(np.tan(np.pi / 4 + np.radians(latitude) / 2))
    placed[2, 3] = altitude
    return placed


Difficulty = Literal["all", "easy", "moderate", "hard"]
Point = tuple[float, float, float]
DONT_CARE = "DontCare"
CLASSES = ("Car", "Van", "Truck", "Pedestrian", "Person_sitting", "Cyclist", "Tram", "Misc")
ALIASES = {"Person": "Person_sitting"}
"""What the tracking data call a class."""
NEIGHBOURS = {"Person_sitting": "Pedestrian", "Van": "Car"}
"""Too similar to count as an error: where the second is evaluated, the first is ignored."""
LIMITS: dict[Difficulty, tuple[float, int, float]] = {
    "easy": (40, 0, 0.15),
    "moderate": (25, 1, 0.30),
    "hard": (25, 2, 0.50),
}
"""Of the devkit: least height in pixels, most occlusion (0 visible, 1 partly, 2 largely), most truncation."""


OCCLUDED = {0.0: "no", 1.0: "partly", 2.0: "largely"}
TRUNCATED = ((0.0, "no"), (0.15, "up to 15 %"), (0.3, "15 to 30 %"), (0.5, "30 to 50 %"))
OUTSIDE = "more than 50 %"


@dataclass(frozen=True)
class KittiLabel:
    """One label line."""

    where: str
    kind: str
    truncation: float
    occlusion: float
    box: Box
    position_m: Point
    track: int | None = None
    """The object's number in its sequence, where the data follow it."""
    hidden: bool = False
    """Whether nothing of it can be seen, where the data say so: then it is ignored."""

    @property
    def attributes(self) -> dict[str, str]:
        """How much of the object is hidden or outside of the image, in the devkit's steps."""
        truncated = next((words for most, words in TRUNCATED if self.truncation <= most), OUTSIDE)
        hidden = "fully" if self.hidden else OCCLUDED.get(self.occlusion)
        return {"truncated": truncated, **({"occluded": hidden} if hidden else {})}

    def beyond(self, difficulty: Difficulty) -> bool:
        """Return whether the object is too small, occluded or truncated to count at a difficulty."""
        if difficulty == "all":
            return False
        height, occlusion, truncation = LIMITS[difficulty]
        too_small = self.box[3] - self.box[1] < height
        return too_small or self.occlusion > occlusion or self.truncation > truncation


def read_object_labels(path: Path) -> list[KittiLabel]:
    """Read the labels of one image."""
    return [_row(where, words) for where, words in lines_of(path, "label")]


def read_tracking_labels(path: Path) -> dict[int, list[KittiLabel]]:
    """Read the labels of a sequence, by frame number."""
    rows_by_frame: dict[int, list[KittiLabel]] = {}
    for where, words in lines_of(path, "label"):
        if len(words) < 2 or not words[0].isdecimal():
            raise wrong_line(
                where, "label", repr(words[0][:40]), "a frame number, a track number, a type ..."
            )
        (track,) = numbers(words[1:2], 1, where, "label")
        row = replace(_row(where, words[2:]), track=int(track) if track >= 0 else None)
        rows_by_frame.setdefault(int(words[0]), []).append(row)
    return rows_by_frame


def class_names(rows: Iterable[KittiLabel], class_map: Mapping[str, str]) -> tuple[str, ...]:
    """Return what the study calls the classes that are evaluated or occur, in KITTI's order."""
    present = {row.kind for row in rows} | {"Car", "Pedestrian", "Cyclist"}
    return tuple(dict.fromkeys(renamed(name, class_map) for name in CLASSES if name in present))


def objects_of(
    rows: Iterable[KittiLabel],
    categories: tuple[str, ...],
    class_map: Mapping[str, str],
    difficulty: Difficulty,
    place: Callable[[Point], Point] | None,
    *,
    drop_dont_care: bool = False,
) -> Iterator[AnnotatedObject]:
    """Yield the objects of a frame: DontCare is ignored for every class, a neighbour for its class.

    `place` carries a position into the world; None: there is no world frame.
    """
    for row in rows:
        if row.kind == DONT_CARE and drop_dont_care:
            continue
        if row.kind == DONT_CARE:
            yield from for_each_class(AnnotatedObject("", row.box, row.where), categories)
            continue
        label = renamed(row.kind, class_map)
        where_m = place(row.position_m) if place else None
        yield AnnotatedObject(
            label,
            row.box,
            row.where,
            row.hidden or row.beyond(difficulty),
            where_m,
            row.attributes,
            track=row.track,
        )
        beside = renamed(NEIGHBOURS.get(row.kind, row.kind), class_map)
        if beside != label and beside in categories:
            yield AnnotatedObject(beside, row.box, row.where, ignore=True, position_m=where_m)


def _row(where: str, words: list[str]) -> KittiLabel:
    if len(words) != 15:
        got = f"{len(words)} words from the type on"
        raise wrong_line(where, "label", got, "a type and 14 numbers (a 16th is the score of a result)")
    kind = ALIASES.get(words[0], words[0])
    if kind not in (*CLASSES, DONT_CARE):
        raise wrong_line(where, "label", repr(kind), f"a type. {suggestion(kind, [*CLASSES, DONT_CARE])}")
    values = numbers(words[1:], 14, where, "label")
    truncation, occlusion, _, x0, y0, x1, y1 = values[:7]
    x, y, z = values[10:13]
    return KittiLabel(where, kind, truncation, occlusion, (x0, y0, x1, y1), (x, y, z))

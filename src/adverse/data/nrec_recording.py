"""What the recordings of the NREC data set hold beside its labelled images: stereo, RTK track, 3-D points.

    right images      as the left ones, Image_<camera>_<number>_<unix time>.png; paired by their time
    calibration       camera.json of the rectified pair, as everywhere (docs/data-formats.md)
    track             CSV of the vehicle's RTK positions by unix time, local or geodetic
    points            CSV: for a labelled person one point in the left and one in the right image

Poses are the track's at the time of each image, between fixes linearly, and how the camera is mounted. A
person stands at the depth that its two points give, else at that of its annotation file, on the ray through
the middle of its box (Pezzementi et al. 2021, section 7.2.1).
"""

from __future__ import annotations

import bisect
import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.data.files import read_bytes
from adverse.data.rig import CAMERA_AXES, turned
from adverse.errors import DataError
from adverse.types import Camera

NAME = re.compile(r"Image_(?P<camera>\d+)_\d+_(?P<time>\d+(\.\d+)?)")
MOST_APART_S = 0.02
"""Images of one moment: taken no further apart than this."""
MOST_GAP_S = 0.5
"""Between fixes further apart than this, and outside the track, no pose is made up."""
EARTH_RADIUS_M = 6378137.0
LOCAL = ("time_s", "x_m", "y_m", "z_m", "yaw_deg")
GEODETIC = ("time_s", "latitude_deg", "longitude_deg", "altitude_m", "heading_deg")
LEANING = ("pitch_deg", "roll_deg")
POINTS = ("image", "object", "left_x", "right_x")
Mount = tuple[float, float, float, float, float, float]
"""Where the camera is on the vehicle: x forward, y left, z up in metres, then yaw, pitch, roll in degrees."""
PIXEL_CENTRE = 0.5


@dataclass(frozen=True, eq=False)
class Track:
    """Where the vehicle was: times (N,) rising, positions (N,3) in m, yaw, pitch, roll (N,3) in radians."""

    time_s: NDArray[np.float64]
    position_m: NDArray[np.float64]
    angles: NDArray[np.float64]

    def pose(self, time_s: float, mount: Mount) -> NDArray[np.float64] | None:
        """Return world_from_camera (4,4) at a time; None where the track has no fixes around it."""
        after = int(np.searchsorted(self.time_s, time_s))
        before = after if after < len(self.time_s) and self.time_s[after] == time_s else after - 1
        if before < 0 or after >= len(self.time_s) or self.time_s[after] - self.time_s[before] > MOST_GAP_S:
            return None
        gap = self.time_s[after] - self.time_s[before]
        share = 0.0 if gap == 0 else (time_s - self.time_s[before]) / gap
        turn = (self.angles[after] - self.angles[before] + np.pi) % (2 * np.pi) - np.pi
        world = _placed(
            self.position_m[before] + share * (self.position_m[after] - self.position_m[before]),
            self.angles[before] + share * turn,
        )
        camera = _placed(np.array(mount[:3]), np.radians(mount[3:]))
        camera[:3, :3] = camera[:3, :3] @ CAMERA_AXES
        pose: NDArray[np.float64] = world @ camera
        return pose


class PersonPoints(NamedTuple):
    """The columns of one thing in the left and in the right image, in pixels as calibration counts them."""

    left_x: float
    right_x: float


def read_track(path: Path) -> Track:
    """Read the RTK track of a vehicle: local (x_m, y_m, z_m, yaw_deg) or geodetic (latitude_deg, ...)."""
    header, rows = _table(path, "track")
    names = next((kind for kind in (LOCAL, GEODETIC) if set(kind) <= set(header)), None)
    if names is None or not set(header) <= {*names, *LEANING} or not rows:
        wanted = f"{','.join(LOCAL)} or {','.join(GEODETIC)}, and {','.join(LEANING)} where they are known"
        got = f"columns {','.join(header)}, {len(rows)} lines"
        raise _wrong("the track of the vehicle cannot be read", f"{path}, line 1", got, wanted)
    values = np.array([[float(row.get(name, 0.0)) for name in (*names, *LEANING)] for row in rows])
    time_s, lean = values[:, 0], np.radians(values[:, 5:])
    late = np.flatnonzero(np.diff(time_s) <= 0)
    if not np.isfinite(values).all() or late.size:
        line = int(late[0]) + 3 if late.size else int(np.flatnonzero(~np.isfinite(values).all(axis=1))[0]) + 2
        raise _wrong(
            "the track of the vehicle cannot be read",
            f"{path}, line {line}",
            "a number that is not finite, or a time that is not later than that before",
            "finite numbers, times rising",
        )
    if names == LOCAL:
        return Track(time_s, values[:, 1:4], np.column_stack([np.radians(values[:, 4]), lean]))
    latitude, longitude = np.radians(values[:, 1]), np.radians(values[:, 2])
    east = EARTH_RADIUS_M * np.cos(latitude[0]) * (longitude - longitude[0])
    north = EARTH_RADIUS_M * (latitude - latitude[0])
    yaw = np.radians(90.0 - values[:, 4])  # a heading goes clockwise from north
    return Track(time_s, np.column_stack([east, north, values[:, 3]]), np.column_stack([yaw, lean]))


def read_points(path: Path) -> dict[str, dict[int, PersonPoints]]:
    """Read the points of people by image, and by the number of the object in its annotation file, from 1."""
    header, rows = _table(path, "points", text=("image",))
    if not set(POINTS) <= set(header):
        raise _wrong(
            "the points of people cannot be read",
            f"{path}, line 1",
            f"columns {','.join(header)}",
            f"at least the columns {','.join(POINTS)}",
        )
    found: dict[str, dict[int, PersonPoints]] = {}
    for row in rows:
        points = PersonPoints(float(row["left_x"]), float(row["right_x"]))
        number, people = float(row["object"]), found.setdefault(str(row["image"]), {})
        if not (np.isfinite(points).all() and number >= 1 and number.is_integer()) or number in people:
            raise _wrong(
                "the points of people cannot be read",
                f"{path}, image {row['image']!r}",
                f"object {number:g} at the columns {points.left_x:g} and {points.right_x:g}",
                "each object once, by its number from 1, and finite columns",
            )
        people[int(number)] = points
    return found


def triangulated_m(points: PersonPoints, camera: Camera, where: str) -> float:
    """Return the depth that two points of a person give."""
    disparity = points.left_x - points.right_x + camera.offset_px
    if camera.baseline_m is None or not disparity > 0:
        raise _wrong(
            "the two points of a person give no depth",
            where,
            f"columns {points.left_x:g} and {points.right_x:g}, baseline {camera.baseline_m}",
            "a point further left in the right image, and a baseline in the calibration",
        )
    return camera.fx * camera.baseline_m / disparity


def position_m(
    depth_m: float, box: Sequence[float], camera: Camera, world_from_camera: NDArray[np.float64]
) -> tuple[float, float, float]:
    """Return where in the world a person is: at a depth, on the ray through the middle of its box."""
    x = ((box[0] + box[2]) / 2 - PIXEL_CENTRE - camera.cx) / camera.fx * depth_m
    y = ((box[1] + box[3]) / 2 - PIXEL_CENTRE - camera.cy) / camera.fy * depth_m
    world = world_from_camera @ np.array([x, y, depth_m, 1.0])
    return float(world[0]), float(world[1]), float(world[2])


def paired(left: Mapping[str, float], right: Mapping[str, Path], folder: Path) -> dict[str, Path]:
    """Return the right image of each left one (by stem, with its time) that was taken at the same moment."""
    times = []
    cameras: set[str] = set()
    for stem, path in right.items():
        name = NAME.fullmatch(stem)
        if name is None:
            wanted = "Image_<camera>_<number>_<unix time>"
            raise _wrong("the name of a right image does not follow the format", str(path), stem, wanted)
        times.append((float(name["time"]), path))
        cameras.add(name["camera"])
    others = {
        stem: time_s
        for stem, time_s in left.items()
        if not any(stem.startswith(f"Image_{camera}_") for camera in cameras)
    }
    if len(cameras) > 1 or (left and not others):
        raise DataError(
            "the right images are not those of one other camera",
            where=str(folder),
            got=f"images of camera {', '.join(sorted(cameras))}",
            wanted="images of one camera that is not the left one",
            fix="Name a folder that holds the right images alone after right:.",
        )
    times.sort()
    found: dict[str, Path] = {}
    apart = np.inf
    for stem, time_s in others.items():
        at = bisect.bisect_left(times, (time_s, Path()))
        near = min(times[max(at - 1, 0) : at + 1], key=lambda entry: abs(entry[0] - time_s), default=None)
        if near is not None:
            apart = min(apart, abs(near[0] - time_s))
            if abs(near[0] - time_s) <= MOST_APART_S:
                found[stem] = near[1]
    if left and not found:
        raise DataError(
            "no right image was taken at the moment of a left one",
            where=str(folder),
            got=f"{len(right)} images, the nearest {apart:.3f} s away" if times else "no images",
            wanted=f"pairs taken within {MOST_APART_S:g} s",
            fix="Name the folder of the right images of these recordings after right:.",
        )
    return found


def _placed(position: NDArray[np.float64], angles: NDArray[np.float64]) -> NDArray[np.float64]:
    matrix = np.eye(4)
    matrix[:3, :3] = turned(*angles.tolist())
    matrix[:3, 3] = position
    return matrix


def _table(
    path: Path, what: str, text: tuple[str, ...] = ()
) -> tuple[list[str], list[dict[str, float | str]]]:
    """Read a CSV file of numbers; the columns `text` hold words."""
    try:
        lines = csv.reader(io.StringIO(read_bytes(path, what=what).decode("utf-8-sig"), newline=""))
        header = [name.strip() for name in next(lines, [])]
        rows: list[dict[str, float | str]] = []
        for row in lines:
            if any(cell.strip() for cell in row):
                cells = dict(zip(header, (cell.strip() for cell in row), strict=True))
                rows.append({name: cell if name in text else float(cell) for name, cell in cells.items()})
    except (UnicodeDecodeError, ValueError) as error:
        raise _wrong(
            f"the file of {what} cannot be read", str(path), str(error), "a CSV file of numbers"
        ) from error
    return header, rows


def _wrong(what: str, where: str, got: str, wanted: str) -> DataError:
    fix = "Correct it; docs/data-formats.md describes the file."
    return DataError(what, where=where, got=got, wanted=wanted, fix=fix)

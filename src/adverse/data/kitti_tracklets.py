"""Tracklets of KITTI's raw drives, `tracklet_labels.xml`: objects as solids in the laser scanner's frame.

A tracklet has a type, a height, width and length, the first frame it is in, and a pose for each frame from
there on: the middle of its lower side and how far it is turned to the left. People drew these solids over
many frames, so they go on where nothing of the object can be seen; the pose says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.data.images import Size
from adverse.data.kitti_files import CLASSES, Calibration, KittiLabel
from adverse.data.rig import turned
from adverse.data.seen_box import corners_of, seen_box
from adverse.data.strict_xml import Element, read_xml, wrong
from adverse.errors import DataError, suggestion

FILE = "tracklet_labels.xml"
DOCTYPE = "boost_serialization"
LIMIT_BYTES = 2**28
"""A pose takes some 500 bytes: far more than the longest drive has."""
SITTING = {"Person (sitting)": "Person_sitting"}
"""What tracklets call a class."""
HIDDEN = 2
"""Occlusion of a pose: 0 visible, 1 partly, 2 fully hidden; others mean that nobody said."""
UNKNOWN = 3.0
"""What the labels of images call an occlusion that nobody stated."""
NOT_SHOWN = (2, 99)
"""Truncation of a pose that is outside the image, or behind the camera; 0 is inside, 1 partly outside."""


class TrackletPose(NamedTuple):
    """Where an object is in one frame, in the frame of the laser scanner, and how much of it can be seen."""

    position_m: tuple[float, float, float]
    left_rad: float
    occlusion: int
    truncation: int
    where: str


class Tracklet(NamedTuple):
    """An object over the frames of a drive."""

    number: int
    kind: str
    size_m: tuple[float, float, float]
    """Height, width and length."""
    first_frame: int
    poses: tuple[TrackletPose, ...]


def read_tracklets(path: Path) -> list[Tracklet]:
    """Read the tracklets of a drive, numbered as they stand in the file."""
    top = read_xml(path, DOCTYPE, doctype=DOCTYPE, limit_bytes=LIMIT_BYTES)
    return [_tracklet(number, item) for number, item in enumerate(_items(top.get("tracklets")))]


def tracklet_labels(
    tracklets: Iterable[Tracklet], calibration: Calibration, size: Size, path: Path
) -> dict[int, list[KittiLabel]]:
    """Return what images of one camera show of the tracklets, by frame number.

    The box is around the part of the solid's outline that lies in the image; the share outside is the
    truncation. What is fully hidden is kept, and ignored.
    """
    rectified_from_velodyne = calibration.rectified_from_velodyne
    if rectified_from_velodyne is None:
        raise DataError(
            "the tracklets cannot be placed in the image",
            where=str(path),
            got="no calib_velo_to_cam.txt in the folder of the day",
            wanted="where the laser scanner stands: tracklets are in its frame",
            fix="Add the file, or take the tracklets out.",
        )
    camera_m = calibration.rectified_from_camera[:3, 3]
    rows: dict[int, list[KittiLabel]] = {}
    for tracklet in tracklets:
        for frame, pose in enumerate(tracklet.poses, start=tracklet.first_frame):
            if pose.truncation in NOT_SHOWN:
                continue
            corners_m = _carried(_corners(tracklet, pose), rectified_from_velodyne)
            shown = seen_box(corners_m - camera_m, calibration.projection[:, :3], size)
            if shown is None:
                continue
            (x, y, z) = _carried(np.array([pose.position_m]), rectified_from_velodyne)[0].tolist()
            label = KittiLabel(
                pose.where,
                tracklet.kind,
                shown.outside,
                float(pose.occlusion) if pose.occlusion in (0, 1, HIDDEN) else UNKNOWN,
                shown.box,
                (x, y, z),
                tracklet.number,
                hidden=pose.occlusion == HIDDEN,
            )
            rows.setdefault(frame, []).append(label)
    return rows


def _corners(tracklet: Tracklet, pose: TrackletPose) -> NDArray[np.float64]:
    height, width, length = tracklet.size_m
    placed = np.eye(4)
    placed[:3, :3], placed[:3, 3] = turned(pose.left_rad, 0, 0), pose.position_m
    return _carried(corners_of(length, width, 0.0, height), placed)


def _carried(points_m: NDArray[np.float64], transform: NDArray[np.float64]) -> NDArray[np.float64]:
    carried: NDArray[np.float64] = points_m @ transform[:3, :3].T + transform[:3, 3]
    return carried


def _tracklet(number: int, item: Element) -> Tracklet:
    kind = item.get("objectType")
    name = SITTING.get(kind.text, kind.text)
    if name not in CLASSES:
        raise wrong(kind, repr(kind.text[:40]), "a type of object", suggestion(name, CLASSES))
    sides = [item.get(side) for side in ("h", "w", "l")]
    for side in sides:
        if side.number() <= 0:
            raise wrong(side, repr(side.text[:40]), "metres above 0", "Correct the size.")
    height, width, length = (side.number() for side in sides)
    poses = tuple(_pose(pose) for pose in _items(item.get("poses")))
    return Tracklet(number, name, (height, width, length), item.get("first_frame").whole(), poses)


def _pose(item: Element) -> TrackletPose:
    x, y, z, left = (item.get(name).number() for name in ("tx", "ty", "tz", "rz"))
    flags = (item.get(name).number() for name in ("occlusion", "truncation"))
    occlusion, truncation = (int(flag) for flag in flags)
    return TrackletPose((x, y, z), left, occlusion, truncation, item.where)


def _items(collection: Element) -> Iterator[Element]:
    """Yield the items of a collection, which says itself how many there are."""
    items, count = list(collection.all("item")), collection.get("count")
    if len(items) != count.whole():
        raise wrong(
            count, f"{count.text}, and {len(items)} items", "as many items as it says", "Export it again."
        )
    yield from items

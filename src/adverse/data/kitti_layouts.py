"""Where KITTI's benchmarks keep their files: object, tracking, odometry and raw.

Every layout becomes the same thing, a *drive*: images in order with what lies beside each, by frame number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.data.files import inside, read_text, wrong_line
from adverse.data.images import SUFFIXES
from adverse.data.kitti_files import (
    WORLD_FROM_RECTIFIED,
    Calibration,
    KittiLabel,
    read_calibration,
    read_object_labels,
    read_odometry_poses,
    read_oxts,
    read_raw_calibration,
    read_times,
    read_tracking_labels,
    rectified_poses,
)
from adverse.data.kitti_tracklets import FILE as TRACKLETS
from adverse.data.layout import by_stem, natural
from adverse.errors import DataError

Layout = Literal["object", "tracking", "odometry", "raw"]
Cameras = tuple[int, int]
FRAMES_PER_S = 10.0
"""What all cameras were triggered at; the tracking data have no times of their own."""


class KittiFolder(NamedTuple):
    """A layout, and the folder in which it begins."""

    layout: Layout
    base: Path


@dataclass
class KittiDrive:
    """The frames of one log, each thing by frame number; `folder` is where its images are."""

    id: str
    folder: Path
    digits: int
    images: dict[int, Path]
    calibration: Calibration | None = None
    rights: Mapping[int, Path] = field(default_factory=dict)
    scans: Mapping[int, Path] = field(default_factory=dict)
    rows: Mapping[int, list[KittiLabel]] | None = None
    tracklets: Path | None = None
    """Solids that become rows when the size of the images is known."""
    world_from_rectified: Mapping[int, NDArray[np.float64]] = field(default_factory=dict)
    times_s: Mapping[int, float] = field(default_factory=dict)
    files: list[Path] = field(default_factory=list)

    def image(self, number: int) -> Path:
        """Return where the image of a frame is, or should be."""
        return self.images.get(number, self.folder / f"{number:0{self.digits}}.png")


def find_layout(root: Path) -> KittiFolder | None:
    """Return which benchmark a folder holds, or None."""
    for base in (root, root / "training"):
        if (base / "label_02").is_dir() and (base / "image_02").is_dir():
            return KittiFolder("tracking", base)
        beside = any((base / name).is_dir() for name in ("label_2", "calib"))
        if beside and any((base / name).is_dir() for name in ("image_2", "image_0")):
            return KittiFolder("object", base)
    for base in (root, root / "dataset"):
        if (base / "sequences").is_dir():
            return KittiFolder("odometry", base)
    if (root / "calib_cam_to_cam.txt").is_file() or next(root.glob("*/calib_cam_to_cam.txt"), None):
        return KittiFolder("raw", root)
    return None


def drives(place: KittiFolder, root: Path, cameras: Cameras) -> Iterator[KittiDrive]:
    """Yield the drives of a layout in order; `cameras` are the numbers of the left and the right one."""
    readers = {"object": _objects, "tracking": _tracking, "odometry": _odometry, "raw": _raw}
    yield from readers[place.layout](place.base, root, cameras)


def _objects(base: Path, root: Path, cameras: Cameras) -> Iterator[KittiDrive]:
    """Every image is a drive of its own; its world is the camera's, there being no other."""
    folder = base / f"image_{cameras[0]}"
    images = _numbered(folder, root, SUFFIXES)
    rights = _numbered(base / f"image_{cameras[1]}", root, SUFFIXES)
    scans = _numbered(base / "velodyne", root, (".bin",))
    calibrations = _numbered(base / "calib", root, (".txt",))
    labels = _numbered(base / "label_2", root, (".txt",)) if (base / "label_2").is_dir() else None
    for number in sorted(images.keys() | (labels or {}).keys()):
        drive = KittiDrive(f"{number:06}", folder, 6, {number: images[number]} if number in images else {})
        if number in calibrations:
            drive.files.append(calibrations[number])
            drive.calibration = read_calibration(calibrations[number], cameras)
            drive.world_from_rectified = {number: WORLD_FROM_RECTIFIED}
        drive.rights, drive.scans = (
            {number: files[number]} if number in files else {} for files in (rights, scans)
        )
        if labels is not None:
            if number not in labels:
                raise _unlabelled(images[number], base / "label_2")
            drive.files.append(labels[number])
            drive.rows = {number: read_object_labels(labels[number])}
        yield drive


def _tracking(base: Path, root: Path, cameras: Cameras) -> Iterator[KittiDrive]:
    labels = by_stem(base / "label_02", root, (".txt",))
    left, right = (base / f"image_{number:02}" for number in cameras)
    names = {path.name for path in left.iterdir() if path.is_dir()}
    for name in sorted(names | labels.keys(), key=natural):
        drive = KittiDrive(name, left / name, 6, _numbered(left / name, root, SUFFIXES))
        if name not in labels:
            raise _unlabelled(left / name, base / "label_02")
        drive.files.append(labels[name])
        drive.rows = read_tracking_labels(labels[name])
        drive.rights = _numbered(right / name, root, SUFFIXES)
        drive.scans = _numbered(base / "velodyne" / name, root, (".bin",))
        drive.times_s = {number: number / FRAMES_PER_S for number in drive.images.keys() | drive.rows.keys()}
        calibration, oxts = base / "calib" / f"{name}.txt", base / "oxts" / f"{name}.txt"
        if calibration.is_file():
            drive.files.append(calibration)
            drive.calibration = read_calibration(calibration, cameras)
            if oxts.is_file():
                drive.files.append(oxts)
                drive.world_from_rectified = dict(
                    enumerate(rectified_poses(read_oxts(oxts), drive.calibration) or ())
                )
        yield drive


def _odometry(base: Path, root: Path, cameras: Cameras) -> Iterator[KittiDrive]:
    sequences = base / "sequences"
    for folder in sorted(
        (path for path in sequences.iterdir() if path.is_dir()), key=lambda p: natural(p.name)
    ):
        left, right = (folder / f"image_{number}" for number in cameras)
        drive = KittiDrive(folder.name, left, 6, _numbered(left, root, SUFFIXES))
        drive.rights = _numbered(right, root, SUFFIXES)
        drive.scans = _numbered(folder / "velodyne", root, (".bin",))
        calibration, times = folder / "calib.txt", folder / "times.txt"
        if calibration.is_file():
            drive.files.append(calibration)
            drive.calibration = read_calibration(calibration, cameras)
        if times.is_file():
            drive.files.append(times)
            drive.times_s = dict(enumerate(read_times(times)))
        poses = base / "poses" / f"{folder.name}.txt"
        if poses.is_file():
            drive.files.append(poses)
            drive.world_from_rectified = dict(enumerate(read_odometry_poses(poses)))
        yield drive


def _raw(base: Path, root: Path, cameras: Cameras) -> Iterator[KittiDrive]:
    days = [base] if (base / "calib_cam_to_cam.txt").is_file() else sorted(base.iterdir())
    for day in days:
        if not (day / "calib_cam_to_cam.txt").is_file():
            continue
        calibration = read_raw_calibration(day, cameras)
        names = ("cam_to_cam", "velo_to_cam", "imu_to_velo")
        beside = [path for name in names if (path := day / f"calib_{name}.txt").is_file()]
        for folder in sorted(path for path in day.iterdir() if (path / f"image_{cameras[0]:02}").is_dir()):
            left, right = (folder / f"image_{number:02}" for number in cameras)
            drive = KittiDrive(
                folder.name, left / "data", 10, _numbered(left / "data", root, SUFFIXES), calibration
            )
            drive.files += beside
            drive.rights = _numbered(right / "data", root, SUFFIXES)
            drive.scans = _numbered(folder / "velodyne_points/data", root, (".bin",))
            if (left / "timestamps.txt").is_file():
                drive.files.append(left / "timestamps.txt")
                drive.times_s = dict(enumerate(_clock(left / "timestamps.txt")))
            if (folder / TRACKLETS).is_file():
                drive.tracklets = inside(
                    root, (folder / TRACKLETS).relative_to(root).as_posix(), where=str(folder)
                )
                drive.files.append(drive.tracklets)
            oxts = _numbered(folder / "oxts/data", root, (".txt",))
            drive.files += [oxts[number] for number in sorted(oxts)]
            lines = [line for number in sorted(oxts) for line in read_oxts(oxts[number])[:1]]
            placed = rectified_poses(lines, calibration) or []
            drive.world_from_rectified = dict(zip(sorted(oxts), placed, strict=False))
            yield drive


def _clock(path: Path) -> list[float]:
    """Return seconds since the first line of a raw log's timestamps, e.g. 2011-09-26 13:02:25.964389445."""
    seconds: list[float] = []
    start: tuple[datetime, float] | None = None
    for number, line in enumerate(read_text(path, what="time").splitlines(), start=1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        whole, _, fraction = line.strip().partition(".")
        try:
            moment = datetime.fromisoformat(whole)
            parts = float(f"0.{fraction or 0}")
        except ValueError as error:
            raise wrong_line(where, "time", repr(line[:40]), "2011-09-26 13:02:25.964389445") from error
        start = start or (moment, parts)
        time_s = (moment - start[0]).total_seconds() + parts - start[1]
        if seconds and time_s <= seconds[-1]:
            raise wrong_line(where, "time", repr(line[:40]), "a later time on each line")
        seconds.append(time_s)
    return seconds


def _numbered(folder: Path, root: Path, suffixes: tuple[str, ...] | frozenset[str]) -> dict[int, Path]:
    """Return the files of a folder by their number."""
    by_number: dict[int, Path] = {}
    for stem, path in by_stem(folder, root, suffixes).items():
        if not stem.isdecimal():
            raise DataError(
                "a file's name is not a frame number",
                where=str(path),
                got=repr(stem),
                wanted="a number, such as 000123",
                fix="Rename the file, or take it out of the folder.",
            )
        by_number[int(stem)] = path
    return by_number


def _unlabelled(path: Path, labels: Path) -> DataError:
    return DataError(
        "there are labels, but not for all images",
        where=str(path),
        got=f"no {path.stem}.txt in {labels}",
        wanted="a label file for each image, empty where there is no object",
        fix="Add the file, or take the images out: an unlabelled image is not a negative.",
    )

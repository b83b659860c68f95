"""The `kitti` format: KITTI's object, tracking, odometry and raw data, recognised by their folders.

Depth is the laser scan projected into the image, so it is sparse: NaN where no point falls. Object images are
logs of one frame; sequences and drives are logs, with poses where GPS or odometry has them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from adverse.data import subsets
from adverse.data.depth import VelodyneDepth
from adverse.data.files import absent, inside, read_text
from adverse.data.images import DEFAULT_POLICY, ImageFile, ImagePolicy, Size
from adverse.data.kitti_files import CLASSES, Difficulty, Point, class_names, objects_of
from adverse.data.kitti_layouts import KittiDrive, KittiFolder, Layout, drives, find_layout
from adverse.data.kitti_tracklets import read_tracklets, tracklet_labels
from adverse.data.truth import Truths, check_class_map
from adverse.errors import AdverseError, DataError
from adverse.plugins import dataset
from adverse.types import Camera, Dataset, Frame, Log, Split, Truth

SETS = "ImageSets"
CAMERAS: dict[str, tuple[int, int]] = {"colour": (2, 3), "gray": (0, 1)}
UNLABELLED = "drives without tracklets, left out: others have them"
WITHOUT_IMAGE = "labelled frames without an image, left out"


def looks_like(path: Path) -> dict[str, Any] | None:
    """Recognise one of the four layouts."""
    return {"root": str(path)} if path.is_dir() and find_layout(path) else None


@dataset(looks_like=looks_like)
def kitti(
    root: Path,
    *,
    layout: Layout | None = None,
    split: dict[Split, str] | None = None,
    class_map: dict[str, str] = {},  # noqa: B006 - never written to
    difficulty: Difficulty = "all",
    dont_care: Literal["ignore", "drop"] = "ignore",
    cameras: Literal["colour", "gray"] = "colour",
    missing_images: Literal["quarantine", "skip"] = "quarantine",
    policy: ImagePolicy = DEFAULT_POLICY,
) -> Dataset:
    """Read KITTI data: object, tracking, odometry or raw, by the folders.

    `split` names lists in ImageSets: {validation: val} is ImageSets/val.txt, with an image (object) or a
    sequence on each line. `difficulty` is the devkit's: what is beyond it is ignored. `dont_care: drop`
    counts detections in DontCare regions as any others. `missing_images: skip` leaves out labelled frames
    whose image is not there.
    """
    place = _place(root, layout)
    check_class_map(class_map, CLASSES)
    by_id = {drive.id: drive for drive in drives(place, root, CAMERAS[cameras])}
    chosen: list[tuple[Split, str, KittiDrive]] = []
    lists: list[Path] = []
    for kind, name, prefix in subsets.named(split):
        if name is None:
            chosen += [(kind, prefix, drive) for drive in by_id.values()]
        else:
            lists.append(inside(place.base, f"{SETS}/{name}.txt", where=f"data.split.{kind}"))
            chosen += [(kind, prefix, drive) for drive in _listed(lists[-1], by_id)]
    notes: Counter[str] = Counter()
    chosen = _with_tracklets(chosen, policy, notes)
    rows = [row for _, _, drive in chosen for per_frame in (drive.rows or {}).values() for row in per_frame]
    labelled = any(drive.rows is not None for _, _, drive in chosen)
    categories = class_names(rows, class_map) if labelled else ()
    placed = any(drive.world_from_rectified for _, _, drive in chosen)
    notes["no labels"] += not labelled
    reading = _Reading(
        policy=policy,
        truths=Truths(categories, notes, located=placed),
        class_map=class_map,
        difficulty=difficulty,
        drop_dont_care=dont_care == "drop",
        skip=missing_images == "skip",
    )
    logs = [log for kind, prefix, drive in chosen if (log := reading.log(drive, kind, prefix)) is not None]
    if not logs:
        raise _nothing(root, "no images")
    read = dict.fromkeys([*lists, *(file for _, _, drive in chosen for file in drive.files)])
    return Dataset(root.resolve().name, categories, tuple(logs), tuple(read), dict(+notes))


@dataclass(frozen=True)
class _Reading:
    """What holds for all logs of one data set."""

    policy: ImagePolicy
    truths: Truths
    class_map: dict[str, str]
    difficulty: Difficulty
    drop_dont_care: bool
    skip: bool

    def log(self, drive: KittiDrive, split: Split, prefix: str) -> Log | None:
        """Make a drive a log, or return None where it has no frames."""
        numbers = sorted(drive.images.keys() | (drive.rows or {}).keys())
        if self.skip:
            self.truths.notes[WITHOUT_IMAGE] += sum(number not in drive.images for number in numbers)
            numbers = [number for number in numbers if number in drive.images]
        size = _size(drive, self.policy)
        camera = drive.calibration.camera(size) if drive.calibration and size else None
        log_id = prefix + drive.id
        frames = tuple(
            self._frame(drive, number, index, log_id, camera, size) for index, number in enumerate(numbers)
        )
        self._count_gaps(drive, numbers)
        return Log(log_id, frames, split) if frames else None

    def _frame(
        self,
        drive: KittiDrive,
        number: int,
        index: int,
        log_id: str,
        camera: Camera | None,
        size: Size | None,
    ) -> Frame:
        path = drive.image(number)
        image = ImageFile(path, self.policy, size)
        pose = None
        if drive.calibration is not None and number in drive.world_from_rectified:
            pose = drive.world_from_rectified[number] @ drive.calibration.rectified_from_camera
            pose.flags.writeable = False
        truth, fault = Truth.none(), None
        if drive.rows is not None:
            rows = drive.rows.get(number, [])
            categories = self.truths.categories
            place, drop = _placing(drive, number), self.drop_dont_care
            objects = objects_of(
                rows, categories, self.class_map, self.difficulty, place, drop_dont_care=drop
            )
            truth, fault = self.truths.of(list(objects), image)
        missing = _missing(path)
        right, scan = drive.rights.get(number), drive.scans.get(number)
        projection = drive.calibration.pixels_from_velodyne if drive.calibration else None
        stem = f"{number:0{drive.digits}}"
        alone = len(drive.images) <= 1 and drive.id == stem  # an object image: the log is the frame
        return Frame(
            id=log_id if alone else f"{log_id}/{stem}",
            log_id=log_id,
            index=index,
            image=image,
            truth=truth,
            image_id=stem if alone else f"{drive.id}/{stem}",
            time_s=drive.times_s.get(number),
            camera=camera,
            world_from_camera=pose,
            right=ImageFile(right, self.policy, size) if right else None,
            depth_m=VelodyneDepth(scan, image, projection) if scan and projection else None,
            fault=fault if missing is None else str(missing),
        )

    def _count_gaps(self, drive: KittiDrive, numbers: list[int]) -> None:
        for noun, files in (("a velodyne scan", drive.scans), ("a right image", drive.rights)):
            if files:
                self.truths.notes[f"frames without {noun}"] += sum(n not in files for n in numbers)
        if drive.world_from_rectified:
            missing = sum(number not in drive.world_from_rectified for number in numbers)
            self.truths.notes["frames without a pose"] += missing


def _with_tracklets(
    chosen: Sequence[tuple[Split, str, KittiDrive]], policy: ImagePolicy, notes: Counter[str]
) -> list[tuple[Split, str, KittiDrive]]:
    """Read the tracklets of raw drives; where some have them, those without are left out: nobody looked."""
    if all(drive.tracklets is None for _, _, drive in chosen):
        return list(chosen)
    kept = [(split, prefix, drive) for split, prefix, drive in chosen if drive.tracklets is not None]
    notes[UNLABELLED] += len(chosen) - len(kept)
    for _, _, drive in kept:
        size = _size(drive, policy)
        if drive.tracklets is not None and drive.calibration is not None and size is not None:
            tracklets = read_tracklets(drive.tracklets)
            drive.rows = tracklet_labels(tracklets, drive.calibration, size, drive.tracklets)
    return kept


def _size(drive: KittiDrive, policy: ImagePolicy) -> Size | None:
    """Measure the first image of a drive that can be; all others must be alike."""
    for number in sorted(drive.images):
        try:
            return ImageFile(drive.images[number], policy).measure()
        except AdverseError:
            continue
    return None


def _missing(path: Path) -> DataError | None:
    missing = absent(path, "image")
    if missing is None:
        return None
    fix = "Put the file there, or set missing_images: skip in the study's data section."
    return DataError(missing.what, where=missing.where, wanted=missing.wanted, fix=fix)


def _placing(drive: KittiDrive, number: int) -> Callable[[Point], Point] | None:
    """Return what carries a point of the rectified frame into the world, where the frame has a pose."""
    pose = drive.world_from_rectified.get(number)
    if pose is None:
        return None

    def place(point: Point) -> Point:
        x, y, z = pose[:3, :3] @ np.array(point) + pose[:3, 3]
        return float(x), float(y), float(z)

    return place


def _place(root: Path, layout: Layout | None) -> KittiFolder:
    layout_of_root = find_layout(root) if root.is_dir() else None
    if layout_of_root is None:
        raise _nothing(root, "no such folder" if not root.is_dir() else "none of KITTI's folders")
    if layout is not None and layout_of_root.layout != layout:
        raise _nothing(root, f"the {layout_of_root.layout} layout", wanted=f"the {layout} layout")
    return layout_of_root


def _listed(path: Path, by_id: dict[str, KittiDrive]) -> list[KittiDrive]:
    chosen = []
    for number, line in enumerate(read_text(path, what="image list").splitlines(), start=1):
        name = line.strip()
        if name and name not in by_id:
            raise DataError(
                "the image list is wrong",
                where=f"{path}, line {number}",
                got=repr(name),
                wanted="an image (object) or a sequence that is there",
                fix="Correct the line, or add the files.",
            )
        if name:
            chosen.append(by_id[name])
    return chosen


def _nothing(root: Path, got: str, wanted: str = "object, tracking, odometry or raw data") -> DataError:
    return DataError(
        "the folder is not laid out as KITTI is",
        where=str(root),
        got=got,
        wanted=wanted,
        fix="Check root in the study's data section; docs/data-formats.md shows the four layouts.",
    )

"""Annotations as a data set: COCO with positions, alone or with the whole data set in the `folder` format.

Positions are those of the points, fitted over the frames of an object; where there is no point, those
that the data set gives. The data set itself is only read. An export appears whole or not at all.
"""

from __future__ import annotations

import errno
import io
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from adverse.annotation.changes import Annotation, State
from adverse.annotation.session import UNSURE_M, AnnotatedLog, Placed
from adverse.annotation.smoothing import smoothed_m
from adverse.data.folder import TRUTH_FILE
from adverse.data.images import DEFAULT_POLICY, ImageFile, write_image
from adverse.data.layout import DEPTH, IMAGES, INSTANCES, LABELS, RIGHT
from adverse.data.maps import NAMES_FILE
from adverse.data.rig import CAMERA_FILE, COLUMNS, POSES_FILE, ROBOT_FILE, camera_fields
from adverse.errors import AdverseError, DataError, StudyError
from adverse.store.durable import flush_folder, flush_tree, storage_errors, write_file
from adverse.types import Dataset, Frame, Log, Source

HOOD = "hood.png"


class Exported(NamedTuple):
    """What was written: the COCO file, frames, boxes, those with a position, and what was left out."""

    truth: Path
    frames: int
    boxes: int
    located: int
    left_out: tuple[str, ...]
    unsure: tuple[str, ...] = ()
    """Positions that may be off by more than 0.10 m: frame, object and by how much."""


def export_coco(
    dataset: Dataset,
    state: State,
    categories: tuple[str, ...],
    out: Path,
    *,
    root: Path,
    smooth_s: float,
    inside_m: float,
) -> Exported:
    """Write one COCO file; its file names are relative to `root`."""
    if out.exists():
        raise _exists(out)
    frames = [frame for log in dataset.logs for frame in log.frames]
    names = {frame.id: Path(os.path.relpath(frame.image.path, root)).as_posix() for frame in frames}
    return _write(dataset, state, categories, out, names, (smooth_s, inside_m))


def export_folder(
    dataset: Dataset,
    state: State,
    categories: tuple[str, ...],
    out: Path,
    *,
    smooth_s: float,
    inside_m: float,
) -> Exported:
    """Write the whole data set in the `folder` format, images copied; a study reads it at every level.

    It is written beside its place, in a hidden folder that ends in `.partial`, and renamed when it is whole.
    """
    if out.exists():
        raise _exists(out)
    with storage_errors(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{out.name}.", suffix=".partial", dir=out.parent) as beside:
            making = Path(beside) / out.name
            written = _write_folder(dataset, state, categories, making, (smooth_s, inside_m))
            flush_tree(making)
            try:
                making.rename(out)
            except OSError as error:
                if error.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
                    raise _exists(out) from error
                raise
            flush_folder(out.parent)
    return written._replace(truth=out / TRUTH_FILE)


def _write_folder(
    dataset: Dataset,
    state: State,
    categories: tuple[str, ...],
    out: Path,
    refining: tuple[float, float],
) -> Exported:
    names: dict[str, str] = {}
    left_out: list[str] = []
    out.mkdir()
    for log in dataset.logs:
        names |= _write_log(log, out, left_out)
    if dataset.robot:
        write_file(out / ROBOT_FILE, json.dumps(dict(dataset.robot), indent=1).encode())
    if dataset.pixel_classes:
        named = {str(number): name for number, name in dataset.pixel_classes.items()}
        write_file(out / NAMES_FILE, json.dumps(named, indent=1).encode())
    written = _write(dataset, state, categories, out / TRUTH_FILE, names, refining)
    return written._replace(left_out=(*left_out, *written.left_out))


def image_root(dataset: Dataset, data: Path) -> Path:
    """Return the data set's own folder if it holds all images, else the deepest folder that does."""
    parents = [frame.image.path.absolute().parent for log in dataset.logs for frame in log.frames]
    if all(parent.is_relative_to(data) for parent in parents):
        return data
    return Path(os.path.commonpath([str(parent) for parent in parents]))


def positions_m(log: AnnotatedLog, number: int, *, smooth_s: float, inside_m: float) -> dict[int, Placed]:
    """Return the places of an object by frame: those by points fitted and `inside_m` behind the surface.

    Points with partners are fitted all together; those of depth maps are made smooth over `smooth_s`. Where
    that is 0 each is as its own match or map gives it.
    """
    found: dict[int, Placed] = {}
    mapped: list[tuple[int, float, float]] = []
    fitted = log.fitted(number) if smooth_s > 0 else {}
    marked = []
    for at, what in log.state.of_object(number).items():
        place, depth, time_s = log.position_m(at, what), log.depth_m(at, what), log.frames[at].time_s
        if place is None:
            continue
        found[at] = fitted.get(at, Placed(place, None))
        if what.located:
            marked.append(at)
            if at not in fitted and depth is not None and time_s is not None:
                mapped.append((at, time_s, depth))
    if mapped:
        frames, times, depths = zip(*mapped, strict=True)
        places = np.array([found[at].place_m for at in frames])
        smooth = smoothed_m(np.array(times), places, np.array(depths), smooth_s)
        found |= {at: Placed(place, None) for at, place in zip(frames, smooth, strict=True)}
    for at in marked:
        pose, placed = log.frames[at].world_from_camera, found[at]
        ray = np.zeros(3) if pose is None else placed.place_m - pose[:3, 3]
        away = inside_m * ray / max(float(np.linalg.norm(ray)), 1e-9)
        found[at] = placed._replace(place_m=placed.place_m + away)
    return found


def _write(
    dataset: Dataset,
    state: State,
    categories: tuple[str, ...],
    path: Path,
    names: dict[str, str],
    refining: tuple[float, float],
) -> Exported:
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    left_out: list[str] = []
    unsure: list[str] = []
    for log in dataset.logs:
        annotated = AnnotatedLog(log, state.logs[log.id])
        ids = {number for _, number in annotated.state.annotations}
        places = {
            number: positions_m(annotated, number, smooth_s=refining[0], inside_m=refining[1])
            for number in sorted(ids)
        }
        image_ids: dict[int, int] = {}
        for at, frame in enumerate(log.frames):
            if frame.id not in names:
                continue
            try:
                width, height = _size(frame)
            except AdverseError as error:
                left_out.append(f"{frame.id}: {error.what}")
                continue
            image_ids[at] = len(images) + 1
            images.append(
                {"id": len(images) + 1, "file_name": names[frame.id], "width": width, "height": height}
            )
        for (at, number), what in sorted(annotated.state.annotations.items()):
            if at not in image_ids:
                continue
            place = places[number].get(at)
            entry = _annotation(log.frames[at], what, number, place, categories)
            if place is not None and place.error_m is not None and place.error_m > UNSURE_M:
                unsure.append(f"{log.frames[at].id}, object {number}: {place.error_m:.2f} m")
            annotations.append({"id": len(annotations) + 1, "image_id": image_ids[at], **entry})
    listed = [{"id": number, "name": name} for number, name in enumerate(categories, start=1)]
    body = {"images": images, "annotations": annotations, "categories": listed}
    write_file(path, (json.dumps(body, allow_nan=False) + "\n").encode())
    located = sum("position_m" in entry for entry in annotations)
    return Exported(path, len(images), len(annotations), located, tuple(left_out), tuple(unsure))


def _annotation(
    frame: Frame,
    what: Annotation,
    number: int,
    placed: Placed | None,
    categories: tuple[str, ...],
) -> dict[str, Any]:
    x0, y0, x1, y1 = what.box
    truth, row = frame.truth, what.row
    crowd = row is not None and truth.crowd is not None and bool(truth.crowd[row])
    entry: dict[str, Any] = {
        "category_id": categories.index(what.label) + 1,
        "bbox": [x0, y0, x1 - x0, y1 - y0],
        "area": (x1 - x0) * (y1 - y0),
        "iscrowd": int(crowd),
        "ignore": int(what.ignore),
        "track_id": number,
    }
    if row is not None:
        if truth.area is not None and np.isfinite(truth.area[row]) and what.box_by == "data":
            entry["area"] = float(truth.area[row])
        if truth.attributes and truth.attributes[row]:
            entry["attributes"] = dict(truth.attributes[row])
    if placed is not None:
        entry["position_m"] = [float(value) for value in placed.place_m]
        if placed.error_m is not None:
            entry["position_error_m"] = round(placed.error_m, 4)
    return entry


def _write_log(log: Log, out: Path, left_out: list[str]) -> dict[str, str]:
    """Copy a log; return the name of each frame's image, below `out`."""
    folder = out / log.id
    names: dict[str, str] = {}
    poses = [",".join(COLUMNS)]
    unique = len({frame.image.path.stem for frame in log.frames}) == len(log.frames)
    for frame in log.frames:
        stem = frame.image.path.stem if unique else f"{frame.index:06d}"
        try:
            names[frame.id] = _write_frame(frame, folder, stem).relative_to(out).as_posix()
        except AdverseError as error:
            left_out.append(f"{frame.id}: {error.what}")
            continue
        if frame.world_from_camera is not None and frame.time_s is None:
            left_out.append(f"{frame.id}: a pose without a time")
        elif frame.world_from_camera is not None and frame.time_s is not None:
            poses.append(_pose_line(stem, frame.time_s, frame.world_from_camera))
    _write_camera(log, folder)
    if len(poses) > 1:
        write_file(folder / POSES_FILE, ("\n".join(poses) + "\n").encode())
    for hood in _hoods(log):
        shutil.copyfile(hood, folder / HOOD)
    return names


def _write_frame(frame: Frame, folder: Path, stem: str) -> Path:
    """Copy an image with its companions; return where it is."""
    image = _copied(frame.image, folder / IMAGES, stem)
    if frame.right is not None:
        _copied(frame.right, folder / RIGHT, stem)
    for kind, source in ((LABELS, frame.labels), (INSTANCES, frame.instances)):
        if source is not None:
            (folder / kind).mkdir(parents=True, exist_ok=True)
            write_image(folder / kind / f"{stem}.png", source())
    if frame.depth_m is not None:
        _write_depth(frame.depth_m, folder / DEPTH, stem)
    return image


def _write_camera(log: Log, folder: Path) -> None:
    cameras = {frame.camera for frame in log.frames if frame.camera is not None}
    if len(cameras) > 1:
        raise DataError(
            "the frames of a log have different cameras",
            where=f"log {log.id!r}",
            wanted="one camera for each log",
            fix="Export with --format coco.",
        )
    for camera in cameras:
        given = camera_fields(camera)
        write_file(folder / CAMERA_FILE, json.dumps(given, indent=1).encode())


def _copied(source: Source, folder: Path, stem: str) -> Path:
    """Copy an image as it is, or write what is read from it where that is not the same."""
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(source, ImageFile) and source.policy == DEFAULT_POLICY:
        target = folder / f"{stem}{source.path.suffix.lower()}"
        target.write_bytes(source.read_bytes())
    else:
        target = folder / f"{stem}.png"
        write_image(target, source())
    return target


def _write_depth(source: Source, folder: Path, stem: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    data = io.BytesIO()
    np.save(data, np.asarray(source(), np.float32))
    (folder / f"{stem}.npy").write_bytes(data.getvalue())


def _pose_line(stem: str, time_s: float, pose: NDArray[np.float64]) -> str:
    x, y, z, w = Rotation.from_matrix(pose[:3, :3]).as_quat()
    return ",".join([stem, *(repr(float(value)) for value in (time_s, *pose[:3, 3], w, x, y, z))])


def _hoods(log: Log) -> Iterator[Path]:
    """Yield the mask of the hood beside the images of a log, where there is one."""
    for folder in (log.frames[0].image.path.parent, log.frames[0].image.path.parent.parent):
        if (folder / HOOD).is_file():
            yield folder / HOOD
            return


def _size(frame: Frame) -> tuple[int, int]:
    if isinstance(frame.image, ImageFile):
        return frame.image.measure()
    height, width = frame.image().shape[:2]
    return width, height


def _exists(out: Path) -> StudyError:
    return StudyError("there is something already", where=str(out), fix="Give another name, or remove it.")

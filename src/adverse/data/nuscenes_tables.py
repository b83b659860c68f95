"""The tables of nuScenes: JSON arrays of records that refer to each other by tokens."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from adverse.data.files import read_bytes
from adverse.errors import DataError
from adverse.json_arrays import LIMIT_BYTES, JsonArrays

Matrix = NDArray[np.float64]
Point = tuple[float, float, float]
Turn = tuple[float, float, float, float]
UNIT = 1e-3
"""How far from 1 the length of a quaternion may be."""


class Scene(msgspec.Struct):
    """A recording of some seconds."""

    token: str
    name: str


class Sample(msgspec.Struct):
    """A moment at which all sensors have a keyframe."""

    token: str
    timestamp: int
    scene_token: str


class SampleData(msgspec.Struct):
    """A file of a sensor: an image or a scan."""

    token: str
    sample_token: str
    ego_pose_token: str
    calibrated_sensor_token: str
    timestamp: int
    is_key_frame: bool
    filename: str
    width: int = 0
    height: int = 0

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of an image."""
        return self.width, self.height


class EgoPose(msgspec.Struct):
    """Where the vehicle is in the world."""

    token: str
    translation: Point
    rotation: Turn


class CalibratedSensor(msgspec.Struct):
    """Where a sensor is on the vehicle, and how a camera sees."""

    token: str
    sensor_token: str
    translation: Point
    rotation: Turn
    camera_intrinsic: list[list[float]] = []

    @property
    def vehicle_from_sensor(self) -> Matrix:
        """Carries points of the sensor into the vehicle (4,4)."""
        return pose_of(self.translation, self.rotation, self.token)

    @property
    def intrinsic(self) -> Matrix | None:
        """The calibration matrix (3,3) of a camera; None where there is none."""
        rows = np.array(self.camera_intrinsic, np.float64) if self.camera_intrinsic else np.zeros(0)
        return rows if rows.shape == (3, 3) else None


class Sensor(msgspec.Struct):
    """A sensor of the vehicle."""

    token: str
    channel: str
    modality: str


class Annotation(msgspec.Struct):
    """A 3-D box: its middle in the world, width, length and height, and how it is turned."""

    token: str
    sample_token: str
    instance_token: str
    translation: Point
    size: Point
    rotation: Turn
    num_lidar_pts: int = 1
    num_radar_pts: int = 0
    visibility_token: str = ""

    @property
    def points(self) -> int:
        """Laser and radar points inside."""
        return self.num_lidar_pts + self.num_radar_pts

    def corners_m(self) -> Matrix:
        """Return its corners in the world (8,3); those whose numbers differ in one bit are neighbours."""
        width, length, height = self.size
        signs = np.array(list(itertools.product((-0.5, 0.5), repeat=3)))
        pose = pose_of(self.translation, self.rotation, self.token)
        return signs * (length, width, height) @ pose[:3, :3].T + pose[:3, 3]


class Instance(msgspec.Struct):
    """An object over the samples of its scene."""

    token: str
    category_token: str


class Named(msgspec.Struct):
    """A category, or a level of visibility."""

    token: str
    name: str = ""
    level: str = ""


Entry = TypeVar("Entry")


def pose_of(translation: Point, rotation: Turn, token: str) -> Matrix:
    """Return a position and a unit quaternion (w, x, y, z) as a matrix (4,4)."""
    w, x, y, z = rotation
    length = float(np.sqrt(w * w + x * x + y * y + z * z))
    if not abs(length - 1) <= UNIT or not np.isfinite(translation).all():
        raise DataError(
            "a pose is not a position and a unit quaternion",
            where=f"token {token}",
            got=f"length {length:g}",
            wanted="rotation [w, x, y, z] of length 1 and a finite translation",
        )
    w, x, y, z = (value / length for value in rotation)
    pose = np.eye(4)
    pose[:3, :3] = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    pose[:3, 3] = translation
    return pose


def table_folders(root: Path) -> list[str]:
    """Return the names of the folders that hold tables."""
    return sorted(path.name for path in root.iterdir() if (path / "sample_data.json").is_file())


@dataclass(frozen=True)
class NuscenesTables:
    """What is read of one camera: keyframes with their poses and calibrations, and annotations."""

    folder: Path
    files: tuple[Path, ...]
    scenes: Mapping[str, str]
    scene_of: Mapping[str, str]
    images: Mapping[str, SampleData]
    """By sample."""
    scans: Mapping[str, SampleData]
    sensors: Mapping[str, CalibratedSensor]
    poses: Mapping[str, Matrix]
    annotations: Mapping[str, list[Annotation]]
    instances: Mapping[str, str]
    """The category of each."""
    visibility: Mapping[str, str]
    cameras: tuple[str, ...]
    labelled: bool

    @property
    def categories(self) -> list[str]:
        """The names of all categories that an object has."""
        return sorted(set(self.instances.values()))

    def where(self, table: str) -> str:
        """Return the file of a table."""
        return str(self.folder / f"{table}.json")

    def keyframes(self, scene: str) -> list[str]:
        """Return the samples of a scene that have an image, in order of time."""
        return self._by_scene.get(scene, [])

    @cached_property
    def _by_scene(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for sample in sorted(self.images, key=lambda token: (self.images[token].timestamp, token)):
            found.setdefault(self.scene_of[sample], []).append(sample)
        return found

    def category_of(self, annotation: Annotation) -> str:
        """Return the category of an annotation's instance."""
        return str(_known(self.instances, annotation.instance_token, self.where("instance")))

    def track_of(self, annotation: Annotation) -> int:
        """Return the number of an annotation's instance."""
        return self._tracks[annotation.instance_token]

    @cached_property
    def _tracks(self) -> dict[str, int]:
        return {token: number for number, token in enumerate(sorted(self.instances), start=1)}


def read_tables(root: Path, version: str | None, camera: str) -> NuscenesTables:
    """Read the tables of a data set, or say which file or token is wrong."""
    found = table_folders(root) if root.is_dir() else []
    if version not in found and (version is not None or len(found) != 1):
        raise DataError(
            "the tables of nuScenes cannot be found",
            where=str(root),
            got=f"version {version}" if version else f"{len(found)} folders with sample_data.json",
            wanted=", ".join(found) or "a folder such as v1.0-mini beside samples",
            fix="Set root: to the folder that holds samples, and version: where there are several.",
        )
    folder = root / (version or found[0])
    files: list[Path] = []

    def table(name: str, kind: type[Entry], *, needed: bool = True) -> list[Entry]:
        path = folder / f"{name}.json"
        if not needed and not path.is_file():
            return []
        files.append(path)
        return _read(path, kind)

    channels = {sensor.token: sensor for sensor in table("sensor", Sensor)}
    sensors = {one.token: one for one in table("calibrated_sensor", CalibratedSensor)}
    scenes = {scene.token: scene.name for scene in table("scene", Scene)}
    scene_of = {sample.token: sample.scene_token for sample in table("sample", Sample)}
    where = str(folder / "sample.json")
    images, scans = _of_camera(table("sample_data", SampleData), sensors, channels, camera, folder)
    for sample in images:
        _known(scenes, _known(scene_of, sample, where), str(folder / "scene.json"))
    wanted = {data.ego_pose_token for data in (*images.values(), *scans.values())}
    poses = {
        pose.token: pose_of(pose.translation, pose.rotation, pose.token)
        for pose in table("ego_pose", EgoPose)
        if pose.token in wanted
    }
    for token in wanted:
        _known(poses, token, str(folder / "ego_pose.json"))
    annotations: dict[str, list[Annotation]] = {}
    for annotation in table("sample_annotation", Annotation, needed=False):
        if annotation.sample_token in images:
            annotations.setdefault(annotation.sample_token, []).append(annotation)
    names = {one.token: one.name for one in table("category", Named, needed=False)}
    instances = {
        one.token: _known(names, one.category_token, str(folder / "category.json"))
        for one in table("instance", Instance, needed=False)
    }
    visibility = {one.token: one.level for one in table("visibility", Named, needed=False)}
    cameras = tuple(sorted(one.channel for one in channels.values() if one.modality == "camera"))
    labelled = (folder / "sample_annotation.json").is_file()
    return NuscenesTables(
        *(folder, tuple(files), scenes, scene_of, images, scans, sensors, poses, annotations),
        *(instances, visibility, cameras, labelled),
    )


def _of_camera(
    every: Iterable[SampleData],
    sensors: Mapping[str, CalibratedSensor],
    channels: Mapping[str, Sensor],
    camera: str,
    folder: Path,
) -> tuple[dict[str, SampleData], dict[str, SampleData]]:
    """Return the keyframes of a camera and of the laser, each by its sample."""
    images: dict[str, SampleData] = {}
    scans: dict[str, SampleData] = {}
    for data in every:
        if not data.is_key_frame:
            continue
        sensor = _known(sensors, data.calibrated_sensor_token, str(folder / "calibrated_sensor.json"))
        channel = _known(channels, sensor.sensor_token, str(folder / "sensor.json"))
        if channel.channel == camera:
            images[data.sample_token] = data
        elif channel.modality == "lidar":
            scans[data.sample_token] = data
    return images, scans


def _known(table: Mapping[str, Any], token: str, where: str) -> Any:
    if token not in table:
        raise DataError(
            "a record refers to one that is not there",
            where=where,
            got=f"no token {token!r}",
            fix="Copy the tables again from their source: all are of one version.",
        )
    return table[token]


def _read(path: Path, kind: type[Entry]) -> list[Entry]:
    """Return the records of a table, a block at a time; the first that does not fit is named."""
    arrays = JsonArrays(read_bytes(path, what="nuScenes", limit=LIMIT_BYTES), path, "nuScenes")
    decoder = msgspec.json.Decoder(list[kind])  # type: ignore[valid-type]
    found: list[Entry] = []
    try:
        for block in arrays.blocks(None, decoder):
            if block.entries is not None:
                found += block.entries
                continue
            found += _converted(block.values, kind, path, block.first)
    except (KeyError, TypeError) as error:
        raise _no_table(path, "something else") from error
    return found


def _converted(values: Iterable[Any], kind: type[Entry], path: Path, first: int) -> list[Entry]:
    if not isinstance(values, list):
        raise _no_table(path, type(values).__name__)
    found = []
    for number, value in enumerate(values, start=first):
        try:
            found.append(msgspec.convert(value, kind))
        except msgspec.ValidationError as error:
            raise DataError(
                "a record of a table cannot be used",
                where=f"{path}, record {number}",
                got=str(error),
                wanted="the fields of nuScenes, as its schema has them",
                fix="Correct the record, or copy the table again.",
            ) from error
    return found


def _no_table(path: Path, got: str) -> DataError:
    return DataError("a table is not a list of records", where=str(path), got=got, wanted="a JSON array")

"""The `nuscenes` format: keyframes of one camera, depth from the laser, poses, and 3-D boxes.

The tables (scene, sample, sample_data, ...) refer to each other by tokens. A scene is a log. The laser turns
while the vehicle moves, so its points go through the world: from the pose of the scan to that of the image.
A 3-D box is seen as the part of its outline that lies in the image; its middle is the object's position.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adverse.data.depth import NuscenesDepth
from adverse.data.files import absent, inside
from adverse.data.images import DEFAULT_POLICY, ImageFile, ImagePolicy
from adverse.data.nuscenes_tables import Annotation, NuscenesTables, read_tables, table_folders
from adverse.data.seen_box import seen_box
from adverse.data.truth import AnnotatedObject, Truths, check_class_map, renamed
from adverse.errors import DataError
from adverse.plugins import dataset
from adverse.types import Camera, Dataset, Frame, Log

CHALLENGE = {
    "vehicle.car": "car",
    "vehicle.truck": "truck",
    "vehicle.bus.bendy": "bus",
    "vehicle.bus.rigid": "bus",
    "vehicle.trailer": "trailer",
    "vehicle.construction": "construction_vehicle",
    "human.pedestrian.adult": "pedestrian",
    "human.pedestrian.child": "pedestrian",
    "human.pedestrian.construction_worker": "pedestrian",
    "human.pedestrian.police_officer": "pedestrian",
    "vehicle.motorcycle": "motorcycle",
    "vehicle.bicycle": "bicycle",
    "movable_object.trafficcone": "traffic_cone",
    "movable_object.barrier": "barrier",
}
"""What the detection challenge calls the categories; the others keep their names."""
Matrix = NDArray[np.float64]


def looks_like(path: Path) -> dict[str, Any] | None:
    """Recognise a folder with tables beside samples."""
    if not path.is_dir() or not (path / "samples").is_dir():
        return None
    found = table_folders(path)
    return {"root": str(path)} if len(found) == 1 else None


@dataset(looks_like=looks_like)
def nuscenes(
    root: Path,
    *,
    version: str | None = None,
    camera: str = "CAM_FRONT",
    class_map: dict[str, str] = {},  # noqa: B006 - never written to
    policy: ImagePolicy = DEFAULT_POLICY,
) -> Dataset:
    """Read the keyframes of one camera of nuScenes.

    `version` is the folder of the tables, such as v1.0-mini; it need be given only where there are several.
    `camera` is the channel. Classes are those of the detection challenge. A box without a laser or radar
    point inside is ignored, as in the challenge.
    """
    tables = read_tables(root, version, camera)
    names = {renamed(CHALLENGE.get(name, name), class_map) for name in tables.categories}
    check_class_map(class_map, {CHALLENGE.get(name, name) for name in tables.categories})
    categories = tuple(sorted(names)) if tables.labelled else ()
    notes: Counter[str] = Counter({} if tables.labelled else {"no labels": 1})
    reading = _Reading(root, tables, Truths(categories, notes, located=True), class_map, policy)
    logs = [log for scene, name in tables.scenes.items() if (log := reading.log(scene, name)) is not None]
    if not logs:
        raise DataError(
            "no scene has keyframes of this camera",
            where=str(root),
            got=camera,
            wanted=", ".join(tables.cameras) or "a camera",
            fix="Set camera: in the study's data section.",
        )
    return Dataset(root.resolve().name, categories, tuple(logs), tables.files, dict(+notes))


@dataclass(frozen=True)
class _Reading:
    root: Path
    tables: NuscenesTables
    truths: Truths
    class_map: Mapping[str, str]
    policy: ImagePolicy

    def log(self, scene: str, name: str) -> Log | None:
        """Make a scene a log; None where the camera has no keyframe in it."""
        shots = self.tables.keyframes(scene)
        frames = [self._frame(name, index, sample) for index, sample in enumerate(shots)]
        return Log(name, tuple(frames)) if frames else None

    def _frame(self, log: str, index: int, sample: str) -> Frame:
        tables = self.tables
        shot = tables.images[sample]
        path = inside(self.root, shot.filename, where=f"{tables.where('sample_data')}, {shot.token}")
        size = shot.size
        image = ImageFile(path, self.policy, size)
        sensor = tables.sensors[shot.calibrated_sensor_token]
        world_from_camera = tables.poses[shot.ego_pose_token] @ sensor.vehicle_from_sensor
        intrinsic = sensor.intrinsic
        if intrinsic is None:
            raise DataError(
                "a camera has no calibration",
                where=f"{tables.where('calibrated_sensor')}, {shot.calibrated_sensor_token}",
                wanted="camera_intrinsic: three rows of three numbers",
            )
        lens = Camera(intrinsic[0, 0], intrinsic[1, 1], intrinsic[0, 2], intrinsic[1, 2], *size)
        objects = [
            thing
            for annotation in tables.annotations.get(sample, ())
            if (thing := self._object(annotation, world_from_camera, intrinsic, size)) is not None
        ]
        truth, fault = self.truths.of(objects, image)
        missing = absent(path, "image")
        world_from_camera.flags.writeable = False
        first = tables.images[tables.keyframes(tables.scene_of[sample])[0]].timestamp
        return Frame(
            id=f"{log}/{index:03}",
            log_id=log,
            index=index,
            image=image,
            truth=truth,
            image_id=shot.token,
            time_s=(shot.timestamp - first) / 1e6,
            camera=lens,
            world_from_camera=world_from_camera,
            depth_m=self._depth(sample, world_from_camera, intrinsic, image),
            fault=fault if missing is None else str(missing),
        )

    def _object(
        self, annotation: Annotation, world_from_camera: Matrix, intrinsic: Matrix, size: tuple[int, int]
    ) -> AnnotatedObject | None:
        """Return an annotation as it is seen, or None where it is not in the image."""
        corners = annotation.corners_m() - world_from_camera[:3, 3]
        shown = seen_box(corners @ world_from_camera[:3, :3], intrinsic, size)
        if shown is None:
            return None
        name = self.tables.category_of(annotation)
        seen = self.tables.visibility.get(annotation.visibility_token)
        return AnnotatedObject(
            renamed(CHALLENGE.get(name, name), self.class_map),
            shown.box,
            f"{self.tables.where('sample_annotation')}, {annotation.token}",
            ignore=annotation.points == 0,
            position_m=annotation.translation,
            attributes={} if seen is None else {"visible": seen},
            track=self.tables.track_of(annotation),
        )

    def _depth(
        self, sample: str, world_from_camera: Matrix, intrinsic: Matrix, image: ImageFile
    ) -> NuscenesDepth | None:
        scan = self.tables.scans.get(sample)
        if scan is None:
            return None
        sensor = self.tables.sensors[scan.calibrated_sensor_token]
        world_from_laser = self.tables.poses[scan.ego_pose_token] @ sensor.vehicle_from_sensor
        projection = intrinsic @ (np.linalg.inv(world_from_camera) @ world_from_laser)[:3]
        where = f"{self.tables.where('sample_data')}, {scan.token}"
        path = inside(self.root, scan.filename, where=where)
        return NuscenesDepth(path, image, tuple(projection.ravel().tolist()))

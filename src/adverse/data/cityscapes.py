"""The `cityscapes` format: street scenes labelled per pixel, with objects, disparity and calibration.

root/
  leftImg8bit/<split>/<city>/<city>_<sequence>_<frame>_leftImg8bit.png
  gtFine/<split>/<city>/..._gtFine_{labelIds.png,instanceIds.png,polygons.json}
  rightImg8bit/<split>/<city>/..._rightImg8bit.png                               (optional, as all below)
  disparity/<split>/<city>/..._disparity.png
  camera/<split>/<city>/..._camera.json
  vehicle/<split>/<city>/..._vehicle.json

The camera and vehicle files hold the calibration, where the camera sits, and where the car was.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from adverse.data import subsets
from adverse.data.cityscapes_layers import PolygonLayers
from adverse.data.cityscapes_truth import (
    OBJECTS,
    PIXEL_CLASSES,
    objects_by_instance,
    objects_by_polygon,
    objects_in,
    void_pixels,
)
from adverse.data.depth import DisparityDepth
from adverse.data.files import absent, inside, read_model
from adverse.data.images import DEFAULT_POLICY, ImageFile, ImagePolicy, Size
from adverse.data.layout import natural
from adverse.data.maps import InstanceFile, LabelFile, LabelParts
from adverse.data.rig import CAMERA_AXES, turned
from adverse.data.truth import Truths, check_class_map, renamed
from adverse.errors import AdverseError, DataError, StudyError
from adverse.plugins import dataset
from adverse.types import Camera, Dataset, Frame, Log, Source, Split

Matrix = NDArray[np.float64]
EARTH_RADIUS_M = 6371000.0
_Finite = Annotated[float, Field(allow_inf_nan=False)]
_Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Extrinsic(BaseModel):
    """Where the camera sits in the vehicle: metres, and radians by yaw, then pitch (down), then roll."""

    baseline: _Positive
    x: _Finite
    y: _Finite
    z: _Finite
    yaw: _Finite
    pitch: _Finite
    roll: _Finite


class Intrinsic(BaseModel):
    """A pinhole camera in pixels."""

    fx: _Positive
    fy: _Positive
    u0: _Finite
    v0: _Finite


class CameraFile(BaseModel):
    """The content of ..._camera.json."""

    extrinsic: Extrinsic
    intrinsic: Intrinsic

    @property
    def vehicle_from_camera(self) -> Matrix:
        """The camera's place in the vehicle, (4,4)."""
        e = self.extrinsic
        placed = np.eye(4)
        placed[:3, :3] = turned(e.yaw, e.pitch, e.roll) @ CAMERA_AXES
        placed[:3, 3] = e.x, e.y, e.z
        return placed


class VehicleFile(BaseModel):
    """What we read of ..._vehicle.json: degrees, the heading clockwise from north."""

    gpsHeading: _Finite  # noqa: N815 - their names
    gpsLatitude: Annotated[float, Field(gt=-90, lt=90)]  # noqa: N815
    gpsLongitude: Annotated[float, Field(ge=-180, le=180)]  # noqa: N815


def read_camera_file(path: Path) -> CameraFile:
    """Read ..._camera.json."""
    return read_model(path, "camera", CameraFile)


def read_vehicle_file(path: Path) -> VehicleFile:
    """Read ..._vehicle.json."""
    return read_model(path, "vehicle", VehicleFile)


def world_from_vehicle(now: VehicleFile, first: VehicleFile) -> Matrix:
    """Return where the vehicle is (4,4) in a flat world that begins with `first`, x along its heading."""
    north = EARTH_RADIUS_M * np.radians(now.gpsLatitude - first.gpsLatitude)
    across = EARTH_RADIUS_M * np.cos(np.radians(first.gpsLatitude))
    east = across * np.radians(now.gpsLongitude - first.gpsLongitude)
    start = np.radians(90 - first.gpsHeading)  # counter-clockwise from east
    world = np.eye(4)
    world[:3, :3] = turned(np.radians(first.gpsHeading - now.gpsHeading), 0, 0)
    world[:3, 3] = turned(-start, 0, 0) @ [east, north, 0]
    return world


IMAGES = "leftImg8bit"
NAME = re.compile(r"(?P<city>.+)_(?P<sequence>\d{6})_(?P<frame>\d{6})_leftImg8bit")
FRAMES_PER_S = 17.0
"""What the sequences were recorded at."""


def looks_like(path: Path) -> dict[str, Any] | None:
    """Recognise leftImg8bit beside gtFine or gtCoarse; the val and test parts serve where they have truth."""
    kind = next((name for name in ("gtFine", "gtCoarse") if (path / name).is_dir()), None)
    if kind is None or not (path / IMAGES).is_dir():
        return None
    options = {"root": str(path), **({} if kind == "gtFine" else {"annotations": kind})}
    held = [part for part in ("val", "train") if (path / kind / part).is_dir()]
    return {**options, "split": {"test": held[0]}} if held else options


@dataset(looks_like=looks_like)
def cityscapes(
    root: Path,
    *,
    split: dict[Split, str] | None = None,
    annotations: Literal["gtFine", "gtCoarse"] = "gtFine",
    boxes: Literal["instances", "polygons"] = "instances",
    logs: Literal["image", "sequence"] = "image",
    instances: Literal["maps", "from_labels"] = "maps",
    instance_masks: bool = False,
    class_map: dict[str, str] = {},  # noqa: B006 - never written to
    policy: ImagePolicy = DEFAULT_POLICY,
) -> Dataset:
    """Read data laid out as Cityscapes is.

    `split` names the folders: {test: val}; without it all of them are the test split. `boxes` are drawn
    around what is visible (instances) or around the polygons. `logs`: every image is its own, or a sequence.
    `instances`: objects are told apart by instance maps, or, where there are none, are the connected parts of
    label maps, so those that touch are one. `instance_masks` reads the pixels of each object; a study of
    instance segmentation sets it.
    """
    check_class_map(class_map, OBJECTS.values())
    categories = tuple(dict.fromkeys(renamed(name, class_map) for name in OBJECTS.values()))
    if instance_masks and (boxes, instances) != ("instances", "maps"):
        where, got = ("boxes", boxes) if boxes != "instances" else ("instances", instances)
        raise StudyError(
            "masks are read from instance maps",
            where=f"data.{where}",
            got=got,
            fix=f"Leave {where}: out, or set task: detection.",
        )
    truths = Truths(categories, Counter())
    from_labels = instances == "from_labels"
    reading = _Reading(root, policy, annotations, boxes, class_map, truths, instance_masks, from_labels)
    made: list[Log] = []
    for kind, name, prefix in subsets.named(split):
        grouped: dict[str, list[_Named]] = defaultdict(list)
        for image in reading.images(kind, name):
            grouped[image.id if logs == "image" else image.sequence].append(image)
        for group, members in grouped.items():
            made.append(Log(prefix + group, tuple(reading.frames(prefix, group, members)), kind))
    if not made:
        raise _nothing(root, "no images")
    notes = dict(+reading.truths.notes)
    name, read = root.resolve().name, tuple(reading.read)
    return Dataset(name, categories, tuple(made), read, notes, pixel_classes=PIXEL_CLASSES)


class _Named(NamedTuple):
    """An image by its name; `folder` is <split>/<city>."""

    path: Path
    folder: str
    id: str
    sequence: str
    number: int


@dataclass(frozen=True)
class _Reading:
    """What holds for all images of one data set; `read` collects the files that decided the truth."""

    root: Path
    policy: ImagePolicy
    annotations: str
    boxes: str
    class_map: dict[str, str]
    truths: Truths
    masks: bool
    from_labels: bool
    read: list[Path] = field(default_factory=list)

    def images(self, kind: Split, name: str | None) -> list[_Named]:
        """Return the images of a split's folder, or of all, in the order of their names."""
        base = self.root / IMAGES
        if name is not None:
            base = inside(self.root, f"{IMAGES}/{name}", where=f"data.split.{kind}")
        if not base.is_dir():
            raise _nothing(self.root, f"no folder {base.relative_to(self.root)}")
        images = []
        for path in sorted(base.rglob("*_leftImg8bit.png"), key=lambda path: natural(path.name)):
            inside(self.root, path.relative_to(self.root).as_posix(), where=f"folder {base}")
            match = NAME.fullmatch(path.stem)
            if match is None:
                raise DataError(
                    "the file name of an image does not follow the format",
                    where=str(path),
                    got=repr(path.stem),
                    wanted="<city>_<sequence>_<frame>_leftImg8bit.png, six digits each",
                    fix="Restore the original name, or take the file out.",
                )
            folder = path.parent.relative_to(self.root / IMAGES).as_posix()
            sequence = f"{match['city']}_{match['sequence']}"
            images.append(_Named(path, folder, f"{sequence}_{match['frame']}", sequence, int(match["frame"])))
        return images

    def frames(self, prefix: str, group: str, members: Sequence[_Named]) -> list[Frame]:
        """Make the frames of one log."""
        alone = group == members[0].id
        poses = self._poses(members, alone=alone)
        frames = []
        for index, member in enumerate(members):
            image = ImageFile(member.path, self.policy)
            size, fault = _measured(image)
            image = ImageFile(member.path, self.policy, size)
            camera = self._camera(member)
            objects = self._objects(member, image, size) if size else []
            void = void_pixels(self._beside(member, "instanceIds"), size) if self.masks and size else None
            mask_size = None if void is None else void.size
            truth, wrong = self.truths.of(objects, image, mask_size=mask_size, void=void)
            label, right = self._beside(member, "labelIds"), self._other(member, "rightImg8bit", ".png")
            instances, behind = self._instances(member, image)
            disparity = self._other(member, "disparity", ".png")
            depth = None
            if camera is not None and disparity is not None:
                numerator = camera.intrinsic.fx * camera.extrinsic.baseline
                depth = DisparityDepth(disparity, image, numerator)
            frame = Frame(
                id=prefix + (member.id if alone else f"{group}/{member.number:06}"),
                log_id=prefix + group,
                index=index,
                image=image,
                truth=truth,
                image_id=member.id,
                time_s=None if alone else member.number / FRAMES_PER_S,
                camera=_pinhole(camera, size) if camera and size else None,
                world_from_camera=poses.get(member.id),
                right=ImageFile(right, self.policy, size) if right else None,
                depth_m=depth,
                labels=LabelFile(label, image) if label.is_file() else None,
                fault=fault or wrong,
                instances=instances,
                behind=behind,
            )
            frames.append(frame)
        return frames

    def _instances(self, member: _Named, image: ImageFile) -> tuple[Source | None, Source | None]:
        """Return what tells objects apart, and what tells which are hidden."""
        if self.from_labels:
            label = self._beside(member, "labelIds")
            return (LabelParts(LabelFile(label, image), tuple(OBJECTS)) if label.is_file() else None), None
        path, polygons = self._beside(member, "instanceIds"), self._beside(member, "polygons")
        if not path.is_file():
            return None, None
        layers = PolygonLayers(polygons, image) if polygons.is_file() else None
        return InstanceFile(path, image, first=1000), layers

    def _objects(self, image: _Named, source: ImageFile, size: Size) -> list[Any]:
        kind = "polygons"
        if self.boxes == "instances":
            kind = "labelIds" if self.from_labels else "instanceIds"
        path = self._beside(image, kind)
        missing = absent(path, "annotation")
        if missing is not None:
            raise DataError(
                "an image has no annotation",
                where=str(image.path),
                got=f"no {path.relative_to(self.root)}",
                wanted=f"{kind} for each image",
                fix="Add the file, set boxes: to the other kind, or choose a split that has truth.",
            )
        self.read.append(path)
        if kind == "labelIds":
            parts = LabelParts(LabelFile(path, source), tuple(OBJECTS))()
            return objects_in(parts, path, self.class_map)
        if self.boxes == "instances":
            return objects_by_instance(path, size, self.class_map, masks=self.masks)
        return objects_by_polygon(path, size, self.class_map)

    def _beside(self, image: _Named, kind: str) -> Path:
        ending = "json" if kind == "polygons" else "png"
        return self.root / self.annotations / image.folder / f"{image.id}_{self.annotations}_{kind}.{ending}"

    def _other(self, image: _Named, kind: str, ending: str) -> Path | None:
        path = self.root / kind / image.folder / f"{image.id}_{kind}{ending}"
        return path if path.is_file() else None

    def _camera(self, image: _Named) -> CameraFile | None:
        path = self._other(image, "camera", ".json")
        if path is None:
            return None
        self.read.append(path)
        return read_camera_file(path)

    def _poses(self, members: Sequence[_Named], *, alone: bool) -> dict[str, NDArray[np.float64]]:
        """Return where the camera was: in a world of the image's own, or by GPS from the first image on."""
        poses: dict[str, NDArray[np.float64]] = {}
        first = None
        for image in members:
            file = self._other(image, "camera", ".json")
            vehicle = None if alone else self._other(image, "vehicle", ".json")
            if file is None or (vehicle is None and not alone):
                continue
            pose = read_camera_file(file).vehicle_from_camera
            if vehicle is not None:
                self.read.append(vehicle)
                now = read_vehicle_file(vehicle)
                first = first or now
                pose = world_from_vehicle(now, first) @ pose
            pose.flags.writeable = False
            poses[image.id] = pose
        return poses


def _pinhole(file: CameraFile, size: Size) -> Camera:
    lens = file.intrinsic
    return Camera(lens.fx, lens.fy, lens.u0, lens.v0, *size, file.extrinsic.baseline)


def _measured(image: ImageFile) -> tuple[Size | None, str | None]:
    try:
        return image.measure(), None
    except AdverseError as error:
        return None, str(error)


def _nothing(root: Path, got: str) -> DataError:
    return DataError(
        "the folder is not laid out as Cityscapes is",
        where=str(root),
        got=got,
        wanted=f"{IMAGES}/<split>/<city>/*_leftImg8bit.png beside gtFine",
        fix="Check root and split in the study's data section.",
    )

"""The `folder` format: sub-folders are logs; depth, a right image, labels, poses and truth are optional.

root/
  truth.json              COCO ground truth; file_name is relative to root        (optional)
  camera.json             calibration of all logs that have none of their own     (optional)
  robot.json              control_radius_m and safety_radius_m                    (optional)
  pixel_classes.json      names of the class ids in labels: {"7": "road"}         (optional)
  <log>/
    images/000123.png     or the images directly in <log>/
    depth/000123.npy      metres; or .png, 16-bit, with depth_scale_m             (optional)
    right/000123.png      the right image of a stereo pair                        (optional)
    labels/000123.png     class ids, 8-bit gray                                   (optional)
    instances/000123.png  a number for each object, 0: none, 8- or 16-bit gray    (optional)
    poses.csv             frame,time_s,x_m,y_m,z_m,qw,qx,qy,qz                    (optional)
    camera.json                                                                   (optional)
    hood.png              the vehicle itself, for depth from stereo or laser      (optional)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

from adverse.data import rig, subsets
from adverse.data.coco_file import ImageEntry, Key, category_names, read_coco
from adverse.data.coco_truth import ImageTruth, truth_by_image
from adverse.data.depth import DepthFile, Resample
from adverse.data.files import absent, inside
from adverse.data.images import DEFAULT_POLICY, ImageFile, ImagePolicy, Size
from adverse.data.layout import DEPTH, INSTANCES, LABELS, RIGHT, LogFolder, companions, log_folders
from adverse.data.maps import (
    NAMES_FILE,
    InstanceFile,
    LabelFile,
    LabelParts,
    PixelClasses,
    read_pixel_classes,
)
from adverse.errors import AdverseError, DataError
from adverse.plugins import Positive, dataset
from adverse.types import Camera, Dataset, Frame, Log, Source, Split, Truth

TRUTH_FILE = "truth.json"
THINGS = ["person", "rider", "car", "truck", "bus", "train", "motorcycle", "bicycle", "animal"]
"""Classes whose connected parts are objects, unless a study names others."""


def looks_like(path: Path) -> dict[str, Any] | None:
    """Recognise any folder with images in it: what no other format claims, this one reads."""
    try:
        if not path.is_dir() or not log_folders(path, path):
            return None
    except AdverseError:
        pass  # images, but two of a name: reading it will say so
    names = {"validation": "validation", "test": "test"}
    return {"root": str(path), **({"split": names} if all((path / name).is_dir() for name in names) else {})}


@dataset(looks_like=looks_like)
def folder(
    root: Path,
    *,
    truth: str | None = None,
    split: dict[Split, str] | None = None,
    depth_scale_m: Positive | None = None,
    depth_resample: Resample = "refuse",
    pixel_classes: PixelClasses | None = None,
    instances: Literal["maps", "from_labels"] = "maps",
    things: list[str] = THINGS,
    logs: Literal["folder", "image"] = "folder",
    policy: ImagePolicy = DEFAULT_POLICY,
) -> Dataset:
    """Read logs from folders of images, with whatever else lies beside them.

    `truth` is the COCO file, relative to root (truth.json, where there is one). With a truth file only the
    images it lists are used; without, there are no categories. `split` names the folder of each split.
    A frame's id is log/name, its log being the folder below root (below the split's folder, if split).
    `pixel_classes` names the ids of label maps (as pixel_classes.json does, where there is one). `instances`:
    objects are told apart by the maps in instances/, or are the connected parts of the classes that `things`
    names in label maps, so those that touch are one. `logs`: the
    images of a folder are one log, or every image is its own, as photographs taken independently are.
    """
    names_file = root / NAMES_FILE
    named = pixel_classes is None and names_file.is_file()
    names = read_pixel_classes(names_file) if named else pixel_classes or {}
    parts = _thing_ids(names, things) if instances == "from_labels" else None
    bases = [(kind, _base(root, kind, name), prefix) for kind, name, prefix in subsets.named(split)]
    notes: Counter[str] = Counter()
    annotated = _read_truth(root, truth, [base for _, base, _ in bases], policy, notes)
    reading = _Reading(root, policy, depth_scale_m, depth_resample, annotated, notes, parts)
    found: list[Log] = []
    for kind, base, prefix in bases:
        folders = log_folders(base, root, annotated.images if annotated else ())
        found += [
            log for log_folder in folders if (log := reading.log(log_folder, base, kind, prefix)) is not None
        ]
    if not found:
        raise _no_images(
            root, "images, but none that the truth file lists" if annotated else "no image files"
        )
    _check_log_ids(root, found)
    if logs == "image":
        found = [_alone(frame, log.split) for log in found for frame in log.frames]
    categories = annotated.categories if annotated else ()
    robot_file = root / rig.ROBOT_FILE
    robot = rig.read_robot(robot_file) if robot_file.is_file() else None
    side_files = {*reading.side_files, *((robot_file,) if robot else ()), *((names_file,) if named else ())}
    files = (*((annotated.path,) if annotated else ()), *sorted(side_files))
    return Dataset(root.resolve().name, categories, tuple(found), files, dict(+notes), robot, names)


def _thing_ids(names: Mapping[int, str], things: Sequence[str]) -> tuple[int, ...]:
    """Return the ids of the classes whose connected parts are objects, or say that there are none."""
    ids = tuple(number for number, name in sorted(names.items()) if name in things)
    if not ids:
        raise DataError(
            "no pixel class has objects",
            where="data.things",
            got=f"{', '.join(things)}; pixel classes: {', '.join(names.values()) or 'none'}",
            wanted="names of classes whose connected parts are objects",
            fix=f"Name them in things:, and the ids of label maps in {NAMES_FILE}.",
        )
    return ids


def _alone(frame: Frame, split: Split) -> Log:
    return Log(frame.id, (replace(frame, log_id=frame.id, index=0),), split)


@dataclass(frozen=True)
class _Known:
    """What the truth file says about the images below the bases, by path."""

    path: Path
    categories: tuple[str, ...]
    images: dict[Path, ImageEntry]
    truths: dict[Key, ImageTruth]


@dataclass(frozen=True)
class _Reading:
    """What holds for every log of one data set; `side_files` collects the poses and cameras read."""

    root: Path
    policy: ImagePolicy
    scale_m: float | None
    resample: Resample
    known: _Known | None
    notes: Counter[str]
    things: tuple[int, ...] | None
    """The classes whose connected parts are objects; None: instance maps tell."""
    side_files: set[Path] = field(default_factory=set)

    def log(self, log_folder: LogFolder, base: Path, split: Split, prefix: str) -> Log | None:
        """Read one log, or return None where the truth file lists none of its images."""
        images = log_folder.images
        if self.known is not None:
            images = tuple(path for path in images if path in self.known.images)
            self.notes["image files not in the truth file"] += len(log_folder.images) - len(images)
        if not images:
            return None
        at_base = log_folder.folder == base
        log_id = prefix + (base.resolve().name if at_base else log_folder.folder.relative_to(base).as_posix())
        camera = self._camera(log_folder.folder)
        placed = self._poses(log_folder)
        depths = companions(log_folder, DEPTH, self.notes)
        rights = companions(log_folder, RIGHT, self.notes)
        labels = companions(log_folder, LABELS, self.notes)
        instances = companions(log_folder, INSTANCES, self.notes)
        frames = []
        for index, path in enumerate(images):
            frame_id = f"{log_id}/{path.stem}"
            truth, fault, image_id, size = self._truth(path, frame_id)
            image = ImageFile(path, self.policy, _agreed(path, size, camera))
            kinds = (depths, rights, labels, instances)
            depth, right, label, instance = (files.get(path.stem) for files in kinds)
            pose = placed.get(path.stem)
            frame = Frame(
                id=frame_id,
                log_id=log_id,
                index=index,
                image=image,
                truth=truth,
                image_id=image_id,
                time_s=pose.time_s if pose else None,
                camera=camera,
                world_from_camera=pose.world_from_camera if pose else None,
                right=ImageFile(right, self.policy, image.size) if right else None,
                depth_m=DepthFile(depth, image, self.scale_m, self.resample) if depth else None,
                labels=LabelFile(label, image) if label else None,
                fault=fault,
                instances=self._instances(image, label, instance),
            )
            frames.append(frame)
        return Log(log_id, tuple(frames), split)

    def _instances(self, image: ImageFile, label: Path | None, instance: Path | None) -> Source | None:
        if self.things is not None:
            return LabelParts(LabelFile(label, image), self.things) if label else None
        return InstanceFile(instance, image) if instance else None

    def _truth(self, path: Path, frame_id: str) -> tuple[Truth, str | None, Key, Size | None]:
        missing = absent(path, "image")
        fault = None if missing is None else str(missing)
        if self.known is None:
            return Truth.none(), fault, frame_id, None
        listed = self.known.images[path]
        truth, truth_fault = self.known.truths[listed.id]
        return truth, fault or truth_fault, listed.id, listed.size

    def _camera(self, log_folder: Path) -> Camera | None:
        path = rig.camera_file(log_folder, self.root)
        if path is None:
            return None
        self.side_files.add(path)
        return rig.read_camera(path)

    def _poses(self, log_folder: LogFolder) -> dict[str, rig.Pose]:
        path = log_folder.folder / rig.POSES_FILE
        if not path.is_file():
            return {}
        self.side_files.add(path)
        placed = rig.read_poses(path)
        stems = [image.stem for image in log_folder.images]
        in_order = [stem for stem in stems if stem in placed]
        if in_order != list(placed):
            wrong = next(frame for frame, stem in zip_longest(placed, in_order) if frame != stem)
            raise DataError(
                "the pose file does not fit the images",
                where=f"{path}, frame {wrong!r}",
                got="no such image"
                if wrong not in stems
                else "an order in time that differs from that of the names",
                wanted="a line for images of this log only, in the order of their names",
                fix="Correct the frame column, or rename the images in the order they were taken.",
            )
        self.notes["frames without a pose"] += len(stems) - len(in_order)
        return placed


def _read_truth(
    root: Path, truth: str | None, bases: list[Path], policy: ImagePolicy, notes: Counter[str]
) -> _Known | None:
    path = root / (truth or TRUTH_FILE)
    if truth is None and not path.exists():
        for pattern in (f"*/{TRUTH_FILE}", f"*/*/{TRUTH_FILE}"):
            for elsewhere in sorted(root.glob(pattern)):
                raise _misplaced_truth(root, elsewhere)
        notes["no truth file"] += 1
        return None
    coco = read_coco(path)
    _check_places(root, path, [image.file_name for image in coco.images[:1]])
    images: dict[Path, ImageEntry] = {}
    for at, image in enumerate(coco.images):
        full = inside(root, image.file_name, where=f"{path}, field images[{at}].file_name")
        if any(full.is_relative_to(base) for base in bases):
            images[full] = image
    notes["images of the truth file outside the splits"] += len(coco.images) - len(images)
    paths = {image.id: full for full, image in images.items()}

    def size_of(image: ImageEntry) -> Size:
        return ImageFile(paths[image.id], policy, image.size).measure()

    categories = category_names([coco])
    truths = truth_by_image(coco, list(images.values()), categories, size_of, notes)
    return _Known(path, categories, images, truths)


LAYOUT = (
    f"ROOT/{TRUTH_FILE}, with file_name relative to ROOT, and the images in ROOT/LOG/ or ROOT/LOG/images/"
)


def _misplaced_truth(root: Path, found: Path) -> DataError:
    return DataError(
        f"{TRUTH_FILE} is not where it is looked for",
        where=str(root),
        got=f"no {TRUTH_FILE} there, but {found.relative_to(root)}",
        wanted=LAYOUT,
        fix=f"Move it, or name it in the study (data: truth: {found.relative_to(root)}); one file holds all.",
    )


def _check_places(root: Path, path: Path, names: list[str]) -> None:
    """Raise where the images that a truth file names lie in images/ instead, as format coco has them."""
    for name in names:
        there, here = root / "images" / name, root / name
        if not Path(name).is_absolute() and not here.exists() and there.is_file():
            raise DataError(
                "the truth file names images where they are not",
                where=str(path),
                got=f"{name}, and the image is images/{name}",
                wanted=LAYOUT,
                fix=f"Write images/{name} in file_name and so on, or use format: coco with annotations: "
                f"{path.relative_to(root)}, which looks in images/ too.",
            )


def _base(root: Path, kind: Split, name: str | None) -> Path:
    base = root if name is None else inside(root, name, where=f"data.split.{kind}")
    if not base.is_dir():
        raise _no_images(base, "no such folder")
    return base


def _check_log_ids(root: Path, logs: list[Log]) -> None:
    twice = [log_id for log_id, count in Counter(log.id for log in logs).items() if count > 1]
    if twice:
        raise DataError(
            f"two logs are called {twice[0]!r}",
            where=str(root),
            got="a sub-folder of the same name as the folder above it, and images in both",
            wanted="one name for each log",
            fix="Move the images that lie directly in the upper folder into a folder of their own.",
        )


def _agreed(path: Path, size: Size | None, camera: Camera | None) -> Size | None:
    """Return the size given by truth and calibration, or by the one that gives it."""
    if camera is None:
        return size
    calibrated = camera.width, camera.height
    if size not in (None, calibrated):
        raise DataError(
            "the truth file and the calibration give different image sizes",
            where=f"image file {path}",
            got=f"{size} in the truth file, {calibrated} in {rig.CAMERA_FILE}",
            wanted="one width and height",
            fix="Correct the one that is wrong.",
        )
    return calibrated


def _no_images(place: Path, got: str) -> DataError:
    return DataError(
        "the data set has no images",
        where=str(place),
        got=got,
        wanted="<log>/*.png or <log>/images/*.png below it",
        fix="Check root, split and truth in the study's data section; docs/data-formats.md shows the layout.",
    )

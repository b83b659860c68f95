"""Worlds on disk, in the layout that the `folder` format reads (docs/data-formats.md).

A data set is cut into logs, and every log is rendered on its own from seed and name, by any thread.

Worlds rendered once: kept in the user's cache, by all that decides a pixel of them.

Rendering goes into a folder of its own that is renamed when it is complete, so an interrupted one is never
taken for whole, and two processes that both start do the work twice but get the same result.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from adverse.content import digest, user_cache
from adverse.data.images import write_image
from adverse.data.rig import camera_fields
from adverse.data.worlds import classes
from adverse.data.worlds.machine_code import compile_beside
from adverse.data.worlds.orchard import ROBOT as TRACTOR
from adverse.data.worlds.orchard import orchard_log
from adverse.data.worlds.rendering import Instance, Rendered, render, right_of
from adverse.data.worlds.scripts import Script, quaternion, stereo_camera
from adverse.data.worlds.stereo_noise import stereo_depth_m
from adverse.data.worlds.street import ROBOT as CAR
from adverse.data.worlds.street import street_log
from adverse.errors import DataError
from adverse.plugins import library_version
from adverse.seeds import generator
from adverse.types import Camera, LogKind, Split

World = Literal["orchard", "street"]
Watch = Callable[[int, int], None]
"""Is told how many logs are done, of how many."""
SCRIPTS: Mapping[World, Callable[[int, str, LogKind], Script]] = {
    "orchard": orchard_log,
    "street": street_log,
}
ROBOTS: Mapping[World, Mapping[str, float]] = {"orchard": TRACTOR, "street": CAR}
CATEGORIES: Mapping[World, tuple[int, ...]] = {
    "orchard": (classes.PERSON,),
    "street": (classes.PERSON, classes.CAR),
}
SPLITS: tuple[Split, ...] = ("train", "validation", "test")
SHARES: Mapping[Split, float] = {"train": 0.25, "validation": 0.25, "test": 0.5}
SMALL_PX, HIDDEN = 25, 0.65
"""Lower than so many pixels, or less of it visible than this share: nobody is asked to find it (`ignore`).

A box that the upper or lower border cuts is never too low: whoever it is stands right before the camera.
What remains are the "reasonable" people of the Caltech benchmark (Dollar et al. 2012), 50 pixels high or more
in pictures twice as wide as ours usually are, and at most 35 % hidden."""
NOTICE = "synthetic: rendered by adverse; results on it prove the machinery, not a product's safety"


@dataclass(frozen=True)
class WorldSpec:
    """All that decides a data set: which world, how many logs in each split, the image size, the seed.

    `pose_noise_mm` is the noise of recorded positions, a standard deviation along each axis. Pictures and
    truth are those of the true poses. `disparity_noise_px` is that of the recorded depth, as of a stereo
    matcher. Both depend on seed, log and frame alone.
    """

    world: World
    logs: tuple[tuple[Split, int], ...]
    width: int
    height: int
    seed: int
    pose_noise_mm: float = 0.0
    disparity_noise_px: float = 0.0
    right: bool = True
    """Whether the right image of each stereo pair is rendered, too."""

    def log_names(self) -> list[tuple[str, LogKind]]:
        """Return the logs, as split/name, and their kinds; every second one is negative."""
        kinds: tuple[LogKind, LogKind] = ("positive", "negative")
        return [
            (f"{split}/{kinds[number % 2]}{number // 2:03d}", kinds[number % 2])
            for split, count in self.logs
            for number in range(count)
        ]


def shared_out(logs: int) -> tuple[tuple[Split, int], ...]:
    """Cut a number of logs into train, validation and test, a quarter, a quarter and the rest.

    >>> shared_out(40)
    (('train', 10), ('validation', 10), ('test', 20))
    """
    first = [(split, int(logs * SHARES[split])) for split in SPLITS[:2]]
    return (*first, ("test", logs - sum(count for _, count in first)))


def write_world(root: Path, spec: WorldSpec, *, workers: int = 1, watch: Watch | None = None) -> int:
    """Render a data set into a folder and return its number of frames; the result depends on `spec` alone."""
    root.mkdir(parents=True, exist_ok=True)
    camera = stereo_camera(spec.width, spec.height)
    (root / "camera.json").write_text(json.dumps(camera_fields(camera), indent=1))
    (root / "robot.json").write_text(json.dumps(ROBOTS[spec.world], indent=1))
    (root / "pixel_classes.json").write_text(json.dumps(classes.JUDGED, indent=1))
    names = spec.log_names()
    parts: list[list[dict[str, Any]]] = []
    for part in _rendered(root, spec, workers):
        parts.append(part)
        if watch is not None:
            watch(len(parts), len(names))
    truth = _truth([frame for part in parts for frame in part], camera, CATEGORIES[spec.world])
    (root / "truth.json").write_text(
        json.dumps({"info": {"description": NOTICE, **_described(spec)}, **truth})
    )
    return len(truth["images"])


def write_log(root: Path, spec: WorldSpec, name: str, kind: LogKind) -> list[dict[str, Any]]:
    """Render one log into root/name; return for each frame its file and the annotations of its instances."""
    script = SCRIPTS[spec.world](spec.seed, name, kind)
    scene, camera = script.scene(), stereo_camera(spec.width, spec.height)
    folder = root / name
    for kind_of_file in ("images", *(["right"] if spec.right else []), "depth", "labels", "instances"):
        (folder / kind_of_file).mkdir(parents=True, exist_ok=True)
    poses = ["frame,time_s,x_m,y_m,z_m,qw,qx,qy,qz"]
    frames = []
    for number, time_s in enumerate(script.drive.times_s()):
        pose = script.drive.pose(time_s)
        frame = f"{number:04d}"
        seen = {
            eye: render(scene, camera, view, time_s, generator(spec.seed, spec.world, name, frame, eye))
            for eye, view in (("left", pose), ("right", right_of(pose, camera.baseline_m or 0.0)))
            if eye == "left" or spec.right
        }
        left = seen["left"]
        measured = generator(spec.seed, spec.world, name, frame, "disparity")
        depth_m = stereo_depth_m(left.depth_m, camera, spec.disparity_noise_px, measured)
        _write_frame(folder, frame, left._replace(depth_m=depth_m), seen.get("right"))
        recorded = pose[:3, 3] + pose_error_m(spec, name, frame)
        place = [time_s, *recorded, *quaternion(pose[:3, :3])]
        poses.append(",".join([frame, *(repr(float(value)) for value in place)]))
        centres = {actor.instance: actor.centre_m(time_s) for actor in script.actors}
        things = [_annotation(thing, centres[thing.id], spec.height) for thing in left.things]
        frames.append({"file_name": f"{name}/images/{frame}.png", "annotations": things})
    (folder / "poses.csv").write_text("\n".join(poses) + "\n")
    return frames


def pose_error_m(spec: WorldSpec, name: str, frame: str) -> NDArray[np.float64]:
    """Return how far from its true place (3,) a frame is recorded, by seed, log and frame alone."""
    rng = generator(spec.seed, spec.world, name, frame, "pose")
    return rng.normal(scale=spec.pose_noise_mm / 1000, size=3)


def _rendered(root: Path, spec: WorldSpec, workers: int) -> Iterable[list[dict[str, Any]]]:
    jobs = [(root, spec, name, kind) for name, kind in spec.log_names()]
    if workers <= 1:
        yield from (write_log(*job) for job in jobs)
        return
    compile_beside()
    with ThreadPoolExecutor(workers) as pool:  # the compiled loops and the encoders release the GIL
        yield from pool.map(write_log, *zip(*jobs, strict=True))


def _write_frame(folder: Path, frame: str, left: Rendered, right: Rendered | None) -> None:
    write_image(folder / "images" / f"{frame}.png", left.image)
    if right is not None:
        write_image(folder / "right" / f"{frame}.png", right.image)
    write_image(folder / "labels" / f"{frame}.png", left.labels)
    write_image(folder / "instances" / f"{frame}.png", left.instances)
    np.save(folder / "depth" / f"{frame}.npy", left.depth_m)


def _annotation(thing: Instance, centre_m: tuple[float, float, float], image_height: int) -> dict[str, Any]:
    x0, y0, x1, y1 = thing.visible
    fx0, fy0, fx1, fy1 = thing.full
    far = y1 - y0 < SMALL_PX and y0 > 0 and y1 < image_height
    hidden = thing.pixels < HIDDEN * thing.full_pixels
    return {
        "category_id": thing.label,
        "bbox": [x0, y0, x1 - x0, y1 - y0],
        "bbox_full": [fx0, fy0, fx1 - fx0, fy1 - fy0],
        "visible": round(thing.pixels / thing.full_pixels, 4),
        "area": thing.pixels,
        "ignore": int(far or hidden),
        "iscrowd": 0,
        "instance": classes.instance_value(thing.label, thing.id),
        "track_id": classes.instance_value(thing.label, thing.id),
        "position_m": list(centre_m),
    }


def _truth(
    frames: Iterable[dict[str, Any]], camera: Camera, labels: Iterable[int]
) -> dict[str, list[dict[str, Any]]]:
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for frame in frames:
        image_id = len(images) + 1
        images.append(
            {"id": image_id, "file_name": frame["file_name"], "width": camera.width, "height": camera.height}
        )
        for annotation in frame["annotations"]:
            annotations.append({"id": len(annotations) + 1, "image_id": image_id, **annotation})
    categories = [{"id": label, "name": classes.WITH_INSTANCES[label]} for label in labels]
    return {"images": images, "annotations": annotations, "categories": categories}


def _described(spec: WorldSpec) -> dict[str, Any]:
    noise = {"pose_noise_mm": spec.pose_noise_mm, "disparity_noise_px": spec.disparity_noise_px}
    added = {name: size for name, size in noise.items() if size}
    return {"world": spec.world, "seed": spec.seed, "logs": dict(spec.logs), **added}


LIBRARIES = ("numba", "llvmlite", "numpy", "opencv-python-headless")
"""Distributions whose version might change a pixel."""


def cache_folder() -> Path:
    """Return where data sets are kept: $XDG_CACHE_HOME/adverse/worlds, ~/.cache/adverse/worlds by default."""
    return user_cache("worlds")


def cached_world(spec: WorldSpec, *, workers: int = 1, watch: Watch | None = None) -> Path:
    """Return the folder of a rendered data set; render it first if it is not there."""
    final = cache_folder() / f"{spec.world}-{key(spec)}"
    if final.is_dir():
        return final
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        making = Path(tempfile.mkdtemp(prefix=f".{final.name}-", dir=final.parent))
    except OSError as error:
        raise _cannot_write(final.parent, error) from error
    try:
        write_world(making, spec, workers=workers, watch=watch)
        with contextlib.suppress(OSError):  # another process was first; its result is the same
            making.rename(final)
    except OSError as error:
        raise _cannot_write(making, error) from error
    finally:
        shutil.rmtree(making, ignore_errors=True)
    if not final.is_dir():
        raise _cannot_write(final, OSError("the finished folder could not be renamed"))
    return final


def key(spec: WorldSpec) -> str:
    """Return the hash of all that decides a data set: its spec, our code, the libraries."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    versions = [f"{name} {library_version(name)}" for name in LIBRARIES]
    return digest(repr(spec), *versions, *(source.read_bytes() for source in sources), size=8)


def _cannot_write(where: Path, error: OSError) -> DataError:
    return DataError(
        "the rendered world cannot be kept",
        where=str(where),
        got=error.strerror or str(error),
        wanted="a folder that can be written, with room for the data set",
        fix="Set XDG_CACHE_HOME to such a folder, or render with `adverse world` and read it as `folder`.",
    )

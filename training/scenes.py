"""Training data: frames of a world's train split, rendered once into the user's cache and read from disk.

Log names and seed are those that `orchard-world` uses, so train, validation and test never share a scene.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.data.worlds import classes
from adverse.data.worlds.rendering import render
from adverse.data.worlds.scripts import stereo_camera
from adverse.data.worlds.writing import HIDDEN, SCRIPTS, SMALL_PX, World, WorldSpec, cache_folder, key
from adverse.seeds import generator
from adverse.types import LogKind, Split

WIDTH, HEIGHT = 320, 240
SEED = 1
MOST_BOXES = 8
NEAREST_M, DEPTH_STEP = 0.5, 1.03
"""Depth is kept as a byte: the power of the step over the nearest; 254 is 900 m, and 255 the sky."""


class Frames(NamedTuple):
    """N frames: images (N,H,W,3), label maps (N,H,W), depth codes (N,H,W), boxes (N,8,4) xyxy padded with
    zeros, ignore (N,8); arrays on disk.
    """  # noqa: D205

    images: NDArray[np.uint8]
    labels: NDArray[np.uint8]
    depth: NDArray[np.uint8]
    boxes: NDArray[np.float32]
    ignore: NDArray[np.bool_]


def frames(world: World, split: Split, logs: int, per_log: int, workers: int = 2) -> Frames:
    """Return frames drawn from every log of a split, half of the logs without people."""
    spec = WorldSpec(world, ((split, logs),), WIDTH, HEIGHT, SEED)
    final = cache_folder() / "training" / f"{world}-{split}-{key(spec)}-{per_log}"
    if not final.is_dir():
        final.parent.mkdir(parents=True, exist_ok=True)
        making = Path(tempfile.mkdtemp(prefix=f".{final.name}-", dir=final.parent))
        try:
            jobs = [(world, name, kind, per_log) for name, kind in spec.log_names()]
            with ThreadPoolExecutor(workers) as pool:
                _write(making, pool.map(_log, *zip(*jobs, strict=True)), len(jobs) * per_log)
            making.rename(final)
        finally:
            shutil.rmtree(making, ignore_errors=True)
    return Frames(*(np.load(final / f"{name}.npy", mmap_mode="r") for name in Frames._fields))


def depth_m(codes: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return the depth that codes stand for, within 2 %; the sky is `inf`."""
    return _DEPTHS[codes]


def _codes(depth: NDArray[np.float32]) -> NDArray[np.uint8]:
    powers = np.log(np.maximum(depth, NEAREST_M) / NEAREST_M) / np.log(DEPTH_STEP)
    return np.where(np.isinf(depth), 255, np.minimum(np.rint(powers), 254)).astype(np.uint8)


def _write(folder: Path, parts: Iterable[Frames], count: int) -> None:
    """Write parts one after the other into arrays of `count` frames."""
    arrays: dict[str, NDArray[np.generic]] = {}
    row = 0
    for part in parts:
        for name, values in part._asdict().items():
            if name not in arrays:
                shape = (count, *values.shape[1:])
                arrays[name] = np.lib.format.open_memmap(folder / f"{name}.npy", "w+", values.dtype, shape)
            arrays[name][row : row + len(values)] = values
        row += len(part.images)


def _log(world: World, name: str, kind: LogKind, per_log: int) -> Frames:
    script = SCRIPTS[world](SEED, name, kind)
    scene, camera = script.scene(), stereo_camera(WIDTH, HEIGHT)
    rng = generator(SEED, "training", world, name)
    views = []
    boxes, ignore = np.zeros((per_log, MOST_BOXES, 4), np.float32), np.zeros((per_log, MOST_BOXES), np.bool_)
    for row in range(per_log):
        time_s = script.drive.duration_s * (row + rng.uniform()) / per_log
        seen = render(
            scene, camera, script.drive.pose(time_s), time_s, generator(SEED, name, "training", str(row))
        )
        views.append((seen.image, seen.labels, _codes(seen.depth_m)))
        people = [thing for thing in seen.things if thing.label == classes.PERSON][:MOST_BOXES]
        for at, thing in enumerate(people):
            boxes[row, at] = thing.visible
            low = thing.visible[3] - thing.visible[1] < SMALL_PX
            ignore[row, at] = low or thing.pixels < HIDDEN * thing.full_pixels
    images, labels, depth = (np.stack(column) for column in zip(*views, strict=True))
    return Frames(images, labels, depth, boxes, ignore)


_DEPTHS = np.append(NEAREST_M * DEPTH_STEP ** np.arange(255), np.inf).astype(np.float32)

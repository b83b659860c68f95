"""Training data: frames of a world's train split, rendered in memory and kept in the user's cache.

Log names and seed are those that `orchard-world` uses, so train, validation and test never share a scene.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
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


class Frames(NamedTuple):
    """N frames: images (N,H,W,3), label maps (N,H,W), boxes (N,8,4) xyxy padded with zeros, ignore (N,8)."""

    images: NDArray[np.uint8]
    labels: NDArray[np.uint8]
    boxes: NDArray[np.float32]
    ignore: NDArray[np.bool_]


def frames(world: World, split: Split, logs: int, per_log: int, workers: int = 2) -> Frames:
    """Return frames drawn from every log of a split, half of the logs without people."""
    spec = WorldSpec(world, ((split, logs),), WIDTH, HEIGHT, SEED)
    path = cache_folder() / "training" / f"{world}-{split}-{key(spec)}-{per_log}.npz"
    if path.exists():
        with np.load(path) as stored:
            return Frames(*(stored[name] for name in Frames._fields))
    jobs = [(world, name, kind, per_log) for name, kind in spec.log_names()]
    with ThreadPoolExecutor(workers) as pool:
        parts = list(pool.map(_log, *zip(*jobs, strict=True)))
    made = Frames(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **made._asdict())
    return made


def _log(world: World, name: str, kind: LogKind, per_log: int) -> Frames:
    script = SCRIPTS[world](SEED, name, kind)
    scene, camera = script.scene(), stereo_camera(WIDTH, HEIGHT)
    rng = generator(SEED, "training", world, name)
    images, labels = [], []
    boxes, ignore = np.zeros((per_log, MOST_BOXES, 4), np.float32), np.zeros((per_log, MOST_BOXES), np.bool_)
    for row in range(per_log):
        time_s = script.drive.duration_s * (row + rng.uniform()) / per_log
        seen = render(
            scene, camera, script.drive.pose(time_s), time_s, generator(SEED, name, "training", str(row))
        )
        images.append(seen.image)
        labels.append(seen.labels)
        people = [thing for thing in seen.things if thing.label == classes.PERSON][:MOST_BOXES]
        for at, thing in enumerate(people):
            boxes[row, at] = thing.visible
            low = thing.visible[3] - thing.visible[1] < SMALL_PX
            ignore[row, at] = low or thing.pixels < HIDDEN * thing.full_pixels
    return Frames(np.stack(images), np.stack(labels), boxes, ignore)

"""Logs to annotate: an orchard with a person in it and its exact truth, and patterns known everywhere."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.data.images import write_image
from adverse.data.rig import COLUMNS
from adverse.data.worlds.orchard import orchard_log
from adverse.data.worlds.rendering import render, right_of
from adverse.data.worlds.scripts import quaternion, stereo_camera
from adverse.seeds import generator
from adverse.types import Camera

LOG = "row1"
SEED, NAME = 1, "test/positive004"
"""An orchard log with somebody who stands between the rows."""


class Scene(NamedTuple):
    """A rendered log without annotations, and what is true of its person: boxes, depth, poses, a point."""

    root: Path
    boxes: list[tuple[float, float, float, float]]
    depths_m: list[NDArray[np.float32]]
    poses: list[NDArray[np.float64]]
    points: list[tuple[float, float]]
    """The middle of the person a third from the top of the box, in each frame."""


def write_orchard(root: Path, times_s: Sequence[float], size: tuple[int, int] = (640, 480)) -> Scene:
    """Render left and right images of a log, with camera and poses, and no annotations."""
    script = orchard_log(SEED, NAME, "positive")
    scene, camera = script.scene(), stereo_camera(*size)
    folder = root / LOG
    for kind in ("images", "right"):
        (folder / kind).mkdir(parents=True)
    write_camera(root / "camera.json", camera)
    made = Scene(root, [], [], [], [])
    lines = [",".join(COLUMNS)]
    for number, time_s in enumerate(times_s):
        pose, frame = script.drive.pose(time_s), f"{number:04d}"
        left, right = (
            render(scene, camera, view, time_s, generator(SEED, "orchard", NAME, frame, eye))
            for eye, view in (("left", pose), ("right", right_of(pose, camera.baseline_m or 0.0)))
        )
        write_image(folder / "images" / f"{frame}.png", left.image)
        write_image(folder / "right" / f"{frame}.png", right.image)
        place = [time_s, *pose[:3, 3], *quaternion(pose[:3, :3])]
        lines.append(",".join([frame, *(repr(float(value)) for value in place)]))
        person = max((thing for thing in left.things if thing.id == 1), key=lambda thing: thing.pixels)
        x0, y0, x1, y1 = (float(value) for value in person.visible)
        row = int(y0 + 0.35 * (y1 - y0))
        columns = np.flatnonzero((left.instances[row] % 1000 == 1) & (left.instances[row] > 0))
        made.boxes.append((x0, y0, x1, y1))
        made.depths_m.append(left.depth_m)
        made.poses.append(pose)
        made.points.append((float(np.median(columns)) + 0.5, row + 0.5))
    (folder / "poses.csv").write_text("\n".join(lines) + "\n")
    return made


def orchard_times_s(count: int) -> list[float]:
    """Return evenly spaced times of the whole drive."""
    return [
        float(time) for time in np.linspace(0, orchard_log(SEED, NAME, "positive").drive.duration_s, count)
    ]


def write_camera(path: Path, camera: Camera, **changes: Any) -> None:
    given = asdict(camera) | changes
    path.write_text(json.dumps({name: value for name, value in given.items() if value is not None}))


def texture(x: NDArray[np.float64], y: NDArray[np.float64], seed: int = 1) -> NDArray[np.float64]:
    """Return gray levels of an endless smooth pattern at any places: a sum of waves, known everywhere."""
    rng = np.random.default_rng(seed)
    levels = np.full(np.broadcast(x, y).shape, 120.0)
    for _ in range(24):
        across, down = rng.normal(scale=0.55, size=2)
        levels = levels + 9 * np.sin(across * x + down * y + rng.uniform(0, 6.3))
    return levels


def patterned(
    size: tuple[int, int], shift: tuple[float, float] = (0.0, 0.0), scale: float = 1.0, seed: int = 1
) -> NDArray[np.uint8]:
    """Return an image (H,W,3) of the pattern, moved to the right and down by `shift`, then enlarged."""
    x, y = np.meshgrid(np.arange(size[0]) + 0.5, np.arange(size[1]) + 0.5)
    levels = texture((x - shift[0]) / scale, (y - shift[1]) / scale, seed)
    return np.repeat(np.clip(np.rint(levels), 0, 255).astype(np.uint8)[..., None], 3, axis=2)

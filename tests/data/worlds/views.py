"""Small views of the worlds, and the camera model written down a second time."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.data.worlds import casting
from adverse.data.worlds.rendering import Rendered, render, right_of
from adverse.data.worlds.scripts import Script, stereo_camera
from adverse.data.worlds.solids import Solids
from adverse.data.worlds.writing import SCRIPTS, World
from adverse.seeds import generator
from adverse.types import Camera, LogKind

Floats = NDArray[np.float64]
SEED = 3


class Pair(NamedTuple):
    script: Script
    camera: Camera
    pose: Floats
    time_s: float
    left: Rendered
    right: Rendered


@functools.cache
def script(world: World, name: str, kind: LogKind = "positive") -> Script:
    return SCRIPTS[world](SEED, name, kind)


@functools.cache
def pair(world: World, name: str, part: float, width: int = 160, height: int = 120) -> Pair:
    """Render both eyes at some part of a log's duration."""
    made, camera = script(world, name), stereo_camera(width, height)
    time_s = made.drive.duration_s * part
    pose = made.drive.pose(time_s)
    poses = {"left": pose, "right": right_of(pose, camera.baseline_m or 0)}
    views = [
        render(made.scene(), camera, poses[eye], time_s, generator(SEED, name, eye))
        for eye in ("left", "right")
    ]
    return Pair(made, camera, pose, time_s, *views)


def rays(camera: Camera) -> Floats:
    """Return (H, W, 3): directions in the camera with forward part 1, through pixel centres."""
    v, u = np.mgrid[: camera.height, : camera.width]
    x, y = (u - camera.cx) / camera.fx, (v - camera.cy) / camera.fy
    return np.stack([x, y, np.ones_like(x)], axis=-1)


def points(depth_m: NDArray[np.floating], camera: Camera, pose: Floats) -> Floats:
    """Return (H, W, 3): the world points that a depth map tells of; the sky is far away."""
    reach = np.minimum(depth_m, 1e9)
    found: Floats = rays(camera) * reach[..., None] @ pose[:3, :3].T + pose[:3, 3]
    return found


def cast(solids: Solids, camera: Camera, pose: Floats) -> tuple[Floats, NDArray[np.int64]]:
    depth, owner = np.empty((camera.height, camera.width)), np.empty((camera.height, camera.width), np.int64)
    lens = np.array([camera.fx, camera.fy, camera.cx, camera.cy])
    casting.cast(solids, pose[:3, 3].copy(), pose[:3, :3].copy(), lens, depth, owner)
    return depth, owner


def without_gaps(solids: Solids) -> Solids:
    return solids._replace(holes=np.zeros_like(solids.holes))

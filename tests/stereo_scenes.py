"""A rendered stereo pair with exact depth, small enough for tests."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.data.worlds.rendering import render, right_of
from adverse.data.worlds.scripts import stereo_camera
from adverse.data.worlds.writing import SCRIPTS
from adverse.seeds import generator
from adverse.types import Camera, Depth, Image

BETA = 3.912 / 100
"""Haze of 100 m visibility."""


class Pair(NamedTuple):
    """Left and right image, and the depth of the left one."""

    left: Image
    right: Image
    depth_m: Depth
    camera: Camera


@functools.cache
def orchard(number: int = 3, width: int = 320, height: int = 240, seconds_later: float = 0.0) -> Pair:
    """Render a pair of the orchard, or the same pair some time later."""
    camera = stereo_camera(width, height)
    script = SCRIPTS["orchard"](3, f"depth/{number}", "positive")
    scene, time_s = script.scene(), list(script.drive.times_s())[5] + seconds_later
    pose = script.drive.pose(time_s)
    left, right = (
        render(scene, camera, view, time_s, generator(3, "depth", str(number), eye))
        for eye, view in (("left", pose), ("right", right_of(pose, camera.baseline_m or 0)))
    )
    return Pair(left.image, right.image, left.depth_m, camera)


class VideoFrame(NamedTuple):
    """A pair of a video, the depth of its left image, where people are in it, and the left camera's pose."""

    left: Image
    right: Image
    depth_m: Depth
    person: NDArray[np.bool_]
    pose: NDArray[np.float64]
    camera: Camera


@functools.cache
def orchard_video(count: int = 4, width: int = 320, height: int = 240) -> tuple[VideoFrame, ...]:
    """Render consecutive pairs of an orchard log in which somebody walks across the row."""
    camera = stereo_camera(width, height)
    script = SCRIPTS["orchard"](5, "video/3", "positive")
    scene, frames = script.scene(), []
    for number, time_s in enumerate(script.drive.times_s()[16 : 16 + count]):
        pose = script.drive.pose(time_s)
        left, right = (
            render(scene, camera, view, time_s, generator(5, "video", str(number), eye))
            for eye, view in (("left", pose), ("right", right_of(pose, camera.baseline_m or 0)))
        )
        frames.append(VideoFrame(left.image, right.image, left.depth_m, left.instances > 0, pose, camera))
    return tuple(frames)


def haze_error(depth_m: Depth, truth_m: Depth) -> NDArray[np.floating]:
    """Return the error of the haze's transmission at each pixel."""
    error: NDArray[np.floating] = np.abs(np.exp(-BETA * depth_m) - np.exp(-BETA * truth_m))
    return error


def flicker_px(one: VideoFrame, other: VideoFrame, made: Depth, then: Depth) -> NDArray[np.floating]:
    """Return how much the error of disparity differs between two frames, at each pixel that stands still."""
    camera, scale = one.camera, one.camera.fx * (one.camera.baseline_m or 0)
    row, column = np.mgrid[0 : camera.height, 0 : camera.width]
    still = (one.depth_m < 40) & ~one.person
    z = np.where(still, one.depth_m, 1.0)
    ray = np.stack([(column - camera.cx) / camera.fx, (row - camera.cy) / camera.fy, np.ones_like(z)], -1)
    move = np.linalg.inv(other.pose) @ one.pose
    x, y, depth_m = np.moveaxis(ray * z[..., None] @ move[:3, :3].T + move[:3, 3], -1, 0)
    u = np.rint(x / depth_m * camera.fx + camera.cx).astype(np.int64)
    v = np.rint(y / depth_m * camera.fy + camera.cy).astype(np.int64)
    still &= (u >= 0) & (u < camera.width) & (v >= 0) & (v < camera.height)
    u, v = u.clip(0, camera.width - 1), v.clip(0, camera.height - 1)
    still &= np.abs(other.depth_m[v, u] / depth_m - 1) < 0.02  # else it is hidden there
    first, second = scale / made - scale / one.depth_m, scale / then[v, u] - scale / other.depth_m[v, u]
    flicker: NDArray[np.floating] = np.abs(first - second)[still]
    return flicker

"""From a point in the left image and its partner in the right one to a place in the world, and back.

Points are (x, y) in the pixels of boxes, where calibration's (0, 0) is at (0.5, 0.5). Images are rectified.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from adverse.annotation.matching import Point
from adverse.types import Camera, Depth

PIXEL_CENTRE = 0.5
WINDOW_PX = 2
"""Depth maps are read as the median of so many pixels around the point."""


def stereo_depth_m(camera: Camera, disparity_px: float) -> float:
    """Return fx * baseline / disparity; NaN where there is no baseline or the disparity is not positive.

    Disparity is that of the images; the offset of the right camera's principal point is added to it.

    >>> stereo_depth_m(Camera(500, 500, 320, 240, 640, 480, 0.24), 12.0)
    10.0
    """
    disparity_px += camera.offset_px
    if camera.baseline_m is None or not disparity_px > 0:
        return float("nan")
    return camera.fx * camera.baseline_m / disparity_px


def disparity_px(camera: Camera, depth_m: float) -> float:
    """Return how far to the left in the right image a point at this depth is."""
    return camera.fx * (camera.baseline_m or 0.0) / depth_m - camera.offset_px


def in_camera_m(camera: Camera, point: Point, depth_m: float) -> NDArray[np.float64]:
    """Return the place (3,) of a point at a depth along the optical axis: x right, y down, z forward."""
    x = (point[0] - PIXEL_CENTRE - camera.cx) / camera.fx * depth_m
    y = (point[1] - PIXEL_CENTRE - camera.cy) / camera.fy * depth_m
    return np.array([x, y, depth_m])


def in_world_m(world_from_camera: NDArray[np.float64], camera_m: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a place (3,) of the camera's frame in the world."""
    world: NDArray[np.float64] = world_from_camera[:3, :3] @ camera_m + world_from_camera[:3, 3]
    return world


def seen_at(
    camera: Camera, world_from_camera: NDArray[np.float64], world_m: NDArray[np.float64]
) -> tuple[Point, float]:
    """Return where a place of the world is in the image, and its depth; the inverse of the above."""
    x, y, z = world_from_camera[:3, :3].T @ (world_m - world_from_camera[:3, 3])
    at = camera.fx * x / z + camera.cx + PIXEL_CENTRE, camera.fy * y / z + camera.cy + PIXEL_CENTRE
    return (float(at[0]), float(at[1])), float(z)


def mapped_depth_m(depth_m: Depth, point: Point) -> float:
    """Return the depth map's value at a point: the median of the valid pixels around; NaN: there is none."""
    row, column = int(np.floor(point[1])), int(np.floor(point[0]))
    around = depth_m[
        max(row - WINDOW_PX, 0) : row + WINDOW_PX + 1, max(column - WINDOW_PX, 0) : column + WINDOW_PX + 1
    ]
    valid = around[(around > 0) & np.isfinite(around)]
    return float(np.median(valid)) if valid.size else float("nan")

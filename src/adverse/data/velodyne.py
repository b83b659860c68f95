"""Laser scans as sparse depth: KITTI's velodyne files (x, y, z, reflectance as float32), projected.

A pixel's depth is that of the nearest point that falls on it, along the camera's axis; NaN where none does.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from adverse.data.files import read_bytes
from adverse.data.images import ImageFile, Size
from adverse.errors import DataError
from adverse.types import Depth

NEAREST_M = 0.1
"""Points nearer than this to the camera's plane, or behind it, are not seen."""
_POINT_BYTES = 16
_LIMIT_BYTES = 2**28  # over 16 million points; a scan has about 120 thousand


@dataclass(frozen=True)
class VelodyneDepth:
    """A scan on disk and how it is projected; call it to get (H,W) float32 metres, or DataError.

    `pixels_from_velodyne` is the (3,4) projection, row by row: calibrated pixel = (a / c, b / c), depth c.
    """

    path: Path
    image: ImageFile
    pixels_from_velodyne: tuple[float, ...]

    @property
    def recipe(self) -> str:
        """How the points become depth, on the image's size."""
        return f"velodyne {' '.join(map(repr, self.pixels_from_velodyne))} {self.image.recipe}"

    def __call__(self) -> Depth:
        """Read the scan and project it."""
        points = read_points(self.path)
        projection = np.array(self.pixels_from_velodyne).reshape(3, 4)
        return projected_depth(points, projection, self.image.measure())


def read_points(path: Path) -> NDArray[np.float32]:
    """Return the points (N,3) of a scan in metres: x forward, y left, z up."""
    data = read_bytes(path, what="velodyne", limit=_LIMIT_BYTES)
    got = f"{len(data)} bytes"
    wanted = f"a multiple of {_POINT_BYTES} bytes: x, y, z and reflectance as float32"
    if not data or len(data) % _POINT_BYTES:
        raise _refused("the velodyne file is empty or cut off", got, wanted, path)
    points = np.frombuffer(data, "<f4").reshape(-1, 4)[:, :3]
    if not np.isfinite(points).all():
        bad = int((~np.isfinite(points).all(axis=1)).sum())
        raise _refused(
            "a scan holds points that are nowhere", f"{bad} NaN or infinite", "finite metres", path
        )
    return points


def projected_depth(
    points_m: NDArray[np.floating], pixels_from_points: NDArray[np.float64], size: Size
) -> Depth:
    """Return the depth (H,W) of points (N,3) under a (3,4) projection; size is width, height.

    Calibration calls the middle of the first pixel (0, 0), so a pixel reaches half a unit to each side.
    """
    width, height = size
    depth = np.full(width * height, np.nan, np.float32)
    a, b, z = pixels_from_points[:, :3] @ points_m.T.astype(np.float64) + pixels_from_points[:, 3:]
    with np.errstate(divide="ignore", invalid="ignore"):
        column, row = np.floor(a / z + 0.5), np.floor(b / z + 0.5)
        seen = (z >= NEAREST_M) & (column >= 0) & (column < width) & (row >= 0) & (row < height)
    at = (row[seen] * width + column[seen]).astype(np.int64)
    order = np.argsort(-z[seen], kind="stable")  # the nearest is written last
    depth[at[order]] = z[seen][order]
    return depth.reshape(height, width)


def _refused(what: str, got: str, wanted: str, path: Path) -> DataError:
    return DataError(
        what,
        where=f"velodyne file {path}",
        got=got,
        wanted=wanted,
        fix="Copy the file again from its source, or take it out of the data set.",
    )

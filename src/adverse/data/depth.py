"""Depth files in metres: .npy, 16-bit PNG with a declared scale, or disparity as Cityscapes stores it.

+inf is sky, NaN is unknown. What a mutation does about invalid depth is its own affair; here only what is no
depth map is refused. A stored disparity p > 0 means (p - 1) / 256 pixels, 0 unknown.

Laser scans (KITTI's velodyne files: x, y, z, reflectance as float32) are projected to sparse depth: a pixel's
depth is that of the nearest point that falls on it, along the camera's axis; NaN where none does.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from adverse.data.files import read_bytes
from adverse.data.images import MAX_MEGAPIXELS, ImageFile, Size
from adverse.data.maps import GrayPng
from adverse.errors import DataError
from adverse.types import Depth

Resample = Literal["refuse", "nearest"]
SUFFIXES = (".npy", ".png")
UNIT_PX = 1 / 256
"""Pixels of disparity per stored unit."""
_LIMIT_BYTES = int(MAX_MEGAPIXELS * 1e6) * 8 + 2**20
_WRITE_AGAIN = (
    "Write the file again (numpy.save of a float32 array in metres), or take it out of the data set."
)
DEPTH = GrayPng("depth image", (16,), _WRITE_AGAIN)
DISPARITY = GrayPng(
    "disparity", (16,), "Copy the file again from its source, or take it out of the data set."
)


@dataclass(frozen=True)
class DepthFile:
    """A depth map on disk; call it to get (H,W) float32 metres of the image's size, or DataError.

    `scale_m` is metres per stored unit of a PNG, whose 0 means unknown and becomes NaN.
    """

    path: Path
    image: ImageFile
    scale_m: float | None = None
    resample: Resample = "refuse"

    @property
    def recipe(self) -> str:
        """How the bytes become metres, on the image's size."""
        return f"depth {self.scale_m} {self.resample} {self.image.recipe}"

    def __call__(self) -> Depth:
        """Read and check the file."""
        where = f"depth file {self.path}"
        data = read_bytes(self.path, what="depth", limit=_LIMIT_BYTES)
        if self.path.suffix.lower() == ".npy":
            depth = _from_npy(data, where)
        else:
            depth = _from_png(data, self.scale_m, where)
        return self._fitted(depth, self.image.measure(), where)

    def _fitted(self, depth: Depth, size: Size, where: str) -> Depth:
        width, height = size
        if depth.shape == (height, width):
            return depth
        if self.resample != "nearest":
            raise DataError(
                "the depth map is not of the image's size",
                where=where,
                got=f"{depth.shape[1]}x{depth.shape[0]} pixels",
                wanted=f"{width}x{height}, as {self.image.path.name}",
                fix="Set depth_resample: nearest in the study's data section if both show the same view.",
            )
        return depth[np.ix_(_nearest(height, depth.shape[0]), _nearest(width, depth.shape[1]))]


def _nearest(wanted: int, have: int) -> NDArray[np.int64]:
    """Return for each of `wanted` pixels the index of the pixel, of `have`, whose centre is nearest.

    >>> _nearest(4, 2)
    array([0, 0, 1, 1])
    """
    return np.minimum(((np.arange(wanted) + 0.5) * have / wanted).astype(np.int64), have - 1)


def _from_npy(data: bytes, where: str) -> Depth:
    stream = io.BytesIO(data)
    try:
        version = npy.read_magic(stream)
        read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran, dtype = read_header(stream)
    except (ValueError, EOFError) as error:
        raise _refused(
            "the .npy header cannot be read", str(error), "a file written by numpy.save", where
        ) from error
    if dtype.kind != "f":
        raise _refused("the depth map does not hold floats", f"{dtype}", "float32 metres", where)
    if len(shape) != 2 or 0 in shape:
        raise _refused("the depth map has the wrong shape", f"{shape}", "(rows, columns)", where)
    body = len(data) - stream.tell()
    if body != shape[0] * shape[1] * dtype.itemsize:
        got = f"{body} bytes for {shape} of {dtype}"
        raise _refused(
            "the depth file is truncated or too long", got, "as many values as its header says", where
        )
    stored = np.frombuffer(data, dtype, offset=stream.tell()).reshape(shape, order="F" if fortran else "C")
    with np.errstate(over="ignore"):  # beyond float32 is as far as the sky
        return np.ascontiguousarray(stored, dtype=np.float32)


def _from_png(data: bytes, scale_m: float | None, where: str) -> Depth:
    if scale_m is None:
        raise DataError(
            "depth in a PNG needs a declared scale",
            where=where,
            got="no depth_scale_m",
            wanted="metres per stored unit",
            fix="Set depth_scale_m in the study's data section, e.g. 0.001 for millimetres.",
        )
    stored = DEPTH.decode(data, where=where)
    depth = stored.astype(np.float32) * np.float32(scale_m)
    depth[stored == 0] = np.nan
    return depth


def _refused(what: str, got: str, wanted: str, where: str) -> DataError:
    return DataError(
        what,
        where=where,
        got=" ".join(got.split()),
        wanted=wanted,
        fix=_WRITE_AGAIN,
    )


@dataclass(frozen=True)
class DisparityDepth:
    """A disparity map on disk; call it to get (H,W) float32 metres of the image's size, or DataError.

    Depth is `focal_baseline` (focal length in pixels times baseline in metres) over the disparity: none at
    all is infinitely far, unknown is NaN.
    """

    path: Path
    image: ImageFile
    focal_baseline: float

    @property
    def recipe(self) -> str:
        """How the bytes become metres."""
        return f"disparity {self.focal_baseline!r} {self.image.recipe}"

    def __call__(self) -> Depth:
        """Read and check the file."""
        stored = DISPARITY.read(self.path, self.image.measure())
        return depth_from_disparity(stored, self.focal_baseline)


def depth_from_disparity(stored: NDArray[Any], focal_baseline: float) -> Depth:
    """Return depth in metres of stored disparities.

    >>> depth_from_disparity(np.array([[0, 1, 257]], np.uint16), 400.0)
    array([[ nan,  inf, 400.]], dtype=float32)
    """
    with np.errstate(divide="ignore"):
        depth = (focal_baseline / ((stored.astype(np.float64) - 1) * UNIT_PX)).astype(np.float32)
    depth[stored == 0] = np.nan
    return depth


NEAREST_M = 0.1
"""Points nearer than this to the camera's plane, or behind it, are not seen."""
_VELODYNE_LIMIT_BYTES = 2**28  # over 16 million points; a scan has about 120 thousand


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


@dataclass(frozen=True)
class NuscenesDepth(VelodyneDepth):
    """A scan of nuScenes, which has the number of the laser beside each point; else the same."""

    @property
    def recipe(self) -> str:
        """How the points become depth, on the image's size."""
        return f"nuscenes {super().recipe}"

    def __call__(self) -> Depth:
        """Read the scan and project it."""
        points = read_points(self.path, numbers=5)
        projection = np.array(self.pixels_from_velodyne).reshape(3, 4)
        return projected_depth(points, projection, self.image.measure())


def read_points(path: Path, *, numbers: int = 4) -> NDArray[np.float32]:
    """Return the points (N,3) of a scan in metres, the first of so many numbers a point."""
    data = read_bytes(path, what="velodyne", limit=_VELODYNE_LIMIT_BYTES)
    got, size = f"{len(data)} bytes", 4 * numbers
    wanted = f"a multiple of {size} bytes: x, y, z, reflectance{' and ring' * (numbers == 5)} as float32"
    if not data or len(data) % size:
        raise _velodyne_refused("the velodyne file is empty or truncated", got, wanted, path)
    points = np.frombuffer(data, "<f4").reshape(-1, numbers)[:, :3]
    if not np.isfinite(points).all():
        bad = int((~np.isfinite(points).all(axis=1)).sum())
        raise _velodyne_refused(
            "a scan has points that are not finite", f"{bad} NaN or infinite", "finite metres", path
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


def _velodyne_refused(what: str, got: str, wanted: str, path: Path) -> DataError:
    return DataError(
        what,
        where=f"velodyne file {path}",
        got=got,
        wanted=wanted,
        fix="Copy the file again from its source, or take it out of the data set.",
    )

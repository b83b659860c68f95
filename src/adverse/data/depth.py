"""Depth files in metres: .npy, or 16-bit PNG with a declared scale. +inf is sky, NaN is unknown.

What a mutation does about invalid depth is its own affair; here only what is no depth map is refused.

Disparity as Cityscapes stores it: 16-bit PNG, value p > 0 means (p - 1) / 256 pixels, 0 unknown.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from adverse.data import codecs
from adverse.data.files import read_bytes
from adverse.data.images import MAX_MEGAPIXELS, ImageFile, Size
from adverse.errors import DataError
from adverse.types import Depth

Resample = Literal["refuse", "nearest"]
SUFFIXES = (".npy", ".png")
_LIMIT_BYTES = int(MAX_MEGAPIXELS * 1e6) * 8 + 2**20


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
        raise _refused("the depth file is truncated or too long", got, "as many values as it says", where)
    stored = np.frombuffer(data, dtype, offset=stream.tell()).reshape(shape, order="F" if fortran else "C")
    with np.errstate(over="ignore"):  # beyond float32 is as far as the sky
        return np.ascontiguousarray(stored, dtype=np.float32)


def _from_png(data: bytes, scale_m: float | None, where: str) -> Depth:
    header = codecs.inspect(data, where=where)
    kind = f"{header.bits}-bit {header.format} {' '.join(header.notes) or 'RGB'}"
    if header.format != "PNG" or header.bits != 16 or header.notes != ("gray",) or header.frames != 1:
        raise _refused("the depth image is not a 16-bit gray PNG", kind, "16-bit gray PNG, or .npy", where)
    if header.width * header.height > MAX_MEGAPIXELS * 1e6:
        size = f"{header.width}x{header.height}"
        raise _refused("the depth map is too large", size, f"at most {MAX_MEGAPIXELS:g} megapixels", where)
    if scale_m is None:
        raise DataError(
            "depth in a PNG needs a declared scale",
            where=where,
            got="no depth_scale_m",
            wanted="metres per stored unit",
            fix="Set depth_scale_m in the study's data section, e.g. 0.001 for millimetres.",
        )
    stored: NDArray[Any] = codecs.decode(data, header, where=where)
    depth = stored.astype(np.float32) * np.float32(scale_m)
    depth[stored == 0] = np.nan
    return depth


def _refused(what: str, got: str, wanted: str, where: str) -> DataError:
    return DataError(
        what,
        where=where,
        got=" ".join(got.split()),
        wanted=wanted,
        fix="Write the file again (numpy.save of a float32 array in metres), or take it out of the data set.",
    )


UNIT_PX = 1 / 256
_DISPARITY_LIMIT_BYTES = int(MAX_MEGAPIXELS * 1e6) * 2 + 2**20


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
        where = f"disparity file {self.path}"
        data = read_bytes(self.path, what="disparity", limit=_DISPARITY_LIMIT_BYTES)
        header = codecs.inspect(data, where=where)
        size = header.width, header.height
        if header.format != "PNG" or header.bits != 16 or header.notes != ("gray",) or header.frames != 1:
            got = f"{header.bits}-bit {header.format} {' '.join(header.notes) or 'RGB'}"
            raise _disparity_refused("the disparity is not a 16-bit gray PNG", got, "16-bit gray PNG", where)
        if size != self.image.measure():
            wanted = f"{'x'.join(map(str, self.image.measure()))}, as {self.image.path.name}"
            raise _disparity_refused(
                "the disparity is not of the image's size", f"{size[0]}x{size[1]}", wanted, where
            )
        stored: NDArray[Any] = codecs.decode(data, header, where=where)
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


def _disparity_refused(what: str, got: str, wanted: str, where: str) -> DataError:
    fix = "Copy the file again from its source, or take it out of the data set."
    return DataError(what, where=where, got=got, wanted=wanted, fix=fix)

"""Disparity as Cityscapes stores it: 16-bit PNG, value p > 0 means (p - 1) / 256 pixels, 0 unknown."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adverse.data import codecs
from adverse.data.files import read_bytes
from adverse.data.images import MAX_MEGAPIXELS, ImageFile
from adverse.errors import DataError
from adverse.types import Depth

UNIT_PX = 1 / 256
_LIMIT_BYTES = int(MAX_MEGAPIXELS * 1e6) * 2 + 2**20


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
        data = read_bytes(self.path, what="disparity", limit=_LIMIT_BYTES)
        header = codecs.inspect(data, where=where)
        size = header.width, header.height
        if header.format != "PNG" or header.bits != 16 or header.notes != ("gray",) or header.frames != 1:
            got = f"{header.bits}-bit {header.format} {' '.join(header.notes) or 'RGB'}"
            raise _refused("the disparity is not a 16-bit gray PNG", got, "16-bit gray PNG", where)
        if size != self.image.measure():
            wanted = f"{'x'.join(map(str, self.image.measure()))}, as {self.image.path.name}"
            raise _refused("the disparity is not of the image's size", f"{size[0]}x{size[1]}", wanted, where)
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


def _refused(what: str, got: str, wanted: str, where: str) -> DataError:
    fix = "Copy the file again from its source, or take it out of the data set."
    return DataError(what, where=where, got=got, wanted=wanted, fix=fix)

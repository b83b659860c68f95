"""Instance maps: a PNG that tells the objects of an image apart, one number for each; 0 is none."""

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

_LIMIT_BYTES = int(MAX_MEGAPIXELS * 1e6) * 2 + 2**20


@dataclass(frozen=True)
class InstanceFile:
    """An instance map on disk; call it to get (H,W) int32 of the image's size, 0 where there is no object.

    Values below `first` are no objects (Cityscapes writes the class alone where objects are not told
    apart), nor is the value `void`. With `palette` the numbers may be the indexes of a palette.
    """

    path: Path
    image: ImageFile
    first: int = 1
    void: int | None = None
    palette: bool = False

    @property
    def recipe(self) -> str:
        """How the bytes become objects."""
        return f"instances {self.first} {self.void} {self.palette} {self.image.recipe}"

    def __call__(self) -> NDArray[np.int32]:
        """Read and check the file."""
        where = f"instance file {self.path}"
        data = read_bytes(self.path, what="instance", limit=_LIMIT_BYTES)
        header = codecs.inspect(data, where=where)
        indexed = self.palette and header.notes == ("palette",)
        if header.format != "PNG" or header.frames != 1 or not (header.notes == ("gray",) or indexed):
            kind = f"{header.bits}-bit {header.format} {' '.join(header.notes) or 'RGB'}"
            raise _refused("the instance map is not a gray PNG", kind, "8- or 16-bit gray PNG", where)
        width, height = self.image.measure()
        if (header.width, header.height) != (width, height):
            got, wanted = f"{header.width}x{header.height}", f"{width}x{height}, as {self.image.path.name}"
            raise _refused("the instance map is not of the image's size", got, wanted, where)
        stored: NDArray[Any] = (
            codecs.palette_indexes(data, where=where) if indexed else codecs.decode(data, header, where=where)
        )
        found = np.array(stored if stored.ndim == 2 else stored[..., 0], np.int32, order="C")
        found[found < self.first] = 0
        if self.void is not None:
            found[found == self.void] = 0
        return found


def _refused(what: str, got: str, wanted: str, where: str) -> DataError:
    fix = "Write one number for each object as gray PNG, or take the file out of the data set."
    return DataError(what, where=where, got=got, wanted=wanted, fix=fix)

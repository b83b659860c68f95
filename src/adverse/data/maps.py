"""Label maps: 8-bit PNG, one class id for each pixel; `pixel_classes.json` says what the ids mean.

Instance maps: a PNG that tells the objects of an image apart, one number for each; 0 is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, StringConstraints

from adverse.data import codecs
from adverse.data.files import read_bytes, read_model
from adverse.data.images import MAX_MEGAPIXELS, ImageFile
from adverse.errors import DataError

SUFFIXES = (".png",)
NAMES_FILE = "pixel_classes.json"
ClassId = Annotated[int, Field(ge=0, le=255)]
ClassName = Annotated[str, StringConstraints(min_length=1)]
PixelClasses = dict[ClassId, ClassName]
_LIMIT_BYTES = int(MAX_MEGAPIXELS * 1e6) + 2**20


@dataclass(frozen=True)
class LabelFile:
    """A label map on disk; call it to get (H,W) uint8 class ids of the image's size, or DataError.

    With `palette` the ids may also be the indexes of a palette, whatever its colours.
    """

    path: Path
    image: ImageFile
    palette: bool = False

    @property
    def recipe(self) -> str:
        """How the bytes become class ids."""
        return f"labels {'palette ' if self.palette else ''}{self.image.recipe}"

    def __call__(self) -> NDArray[np.uint8]:
        """Read and check the file."""
        where = f"label file {self.path}"
        data = read_bytes(self.path, what="label", limit=_LIMIT_BYTES)
        header = codecs.inspect(data, where=where)
        size = header.width, header.height
        indexed = self.palette and header.notes == ("palette",)
        plain = header.notes == ("gray",) or indexed
        if header.format != "PNG" or header.bits != 8 or not plain or header.frames != 1:
            kind = f"{header.bits}-bit {header.format} {' '.join(header.notes) or 'RGB'}"
            raise _refused("the label map is not an 8-bit gray PNG", kind, "8-bit gray PNG", where)
        if size != self.image.measure():
            wanted = f"{'x'.join(map(str, self.image.measure()))}, as {self.image.path.name}"
            raise _refused("the label map is not of the image's size", f"{size[0]}x{size[1]}", wanted, where)
        if indexed:
            return codecs.palette_indexes(data, where=where)
        return np.ascontiguousarray(codecs.decode(data, header, where=where)[..., 0])


def read_pixel_classes(path: Path) -> dict[int, str]:
    """Read which class each id means: {"7": "road"}; several ids may share a name, others are not judged."""
    written = read_model(path, "pixel class", dict[str, ClassName])
    wrong = next((key for key in written if not key.isdecimal() or int(key) > 255), None)
    if wrong is not None:
        raise DataError(
            "a pixel class has no id",
            where=f"{path}, field {wrong}",
            got=repr(wrong),
            wanted="a number from 0 to 255 as its key",
            fix='Write the id of each class in the label maps, as in {"7": "road"}.',
        )
    return {int(key): name for key, name in written.items()}


def _refused(what: str, got: str, wanted: str, where: str) -> DataError:
    fix = "Write one class id (0..255) for each pixel as gray PNG, or take the file out of the data set."
    return DataError(what, where=where, got=got, wanted=wanted, fix=fix)


_INSTANCES_LIMIT_BYTES = int(MAX_MEGAPIXELS * 1e6) * 2 + 2**20


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
        data = read_bytes(self.path, what="instance", limit=_INSTANCES_LIMIT_BYTES)
        header = codecs.inspect(data, where=where)
        indexed = self.palette and header.notes == ("palette",)
        if header.format != "PNG" or header.frames != 1 or not (header.notes == ("gray",) or indexed):
            kind = f"{header.bits}-bit {header.format} {' '.join(header.notes) or 'RGB'}"
            raise _instances_refused(
                "the instance map is not a gray PNG", kind, "8- or 16-bit gray PNG", where
            )
        width, height = self.image.measure()
        if (header.width, header.height) != (width, height):
            got, wanted = f"{header.width}x{header.height}", f"{width}x{height}, as {self.image.path.name}"
            raise _instances_refused("the instance map is not of the image's size", got, wanted, where)
        stored: NDArray[Any] = (
            codecs.palette_indexes(data, where=where) if indexed else codecs.decode(data, header, where=where)
        )
        found = np.array(stored if stored.ndim == 2 else stored[..., 0], np.int32, order="C")
        found[found < self.first] = 0
        if self.void is not None:
            found[found == self.void] = 0
        return found


def _instances_refused(what: str, got: str, wanted: str, where: str) -> DataError:
    fix = "Write one number for each object as gray PNG, or take the file out of the data set."
    return DataError(what, where=where, got=got, wanted=wanted, fix=fix)

"""Maps beside an image, one number for each of its pixels, as gray PNG of the image's size.

A label map tells the class of every pixel (`pixel_classes.json` says what ids mean); an instance map tells
objects apart. Depth and disparity (`depth.py`) are read by the same `GrayPng`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import Field, StringConstraints

from adverse.data import codecs
from adverse.data.files import read_bytes, read_model
from adverse.data.images import MAX_MEGAPIXELS, ImageFile, Size
from adverse.errors import DataError

SUFFIXES = (".png",)
NAMES_FILE = "pixel_classes.json"
ClassId = Annotated[int, Field(ge=0, le=255)]
ClassName = Annotated[str, StringConstraints(min_length=1)]
PixelClasses = dict[ClassId, ClassName]


@dataclass(frozen=True)
class GrayPng:
    """A kind of gray PNG: what it is called, the bits it may have, and what to do about a wrong one."""

    name: str
    bits: tuple[int, ...]
    fix: str

    @property
    def form(self) -> str:
        """The bits in words.

        >>> GrayPng("instance map", (8, 16), "").form
        '8- or 16-bit gray PNG'
        """
        return f"{'- or '.join(map(str, self.bits))}-bit gray PNG"

    def read(self, path: Path, size: Size, *, palette: bool = False) -> NDArray[Any]:
        """Read the values (H,W) of a map of an image of `size`, or raise DataError."""
        kind = self.name.partition(" ")[0]
        limit = int(MAX_MEGAPIXELS * 1e6) * max(self.bits) // 8 + 2**20
        data = read_bytes(path, what=kind, limit=limit)
        return self.decode(data, where=f"{kind} file {path}", size=size, palette=palette)

    def decode(
        self, data: bytes, *, where: str, size: Size | None = None, palette: bool = False
    ) -> NDArray[Any]:
        """Decode the values (H,W) strictly; with `palette` they may also be the indexes of a palette."""
        header = codecs.inspect(data, where=where)
        indexed = palette and header.notes == ("palette",)
        plain = header.notes == ("gray",) or indexed
        if header.format != "PNG" or header.bits not in self.bits or not plain or header.frames != 1:
            got = f"{header.bits}-bit {header.format} {' '.join(header.notes) or 'RGB'}"
            article = "an" if self.form.startswith("8") else "a"
            raise self.refused(f"is not {article} {self.form}", got, self.form, where)
        if size is not None and (header.width, header.height) != size:
            got, wanted = f"{header.width}x{header.height} pixels", f"{size[0]}x{size[1]}, as the image"
            raise self.refused("is not of the image's size", got, wanted, where)
        if header.width * header.height > MAX_MEGAPIXELS * 1e6:
            got, wanted = f"{header.width}x{header.height}", f"at most {MAX_MEGAPIXELS:g} megapixels"
            raise self.refused("is too large", got, wanted, where)
        if indexed:
            return codecs.palette_indexes(data, where=where)
        pixels = codecs.decode(data, header, where=where)
        return np.ascontiguousarray(pixels if pixels.ndim == 2 else pixels[..., 0])

    def refused(self, what: str, got: str, wanted: str, where: str) -> DataError:
        """Return the error about such a map."""
        return DataError(f"the {self.name} {what}", where=where, got=got, wanted=wanted, fix=self.fix)


LABELS = GrayPng(
    "label map",
    (8,),
    "Write one class id (0..255) for each pixel as gray PNG, or take the file out of the data set.",
)
INSTANCES = GrayPng(
    "instance map",
    (8, 16),
    "Write one number for each object as gray PNG, or take the file out of the data set.",
)


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
        return LABELS.read(self.path, self.image.measure(), palette=self.palette)


def read_pixel_classes(path: Path) -> dict[int, str]:
    """Read which class each id means: {"7": "road"}; ids may share a name, others are not evaluated."""
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
        stored = INSTANCES.read(self.path, self.image.measure(), palette=self.palette)
        numbers = stored.astype(np.int32)
        numbers[numbers < self.first] = 0
        if self.void is not None:
            numbers[numbers == self.void] = 0
        return numbers


@dataclass(frozen=True)
class LabelParts:
    """Objects where no instance map tells them apart: the connected parts of the `things`, by class id.

    Call it to get (H,W) int32: class * 1000 + 1 on, part by part, 0 elsewhere. Objects that touch are one.
    """

    labels: LabelFile
    things: tuple[int, ...]

    @property
    def path(self) -> Path:
        """The label map."""
        return self.labels.path

    @property
    def recipe(self) -> str:
        """How the bytes become objects."""
        return f"parts of {self.things} of {self.labels.recipe}"

    def __call__(self) -> NDArray[np.int32]:
        """Read and check the label map."""
        labels = self.labels()
        numbers = np.zeros(labels.shape, np.int32)
        for thing in self.things:
            _, part = cv2.connectedComponents((labels == thing).astype(np.uint8), connectivity=8)
            np.copyto(numbers, 1000 * thing + part, where=part > 0, casting="same_kind")
        return numbers

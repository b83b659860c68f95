"""TIFF, BMP, GIF and PPM through Pillow, and the palette indexes of PNG, which OpenCV turns into colours.

Pillow's own readers are called directly: `Image.open` would try formats nobody asked for, and has a pixel
limit of its own that is global state.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import BmpImagePlugin, GifImagePlugin, ImageFile, PngImagePlugin, PpmImagePlugin, TiffImagePlugin

from adverse.data.codecs.header import ORIENTATION_TAG, Header, as_stored, damaged, known_orientation
from adverse.errors import DataError

_READERS: dict[bytes, tuple[str, Callable[[Any], ImageFile.ImageFile]]] = {
    b"II*\x00": ("TIFF", TiffImagePlugin.TiffImageFile),
    b"MM\x00*": ("TIFF", TiffImagePlugin.TiffImageFile),
    b"BM": ("BMP", BmpImagePlugin.BmpImageFile),
    b"GIF87a": ("GIF", GifImagePlugin.GifImageFile),
    b"GIF89a": ("GIF", GifImagePlugin.GifImageFile),
    b"P5": ("PPM", PpmImagePlugin.PpmImageFile),
    b"P6": ("PPM", PpmImagePlugin.PpmImageFile),
}
_NOTES: dict[str, tuple[str, ...]] = {
    "1": ("gray",),
    "L": ("gray",),
    "LA": ("gray", "rgba"),
    "P": ("palette",),
    "PA": ("palette", "rgba"),
    "RGB": (),
    "RGBA": ("rgba",),
    "RGBX": (),
    "CMYK": ("cmyk",),
    "I;16": ("gray",),
    "I;16B": ("gray",),
}
_FAILURES = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    OSError,
    SyntaxError,
    TypeError,
    ValueError,
    struct.error,
)
"""What Pillow's readers raise on damaged files: `SyntaxError` is its word for 'not this format'."""
_BITS_TAG, _TILE_TAGS = 258, (322, 323)


def knows(data: bytes) -> bool:
    """Tell whether the first bytes are of a format read here."""
    return data.startswith(tuple(_READERS))


def inspect(data: bytes, *, where: str) -> Header:
    """Read size, mode, orientation and whether there is a second frame."""
    name, image = _open(data, where)
    try:
        orientation = known_orientation(int(image.getexif().get(ORIENTATION_TAG, 1)))
        frames = int(getattr(image, "n_frames", 1))
    except _FAILURES as error:
        raise damaged(name, got=error, wanted=f"a complete {name}", where=where) from error
    bits = 16 if image.mode.startswith("I;16") else 8
    stored_bits = 8
    width, height = image.size
    if isinstance(image, TiffImagePlugin.TiffImageFile):
        stored_bits = max(image.tag_v2.get(_BITS_TAG, (8,)))
        tile = [int(image.tag_v2.get(tag, 0)) for tag in _TILE_TAGS]
        if tile[0] * tile[1] > 4 * width * height + 2**20:
            got = f"tiles of {tile[0]}x{tile[1]}"
            raise damaged(name, got=got, wanted="tiles no larger than the image", where=where)
        if (
            orientation is not None and orientation >= 5
        ):  # Pillow tells the size after rotation, a header the size as stored
            width, height = height, width
    if image.mode not in _NOTES or stored_bits > bits:
        raise DataError(
            f"a {name} of this pixel type is not read",
            where=where,
            got=f"mode {image.mode}, {stored_bits} bits per channel",
            wanted="8-bit gray, palette, RGB(A) or CMYK, or 16-bit gray",
            fix="Convert the file to an 8- or 16-bit PNG.",
        )
    return Header(name, width, height, _NOTES[image.mode], bits, frames, orientation)


def decode(data: bytes, header: Header, *, where: str) -> NDArray[Any]:
    """Read the pixels as stored: (H,W,3) RGB uint8, or (H,W) uint16."""
    name, image = _open(data, where)
    try:
        image.load()
        pixels = np.array(image if header.bits == 16 else image.convert("RGB"))
    except _FAILURES as error:
        raise damaged(name, got=error, wanted=f"a complete {name}", where=where) from error
    if name == "TIFF" and header.orientation is not None:  # Pillow turned it; the data set's policy decides
        pixels = as_stored(pixels, header.orientation)
    return pixels.astype(np.uint16) if header.bits == 16 else pixels


def palette_indexes(data: bytes, *, where: str) -> NDArray[np.uint8]:
    """Read a PNG with a palette as the indexes (H,W) that it stores."""
    try:
        image = PngImagePlugin.PngImageFile(io.BytesIO(data))
        image.load()
        return np.array(image, np.uint8)
    except _FAILURES as error:
        raise damaged("PNG", got=error, wanted="a complete PNG", where=where) from error


def _open(data: bytes, where: str) -> tuple[str, ImageFile.ImageFile]:
    name, reader = next(known for start, known in _READERS.items() if data.startswith(start))
    try:
        return name, reader(io.BytesIO(data))
    except _FAILURES as error:
        raise damaged(name, got=error, wanted=f"a complete {name}", where=where) from error

"""Image files by content: what the header says, then the pixels, strictly.

`inspect` reads no pixels, so a caller can refuse a file before memory is spent on it; `decode` refuses
what is truncated or corrupt. The format is told by the first bytes; a file's name is not believed.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from adverse.data.codecs import jpeg, pillow, png
from adverse.data.codecs.header import COPY_AGAIN, Header, damaged
from adverse.data.codecs.pillow import palette_indexes
from adverse.errors import DataError

__all__ = ["SUFFIXES", "Header", "decode", "inspect", "palette_indexes"]

SUFFIXES = {
    "JPEG": (".jpg", ".jpeg", ".jpe", ".jfif"),
    "PNG": (".png", ".apng"),
    "TIFF": (".tif", ".tiff"),
    "BMP": (".bmp", ".dib"),
    "GIF": (".gif",),
    "PPM": (".ppm", ".pgm", ".pnm"),
}
_CONVERT = "Convert the file to PNG or JPEG, or take it out of the data set."


def inspect(data: bytes, *, where: str) -> Header:
    """Read what the header says about size, frames and kind, and check what can be checked cheaply."""
    if not data:
        raise DataError(
            "the image file is empty",
            where=where,
            got="0 bytes",
            wanted=f"an image ({', '.join(SUFFIXES)})",
            fix=COPY_AGAIN,
        )
    if data.startswith(jpeg.SIGNATURE):
        return jpeg.inspect(data, where=where)
    if data.startswith(png.SIGNATURE):
        return png.inspect(data, where=where)
    if pillow.knows(data):
        return pillow.inspect(data, where=where)
    raise DataError(
        "the file is not an image we read",
        where=where,
        got=_guess(data),
        wanted=f"one of {', '.join(SUFFIXES)}, by content",
        fix=_CONVERT,
    )


def decode(data: bytes, header: Header, *, where: str) -> NDArray[Any]:
    """Read the pixels: (H,W,3) RGB uint8, or uint16 (H,W) or (H,W,3) where the header says 16 bits."""
    codec = {"JPEG": jpeg.decode, "PNG": png.decode}.get(header.format, pillow.decode)
    pixels = codec(data, header, where=where)
    if pixels.shape[:2] != (header.height, header.width):
        got, wanted = f"{pixels.shape[1]}x{pixels.shape[0]} pixels", f"{header.width}x{header.height}"
        raise damaged(header.format, got=got, wanted=f"{wanted}, as its header says", where=where)
    return pixels


def _guess(data: bytes) -> str:
    start = data[:512].lstrip().lower()
    if start.startswith((b"<!doctype", b"<html", b"<?xml", b"<head", b"<body")):
        return "a web page (a failed download?)"
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "a WebP image"
    return f"a file that begins with {data[:8]!r}"

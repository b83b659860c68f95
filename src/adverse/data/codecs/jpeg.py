"""JPEG: libjpeg-turbo with every warning an error, so that damage it can see never becomes pixels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import simplejpeg
from numpy.typing import NDArray
from PIL import Image

from adverse.data.codecs.header import Header, damaged, orientation_of, tiff_value

SIGNATURE = b"\xff\xd8\xff"
_NOTES = {"Gray": ("gray",), "CMYK": ("cmyk",), "YCCK": ("cmyk",)}
_APP1, _APP2, _START_OF_SCAN, _END = 0xE1, 0xE2, 0xDA, 0xD9
_BARE = (0x01, *range(0xD0, 0xD8))  # markers without a length
_MPF = b"MPF\x00"
_FRAMES_TAG = 0xB001
_WHOLE = "a JPEG that decodes without a warning"


def inspect(data: bytes, *, where: str) -> Header:
    """Read size, colour space, EXIF orientation and the number of pictures of an MPO."""
    try:
        height, width, space, _ = simplejpeg.decode_jpeg_header(data, strict=True)
    except ValueError as error:
        raise damaged("JPEG", got=str(error), wanted=_WHOLE, where=where) from error
    orientation: int | None = 1
    frames = 1
    for marker, payload in _segments(data):
        if marker == _APP1 and payload.startswith(b"Exif\x00\x00"):
            orientation = orientation_of(payload)
        elif marker == _APP2 and payload.startswith(_MPF):
            frames = _pictures(payload)
    return Header("JPEG", width, height, _NOTES.get(space, ()), frames=frames, orientation=orientation)


def decode(data: bytes, header: Header, *, where: str) -> NDArray[Any]:
    """Read the pixels as (H,W,3) RGB uint8."""
    cmyk = "cmyk" in header.notes
    try:
        pixels: NDArray[np.uint8] = simplejpeg.decode_jpeg(data, "CMYK" if cmyk else "RGB", strict=True)
    except ValueError as error:
        raise damaged("JPEG", got=str(error), wanted=_WHOLE, where=where) from error
    if cmyk:  # stored inverted, as Adobe does and everyone reads
        inks = Image.frombytes("CMYK", (pixels.shape[1], pixels.shape[0]), (255 - pixels).tobytes())
        return np.array(inks.convert("RGB"))
    return pixels


def _segments(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield (marker, payload) up to the first scan; stop quietly at nonsense, decoding will say so."""
    at = 2
    while at + 4 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker in (_START_OF_SCAN, _END):
            return
        if marker == 0xFF:  # fill byte
            at += 1
        elif marker in _BARE:
            at += 2
        else:
            length = int.from_bytes(data[at + 2 : at + 4], "big")
            yield marker, data[at + 4 : at + 2 + length]
            at += 2 + length


def _pictures(payload: bytes) -> int:
    try:
        return tiff_value(payload.removeprefix(_MPF), _FRAMES_TAG) or 1
    except ValueError:
        return 1

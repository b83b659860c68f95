"""Image files by content: what the header says, then the pixels, strictly.

`inspect` reads no pixels, so a caller can refuse a file before memory is spent on it; `decode` refuses
what is truncated or corrupt. The format is recognised by the first bytes; the file name is not trusted.

JPEG is read by libjpeg-turbo with every warning an error, so that damage it can see never becomes pixels. Of
PNG every chunk's checksum is verified before OpenCV, the fastest reader measured, decodes. TIFF, BMP, GIF,
PPM and the palette indexes of PNG go through Pillow's own readers, called directly: `Image.open` would try
formats nobody asked for. Pillow's switches are variables that anybody may set, as many training programs do
to read files that are cut off; while we decode they are as we need them.
"""

from __future__ import annotations

import contextlib
import io
import struct
import threading
import warnings
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import cv2
import numpy as np
import simplejpeg
from numpy.typing import NDArray
from PIL import BmpImagePlugin, GifImagePlugin, ImageFile, PngImagePlugin, PpmImagePlugin, TiffImagePlugin
from PIL import Image as PilImage

from adverse.data.image_header import (
    COPY_AGAIN,
    ORIENTATION_TAG,
    Header,
    as_stored,
    damaged,
    joint_orientation,
    known_orientation,
    orientation_of,
    tiff_value,
)
from adverse.data.silent_damage import missing_scans, surplus_rows
from adverse.errors import DataError

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
    if data.startswith(_JPEG_SIGNATURE):
        return _inspect_jpeg(data, where=where)
    if data.startswith(_PNG_SIGNATURE):
        return _inspect_png(data, where=where)
    if _pillow_reads(data):
        return _inspect_by_pillow(data, where=where)
    raise DataError(
        "the file is not an image of a supported format",
        where=where,
        got=_guess(data),
        wanted=f"one of {', '.join(SUFFIXES)}, by content",
        fix=_CONVERT,
    )


def decode(data: bytes, header: Header, *, where: str) -> NDArray[Any]:
    """Read the pixels: (H,W,3) RGB uint8, or uint16 (H,W) or (H,W,3) where the header says 16 bits."""
    codec = {"JPEG": _decode_jpeg, "PNG": _decode_png}.get(header.format, _decode_by_pillow)
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
    if data[4:8] == b"ftyp" or data[:4] == b"\x1a\x45\xdf\xa3" or data[8:12] == b"AVI ":
        return "a video, which a study reads as it is (data: format: video)"
    return f"a file that begins with {data[:8]!r}"


_JPEG_SIGNATURE = b"\xff\xd8\xff"
_JPEG_NOTES = {"Gray": ("gray",), "CMYK": ("cmyk",), "YCCK": ("cmyk",)}
_APP1, _APP2, _START_OF_SCAN, _END = 0xE1, 0xE2, 0xDA, 0xD9
_BARE = (0x01, *range(0xD0, 0xD8))  # markers without a length
_MPF = b"MPF\x00"
_FRAMES_TAG = 0xB001
_WHOLE_JPEG = "a JPEG that decodes without a warning"


def _inspect_jpeg(data: bytes, *, where: str) -> Header:
    """Read size, colour space, EXIF orientation and the number of pictures of an MPO."""
    try:
        height, width, space, _ = simplejpeg.decode_jpeg_header(data, strict=True)
    except ValueError as error:
        raise damaged("JPEG", got=str(error), wanted=_WHOLE_JPEG, where=where) from error
    orientations: list[int | None] = []
    frames = 1
    for marker, payload in _jpeg_segments(data):
        if marker == _APP1 and payload.startswith(b"Exif\x00\x00"):
            orientations.append(orientation_of(payload))
        elif marker == _APP2 and payload.startswith(_MPF):
            frames = _jpeg_pictures(payload)
    orientation = joint_orientation(orientations)
    return Header("JPEG", width, height, _JPEG_NOTES.get(space, ()), frames=frames, orientation=orientation)


def _decode_jpeg(data: bytes, header: Header, *, where: str) -> NDArray[Any]:
    """Read the pixels as (H,W,3) RGB uint8."""
    missing = missing_scans(data)
    if missing is not None:
        raise damaged("JPEG", got=missing, wanted="scans that give every pixel in full", where=where)
    cmyk = "cmyk" in header.notes
    try:
        pixels: NDArray[np.uint8] = simplejpeg.decode_jpeg(data, "CMYK" if cmyk else "RGB", strict=True)
    except ValueError as error:
        raise damaged("JPEG", got=str(error), wanted=_WHOLE_JPEG, where=where) from error
    if cmyk:  # stored inverted, as Adobe does and everyone reads
        inks = PilImage.frombytes("CMYK", (pixels.shape[1], pixels.shape[0]), (255 - pixels).tobytes())
        return np.array(inks.convert("RGB"))
    return pixels


def _jpeg_segments(data: bytes) -> Iterator[tuple[int, bytes]]:
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


def _jpeg_pictures(payload: bytes) -> int:
    try:
        return tiff_value(payload.removeprefix(_MPF), _FRAMES_TAG) or 1
    except ValueError:
        return 1


_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_PNG_NOTES = {0: ("gray",), 2: (), 3: ("palette",), 4: ("gray", "rgba"), 6: ("rgba",)}  # by IHDR colour type
_GRAY = 0
_AS_MANY = "as many pixels as the header says"


def _inspect_png(data: bytes, *, where: str) -> Header:
    """Read size, depth, colour type, EXIF orientation and animation; verify all chunks up to the end."""
    chunks = _png_chunks(data, where)
    kind, first = next(chunks)
    if kind != b"IHDR" or len(first) != 13:
        raise _damaged_png(f"chunk {kind!r} of {len(first)} bytes first", "IHDR of 13 bytes", where)
    width, height, bits, colour = struct.unpack(">IIBB", first[:10])
    if colour not in _PNG_NOTES or width == 0 or height == 0:
        raise _damaged_png(
            f"{width}x{height}, colour type {colour}", "a size and a colour type of PNG", where
        )
    orientations: list[int | None] = []
    frames = 1
    for kind, payload in chunks:
        if kind == b"eXIf":
            orientations.append(orientation_of(bytes(payload)))
        elif kind == b"acTL":
            frames = int.from_bytes(payload[:4], "big")
    orientation = joint_orientation(orientations)
    return Header("PNG", width, height, _PNG_NOTES[colour], max(bits, 8), frames, orientation)


def _decode_png(data: bytes, header: Header, *, where: str) -> NDArray[Any]:
    """Read the pixels: RGB uint8 without alpha, or uint16 where the header says so, (H,W) if gray."""
    flags = cv2.IMREAD_IGNORE_ORIENTATION
    if header.bits == 16:
        flags |= cv2.IMREAD_ANYDEPTH
    flags |= cv2.IMREAD_GRAYSCALE if header.bits == 16 and header.notes == ("gray",) else cv2.IMREAD_COLOR_RGB
    try:
        pixels = cv2.imdecode(np.frombuffer(data, np.uint8), flags)
    except cv2.error as error:
        raise _damaged_png(" ".join(str(error).split()), "pixels that decode", where) from error
    if pixels is None:
        raise _damaged_png("pixel data that does not decode", _AS_MANY, where)
    _refuse_surplus(data, where)
    return pixels


def _refuse_surplus(data: bytes, where: str) -> None:
    """Raise where a PNG stores more rows than its header says; the decoder says so where they are fewer."""
    chunks = _png_chunks(data, where)
    _, header = next(chunks)
    if surplus_rows(bytes(header), (payload for kind, payload in chunks if kind == b"IDAT")):
        raise _damaged_png("more pixels", _AS_MANY, where)


def _png_chunks(data: bytes, where: str) -> Iterator[tuple[bytes, memoryview]]:
    """Yield (type, payload) with the checksum verified; the last one is IEND."""
    view = memoryview(data)
    at = len(_PNG_SIGNATURE)
    while at + 12 <= len(data):
        length = int.from_bytes(view[at : at + 4], "big")
        end = at + 8 + length
        kind = bytes(view[at + 4 : at + 8])
        if end + 4 > len(data):
            break
        if zlib.crc32(view[at + 4 : end]) != int.from_bytes(view[end : end + 4], "big"):
            raise _damaged_png(
                f"a wrong checksum in chunk {kind!r} at byte {at}", "the checksum written", where
            )
        yield kind, view[at + 8 : end]
        if kind == b"IEND":
            return
        at = end + 4
    raise _damaged_png(f"the file ends at byte {len(data)}", "an IEND chunk at the end", where)


def _damaged_png(got: str, wanted: str, where: str) -> DataError:
    return damaged("PNG", got=got, wanted=wanted, where=where)


_PILLOW_READERS: dict[bytes, tuple[str, Callable[[Any], ImageFile.ImageFile]]] = {
    b"II*\x00": ("TIFF", TiffImagePlugin.TiffImageFile),
    b"MM\x00*": ("TIFF", TiffImagePlugin.TiffImageFile),
    b"BM": ("BMP", BmpImagePlugin.BmpImageFile),
    b"GIF87a": ("GIF", GifImagePlugin.GifImageFile),
    b"GIF89a": ("GIF", GifImagePlugin.GifImageFile),
    b"P5": ("PPM", PpmImagePlugin.PpmImageFile),
    b"P6": ("PPM", PpmImagePlugin.PpmImageFile),
}
_PILLOW_NOTES: dict[str, tuple[str, ...]] = {
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
_PILLOW_FAILURES = (
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


def _pillow_reads(data: bytes) -> bool:
    """Return whether the first bytes are of a format read here."""
    return data.startswith(tuple(_PILLOW_READERS))


def _inspect_by_pillow(data: bytes, *, where: str) -> Header:
    """Read size, mode, orientation and whether there is a second frame."""
    name, image = _open_by_pillow(data, where)
    try:
        with _pillow_as_we_need():
            orientation = known_orientation(int(image.getexif().get(ORIENTATION_TAG, 1)))
            frames = int(getattr(image, "n_frames", 1))
    except _PILLOW_FAILURES as error:
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
    if image.mode not in _PILLOW_NOTES or stored_bits > bits:
        raise DataError(
            f"a {name} of this pixel type is not read",
            where=where,
            got=f"mode {image.mode}, {stored_bits} bits per channel",
            wanted="8-bit gray, palette, RGB(A) or CMYK, or 16-bit gray",
            fix="Convert the file to an 8- or 16-bit PNG.",
        )
    return Header(name, width, height, _PILLOW_NOTES[image.mode], bits, frames, orientation)


def _decode_by_pillow(data: bytes, header: Header, *, where: str) -> NDArray[Any]:
    """Read the pixels as stored: (H,W,3) RGB uint8, or (H,W) uint16."""
    name, image = _open_by_pillow(data, where)
    try:
        with _pillow_as_we_need():
            image.load()
        pixels = np.array(image if header.bits == 16 else image.convert("RGB"))
    except _PILLOW_FAILURES as error:
        raise damaged(name, got=error, wanted=f"a complete {name}", where=where) from error
    if name == "TIFF" and header.orientation is not None:  # Pillow turned it; the data set's policy decides
        pixels = as_stored(pixels, header.orientation)
    return pixels.astype(np.uint16) if header.bits == 16 else pixels


def palette_indexes(data: bytes, *, where: str) -> NDArray[np.uint8]:
    """Read a PNG with a palette as the indexes (H,W) that it stores."""
    try:
        with _pillow_as_we_need():
            image = PngImagePlugin.PngImageFile(io.BytesIO(data))
            image.load()
        indexes = np.array(image, np.uint8)
    except _PILLOW_FAILURES as error:
        raise damaged("PNG", got=error, wanted="a complete PNG", where=where) from error
    _refuse_surplus(data, where)
    return indexes


def _open_by_pillow(data: bytes, where: str) -> tuple[str, ImageFile.ImageFile]:
    name, reader = next(entry for start, entry in _PILLOW_READERS.items() if data.startswith(start))
    try:
        with _pillow_as_we_need():
            return name, reader(io.BytesIO(data))
    except _PILLOW_FAILURES as error:
        raise damaged(name, got=error, wanted=f"a complete {name}", where=where) from error


_SWITCHES: tuple[tuple[Any, str, object], ...] = (
    (ImageFile, "LOAD_TRUNCATED_IMAGES", False),
    (PilImage, "MAX_IMAGE_PIXELS", None),  # the limit is that of the data set
    (TiffImagePlugin, "READ_LIBTIFF", False),
    (GifImagePlugin, "LOADING_STRATEGY", GifImagePlugin.LoadingStrategy.RGB_AFTER_FIRST),
)
_SWITCHING = threading.RLock()


@contextlib.contextmanager
def _pillow_as_we_need() -> Iterator[None]:
    """Read a file strictly, whatever code that is not ours has told Pillow, and leave that as it was."""
    with _SWITCHING, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before = [getattr(module, name) for module, name, _ in _SWITCHES]
        for module, name, wanted in _SWITCHES:
            setattr(module, name, wanted)
        try:
            yield
        finally:
            for (module, name, _), value in zip(_SWITCHES, before, strict=True):
                setattr(module, name, value)

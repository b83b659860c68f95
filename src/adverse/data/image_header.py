"""What is known about an image before its pixels are read, and the one way to say that it is damaged.

EXIF orientation: reading the one value that matters here, and turning pixels by it.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adverse.errors import DataError

COPY_AGAIN = "Copy the file again from its source, or take it out of the data set."


@dataclass(frozen=True)
class Header:
    """Size as stored (before any EXIF rotation), bits per channel, frames, and how pixels become RGB.

    `notes` names the normalisation: gray, palette, rgba, cmyk. `orientation` is the EXIF value 1..8, or
    None where there is EXIF data that cannot be read.
    """

    format: str
    width: int
    height: int
    notes: tuple[str, ...] = ()
    bits: int = 8
    frames: int = 1
    orientation: int | None = 1


def damaged(name: str, *, got: str | BaseException, wanted: str, where: str) -> DataError:
    """Return the error for a file that is of a known format but not whole."""
    text = got if isinstance(got, str) else f"{type(got).__name__}: {got}"
    return DataError(
        f"the {name} is truncated or corrupt",
        where=where,
        got=" ".join(text.split()),
        wanted=wanted,
        fix=COPY_AGAIN,
    )


ORIENTATION_TAG = 0x0112
_WIDTHS = {1: "B", 3: "H", 4: "I", 6: "b", 8: "h", 9: "i"}  # TIFF field types of whole numbers, by their code


def orientation_of(exif: bytes) -> int | None:
    """Return the orientation in a TIFF-structured EXIF block, 1 where there is none, None if unreadable."""
    try:
        return known_orientation(tiff_value(exif.removeprefix(b"Exif\x00\x00"), ORIENTATION_TAG))
    except ValueError:
        return None


def joint_orientation(blocks: Sequence[int | None]) -> int | None:
    """Return the orientation that several EXIF blocks come to; None where one is unreadable or two differ.

    A block that does not turn the picture says nothing against one that does: readers differ in which of
    them they heed.

    >>> joint_orientation([6, 1]), joint_orientation([6, 8]), joint_orientation([])
    (6, None, 1)
    """
    turned = {value for value in blocks if value != 1}
    return 1 if not turned else turned.pop() if len(turned) == 1 else None


def known_orientation(value: int | None) -> int | None:
    """Return 1..8; nothing, and the 0 of cameras that do not know, mean 1; anything else None."""
    if not value:
        return 1
    return value if value in range(1, 9) else None


def upright(pixels: NDArray[Any], orientation: int) -> NDArray[Any]:
    """Turn pixels as stored into the picture as it was seen (EXIF 2.3, tag 0x0112).

    >>> upright(np.array([[1, 2, 3]]), 6)
    array([[1],
           [2],
           [3]])
    """
    if orientation >= 5:
        pixels = pixels.swapaxes(0, 1)
    if orientation in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    if orientation in (3, 4, 7, 8):
        pixels = pixels[::-1]
    return np.ascontiguousarray(pixels)


def as_stored(pixels: NDArray[Any], orientation: int) -> NDArray[Any]:
    """Undo `upright`."""
    return upright(pixels, {6: 8, 8: 6}.get(orientation, orientation))


def tiff_value(block: bytes, tag: int) -> int | None:
    r"""Return the whole number stored under a tag in the first directory of a TIFF block, if there is one.

    >>> tiff_value(b"II*\0" + bytes.fromhex("08000000 0100 1201 0300 01000000 06000000 00000000"), 0x112)
    6
    """
    order = {b"II": "<", b"MM": ">"}.get(block[:2])
    if order is None:
        raise ValueError("no TIFF byte order")
    try:
        (start,) = struct.unpack_from(f"{order}I", block, 4)
        (count,) = struct.unpack_from(f"{order}H", block, start)
        for at in range(start + 2, start + 2 + 12 * count, 12):
            entry_tag, kind, _ = struct.unpack_from(f"{order}HHI", block, at)
            if entry_tag == tag:
                if kind not in _WIDTHS:
                    raise ValueError("the value is no whole number")
                (value,) = struct.unpack_from(f"{order}{_WIDTHS[kind]}", block, at + 8)
                return int(value)
    except struct.error as error:
        raise ValueError("the TIFF directory is cut off") from error
    return None

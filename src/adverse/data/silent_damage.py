"""Damage of image files that decoders pass over in silence, or with a warning that nobody hears.

libjpeg takes a JPEG of several scans for whole wherever it ends: the scans that are missing only make the
picture coarser (ITU-T T.81, annex G). libpng leaves out the rows that its header does not know of.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterable

COEFFICIENTS = 64
"""Of a block of 8 x 8 pixels."""
BUFFER_BYTES = 1 << 20
_START_OF_SCAN, _END_OF_IMAGE = 0xDA, 0xD9
_START_OF_FRAME = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
_MARKER = re.compile(rb"\xff+[^\x00\x01\xd0-\xd7\xff]")
"""A marker with a length: FF 00 is a byte of pixels, D0 to D7 are between pixels."""
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # by colour type
_ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
"""Column and row of the first pixel of each pass of an interlaced PNG, and the steps from there."""


def missing_scans(data: bytes) -> str | None:
    """Say what of a JPEG's pixels no scan of it gives; None where all are there to the last bit.

    What lies behind the scan that completes the picture is not looked at.
    """
    missing: dict[int, list[int | None]] = {}
    for marker, payload in _segments(data):
        if marker in _START_OF_FRAME and len(payload) >= 6:
            components = payload[6 : 6 + 3 * payload[5] : 3]
            missing = {number: [None] * COEFFICIENTS for number in components}
        elif marker == _START_OF_SCAN and payload and len(payload) >= 4 + 2 * payload[0]:
            first, last, low = payload[1 + 2 * payload[0] :][:3]
            for number in payload[1 : 1 + 2 * payload[0] : 2]:
                bits = missing.get(number, [])
                bits[first : last + 1] = [low & 15] * len(bits[first : last + 1])
            if not any(bit != 0 for bits in missing.values() for bit in bits):
                return None
    never = sum(bit is None for bits in missing.values() for bit in bits)
    coarse = sum(bit is not None and bit > 0 for bits in missing.values() for bit in bits)
    total = COEFFICIENTS * len(missing)
    return f"scans that leave {never} of {total} coefficients out and {coarse} without their last bits"


def _segments(data: bytes) -> Iterable[tuple[int, bytes]]:
    """Yield (marker, payload) to the end of the picture, over the pixels of scans."""
    found = _MARKER.search(data, 2)
    while found is not None and found[0][-1] != _END_OF_IMAGE:
        length = int.from_bytes(data[found.end() : found.end() + 2], "big")
        yield found[0][-1], data[found.end() + 2 : found.end() + length]
        found = _MARKER.search(data, found.end() + max(length, 2))


def surplus_rows(header: bytes, pixels: Iterable[bytes | memoryview]) -> bool:
    """Return whether a PNG stores more pixels than its header (IHDR) says; `pixels` are its IDAT chunks."""
    width, height, bits, colour, _, _, interlaced = struct.unpack(">IIBBBBB", header)
    left = _stored_bytes(width, height, bits * _CHANNELS[colour], interlaced=bool(interlaced))
    stream = zlib.decompressobj()
    try:
        for chunk in pixels:
            rest: bytes | memoryview = chunk
            while rest and left >= 0:
                left -= len(stream.decompress(rest, BUFFER_BYTES))
                rest = stream.unconsumed_tail
        left -= len(stream.flush()) if left >= 0 else 0
    except zlib.error:
        return False  # the decoder says so
    return left < 0


def _stored_bytes(width: int, height: int, bits: int, *, interlaced: bool) -> int:
    """Return the bytes of all rows, each with one for its filter; `bits` are those of a pixel."""
    passes = _ADAM7 if interlaced else ((0, 0, 1, 1),)
    sizes = [(-(-(width - x) // dx), -(-(height - y) // dy)) for x, y, dx, dy in passes]
    return sum(rows * (1 + (columns * bits + 7) // 8) for columns, rows in sizes if columns > 0 and rows > 0)

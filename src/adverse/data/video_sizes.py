"""Where the pictures of a video become larger or smaller, found without decoding them all.

A keyframe says its size in a few bytes, by its codec. One whose bytes differ from all before it is decoded to
see its size. Other codecs, and sizes that change between keyframes, are noticed when a frame is read.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from adverse.data.video_file import library, new_decoder, where
from adverse.errors import DataError

Size = tuple[int, int]
_START = b"\0\0\1"
_NO_SIZE = frozenset({0xC4, 0xC8, 0xCC})
"""Markers of JPEG among those of frame headers that are none."""


class SizeWatch:
    """Tells the size of keyframes; the first is that of the video."""

    def __init__(self, codec: str, units: Callable[[bytes], list[bytes]] | None) -> None:
        self._codec, self._units = codec, units
        self._sizes: dict[bytes, Size | None] = {}

    def size(self, packet: Any) -> Size | None:
        """Return width and height of a keyframe; None where it does not say or does not decode."""
        said = _size_bytes(self._codec, bytes(packet), self._units)
        if not said:
            return None
        if said not in self._sizes:
            self._sizes[said] = _decoded_size(packet)
        return self._sizes[said]


def size_changes(path: Path, frame: int, time_s: float, before: Size, after: Size) -> DataError:
    """Return the error of a video whose pictures change their size at a frame."""
    width, height = before
    return DataError(
        f"the video changes its size at frame {frame}",
        where=where(path, frame),
        got=f"{after[0]}x{after[1]} after {width}x{height}, {time_s:.3f} s from its start",
        wanted="frames of one size: a box, a model's input and a camera's calibration belong to one",
        fix="Scale it to one size: "
        f"ffmpeg -i IN -fps_mode passthrough -vf scale={width}:{height} -c:v libx264 -crf 12 OUT.mp4",
    )


def _decoded_size(packet: Any) -> Size | None:
    try:
        codec = new_decoder(packet.stream.codec_context)
        pictures = [*codec.decode(packet), *codec.decode(None)]
    except library().FFmpegError:
        return None
    return (pictures[0].width, pictures[0].height) if pictures else None


def _size_bytes(codec: str, data: bytes, units: Callable[[bytes], list[bytes]] | None) -> bytes:
    """Return the bytes of a keyframe that hold its size; none where it has none or the codec is not known."""
    if units is not None:
        kinds = {7} if codec == "h264" else {33}
        return b"".join(unit for unit in units(data) if _kind(codec, unit) in kinds)
    if codec == "mjpeg":
        return _jpeg_size(data)
    if codec == "vp8":
        return data[6:10]
    if codec == "vp9":  # profile 0: after marker, sync and 4 bits of colour
        return bytes([*data[4:8], data[8] & 0xF0]) if len(data) > 8 else b""
    if codec in ("mpeg1video", "mpeg2video"):
        _, head, rest = data.partition(_START + b"\xb3")
        return rest[:3] if head else b""
    layers = data.split(_START)[1:] if codec == "mpeg4" else []
    return b"".join(unit for unit in layers if unit and 0x20 <= unit[0] <= 0x2F)


def _kind(codec: str, unit: bytes) -> int:
    return unit[0] & 31 if codec == "h264" else unit[0] >> 1 & 63


def _jpeg_size(data: bytes) -> bytes:
    """Return height and width as the frame header of a JPEG has them."""
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        if 0xC0 <= data[at + 1] <= 0xCF and data[at + 1] not in _NO_SIZE:
            return data[at + 5 : at + 9]
        at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return b""

"""A video file opened: by content, never by name, with nothing but its own bytes, and what it is refused for.

FFmpeg reads it, through PyAV (the `video` extra). The container is decided by the first bytes and forced, and
only plain files are read: playlists, which name other files and addresses, are no videos here.
"""

from __future__ import annotations

import importlib
import logging
import math
import struct
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from adverse.errors import DataError, one_line
from adverse.plain_files import open_plain
from adverse.plugins import library_version

SUFFIXES = frozenset({".mp4", ".m4v", ".mov", ".avi", ".mkv", ".webm"})
"""File name endings that count as videos when a folder is listed."""
WANTED = "an MP4, MOV, AVI, MKV or WebM video"
CONVERT = "Convert it: ffmpeg -i IN -map 0:v:0 -pix_fmt yuv420p -c:v libx264 -crf 12 OUT.mp4"
COPY_AGAIN = "Copy it again from where it was recorded."
_BOXES = (b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip", b"pnot")
_HDR = {16: "PQ (SMPTE 2084)", 18: "HLG (ARIB STD-B67)"}
"""Transfer characteristics of H.273 that need tone mapping."""
_AVI_HEAD_BYTES = 4096
SLOWEST_HZ, FASTEST_HZ = 0.01, 10_000.0
"""Frames per second outside of which times are nonsense: faster than any camera, slower than a time lapse."""
_COVER = 1024  # disposition of a stream that is the picture of an album
_STRICT = {"err_detect": "crccheck+explode"}
"""Damage that a decoder sees is an error, not a picture with made-up parts."""
_IN_ORDER = {"strict": "strict"}
"""H.264 frames wait until none can come before them; else the decoder guesses, and drops late ones."""

_REMEMBERING = frozenset({"mjpeg", "vp8"})
"""Codecs whose decoders keep tables through a jump, so that damage could show one picture or another."""


@lru_cache(maxsize=1)
def library() -> Any:
    """Return PyAV, or say how to get it."""
    try:
        av = importlib.import_module("av")
    except ImportError as error:
        raise DataError(
            "reading videos needs the video extra",
            got=one_line(error),
            wanted="PyAV (the package av)",
            fix="pip install 'adverse[video]'",
        ) from error
    logging.getLogger("libav").addHandler(logging.NullHandler())
    av.logging.set_skip_repeated(False)
    return av


def complaints() -> AbstractContextManager[list[tuple[int, str, str]]]:
    """Collect what FFmpeg calls an error in this thread; some decoders say it nowhere else."""
    av = library()
    level = av.logging.get_level()
    if level is None or level < av.logging.ERROR:
        av.logging.set_level(av.logging.ERROR)
    collected: AbstractContextManager[list[tuple[int, str, str]]] = av.logging.Capture(local=True)
    return collected


def versions() -> str:
    """Return the versions that can change a decoded pixel; PyAV carries its FFmpeg."""
    return f"av {library_version('av')}"


@dataclass(frozen=True, eq=False)
class OpenVideo:
    """An open file: its container and its first video stream, of PyAV's types."""

    path: Path
    container: Any
    stream: Any
    tracks: int
    """How many streams of pictures there are; the first is read."""

    def close(self) -> None:
        """Let go of the file."""
        self.container.close()


def where(path: Path, frame: int | None = None) -> str:
    """Say where something is wrong."""
    return f"video {path}" if frame is None else f"video {path}, frame {frame}"


def open_video(path: Path, *, edited: bool = True) -> OpenVideo:
    """Open a video and find its stream of pictures, or say in one line why not.

    Without `edited` an MP4 or MOV also gives the packets that its edit list leaves out.
    """
    av = library()
    demuxer = _demuxer(path)
    options = {"protocol_whitelist": "file"} | ({} if edited else {"ignore_editlist": "1"})
    try:
        container = av.open(f"file:{path.resolve()}", format=demuxer, options=options, mode="r")
    except (av.FFmpegError, OSError, ValueError) as error:
        missing = demuxer == "mov" and b"moov" not in _pieces(path)
        raise DataError(
            "the video is cut off: it has no index" if missing else "the video cannot be read",
            where=where(path),
            got="an MP4 or MOV without its moov box, which is written last" if missing else one_line(error),
            wanted=WANTED,
            fix=COPY_AGAIN if missing else f"{COPY_AGAIN} {CONVERT}",
        ) from error
    streams = [stream for stream in container.streams.video if not int(stream.disposition) & _COVER]
    if not streams:
        kinds = ", ".join(sorted({stream.type for stream in container.streams})) or "nothing"
        container.close()
        raise DataError(
            "the video has no pictures",
            where=where(path),
            got=f"streams of {kinds}" + (" and the picture of an album" if "video" in kinds else ""),
            wanted="a stream of video",
            fix="Give the file that holds the pictures.",
        )
    stream = streams[0]
    if stream.codec_context is None:
        container.close()
        raise DataError(
            "the video's codec is not known", where=where(path), wanted="a codec of FFmpeg", fix=CONVERT
        )
    stream.codec_context.options = _STRICT | (_IN_ORDER if stream.codec_context.name == "h264" else {})
    stream.thread_type = "NONE"
    stream.codec_context.thread_count = 1
    return OpenVideo(path, container, stream, len(streams))


def decoder_as_new(codec: Any) -> Any:
    """Return the decoder to use after a jump: another one where it keeps tables of what came before."""
    return new_decoder(codec) if codec.name in _REMEMBERING else codec


def new_decoder(codec: Any) -> Any:
    """Return a decoder like another, that has seen nothing."""
    new = library().CodecContext.create(codec.name, "r")
    new.options, new.thread_type, new.thread_count = codec.options, "NONE", 1
    new.extradata, new.codec_tag = codec.extradata, codec.codec_tag
    for name in ("color_range", "colorspace", "color_primaries", "color_trc"):
        setattr(new, name, getattr(codec, name))
    return new


def _demuxer(path: Path) -> str:
    """Return FFmpeg's name of the container, by the first bytes."""
    try:
        with open_plain(path) as file:
            head = file.read(16)
    except OSError as error:
        raise DataError(
            "the video cannot be read",
            where=where(path),
            got=error.strerror or str(error),
            wanted="a readable file",
            fix="Check the path and the file's permissions.",
        ) from error
    if not head:
        raise DataError("the video is empty", where=where(path), got="0 bytes", wanted=WANTED, fix=COPY_AGAIN)
    if head[4:8] in _BOXES:
        return "mov"
    if head[:4] == b"\x1a\x45\xdf\xa3":
        return "matroska"
    if head[:4] == b"RIFF" and head[8:12] == b"AVI ":
        _check_avi_rate(path)
        return "avi"
    text = all(byte in b"\t\r\n" or 32 <= byte < 127 for byte in head)
    raise DataError(
        "the file is not a video of a supported container",
        where=where(path),
        got=f"{'text' if text else 'a file'} that begins with {head[:12]!r}",
        wanted=f"{WANTED}, by content",
        fix=CONVERT,
    )


def _check_avi_rate(path: Path) -> None:
    """Raise where the header of an AVI says 0 frames per second: FFmpeg would take 25 without a word."""
    with open_plain(path) as file:
        head = file.read(_AVI_HEAD_BYTES)
    at = head.find(b"vids")
    scale, rate = (int.from_bytes(head[at + 20 + n : at + 24 + n], "little") for n in (0, 4))
    if at >= 0 and len(head) >= at + 28 and not (scale and rate):
        raise bad_times(path, f"{rate} frames in {scale} s")


def bad_times(path: Path, got: str) -> DataError:
    """Return the error that frames have no times that could be true."""
    return DataError(
        "the times of the video's frames are nonsense",
        where=where(path),
        got=got,
        wanted=f"{SLOWEST_HZ:g} to {FASTEST_HZ:g} frames per second",
        fix="Write it again at its true rate: ffmpeg -r 30 -i IN OUT.mp4",
    )


def _pieces(path: Path) -> set[bytes]:
    """Return the kinds of the top boxes of an MP4, as far as the file goes."""
    kinds: set[bytes] = set()
    size = path.stat().st_size
    with open_plain(path) as file:
        at = 0
        while at + 8 <= size and len(kinds) < 1000:
            file.seek(at)
            head = file.read(16)
            length = int.from_bytes(head[:4], "big")
            if length == 1:
                length = int.from_bytes(head[8:16], "big")
            kinds.add(head[4:8])
            if length < 8:
                break
            at += length
    return kinds


def orientation(frame: Any) -> tuple[int, bool]:
    """Return how many degrees counter-clockwise a frame is to be turned, and whether it is mirrored before.

    The header has a matrix: the picture's right is shown along its first two numbers, its bottom along the
    fourth and fifth. Front cameras mirror; FFmpeg's own angle takes that for half a turn.
    """
    matrix = frame.side_data.get(library().sidedata.sidedata.Type.DISPLAYMATRIX)
    if matrix is None:
        return 0, False
    right_x, right_y, _, down_x, down_y = struct.unpack_from("=5i", bytes(matrix))
    mirrored = right_x * down_y - right_y * down_x < 0
    sign = -1 if mirrored else 1
    return round(math.degrees(math.atan2(-sign * right_y, sign * right_x))) % 360, mirrored


def check_pictures(video: OpenVideo, frame: Any, megapixels: float) -> None:
    """Raise where the pictures of a video are of a kind that needs a convention: deep colours, HDR."""
    bits = max((component.bits for component in frame.format.components), default=8)
    transfer = _HDR.get(int(frame.color_trc))
    if transfer is not None:
        raise DataError(
            "the video is HDR, and how it is to be shown is not declared",
            where=where(video.path),
            got=f"{transfer}, {bits} bits, {frame.format.name}",
            wanted="8 bits for each colour in standard dynamic range",
            fix="Map its tones as your camera does: ffmpeg -i IN -vf "
            "zscale=t=linear,tonemap=hable,zscale=t=bt709:m=bt709,format=yuv420p OUT.mp4",
        )
    if bits > 8:
        raise DataError(
            f"the video has {bits} bits for each colour",
            where=where(video.path),
            got=frame.format.name,
            wanted="8 bits: how more become 8 decides what a model sees",
            fix=CONVERT,
        )
    size = frame.width * frame.height / 1e6
    if size > megapixels:
        raise DataError(
            "the video is larger than the pixel limit",
            where=where(video.path),
            got=f"{frame.width}x{frame.height} = {size:.1f} megapixels",
            wanted=f"at most {megapixels:g} megapixels",
            fix="Raise max_megapixels in the study's data section if it is genuine.",
        )
    degrees, _ = orientation(frame)
    if degrees % 90:
        raise DataError(
            "the video is turned by an angle that is not a quarter",
            where=where(video.path),
            got=f"{degrees} degrees",
            wanted="0, 90, 180 or 270 degrees",
            fix="Set rotation: ignore in the study's data section to take the frames as stored.",
        )

"""Which frames a video has, when each is shown, and where decoding must begin to get each exactly.

Made by reading the packets of the file once; only the first picture is decoded. Packets are in the order of
decoding, frames in the order of showing: frame k is the one with the k-th time. To get it, decoding begins at
the last keyframe before it that is also shown before it: frames that are shown before their own keyframe (an
open group of pictures) rest on the group before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adverse.data.video_file import (
    CONVERT,
    COPY_AGAIN,
    FASTEST_HZ,
    SLOWEST_HZ,
    OpenVideo,
    bad_times,
    check_pictures,
    library,
    open_video,
    where,
)
from adverse.errors import DataError, one_line

_LACKING_S = 0.5
"""A video that ends so much before its header says is cut off."""
_REORDERED_WITHOUT_TIMES = frozenset({"h264", "hevc"})
"""Codecs whose packets carry no times of showing in AVI, though they are not in that order."""

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class VideoIndex:
    """F frames in P packets. `position` is where in the file's order a frame's packet stands."""

    path: Path
    width: int
    height: int
    rotation: int
    """Degrees that the pictures are turned counter-clockwise to be shown upright."""
    times_s: NDArray[np.float64]
    """(F,) when each frame is shown, from the first."""
    stamps: Ints
    """(F,) the same in the file's own unit, as its packets and decoded frames bear it."""
    position: Ints
    """(F,)"""
    begin: Ints
    """(F,) the position to decode from; -1 where there is no keyframe to begin at."""
    horizon: Ints
    """(F,) the last frame that stands before it in the file: by then all it can rest on was decoded."""
    packet_frames: Ints
    """(P,) the frame of each packet; -1 for those that are never shown."""
    packet_stamps: Ints
    """(P,) when each packet would be shown, in the file's own unit."""
    suspect: frozenset[int]
    """Positions of packets that the container itself calls damaged."""
    counted: bool
    """Whether times cannot tell frames apart, so that they are counted from the start of the file."""

    def __len__(self) -> int:
        return len(self.times_s)

    @property
    def frames_per_s(self) -> float | None:
        """The rate by the median of the times between frames."""
        return None if len(self) < 2 else 1 / float(np.median(np.diff(self.times_s)))


@dataclass(frozen=True)
class _Packet:
    stamp: int | None
    key: bool
    shown: bool
    corrupt: bool


def index_video(path: Path, megapixels: float) -> VideoIndex:
    """Read the packets of a video and decode its first picture, or raise DataError."""
    video = open_video(path)
    try:
        first = _first_picture(video)
        check_pictures(video, first, megapixels)
        rotation = int(first.rotation) % 360
        width, height, codec = first.width, first.height, video.stream.codec_context
        reordered = bool(codec.has_b_frames) and codec.name in _REORDERED_WITHOUT_TIMES
        untimed = video.container.format.name == "avi" and reordered
    finally:
        video.close()
    video = open_video(path)
    try:
        packets = list(_packets(video))
        _check_whole(video, packets)
        unit_s = float(video.stream.time_base)
        rate = video.stream.average_rate
    finally:
        video.close()
    shown = [packet.stamp for packet in packets if packet.shown]
    counted = untimed or None in shown or len(set(shown)) != len(shown)
    if counted and not rate:
        raise bad_times(path, "no times and 0 frames per second")
    places = np.arange(len(packets))
    stamps = places if counted else np.array([packet.stamp or 0 for packet in packets])
    is_shown = np.array([packet.shown for packet in packets])
    position = places[is_shown][np.argsort(stamps[is_shown], kind="stable")]
    packet_frames = np.full(len(packets), -1, np.int64)
    packet_frames[position] = np.arange(len(position))
    unit_s = 1 / float(rate) if counted else unit_s
    times_s = (stamps[position] - stamps[position[0]]) * unit_s
    _check_times(path, times_s)
    begin = np.zeros(len(position), np.int64)
    if not counted:
        begin = _beginnings(position, stamps, np.array([packet.key for packet in packets]))
    return VideoIndex(
        path=path,
        width=width,
        height=height,
        rotation=rotation,
        times_s=times_s,
        stamps=stamps[position],
        position=position,
        begin=begin,
        horizon=np.maximum.accumulate(packet_frames)[position],
        packet_frames=packet_frames,
        packet_stamps=stamps,
        suspect=frozenset(at for at, packet in enumerate(packets) if packet.corrupt),
        counted=counted,
    )


def _beginnings(position: Ints, stamps: Ints, key: NDArray[np.bool_]) -> Ints:
    """Return for each frame the last keyframe before it, in the file and in time; -1 where there is none."""
    keys = np.flatnonzero(key)
    if not len(keys):
        return np.full(len(position), -1, np.int64)
    group = np.searchsorted(keys, position, side="right") - 1
    group = group - (stamps[keys[np.maximum(group, 0)]] > stamps[position])  # shown before their keyframe
    return np.where(group >= 0, keys[np.maximum(group, 0)], -1)


def _first_picture(video: OpenVideo) -> Any:
    """Return the first frame that decodes; what stops the decoder before it is said."""
    av, problem = library(), "no packet gives a picture"
    for packet in video.container.demux(video.stream):
        if packet.size and packet.has_sidedata("encryption_info"):
            raise _encrypted(video.path)
        try:
            frames = packet.decode()
        except av.FFmpegError as error:
            problem = one_line(error)
            continue
        if frames:
            return frames[0]
    raise DataError(
        "no picture of the video can be decoded",
        where=where(video.path),
        got=problem,
        wanted="a video that is whole and not encrypted",
        fix=f"{COPY_AGAIN} {CONVERT}",
    )


def _packets(video: OpenVideo) -> Iterator[_Packet]:
    av, codec = library(), video.stream.codec_context
    hidden_frames, h264 = codec.name == "vp8", codec.name == "h264"
    extra = bytes(codec.extradata or b"")
    length_bytes = (extra[4] & 3) + 1 if h264 and len(extra) > 4 and extra[0] == 1 else 0
    try:
        for packet in video.container.demux(video.stream):
            if not packet.size:
                continue
            hidden = packet.is_discard or (hidden_frames and not bytes(packet)[0] & 0x10)  # its show_frame
            key = packet.is_keyframe and (not h264 or _begins_afresh(bytes(packet), length_bytes))
            yield _Packet(packet.pts, key, not hidden, packet.is_corrupt)
    except av.FFmpegError as error:
        raise DataError(
            "the video ends in the middle",
            where=where(video.path),
            got=one_line(error),
            wanted="a whole file",
            fix=COPY_AGAIN,
        ) from error


def _begins_afresh(packet: bytes, length_bytes: int) -> bool:
    """Return whether an H.264 packet holds an IDR picture, which nothing after it reaches back beyond.

    Containers also call pictures keyframes at which a player may begin though later ones name earlier ones.
    `length_bytes` says how long each unit's length is; 0: they are divided by start codes.
    """
    if not length_bytes:
        return any(unit[:1] and unit[0] & 31 == 5 for unit in packet.split(b"\0\0\1")[1:])
    at = 0
    while at + length_bytes < len(packet):
        if packet[at + length_bytes] & 31 == 5:
            return True
        at += length_bytes + int.from_bytes(packet[at : at + length_bytes], "big")
    return False


def _check_whole(video: OpenVideo, packets: list[_Packet]) -> None:
    """Raise where the header says of more frames, or of a longer time, than there is."""
    stream = video.stream
    wanted, got = stream.frames, len(packets)
    if not packets or got < wanted:
        raise DataError(
            "the video is cut off",
            where=where(video.path),
            got=f"{got} frames",
            wanted=f"{wanted} frames, as its header says" if wanted else "at least one frame",
            fix=f"{COPY_AGAIN} Or keep what is there: ffmpeg -i IN -c copy OUT.mp4",
        )
    stamps = [packet.stamp for packet in packets if packet.stamp is not None]
    said_s = _said_duration_s(video)
    if stamps and said_s is not None:
        unit_s = float(stream.time_base)
        steps = np.diff(np.unique(stamps)) * unit_s
        last_s = (max(stamps) - min(stamps)) * unit_s + (float(np.median(steps)) if len(steps) else 0.0)
        if said_s - last_s > _LACKING_S + (float(steps.max()) if len(steps) else 0.0):
            raise DataError(
                "the video is cut off",
                where=where(video.path),
                got=f"{last_s:.2f} s",
                wanted=f"{said_s:.2f} s, as its header says",
                fix=f"{COPY_AGAIN} Or keep what is there: ffmpeg -i IN -c copy OUT.mkv",
            )


def _said_duration_s(video: OpenVideo) -> float | None:
    """Return how long the header says that the pictures last; the file's own length where it has no sound."""
    stream, container = video.stream, video.container
    if stream.duration is not None:
        return float(stream.duration * stream.time_base)
    if len(container.streams) == 1 and container.duration is not None:
        return float(container.duration) / 1e6
    words = str(stream.metadata.get("DURATION", "")).split(":")
    try:
        hours, minutes, seconds = map(float, words)
    except ValueError:
        return None
    return hours * 3600 + minutes * 60 + seconds


def _check_times(path: Path, times_s: NDArray[np.float64]) -> None:
    if len(times_s) < 2:
        return
    step_s = float(np.median(np.diff(times_s)))
    if step_s <= 0 or not SLOWEST_HZ <= 1 / step_s <= FASTEST_HZ:
        raise bad_times(path, f"{1 / step_s:g} frames per second" if step_s > 0 else "frames at one time")


def _encrypted(path: Path) -> DataError:
    return DataError(
        "the video is encrypted",
        where=where(path),
        got="packets under a key that is not in the file",
        wanted="a video without copy protection",
        fix="Decrypt it with its key first.",
    )

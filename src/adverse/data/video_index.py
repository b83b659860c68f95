"""Which frames a video has, when each is shown, and in which groups of packets they are decoded.

Made by reading the packets of the file once; only the first picture is decoded. Packets are in the order of
decoding, frames in the order of showing: frame k is the one with the k-th time. A group begins at a keyframe
and holds all frames that rest on nothing before it; frames that are shown before their own keyframe (an open
group of pictures) belong to the group before, which then reaches beyond that keyframe. Damage costs whole
groups, so that which frames are lost is a property of the file and of nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adverse.data.avi import Chunks, count_chunks
from adverse.data.matroska import Structure, read_structure
from adverse.data.mp4 import edits_are_trusted, frames_of_tracks
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
    orientation,
    where,
)
from adverse.data.video_sizes import Size, SizeWatch, size_changes
from adverse.errors import DataError, one_line

_LACKING_S = 0.5
"""A video that ends so much before its header says is cut off."""
_NOT_SAID = 1 << 30
"""What FFmpeg writes for the number of frames of an AVI that it cannot go back in."""
_LEADING = 5
"""Frames that are decoded before one that is shown before them, at most, by what encoders do."""
_REORDERED = 16
"""Frames that a codec moves by at most."""
_CODED_ORDER = frozenset({"h264", "hevc"})
"""Codecs whose packets are in the order of decoding and carry no times of showing in AVI."""
_BEGINNINGS = {"mjpeg": b"\xff\xd8", "mpeg4": b"\0\0\1", "mpeg2video": b"\0\0\1", "mpeg1video": b"\0\0\1"}
"""How packets begin whose decoders look for the next picture elsewhere; in MP4 and MOV, where a table says
where they lie."""

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class VideoIndex:
    """F frames in P packets and G groups. A position is a packet's place in the file's order."""

    path: Path
    width: int
    height: int
    rotation: int
    """Degrees that the pictures are turned counter-clockwise to be shown upright."""
    mirrored: bool
    """Whether left and right change places before they are turned."""
    tracks: int
    """How many streams of pictures the file has; this is the first."""
    times_s: NDArray[np.float64]
    """(F,) when each frame is shown, from the first."""
    group: Ints
    """(F,) the group of each frame; -1 where there is no keyframe to begin at."""
    begin: Ints
    """(G,) the position of each group's keyframe."""
    end: Ints
    """(G,) the position after the last packet that a frame of the group rests on."""
    packet_frames: Ints
    """(P,) the frame of each packet; -1 for those that are never shown."""
    packet_stamps: Ints
    """(P,) when each packet would be shown, in the file's own unit; its position where times are counted."""
    packet_places: list[tuple[int, int]]
    """(P,) where in the file each packet lies, and its size."""
    damage: dict[int, str]
    """Groups that are damaged before anything is decoded, and why."""
    counted: bool
    """Whether packets have no times. Frames are then counted, group by group in the decoder's order."""

    def __len__(self) -> int:
        return len(self.times_s)

    @property
    def frames_per_s(self) -> float | None:
        """The rate by the median of the times between frames."""
        return None if len(self) < 2 else 1 / float(np.median(np.diff(self.times_s)))


@dataclass(frozen=True)
class _Packet:
    stamp: int | None
    decoded: int | None
    """When it is decoded: in AVI its number, with empty packets, which repeat a picture."""
    place: tuple[int, int]
    key: bool
    shown: bool
    trimmed: bool
    size: Size | None
    """Width and height, of keyframes that say so."""
    problem: str | None


def index_video(path: Path, megapixels: float) -> VideoIndex:
    """Read the packets of a video and decode its first picture, or raise DataError."""
    video = open_video(path)
    try:
        first = _first_picture(video)
        check_pictures(video, first, megapixels)
        rotation, mirrored = orientation(first)
        width, height, codec = first.width, first.height, video.stream.codec_context
        reordered, named = bool(codec.has_b_frames), codec.name in _CODED_ORDER
        untimed = video.container.format.name == "avi" and reordered and named
        structure = _structure(video)
    finally:
        video.close()
    video = open_video(path)
    try:
        packets = list(_packets(video, structure, closed=untimed))
        _check_whole(video, packets, structure)
        unit_s = float(video.stream.time_base)
        rate = video.stream.average_rate
    finally:
        video.close()
    is_shown = np.array([packet.shown for packet in packets])
    _check_trimmed(video, packets, is_shown)
    doubtful = _doubtful_times(packets)
    counted = untimed or 2 * len(doubtful) > int(is_shown.sum())
    if counted and not rate:
        raise bad_times(path, "no times and 0 frames per second")
    places = np.arange(len(packets))
    stamps = places if counted else _known_times(packets)
    position = places[is_shown][np.argsort(stamps[is_shown], kind="stable")]
    packet_frames = np.full(len(packets), -1, np.int64)
    packet_frames[position] = np.arange(len(position))
    shown_s = _counted_times(packets, is_shown, unit_s, rate) if counted else stamps[position] * unit_s
    times_s = shown_s - shown_s[0]
    _check_times(path, times_s)
    lone = _check_sizes(path, packets, (width, height), packet_frames, times_s)
    key = np.array([packet.key for packet in packets])
    if counted and reordered and not named:
        key[np.flatnonzero(key)[1:]] = False  # frames may rest on the group before, and nothing says which
    begin, group = _groups(position, stamps, key)
    reach = np.zeros(len(begin), np.int64)
    np.maximum.at(reach, group[group >= 0], position[group >= 0])
    damage = _out_of_order(group)
    problems = {at: packet.problem for at, packet in enumerate(packets) if packet.problem is not None}
    problems |= dict.fromkeys(lone, "its size is not that of the frames around it")
    problems |= {} if counted else dict.fromkeys(doubtful, "its time is lacking, or that of another frame")
    for at, problem in sorted(problems.items()):
        for touched in np.flatnonzero((begin <= at) & (at <= reach)):
            damage.setdefault(int(touched), problem)
    return VideoIndex(
        path=path,
        width=width,
        height=height,
        rotation=rotation,
        mirrored=mirrored,
        tracks=video.tracks,
        times_s=times_s,
        group=group,
        begin=begin,
        end=reach + 1,
        packet_frames=packet_frames,
        packet_stamps=stamps,
        packet_places=[packet.place for packet in packets],
        damage=damage,
        counted=counted,
    )


def _doubtful_times(packets: list[_Packet]) -> list[int]:
    """Return the positions of shown packets without a time, or with one that another bears, too."""
    bearers = Counter(packet.stamp for packet in packets if packet.shown)
    return [
        at
        for at, packet in enumerate(packets)
        if packet.shown and (packet.stamp is None or bearers[packet.stamp] > 1)
    ]


def _check_sizes(
    path: Path, packets: list[_Packet], size: Size, frames: Ints, times_s: NDArray[np.float64]
) -> list[int]:
    """Raise where the size changes; return keyframes of another size before one of the same: damage."""
    sized = [(at, packet.size) for at, packet in enumerate(packets) if packet.size is not None]
    lone = [at for (at, mine), (_, after) in pairwise(sized) if mine != size and after == size]
    for at, mine in sized:
        frame = int(frames[at])
        if mine != size and at not in lone and frame >= 0:
            raise size_changes(path, frame, float(times_s[frame]), size, mine)
    return lone


def _counted_times(
    packets: list[_Packet], is_shown: NDArray[np.bool_], unit_s: float, rate: Any
) -> NDArray[np.float64]:
    """Return when frames without times are shown: as far apart as their packets, else at the rate."""
    decoded = [packet.decoded for packet, shown in zip(packets, is_shown, strict=True) if shown]
    known = np.array([at for at in decoded if at is not None], np.int64)
    if len(known) == len(decoded) and (np.diff(known) > 0).all():
        return np.asarray(known * unit_s, np.float64)
    return np.arange(len(decoded)) / float(rate)


def _known_times(packets: list[_Packet]) -> Ints:
    """Return the time of each packet; one without has that of the packet before, and is not trusted."""
    stamps = [packet.stamp for packet in packets]
    last = next((stamp for stamp in stamps if stamp is not None), 0)
    for at, stamp in enumerate(stamps):
        stamps[at] = last = last if stamp is None else stamp
    return np.array(stamps, np.int64)


def _groups(position: Ints, stamps: Ints, key: NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """Return where groups begin, and the last before each frame, in the file and in time."""
    begin = np.flatnonzero(key)
    if not len(begin):
        return begin, np.full(len(position), -1, np.int64)
    group = np.searchsorted(begin, position, side="right") - 1
    leading = (group >= 0) & (stamps[begin[np.maximum(group, 0)]] > stamps[position])
    return begin, group - leading


def _out_of_order(group: Ints) -> dict[int, str]:
    """Return the groups whose frames are shown among those of others: one of their times is wrong.

    A wrong time moves a frame, and every frame that it passes gets the number of its neighbour.
    """
    highest, lowest = np.maximum.accumulate(group), np.minimum.accumulate(group[::-1])[::-1]
    touched: set[int] = set()
    for first, last in {*zip(lowest.tolist(), highest.tolist(), strict=True)}:
        touched.update(range(max(first, 0), last + 1) if first != last else ())
    return dict.fromkeys(sorted(touched), "the times of its frames are out of order")


def _first_picture(video: OpenVideo) -> Any:
    """Return the first frame that decodes; what stops the decoder before it is said."""
    av, problem = library(), "no packet gives a picture"
    packets = video.container.demux(video.stream)
    while True:
        try:
            packet = next(packets, None)
        except av.FFmpegError as error:
            problem = one_line(error)
            break
        if packet is None:
            break
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


def _packets(video: OpenVideo, structure: Structure | Chunks | None, *, closed: bool) -> Iterator[_Packet]:
    """Go through the packets; those in parts of the file whose own checksum fails are damaged.

    With `closed` groups begin only where no frame is shown before its keyframe and rests on the group before.
    """
    av, codec = library(), video.stream.codec_context
    hidden_frames, extra = codec.name == "vp8", bytes(codec.extradata or b"")
    beginning = _BEGINNINGS.get(codec.name, b"") if "mov" in video.container.format.name else b""
    units = _UnitsOf(codec.name, _length_bytes(codec.name, extra)) if codec.name in _CODED_ORDER else None
    sizes = SizeWatch(codec.name, None if units is None else units.split)
    failed_at = np.array(structure.failed if isinstance(structure, Structure) else [], np.int64).ravel()
    try:
        for packet in video.container.demux(video.stream):
            if not packet.size:
                continue
            place = (-1 if packet.pos is None else packet.pos), packet.size
            hidden = packet.is_discard or (hidden_frames and not bytes(packet)[0] & 0x10)  # its show_frame
            key, problem = packet.is_keyframe, None
            if units is not None:
                kinds = units.kinds(bytes(packet))
                key = key and units.begins_afresh(kinds or [], closed=closed)
                problem = "the parts of its packet do not fill it" if kinds is None else None
            if beginning and not bytes(packet).startswith(beginning):
                problem = "its packet does not begin as one does"
            if packet.is_corrupt:
                problem = "the container calls its packet damaged"
            elif np.searchsorted(failed_at, place[0], side="right") % 2:
                problem = "the checksum of its cluster fails"
            size = sizes.size(packet) if packet.is_keyframe else None
            yield _Packet(packet.pts, packet.dts, place, key, not hidden, packet.is_discard, size, problem)
    except av.FFmpegError as error:
        raise DataError(
            "the video ends in the middle",
            where=where(video.path),
            got=one_line(error),
            wanted="a whole file",
            fix=COPY_AGAIN,
        ) from error


def _length_bytes(codec: str, extra: bytes) -> int:
    """Return how long the length of each unit of a packet is; 0: they are divided by start codes."""
    at = 4 if codec == "h264" else 21
    return (extra[at] & 3) + 1 if len(extra) > at and extra[0] == 1 else 0


@dataclass(frozen=True)
class _UnitsOf:
    """The units that a packet of H.264 or HEVC is made of (ITU-T H.264 and H.265, 7.3.1 and 7.4)."""

    codec: str
    length_bytes: int

    def kinds(self, packet: bytes) -> list[int] | None:
        """Return the kind of each unit; None where they do not fill the packet or are none."""
        heads = [unit[0] for unit in self.split(packet)]
        if not heads or any(head & 0x80 for head in heads):
            return None
        return [head & 31 if self.codec == "h264" else head >> 1 & 63 for head in heads]

    def begins_afresh(self, kinds: list[int], *, closed: bool) -> bool:
        """Return whether nothing that is shown after a picture reaches back beyond it.

        Containers also call H.264 pictures keyframes at which a player may begin though later ones name
        earlier ones: only an IDR picture counts. Of HEVC any random access picture does; `closed`: only IDR.
        """
        if self.codec == "h264":
            return 5 in kinds
        return any(kind in {19, 20} if closed else 16 <= kind <= 21 for kind in kinds)

    def split(self, packet: bytes) -> list[bytes]:
        """Return the units of a packet; none where they do not fill it."""
        if not self.length_bytes:
            return [unit for unit in packet.split(b"\0\0\1")[1:] if unit]
        units, at = [], 0
        while at + self.length_bytes < len(packet):
            begin = at + self.length_bytes
            at = begin + int.from_bytes(packet[at:begin], "big")
            units.append(packet[begin : max(at, begin + 1)])
        return units if at == len(packet) else []


def _structure(video: OpenVideo) -> Structure | Chunks | None:
    """Check the structure of containers in which FFmpeg passes over damage; return what it lists."""
    name = video.container.format.name
    if name == "avi":
        return count_chunks(video.path)
    return read_structure(video.path) if "matroska" in name else None


def _listed(video: OpenVideo, structure: Structure | Chunks | None) -> int:
    """Return how many packets the container lists, shown or not; 0 where it does not say."""
    stream = video.stream
    if isinstance(structure, Structure):
        return int([*structure.blocks.values()][stream.index])
    if isinstance(structure, Chunks):  # its header counts empty chunks, which give no packet
        said = stream.frames if stream.frames < _NOT_SAID else 0
        return max(structure.filled[stream.index], int(said) - structure.empty[stream.index])
    return frames_of_tracks(video.path).get(stream.id, 0)


def _check_whole(video: OpenVideo, packets: list[_Packet], structure: Structure | Chunks | None) -> None:
    """Raise where the header says of more frames, or of a longer time, than there is."""
    stream = video.stream
    wanted, got = _listed(video, structure), len(packets)
    if packets and got < wanted and "mov" in video.container.format.name and edits_are_trusted(video.path):
        got = _without_edits(video.path)  # what lies before or after the edits does not come at all
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


def _without_edits(path: Path) -> int:
    """Return how many packets there are when edits leave nothing out; 0 where they cannot be read."""
    video = open_video(path, edited=False)
    try:
        return sum(packet.size > 0 for packet in video.container.demux(video.stream))
    except library().FFmpegError:
        return 0
    finally:
        video.close()


def _check_trimmed(video: OpenVideo, packets: list[_Packet], is_shown: NDArray[np.bool_]) -> None:
    """Raise where a frame in the middle is not to be shown: headers trim the start and the end, no more."""
    path, mp4 = video.path, "mov" in video.container.format.name
    shown = np.flatnonzero(is_shown)
    if not len(shown):
        raise bad_times(path, "no frame that is shown")
    cut = [at for at, packet in enumerate(packets) if packet.trimmed]
    inner = any(shown[0] + _LEADING < at < shown[-1] - _REORDERED for at in cut)
    if inner or (mp4 and cut and cut[-1] > shown[0] + _LEADING and not edits_are_trusted(path)):
        raise DataError(
            "the times of the video are damaged, so its frames cannot be numbered",
            where=where(path),
            got=f"frames {'in its middle' if inner else 'at its end'} that are not to be shown",
            wanted="frames left out at the start and the end alone",
            fix=f"{COPY_AGAIN} {CONVERT}",
        )


def _said_duration_s(video: OpenVideo) -> float | None:
    """Return how long the header says that the pictures last; the file's own length where it has no sound."""
    stream, container = video.stream, video.container
    if container.format.name == "avi" and stream.frames >= _NOT_SAID:
        return None
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

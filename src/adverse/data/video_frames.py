"""The frames of a video as sources: frame k is the same pixels whatever was read before it.

Frames are decoded in groups, each from its keyframe by a decoder that knows nothing of what came before, and
every packet bears its position, so that a picture says which packet it was coded in. A group is decoded to
its end before a frame of it is shown: if anything in it is damaged, none of its frames is, and each says why.
A small group is kept meanwhile; a long one is decoded a second time, so memory stays flat. Nothing is written
to disk.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

import numpy as np

from adverse.content import Stamp, stamp
from adverse.data.images import Decoded, Size
from adverse.data.video_file import (
    COPY_AGAIN,
    OpenVideo,
    complaints,
    decoder_as_new,
    library,
    open_video,
    versions,
    where,
)
from adverse.data.video_index import VideoIndex, index_video
from adverse.data.video_sizes import size_changes
from adverse.errors import DataError, one_line
from adverse.types import Image

Rotation = Literal["apply", "ignore"]
KEPT = 24
"""Pictures of a long group kept after they were decoded, for who goes back a little."""
KEPT_BYTES = 128_000_000
"""Groups up to this size are kept whole while they are read: 41 pictures of 1080p. Nobody keeps more."""
OPEN = 4
"""Videos kept open in a process."""
KEEPING = 2
"""The last of them to be read, which keep pictures."""
MISSING = "the decoder gives no picture for it"


@dataclass(frozen=True)
class VideoFrame:
    """One frame of a video; call it to get (H,W,3) RGB uint8 or DataError."""

    path: Path
    number: int
    rotation: Rotation = "apply"
    max_megapixels: float = 100.0

    @property
    def recipe(self) -> str:
        """How the file becomes this picture."""
        return f"video frame {self.number} rotation {self.rotation} {self.max_megapixels} {versions()}"

    def __call__(self) -> Image:
        """Decode it."""
        return self.read_with_notes().image

    def measure(self) -> Size:
        """Return the width and height that decoding gives."""
        index = reader_of(self.path, self.max_megapixels).index
        turned = self.rotation == "apply" and index.rotation % 180
        return (index.height, index.width) if turned else (index.width, index.height)

    def read_with_notes(self) -> Decoded:
        """Decode it, and say how it was turned."""
        reader = reader_of(self.path, self.max_megapixels)
        image, degrees, mirrored = reader.picture(self.number), reader.index.rotation, reader.index.mirrored
        if self.rotation == "ignore" or not (degrees or mirrored):
            return Decoded(image, ())
        turned = np.rot90(image[:, ::-1] if mirrored else image, k=degrees // 90)
        notes = ("mirrored",) * mirrored + (f"turned by {degrees} degrees",) * bool(degrees)
        return Decoded(np.ascontiguousarray(turned), notes)


class _DamagedError(Exception):
    """A group does not decode as it should."""


class _AstrayError(Exception):
    """A jump into the file led to other packets than reading from its start."""


class VideoReader:
    """An open video that gives any frame; may be used by several threads, one at a time."""

    def __init__(self, index: VideoIndex) -> None:
        self.index = index
        self._lock = threading.Lock()
        self._video: OpenVideo | None = None
        self._verdicts: dict[int, str | None] = dict(index.damage)
        self._recent: OrderedDict[int, Any] = OrderedDict()
        self._frames: Iterator[tuple[int, Any]] = iter(())  # of one group, in the order of showing
        self._group = self._last = -1  # of which group, and the last frame that it gave
        self._first = {int(group): at for at, group in reversed([*enumerate(index.group)])}
        self._positions = {place: at for at, place in enumerate(index.packet_places)}
        self._jumps = len(self._positions) == len(index.packet_places)  # whether places tell packets apart

    def picture(self, number: int) -> Image:
        """Return a frame as it is stored, not turned."""
        with self._lock:
            if not 0 <= number < len(self.index):
                raise self._refused(number, f"the video has {len(self.index)} frames")
            group = int(self.index.group[number])
            if group < 0:
                raise self._refused(number, "there is no keyframe before it to begin at")
            if group not in self._verdicts:
                self._verdicts[group] = self._examine(group)
            problem = self._verdicts[group]
            if problem is not None:
                raise self._refused(number, problem)
            frame = self._frame(group, number)
            if (frame.width, frame.height) != (self.index.width, self.index.height):
                before, time_s = (self.index.width, self.index.height), float(self.index.times_s[number])
                raise size_changes(self.index.path, number, time_s, before, (frame.width, frame.height))
            stored: Image = frame.to_ndarray(format="rgb24")
            return stored

    def forget(self) -> None:
        """Let go of the pictures that are kept, and of the decoder's own, unless somebody is reading."""
        if self._lock.acquire(blocking=False):
            self._recent.clear()
            self.close()
            self._lock.release()

    def close(self) -> None:
        """Let go of the file."""
        if self._video is not None:
            self._video.close()
        self._video, self._frames, self._group = None, iter(()), -1

    def _refused(self, number: int, got: str) -> DataError:
        return DataError(
            "the video is damaged here",
            where=where(self.index.path, number),
            got=got,
            wanted="a frame that decodes without an error",
            fix=f"{COPY_AGAIN} Or cut the damaged part out.",
        )

    def _examine(self, group: int) -> str | None:
        """Decode a group to its end; return what is damaged. Its frames are kept while they are few."""
        self._recent.clear()
        self._group, size = -1, 0
        try:
            for number, frame in self._decoded(group):
                size += _bytes_of(frame)
                if size <= KEPT_BYTES:
                    self._recent[number] = frame
                else:
                    self._recent.clear()
        except _DamagedError as error:
            self._recent.clear()
            self.close()  # a decoder that met damage is not as new, even after a jump
            return str(error)
        return None

    def _frame(self, group: int, number: int) -> Any:
        """Return a frame of a group that is whole."""
        if number in self._recent:
            return self._recent[number]
        if self._group != group or self._last >= number:
            self._frames, self._group, self._last = self._decoded(group), group, -1
            self._recent.clear()
        try:
            for at, frame in self._frames:
                self._last = at
                self._recent[at] = frame
                while len(self._recent) > max(1, min(KEPT, KEPT_BYTES // _bytes_of(frame))):
                    self._recent.popitem(last=False)
                if at == number:
                    return frame
        except _DamagedError as error:
            raise self._refused(number, f"it decodes in one way and then in another: {error}") from error
        raise self._refused(number, MISSING)

    def _decoded(self, group: int) -> Iterator[tuple[int, Any]]:
        """Decode a group from its keyframe; give number and picture of its frames, in the order of showing.

        Raise _DamagedError at the first sign of damage: an error, a complaint, a picture that is marked as
        damaged, lacks, or comes out of order.
        """
        given = 0
        for jump in (True, False) if self._jumps else (False,):
            try:
                for number, frame in islice(self._decoded_once(group, jump=jump), given, None):
                    given += 1
                    yield number, frame
            except _AstrayError:
                continue
            return
        raise _DamagedError("the file is read in one way and then in another")

    def _decoded_once(self, group: int, *, jump: bool) -> Iterator[tuple[int, Any]]:
        index, first = self.index, self._first[group]
        wanted = int((index.group == group).sum())
        before, count = -1, 0
        for frame in self._pictures(group, jump=jump):
            at = -1 if frame.pts is None else int(frame.pts)
            number = int(index.packet_frames[at]) if 0 <= at < len(index.packet_frames) else -1
            if number < 0:
                raise _DamagedError("a picture comes from no packet that is shown")
            if at == index.begin[group] and not frame.key_frame:
                raise _DamagedError("its keyframe is none")
            if index.counted:
                number = first + count if index.group[number] == group else -1
            elif number <= before:
                raise _DamagedError("its frames are not shown in the order of their times")
            else:
                before = number
            if number < 0 or index.group[number] != group:
                continue  # one that leads into this group or stands at the head of the next
            count += 1
            yield number, frame
        if count != wanted:
            raise _DamagedError(f"{wanted - count} of its {wanted} frames do not come out of the decoder")

    def _pictures(self, group: int, *, jump: bool) -> Iterator[Any]:
        """Feed the packets of a group to a decoder without a past; each bears its position as its time."""
        begin, end = int(self.index.begin[group]), int(self.index.end[group])
        packets = self._packets_from(begin, jump=jump)
        stamps, codec = self.index.packet_stamps, None
        for at in range(begin, end):
            packet = next(packets)
            packet.pts = packet.dts = at
            codec = codec or decoder_as_new(packet.stream.codec_context)
            leads = stamps[at] < stamps[begin]  # it rests on the group before, which this decoder never saw
            yield from _pictures_of(codec, packet, what=at - begin, forgiven=bool(leads))
        if self._video is not None:
            yield from _pictures_of(codec, None, what=end - begin, forgiven=False)

    def _packets_from(self, begin: int, *, jump: bool) -> Iterator[Any]:
        """Give the packets from a position on, to a decoder that is as new."""
        at, packets = self._landed(begin) if jump else self._from_the_start()
        while True:
            try:
                packet = next(packets, None)
            except library().FFmpegError as error:
                raise _AstrayError from error
            if packet is None:
                raise _AstrayError
            if not packet.size:
                continue
            if at >= len(self.index.packet_places) or self.index.packet_places[at] != _place(packet):
                raise _AstrayError
            if at >= begin:
                yield packet
            at += 1

    def _from_the_start(self) -> tuple[int, Iterator[Any]]:
        if self._video is not None:
            self._video.close()
        self._video = open_video(self.index.path)
        return 0, self._video.container.demux(self._video.stream)

    def _landed(self, begin: int) -> tuple[int, Iterator[Any]]:
        """Jump to a keyframe or before it, as far back as it takes; return where that is."""
        if self._video is None:
            self._video = open_video(self.index.path)
        video, keys = self._video, self.index.begin[self.index.begin <= begin][::-1]
        back = 0
        while back < len(keys) and keys[back] > 0:
            target = int(self.index.packet_stamps[keys[back]])
            try:
                video.container.seek(target, stream=video.stream, backward=True, any_frame=False)
                packets = video.container.demux(video.stream)
                first = next((packet for packet in packets if packet.size), None)
            except library().FFmpegError:
                break
            at = None if first is None else self._positions.get(_place(first))
            if at is not None and at <= begin:
                return at, chain([first], packets)
            back = 2 * back + 1
        return self._from_the_start()


def _pictures_of(codec: Any, packet: Any, *, what: int, forgiven: bool) -> list[Any]:
    """Return what the decoder gives for a packet (None: at the end); raise _DamagedError at any fault."""
    named = f"packet {what} after its keyframe" if what else "its keyframe"
    try:
        with complaints() as said:
            pictures: list[Any] = codec.decode(packet)
    except library().FFmpegError as error:
        if forgiven:
            return []
        said_so = getattr(error, "strerror", None) or one_line(error)
        raise _DamagedError(f"{named} does not decode: {said_so}") from error
    if forgiven:
        return [picture for picture in pictures if not picture.is_corrupt]
    if said:
        complaint = " ".join(said[0][2].split())
        raise _DamagedError(f"{named} does not decode in full: {complaint}")
    if any(picture.is_corrupt for picture in pictures):
        raise _DamagedError(f"{named} does not decode in full")
    return pictures


def _bytes_of(frame: Any) -> int:
    return sum(plane.buffer_size for plane in frame.planes)


def _place(packet: Any) -> tuple[int, int]:
    return (-1 if packet.pos is None else packet.pos), packet.size


_READERS: OrderedDict[tuple[Path, float], tuple[Stamp, VideoReader]] = OrderedDict()
_OPENING = threading.Lock()
_OF_THE_PARENT: list[object] = []
"""Readers that a fork brought along. Closing one would wait for threads of the decoder that stayed behind."""


def _forget() -> None:
    """Open everything anew in a process that was forked: a file's place is shared with the parent's."""
    global _OPENING  # noqa: PLW0603 - a lock that somebody held is held for ever
    _OPENING = threading.Lock()
    _OF_THE_PARENT.extend(_READERS.values())
    _READERS.clear()


os.register_at_fork(after_in_child=_forget)


def reader_of(path: Path, megapixels: float) -> VideoReader:
    """Return the reader of a file, opened and indexed once for as long as nobody writes to it."""
    with _OPENING:
        now, key = stamp(path), (path, megapixels)
        known = _READERS.pop(key, None)
        if known is None or known[0] != now:
            if known is not None:
                known[1].close()
            known = now, VideoReader(index_video(path, megapixels))
        _READERS[key] = known
        while len(_READERS) > OPEN:
            _, (_, oldest) = _READERS.popitem(last=False)
            with oldest._lock:  # noqa: SLF001 - its own module
                oldest.close()
        for _, earlier in [*_READERS.values()][:-KEEPING]:
            earlier.forget()
        return known[1]

"""The frames of a video as sources: frame k is the same pixels whatever was read before it.

One decoder for each file stays open in each process and goes forward; a frame behind it, or beyond the next
keyframe, is reached from the keyframe that it rests on, found again by its time. Frames are decoded, never
written to disk. Damage costs its frame and those that rest on it, up to the next keyframe; none of them is
shown, and each says why. Nothing is kept but the last few pictures, so memory stays flat.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from adverse.content import Stamp, stamp
from adverse.data.images import Decoded, Size
from adverse.data.video_file import COPY_AGAIN, OpenVideo, library, open_video, versions, where
from adverse.data.video_index import VideoIndex, index_video
from adverse.errors import DataError, one_line
from adverse.types import Image

Rotation = Literal["apply", "ignore"]
KEPT = 24
"""Pictures kept after they were decoded: more than any codec reorders."""
OPEN = 4
"""Videos kept open in a process."""
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
        image, degrees = reader_of(self.path, self.max_megapixels).picture(self.number)
        if self.rotation == "ignore" or not degrees:
            return Decoded(image, ())
        turned = np.ascontiguousarray(np.rot90(image, k=degrees // 90))
        return Decoded(turned, (f"turned by {degrees} degrees",))


class VideoReader:
    """An open video that gives any frame; may be used by several threads, one at a time."""

    def __init__(self, index: VideoIndex) -> None:
        self.index = index
        self._lock = threading.Lock()
        self._video: OpenVideo | None = None
        self._packets: Iterator[Any] = iter(())
        self._fed_from = self._next = -1
        self._shown = -1  # the last frame that the decoder has given, or has passed over
        self._recent: OrderedDict[int, Any] = OrderedDict()
        self._places = {int(time): at for at, time in enumerate(index.packet_stamps)}
        self._damage: dict[int, str] = {}  # by position; found out in any order, always the same

    def picture(self, number: int) -> tuple[Image, int]:
        """Return a frame as stored, and how many degrees counter-clockwise it is to be turned."""
        with self._lock:
            if not 0 <= number < len(self.index):
                raise self._refused(number, f"the video has {len(self.index)} frames")
            if self.index.begin[number] < 0:
                raise self._refused(number, "there is no keyframe before it to begin at")
            if number not in self._recent or self._shown < self.index.horizon[number]:
                self._decode_to(number)
            self._check(number)
            if number not in self._recent:
                raise self._refused(number, MISSING)
            frame = self._recent[number]
            if (frame.width, frame.height) != (self.index.width, self.index.height):
                got = f"{frame.width}x{frame.height} after {self.index.width}x{self.index.height}"
                raise self._refused(number, f"the video changes its size: {got}")
            return frame.to_ndarray(format="rgb24"), self.index.rotation

    def close(self) -> None:
        """Let go of the file."""
        if self._video is not None:
            self._video.close()
        self._video, self._packets, self._fed_from = None, iter(()), -1

    def _check(self, number: int) -> None:
        """Raise where a frame, or one that it rests on, is damaged."""
        at = self._damage_under(number)
        if at is not None:
            frame = int(self.index.packet_frames[at])
            this = frame == number or frame < 0
            got = self._damage[at] if this else f"it rests on frame {frame}: {self._damage[at]}"
            raise self._refused(number, got)

    def _damage_under(self, number: int) -> int | None:
        """Return where the first damage is that a frame rests on: never on frames shown before its start."""
        begin, end = int(self.index.begin[number]), int(self.index.position[number])
        found = (at for at in self._damage if begin <= at <= end and not self._leads(at, begin))
        return min(found, default=None)

    def _leads(self, at: int, begin: int) -> bool:
        """Return whether a packet is of a frame that is shown before the keyframe at a position."""
        return bool(self.index.packet_stamps[at] < self.index.packet_stamps[begin])

    def _refused(self, number: int, got: str) -> DataError:
        return DataError(
            "the video is damaged here",
            where=where(self.index.path, number),
            got=got,
            wanted="a frame that decodes without an error",
            fix=f"{COPY_AGAIN} Or cut the damaged part out.",
        )

    def _decode_to(self, number: int) -> None:
        """Decode until a frame and all that it can rest on were given by the decoder.

        A decoder that met damage is not trusted beyond the next keyframe: it begins there afresh.
        """
        begin, horizon = int(self.index.begin[number]), int(self.index.horizon[number])
        going = 0 <= self._fed_from <= begin <= self._next and self._trusted(begin)
        if not going or (number <= self._shown and number not in self._recent):
            if going and self._damage_under(number) is not None:
                return  # it was passed over
            self._seek(begin)
        while self._shown < horizon:
            packet = next(self._packets, None)
            if packet is None:
                self._passed(len(self.index))
                return
            self._feed(packet)

    def _feed(self, packet: Any) -> None:
        at = self._next
        if packet.size:
            self._next += 1
            if at in self.index.suspect:
                self._damage.setdefault(at, "the container calls its packet damaged")
        try:
            frames = packet.decode()
        except library().FFmpegError as error:
            at = min(at, len(self.index.packet_frames) - 1)
            if not self._leads(at, self._fed_from):  # what such rest on was never decoded
                self._damage.setdefault(at, _reason(error))
            return
        for frame in frames:
            self._take(frame)

    def _take(self, frame: Any) -> None:
        number = self._number(frame)
        if number is None:
            return  # one that is not to be shown
        self._passed(number)
        self._recent[number] = frame
        while len(self._recent) > KEPT:
            self._recent.popitem(last=False)
        if frame.is_corrupt:
            self._damage.setdefault(int(self.index.position[number]), "its data do not decode in full")

    def _number(self, frame: Any) -> int | None:
        if self.index.counted:
            return self._shown + 1 if self._shown + 1 < len(self.index) else None
        at = int(np.searchsorted(self.index.stamps, frame.pts)) if frame.pts is not None else -1
        known = 0 <= at < len(self.index) and self.index.stamps[at] == frame.pts
        return at if known and at > self._shown else None

    def _passed(self, number: int) -> None:
        """Note that the decoder is at a frame; what it left out on the way is damaged."""
        for left_out in range(self._shown + 1, number):
            if self._trusted(int(self.index.begin[left_out])):
                self._damage.setdefault(int(self.index.position[left_out]), MISSING)
        self._shown = number

    def _trusted(self, begin: int) -> bool:
        """Return whether the decoder gives what a fresh one would that begins at a keyframe.

        It does where it began there, or before it and has met no damage since.
        """
        if self._fed_from == begin:
            return True
        return 0 <= self._fed_from < begin and all(at < self._fed_from for at in self._damage)

    def _seek(self, begin: int) -> None:
        """Put the decoder before the packet at a position: a keyframe, or the first of the file."""
        beginnings = np.unique(self.index.begin)
        keys = beginnings[(beginnings > 0) & (beginnings <= begin)][::-1]
        back = 0
        while back < len(keys) and not self.index.counted:
            if self._land(int(keys[back]), begin):
                return
            back = 2 * back + 1
        self.close()
        self._video = open_video(self.index.path)
        self._packets = self._video.container.demux(self._video.stream)
        self._skip(0, begin)

    def _land(self, key: int, begin: int) -> bool:
        """Jump to a keyframe or before; return whether the packet at `begin` is then ahead."""
        if self._video is None:
            self._video = open_video(self.index.path)
        video = self._video
        target = int(self.index.packet_stamps[key])
        try:
            video.container.seek(target, stream=video.stream, backward=True, any_frame=False)
        except library().FFmpegError:
            return False
        self._packets = video.container.demux(video.stream)
        for packet in self._packets:
            at = self._position(packet)
            if at is None:
                continue
            if at > begin:
                return False
            self._packets = _chained(packet, self._packets)
            self._skip(at, begin)
            return True
        return False

    def _position(self, packet: Any) -> int | None:
        return self._places.get(packet.pts) if packet.size else None

    def _skip(self, at: int, begin: int) -> None:
        """Leave packets out, undecoded, up to the one to begin at; a fresh decoder sees that one first."""
        while at < begin and next(self._packets, None) is not None:
            at += 1
        self._fed_from = self._next = begin
        self._shown = int(np.searchsorted(self.index.stamps, self.index.packet_stamps[begin])) - 1
        self._recent.clear()


def _reason(error: Exception) -> str:
    """Return FFmpeg's words for what is wrong, without its numbers and names of functions."""
    return f"its packet does not decode: {getattr(error, 'strerror', None) or one_line(error)}"


def _chained(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from rest


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
        return known[1]

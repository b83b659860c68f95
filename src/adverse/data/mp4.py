"""Whether the tables of an MP4 or MOV file, and the fragments of one that has such, fit one another.

FFmpeg reads as far as it can: a damaged count costs frames without a word, a damaged fragment all that
follow, and a damaged edit list moves every number. Here the tables of a track must list the same number of
frames, an edit list must be as long as its track and lie within it, and fragments must follow one another.

Boxes and their places: ISO/IEC 14496-12.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.data.video_file import COPY_AGAIN, where
from adverse.errors import DataError
from adverse.plain_files import open_plain

_TOP = frozenset(
    b"ftyp styp moov moof mdat imda mfra free skip wide sidx ssix prft emsg uuid meta meco pdin pnot "
    b"udta".split()
)
_IN_FRAGMENT = frozenset(b"mfhd traf pssh uuid free skip meta meco udta".split())
_IN_TRACK = frozenset(
    b"tfhd tfdt trun sdtp sbgp sgpd subs saiz saio senc uuid free skip meta meco udta".split()
)
_MOST_BYTES = 1 << 28
"""A header larger than this is none: tables of a day of video take 20 MB."""
_MOST_EDITS = 3
"""Edits of more parts than that are a montage, whose length says nothing of its frames."""
_FASTEST_CLOCK = 10_000_000
"""Units of a second in a header, at most."""
_REORDERED = 16
"""Frames that a codec moves by at most."""
_FIRST = 64
"""So many frames are looked at for the one that is shown first."""

_NO_LENGTH, _NO_LENGTH_64 = (1 << 32) - 1, (1 << 64) - 1
"""What a header says where the length of a track is not known."""

Ints = NDArray[np.int64]


class Box(NamedTuple):
    """A box of a file: where its content lies."""

    kind: bytes
    start: int
    content: int
    end: int


_Tables = Callable[..., tuple[int, bytes] | None]
"""Gives a table of a track by the names of the boxes around it and its own: its place and content."""


class _Track(NamedTuple):
    id: int
    is_video: bool
    frames: int
    sizes: Ints
    """Bytes of each sample of stsz; empty where it lists none."""


def frames_of_tracks(path: Path) -> dict[int, int]:
    """Return how many frames each track of pictures lists, by its id; raise DataError where tables differ.

    Frames without bytes do not count: they repeat the picture before.
    """
    boxes, problem = _top(path)
    headers = [box for box in boxes if box.kind == b"moov"]
    if not headers:
        return {}  # FFmpeg says so
    head, base = _read(path, headers[0]), headers[0].content
    fragmented = any(box.kind == b"mvex" for box in _children(path, head, base))
    movie_hz = 0 if fragmented else _timescale(path, head, base)  # edits span fragments, which come later
    tracks = [
        _track(path, head, box, base, movie_hz) for box in _children(path, head, base) if box.kind == b"trak"
    ]
    counts = Counter({track.id: track.frames - _empty(path, track, tracks, boxes) for track in tracks})
    if fragmented:  # elsewhere frames are found by their tables, whatever others add
        if problem is not None:
            raise problem
        if any(box.kind not in _TOP for box in boxes):
            _check_sequence(path, boxes)
        for box in boxes:
            if box.kind == b"moof":
                counts.update(_fragment(path, box, frozenset(counts)))
    return {track.id: counts[track.id] for track in tracks if track.is_video}


def edits_are_trusted(path: Path) -> bool:
    """Return whether frames that are left out at the end can be meant so, and are not lost by damage.

    The units of time must be multiples of 5, as cameras choose them: no single bit changed makes another one.
    Of fragments nobody knows how long all of them are, so an edit has no say on their end.
    """
    boxes, _ = _top(path)
    header = next((box for box in boxes if box.kind == b"moov"), None)
    if header is None:
        return False
    head, base = _read(path, header), header.content
    if any(box.kind == b"mvex" for box in _children(path, head, base)):
        return False
    units = [_timescale(path, head, base)]
    for track in _children(path, head, base):
        if track.kind != b"trak":
            continue
        media = _find(path, head, base, track, b"mdia", b"mdhd")
        if media is None:
            return False
        at = media.content + (20 if head[media.content] == 1 else 12)
        units.append(int.from_bytes(head[at : at + 4], "big"))
    return all(unit % 5 == 0 and 0 < unit <= _FASTEST_CLOCK for unit in units)


def _top(path: Path) -> tuple[list[Box], DataError | None]:
    """Return the boxes of the file as far as they follow one another, and what is wrong after them, if so."""
    total, at, boxes = path.stat().st_size, 0, list[Box]()
    with open_plain(path) as file:
        while at + 8 <= total:
            file.seek(at)
            head = file.read(16)
            size, kind, content = int.from_bytes(head[:4], "big"), head[4:8], at + 8
            if size == 1:
                size, content = int.from_bytes(head[8:16], "big"), at + 16
            end = total if size == 0 else at + size
            if not (kind in _TOP or kind.isalnum()) or end < content or end > total:
                return boxes, _damaged(
                    path, at, f"a box called {kind!r} of {size} bytes, {total - at} are left"
                )
            boxes.append(Box(kind, at, content, end))
            at = end
    return boxes, None if at == total else _damaged(path, at, f"{total - at} bytes at the end")


def _read(path: Path, box: Box) -> bytes:
    if box.end - box.content > _MOST_BYTES:
        raise _damaged(path, box.start, f"a header of {box.end - box.content} bytes")
    with open_plain(path) as file:
        file.seek(box.content)
        return file.read(box.end - box.content)


def _children(path: Path, data: bytes, base: int, start: int = 0, end: int | None = None) -> Iterator[Box]:
    """Give the boxes in a part of a header that lies at `base` in the file; they must fill it."""
    at, end = start, len(data) if end is None else end
    while at + 8 <= end:
        size, kind, content = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8], at + 8
        if size == 0 and kind == b"\0\0\0\0":
            return  # QuickTime may end a list with zeros
        if size == 1 and at + 16 <= end:
            size, content = int.from_bytes(data[at + 8 : at + 16], "big"), at + 16
        if at + size < content or at + size > end:
            raise _damaged(path, base + at, f"a box called {kind!r} of {size} bytes in {end - at}")
        yield Box(kind, at, content, at + size)
        at += size


def _find(path: Path, data: bytes, base: int, within: Box, *names: bytes) -> Box | None:
    """Return the box at the end of a chain of names, each in the one before."""
    for name in names:
        children = _children(path, data, base, within.content, within.end)
        found = next((box for box in children if box.kind == name), None)
        if found is None:
            return None
        within = found
    return within


def _track(path: Path, data: bytes, track: Box, base: int, movie_hz: int) -> _Track:
    def table(*names: bytes) -> tuple[int, bytes] | None:
        box = _find(path, data, base, track, *names)
        return None if box is None else (base + box.start, data[box.content : box.end])

    header, handler = table(b"tkhd"), table(b"mdia", b"hdlr")
    if header is None or handler is None or len(header[1]) < 24 or len(handler[1]) < 12:
        raise _damaged(path, base + track.start, "a track without its headers")
    track_id = struct.unpack_from(">I", header[1], 20 if header[1][0] else 12)[0]
    is_video = handler[1][8:12] == b"vide"
    frames = _listed(path, header[1], table, movie_hz) if is_video else 0
    return _Track(track_id, is_video, frames, _sizes(path, table(b"mdia", b"minf", b"stbl", b"stsz")))


def _sizes(path: Path, table: tuple[int, bytes] | None) -> Ints:
    if table is None or len(table[1]) < 12:
        return np.zeros(0, np.int64)
    each, count = struct.unpack_from(">II", table[1], 4)
    if each:
        return np.full(min(count, _MOST_BYTES // 8), each, np.int64)
    if 12 + 4 * count != len(table[1]):
        raise _damaged(path, table[0], f"{count} samples in a table of {len(table[1])} bytes")
    return np.frombuffer(table[1], ">u4", offset=12).astype(np.int64)


def _empty(path: Path, track: _Track, tracks: list[_Track], boxes: list[Box]) -> int:
    """Return how many frames of a track have no bytes: recorders write them where a picture repeats.

    The sizes of all samples must then add up to the data, or a size that is damaged would hide a frame.
    """
    empty = int((track.sizes == 0).sum()) if track.is_video else 0
    data = sum(box.end - box.content for box in boxes if box.kind == b"mdat")
    if empty and sum(int(each.sizes.sum()) for each in tracks) != data:
        raise _damaged(path, boxes[0].start, f"{empty} frames of 0 bytes")
    return empty


def _listed(path: Path, header: bytes, table: _Tables, movie_hz: int) -> int:
    """Return how many frames the tables of a track list; raise DataError where they do not agree."""
    inner = (b"mdia", b"minf", b"stbl")
    sizes, times = table(*inner, b"stsz") or table(*inner, b"stz2"), table(*inner, b"stts")
    if sizes is None or times is None:
        return 0  # FFmpeg reads no frame without them
    frames, steps = int.from_bytes(sizes[1][8:12], "big"), _pairs(path, *times)
    lists = {"stts": int(steps[:, 0].sum())}
    shifts = table(*inner, b"ctts")
    moved = None if shifts is None else _pairs(path, *shifts)
    if shifts is not None and moved is not None:
        lists["ctts"] = int(moved[:, 0].sum())
        offsets = _signed(moved[:, 1])
        if len(offsets) and np.ptp(offsets) > _REORDERED * steps[:, 1].max(initial=0):
            raise _damaged(path, shifts[0], "a frame that is shown long before or after it is decoded")
    chunks, runs = table(*inner, b"stco") or table(*inner, b"co64"), table(*inner, b"stsc")
    if chunks is not None and runs is not None:
        lists["stsc"] = _in_chunks(path, *runs, int.from_bytes(chunks[1][4:8], "big"))
    for name, count in lists.items():
        if count != frames:
            raise _damaged(path, sizes[0], f"{frames} frames by stsz, {count} by {name}")
    edits, media = table(b"edts", b"elst"), table(b"mdia", b"mdhd")
    if edits is not None and media is not None and frames:
        media_hz = int.from_bytes(media[1][20:24] if media[1][0] == 1 else media[1][12:16], "big")
        said = int.from_bytes(header[28:36] if header[0] == 1 else header[20:24], "big")
        _check_edits(path, edits, said, movie_hz, media_hz, _shown(steps, moved))
    return frames


def _pairs(path: Path, at: int, content: bytes) -> Ints:
    """Return the entries of a table of pairs of numbers; they must fill it."""
    count = int.from_bytes(content[4:8], "big")
    if 8 + 8 * count != len(content):
        raise _damaged(path, at, f"a table of {count} entries in {len(content)} bytes")
    return np.frombuffer(content, ">u4", offset=8).reshape(-1, 2).astype(np.int64)


def _in_chunks(path: Path, at: int, content: bytes, chunks: int) -> int:
    """Return how many frames lie in so many chunks: each run says from which chunk on it holds."""
    count = int.from_bytes(content[4:8], "big")
    if 8 + 12 * count != len(content):
        raise _damaged(path, at, f"a table of {count} entries in {len(content)} bytes")
    runs = np.frombuffer(content, ">u4", offset=8).reshape(-1, 3).astype(np.int64)
    return int((np.diff(runs[:, 0], append=chunks + 1) * runs[:, 1]).sum())


def _signed(offsets: Ints) -> Ints:
    """Return shifts of times as they are meant: with a sign by version 1, and by habit in version 0."""
    return offsets.astype(np.uint32).astype(np.int32).astype(np.int64)


class _Shown(NamedTuple):
    """When the frames of a track are shown, in its unit: the first, all together, and the longest one."""

    first: int
    length: int
    longest: int


def _shown(times: Ints, shifts: Ints | None) -> _Shown:
    steps = np.repeat(times[:_FIRST, 1], np.minimum(times[:_FIRST, 0], _FIRST))[:_FIRST]
    begin = np.cumsum(steps) - steps
    if shifts is not None:
        moved = np.repeat(_signed(shifts[:_FIRST, 1]), np.minimum(shifts[:_FIRST, 0], _FIRST))[: len(begin)]
        begin = begin[: len(moved)] + moved
    length, longest = int((times[:, 0] * times[:, 1]).sum()), int(times[:, 1].max(initial=0))
    return _Shown(int(begin.min()) if len(begin) else 0, length, longest)


def _check_edits(
    path: Path, edits: tuple[int, bytes], said: int, movie_hz: int, media_hz: int, shown: _Shown
) -> None:
    """Raise where an edit list is not as long as its track, or shows what its media do not have."""
    at, content = edits
    count, form = int.from_bytes(content[4:8], "big"), struct.Struct(">Qqi" if content[0] == 1 else ">Iii")
    if 8 + form.size * count != len(content):
        raise _damaged(path, at, f"an edit list of {count} entries in {len(content)} bytes")
    if count > _MOST_EDITS or not media_hz or not movie_hz:
        return
    parts = [form.unpack_from(content, 8 + form.size * number) for number in range(count)]
    slack_s = shown.longest / media_hz + count / movie_hz
    open_end = any(length == 0 for length, _, _ in parts)  # as long as there are frames
    unknown = said in (0, _NO_LENGTH, _NO_LENGTH_64)
    pictures = sum(length for length, begin, _ in parts if begin >= 0)
    lengths = (pictures, sum(part[0] for part in parts))  # some writers leave out what is empty
    if not open_end and not unknown and min(abs(length - said) for length in lengths) / movie_hz > slack_s:
        raise _damaged(path, at, "an edit list of another length than its track")
    for length, begin, _ in parts:
        beyond_s = (begin - shown.first - shown.length) / media_hz + length / movie_hz
        if begin >= 0 and beyond_s > _REORDERED * slack_s:  # FFmpeg cuts in the order of decoding
            raise _damaged(path, at, "an edit list that reaches beyond the end of its track")


def _timescale(path: Path, head: bytes, base: int) -> int:
    box = next((box for box in _children(path, head, base) if box.kind == b"mvhd"), None)
    if box is None or box.end - box.content < 24:
        raise _damaged(path, base, "a header without its time unit")
    at = box.content + (20 if head[box.content] == 1 else 12)
    return int.from_bytes(head[at : at + 4], "big")


def _check_sequence(path: Path, boxes: list[Box]) -> None:
    """Raise where a box of unknown kind may be a fragment, or its data, whose name is damaged.

    After the header each fragment is followed by its data, and bears the number after that of the one before.
    """
    kinds = [box.kind for box in boxes]
    parts = [box for box in boxes[kinds.index(b"moov") :] if box.kind in {b"moof", b"mdat"}]
    if any(box.kind != (b"mdat" if at % 2 else b"moof") for at, box in enumerate(parts)) or len(parts) % 2:
        raise _damaged(path, parts[-1].start, "fragments without data, or data without a fragment")
    for before, box in pairwise(parts[::2]):
        number, expected = _number(path, box), _number(path, before) + 1
        if number != expected:
            raise _damaged(path, box.start, f"fragment {number} where {expected} comes")


def _number(path: Path, fragment: Box) -> int:
    data = _read(path, fragment)
    head = next((box for box in _children(path, data, fragment.content) if box.kind == b"mfhd"), None)
    return -1 if head is None else int.from_bytes(data[head.content + 4 : head.end], "big")


def _fragment(path: Path, fragment: Box, tracks: frozenset[int]) -> Counter[int]:
    """Return how many frames of each track a fragment lists."""
    data, counts = _read(path, fragment), Counter[int]()
    for part in _children(path, data, fragment.content):
        if part.kind not in _IN_FRAGMENT:
            raise _damaged(path, fragment.content + part.start, f"a box called {part.kind!r} in a fragment")
        if part.kind != b"traf":
            continue
        track, frames = None, 0
        for box in _children(path, data, fragment.content, part.content, part.end):
            content = data[box.content : box.end]
            if box.kind not in _IN_TRACK:
                raise _damaged(path, fragment.content + box.start, f"a box called {box.kind!r} in a fragment")
            if box.kind == b"tfhd":
                track = int.from_bytes(content[4:8], "big")
            elif box.kind == b"trun":
                frames += _run(path, fragment.content + box.start, content)
        if track not in tracks:
            raise _damaged(path, fragment.content + part.start, "frames of a track that is not there")
        counts[track] += frames
    return counts


def _run(path: Path, at: int, content: bytes) -> int:
    """Return how many frames a run of a fragment lists; they must fill it."""
    flags, frames = int.from_bytes(content[1:4], "big"), int.from_bytes(content[4:8], "big")
    fixed = 8 + 4 * bool(flags & 0x1) + 4 * bool(flags & 0x4)
    each = 4 * (flags >> 8 & 0xF).bit_count()
    if fixed + each * frames != len(content):
        raise _damaged(path, at, f"a run of {frames} frames in {len(content)} bytes")
    return frames


def _damaged(path: Path, at: int, got: str) -> DataError:
    return DataError(
        "the container of the video is damaged, so its frames cannot be numbered",
        where=f"{where(path)}, byte {at}",
        got=got,
        wanted="MP4 or MOV whose tables agree",
        fix=f"{COPY_AGAIN} Or keep what can be read, under new numbers: ffmpeg -i IN -c copy OUT.mp4",
    )

"""Whether the structure of a Matroska or WebM file is whole, and which of its clusters fail their checksum.

FFmpeg passes over what it does not understand, so a damaged head of a block costs a frame without a word, and
every later frame gets the number of its neighbour. Here every element must be one that may stand at its place
and must fit into the one around it, and every block must belong to a track. Payloads are read only where the
writer left a checksum of them (FFmpeg's own writer does, in MKV).

Elements and their places: RFC 8794 (EBML) and RFC 9559 (Matroska).
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from adverse.data.video_file import COPY_AGAIN, where
from adverse.errors import DataError
from adverse.plain_files import open_plain

_EBML, _SEGMENT, _CLUSTER = 0x1A45DFA3, 0x18538067, 0x1F43B675
_INFO, _TRACKS, _TRACK, _TRACK_NUMBER = 0x1549A966, 0x1654AE6B, 0xAE, 0xD7
_SIMPLE_BLOCK, _GROUP, _BLOCK = 0xA3, 0xA0, 0xA1
_CHECKSUM, _VOID = 0xBF, 0xEC
_ANYWHERE = frozenset({_CHECKSUM, _VOID})
_SEEK_HEAD, _CUES, _CHAPTERS, _TAGS, _ATTACHMENTS = 0x114D9B74, 0x1C53BB6B, 0x1043A770, 0x1254C367, 0x1941A469
_IN_SEGMENT = _ANYWHERE | {_SEEK_HEAD, _INFO, _TRACKS, _CLUSTER, _CUES, _CHAPTERS, _TAGS, _ATTACHMENTS}
_NUMBERS = frozenset({0xE7, 0xA7, 0xAB})
_IN_CLUSTER = _ANYWHERE | _NUMBERS | {0x5854, _SIMPLE_BLOCK, _GROUP}
_IN_GROUP = _ANYWHERE | {_BLOCK, 0x75A1, 0x9B, 0xFA, 0xFB, 0xA4, 0x75A2, 0x8E}
_CHUNK_BYTES = 1 << 20
_ID_BYTES, _SIZE_BYTES = 4, 8


class Element(NamedTuple):
    """One element: where it begins, where its content begins and ends (None: not said)."""

    id: int
    start: int
    content: int
    end: int | None


class Structure(NamedTuple):
    """Where the clusters lie whose checksum fails, and how many blocks each track has, in their order."""

    failed: list[tuple[int, int]]
    blocks: Counter[int]


def read_structure(path: Path) -> Structure:
    """Go through all elements of a file; raise DataError where they do not fit."""
    total = path.stat().st_size
    with open_plain(path) as file:
        head = _element(file, path, 0, total)
        segment = _element(file, path, total if head.end is None else head.end, total)
        if head.id != _EBML or segment.id != _SEGMENT:
            raise _damaged(path, segment.start, "no segment")
        if segment.end is not None and segment.end > total:
            raise DataError(
                "the video is cut off",
                where=where(path),
                got=f"{total} bytes",
                wanted=f"{segment.end} bytes, as its header says",
                fix=f"{COPY_AGAIN} Or keep what is there: ffmpeg -i IN -c copy OUT.mkv",
            )
        blocks: Counter[int] = Counter()
        return Structure(list(_walk(file, path, segment, total, blocks)), blocks)


def _walk(
    file: BinaryIO, path: Path, segment: Element, total: int, blocks: Counter[int]
) -> Iterator[tuple[int, int]]:
    end = total if segment.end is None else segment.end
    at = segment.content
    while at < end:
        part = _element(file, path, at, total)
        if part.id not in _IN_SEGMENT:
            raise _damaged(path, at, f"element {part.id:X} in the segment")
        if segment.end is not None and part.end is not None and part.end > end:
            raise _damaged(path, at, f"element {part.id:X} reaches beyond the segment")
        if part.id == _TRACKS:
            blocks.update(dict.fromkeys(_track_numbers(file, path, part, total), 0))
        at = _cluster_end(file, path, part, end, blocks) if part.id == _CLUSTER else part.end or total
        if not _checksum_holds(file, part, at):
            if part.id in {_INFO, _TRACKS}:
                raise _damaged(path, part.start, f"the checksum of element {part.id:X} fails")
            yield part.start, at


def _cluster_end(file: BinaryIO, path: Path, cluster: Element, end: int, blocks: Counter[int]) -> int:
    """Check the children of a cluster; return where it ends, by its children where its size is not said."""
    at, stop = cluster.content, end if cluster.end is None else min(cluster.end, end)
    while at < stop:
        if cluster.end is None and end - at < _ID_BYTES + _SIZE_BYTES:
            return end  # a recording that was broken off
        child = _element(file, path, at, end)
        if cluster.end is None and child.id in _IN_SEGMENT - _ANYWHERE:
            return at
        late = child.id in _ANYWHERE and at != cluster.content
        if child.id not in _IN_CLUSTER or late:
            raise _damaged(path, at, f"element {child.id:X} in a cluster")
        if child.id in _NUMBERS and (child.end is None or child.end - child.content > 8):
            raise _damaged(path, at, f"a number of more than 8 bytes, element {child.id:X}")
        if child.end is None or child.end > stop:
            if cluster.end is None or cluster.end > end:
                return end  # a recording that was broken off: its last block is not whole
            raise _damaged(path, at, f"element {child.id:X} reaches beyond its cluster")
        if child.id == _SIMPLE_BLOCK:
            _count_block(file, path, child, blocks)
        elif child.id == _GROUP:
            _check_group(file, path, child, blocks)
        at = child.end
    return stop


def _check_group(file: BinaryIO, path: Path, group: Element, blocks: Counter[int]) -> None:
    at, end = group.content, group.end or group.content
    while at < end:
        child = _element(file, path, at, end)
        if child.id not in _IN_GROUP:
            raise _damaged(path, at, f"element {child.id:X} in a group of blocks")
        if child.end is None or child.end > end:
            raise _damaged(path, at, f"element {child.id:X} reaches beyond its group")
        if child.id == _BLOCK:
            _count_block(file, path, child, blocks)
        at = child.end


def _count_block(file: BinaryIO, path: Path, block: Element, blocks: Counter[int]) -> None:
    file.seek(block.content)
    head = file.read(12)
    length = _length(head[:1])
    if not length or _value(head[:length]) not in blocks:
        raise _damaged(path, block.start, "a block of a track that is not there")
    blocks[_value(head[:length])] += 1


def _track_numbers(file: BinaryIO, path: Path, tracks: Element, total: int) -> list[int]:
    numbers = []
    for track in _children(file, path, tracks, total):
        for field in _children(file, path, track, total) if track.id == _TRACK else ():
            if field.id == _TRACK_NUMBER and field.end is not None:
                file.seek(field.content)
                numbers.append(int.from_bytes(file.read(field.end - field.content), "big"))
    return numbers


def _children(file: BinaryIO, path: Path, parent: Element, total: int) -> Iterator[Element]:
    at, end = parent.content, parent.end or parent.content
    while at < end:
        child = _element(file, path, at, total)
        if child.end is None or child.end > end:
            raise _damaged(path, at, f"element {child.id:X} reaches beyond the one around it")
        yield child
        at = child.end


def _checksum_holds(file: BinaryIO, part: Element, end: int) -> bool:
    """Return whether the checksum of an element holds; it is its first child, where there is one."""
    if part.id in _ANYWHERE or end - part.content < 6:
        return True
    file.seek(part.content)
    if file.read(2) != bytes((_CHECKSUM, 0x84)):
        return True
    wanted, got, left = int.from_bytes(file.read(4), "little"), 0, end - part.content - 6
    while left:
        data = file.read(min(left, _CHUNK_BYTES))
        if not data:
            return False
        got, left = zlib.crc32(data, got), left - len(data)
    return got == wanted


def _element(file: BinaryIO, path: Path, at: int, total: int) -> Element:
    """Read the head of an element: its id and its size, each of a length that its first byte says."""
    file.seek(at)
    head = file.read(_ID_BYTES + _SIZE_BYTES)
    first = _length(head[:1])
    second = _length(head[first : first + 1]) if first else 0
    if not 0 < first <= _ID_BYTES or not second or len(head) < first + second:
        raise _damaged(path, at, f"{len(head[:2])} bytes at the end" if at + 2 > total else "no element")
    size = head[first : first + second]
    unknown = _value(size) == (1 << 7 * second) - 1
    content = at + first + second
    return Element(
        int.from_bytes(head[:first], "big"), at, content, None if unknown else content + _value(size)
    )


def _length(first: bytes) -> int:
    """Return how many bytes a number of variable length has; 0: none begins so."""
    return 9 - first[0].bit_length() if first and first[0] else 0


def _value(data: bytes) -> int:
    """Return a number of variable length without the bit that says how long it is."""
    return int.from_bytes(data, "big") & ((1 << 7 * len(data)) - 1)


def _damaged(path: Path, at: int, got: str) -> DataError:
    return DataError(
        "the container of the video is damaged, so its frames cannot be numbered",
        where=f"{where(path)}, byte {at}",
        got=got,
        wanted="Matroska or WebM whose elements fit into one another",
        fix=f"{COPY_AGAIN} Or keep what can be read, under new numbers: ffmpeg -i IN -c copy OUT.mkv",
    )

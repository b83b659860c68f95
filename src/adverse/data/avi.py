"""Whether the chunks of an AVI file follow one another without a gap.

FFmpeg looks for the next chunk where one is damaged, without a word. A frame is then lost or invented, and
every later frame gets the number of its neighbour.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import BinaryIO, NamedTuple

from adverse.data.video_file import COPY_AGAIN, where
from adverse.errors import DataError
from adverse.plain_files import open_plain

_KINDS = frozenset({b"dc", b"db", b"wb", b"tx", b"pc", b"sb"})
"""What a chunk of a stream holds, after the two digits of the stream."""
_PICTURES = frozenset({b"dc", b"db"})
_NO_LENGTH = frozenset({0, 0xFFFFFFFF})
"""What stands for the length of a file while it is written."""


class Chunks(NamedTuple):
    """How many chunks of pictures each stream has; empty ones repeat the picture before."""

    filled: Counter[int]
    empty: Counter[int]


def count_chunks(path: Path) -> Chunks:
    """Count the chunks of an AVI; raise DataError where they do not follow one another without a gap.

    A recording that was broken off, whose header says no length, is followed as far as it goes.
    """
    total, at, chunks = path.stat().st_size, 0, Chunks(Counter(), Counter())
    with open_plain(path) as file:
        while at + 12 <= total:
            kind, size, form = _head(file, at)
            if kind != b"RIFF":
                return chunks  # what is appended by others
            end = total if size in _NO_LENGTH else at + 8 + size
            if end > total:
                raise DataError(
                    "the video is cut off",
                    where=where(path),
                    got=f"{total} bytes",
                    wanted=f"{end} bytes, as its header says",
                    fix=f"{COPY_AGAIN} Or keep what is there: ffmpeg -i IN -c copy OUT.avi",
                )
            part = at + 12
            while part + 12 <= min(end, total):
                kind, length, form = _head(file, part)
                if kind == b"LIST" and form == b"movi":
                    if length in _NO_LENGTH:
                        _follow(file, path, part + 12, total, chunks, broken_off=True)
                        return chunks
                    _follow(file, path, part + 12, part + 8 + length, chunks, broken_off=size in _NO_LENGTH)
                part += 8 + length + length % 2
            at = end + end % 2
    return chunks


def _follow(file: BinaryIO, path: Path, at: int, end: int, chunks: Chunks, *, broken_off: bool) -> None:
    while at + 8 <= end:
        kind, size, form = _head(file, at)
        if kind == b"LIST" and form == b"rec ":
            at += 12
            continue
        stream = kind[:2].isdigit() and kind[2:] in _KINDS
        if broken_off and (kind == b"idx1" or at + 8 + size > end):
            return
        if not stream and kind != b"JUNK" and not (kind[:2] == b"ix" and kind[2:].isdigit()):
            raise _damaged(path, at, f"a chunk called {kind!r}")
        if at + 8 + size > end:
            raise _damaged(path, at, f"a chunk of {size} bytes, {end - at - 8} before the end")
        if stream and kind[2:] in _PICTURES:
            (chunks.filled if size else chunks.empty)[int(kind[:2])] += 1
        at += 8 + size + size % 2


def _head(file: BinaryIO, at: int) -> tuple[bytes, int, bytes]:
    file.seek(at)
    head = file.read(12)
    return head[:4], int.from_bytes(head[4:8], "little"), head[8:12]


def _damaged(path: Path, at: int, got: str) -> DataError:
    return DataError(
        "the container of the video is damaged, so its frames cannot be numbered",
        where=f"{where(path)}, byte {at}",
        got=got,
        wanted="AVI whose chunks follow one another",
        fix=f"{COPY_AGAIN} Or keep what can be read, under new numbers: ffmpeg -i IN -c copy OUT.avi",
    )

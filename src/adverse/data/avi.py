"""Whether the chunks of an AVI file follow one another without a gap.

FFmpeg looks for the next chunk where one is damaged, without a word. A frame is then lost or invented, and
every later frame gets the number of its neighbour.
"""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from adverse.data.video_file import COPY_AGAIN, where
from adverse.errors import DataError
from adverse.plain_files import open_plain

_KINDS = frozenset({b"dc", b"db", b"wb", b"tx", b"pc", b"sb"})
"""What a chunk of a stream holds, after the two digits of the stream."""


def check_chunks(path: Path) -> None:
    """Raise DataError where the pictures and sounds of an AVI do not follow one another without a gap.

    A recording that was broken off, whose header says no length, is followed as far as it goes.
    """
    total, at = path.stat().st_size, 0
    with open_plain(path) as file:
        while at + 12 <= total:
            kind, size, form = _head(file, at)
            if kind != b"RIFF":
                return  # what is appended by others
            end = at + 8 + size if size else total
            part = at + 12
            while part + 12 <= min(end, total):
                kind, length, form = _head(file, part)
                if kind == b"LIST" and form == b"movi":
                    _check_movi(file, path, part + 12, part + 8 + length if length else total, total)
                if not length and kind == b"LIST":
                    return
                part += 8 + length + length % 2
            at = end + end % 2


def _check_movi(file: BinaryIO, path: Path, at: int, end: int, total: int) -> None:
    if end > total:
        return  # cut off, which the number of frames says
    while at + 8 <= end:
        kind, size, form = _head(file, at)
        if kind == b"LIST" and form == b"rec ":
            at += 12
            continue
        stream = kind[:2].isdigit() and kind[2:] in _KINDS
        if not stream and kind != b"JUNK" and not (kind[:2] == b"ix" and kind[2:].isdigit()):
            raise _damaged(path, at, f"a chunk called {kind!r}")
        if at + 8 + size > end:
            raise _damaged(path, at, f"a chunk of {size} bytes, {end - at - 8} before the end")
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

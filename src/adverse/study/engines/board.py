"""What a worker is doing, on a page of memory that outlives it.

Writing there costs the worker microseconds and us nothing: it is read only when the worker has died, or to
see whether it has been at one step for too long.
"""

from __future__ import annotations

import mmap
import pickle
import struct
import time
import zlib

from adverse.study.stages import Stage

SIZE_BYTES = 8192
HEADER = struct.Struct("<II")
"""Length and checksum of the text behind it; a page caught in the middle of writing does not match."""


class Board:
    """A page shared by file descriptor: the worker writes, whoever watches it reads."""

    def __init__(self, descriptor: int) -> None:
        self._page = mmap.mmap(descriptor, SIZE_BYTES)

    def write(self, stage: Stage) -> None:
        """Say what is about to be done."""
        data = pickle.dumps((time.monotonic(), stage))
        if len(data) > SIZE_BYTES - HEADER.size:  # names of thousands of characters
            short = Stage(stage.text[:200], sut=stage.sut, limit_s=stage.limit_s)
            data = pickle.dumps((time.monotonic(), short))
        self._page[: HEADER.size] = bytes(HEADER.size)
        self._page[HEADER.size : HEADER.size + len(data)] = data
        self._page[: HEADER.size] = HEADER.pack(len(data), zlib.crc32(data))

    def read(self) -> tuple[float, Stage] | None:
        """Return since when (monotonic seconds) and what; None if nothing is to be read there now."""
        length, check = HEADER.unpack(self._page[: HEADER.size])
        data = self._page[HEADER.size : HEADER.size + length]
        if not length or zlib.crc32(data) != check:
            return None
        since, stage = pickle.loads(data)  # noqa: S301 - written by our own worker
        return float(since), stage

    def close(self) -> None:
        """Let go of the page."""
        self._page.close()

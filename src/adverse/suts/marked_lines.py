"""Tell a program's replies from whatever else it prints on the same stream."""

from __future__ import annotations

from collections import deque

NOISE_LINES = 5
NOISE_BYTES = 300


class LineTooLongError(Exception):
    """A reply grew past the limit without an end of line."""


class MarkedLines:
    r"""Collects bytes as they arrive and gives out the lines that begin with a mark.

    Other lines are noise: the start of the last few is kept, the rest forgotten, however long they are.

    >>> lines = MarkedLines(b"@ ", 100)
    >>> lines.feed(b"loading...\n@ re"), lines.feed(b"ady\n"), lines.noise()
    ([], [b'@ ready'], 'loading...')
    """

    def __init__(self, mark: bytes, max_bytes: int) -> None:
        self._mark = mark
        self._max_bytes = max_bytes
        self._partial = bytearray()
        self._noise: deque[bytes] = deque(maxlen=NOISE_LINES)

    def feed(self, data: bytes) -> list[bytes]:
        """Take what was read and return the marked lines that it completes."""
        *ends, rest = data.split(b"\n")
        found = []
        for end in ends:
            self._grow(end)
            line = bytes(self._partial)
            self._partial.clear()
            if line.startswith(self._mark):
                found.append(line)
            elif line.strip():
                self._noise.append(line)
        self._grow(rest)
        return found

    def noise(self) -> str:
        """Return the last lines that were no replies, an unfinished one included."""
        lines = [*self._noise, bytes(self._partial)]
        return " | ".join(text for line in lines if (text := line.decode(errors="replace").strip()))

    def _grow(self, data: bytes) -> None:
        self._partial += data
        size = min(len(self._partial), len(self._mark))
        if self._partial[:size] != self._mark[:size]:
            del self._partial[NOISE_BYTES:]
        elif len(self._partial) > self._max_bytes:
            del self._partial[NOISE_BYTES:]
            raise LineTooLongError

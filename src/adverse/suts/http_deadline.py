"""One deadline for everything that is read and written for an HTTP request, and whether an answer had begun.

httpx has a limit for each read alone: a server that sends a byte now and then would never exceed it. Its
`trace` extension hands over each connection as it is made, whose reads and writes then end at the deadline.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

MADE = ("connect_tcp.complete", "connect_unix_socket.complete", "start_tls.complete")
"""Events after which there is a new stream of bytes, of a connection or of TLS over one."""
PIECE_BYTES = 1 << 18
"""Written at once: more may need several waits, each as long as the limit."""


class Deadline:
    """The deadline of the request under way; requests are sent one after the other."""

    def __init__(self, httpx: Any) -> None:
        self._httpx = httpx
        self._end = 0.0
        self.answer_begun = False
        """Whether any byte came back since the request was begun."""

    def begin(self, end: float) -> float:
        """Set when the request that follows must be over, in monotonic time; return the seconds left."""
        self._end, self.answer_begun = end, False
        return max(end - time.monotonic(), 0.001)

    def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Take what httpx tells about a request, and watch over new connections."""
        if event.endswith(MADE):
            self.answer_begun = False  # until now, a proxy spoke at most
            self._watch(info["return_value"])

    def _watch(self, stream: Any) -> None:
        read, write = stream.read, stream.write

        def read_in_time(max_bytes: int, timeout: float | None = None) -> bytes:
            data: bytes = read(max_bytes, timeout=self._left(timeout, self._httpx.ReadTimeout))
            self.answer_begun |= bool(data)
            return data

        def write_in_time(buffer: bytes, timeout: float | None = None) -> None:
            for start in range(0, len(buffer), PIECE_BYTES):
                left = self._left(timeout, self._httpx.WriteTimeout)
                write(buffer[start : start + PIECE_BYTES], timeout=left)

        stream.read, stream.write = read_in_time, write_in_time

    def _left(self, timeout: float | None, late: type[Exception]) -> float:
        left = self._end - time.monotonic()
        if left <= 0:
            raise late("the time for the whole request is over")
        return left if timeout is None else min(left, timeout)

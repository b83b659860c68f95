"""What a long sweep says on the way: a line every few seconds, and how to go on where it was stopped."""

from __future__ import annotations

import signal
import sys
import time
from types import FrameType

EVERY_S = 5.0


class Progress:
    """Counts the cases of a sweep from `start` to `total`; Ctrl-C or a polite kill ends it after a case."""

    def __init__(self, total: int, start: int = 0) -> None:
        self.total = total
        self.start = self.number = start
        self.stopped = False
        self.began = self._told = time.monotonic()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._stop)

    @property
    def going(self) -> bool:
        """Whether there is another case to do."""
        return self.number < self.total and not self.stopped

    def done(self, words: str, *, cases: int = 1) -> None:
        """Count cases; from time to time say how far it is."""
        self.number += cases
        now = time.monotonic()
        if now - self._told >= EVERY_S:
            self._told = now
            each = (now - self.began) / max(self.number - self.start, 1)
            left = each * (self.total - self.number)
            print(f"{self.number} of {self.total}, {each:.2f} s each, {left:.0f} s left; {words}", flush=True)

    def end(self, words: str) -> None:
        """Print the last line."""
        spent = f"{time.monotonic() - self.began:.0f} s"
        if self.number < self.total:
            print(f"STOPPED at {self.number} of {self.total} after {spent}; {words}")
            print(f"go on with --start {self.number}")
        else:
            print(f"DONE: {self.start} to {self.total} in {spent}; {words}")
        sys.stdout.flush()

    def _stop(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self.stopped = True

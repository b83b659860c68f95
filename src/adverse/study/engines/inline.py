"""Units done here and now, in this process: for debugging, and for SUTs that are Python objects.

Nothing protects against a SUT that crashes or hangs; use worker processes for that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from adverse.study.engines import Result, Stop, U, Watcher, Work
from adverse.study.stages import NOTHING_TO_AVOID


class InlineEngine:
    """Does units one after the other."""

    name = "inline"
    workers = 0

    def run(
        self, work: Work, units: Sequence[U], *, watch: Watcher, stop: Stop
    ) -> Iterator[tuple[U, Result]]:
        """Do the units, yielding each when it is finished."""
        del watch
        worker = work.worker(lambda _stage: None)
        waiting = units if isinstance(units, deque) else deque(units)
        try:
            while waiting and not (stop.soft or stop.hard):
                unit = waiting.popleft()
                yield unit, worker.do(unit, isolate=frozenset(), avoid=NOTHING_TO_AVOID)
        finally:
            worker.close()

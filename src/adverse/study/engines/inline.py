"""Units done here and now, in this process: for debugging, and for SUTs that are Python objects.

Nothing protects against a SUT that crashes or hangs; use worker processes for that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from adverse.study.engines import Stop, Watcher
from adverse.study.plan import Job, Unit
from adverse.study.work import Worker


class InlineEngine:
    """Does units one after the other."""

    name = "inline"
    workers = 0

    def run(
        self, job: Job, units: Sequence[Unit], *, watch: Watcher, stop: Stop
    ) -> Iterator[tuple[Unit, bytes]]:
        """Do the units, yielding each when it is finished."""
        del watch
        worker = Worker(job, tell=lambda _stage: None)
        try:
            for unit in units:
                if stop.soft or stop.hard:
                    return
                yield unit, worker.do(unit)
        finally:
            worker.close()

"""Where units are done. One interface: worker processes on this machine, or any other place that can do it.

An engine yields (unit, Parquet bytes) in whatever order units finish; the caller makes them durable. It
gives back the same bytes for a unit however often and wherever it is done.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from adverse.study.plan import Job, Unit


class Stop:
    """A wish to stop: `soft` finishes what is under way, `hard` does not wait.

    `heeded` tells that someone looks at it all the time; else only an exception can stop at once.
    """

    def __init__(self) -> None:
        self.soft = False
        self.hard = False
        self.heeded = False


class Watcher(Protocol):
    """Hears what happens while units are done."""

    def note(self, text: str) -> None:
        """Something worth a line: a worker was lost, a SUT is isolated."""


class Engine(Protocol):
    """Does units."""

    name: str
    workers: int

    def run(
        self, job: Job, units: Sequence[Unit], *, watch: Watcher, stop: Stop
    ) -> Iterator[tuple[Unit, bytes]]:
        """Do the units, yielding each when it is finished."""

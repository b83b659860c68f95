"""Where units are done. One interface: worker processes on this machine, or any other place that can do it.

An engine yields (unit, result) in whatever order units finish; the caller makes results durable. A unit has
the same result however often and wherever it is done, or the engine says which of its files are not what was
planned. What a unit and its result are, only the work knows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from adverse.study.attempts import AttemptLog
from adverse.study.stages import Avoid, Stage

U = TypeVar("U")
Result = Any
"""What the work makes of a unit, or `content.Changed`."""


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

    def under_way(self, answered: int) -> None:
        """Hear, several times a second, about how many images of unfinished units have been answered."""


class Silent:
    """Watches units, or a whole run, and says nothing."""

    def note(self, text: str) -> None:
        """Say nothing."""

    def under_way(self, answered: int) -> None:
        """Say nothing."""

    def begin(self, total: int, done: int) -> None:
        """Say nothing."""

    def advance(self, statuses: Counter[str]) -> None:
        """Say nothing."""

    def end(self) -> None:
        """Say nothing."""


class UnitWorker(Protocol):
    """Does units of one work, and keeps what they share between them."""

    def do(self, unit: Any, *, isolate: frozenset[int], avoid: Avoid) -> Result:
        """Return the result of a unit; `isolate` names the SUTs to run in a process of their own."""

    def close(self) -> None:
        """Let go of what is held."""


class EngineSut(Protocol):
    """What an engine must know of a SUT."""

    @property
    def name(self) -> str:
        """What the study calls it."""

    @property
    def memory_limit_mb(self) -> int | None:
        """The limit that needs a process of its own, if there is one."""

    @property
    def gpu(self) -> bool:
        """Whether it needs a GPU."""


class Work(Protocol):
    """The work that units are part of; pickled, and sent to every worker once."""

    @property
    def plugin_files(self) -> tuple[Path, ...]:
        """Loaded before anything else is unpacked."""

    @property
    def suts(self) -> Sequence[EngineSut]:
        """The SUTs, in the order that `isolate` counts them."""

    def worker(
        self,
        tell: Callable[[Stage], None],
        *,
        memory_limit_mb: int | None = None,
        attempts: AttemptLog | None = None,
    ) -> UnitWorker:
        """Return what does units in the process that this is called in, writing down its attempts."""


class Engine(Protocol):
    """Does units."""

    name: str

    @property
    def workers(self) -> int:
        """How many units can be done at a time; 0 where this process does them."""

    def activity(self) -> Mapping[str, str]:
        """Say what each worker does, by its name."""

    def run(
        self, work: Work, units: Sequence[U], *, watch: Watcher, stop: Stop
    ) -> Iterator[tuple[U, Result]]:
        """Do the units, yielding each when it is finished.

        Units may be a deque: what is added to it before the next result is asked for is done too.
        """

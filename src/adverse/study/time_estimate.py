"""How long a study would take: of two small units the second is timed, when everything is loaded."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from adverse.study.engines import Stop
from adverse.study.engines.local import LocalEngine
from adverse.study.job import PlannedCell, WorkUnit
from adverse.study.plan import StudyPlan
from adverse.study.worker import StudyWork

SETTINGS_TRIED = 12
"""Settings of the sample, evenly spaced among those that are left to do; each is shown to every SUT."""
LONGEST_S = 30.0
"""A sample that takes longer is given up."""


@dataclass(frozen=True)
class TimeEstimate:
    """Seconds that the rest of a study takes with so many workers, from a sample of so many images."""

    seconds: float
    workers: int
    images: int

    def __str__(self) -> str:
        """Return the estimate in words.

        >>> print(TimeEstimate(4000, 2, 24))
        about 1 h 07 min for the images with 2 workers, by a timed sample of 24 of them
        """
        minutes = round(self.seconds / 60)
        text = f"{self.seconds:.0f} s" if self.seconds < 100 else f"{minutes} min"
        if minutes >= 60:
            text = f"{minutes // 60} h {minutes % 60:02} min"
        crew = f"{self.workers} worker{'' if self.workers == 1 else 's'}"
        return f"about {text} for the images with {crew}, by a timed sample of {self.images} of them"


def estimate_time(plan: StudyPlan, *, workers: int) -> TimeEstimate | None:
    """Time a sample of what is left to do; None where nothing is, or where the sample takes too long."""
    left = plan.to_do
    if not left or plan.blocked:
        return None
    unit = max(left, key=lambda unit: len(unit.cells))
    cells = _sample(unit.cells)
    frames = unit.frames[:1], unit.frames[-1:]
    sample = [replace(unit, frames=one, cells=cells, twice=frozenset()) for one in frames]
    seconds = _seconds_of_the_last(plan, sample)
    if seconds is None:
        return None
    per_image = seconds / len(cells)
    return TimeEstimate(per_image * plan.pictures(left) / workers, workers, len(cells))


def _sample(cells: Sequence[PlannedCell]) -> tuple[PlannedCell, ...]:
    """Return all cells of some settings."""
    settings = sorted({cell.setting for cell in cells})
    step = max(len(settings) / SETTINGS_TRIED, 1.0)
    chosen = {settings[int(number * step)] for number in range(min(SETTINGS_TRIED, len(settings)))}
    return tuple(cell for cell in cells if cell.setting in chosen)


def _seconds_of_the_last(plan: StudyPlan, units: Sequence[WorkUnit]) -> float | None:
    stop = Stop()

    def give_up() -> None:
        stop.soft = stop.hard = True

    with tempfile.TemporaryDirectory(prefix="adverse-") as logs:
        timer = threading.Timer(LONGEST_S, give_up)
        timer.start()
        try:
            engine = LocalEngine(1, Path(logs))
            work = StudyWork(plan.job, plan.registry)
            ends = [time.monotonic() for _ in engine.run(work, units, watch=_Silent(), stop=stop)]
        finally:
            timer.cancel()
    return ends[-1] - ends[-2] if len(ends) == len(units) else None


class _Silent:
    def note(self, text: str) -> None:
        pass

"""How long a study would take: a few images are timed, and what is done once: workers start, SUTs load."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from adverse.study.engines import Stop
from adverse.study.engines.local import LocalEngine
from adverse.study.job import WorkUnit
from adverse.study.plan import StudyPlan
from adverse.study.worker import StudyWork

SETTINGS_TRIED = 12
"""Settings of the sample, evenly spaced among those that are left to do; each is shown to every SUT."""
FRAMES_TRIED = 4
"""Up to so many frames of each are timed together, as a run does with all frames of a log."""
LONGEST_S = 30.0
"""What of a sample is not done by then does not count."""
HEARS_EVERY_S = 0.2
MAY_TAKE, RESULTS_S = 1.5, 10.0
"""Up to so many times what the sample says, and so much for reading the data and working out the results."""
LEAST_BUSY = 0.05
"""Cores that a worker takes at least: of one that only waits, twenty run beside each other on a core."""
WORTH_TIMING = 500
"""Images left from which on a run times a sample first; fewer are soon done."""


@dataclass(frozen=True)
class TimeEstimate:
    """Seconds that the rest of a study takes with so many workers, from a sample of so many images."""

    seconds: float
    workers: int
    images: int
    crowded: float = 1.0
    """How many programs want each core, those of others included: what is done once takes so much longer."""

    @property
    def longest_s(self) -> float:
        """What it may take with the results: other images may take longer, and curves have to be drawn."""
        return MAY_TAKE * self.seconds + RESULTS_S * self.crowded


def estimate_time(plan: StudyPlan, *, workers: int, stop: Stop | None = None) -> TimeEstimate | None:
    """Time a sample of what is left to do; None where nothing is, or where even two images take too long.

    A wish to `stop` ends the sample.
    """
    left = plan.to_do
    if not left or plan.blocked:
        return None
    sample = _sample(max(left, key=lambda unit: len(unit.cells)))
    ends, busy = _ends(plan, sample, stop)
    warm = len(sample) // 2 if len(ends) > len(sample) // 2 else 1
    images = sum(len(unit.cells) * len(unit.frames) for unit in sample[warm : len(ends)])
    if not images:
        return None
    per_image = (ends[-1] - ends[warm - 1]) / images
    side_by_side = min(float(workers), len(left), max(_cores() / max(busy, LEAST_BUSY), 1.0))
    warmed = sum(len(unit.cells) * len(unit.frames) for unit in sample[:warm])
    once = max(ends[warm - 1] - per_image * warmed, 0.0)
    return TimeEstimate(once + per_image * plan.pictures(left) / side_by_side, workers, images, _crowded())


def _sample(unit: WorkUnit) -> list[WorkUnit]:
    """Return a frame under each of some settings for every SUT, to warm up, then some frames under each.

    What a mutation or a SUT does once is no part of what an image takes, and counts once. Where not even the
    warming up ends in time, all of it but its first unit counts.
    """
    settings = sorted({cell.setting for cell in unit.cells})
    step = max(len(settings) / SETTINGS_TRIED, 1.0)
    chosen = [settings[int(number * step)] for number in range(min(SETTINGS_TRIED, len(settings)))]
    sample = []
    for frames in (1, FRAMES_TRIED):
        for number, setting in enumerate(chosen):
            cells = tuple(cell for cell in unit.cells if cell.setting == setting)
            first = number * len(unit.frames) // len(chosen)
            shown = unit.frames[first : first + frames]
            sample.append(replace(unit, frames=shown, cells=cells, twice=frozenset()))
    return sample


def _ends(plan: StudyPlan, units: Sequence[WorkUnit], outer: Stop | None) -> tuple[list[float], float]:
    """Return how long after the start each unit ended, of those that did within the longest time.

    Also how many cores were busy meanwhile: a SUT that waits for a server leaves room for more workers.
    """
    stop, over = Stop(), threading.Event()
    begun, before = time.monotonic(), _processor_s()
    latest = begun + LONGEST_S

    def give_up() -> None:
        while not over.wait(HEARS_EVERY_S):
            if time.monotonic() > latest or (outer is not None and outer.soft):
                stop.soft = stop.hard = True

    with tempfile.TemporaryDirectory(prefix="adverse-") as logs:
        threading.Thread(target=give_up, daemon=True).start()
        try:
            engine = LocalEngine(1, Path(logs))
            work = StudyWork(plan.job, plan.registry)
            ends = [time.monotonic() - begun for _ in engine.run(work, units, watch=_Silent(), stop=stop)]
            return ends, (_processor_s() - before) / (time.monotonic() - begun)
        finally:
            over.set()


def _processor_s() -> float:
    """Return the processor time of this process and of all children that have ended."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def _crowded() -> float:
    """Return the load of the last minute for each core, and 1 where there is room or nobody knows."""
    return max(os.getloadavg()[0] / _cores(), 1.0) if hasattr(os, "getloadavg") else 1.0


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Silent:
    def note(self, text: str) -> None:
        pass

    def under_way(self, answered: int) -> None:
        pass

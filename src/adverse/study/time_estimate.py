"""How long a study would take: a few images are timed, and what is done once: workers start, SUTs load."""

from __future__ import annotations

import heapq
import math
import os
import tempfile
import threading
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from adverse.study.engines import Stop
from adverse.study.engines.local import LocalEngine
from adverse.study.job import WorkUnit
from adverse.study.plan import StudyPlan
from adverse.study.worker import StudyWork
from adverse.types import Frame

SETTINGS_TRIED = 12
"""Settings of the sample, evenly spaced among those that are left to do; each is shown to every SUT."""
FRAMES_TRIED = 4
"""Frames that each worker of the sample is timed on, under all of these settings."""
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

    As many workers as have a core each do it beside each other, as they will share memory and caches in the
    run. A wish to `stop` ends the sample.
    """
    left = plan.to_do
    if not left or plan.blocked:
        return None
    beside = max(min(workers, _cores(), len(left)), 1)
    sample = _sample(left, beside, max((task.batch for task in plan.job.suts), default=1))
    ends, busy = _ends(plan, [*sample.warming, *sample.timed], beside, stop)
    warm = _warm(ends, sample, beside)
    images = sum(_images(unit) for unit, _ in ends[warm:])
    if not images:
        return None
    warm_s = ends[warm - 1][1]
    per_image = (ends[-1][1] - warm_s) * beside / images
    once = max(warm_s - per_image * sum(_images(unit) for unit, _ in ends[:warm]) / beside, 0.0)
    room = max(_cores() * beside / max(busy, LEAST_BUSY * beside), beside)
    side_by_side = min(float(workers), len(left), room)
    seconds = once + per_image * _longest_queue([_images(unit) for unit in left], side_by_side)
    return TimeEstimate(seconds, workers, images, _crowded())


class _Sample(NamedTuple):
    """Units that are timed, and before them those by which every worker pays for what is done once."""

    warming: list[WorkUnit]
    timed: list[WorkUnit]


def _sample(left: Sequence[WorkUnit], workers: int, batch: int) -> _Sample:
    """Return a frame under each of some settings for every SUT and worker, then frames under all of these.

    A frame is decoded once for all settings, as in a run, and frames stand together that a SUT takes in one
    batch. The frames are evenly spaced by the sizes of their files, so that few large images among many small
    ones have their share.
    """
    most = max(len(unit.cells) for unit in left)
    known = [(unit, frame) for unit in left if len(unit.cells) == most for frame in unit.frames]
    known.sort(key=lambda pair: _file_bytes(pair[1]))
    count = min(max(FRAMES_TRIED, 2 * min(batch, FRAMES_TRIED)) * workers, len(known))
    frames = [known[int((number + 0.5) * len(known) / count)] for number in range(count)]
    settings = sorted({cell.setting for cell in frames[0][0].cells})
    step = max(len(settings) / SETTINGS_TRIED, 1.0)
    chosen = [settings[int(number * step)] for number in range(min(SETTINGS_TRIED, len(settings)))]
    warming = [
        _cut(*frames[(n + k) % count], settings={setting})
        for n, setting in enumerate(chosen)
        for k in range(workers)
    ]
    together = min(batch, max(count // (2 * workers), 1))
    rows = -(-count // together)
    timed = []
    for row in (frames[number::rows] for number in range(rows)):
        cuts = [_cut(unit, frame, settings=set(chosen)) for unit, frame in row]
        files = {path: known_hash for cut in cuts for path, known_hash in cut.inputs.items()}
        timed.append(replace(cuts[0], frames=tuple(frame for _, frame in row), inputs=files))
    return _Sample(warming, timed)


def _cut(unit: WorkUnit, frame: Frame, *, settings: Collection[int]) -> WorkUnit:
    """Return one frame of a unit under some of its settings."""
    cells = tuple(cell for cell in unit.cells if cell.setting in settings)
    return replace(unit, frames=(frame,), cells=cells, twice=frozenset())


def _file_bytes(frame: Frame) -> int:
    try:
        return frame.image.path.stat().st_size
    except OSError:
        return 0


def _images(unit: WorkUnit) -> int:
    return len(unit.cells) * len(unit.frames)


Ends = list[tuple[WorkUnit, float]]


def _warm(ends: Ends, sample: _Sample, workers: int) -> int:
    """Return how many units had ended when every worker was warm.

    Where not even the warming up ended in time, all of it counts but the first unit of each worker.
    """
    timed = {id(unit) for unit in sample.timed}
    last = max((n for n, (unit, _) in enumerate(ends) if id(unit) not in timed), default=-1)
    ended = sum(id(unit) not in timed for unit, _ in ends)
    if ended == len(sample.warming) and last + 1 < len(ends):
        return last + 1
    return min(workers, max(len(ends) - 1, 1))


def _longest_queue(units: Sequence[int], side_by_side: float) -> float:
    """Return the images of the worker who ends last, where each takes the next unit when it is free.

    >>> _longest_queue([32, 32, 32], 2.0), _longest_queue([32, 32, 32], 1.5)
    (64.0, 64.0)
    """
    queues = [0] * max(math.ceil(side_by_side), 1)
    for images in units:
        heapq.heapreplace(queues, queues[0] + images)
    return max(float(max(queues)), sum(units) / side_by_side)


def _ends(plan: StudyPlan, units: Sequence[WorkUnit], workers: int, outer: Stop | None) -> tuple[Ends, float]:
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
            engine = LocalEngine(workers, Path(logs))
            work = StudyWork(plan.job, plan.registry)
            done = engine.run(work, units, watch=_Silent(), stop=stop)
            ends = [(unit, time.monotonic() - begun) for unit, _ in done]
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

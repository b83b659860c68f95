"""How long a study would take: a few images are timed, and what is done once: workers start, SUTs load."""

from __future__ import annotations

import heapq
import math
import os
import tempfile
import threading
import time
from collections import Counter
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
FRAMES_TRIED = 8
"""Frames of the largest pieces of work that a sample has for each worker; those before are half as large."""
LONGEST_S, TIMED_S = 30.0, 10.0
"""What of a sample is not done by then does not count: since its start, and since every worker was warm."""
HEARS_EVERY_S = 0.2
PROBE_LOOPS, PROBE_S = 3000, 0.068
"""A loop of Python, and the processor time that it takes where the following were measured."""
RESULTS_S, CURVE_S, SCORED_S, DRIVEN_S = 2.0, 0.015, 1e-4, 0.004
"""Processor time of results and report: in any case, for each curve with 1,000 resamples, for each image, and
for each log that a SUT drives under a setting."""
CURVES = 2
"""Curves of a level: two ways to count, or two kinds of truth."""
PICTURES = 24
"""Images that a report shows besides one for each setting: they are mutated again."""
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
    results_s: float = 0.0
    """What working out the results and drawing the report takes."""
    image_s: float = 0.0
    """What one worker takes for an image."""

    @property
    def with_results_s(self) -> float:
        """What the images take, and results and report after them."""
        return self.seconds + self.results_s


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
    ends, busy = _ends(plan, sample, beside, stop)
    warm = _warm(ends, sample, beside)
    images = sum(_images(unit) for unit, _ in ends[warm:])
    if not images:
        return None
    warm_s = ends[warm - 1][1]
    per_image = _per_image(ends[warm:], warm_s, beside) * beside
    once = max(warm_s - per_image * sum(_images(unit) for unit, _ in ends[:warm]) / beside, 0.0)
    room = max(_cores() * beside / max(busy, LEAST_BUSY * beside), beside)
    side_by_side = min(float(workers), len(left), room)
    seconds = once + per_image * _longest_queue([_images(unit) for unit in left], side_by_side)
    results_s = _results_s(plan, per_image) * _pace(beside / max(busy, LEAST_BUSY))
    return TimeEstimate(seconds, workers, images, results_s, per_image)


def _results_s(plan: StudyPlan, per_image_s: float) -> float:
    """Return the processor time of working out the results and drawing the report, as it was measured."""
    study, suts, settings = plan.file.study, len(plan.job.suts), len(plan.job.settings)
    seconds = RESULTS_S + SCORED_S * plan.pictures(plan.units) + (settings + PICTURES) * per_image_s
    if study.task == "detection":
        curves = CURVES * len(study.levels) * suts * (settings + 2)  # two worst cases
        seconds += CURVE_S * curves * max(study.robustness.bootstrap, 1) / 1000
    if "loop" in study.levels:
        logs = sum(log.split == "test" for log in plan.dataset.logs)
        seconds += DRIVEN_S * logs * suts * settings
    return seconds


def _pace(crowded: float) -> float:
    """Return how much longer a program takes here and now than its time was measured.

    That is how much slower this processor is, and how long one waits for it: in the sample each worker had
    one core in `crowded`, unless it waited for something else.
    """
    begun, before = time.monotonic(), time.process_time()
    for _ in range(PROBE_LOOPS):
        sum(range(2000))
    used_s = max(time.process_time() - before, 1e-6)
    waited = (time.monotonic() - begun) / used_s
    return used_s / PROBE_S * max(min(waited, crowded), 1.0)


class _Sample(NamedTuple):
    """Units that are timed, and before them those by which every worker pays for what is done once."""

    warming: list[WorkUnit]
    timed: list[WorkUnit]


def _sample(left: Sequence[WorkUnit], workers: int, batch: int) -> _Sample:
    """Return a frame under each of some settings for every SUT and worker, then frames under all of these.

    A frame is decoded once for all settings, as in a run. Of the timed units each worker has one of one
    frame, one of two, four and so on, up to what a run has: so a slow SUT is timed at all, and what a unit
    takes besides its images counts as often as in a run. The frames of a round are evenly spaced by the sizes
    of their files, so that few large images among many small ones have their share.
    """
    most = max(len(unit.cells) for unit in left)
    known = [(unit, frame) for unit in left if len(unit.cells) == most for frame in unit.frames]
    known.sort(key=lambda pair: _file_bytes(pair[1]))
    settings = sorted({cell.setting for cell in known[0][0].cells})
    step = max(len(settings) / SETTINGS_TRIED, 1.0)
    chosen = [settings[int(number * step)] for number in range(min(SETTINGS_TRIED, len(settings)))]
    few = _spaced(known, min(workers * FRAMES_TRIED, len(known)))
    warming = [
        _cut(*few[number % len(few)], settings={setting})
        for number, setting in enumerate(_by_turns(chosen, workers))
    ]
    whole = min(max(FRAMES_TRIED, batch), max(len(unit.frames) for unit in left))
    timed = []
    size = 1
    while size <= whole and size * workers <= len(known):
        frames = _spaced(known, size * workers)
        timed += [_joined(frames[number::workers], set(chosen)) for number in range(workers)]
        size *= 2
    return _Sample(warming, timed or [_joined(known[:1], set(chosen))])


def _by_turns(settings: Sequence[int], workers: int) -> list[int]:
    """Return every setting once for each worker; those who take one in turn have different ones.

    What a mutation compiles is kept on disk: one worker compiles it, and the others find it there later.
    Neighbours share loops more often than others, and go to the same worker one after the other.

    >>> _by_turns([0, 1, 2, 3, 4], 2)
    [0, 3, 1, 4, 2, 0, 3, 1, 4, 2]
    """
    apart = math.ceil(len(settings) / workers)
    return [
        settings[(place + worker * apart) % len(settings)]
        for place in range(len(settings))
        for worker in range(workers)
    ]


def _spaced(known: Sequence[tuple[WorkUnit, Frame]], count: int) -> list[tuple[WorkUnit, Frame]]:
    return [known[int((number + 0.5) * len(known) / count)] for number in range(count)]


def _joined(pairs: Sequence[tuple[WorkUnit, Frame]], settings: Collection[int]) -> WorkUnit:
    """Return frames of several units as one unit."""
    cuts = [_cut(unit, frame, settings=settings) for unit, frame in pairs]
    files = {path: known_hash for cut in cuts for path, known_hash in cut.inputs.items()}
    return replace(cuts[0], frames=tuple(frame for _, frame in pairs), inputs=files)


def _per_image(timed: Ends, since_s: float, workers: int) -> float:
    """Return what an image takes all workers together, by the largest units that each of them has done."""
    units = Counter(len(unit.frames) for unit, _ in timed)
    whole = max((size for size, count in units.items() if count == workers), default=None)
    places = [n for n, (unit, _) in enumerate(timed) if whole in (None, len(unit.frames))]
    first, last = places[0], places[-1]
    begun_s = timed[first - 1][1] if first else since_s
    return (timed[last][1] - begun_s) / sum(_images(unit) for unit, _ in timed[first : last + 1])


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


def _ends(plan: StudyPlan, sample: _Sample, workers: int, outer: Stop | None) -> tuple[Ends, float]:
    """Return how long after the start each unit ended, of those that did within the longest time.

    Also how many cores were busy meanwhile: a SUT that waits for a server leaves room for more workers.
    """
    stop, over = Stop(), threading.Event()
    begun, before = time.monotonic(), _processor_s()
    latest = [begun + LONGEST_S]

    def give_up() -> None:
        while not over.wait(HEARS_EVERY_S):
            if time.monotonic() > min(latest) or (outer is not None and outer.soft):
                stop.soft = stop.hard = True

    with tempfile.TemporaryDirectory(prefix="adverse-") as logs:
        threading.Thread(target=give_up, daemon=True).start()
        try:
            engine = LocalEngine(workers, Path(logs))
            work = StudyWork(plan.job, plan.registry)
            ends: Ends = []
            for unit, _ in engine.run(work, [*sample.warming, *sample.timed], watch=_Silent(), stop=stop):
                ends.append((unit, time.monotonic() - begun))
                if len(ends) == len(sample.warming) + workers:  # the first round is done in any case
                    latest.append(time.monotonic() + TIMED_S)
            return ends, (_processor_s() - before) / (time.monotonic() - begun)
        finally:
            over.set()


def _processor_s() -> float:
    """Return the processor time of this process and of all children that have ended."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Silent:
    def note(self, text: str) -> None:
        pass

    def under_way(self, answered: int) -> None:
        pass

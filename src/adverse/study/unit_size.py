"""How many frames a unit of work holds, where the study leaves it open.

Small units cost more: each is sent, decoded, written and acknowledged, the last two by one process for all
workers. Large ones leave most workers idle at the end, while the last are done. What is chosen is the size
for which both together are least; bench/many_workers.py plays it through with stragglers and lost workers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from adverse.study.engines import Stop
from adverse.study.plan import StudyPlan, recut
from adverse.study.spec import AUTO
from adverse.study.time_estimate import estimate_time

WRITING_S = 0.012
"""What the process that writes takes for a unit: 3 ms of processor time, measured, and two syncs."""
UNIT_S = 0.03
"""What a worker takes for a unit besides its images: 6 ms of processor time, measured, and the way there."""
TAIL_UNITS = 2.0
"""Units that a worker does, one after the other, while the others have run out: one that was just begun, and
one that a straggler takes as much longer."""
LARGEST = 256
"""Frames of the largest unit that is chosen: what is lost with a worker is bounded."""


def wall_s(size: int, *, frame_s: float, frames: int, workers: int) -> float:
    """Return about how long so many frames take in units of a size.

    `frame_s` is what a worker takes for a frame under all settings for all SUTs.
    """
    units = -(-frames // size)
    worker_s = (frames * frame_s + units * UNIT_S) / min(workers, units)
    return max(worker_s, units * WRITING_S) + TAIL_UNITS * size * frame_s


def best_unit_frames(*, frame_s: float, frames: int, workers: int, batch: int = 1) -> int:
    """Return the best of 1, 2, 4 and so on frames for a unit, no fewer than a batch holds.

    >>> best_unit_frames(frame_s=27.6, frames=24000, workers=1000)  # 276 images of .1 s each
    1
    >>> best_unit_frames(frame_s=0.02, frames=24000, workers=2)
    128
    """
    powers = (1 << power for power in range(LARGEST.bit_length()))
    sizes = [size for size in powers if size >= batch] or [batch]
    return min(sizes, key=lambda size: wall_s(size, frame_s=frame_s, frames=frames, workers=workers))


def settle_unit_frames(
    plan: StudyPlan, before: Mapping[str, Any], *, workers: int, stop: Stop | None = None
) -> StudyPlan:
    """Return a plan cut as its run folder is, or, in a new one, as a timed sample says.

    `before` is the manifest of the folder, or nothing.
    """
    if plan.file.study.unit_frames != AUTO or plan.blocked:
        return plan
    known = before.get("study", {}).get("unit_frames")
    if known is not None:
        return recut(replace(plan, unit_frames=int(known)))
    time = estimate_time(plan, workers=workers or 1, stop=stop)
    if time is None:
        return replace(plan, unit_frames=plan.file.unit_frames)
    frames = sum(len(unit.frames) for unit in plan.units)
    size = best_unit_frames(
        frame_s=time.image_s * plan.pictures(plan.units) / max(frames, 1),
        frames=frames,
        workers=workers or 1,
        batch=max((task.batch for task in plan.job.suts), default=1),
    )
    return recut(replace(plan, unit_frames=size))

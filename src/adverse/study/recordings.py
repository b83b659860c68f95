"""Long recordings in a first study: which frames are looked at, and how they are cut into logs.

A first run should take minutes, whatever the length of the video. Frames are left out between others as long
as those that stay can be linked over time; of what is still too long, pieces spread over all of it are kept.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from adverse.types import Dataset

MOST_FRAMES = 400
"""That a first study looks at, about: with seven mutations, some thousand answers of a model."""
EVERY = "every"
"""The option of a format that takes each n-th frame."""
STEP_S = 0.2
"""Between frames, at most, when some are left out: an object is still near where it was."""
LINKED_S = 0.5
"""Between frames, at most, for what is over time to be measured."""
LEAST_LOGS = 20
SHORTEST_S, LONGEST_S = 2.0, 10.0
"""Recordings fewer than that are cut into pieces of such lengths: as many as that, if they last."""


def frames_left_out(dataset: Dataset, options: Collection[str]) -> dict[str, Any]:
    """Return the option by which fewer frames of too long recordings are taken; none where all can be."""
    steps = [step for log in dataset.logs for step in np.diff(_times_s(log.frames))]
    total = sum(len(log.frames) for log in dataset.logs)
    if EVERY not in options or total <= MOST_FRAMES or not np.isfinite(steps).all():
        return {}
    every = min(-(-total // MOST_FRAMES), int(STEP_S / float(np.median(steps)) + 1e-6))
    return {EVERY: every} if every > 1 else {}


def cut_into_logs(dataset: Dataset, assumed: list[str]) -> dict[str, Any]:
    """Return how few long recordings are cut into logs, so that there is something to resample.

    Of more frames than a first study takes, only some of the pieces are kept, spread over all of it.
    """
    if len(dataset.logs) >= LEAST_LOGS or any(
        frame.time_s is None for log in dataset.logs for frame in log.frames
    ):
        return {}
    span = sum(float(np.ptp(_times_s(log.frames))) for log in dataset.logs if log.frames)
    total = sum(len(log.frames) for log in dataset.logs)
    seconds = min(max(round(span / LEAST_LOGS, 1), SHORTEST_S), LONGEST_S)
    if span < 2 * seconds:
        return {}
    recordings = f"{len(dataset.logs)} recording{'s are' if len(dataset.logs) > 1 else ' is'}"
    keep = {}
    if total > 2 * MOST_FRAMES:
        seconds = min(max(round(MOST_FRAMES / LEAST_LOGS * span / total, 1), SHORTEST_S), LONGEST_S)
        keep = {"keep": LEAST_LOGS}
    assumed.append(
        f"{recordings} cut into logs of {seconds:g} s (cut), to have something to resample; they are alike, "
        "so intervals are about these recordings alone"
    )
    if keep:
        assumed.append(
            f"{LEAST_LOGS} of these logs, spread over all {span / 60:.0f} minutes, are looked at (keep), so "
            "that a first run takes minutes; without keep it is all"
        )
    return {"cut": {"seconds": seconds, **keep}}


def linked(dataset: Dataset) -> bool:
    """Return whether frames follow each other fast enough for an object to be the same in the next one."""
    return any(
        0 <= step <= LINKED_S for log in dataset.logs[:1] for step in np.diff(_times_s(log.frames[:2]))
    )


def _times_s(frames: Collection[Any]) -> Any:
    """Return the times of frames, NaN where one has none."""
    return np.array([np.nan if frame.time_s is None else frame.time_s for frame in frames])

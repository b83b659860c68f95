"""Cutting long logs that are never free of targets into stretches: some without any, and the rest.

Safety is measured on logs with targets, efficiency on logs without. A drive through a town is of the first
kind, but it has stretches that could be of the second: they become negative logs of their own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import groupby

from adverse.types import Dataset, Frame, Log


def cut_negative_runs(dataset: Dataset, targets: Collection[str], min_frames: int) -> Dataset:
    """Return the data set with every stretch of at least so many frames without a target as a log.

    What lies between them stays together, so every other log holds a target. A target that is ignored is
    one. Logs without any target, and those with no such stretch, stay as they are; a log that is cut is
    numbered: drive:1, drive:2. Frames keep their ids.
    """
    wanted = {number for number, name in enumerate(dataset.categories) if name in targets}
    logs = [part for log in dataset.logs for part in _cut(log, wanted, min_frames)]
    return replace(dataset, logs=tuple(logs))


def _cut(log: Log, wanted: set[int], min_frames: int) -> Iterator[Log]:
    parts: list[list[Frame]] = []
    kinds: list[bool] = []
    for empty, members in groupby(
        log.frames, key=lambda frame: wanted.isdisjoint(frame.truth.labels.tolist())
    ):
        run = list(members)
        negative = empty and len(run) >= min_frames
        if kinds and not negative and not kinds[-1]:
            parts[-1] += run
        else:
            parts.append(run)
            kinds.append(negative)
    if len(parts) == 1:
        yield log
        return
    for number, part in enumerate(parts, start=1):
        name = f"{log.id}:{number}"
        frames = tuple(replace(frame, log_id=name, index=index) for index, frame in enumerate(part))
        yield replace(log, id=name, frames=frames)

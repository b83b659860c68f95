"""Cut long logs that are never free of people: each long stretch without any becomes a negative log.

False alarms are counted where nobody is, and a log is negative only if nobody is in it at all. Where every
recording meets somebody sooner or later (KITTI), its empty stretches serve.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from adverse.types import Dataset, Frame, Log


def cut_negative_runs(dataset: Dataset, targets: Sequence[str], *, min_frames: int) -> Dataset:
    """Return the data set with every stretch of at least `min_frames` frames without a target as a log.

    What lies between such stretches becomes logs too, positive ones. A log that has no target in it, or no
    such stretch, stays as it is. The pieces are called LOG:FIRST-LAST, by the index of their frames.
    """
    wanted = [number for number, name in enumerate(dataset.categories) if name in targets]
    logs = tuple(piece for log in dataset.logs for piece in _cut(log, wanted, min_frames))
    return replace(dataset, logs=logs)


def _cut(log: Log, wanted: Sequence[int], min_frames: int) -> Iterator[Log]:
    shows = [bool(np.isin(frame.truth.labels, wanted).any()) for frame in log.frames]
    starts = _starts(shows, min_frames)
    if not any(shows) or len(starts) == 1:
        yield log
        return
    for start, end in zip(starts, [*starts[1:], len(shows)], strict=True):
        frames = log.frames[start:end]
        name = f"{log.id}:{frames[0].index}-{frames[-1].index}"
        yield replace(log, id=name, frames=tuple(_moved(frame, name) for frame in frames))


def _starts(shows: Sequence[bool], min_frames: int) -> list[int]:
    """Return where pieces begin: at the first frame, at each long empty stretch, and after it.

    >>> _starts([True, False, False, False, True, False], 2)
    [0, 1, 4]
    """
    starts = {0} if shows else set()
    begin = 0
    for at in range(len(shows) + 1):
        if at == len(shows) or shows[at]:
            if at - begin >= min_frames:
                starts |= {begin, at} - {len(shows)}
            begin = at + 1
    return sorted(starts)


def _moved(frame: Frame, log_id: str) -> Frame:
    return replace(frame, log_id=log_id)

"""Parts of a data set: its splits by name, stretches of long logs, and the first few frames.

`split: {validation: val, test: test}` names splits. Safety is measured on logs with targets, efficiency on
logs without. A drive through a town is of the first kind, but it has stretches that could be of the second:
they become negative logs of their own.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from adverse.data.shots import shot_changes
from adverse.errors import StudyError
from adverse.types import Dataset, Frame, Log, Split

FIELD = "{split}"


def named(split: Mapping[Split, str] | None) -> list[tuple[Split, str | None, str]]:
    """Return (split, its name in the data, prefix of ids); ids need a prefix only among several splits.

    >>> named(None)
    [('test', None, '')]
    >>> named({"validation": "val", "test": "test"})
    [('validation', 'val', 'validation/'), ('test', 'test', 'test/')]
    """
    if split is None:
        return [("test", None, "")]
    if not split or len(set(split.values())) != len(split):
        raise StudyError(
            "each split needs data of its own",
            where="data.split",
            got=str(dict(split)),
            wanted="different names, such as {validation: val, test: test}",
            fix="Give every split its own name, or leave split out.",
        )
    several = len(split) > 1
    return [(kind, name, f"{kind}/" if several else "") for kind, name in split.items()]


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
    yield from _numbered(log, parts)


def cut_logs(
    dataset: Dataset,
    *,
    seconds: float | None = None,
    frames: int | None = None,
    shots: bool = False,
    keep: int | None = None,
) -> Dataset:
    """Return the data set with its logs cut into pieces of so many seconds or frames, or where shots change.

    So one long recording becomes something to resample. Pieces are numbered: drive:1, drive:2; frames keep
    their ids. A last piece of less than half the length stays with the one before. Of the test logs that
    come out at most `keep` stay, evenly spaced over all of them.
    """
    logs: list[Log] = []
    for log in dataset.logs:
        if shots:
            starts = shot_changes(log.frames)
        elif frames is not None:
            starts = list(range(0, len(log.frames), frames))
        else:
            starts = _starts(log, seconds or 0.0)
        if not shots and len(starts) > 1:
            whole, last = starts[-1] - starts[-2], len(log.frames) - starts[-1]
            starts = starts[:-1] if 2 * last < whole else starts
        ends = [*starts[1:], len(log.frames)]
        logs += list(_numbered(log, [log.frames[a:b] for a, b in zip(starts, ends, strict=True)]))
    test = [log.id for log in logs if log.split == "test"]
    if keep is not None and len(test) > keep:
        kept = {test[(2 * number + 1) * len(test) // (2 * keep)] for number in range(keep)}
        logs = [log for log in logs if log.split != "test" or log.id in kept]
    return replace(dataset, logs=tuple(logs))


def _starts(log: Log, seconds: float) -> list[int]:
    times = [frame.time_s for frame in log.frames]
    if len(times) > 1 and None in times:
        raise StudyError(
            "a log without times cannot be cut by seconds",
            where=f"data.cut, log {log.id!r}",
            got=f"{times.count(None)} of {len(times)} frames without a time",
            fix="Cut it by frames, as in cut: {frames: 100}.",
        )
    pieces = [int(((time or 0.0) - (times[0] or 0.0)) / seconds + 1e-9) for time in times]
    return [at for at, piece in enumerate(pieces) if at == 0 or piece != pieces[at - 1]]


def _numbered(log: Log, parts: Sequence[Sequence[Frame]]) -> Iterator[Log]:
    """Yield the parts of a log as logs of their own; a log in one part stays as it is."""
    if len(parts) == 1:
        yield log
        return
    for number, part in enumerate(parts, start=1):
        name = f"{log.id}:{number}"
        frames = tuple(replace(frame, log_id=name, index=index) for index, frame in enumerate(part))
        yield replace(log, id=name, frames=frames)


def thinned(dataset: Dataset, test_frames: int) -> Dataset:
    """Return the data set with at most so many test frames, evenly spaced over all of them.

    Logs keep their order and their ids; a log that loses all its frames is left out.
    """
    total = sum(len(log.frames) for log in dataset.logs if log.split == "test")
    if total <= test_frames:
        return dataset
    places = {number * total // test_frames for number in range(test_frames)}
    count = itertools.count()
    logs = []
    for log in dataset.logs:
        if log.split == "test":
            log = replace(log, frames=tuple(frame for frame in log.frames if next(count) in places))  # noqa: PLW2901
        if log.frames:
            logs.append(log)
    return replace(dataset, logs=tuple(logs))

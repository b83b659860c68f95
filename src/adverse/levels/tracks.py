"""Time in the metrics: how steadily an object is seen, over the frames of its log.

A track is one true object over the frames of a log. Where the truth says who is who, by its ids, those are
taken; where it does not (annotations of single images, clean answers of a label-free run), boxes are linked
from frame to frame by their overlap. At each frame of its track an object is seen or not, at the operating
point.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from adverse.levels.context import LevelInput, LogScores
from adverse.levels.match import HIT
from adverse.plugins import metric
from adverse.store.tables import Frames, TruthTable

LINK_IOU = 0.3
"""Overlap from which boxes of two frames may be one object."""
LINKED_S = 0.5
"""Time between frames up to which an object is near enough to where it was to be linked."""
COAST = 2
"""Frames that an object may be missing in before it counts as another one."""


class Track(NamedTuple):
    """An object of a log: when it is there (n,), in seconds, and whether it is seen each time (n,).

    `range_m` (n,) is how far from the camera it is on the ground each time; NaN where nobody knows.
    """

    log: int
    time_s: NDArray[np.float64]
    seen: NDArray[np.bool_]
    range_m: NDArray[np.float64]

    def gaps_s(self) -> list[float]:
        """Return for how long it is lost, each time that it is, after it was seen first; also at the end."""
        seen = np.flatnonzero(self.seen)
        if not len(seen):
            return []
        between = [float(self.time_s[b] - self.time_s[a]) for a, b in itertools.pairwise(seen) if b > a + 1]
        last = float(self.time_s[-1] - self.time_s[seen[-1]])
        return [*between, *([last] if last > 0 else [])]

    def stable_m(self) -> float | None:
        """Return the largest distance up to which it is seen every time; 0: not even at its nearest.

        None where its distance is not known at all; times without a distance say nothing.
        """
        known = np.isfinite(self.range_m)
        if not known.any():
            return None
        missed = self.range_m[known & ~self.seen]
        nearer = self.range_m[known & self.seen]
        nearer = nearer[nearer < missed.min()] if len(missed) else nearer
        return float(nearer.max()) if len(nearer) else 0.0

    def losses(self) -> int:
        """Return how often it is lost and found again."""
        seen = np.flatnonzero(self.seen)
        return int((np.diff(seen) > 1).sum())


@metric(title="times lost and found again, per object that is found", highest=math.inf, lower_is_better=True)
def flicker(given: LevelInput) -> LogScores:
    """Count how often an object is lost and found again within its track."""
    return _mean(given, [(track.log, track.losses()) for track in tracks(given) if track.seen.any()])


@metric(title="seconds, mean over objects that are found", highest=math.inf, lower_is_better=True)
def longest_gap(given: LevelInput) -> LogScores:
    """Average the longest time that an object is lost after it was first seen."""
    rows = [(track.log, max(track.gaps_s(), default=0.0)) for track in tracks(given) if track.seen.any()]
    return _mean(given, rows)


@metric(
    title="seconds until an object is first found; never: as long as it is there",
    highest=math.inf,
    lower_is_better=True,
)
def time_to_first(given: LevelInput) -> LogScores:
    """Average how long an object is there before it is first seen."""
    rows = []
    for track in tracks(given):
        first = int(np.argmax(track.seen)) if track.seen.any() else -1
        rows.append((track.log, float(track.time_s[first] - track.time_s[0])))
    return _mean(given, rows)


@metric(
    title="metres at which an object is first found, mean over objects found", highest=math.inf, placed=True
)
def distance_at_first(given: LevelInput) -> LogScores:
    """Average how far away objects are when they are first seen."""
    rows = []
    for track in tracks(given):
        known = np.flatnonzero(track.seen & np.isfinite(track.range_m))
        if len(known) and known[0] == int(np.argmax(track.seen)):
            rows.append((track.log, float(track.range_m[known[0]])))
    return _mean(given, rows)


@metric(title="metres up to which an object is found every time, mean", highest=math.inf, placed=True)
def stable_range(given: LevelInput) -> LogScores:
    """Average the distance up to which an object is seen in every frame."""
    rows = [(track.log, track.stable_m()) for track in tracks(given)]
    return _mean(given, [(log, value) for log, value in rows if value is not None])


@metric(title="objects found at least once")
def ever_found(given: LevelInput) -> LogScores:
    """Count the objects that are seen in at least one frame of their track."""
    return _mean(given, [(track.log, float(track.seen.any())) for track in tracks(given)])


def tracks(given: LevelInput) -> Iterator[Track]:
    """Yield the tracks of all logs with times, over the frames that count; ignored objects have none."""
    truth, frames = given.truth, given.frames
    hit = given.matched.outcome == HIT
    hit &= given.answers.scores >= given.thresholds[0]
    seen = np.zeros(len(truth.frame), np.bool_)
    seen[given.matched.truth[hit]] = True
    who = identities(truth, frames)
    there = given.counted[truth.frame] & ~truth.ignore & (who >= 0)
    there &= np.isfinite(frames.time_s[truth.frame])
    rows = np.flatnonzero(there)
    range_m = ranges_m(given)
    order = rows[np.lexsort((truth.frame[rows], who[rows]))]
    for part in np.split(order, np.flatnonzero(np.diff(who[order])) + 1):
        if len(part):
            at = truth.frame[part]
            yield Track(int(frames.log[at[0]]), frames.time_s[at], seen[part], range_m[part])


def ranges_m(given: LevelInput) -> NDArray[np.float64]:
    """Return how far from the camera each true object is (T,): as annotated, or else by depth.

    Where no pose says where the ground is, it is the depth itself; NaN where nobody knows.
    """
    found = np.full(len(given.truth.frame), np.nan)
    for known in (*(true.places.range_m for true in given.true_places.values()), given.context.localized_m):
        found = np.where(np.isnan(found), known, found)
    return found


def identities(truth: TruthTable, frames: Frames) -> NDArray[np.int64]:
    """Return which object each row of the truth is (T,), counted over all logs; -1 for ignored ones.

    In each log by the ids of the truth where one of them occurs in two of its frames, else linked by overlap.
    """
    log = frames.log[truth.frame]
    labels = np.where(truth.ignore, -1, truth.labels)
    if truth.ids is None:
        return linked(truth.frame, truth.boxes, labels, log)
    _, who, often = np.unique(
        np.stack([log, labels, truth.ids], axis=1), axis=0, return_inverse=True, return_counts=True
    )
    who = who.reshape(-1)
    known = (labels >= 0) & np.isin(log, log[(labels >= 0) & (often[who] > 1)])
    found = linked(truth.frame, truth.boxes, np.where(known, -1, labels), log)
    found[known] = who[known] + found.max(initial=-1) + 1
    return found


class _Open(NamedTuple):
    who: int
    label: int
    box: NDArray[np.float64]
    place: int


def linked(
    frame: NDArray[np.int64], boxes: NDArray[np.float64], labels: NDArray[np.int64], log: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Link boxes from frame to frame: the pairs of one class with the largest overlap in all, within a log.

    Rows with a label below 0 are left out (-1). An object may be missing in `COAST` frames in between; the
    frames of a log that have no box at all count too, as they are numbered.
    """
    found = np.full(len(frame), -1, np.int64)
    count = 0
    for number in np.unique(log):
        waiting: list[_Open] = []
        inside = np.flatnonzero((log == number) & (labels >= 0))
        for place in np.unique(frame[inside]):
            rows = inside[frame[inside] == place]
            waiting = [one for one in waiting if place - one.place <= COAST + 1]
            overlap = np.array(
                [[_iou(one.box, boxes[row]) * (one.label == labels[row]) for row in rows] for one in waiting]
            )
            taken: dict[int, _Open] = {}
            if waiting:
                linked = scipy.optimize.linear_sum_assignment(np.where(overlap >= LINK_IOU, -overlap, 0.0))
                for a, b in zip(*linked, strict=True):
                    if overlap[a, b] >= LINK_IOU:
                        taken[int(b)] = waiting[int(a)]
            after = []
            for b, row in enumerate(rows):
                who = taken[b].who if b in taken else count
                count += b not in taken
                found[row] = who
                after.append(_Open(who, int(labels[row]), boxes[row], int(place)))
            kept = {one.who for one in after}
            waiting = [*after, *(one for one in waiting if one.who not in kept)]
    return found


def _iou(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    shared = float(width * height)
    return shared / float((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - shared)


def _mean(given: LevelInput, rows: list[tuple[int, float]]) -> LogScores:
    logs = len(given.frames.logs)
    log = np.array([log for log, _ in rows], np.int64)
    values = np.array([value for _, value in rows], np.float64)
    return LogScores(
        np.bincount(log, values, minlength=logs).astype(np.float64),
        np.bincount(log, minlength=logs).astype(np.float64),
    )

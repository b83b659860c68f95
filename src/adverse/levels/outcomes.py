"""What every level comes to: events, and from them counts per log and sensitivity level.

A curve is a ratio of sums over logs, so whatever is done to logs (resampling, leaving one out) is done to
these counts. With as many levels as there are scores, counts per log would be too many to hold; the curve
over all logs is made from the events themselves.

Sensitivity is standardized: raw scores of different SUTs cannot be compared, the rate of false positives they
cost can. A sensitivity is such a rate on un-mutated validation images, and maps to the lowest threshold whose
rate does not exceed it; mutated images are evaluated at the same thresholds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from adverse.marks import Cost
from adverse.store.tables import Frames, TruthTable

AT_0 = "at_0"
"""The name of the hits at tolerance 0, beside those at the robot's tolerance."""


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Counts for L logs and K levels.

    `hits` (L,K) of `truths` (L,) ended well. `cost` (L,K) on `exposure` (L,) is what that took: false
    alarms on images (`kind` alarms), or the seconds it drove where the truth would have taken `exposure`
    seconds (time). `left_out` counts the logs that say nothing at this level, by reason.
    """

    logs: tuple[str, ...]
    hits: NDArray[np.int64]
    truths: NDArray[np.int64]
    cost: NDArray[np.float64]
    exposure: NDArray[np.float64]
    kind: Cost = "alarms"
    left_out: Mapping[str, int] = field(default_factory=dict)
    beside: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    """Further counts (L,K) of the same truths, by name."""
    measured: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """What was measured (L,K) where there is a truth, by name; NaN elsewhere."""

    def with_hits(self, name: str) -> Outcomes:
        """Return the same with one of the further counts as its hits."""
        return replace(self, hits=self.beside[name], beside={}, measured={})

    def safety(self) -> NDArray[np.float64]:
        """Return the share that ended well at each level; NaN where there is no truth."""
        return _ratio(self.hits.sum(axis=0).astype(np.float64), float(self.truths.sum()))

    def false_rate(self) -> NDArray[np.float64]:
        """Return the alarms per image at each level; NaN where there is no image."""
        return _ratio(self.cost.sum(axis=0), float(self.exposure.sum()))

    def efficiency(self, fpr_max: float) -> NDArray[np.float64]:
        """Return 1 - min(alarms per image / fpr_max, 1), or the truth's time over the time it took."""
        if self.kind == "time":
            with np.errstate(divide="ignore"):
                return 1.0 / self.false_rate()
        return 1.0 - np.minimum(self.false_rate() / fpr_max, 1.0)


@dataclass(frozen=True, eq=False)
class Events:
    """Hits and false alarms as (log, first level at which each counts); the rest as in Outcomes."""

    logs: tuple[str, ...]
    hit_log: NDArray[np.int64]
    hit_level: NDArray[np.int64]
    truths: NDArray[np.int64]
    alarm_log: NDArray[np.int64]
    alarm_level: NDArray[np.int64]
    exposure: NDArray[np.float64]
    left_out: Mapping[str, int] = field(default_factory=dict)
    beside: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    """Other first levels of the same hits, by name; see Outcomes."""

    def with_hits(self, name: str) -> Events:
        """Return the same with some of the other first levels as those of its hits."""
        return replace(self, hit_level=self.beside[name], beside={})

    def outcomes(self, levels: int) -> Outcomes:
        """Count by log at so many levels."""
        groups = len(self.logs)
        hits = counts_by_level(self.hit_log, self.hit_level, groups, levels)
        alarms = counts_by_level(self.alarm_log, self.alarm_level, groups, levels)
        return Outcomes(
            self.logs,
            hits,
            self.truths,
            alarms.astype(np.float64),
            self.exposure,
            left_out=self.left_out,
            beside={
                name: counts_by_level(self.hit_log, level, groups, levels)
                for name, level in self.beside.items()
            },
        )

    def at(self, chosen: NDArray[np.int64]) -> Events:
        """Return the same events where only some of the levels are left, rising numbers of them."""
        hits, alarms = (np.searchsorted(chosen, levels) for levels in (self.hit_level, self.alarm_level))
        beside = {name: np.searchsorted(chosen, levels) for name, levels in self.beside.items()}
        return replace(self, hit_level=hits, alarm_level=alarms, beside=beside)


def counts_by_level(
    group: NDArray[np.int64], level: NDArray[np.int64], groups: int, levels: int
) -> NDArray[np.int64]:
    """Count events per group and level; an event counts at its first level and at all later ones."""
    table = np.bincount(group * (levels + 1) + level, minlength=groups * (levels + 1))
    return table.reshape(groups, levels + 1)[:, :levels].cumsum(axis=1)


def _ratio(part: NDArray[np.float64], whole: float) -> NDArray[np.float64]:
    return part / whole if whole else np.full(len(part), np.nan)


ROUNDING = 1e-9
"""Relative slack when a rate is compared with a level, so that 1 / 100 does not exceed 0.01."""


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """Sensitivities (K,) and, for one SUT, the threshold of each: a detection counts if score >= threshold.

    `resolved` is False where a sensitivity is finer than one false positive in all validation images.
    `false_scores` are those of the false positives on the validation images, falling.
    """

    levels: NDArray[np.float64]
    thresholds: NDArray[np.float32]
    resolved: NDArray[np.bool_]
    images: int
    false_scores: NDArray[np.float32]

    def at(self, thresholds: NDArray[np.float32]) -> Sensitivity:
        """Return other thresholds of the same SUT, each with the sensitivity it has; NaN without images.

        >>> standardize(np.float32([0.9, 0.5]), 10, np.array([0.1])).at(np.float32([1, 0.9, 0.5])).levels
        array([0. , 0.1, 0.2])
        """
        counts = len(self.false_scores) - np.searchsorted(self.false_scores[::-1], thresholds, side="left")
        rates = counts / self.images if self.images else np.full(len(thresholds), np.nan)
        return Sensitivity(rates, thresholds, counts >= 1, self.images, self.false_scores)


def grid(count: int, lowest: float, highest: float) -> NDArray[np.float64]:
    """Return log-spaced levels, ascending, both ends exact."""
    return np.geomspace(lowest, highest, count)


def nearest(levels: NDArray[np.float64], sensitivity: float) -> int:
    """Return which level is nearest to a sensitivity, by their ratio."""
    return int(np.argmin(np.abs(np.log(levels) - np.log(sensitivity))))


def standardize(false_scores: NDArray[np.float32], images: int, levels: NDArray[np.float64]) -> Sensitivity:
    """Map each level to the lowest threshold that costs at most that many false positives per image.

    `false_scores` are the scores of all false positives on the validation images. With no images every
    level is unresolved and its threshold infinite: nothing is known, so nothing counts.

    >>> standardize(np.float32([0.9, 0.5]), 10, np.array([0.05, 0.1, 1.0])).thresholds
    array([0.90000004, 0.50000006,       -inf], dtype=float32)
    """
    falling = np.sort(np.asarray(false_scores, np.float32))[::-1]
    allowed = np.floor(levels * images * (1 + ROUNDING)).astype(np.int64)
    thresholds = np.full(len(levels), -np.inf, np.float32)
    limited = allowed < len(falling)
    # with k false positives allowed, the (k+1)-th strongest must not count, nor its equals
    thresholds[limited] = np.nextafter(falling[allowed[limited]], np.float32(np.inf))
    if images == 0:
        thresholds[:] = np.inf
    resolved = levels * images * (1 + ROUNDING) >= 1
    return Sensitivity(levels, thresholds, resolved, images, falling)


def first_level(scores: NDArray[np.float32], thresholds: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return for each score the first level at which it counts; len(thresholds) if at none.

    Thresholds never rise from one level to the next, so a score counts at all later levels too.
    """
    order = np.argsort(scores)
    first = np.empty(len(scores), np.int64)
    first[order] = len(thresholds) - np.searchsorted(thresholds[::-1], scores[order], side="right")
    return first


def positive_logs(truth: TruthTable, frames: Frames) -> NDArray[np.bool_]:
    """Return which logs have a target in them anywhere, be it an ignored one."""
    positive = np.zeros(len(frames.logs), np.bool_)
    positive[frames.log[truth.frame]] = True
    return positive


def as_float(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return counts as the costs and exposures that outcomes hold."""
    return counts.astype(np.float64)


def first_per_frame(
    frame: NDArray[np.int64], level: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return each frame once, with the first level at which anything in it counts."""
    order = np.lexsort((level, frame))
    frames, first = np.unique(frame[order], return_index=True)
    return frames, level[order][first]

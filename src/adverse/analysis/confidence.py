"""How sure the figures are: intervals, and rankings with their probability, all from one set of resamples.

Logs are drawn once for the whole run, so that SUTs, settings and levels are compared on the same draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from adverse.curves.bootstrap import Sample, estimate
from adverse.curves.interval import Interval
from adverse.curves.quantities import Area, Quantity, Ratios, Share
from adverse.curves.ranking import Change, Ranking, changes, rank
from adverse.curves.resample import Resamples, draw
from adverse.curves.studentized import interval
from adverse.levels.outcomes import Outcomes
from adverse.study.store.read import Store

Key = tuple[str, str, str]
"""(SUT, level, setting)"""


@dataclass(frozen=True)
class Confidence:
    """Intervals by (SUT, level, setting) for area and robustness; rankings by (level, condition)."""

    area: Mapping[Key, Interval]
    robustness: Mapping[Key, Interval]
    rankings: Mapping[tuple[str, str], Ranking]
    changes: Sequence[Change]


def resamples_of(store: Store, positive: Sequence[bool], count: int) -> Resamples:
    """Draw logs of the test split, positive and negative ones apart, by the study's seed."""
    seed = int(store.manifest["study"]["seed"])
    strata = ["positive" if one else "negative" for one in positive]
    return draw(store.frames.logs, strata, seed=seed, count=count)


def ratios(outcomes: Outcomes, fpr_max: float) -> Ratios:
    """Return outcomes as the plain numerators and denominators that statistics work on."""
    if outcomes.kind == "time":
        return Ratios(outcomes.hits, outcomes.truths, outcomes.exposure, outcomes.cost, "ratio", fpr_max)
    return Ratios(outcomes.hits, outcomes.truths, outcomes.cost, outcomes.exposure, "rate", fpr_max)


def confidence(
    curves: Mapping[Key, Ratios],
    worst: Mapping[Key, Sequence[str]],
    baseline: str,
    conditions: Sequence[str],
    resamples: Resamples,
) -> Confidence:
    """Return how sure every figure is.

    `curves` are the settings that ran; `worst` the worst cases (Any, AnyMild) with the settings each covers.
    """
    areas: dict[Key, Quantity] = {}
    shares: dict[Key, Quantity] = {}
    for (sut, level, setting), curve in curves.items():
        plain = Area((curves[sut, level, baseline],))
        areas[sut, level, setting] = Area((curve,))
        shares[sut, level, setting] = Share(Area((curves[sut, level, baseline], curve)), plain)
    for (sut, level, name), covered in worst.items():
        every = Area(tuple(curves[sut, level, setting] for setting in covered))
        areas[sut, level, name] = every
        shares[sut, level, name] = Share(every, Area((curves[sut, level, baseline],)))
    sampled_areas, sampled_shares = _estimated(areas, resamples), _estimated(shares, resamples)
    rankings = _rankings(sampled_areas, [baseline, *conditions])
    levels = list(dict.fromkeys(level for _, level, _ in curves))
    return Confidence(
        {key: interval(sample) for key, sample in sampled_areas.items()},
        {key: interval(sample) for key, sample in sampled_shares.items()},
        rankings,
        changes(rankings, levels, [baseline, *conditions]),
    )


def _estimated(quantities: Mapping[Key, Quantity], resamples: Resamples) -> dict[Key, Sample]:
    """Estimate quantities SUT by SUT, which keeps what is held in memory small."""
    found: dict[Key, Sample] = {}
    for sut, level in dict.fromkeys((sut, level) for sut, level, _ in quantities):
        mine = {key[2]: one for key, one in quantities.items() if key[:2] == (sut, level)}
        for setting, sample in estimate(mine, resamples).items():
            found[sut, level, setting] = sample
    return found


def _rankings(samples: Mapping[Key, Sample], conditions: Sequence[str]) -> dict[tuple[str, str], Ranking]:
    found = {}
    for level in dict.fromkeys(level for _, level, _ in samples):
        for condition in conditions:
            mine = {key[0]: sample for key, sample in samples.items() if key[1:] == (level, condition)}
            if mine:
                found[level, condition] = rank(mine)
    return found


def bounds(found: Interval) -> dict[str, object]:
    """Return an interval as plain data for a results table."""
    ends = None if found.low is None or found.high is None else [_plain(found.low), _plain(found.high)]
    return {"interval": ends, "interval_status": found.status, "interval_logs": found.logs, "why": found.why}


def _plain(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None

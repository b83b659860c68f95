"""How sure the figures of one SUT are, from resamples of logs that all SUTs share.

Logs are drawn once for the whole run, so that SUTs, settings and levels are compared on the same draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from adverse.curves.bootstrap import estimate
from adverse.curves.interval import Interval
from adverse.curves.quantities import Area, Array, Quantity, Ratios, Share
from adverse.curves.resample import Resamples, draw
from adverse.curves.studentized import interval
from adverse.levels.outcomes import Outcomes
from adverse.study.store.read import Store

Key = tuple[str, str]
"""(level, setting)"""


class Draws(NamedTuple):
    """A value and its resampled values, all that a ranking needs."""

    value: float
    values: Array


@dataclass(frozen=True)
class Confidence:
    """Intervals by (level, setting) for area and robustness; what rankings need of every area."""

    area: Mapping[Key, Interval]
    robustness: Mapping[Key, Interval]
    draws: Mapping[Key, Draws]


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
    curves: Mapping[Key, Ratios], worst: Mapping[Key, Sequence[str]], baseline: str, resamples: Resamples
) -> Confidence:
    """Return how sure every figure of a SUT is.

    `curves` are the settings that ran; `worst` the worst cases (Any, AnyMild) with the settings each covers.
    """
    areas: dict[Key, Interval] = {}
    shares: dict[Key, Interval] = {}
    draws: dict[Key, Draws] = {}
    for level in dict.fromkeys(level for level, _ in curves):
        plain = Area((curves[level, baseline],))
        covers = {setting: [baseline, setting] for one, setting in curves if one == level}
        covers |= {name: list(covered) for (one, name), covered in worst.items() if one == level}
        wanted: dict[str, Quantity] = {}
        for name, covered in covers.items():
            every = Area(tuple(curves[level, setting] for setting in covered))
            wanted[f"area {name}"] = Area((curves[level, name],)) if (level, name) in curves else every
            wanted[f"share {name}"] = Share(every, plain)
        found = estimate(wanted, resamples)
        for name in covers:
            sample = found[f"area {name}"]
            areas[level, name] = interval(sample)
            shares[level, name] = interval(found[f"share {name}"])
            draws[level, name] = Draws(sample.value, sample.values)
    return Confidence(areas, shares, draws)


def bounds(found: Interval) -> dict[str, object]:
    """Return an interval as plain data for a results table."""
    ends = None if found.low is None or found.high is None else [_plain(found.low), _plain(found.high)]
    return {"interval": ends, "interval_status": found.status, "interval_logs": found.logs, "why": found.why}


def _plain(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None

"""How sure P, mPC and rPC are: intervals from leaving out logs.

A jackknife: the logs are dealt into groups, the numbers are computed again without each group, and the
spread of what comes out gives the standard error; the interval is the value plus and minus Student's t times
that.

Not a bootstrap, which was tried: average precision takes the best precision from each recall on, so it rises
when images are drawn twice, and a class with few objects is lost from many resamples. Its errors came out too
small and its percentiles off to one side (docs/statistics.md has the coverage of both). AP depends on how
many images there are, so an interval is about other data sets of the same size.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from adverse.benchmarks.ap import MatchedDetections
from adverse.benchmarks.cityscapes import CityscapesMatches
from adverse.benchmarks.mpc import Cell, Robustness
from adverse.curves.interval import Interval, given, refused
from adverse.seeds import generator

CONFIDENCE = 0.95
FEWEST = 3
MOST_GROUPS = 50
METHOD = "jackknife over groups of logs"
ALIKE = "no log differs from another"
NO_SPREAD = 1e-9
"""A standard error below this is rounding."""


@dataclass(frozen=True)
class Intervals:
    """Of P, mPC (or the partial mean) and rPC."""

    clean: Interval
    corrupted: Interval
    relative: Interval


@dataclass(frozen=True, eq=False)
class Without:
    """P, mPC (or the partial mean) and rPC without each group of logs, each (G,)."""

    clean: NDArray[np.float64]
    corrupted: NDArray[np.float64]
    relative: NDArray[np.float64]
    logs: int


class LeftOut:
    """The images of a table without each of up to 50 groups of their logs, for all SUTs and settings.

    Which log is in which group depends on the seed and on the names of the logs, on nothing else.
    """

    def __init__(self, logs: Sequence[str], log_of_image: NDArray[np.int64], *, seed: int) -> None:
        """Deal the logs; `log_of_image` (images,) indexes `logs`, and logs without an image take no part."""
        present, log = np.unique(log_of_image, return_inverse=True)
        self.logs = len(present)
        by_name = np.argsort([logs[number] for number in present.tolist()], kind="stable")
        groups = min(self.logs, MOST_GROUPS)
        group = np.empty(self.logs, np.int64)
        group[by_name] = generator(seed, METHOD).permutation(self.logs) % max(groups, 1)
        self.weights = (group[log] != np.arange(groups)[:, None]).astype(np.float64)

    def values(self, matched: MatchedDetections | CityscapesMatches) -> NDArray[np.float64]:
        """Return the metric without each group (G,)."""
        return matched.under(self.weights)


def without_groups(
    robustness: Robustness, clean: NDArray[np.float64], cells: Mapping[Cell, NDArray[np.float64]], logs: int
) -> Without:
    """Return a SUT's numbers without each group, from what the metric is without each (G,) in every cell."""
    of: dict[str, list[NDArray[np.float64]]] = {}
    for cell in robustness.cells:
        of.setdefault(cell[0], []).append(cells[cell])
    corrupted = np.mean([np.mean(values, axis=0) for values in of.values()], axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.where(clean > 0, corrupted / clean, np.nan)
    return Without(clean, corrupted, relative, logs)


def intervals(robustness: Robustness, without: Without) -> Intervals:
    """Return the intervals of a SUT's numbers from what they are without each group."""
    share = math.nan if robustness.relative is None else robustness.relative
    return Intervals(
        interval(robustness.clean, without.clean, without.logs),
        interval(robustness.corrupted, without.corrupted, without.logs),
        interval(share, without.relative, without.logs, highest=math.inf),
    )


def interval(
    value: float,
    without: NDArray[np.float64],
    logs: int,
    *,
    lowest: float = 0,
    highest: float = 1,
    confidence: float = CONFIDENCE,
) -> Interval:
    """Return the interval of a value from what it is without each group of logs.

    >>> found = interval(0.5, np.array([0.49, 0.5, 0.51, 0.5]), logs=40)
    >>> round(found.low, 3), round(found.high, 3), found.status
    (0.461, 0.539, 'ok')
    """
    groups = len(without)
    if groups < FEWEST:
        return refused(value, f"fewer than {FEWEST} logs", confidence=confidence, method=METHOD, logs=logs)
    if not np.isfinite([value, *without]).all():
        return refused(
            value, "not defined without some of the logs", confidence=confidence, method=METHOD, logs=logs
        )
    error = standard_error(without)
    if error < NO_SPREAD:
        return refused(value, ALIKE, confidence=confidence, method=METHOD, logs=logs)
    reach = float(scipy.special.stdtrit(groups - 1, (1 + confidence) / 2)) * error
    low, high = max(lowest, value - reach), min(highest, value + reach)
    return given(value, low, high, confidence=confidence, method=METHOD, logs=logs)


def p_value(value: float, without: NDArray[np.float64]) -> float:
    """Return the chance of a difference like this, or more, where there is none: Student's t, both sides.

    >>> round(p_value(0.5, np.array([0.49, 0.5, 0.51, 0.5])), 5)
    3e-05
    """
    error = standard_error(without)
    return (
        2 * float(scipy.special.stdtr(len(without) - 1, -abs(value) / error)) if error >= NO_SPREAD else 1.0
    )


def standard_error(without: NDArray[np.float64]) -> float:
    """Return the jackknife's standard error of a value from what it is without each group (G,)."""
    groups = len(without)
    return math.sqrt((groups - 1) / groups * float(((without - without.mean()) ** 2).sum()))

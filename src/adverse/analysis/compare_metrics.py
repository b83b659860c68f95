"""Differences of the plain metrics of detectors: recall, precision, false positives per image, fault rate.

Each is a ratio of sums over logs, at the operating point of its own run. Both runs are worked out without the
same groups of logs in turn; logs that say nothing about a metric in either run take no part in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from adverse.analysis.detections import sut_detections
from adverse.analysis.fault_rates import requests_by_log
from adverse.analysis.pairing import Change, Pairing
from adverse.analysis.plain_metrics import Parts, operating_threshold, ratio_parts
from adverse.benchmarks.intervals import CONFIDENCE, FEWEST, METHOD, NO_SPREAD, LeftOut, standard_error
from adverse.curves.interval import Interval, given, none_seen, refused
from adverse.curves.sign_flip import paired_p, without_0
from adverse.levels.image import ROC_A, image_outcomes
from adverse.store.read import Store

COMPARED = ("recall", "precision", "false_positives_per_image")
FAULT_RATE = "fault_rate"
LOWER_IS_BETTER = ("false_positives_per_image", FAULT_RATE)
ALL = "all settings"
LEAST_P, PRECISION = 1e-9, 0.01
"""No p-value is less, nor more precise than to one percent of itself."""


def metric_changes(pairing: Pairing, before: str, after: str) -> Iterator[Change]:
    """Yield the changes of the plain metrics of one SUT under all settings that are in both runs."""
    sides = [_by_log(store, sut, pairing) for store, sut in _sides(pairing, before, after)]
    baseline = next(iter(pairing.settings))
    for name, setting in [key for key in sides[0] if key in sides[1]]:
        parts = [side[name, setting] for side in sides]
        change = paired_change(
            (before, after, name, setting, name),
            pairing.logs,
            parts,
            seed=pairing.first.run.seed,
            most=math.inf if name == "false_positives_per_image" else 1.0,
        )
        yield replace(
            change,
            repeats=setting != baseline and all(_repeated(side, name, setting, baseline) for side in sides),
            lower_is_better=name in LOWER_IS_BETTER,
        )


def paired_change(
    heads: tuple[str, str, str, str, str],
    logs: Sequence[str],
    parts: Sequence[Parts],
    *,
    seed: int,
    most: float = 1.0,
) -> Change:
    """Return the change of a ratio of sums over logs; `heads` are both SUTs, level, setting and figure."""
    there = (parts[0][1] > 0) | (parts[1][1] > 0)
    paired = PairedRatios(
        [log for log, counts in zip(logs, there, strict=True) if counts],
        [(part[there], whole[there]) for part, whole in parts],
        seed=seed,
        most=most,
    )
    found = paired.interval()
    p = None if found.low is None else paired_p(paired.p_value(), paired.by_log)
    first, second = (None if math.isnan(value) else value for value in paired.values)
    return Change(*heads, first, second, without_0(found, p), p, identical=paired.identical)


def _repeated(side: Mapping[tuple[str, str], Parts], name: str, setting: str, baseline: str) -> bool:
    """Tell whether a metric is in every log what it is on clean frames."""
    clean = side.get((name, baseline))
    return clean is not None and all(map(np.array_equal, clean, side[name, setting]))


class PairedRatios:
    """Two ratios of sums over the same logs, and how sure their difference is.

    A jackknife over logs with Student's t. What no log shows of a ratio that is the same in all of them, as a
    recall of 1, may have been missed: the ends are moved out by the rule of three (`curves.none_seen`).
    """

    def __init__(self, logs: Sequence[str], parts: Sequence[Parts], *, seed: int, most: float = 1.0) -> None:
        """Take numerators and denominators by log (L,) of both; `most` is the largest value of the ratios."""
        self._most = most
        groups = LeftOut(logs, np.arange(len(logs)), seed=seed)
        without = [_ratio(one, groups.weights) for one in parts]
        self.logs = groups.logs
        self.values = [float(_ratio(one, np.ones((1, len(logs))))[0]) for one in parts]
        self.difference = self.values[1] - self.values[0]
        (before, of_before), (after, of_after) = parts
        by_log = self.difference == 0 and bool(
            np.array_equal(of_before > 0, of_after > 0)
            and np.array_equal(_by_one(*parts[0]), _by_one(*parts[1]))
        )
        self.identical = by_log or bool(np.array_equal(before, after) and np.array_equal(of_before, of_after))
        self.by_log = _parts_by_log(parts, self.values)
        self._without = without[1] - without[0]
        defined = len(self._without) >= FEWEST and bool(np.isfinite(self._without).all())
        self._error = standard_error(self._without) if defined else math.nan
        self._still = [
            whole
            for part, whole in parts
            if self._error < NO_SPREAD or len(np.unique(_by_one(part, whole))) < 2
        ]

    def interval(self) -> Interval:
        """Return the difference with its interval at 95 %, or why it has none."""
        facts: dict[str, Any] = {"confidence": CONFIDENCE, "method": METHOD, "logs": self.logs}
        if math.isnan(self._error):
            few = len(self._without) < FEWEST
            why = f"fewer than {FEWEST} logs" if few else "not defined without some of the logs"
            return refused(self.difference, why, **facts)
        reach = self._reach(1 - CONFIDENCE)
        low, high = max(self.difference - reach, -self._most), min(self.difference + reach, self._most)
        return given(self.difference, low, high, **facts)

    def p_value(self) -> float:
        """Return the least doubt at which the interval leaves out 0."""
        low, high = math.log(LEAST_P), 0.0
        while high - low > PRECISION:
            middle = (low + high) / 2
            leaves_out = self._reach(math.exp(middle)) < abs(self.difference)
            low, high = (low, middle) if leaves_out else (middle, high)
        return math.exp(high)

    def _reach(self, doubt: float) -> float:
        spread = float(scipy.special.stdtrit(len(self._without) - 1, 1 - doubt / 2)) * self._error
        return spread + max((none_seen(whole, tail=doubt / 2) for whole in self._still), default=0.0)


def _parts_by_log(parts: Sequence[Parts], values: Sequence[float]) -> NDArray[np.float64]:
    """Return what each log adds to the difference of two ratios; they sum up to it.

    Where both have the same denominators, as recall has, that is exactly what changed in the log.
    """
    changes = []
    for (part, whole), value in zip(parts, values, strict=True):
        rest = (part - value * whole) / whole.sum() if whole.sum() > 0 else np.full(len(part), np.nan)
        changes.append(rest)
    weight = parts[0][1] + parts[1][1]
    return np.asarray(changes[1] - changes[0] + weight / weight.sum() * (values[1] - values[0]))


def _by_one(part: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the ratio of each log that has one."""
    return part[whole > 0] / whole[whole > 0]


def _sides(pairing: Pairing, before: str, after: str) -> list[tuple[Store, str]]:
    return [(pairing.first, before), (pairing.second, after)]


def _ratio(parts: Parts, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the ratio of weighted sums for each row of weights (G, L); 0 / 0 is not a number."""
    part, whole = (weights @ one for one in parts)
    return np.asarray(np.divide(part, whole, out=np.full(len(whole), np.nan), where=whole > 0))


def _by_log(store: Store, sut: str, pairing: Pairing) -> dict[tuple[str, str], Parts]:
    """Return numerator and denominator of each metric by setting, for the common logs in their order."""
    place = {log: number for number, log in enumerate(store.frames.logs)}
    at = [place[log] for log in pairing.logs]
    detections = sut_detections(store, sut)
    thresholds = np.array([operating_threshold(store, detections).score], np.float32)
    found: dict[tuple[str, str], Parts] = {}
    for setting in pairing.settings:
        if setting in detections.settings:
            counted, matched = detections.counted(setting), detections.settings[setting]
            outcomes = image_outcomes(matched, store.truth, store.frames, thresholds, counted)[ROC_A]
            parts = ratio_parts(outcomes)
            found |= {(name, setting): (parts[name][0][at], parts[name][1][at]) for name in COMPARED}
    found[FAULT_RATE, ALL] = _attempts(store, sut, pairing, at)
    return found


def _attempts(store: Store, sut: str, pairing: Pairing, at: Sequence[int]) -> Parts:
    """Return the failed and all attempts of a SUT by common log."""
    counts = requests_by_log(store, sut, pairing.settings)
    return counts["failed_attempts"][at], counts["attempts"][at]

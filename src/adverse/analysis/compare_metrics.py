"""Differences of the plain metrics of detectors: recall, precision, false positives per image, fault rate.

Each is a ratio of sums over logs, at the operating point of its own run. Both runs are worked out without the
same groups of logs in turn; logs that say nothing about a metric in either run take no part in it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from adverse.analysis.compare_scores import score_change
from adverse.analysis.detections import sut_detections
from adverse.analysis.pairing import Change, Pairing
from adverse.analysis.plain_metrics import Parts, operating_threshold, ratio_parts
from adverse.benchmarks.intervals import LeftOut
from adverse.levels.image import ROC_A, image_outcomes
from adverse.store.read import Store

COMPARED = ("recall", "precision", "false_positives_per_image")
FAULT_RATE = "fault_rate"
LOWER_IS_BETTER = ("false_positives_per_image", FAULT_RATE)
ALL = "all settings"


def metric_changes(pairing: Pairing, before: str, after: str) -> Iterator[Change]:
    """Yield the changes of the plain metrics of one SUT under all settings that are in both runs."""
    sides = [_by_log(store, sut, pairing) for store, sut in _sides(pairing, before, after)]
    for name, setting in [key for key in sides[0] if key in sides[1]]:
        parts = [side[name, setting] for side in sides]
        there = (parts[0][1] > 0) | (parts[1][1] > 0)
        logs = [log for log, counts in zip(pairing.logs, there, strict=True) if counts]
        groups = LeftOut(logs, np.arange(len(logs)), seed=pairing.first.run.seed)
        kept = [(part[there], whole[there]) for part, whole in parts]
        values = [float(_ratio(one, np.ones((1, len(logs))))[0]) for one in kept]
        without = [_ratio(one, groups.weights) for one in kept]
        lower = name in LOWER_IS_BETTER
        yield score_change(
            pairing, (before, after), name, setting, (values, without), groups.logs, lower_is_better=lower
        )


def _sides(pairing: Pairing, before: str, after: str) -> list[tuple[Store, str]]:
    return [(pairing.first, before), (pairing.second, after)]


def _ratio(parts: Parts, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the ratio of weighted sums for each row of weights (G, L); 0 / 0 is not a number."""
    part, whole = (weights @ one for one in parts)
    return np.divide(part, whole, out=np.full(len(whole), np.nan), where=whole > 0)


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
    found[FAULT_RATE, ALL] = _attempts(store, sut, pairing)
    return found


def _attempts(store: Store, sut: str, pairing: Pairing) -> Parts:
    """Return the failed and all attempts of a SUT by log."""
    log_of = {
        frame: store.frames.logs[log] for frame, log in zip(store.frames.ids, store.frames.log, strict=True)
    }
    place = {log: number for number, log in enumerate(pairing.logs)}
    failed, made = np.zeros(len(place)), np.zeros(len(place))
    for row in store.attempts(sut).to_pylist():
        log = place.get(log_of[row["frame"]])
        if log is not None and row["setting"] in pairing.settings:
            failed[log] += row["failed_attempts"]
            made[log] += row["attempts"]
    return failed, made

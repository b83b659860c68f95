"""Recall, precision, F1, false positives per image and AP of every setting, as benchmarks have them.

The first four are read at the study's operating point, one threshold for each SUT: from a score on, or where
it makes so many false positives per un-mutated image (by default `fpr_max`). The same threshold holds under
every mutation. All four are ratios of sums over logs. Recall and precision are rates, as those of slices are,
and have the intervals of rates; F1, 2 TP / (2 TP + FP + FN), and false positives per image are not, and
their intervals come from the same resamples of logs as those of areas. AP depends on no threshold; it is
COCO's, of the targets, and its interval comes from leaving out logs (`benchmarks.intervals` says why).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adverse.analysis.confidence import plain_interval
from adverse.analysis.detections import SutDetections, validation_scores
from adverse.analysis.score import Status
from adverse.benchmarks.ap import matched_coco
from adverse.benchmarks.intervals import LeftOut, interval
from adverse.benchmarks.matching import DetectedObjects, TrueObjects
from adverse.curves.bootstrap import Resamples
from adverse.curves.interval import Interval, korn_graubard
from adverse.curves.quantities import Quantity, Ratios, Recall
from adverse.curves.studentized import intervals
from adverse.levels.image import ROC_A, image_outcomes
from adverse.levels.match import MatchedDetections, strongest_first
from adverse.levels.outcomes import Outcomes, standardize
from adverse.store.read import Store
from adverse.store.tables import FAULT, QUARANTINED

RATES = ("recall", "precision")
AT_A_THRESHOLD = ("recall", "precision", "f1", "false_positives_per_image")
PLAIN_METRICS = (*AT_A_THRESHOLD, "ap50", "ap")
"""In the order in which they are shown; fewer false positives are better, of all others more is."""


@dataclass(frozen=True)
class Threshold:
    """The score from which a detection of a SUT counts at its operating point.

    `sensitivity` is the rate that it was chosen by, None where the study gives the score. Not `resolved`: the
    images it was chosen on are too few for that rate. -inf: every detection counts.
    """

    score: np.float32
    sensitivity: float | None
    resolved: bool

    def plain(self) -> dict[str, Any]:
        """Return it as summary.json holds it; an infinite score is None."""
        score = float(self.score)
        return {
            "score": score if math.isfinite(score) else None,
            "sensitivity": self.sensitivity,
            "resolved": self.resolved,
        }


def operating_threshold(store: Store, detections: SutDetections) -> Threshold:
    """Return the threshold of a SUT at its operating point, which was chosen on un-mutated images."""
    point = store.run.operating_points[detections.sut]
    if point.sensitivity is None:
        return Threshold(np.float32(point.score), None, resolved=True)
    return threshold_at(store, detections, point.sensitivity)


def threshold_at(store: Store, detections: SutDetections, sensitivity: float) -> Threshold:
    """Return the lowest threshold that costs a SUT at most so many false positives per un-mutated image."""
    false, images, _ = validation_scores(store, detections.settings[detections.baseline])
    found = standardize(false, images, np.array([sensitivity]))
    return Threshold(found.thresholds[0], sensitivity, resolved=bool(found.resolved[0]))


def plain_metric_rows(
    store: Store, detections: SutDetections, statuses: Mapping[str, Status], resamples: Resamples | None
) -> list[dict[str, Any]]:
    """Return all metrics of every setting, with their intervals and the counts they are made of.

    None where a metric is 0 / 0: recall, F1 and AP without a true object, precision without a detection.
    """
    threshold = operating_threshold(store, detections)
    thresholds = np.array([threshold.score], np.float32)
    rows = []
    for setting, matched in detections.settings.items():
        counted = detections.counted(setting)
        outcomes = image_outcomes(matched, store.truth, store.frames, thresholds, counted)[ROC_A]
        parts = ratio_parts(outcomes)
        tested = matched.answers.status[store.frames.test[matched.answers.frame]]
        truths = int(outcomes.truths.sum())
        row: dict[str, Any] = {
            "sut": detections.sut,
            "setting": setting,
            "group": store.groups[setting],
            "status": statuses.get(setting, "ok") if truths else "insufficient",
            "score_threshold": threshold.plain()["score"],
            "logs": int(np.count_nonzero(outcomes.exposure)),
            "frames": int(outcomes.exposure.sum()),
            "truths": truths,
            "true_positives": int(outcomes.hits.sum()),
            "false_positives": int(outcomes.cost.sum()),
            "quarantined": int((tested == QUARANTINED).sum()),
            "faults": int((tested == FAULT).sum()),
        }
        found = ratio_intervals(parts, resamples)
        for name, (part, whole) in parts.items():
            row[name] = float(part.sum() / whole.sum()) if whole.any() else None
            row |= {f"{name}_interval": plain_interval(found.get(name))} if resamples is not None else {}
        for name, value in _average_precisions(store, matched, counted, resamples).items():
            row[name] = value.value
            row |= {f"{name}_interval": value.plain()} if resamples is not None else {}
        rows.append(row)
    return rows


Parts = tuple[NDArray[np.float64], NDArray[np.float64]]


def ratio_parts(outcomes: Outcomes) -> dict[str, Parts]:
    """Return the metrics at one threshold as numerators and denominators by log (L,)."""
    hits, false = outcomes.hits[:, 0].astype(np.float64), outcomes.cost[:, 0]
    truths = outcomes.truths.astype(np.float64)
    both = hits + false + truths if truths.any() else np.zeros_like(truths)
    return {
        "recall": (hits, truths),
        "precision": (hits, hits + false),
        "f1": (2 * hits, both),
        "false_positives_per_image": (false, outcomes.exposure),
    }


def ratio_intervals(parts: Mapping[str, Parts], resamples: Resamples | None) -> dict[str, Interval]:
    """Return the intervals of the metrics at one threshold that are defined; none without resamples."""
    if resamples is None:
        return {}
    sure = resamples.confidence
    rates = {name: korn_graubard(*parts[name], confidence=sure) for name in RATES if parts[name][1].any()}
    wanted: dict[str, Quantity] = {
        name: Recall(
            Ratios(part[:, None], whole, part[:, None], whole),
            highest=math.inf if name == "false_positives_per_image" else 1.0,
        )
        for name, (part, whole) in parts.items()
        if name not in RATES and whole.any()
    }
    return rates | (intervals(wanted, resamples) if wanted else {})


def _average_precisions(
    store: Store, matched: MatchedDetections, counted: NDArray[np.bool_], resamples: Resamples | None
) -> dict[str, Interval]:
    """Return AP at an overlap of one half, and over COCO's ten overlaps, on the frames that count."""
    images, image = int(counted.sum()), np.where(counted, np.cumsum(counted) - 1, -1)
    matches = matched_coco(
        _true_objects(store, image), _found_objects(matched, image), images, len(store.targets)
    )
    groups = LeftOut(store.frames.logs, store.frames.log[counted], seed=store.run.seed)
    weights = groups.weights if resamples is not None else groups.weights[:0]
    values = matches.by_overlap(np.vstack([np.ones((1, images)), weights]))
    found = {"ap50": values[:, 0], "ap": values.mean(axis=1)}
    sure = store.confidence
    return {
        name: interval(float(one[0]), one[1:], groups.logs, confidence=sure) for name, one in found.items()
    }


def _true_objects(store: Store, image: NDArray[np.int64]) -> TrueObjects:
    truth = store.truth
    kept = image[truth.frame] >= 0
    return TrueObjects(
        image[truth.frame[kept]],
        truth.boxes[kept],
        truth.labels[kept],
        truth.area[kept],
        truth.ignore[kept],
        truth.crowd[kept],
    )


def _found_objects(matched: MatchedDetections, image: NDArray[np.int64]) -> DetectedObjects:
    """Return the detections by image and falling score; ties by coordinates, as everywhere."""
    answers = matched.answers
    order = strongest_first(answers.offsets, answers.scores, answers.boxes)
    order = order[image[matched.frame[order]] >= 0]
    return DetectedObjects(
        image[matched.frame[order]],
        answers.boxes[order].astype(np.float64),
        answers.labels[order],
        answers.scores[order].astype(np.float64),
    )

"""The scores of segmenters and classifiers under every setting, and what is left of them.

They have no sensitivity to trade with, so there are no curves: a score under each mutation, and its share of
the score without one, over the same frames.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from adverse.benchmarks import classification, segmentation
from adverse.benchmarks.intervals import ALIKE, LeftOut, interval
from adverse.benchmarks.task_table import DEFAULTS, answers_of, image_scores, task_metric
from adverse.curves.interval import Interval, given, none_seen
from adverse.curves.studentized import AT_THE_END
from adverse.store.read import Store
from adverse.store.run import Run
from adverse.store.tables import FAULT, QUARANTINED, PixelCounts, RankedClasses

Status = Literal["ok", "incomplete", "insufficient"]
METRICS = {"segmentation": "mean_iou", "classification": "top1"}
"""The score that stands for a task in tables and rankings."""
NAMES = {"mean_iou": "miou", "pixel_accuracy": "pixel-accuracy", "top1": "top1", "top5": "top5"}
"""What the scores are called on the command line."""


@dataclass(frozen=True)
class TaskRow:
    """The scores of one SUT under one setting; `share` is what is left of the baseline's main score.

    `share` is None where either is not defined; status as for detectors. Faults count as wrong answers.
    """

    sut: str
    setting: str
    group: str
    scores: Mapping[str, float | None]
    share: float | None
    status: Status
    logs: int = 0
    frames: int = 0
    quarantined: int = 0
    faults: int = 0
    per_class: Mapping[str, float | None] = field(default_factory=dict)
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    """Of the scores and of the share, by name; none where the study asks for none."""

    def plain(self) -> dict[str, Any]:
        """Return the row as plain data, intervals as those of detectors."""
        row = {name: value for name, value in asdict(self).items() if name != "intervals"}
        return row | {f"{name}_interval": found.plain() for name, found in self.intervals.items()}


def task_family_rows(run: Run, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return for each SUT and mutation the setting that leaves the smallest share of the main score."""
    found = []
    for sut in dict.fromkeys(str(row["sut"]) for row in rows):
        by_setting = {str(row["setting"]): row for row in rows if row["sut"] == sut}
        for family, settings in run.families.items():
            mine = [by_setting[setting] for setting in settings]
            worst = min(mine, key=lambda row: math.inf if row["share"] is None else float(row["share"]))
            kept = {name: value for name, value in worst.items() if name != "per_class"}
            found.append({**kept, "family": family, "settings": len(mine), "worst_setting": worst["setting"]})
    return found


Scores = tuple[dict[str, float | None], dict[str, float | None]]


def score_task(store: Store) -> list[TaskRow]:
    """Return the scores of all SUTs, in the order of the study."""
    return [row for sut in store.suts for row in _score_sut(store, sut)]


def segmentation_scores(answers: PixelCounts, chosen: NDArray[np.bool_], classes: tuple[str, ...]) -> Scores:
    """Return pixel accuracy and mean IoU of the chosen rows together, and the IoU of each class."""
    counts = answers.counts[chosen].sum(axis=0)
    scores = {
        "mean_iou": _known(segmentation.mean_iou(counts)),
        "pixel_accuracy": _known(segmentation.pixel_accuracy(counts)),
    }
    each = zip(classes, segmentation.iou(counts).tolist(), strict=True)
    return scores, {name: _known(value) for name, value in each}


def classification_scores(
    answers: RankedClasses, chosen: NDArray[np.bool_], shown: tuple[str | None, ...]
) -> Scores:
    """Return top-1 and top-5 accuracy over the chosen rows, and the top-1 accuracy of each class."""
    rows = np.flatnonzero(chosen).tolist()
    best = [answers.best[row] for row in rows]
    truth = [shown[answers.frame[row]] or "" for row in rows]
    first = classification.hits(best, truth, 1)
    scores = {"top1": _mean(first), "top5": _mean(classification.hits(best, truth, 5))}
    names = np.array(truth)
    return scores, {name: _mean(first[names == name]) for name in sorted(set(truth))}


def _score_sut(store: Store, sut: str) -> Iterator[TaskRow]:
    answers = answers_of(store, sut)
    main = METRICS[store.task]
    budget = store.run.quarantine_budget
    plain = answers[store.run.baseline.id]
    with_intervals = bool(store.run.bootstrap)
    for setting, group in store.groups.items():
        found = answers[setting]
        tested = store.frames.test[found.frame]
        counted = tested & (found.status != QUARANTINED)
        quarantined = int((found.status[tested] == QUARANTINED).sum())
        scores, per_class = _scores(store, found, counted)
        both = np.isin(plain.frame, found.frame[counted]) & (plain.status != QUARANTINED)
        before = _scores(store, plain, both)[0][main]
        same = _scores(store, found, counted & np.isin(found.frame, plain.frame[both]))[0][main]
        share = None if same is None or not before else same / before
        status: Status = "insufficient" if scores[main] is None else "ok"
        if quarantined > budget * int(tested.sum()):
            status = "incomplete"
        yield TaskRow(
            sut,
            setting,
            group,
            scores,
            share,
            status,
            logs=len(np.unique(store.frames.log[found.frame[counted]])),
            frames=int(counted.sum()),
            quarantined=quarantined,
            faults=int((found.status[tested] == FAULT).sum()),
            per_class=per_class,
            intervals=_intervals(store, plain, found, scores, share) if with_intervals else {},
        )


def _scores(store: Store, answers: PixelCounts | RankedClasses, chosen: NDArray[np.bool_]) -> Scores:
    if isinstance(answers, PixelCounts):
        return segmentation_scores(answers, chosen, store.pixel_classes)
    return classification_scores(answers, chosen, store.categories_shown)


def _intervals(
    store: Store,
    plain: PixelCounts | RankedClasses,
    found: PixelCounts | RankedClasses,
    scores: Mapping[str, float | None],
    share: float | None,
) -> dict[str, Interval]:
    """Return how sure the scores and the share of the main one are, from leaving out logs."""
    metric = task_metric(DEFAULTS[store.task], store.task)
    used = _usable(store, found)
    alone = LeftOut(store.frames.logs, store.frames.log[used], seed=store.run.seed)
    sure = {}
    for name, score in scores.items():
        if score is not None:
            without = image_scores(store, found, task_metric(NAMES[name], store.task), used).scores(
                alone.weights
            )
            sure[name] = _with_unseen(interval(score, without, alone.logs), store, used)
    if share is not None and plain is not found:
        both = used & _usable(store, plain)
        paired = LeftOut(store.frames.logs, store.frames.log[both], seed=store.run.seed)
        parts = [image_scores(store, one, metric, both).scores(paired.weights) for one in (found, plain)]
        with np.errstate(divide="ignore", invalid="ignore"):
            kept = interval(share, parts[0] / parts[1], paired.logs, highest=np.inf)
        sure["share"] = _with_unseen(kept, store, both, per=float(parts[1].mean()))
    return sure


def _with_unseen(found: Interval, store: Store, used: NDArray[np.bool_], *, per: float = 1.0) -> Interval:
    """Return an interval of an accuracy also where no log differs from another: all are right, or unchanged.

    What happened to none of the images may still happen, by the rule of three for logs. `per` is the accuracy
    that a share is of; no accuracy is above 1.
    """
    if store.task != "classification" or found.why != ALIKE or found.value is None:
        return found
    unseen = none_seen(np.bincount(store.frames.log[used]), tail=(1 - found.confidence) / 2) / per
    low, high = max(found.value - unseen, 0.0), min(found.value + unseen, 1.0 / per)
    return given(found.value, low, high, confidence=found.confidence, method=AT_THE_END, logs=found.logs)


def _usable(store: Store, answers: PixelCounts | RankedClasses) -> NDArray[np.bool_]:
    """Return the test frames that could be used under a setting."""
    mask = np.zeros(len(store.frames.ids), np.bool_)
    mask[answers.frame[answers.status != QUARANTINED]] = True
    return mask & store.frames.test


def _known(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


def _mean(values: NDArray[np.bool_]) -> float | None:
    return float(values.mean()) if values.size else None

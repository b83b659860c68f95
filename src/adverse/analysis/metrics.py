"""The metrics that a study names: one number for each SUT and setting, at its operating point.

The threshold is that of `plain_metrics`: the study's operating point.
A metric is a ratio of sums over logs, so its interval comes from the same resamples as all others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from adverse.analysis.confidence import plain_interval
from adverse.analysis.detections import SutDetections
from adverse.analysis.plain_metrics import operating_threshold
from adverse.analysis.score import Status
from adverse.curves.bootstrap import Resamples
from adverse.curves.quantities import Quantity, Ratios, Recall
from adverse.curves.studentized import intervals
from adverse.levels.context import Context, LogScores, evaluate_metric, level_input
from adverse.plugins import Plugin
from adverse.store.read import Store
from adverse.store.tables import FAULT, QUARANTINED


def metric_rows(
    store: Store,
    detections: SutDetections,
    context: Context,
    metrics: Sequence[Plugin],
    statuses: Mapping[str, Status],
    resamples: Resamples | None,
) -> list[dict[str, Any]]:
    """Return every metric under every setting, with its interval and its share of the baseline's value."""
    threshold = np.array([operating_threshold(store, detections).score], np.float32)
    rows = []
    for metric in metrics:
        scores: dict[str, LogScores] = {}
        for setting, matched in detections.settings.items():
            given = level_input(context, matched, threshold, detections.counted(setting))
            scores[setting] = evaluate_metric(metric, given)
        rows += _rows(store, detections, metric, scores, statuses, resamples)
    return rows


def _rows(
    store: Store,
    detections: SutDetections,
    metric: Plugin,
    scores: Mapping[str, LogScores],
    statuses: Mapping[str, Status],
    resamples: Resamples | None,
) -> list[dict[str, Any]]:
    defined = {setting: part for setting, part in scores.items() if part.weight.any()}
    wanted: dict[str, Quantity] = {
        setting: Recall(
            Ratios(part.total[:, None], part.weight, part.total[:, None], part.weight), *_range(metric)
        )
        for setting, part in defined.items()
    }
    found = intervals(wanted, resamples) if resamples is not None and wanted else {}
    values = {setting: float(part.total.sum() / part.weight.sum()) for setting, part in defined.items()}
    whole = values.get(detections.baseline)
    lower = metric.metric is not None and metric.metric.lower_is_better
    rows = []
    for setting, group in store.groups.items():
        value = values.get(setting)
        answers = detections.settings[setting].answers
        tested = answers.status[store.frames.test[answers.frame]]
        row: dict[str, Any] = {
            "sut": detections.sut,
            "metric": metric.name,
            "setting": setting,
            "group": group,
            "value": value,
            "lower_is_better": lower,
            "over_clean": value - whole if value is not None and whole is not None else None,
            "share": value / whole if value is not None and whole and not lower else None,
            "status": "insufficient" if value is None else statuses.get(setting, "ok"),
            "logs": int(np.count_nonzero(scores[setting].weight)),
            "frames": int(detections.counted(setting).sum()),
            "quarantined": int((tested == QUARANTINED).sum()),
            "faults": int((tested == FAULT).sum()),
        }
        if resamples is not None:
            row["value_interval"] = plain_interval(found.get(setting))
        rows.append(row)
    return rows


def _range(metric: Plugin) -> tuple[float, float]:
    return (metric.metric.lowest, metric.metric.highest) if metric.metric else (0.0, 1.0)

"""All that is worked out for one SUT, apart from the others: this is what is done side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import pyarrow as pa

from adverse.analysis.confidence import Confidence, confidence, plain_interval, ratios
from adverse.analysis.detection_rates import adr_rows, required_of
from adverse.analysis.detections import sut_detections
from adverse.analysis.exact import Exact, exact_curves
from adverse.analysis.failures import sut_failures
from adverse.analysis.loop import loop_rows, rate_rows
from adverse.analysis.metrics import metric_rows
from adverse.analysis.mutation_means import expected_rows, mean_rows, mean_weights
from adverse.analysis.plain_metrics import operating_threshold, plain_metric_rows
from adverse.analysis.score import ANY_MILD, Status, SutScores, score_sut
from adverse.analysis.tables import curves_table, outcomes_table
from adverse.curves.bootstrap import Resamples
from adverse.curves.quantities import Ratios
from adverse.levels.context import Context
from adverse.plugins import Plugin
from adverse.store.read import Store


@dataclass(frozen=True)
class SutResults:
    """The figures of one SUT as plain data, and the tables behind them."""

    sut: str
    rows: list[dict[str, Any]]
    sensitivity: dict[str, Any]
    curves: pa.Table | None
    outcomes: pa.Table | None
    exact: pa.Table | None
    required: pa.Table | None
    confidence: Confidence | None
    failures: list[dict[str, Any]]
    more: dict[str, list[dict[str, Any]]]
    """Further figures, by the name of their table."""


def analyze_sut(
    store: Store,
    sut: str,
    context: Context,
    resamples: Resamples | None,
    *,
    levels: Sequence[Plugin],
    metrics: Sequence[Plugin] = (),
    exact: bool = False,
) -> SutResults:
    """Score a SUT at every level under every setting, with intervals where there are resamples."""
    detections = sut_detections(store, sut)
    scores = score_sut(store, detections, context, levels)
    curves = exact_curves(store, detections, context, levels) if exact else None
    conditions = store.run.conditions
    sure = None if resamples is None else _confidence(store, scores, resamples, conditions)
    statuses = _statuses(scores)
    costs, people = required_of(store, detections, statuses)
    more = {
        "means": mean_rows(store.run, scores.scored, sure),
        "adr": adr_rows(store, detections, statuses, resamples),
        "required": costs,
        "plain_metrics": plain_metric_rows(store, detections, statuses, resamples),
        "loop": loop_rows(scores.scored, sure),
        "loop_rates": rate_rows(scores.scored),
    }
    if metrics:
        more["metrics"] = metric_rows(store, detections, context, metrics, statuses, resamples)
    if conditions:
        fpr_max = store.run.fpr_max
        more["expected"] = expected_rows(scores.scored, conditions, fpr_max, sure)
    return SutResults(
        sut,
        [_row(asdict(scored.row), sure, curves) for scored in scores.scored],
        {
            "from": scores.source,
            "images": scores.sensitivity.images,
            "unresolved_levels": int((~scores.sensitivity.resolved).sum()),
            "operating_point": operating_threshold(store, detections).plain(),
        },
        curves_table(scores),
        outcomes_table(scores),
        None if curves is None else curves.points,
        people,
        sure,
        sut_failures(store, detections, people),
        more,
    )


def _statuses(scores: SutScores) -> dict[str, Status]:
    """Return for each setting whether it may be trusted, as far as that is the same at all levels."""
    found: dict[str, Status] = {}
    for scored in scores.scored:
        incomplete = scored.row.status == "incomplete"
        found.setdefault(scored.row.setting, "incomplete" if incomplete else "ok")
    return found


def _row(row: dict[str, Any], sure: Confidence | None, exact: Exact | None) -> dict[str, Any]:
    """Give a figure its intervals, and what the exact curve says."""
    key = (row["level"], row["setting"])
    if exact is not None and key in exact.areas:
        row["area_exact"], row["robustness_exact"] = exact.areas[key].area, exact.areas[key].robustness
    if sure is not None:
        for name, intervals in (("area", sure.area), ("robustness", sure.robustness)):
            row[f"{name}_interval"] = plain_interval(intervals.get(key))
    return row


def _confidence(
    store: Store, scores: SutScores, resamples: Resamples, conditions: Mapping[str, float]
) -> Confidence:
    fpr_max = store.run.fpr_max
    curves: dict[tuple[str, str], Ratios] = {}
    beside: dict[tuple[str, str, str], Ratios] = {}
    worst: dict[tuple[str, str], list[str]] = {}
    for scored in scores.scored:
        row = scored.row
        if row.area is None:
            continue
        if scored.outcomes is not None:
            curves[row.level, row.setting] = ratios(scored.outcomes, fpr_max)
            for name in ("at_0", "at_buffer") if scored.outcomes.beside else ():
                other = replace(scored.outcomes, hits=scored.outcomes.beside[name])
                beside[row.level, row.setting, name] = ratios(other, fpr_max)
        else:
            groups = ("baseline", "mild") if row.setting == ANY_MILD else ("baseline", "mild", "severe")
            covered = [setting for setting, group in store.groups.items() if group in groups]
            worst[row.level, row.setting] = covered
    return confidence(
        curves,
        worst,
        store.run.baseline.id,
        resamples,
        weights=mean_weights(store.run.mutations),
        conditions=conditions,
        beside=beside,
    )

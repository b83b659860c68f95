"""All that is worked out for one SUT, apart from the others: this is what is done side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from adverse.analysis.confidence import Confidence, confidence, plain_interval, ratios
from adverse.analysis.detection_range import range_rows
from adverse.analysis.detection_rates import adr_rows, required_of
from adverse.analysis.detections import sut_detections
from adverse.analysis.failures import sut_failures
from adverse.analysis.loop import loop_rows, rate_rows, stops_table
from adverse.analysis.metrics import metric_rows
from adverse.analysis.mutation_means import expected_rows, family_rows, mean_rows, mean_weights
from adverse.analysis.objects import Changes, detected_frames, detected_objects
from adverse.analysis.plain_metrics import operating_threshold, plain_metric_rows
from adverse.analysis.relations import RunRelations, relation_rows
from adverse.analysis.score import Status, SutScores, score_sut
from adverse.analysis.slices import slice_rows
from adverse.analysis.tables import curves_table, outcomes_table, sensitivity_table
from adverse.curves.bootstrap import Resamples
from adverse.curves.interval import CONSTRUCTED
from adverse.curves.quantities import Ratios
from adverse.levels.context import Context
from adverse.levels.outcomes import AT_0, Outcomes
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
    shared: pa.Table | None
    required: pa.Table | None
    stops: pa.Table | None
    objects: pa.Table | None
    frames: pa.Table | None
    confidence: Confidence | None
    failures: list[dict[str, Any]]
    more: dict[str, list[dict[str, Any]]]
    """Further figures, by the name of their table."""
    violations: list[dict[str, Any]]
    """Violations of relations that are worth a picture."""


def analyze_sut(
    store: Store,
    sut: str,
    context: Context,
    resamples: Resamples | None,
    *,
    levels: Sequence[Plugin],
    metrics: Sequence[Plugin] = (),
    relations: RunRelations | None = None,
    changes: Changes | None = None,
) -> SutResults:
    """Score a SUT at every level under every setting, with intervals where there are resamples.

    `changes` is the visual change of frames under settings, where it was measured.
    """
    detections = sut_detections(store, sut)
    scores = score_sut(store, detections, context, levels)
    conditions = store.run.conditions
    itself = store.run.truth is not None and store.run.truth.sut == sut
    sure = None if resamples is None else _confidence(store, scores, resamples, conditions, itself=itself)
    statuses = _statuses(scores)
    costs, people = required_of(store, detections, statuses)
    rows = [_row(asdict(scored.row), sure) for scored in scores.scored]
    families = [_row(asdict(scored.row), sure) for scored in scores.families]
    slices, outstanding = slice_rows(store, detections, statuses)
    more = {
        "slices": slices,
        "outstanding_slices": outstanding,
        "detection_range": range_rows(store, detections, statuses, resamples),
        "families": family_rows(store.run, scores.scored, [*rows, *families]),
        "means": mean_rows(store.run, scores.scored, sure),
        "adr": adr_rows(store, detections, statuses, resamples),
        "required": costs,
        "plain_metrics": plain_metric_rows(store, detections, statuses, resamples),
        "loop": loop_rows(scores.scored, store.confidence),
        "loop_rates": rate_rows(scores.scored, store.confidence),
    }
    if metrics:
        more["metrics"] = metric_rows(store, detections, context, metrics, statuses, resamples)
    violations: list[dict[str, Any]] = []
    if relations is not None and relations.relations:
        more["relations"], violations = relation_rows(
            store, detections, context, relations, statuses, resamples
        )
    if conditions:
        fpr_max = store.run.fpr_max
        more["expected"] = expected_rows(scores.scored, conditions, fpr_max, sure)
    if itself:
        for table in (rows, *more.values()):
            _without_own_intervals(table)
    return SutResults(
        sut,
        rows,
        {
            "from": scores.source,
            "images": scores.sensitivity.images,
            "unresolved_levels": int((~scores.sensitivity.resolved).sum()),
            "operating_point": operating_threshold(store, detections).plain(),
        },
        curves_table(scores),
        outcomes_table(scores),
        sensitivity_table(scores),
        people,
        stops_table(scores.scored),
        detected_objects(store, detections),
        detected_frames(store, detections, changes or {}),
        sure,
        sut_failures(store, detections, people),
        more,
        violations,
    )


def _without_own_intervals(rows: Sequence[dict[str, Any]]) -> None:
    """Take the intervals off what is so by construction: the reference agrees with itself on clean frames.

    Resampled logs cannot doubt it; "1.000 (0.74 to 1.00)" would be about nothing.
    """
    for row in rows:
        for name in list(row) if row.get("group") == "baseline" else ():
            interval = row[name] if name.endswith("_interval") else None
            if interval and row.get(name.removesuffix("_interval")) in (0.0, 1.0):
                row[name] = {**interval, "low": None, "high": None, "status": "refused", "why": CONSTRUCTED}


def _statuses(scores: SutScores) -> dict[str, Status]:
    """Return for each setting whether it may be trusted, as far as that is the same at all levels."""
    found: dict[str, Status] = {}
    for scored in scores.scored:
        incomplete = scored.row.status == "incomplete"
        found.setdefault(scored.row.setting, "incomplete" if incomplete else "ok")
    return found


def _row(row: dict[str, Any], sure: Confidence | None) -> dict[str, Any]:
    """Give a figure its intervals."""
    key = (row["level"], row["setting"])
    if sure is not None:
        parts = {"area": sure.area, "robust_area": sure.robust_area, "robustness": sure.robustness}
        for name, intervals in parts.items():
            row[f"{name}_interval"] = plain_interval(intervals.get(key))
        if row["area_at_0"] is not None:
            row["area_at_0_interval"] = plain_interval(sure.at_0.get(key))
    return row


def _confidence(
    store: Store,
    scores: SutScores,
    resamples: Resamples,
    conditions: Mapping[str, float],
    *,
    itself: bool,
) -> Confidence:
    fpr_max = store.run.fpr_max
    made: dict[tuple[int, bool], Ratios] = {}

    def counts(outcomes: Outcomes, *, strict: bool = False) -> Ratios:
        """Return the same object for the same outcomes, so that what figures share is worked out once."""
        key = (id(outcomes), strict)
        if key not in made:
            made[key] = ratios(outcomes.with_hits(AT_0) if strict else outcomes, fpr_max)
        return made[key]

    curves: dict[tuple[str, str], Ratios] = {}
    compared: dict[tuple[str, str], tuple[Ratios, ...]] = {}
    at_0: dict[tuple[str, str], tuple[Ratios, ...]] = {}
    covers: dict[tuple[str, str], frozenset[str]] = {}
    for scored in (*scores.scored, *scores.families):
        row, key = scored.row, (scored.row.level, scored.row.setting)
        if row.area is None or row.robust_area is None:
            continue
        if scored.outcomes is not None:
            curves[key] = counts(scored.outcomes)
        compared[key] = tuple(counts(part) for part in scored.compared)
        covers[key] = frozenset(scored.settings)
        own = scored.compared if scored.outcomes is None else (scored.outcomes,)
        if all(AT_0 in part.beside for part in own):
            at_0[key] = tuple(counts(part, strict=True) for part in own)
    return confidence(
        curves,
        compared,
        store.run.baseline.id,
        resamples,
        weights=mean_weights(store.run),
        conditions=conditions,
        at_0=at_0,
        covers=covers,
        itself=itself,
    )

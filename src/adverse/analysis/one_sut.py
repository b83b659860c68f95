"""All that is worked out for one SUT, apart from the others: this is what is done side by side."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from adverse.analysis.confidence import Confidence, bounds, confidence, ratios
from adverse.analysis.context import Context
from adverse.analysis.exact import Exact, exact_curves
from adverse.analysis.judged import judge_sut
from adverse.analysis.score import ANY_MILD, SutScores, score_sut
from adverse.analysis.tables import curves_table, outcomes_table
from adverse.curves.quantities import Ratios
from adverse.curves.resample import Resamples
from adverse.study.store.read import Store


@dataclass(frozen=True)
class Worked:
    """The figures of one SUT as plain data, and the tables behind them."""

    sut: str
    rows: list[dict[str, Any]]
    sensitivity: dict[str, Any]
    curves: pa.Table | None
    outcomes: pa.Table | None
    exact: pa.Table | None
    confidence: Confidence | None


def work_out(
    store: Store, sut: str, context: Context, resamples: Resamples | None, *, exact: bool = False
) -> Worked:
    """Score a SUT at every level under every setting; with resamples, say how sure that is."""
    one = judge_sut(store, sut)
    scores = score_sut(store, one, context)
    curves = exact_curves(store, one, context) if exact else None
    sure = None if resamples is None else _confidence(store, scores, resamples)
    return Worked(
        sut,
        [_row(asdict(scored.row), sure, curves) for scored in scores.scored],
        {
            "from": scores.source,
            "images": scores.sensitivity.images,
            "unresolved_levels": int((~scores.sensitivity.resolved).sum()),
        },
        curves_table(scores),
        outcomes_table(scores),
        None if curves is None else curves.points,
        sure,
    )


def _row(row: dict[str, Any], sure: Confidence | None, exact: Exact | None) -> dict[str, Any]:
    """Give a figure its intervals, and what the exact curve says."""
    key = (row["level"], row["setting"])
    if exact is not None and key in exact.areas:
        row["area_exact"], row["robustness_exact"] = exact.areas[key].area, exact.areas[key].robustness
    if sure is not None:
        for name, intervals in (("area", sure.area), ("robustness", sure.robustness)):
            row[f"{name}_interval"] = bounds(intervals[key]) if key in intervals else None
    return row


def _confidence(store: Store, scores: SutScores, resamples: Resamples) -> Confidence:
    fpr_max = store.manifest["statistics"]["fpr_max"]
    curves: dict[tuple[str, str], Ratios] = {}
    worst: dict[tuple[str, str], list[str]] = {}
    for scored in scores.scored:
        row = scored.row
        if row.area is None:
            continue
        if scored.outcomes is not None:
            curves[row.level, row.setting] = ratios(scored.outcomes, fpr_max)
        else:
            groups = ("baseline", "mild") if row.setting == ANY_MILD else ("baseline", "mild", "severe")
            covered = [setting for setting, group in store.settings.items() if group in groups]
            worst[row.level, row.setting] = covered
    return confidence(curves, worst, next(iter(store.settings)), resamples)

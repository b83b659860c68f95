"""All that is worked out for one SUT, apart from the others: this is what is done side by side."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from adverse.analysis.confidence import Confidence, bounds, confidence, ratios
from adverse.analysis.context import Context
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
    confidence: Confidence | None


def work_out(store: Store, sut: str, context: Context, resamples: Resamples | None) -> Worked:
    """Score a SUT at every level under every setting; with resamples, say how sure that is."""
    scores = score_sut(store, sut, context)
    sure = None if resamples is None else _confidence(store, scores, resamples)
    return Worked(
        sut,
        [_row(asdict(scored.row), sure) for scored in scores.scored],
        {
            "from": scores.source,
            "images": scores.sensitivity.images,
            "unresolved_levels": int((~scores.sensitivity.resolved).sum()),
        },
        curves_table(scores),
        outcomes_table(scores),
        sure,
    )


def _row(row: dict[str, Any], sure: Confidence | None) -> dict[str, Any]:
    """Give a figure its intervals."""
    if sure is not None:
        key = (row["level"], row["setting"])
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

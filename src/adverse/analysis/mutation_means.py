"""One figure over all mutations: the mean over their families, and what is to be expected of given odds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from adverse.analysis.confidence import Confidence, plain_interval
from adverse.analysis.score import ScoredCurve, family_name
from adverse.curves.curve import area
from adverse.curves.robustness import expected_curve, mean_over_mutations
from adverse.store.run import Run

WORST_STATUS = ("insufficient", "incomplete", "ok")


def mean_weights(run: Run) -> dict[str, float]:
    """Return the weight of each setting in a mean over families of means over settings."""
    known = run.families
    return {setting: 1 / (len(known) * len(mine)) for mine in known.values() for setting in mine}


def mean_rows(run: Run, scored: Sequence[ScoredCurve], sure: Confidence | None) -> list[dict[str, Any]]:
    """Return for each level the mean area and the mean robustness over mutations (mPC and rPC)."""
    if not run.mutations:
        return []
    rows = []
    known = run.families
    for level, by_setting in _by_level(scored).items():
        row = _heads(by_setting, list(by_setting), level)
        for name in ("area", "robustness"):
            values = {f: [getattr(by_setting[s].row, name) for s in mine] for f, mine in known.items()}
            defined = all(value is not None for mine in values.values() for value in mine)
            row[name] = mean_over_mutations(values) if defined else None
            row[f"{name}_interval"] = plain_interval(sure.means.get((level, name)) if sure else None)
        rows.append({**row, "families": len(known), "settings": len(run.mutations)})
    return rows


def expected_rows(
    scored: Sequence[ScoredCurve], conditions: Mapping[str, float], fpr_max: float, sure: Confidence | None
) -> list[dict[str, Any]]:
    """Return for each level the area of the curve to be expected where conditions prevail as given."""
    rows = []
    for level, by_setting in _by_level(scored).items():
        row = _heads(by_setting, list(conditions), level)
        triples, timed = [], False
        for setting in conditions:
            one = by_setting[setting]
            if one.curve is None or one.outcomes is None or one.row.area is None:
                break
            timed = one.outcomes.kind == "time"
            third = one.curve.efficiency if timed else one.outcomes.false_rate()
            triples.append((np.arange(len(third)), one.curve.safety, third))
        row["area"] = None
        if len(triples) == len(conditions):
            chances = list(conditions.values())
            curve = expected_curve(triples, chances, fpr_max=None if timed else fpr_max)
            row["area"] = area(curve.safety, curve.efficiency)
        row["area_interval"] = plain_interval(sure.expected.get(level) if sure else None)
        rows.append(row)
    return rows


def _by_level(scored: Sequence[ScoredCurve]) -> dict[str, dict[str, ScoredCurve]]:
    found: dict[str, dict[str, ScoredCurve]] = {}
    for one in scored:
        if one.outcomes is not None:
            found.setdefault(one.row.level, {})[one.row.setting] = one
    return found


def _heads(by_setting: Mapping[str, ScoredCurve], used: Sequence[str], level: str) -> dict[str, Any]:
    rows = [by_setting[setting].row for setting in used]
    statuses = {row.status for row in rows}
    return {
        "sut": rows[0].sut,
        "level": level,
        "status": next(status for status in WORST_STATUS if status in statuses),
        "logs": min(row.logs for row in rows),
        "frames": min(row.frames for row in rows),
        "people": min(row.truths for row in rows),
    }


OF_ONE_SETTING = (
    "area",
    "area_interval",
    "area_at_0",
    "area_at_0_interval",
    "area_without_faults",
    "least_safety",
    "least_efficiency",
)
"""Figures of a setting by itself, which a family of several has none of: its area is `robust_area`."""


def family_rows(
    run: Run, scored: Sequence[ScoredCurve], rows: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return for each level and mutation the worst case over all of its strengths, with its worst setting.

    `rows` are those of `scored`, with their intervals: settings, and the worst cases over families.
    """
    found = []
    by_key = {(row["level"], row["setting"]): row for row in rows}
    for level in _by_level(scored):
        for family, settings in run.families.items():
            mine = [by_key[level, setting] for setting in settings]
            row = mine[0] if len(mine) == 1 else by_key[level, family_name(family)]
            known = [one for one in mine if one["robust_area"] is not None]
            worst = min(known, key=lambda one: float(one["robust_area"]))["setting"] if known else None
            told = {name: value for name, value in row.items() if name not in OF_ONE_SETTING}
            found.append({**told, "family": family, "settings": len(settings), "worst_setting": worst})
    return found

"""What is told of a SUT that failed on every image: that it failed, and no figure.

Results count a fault as nothing detected, so such a SUT has figures, mostly 0. They say nothing about what it
sees, and beside those of others they would read as measured.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from adverse.analysis.results import Summary

FAILED = "failed"
"""The status of a row without figures."""
FIGURES = (
    "rows",
    "families",
    "slices",
    "means",
    "expected",
    "adr",
    "plain_metrics",
    "metrics",
    "relations",
    "loop",
    "detection_range",
)
"""Parts of a summary whose rows are figures of one SUT each."""
KEPT = ("sensitivity", "score_threshold")
"""Numbers that say where a figure is read, and are none."""


def without_failed(summary: Summary) -> Summary:
    """Return a summary in which SUTs that failed on every image have no figures."""
    failed = summary.failed_everywhere
    if not failed:
        return summary
    told = {name: _told(summary.data[name], failed) for name in FIGURES if name in summary.data}
    return replace(summary, data={**summary.data, **told})


def _told(rows: Collection[Mapping[str, Any]], failed: Collection[str]) -> list[dict[str, Any]]:
    return [_without_figures(row) if row["sut"] in failed else dict(row) for row in rows]


def _without_figures(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row whose numbers, but for counts, are not defined.

    >>> _without_figures({"sut": "a", "area": 0.0, "area_interval": {}, "frames": 4, "status": "ok"})
    {'sut': 'a', 'area': None, 'area_interval': None, 'frames': 4, 'status': 'failed'}
    """
    return {name: _nothing(name, value) for name, value in row.items()} | {"status": FAILED}


def _nothing(name: str, value: Any) -> Any:
    if name in KEPT:
        return value
    if isinstance(value, Mapping) and not name.endswith("_interval"):
        return {key: _nothing(key, inner) for key, inner in value.items()}
    return None if isinstance(value, float | Mapping) else value

"""A SUT that failed on every image has no figures for people to read.

Results count a fault as nothing detected, so such a SUT has figures, mostly 0. They say nothing about what it
sees, and beside those of others they would read as measured.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

FAILED = "failed"
"""The status of a figure that is null because its SUT failed on every image."""
FIGURES = (
    "rows",
    "families",
    "means",
    "expected",
    "adr",
    "plain_metrics",
    "slices",
    "detection_range",
    "metrics",
    "relations",
    "loop",
)
"""Parts of a summary whose numbers are figures of one SUT each."""
KEPT = ("sensitivity", "score_threshold")
"""Numbers that say where a figure is read, and are none."""


def withheld(rows: Sequence[Mapping[str, Any]], answered: Collection[str]) -> list[dict[str, Any]]:
    """Return rows of figures, those of SUTs that never answered without their numbers; counts stay.

    >>> row = {"sut": "a", "recall": 0.0, "recall_interval": {}, "frames": 9, "status": "ok"}
    >>> withheld([row], answered={"b"})
    [{'sut': 'a', 'recall': None, 'recall_interval': None, 'frames': 9, 'status': 'failed'}]
    """
    return [dict(row) if row["sut"] in answered else _without_figures(row) for row in rows]


def _without_figures(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _nothing(name, value) for name, value in row.items()} | {"status": FAILED}


def _nothing(name: str, value: Any) -> Any:
    if name in KEPT:
        return value
    if isinstance(value, Mapping) and not name.endswith("_interval"):
        return {key: _nothing(key, inner) for key, inner in value.items()}
    return None if isinstance(value, float | Mapping) else value

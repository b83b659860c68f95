"""Intervals in few characters, the same on every page and in every terminal; ~ marks few logs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adverse.curves.interval import CONSTRUCTED

FEW_LOGS = "few logs"


def interval_text(low: float | None, high: float | None, spec: str = ".2f", *, status: str = "ok") -> str:
    """Return an interval as text; empty where there is none.

    >>> interval_text(0.25, 0.5), interval_text(0.25, 0.5, status="few logs"), interval_text(None, None)
    ('0.25 to 0.50', '~0.25 to 0.50', '')
    """
    if low is None or high is None:
        return ""
    return f"{'~' if status == FEW_LOGS else ''}{low:{spec}} to {high:{spec}}"


def summary_interval(interval: Mapping[str, Any] | None) -> str:
    """Return an interval of the summary as text; empty where there is none."""
    return interval_text(interval["low"], interval["high"], status=interval["status"]) if interval else ""


def interval_or_reason(interval: Mapping[str, Any] | None, spec: str = ".2f", unit: str = "") -> str:
    """Return an interval of the summary as text, or why it was refused; empty where none was asked for.

    >>> interval_or_reason({"low": None, "high": None, "status": "refused", "why": "fewer than 3 logs"})
    'no interval: fewer than 3 logs'
    """
    if interval and interval["why"] == CONSTRUCTED:
        return CONSTRUCTED
    if interval and interval["status"] == "refused":
        return f"no interval: {interval['why']}"
    if not interval:
        return ""
    return interval_text(interval["low"], interval["high"], spec, status=interval["status"]) + unit

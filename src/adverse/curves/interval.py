"""An interval with what one must know to trust it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "few logs", "refused"]

FEW_LOGS = 20
"""Below this many independent logs an interval is shown with a warning."""


@dataclass(frozen=True)
class Interval:
    """A value between `low` and `high` at a confidence level, from so many independent logs.

    Refused: no interval can be given that is known to keep its level; `low` and `high` are None, `why` says
    why. `value` is None when it is not defined at all. Few logs: given, but to be read with care.
    """

    value: float | None
    low: float | None
    high: float | None
    level: float
    method: str
    logs: int
    status: Status
    why: str = ""


def given(value: float, low: float, high: float, *, level: float, method: str, logs: int) -> Interval:
    """Return an interval, widened to hold its value; the status says whether it rests on few logs.

    >>> given(0.5, 0.25, 0.75, level=0.95, method="studentized", logs=12).status
    'few logs'
    """
    few = logs < FEW_LOGS
    status: Status = "few logs" if few else "ok"
    why = f"fewer than {FEW_LOGS} logs" if few else ""
    return Interval(value, min(low, value), max(high, value), level, method, logs, status, why)


def refused(value: float, why: str, *, level: float, method: str, logs: int) -> Interval:
    """Return the value alone (None if it is NaN), and why it has no interval."""
    known = None if math.isnan(value) else value
    return Interval(known, None, None, level, method, logs, "refused", why)

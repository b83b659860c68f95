"""What the closed loop says beside its safety: other tolerances, and how often somebody came too close.

Safety counts the logs in which the robot stops no later than the truth would have made it, but for
`stop_tolerance_m`. Beside it stand the same with no tolerance at all (`at_0`) and with that of the buffer
between control and safety radius (`at_buffer`), and the share of logs in which the robot entered somebody's
safety radius while it moved (`violations`).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adverse.analysis.confidence import Confidence, ends
from adverse.analysis.score import Scored
from adverse.curves.curve import area
from adverse.curves.interval import Interval
from adverse.curves.rates import korn_graubard
from adverse.levels.outcomes import Outcomes

SHOWN = (0.001, 0.01, 0.1)
"""Expected false positives per image at which rates are told in the summary."""


def loop_rows(scored: Sequence[Scored], sure: Confidence | None) -> list[dict[str, Any]]:
    """Return the areas at the other tolerances, and all rates at a few sensitivities."""
    rows = []
    for one in scored:
        if one.outcomes is None or one.curve is None or not one.outcomes.beside:
            continue
        row, outcomes, known = one.row, one.outcomes, one.curve.sensitivity
        found: dict[str, Any] = {"sut": row.sut, "level": row.level, "setting": row.setting}
        found |= {"status": row.status, "logs": int(outcomes.truths.sum())}
        for name in ("at_0", "at_buffer"):
            safety = _share(outcomes.beside[name], outcomes)
            defined = row.area is not None
            found[f"area_{name}"] = area(safety, one.curve.efficiency) if defined else None
            key = (row.level, row.setting, name)
            found |= ends(sure.beside.get(key) if sure else None, f"area_{name}")
        if row.area is not None:
            nearest = [int(np.argmin(np.abs(np.log(known) - np.log(level)))) for level in SHOWN]
            found["at"] = [_at(one, outcomes, k) for k in dict.fromkeys(nearest)]
        rows.append(found)
    return rows


def rate_rows(scored: Sequence[Scored]) -> list[dict[str, Any]]:
    """Return all rates at every sensitivity, each with its interval."""
    return [
        {"sut": one.row.sut, "level": one.row.level, "setting": one.row.setting, **_at(one, one.outcomes, k)}
        for one in scored
        if one.outcomes is not None and one.curve is not None
        if one.outcomes.beside and one.row.area is not None
        for k in range(len(one.curve.sensitivity))
    ]


def _at(one: Scored, outcomes: Outcomes, k: int) -> dict[str, Any]:
    found: dict[str, Any] = {} if one.curve is None else {"sensitivity": float(one.curve.sensitivity[k])}
    found["logs"] = int(outcomes.truths.sum())
    counts = {"safety": outcomes.hits, **{f"safety_{n}": outcomes.beside[n] for n in ("at_0", "at_buffer")}}
    for name, hits in {**counts, "violations": outcomes.beside["violations"]}.items():
        interval = _interval(int(hits[:, k].sum()), found["logs"])
        found[name] = interval.value
        found |= ends(interval, name)
    return found


@functools.lru_cache(maxsize=4096)
def _interval(hits: int, logs: int) -> Interval:
    """Return the interval of a share of logs; each is one trial, so only their number matters."""
    return korn_graubard(np.arange(logs) < hits, np.ones(logs))


def _share(hits: NDArray[np.int64], outcomes: Outcomes) -> NDArray[np.float64]:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(hits.sum(axis=0) / outcomes.truths.sum())

"""By how much SUTs differ on un-mutated images, over the same logs: the best of each level and the others.

A difference is surer than the two areas it is made of, since all SUTs saw the same logs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adverse.analysis.confidence import ends
from adverse.curves.quantities import Area, Difference, Quantity, Ratios
from adverse.curves.resample import Resamples
from adverse.curves.studentized import intervals


def difference_rows(
    baselines: Mapping[str, Mapping[str, Ratios]], best: Mapping[str, str], resamples: Resamples
) -> list[dict[str, Any]]:
    """Return the area of the best SUT of each level less that of every other one.

    `baselines` are the curves by SUT and level; `best` names the best SUT of a level.
    """
    rows = []
    for level, first in best.items():
        others = {sut: known[level] for sut, known in baselines.items() if sut != first and level in known}
        top = Area((baselines[first][level],))
        wanted: dict[str, Quantity] = {s: Difference(top, Area((curve,))) for s, curve in others.items()}
        for sut, found in intervals(wanted, resamples).items() if wanted else ():
            heads = {"level": level, "first": first, "second": sut, "logs": found.logs}
            rows.append({**heads, "difference": found.value, **ends(found, "difference")})
    return rows

"""The SUTs of a run side by side: ranked at every level and condition, and how far the best is ahead."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from adverse.analysis.confidence import Draws, difference_rows
from adverse.analysis.score import ANY, ANY_MILD
from adverse.analysis.sut import SutResults
from adverse.curves.bootstrap import Resamples
from adverse.curves.ranking import Ranking, changes, rank
from adverse.curves.studentized import Spread, most_ahead

Ranked = dict[tuple[str, str], Ranking]
"""By level and condition."""
UNDEFINED = Draws(math.nan, np.zeros(0), "")
LOST = "more frames could not be used than quarantine_budget allows"


def rank_suts(done: Sequence[SutResults], baseline: str) -> Ranked:
    """Rank the SUTs that answered at all, at every level, un-mutated and under the worst cases."""
    sure = {result.sut: result.confidence for result in done if result.confidence is not None}
    lost = {
        (result.sut, row["level"], row["setting"]): LOST
        for result in done
        for row in result.rows
        if row["status"] == "incomplete"
    }
    ranked: Ranked = {}
    for level in dict.fromkeys(level for confidence in sure.values() for level, _ in confidence.draws):
        for condition in (baseline, ANY_MILD, ANY):
            drawn = {
                sut: confidence.draws.get((level, condition), UNDEFINED) for sut, confidence in sure.items()
            }
            if any(draws is not UNDEFINED for draws in drawn.values()):
                doubts = {sut: lost.get((sut, level, condition), draws.doubt) for sut, draws in drawn.items()}
                known = {sut: draws.spread for sut, draws in drawn.items() if draws.spread is not None}

                def most(first: str, second: str, known: Mapping[str, Spread] = known) -> float:
                    return most_ahead(known[first], known[second])

                ranked[level, condition] = rank(drawn, doubts, most)
    return ranked


def rankings(ranked: Ranked) -> dict[str, Any]:
    """Return the rankings as plain data, and say where the best SUT changes."""
    if not ranked:
        return {}
    levels, conditions = (list(dict.fromkeys(key[part] for key in ranked)) for part in (0, 1))
    return {
        "rankings": [
            {"level": level, "condition": condition, **asdict(ranking)}
            for (level, condition), ranking in ranked.items()
        ],
        "ranking_changes": [str(change) for change in changes(ranked, levels, conditions)],
    }


def differences(
    done: Sequence[SutResults], ranked: Ranked, baseline: str, resamples: Resamples
) -> list[dict[str, Any]]:
    """Return by how much each SUT is behind the best one on clean frames, at every level."""
    curves = {result.sut: result.confidence.baseline for result in done if result.confidence is not None}
    best = {
        level: ranking.places[0].sut
        for (level, condition), ranking in ranked.items()
        if condition == baseline and ranking.places
    }
    return difference_rows(curves, best, resamples)

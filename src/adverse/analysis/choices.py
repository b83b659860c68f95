"""What the results say is best and worst: the SUT to choose, and the mutations that cost a SUT most."""

from __future__ import annotations

from typing import NamedTuple

from adverse.analysis.results import Summary
from adverse.analysis.score import ANY, ANY_MILD
from adverse.curves.ranking import equal

NO_RESAMPLES = "the study asks for no resamples of its logs"


class Best(NamedTuple):
    """The SUT with the largest area, and the probability that it is the best; None, and why, if unknown."""

    sut: str
    chance: float | None
    why: str
    equals: tuple[str, ...]
    """All SUTs with that area."""
    of: int
    """How many SUTs there are."""
    few: str
    """Words about few logs, empty if there are enough."""
    apart: bool
    """Whether the intervals of its differences from the others leave out 0, as far as there are any."""


def best_sut(summary: Summary, level: str, condition: str) -> Best | None:
    """Return the SUT with the largest area under a condition; None where no area is defined.

    None, too, of a run that stopped early: its SUTs were not shown the same logs. A SUT that failed on every
    image is left out: its 0 is no result.
    """
    if "stopped_early" in summary.data:
        return None
    rows = {row["sut"]: row for row in summary.rows if (row["level"], row["setting"]) == (level, condition)}
    failed = summary.failed_everywhere
    areas = {
        str(sut): float(row["area"])
        for sut, row in rows.items()
        if row["area"] is not None and sut not in failed
    }
    if not areas:
        return None
    first = max(areas, key=lambda sut: areas[sut])
    chance, why = None, NO_RESAMPLES
    for ranking in summary.data.get("rankings", ()):
        if (ranking["level"], ranking["condition"]) == (level, condition) and ranking["places"]:
            first, chance = ranking["places"][0]["sut"], ranking["places"][0]["best"]
            why = ranking["why"]
    equals = tuple(sut for sut in areas if equal(areas[sut], areas[first]))
    interval = rows[first].get("area_interval") or {}
    few = f", from {interval['why']}" if interval.get("status") == "few logs" else ""
    apart = rows[first]["group"] != "baseline" or all(
        (row["difference_interval"]["low"] or 0.0) > 0
        for row in summary.data.get("differences", ())
        if (row["level"], row["first"]) == (level, first)
    )
    return Best(first, chance, why, equals, len(rows), few, apart)


def worst_settings(summary: Summary, level: str, sut: str) -> dict[str, str]:
    """Return the mild and the severe mutation that leave a SUT the smallest worst-case area at a level.

    By group; of equals the first in the study, and nothing for a group without a figure.
    """
    worst: dict[str, str] = {}
    for group in ("mild", "severe"):
        rows = [
            row
            for row in summary.rows
            if (row["level"], row["sut"], row["group"]) == (level, sut, group)
            and row["setting"] not in (ANY, ANY_MILD)
            and row["robust_area"] is not None
        ]
        if rows:
            worst[group] = str(min(rows, key=lambda row: row["robust_area"])["setting"])
    return worst

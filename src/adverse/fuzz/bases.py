"""Which frames are fit to be changed: those that the best SUT already masters.

A frame that is too hard un-mutated says nothing about a mutation. The best SUT is the one with the highest
mean score over all frames.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from adverse.errors import DataError
from adverse.fuzz.job import Before
from adverse.fuzz.plan import CampaignPlan
from adverse.fuzz.scoring import Score

Row = Mapping[str, Any]


@dataclass(frozen=True)
class PrunedBases:
    """The places of the frames that are kept, all SUTs' scores on them, and how many were dropped and why.

    Not scored: nothing in them is judged, or the best SUT failed.
    """

    places: tuple[int, ...]
    before: Mapping[str, tuple[Before | None, ...]]
    frames: int
    best: str
    means: Mapping[str, float]
    below: float
    too_hard: int
    not_scored: int
    unusable: Mapping[str, str]
    """Why frames cannot be read, by frame."""

    def words(self) -> list[str]:
        """Return what was kept and dropped, a line each."""
        lines = [f"un-mutated, {self.best} scores {self.means[self.best]:.2f} % on average"]
        dropped = f"{self.too_hard} score below {self.below:g} %" if self.too_hard else ""
        unread = f"{len(self.unusable)} cannot be read" if self.unusable else ""
        empty = f"{self.not_scored} have no score" if self.not_scored else ""
        reasons = ", ".join(filter(None, (dropped, empty, unread))) or "none dropped"
        lines.append(f"{len(self.places)} of {self.frames} frames are kept as bases ({reasons})")
        return lines

    def facts(self) -> dict[str, Any]:
        """Return the same as plain data."""
        return {
            "frames": self.frames,
            "kept": len(self.places),
            "too_hard": self.too_hard,
            "not_scored": self.not_scored,
            "below": self.below,
            "best": self.best,
            "mean_scores": dict(self.means),
            "unusable": dict(self.unusable),
        }


def pruned(rows: Sequence[Row], campaign: CampaignPlan) -> PrunedBases:
    """Choose the bases from the rows of all frames, in their order."""
    suts = [task.name for task in campaign.job.suts]
    scores = {name: [_percent(row, name) for row in rows] for name in suts}
    scored = {name: [value for value in values if value is not None] for name, values in scores.items()}
    means = {name: fmean(values) for name, values in scored.items() if values}
    unusable = {row["frame"]: row["unusable"] for row in rows if row["unusable"] is not None}
    if not means:
        raise _nothing(rows, unusable)
    best = max(means, key=lambda name: means[name])
    below = campaign.prune_below
    kept = tuple(place for place, value in enumerate(scores[best]) if value is not None and value >= below)
    if not kept:
        top = max(scored[best])
        raise DataError(
            "no frame is good enough to be changed",
            where=f"SUT {best!r} on {len(rows)} frames",
            got=f"a best score of {top:.2f} %, a mean of {means[best]:.2f} %",
            wanted=f"at least {below:g} % on some",
            fix="Lower prune_below under fuzz: in the study, or use frames that the SUT masters.",
        )
    before = {
        rows[place]["frame"]: tuple(_before(rows[place]["suts"].get(name)) for name in suts) for place in kept
    }
    too_hard = sum(value is not None and value < below for value in scores[best])
    not_scored = len(rows) - len(kept) - len(unusable) - too_hard
    return PrunedBases(kept, before, len(rows), best, means, below, too_hard, not_scored, unusable)


def _percent(row: Row, sut: str) -> float | None:
    before = _before(row["suts"].get(sut))
    return None if before is None else before[0].percent


def _before(result: Row | None) -> Before | None:
    if result is None or result["score"] is None:
        return None
    return Score(*result["score"]), None if result["compat"] is None else Score(*result["compat"])


def _nothing(rows: Sequence[Row], unusable: Mapping[str, str]) -> DataError:
    faults = [result["fault"] for row in rows for result in row["suts"].values() if result["fault"]]
    first = next(iter([*faults, *unusable.values()]), "no frame has anything that is judged")
    return DataError(
        "no SUT has a score on any frame",
        got=first,
        wanted="at least one frame that can be read and judged",
        fix="Check the SUT's class names (class_map, judged_as) and the data (adverse data check).",
    )

"""The verdicts of one SUT on all its requirements, with the reason where the numbers alone do not say it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from adverse.reliability.check import Finding, Plan, decide, find
from adverse.reliability.tally import Evidence
from adverse.verdicts import Outcome

TOO_NEAR = 5
"""Where the bounds would have to be so many times nearer, more images are no advice."""
RUNS = (0, 1)
"""Every check is done twice with other random batches; only what both find is said."""


@dataclass(frozen=True)
class Judged:
    """What was found about a requirement, what follows, and why."""

    finding: Finding
    outcome: Outcome
    reason: str = ""


def judge(evidence: Sequence[Evidence], plans: Sequence[Plan]) -> list[Judged]:
    """Judge all requirements of one SUT together, at one confidence: Holm corrects for how many they are."""
    found = [[find(one, plan, run=run) for one, plan in zip(evidence, plans, strict=True)] for run in RUNS]
    outcomes = [decide(findings, max(plan.risk for plan in plans)) for findings in found] if plans else []
    return [
        _judged(finding, plan, first, second, among=len(plans))
        for finding, plan, first, second in zip(found[0], plans, *outcomes, strict=True)
    ]


def images_needed(finding: Finding, plan: Plan) -> int | None:
    """Return about how many images would settle it, if the distance stays what it is; None: too many."""
    if finding.distance is None or finding.high is None:
        return None
    gap = abs(plan.margin - finding.distance)
    reach = finding.high - finding.distance
    return None if gap < reach / TOO_NEAR else math.ceil(finding.images * (reach / gap) ** 2)


def _judged(finding: Finding, plan: Plan, first: Outcome, second: Outcome, *, among: int) -> Judged:
    if finding.refused:
        return Judged(finding, Outcome.INCONCLUSIVE, finding.refused)
    if first != second:
        words = f"n too small: of two sets of {plan.batches} random batches one says {first}, one {second}"
        return Judged(finding, Outcome.INCONCLUSIVE, words)
    if first is not Outcome.INCONCLUSIVE:
        return Judged(finding, first)
    p_value = min(finding.p_met, finding.p_missed)
    if p_value <= plan.risk:
        claim = "met" if finding.p_met <= plan.risk else "missed"
        return Judged(
            finding, first, f"{claim} taken alone (p = {p_value:.2g}), not as one of {among} (Holm)"
        )
    needed = images_needed(finding, plan)
    if needed is None:
        return Judged(
            finding, first, f"the distance is too near the margin {plan.margin:g} to be told from it"
        )
    there, wanted = f"{finding.images}", f"{needed} images"
    if finding.logs < finding.images:  # more frames of the same logs say little more
        there += f" of {finding.logs}"
        wanted += f" of {math.ceil(finding.logs * needed / finding.images)} logs"
    more = f"about {wanted} would tell, {there} there are"
    return Judged(finding, first, f"the bounds hold the margin {plan.margin:g}; {more}")

"""Whether a requirement is met, missed, or undecided on the images there are.

The reliability distance is what is required less what is measured; a requirement is met when the distance is
at most the margin. It PASSES when the upper bound of the distance is at most the margin, FAILS when the lower
bound is above it, and is INCONCLUSIVE in between: not having seen a fall does not show that there is none.

Bounds come from batches drawn with replacement. docs/requirements.md explains why the default rule is
`paired` and what `paper` does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import scipy

from adverse.curves.interval import Interval, holm, refused
from adverse.humans.thresholds import Threshold
from adverse.requirements.batches import (
    Batches,
    batches_of_images,
    batches_of_logs,
    logs_drawn,
    one_more,
    whole,
)
from adverse.requirements.effective import counted_as, image_sizes, kish, log_sizes
from adverse.requirements.measures import Evidence
from adverse.requirements.verdicts import Outcome
from adverse.text import counted

IntervalRule = Literal["paired", "paper"]
METHOD = "two one-sided bounds"
POWER = 0.9
"""How often the minimum detectable effect is detected."""
FEWEST_IMAGES, FEWEST_LOGS = 20, 5
FEWEST_EFFECTIVE = 20
"""Images so unequal that they count as fewer equal ones say too little, however many they are."""
EXTREMES = 2
"""Unseen logs like the most extreme one that the interval allows for, where logs are very unequal."""
SMALLEST_P = 1e-12
NO_EVIDENCE = 0.5
"""The p-value of a claim that the measured distance itself speaks against: half or more."""


@dataclass(frozen=True)
class SamplingPlan:
    """How a requirement is checked: n batches of k images (None: as many as there are).

    `rarest_kind` is the share of the rarest kind of image that a PASS must hold for; 0 where images all count
    the same, as no kind then weighs more than its share, which the interval allows for.
    """

    batches: int = 1000
    images: int | None = None
    confidence: float = 0.95
    margin: float = 0.02
    seed: int = 0
    rule: IntervalRule = "paired"
    rarest_kind: float = 0.0

    @property
    def risk(self) -> float:
        """The accepted chance of a wrong PASS, and of a wrong FAIL."""
        return 1 - self.confidence


@dataclass(frozen=True)
class DistanceFinding:
    """What the evidence says about one requirement; numbers are None where they are not defined.

    `interval` holds the two one-sided bounds of the distance, each at the plan's confidence, or why there are
    none. A miss of the margin by `detectable` or more is found in 9 of 10 checks, and where `detectable` is
    no larger than the margin, a SUT that does not fall at all passes in 9 of 10. `p_met` and `p_missed` are
    the p-values of the claims that the requirement is met and that it is missed. `worth` is how many
    independent, equal images the images count as, `worth_logs` how many equal logs the logs do, `extreme` how
    far unseen logs like the most extreme may move the distance, `per_batch` how many images a batch holds,
    `independent` how many images there are once those of a log that are alike count as one.
    """

    images: int
    interval: Interval
    required: float | None = None
    measured: float | None = None
    error: float | None = None
    detectable: float | None = None
    p_met: float = 1.0
    p_missed: float = 1.0
    worth: float = 0.0
    worth_logs: float = 0.0
    extreme: float = 0.0
    per_batch: int = 0
    independent: float = 0.0

    @property
    def distance(self) -> float | None:
        """Required less measured; at most 0 is good."""
        return self.interval.value

    @property
    def logs(self) -> int:
        """How many logs the images are from."""
        return self.interval.logs


def find(evidence: Evidence, plan: SamplingPlan, *, run: int = 0) -> DistanceFinding:
    """Return what the evidence says; `run` counts repetitions with other random numbers."""
    images, logs = evidence.images, evidence.logs

    def unbounded(why: str, distance: float = math.nan) -> Interval:
        return refused(distance, why, confidence=plan.confidence, method=METHOD, logs=logs)

    if not images:
        return DistanceFinding(0, unbounded("no image is informative"))
    required, measured = whole(evidence)
    if not math.isfinite(required) or not math.isfinite(measured):
        return DistanceFinding(images, unbounded("the measure is not defined on these images"))
    distance = required - measured
    why = _too_few(evidence, plan.rule)
    if why:
        return DistanceFinding(images, unbounded(why, distance), required, measured)
    worth = min(map(counted_as, image_sizes(evidence)))
    equal_logs = min(map(kish, log_sizes(evidence)))
    drawn = len(evidence.log) if plan.images is None else min(plan.images, len(evidence.log))
    draw = batches_of_logs if plan.rule == "paired" else batches_of_images
    values = draw(evidence, plan.batches, drawn, seed=plan.seed, run=run)
    undefined = int((~np.isfinite(values.required) | ~np.isfinite(values.measured)).sum())
    if undefined:
        few = "too few images" if drawn == len(evidence.log) else f"batches of {drawn} images are too small"
        why = f"{few}: not defined in {undefined} of {plan.batches} batches"
        return DistanceFinding(images, unbounded(why, distance), required, measured)
    if plan.rule == "paper":
        required, measured = float(values.required.mean()), float(values.measured.mean())
        error = math.hypot(values.required.std(ddof=1), values.measured.std(ddof=1))
        finding = _bounded(
            evidence,
            (required, measured),
            error,
            plan,
            lambda risk: max(_normal(risk) * error, unseen(worth, risk)),
        )
        return replace(
            finding,
            worth=worth,
            worth_logs=float(logs),
            per_batch=min(drawn, images),
            independent=float(images),
        )
    whole_logs = len(np.unique(evidence.log))
    share = logs_drawn(whole_logs, drawn, len(evidence.log)) / whole_logs
    spread = float((values.required - values.measured).std(ddof=1))
    error = spread * math.sqrt(share * logs / (logs - 1))  # of all images, however many a batch holds
    effect = 1.0
    if logs < images:
        least = min(map(counted_as, log_sizes(evidence)))
        alone = replace(evidence, log=np.arange(len(evidence.log)))
        singly = batches_of_logs(alone, plan.batches, drawn, seed=plan.seed, run=run)
        effect = _alike(values, singly, at_most=images / logs)
        worth = min(worth, max(least, worth / effect))
    unequal = min(1.0, 2 * (1 - equal_logs / logs))
    extreme = EXTREMES * unequal * one_more(evidence) if unequal > SMALLEST_P else 0.0
    finding = _bounded(
        evidence,
        (required, measured),
        error,
        plan,
        lambda risk: paired_reach(error, equal_logs, worth, risk, extreme=extreme),
    )
    return replace(
        finding,
        worth=worth,
        worth_logs=equal_logs,
        extreme=extreme,
        per_batch=drawn,
        independent=images / effect,
    )


def paired_reach(error: float, logs: float, worth: float, risk: float, *, extreme: float = 0.0) -> float:
    """Return half the interval: the error, what so many images cannot rule out, and a shift.

    The shift is half an image, as images are counted whole, or what unseen extremes would do, if that is
    more.

    >>> round(paired_reach(0.0, 300, 300, 0.05), 4)
    0.0116
    """
    spread = float(scipy.special.stdtrit(logs - 1, 1 - risk)) * error
    return math.hypot(spread, unseen(worth, risk)) + max(0.5 / worth, extreme)


def _too_few(evidence: Evidence, rule: IntervalRule) -> str:
    """Say why there are too few images to decide anything, or that a few hold most of what is counted."""
    images, logs = evidence.images, evidence.logs
    if images < FEWEST_IMAGES or (logs if rule == "paired" else images) < FEWEST_LOGS:
        have = counted(images, "image") + (f" in {counted(logs, 'log')}" if logs < images else "")
        words = f"too few images: {have}; at least {FEWEST_IMAGES} in {FEWEST_LOGS} logs"
        alone = "; in folders, logs: image under data: takes every image by itself, if they are independent"
        return words + (alone if logs == 1 < images else "")
    units = [("images", images, image_sizes(evidence), FEWEST_EFFECTIVE)]
    if rule == "paired":
        units.append(("logs", logs, log_sizes(evidence), FEWEST_LOGS))
    for noun, count, sides, fewest in units:
        sizes = min(sides, key=kish)
        if kish(sizes) < fewest:
            fullest = math.floor(100 * float(np.sort(sizes)[-3:].sum() / sizes.sum()))
            return (
                f"too few images: 3 of {count} {noun} hold {fullest} % of what is counted, so they count "
                f"as {kish(sizes):.1f} equal {noun}; at least {fewest}"
            )
    return ""


def unseen(images: float, risk: float) -> float:
    """Return the largest share of images that can behave differently without one of these being such.

    About 3 / images at a risk of 5 %: images that all behaved alike cannot rule out more.

    >>> round(unseen(300, 0.05), 4)
    0.0099
    """
    return float(1 - risk ** (1 / images))


def images_to_meet(share: float, risk: float) -> int:
    """Return how many images miss a kind of image of that share with no more than the risk.

    >>> images_to_meet(0.02, 0.05), images_to_meet(0.05, 0.05)
    (149, 59)
    """
    return math.ceil(math.log(risk) / math.log1p(-share))


def decide(findings: Sequence[DistanceFinding], risk: float) -> list[Outcome]:
    """Return the outcome of each requirement of one SUT, corrected by Holm for how many there are.

    Claims that requirements are met and claims that they are missed are corrected each among themselves, so
    that of all the PASSes the chance that any is wrong is at most the risk, and of all the FAILs too.
    """
    met = holm([finding.p_met for finding in findings], alpha=risk)
    missed = holm([finding.p_missed for finding in findings], alpha=risk)
    return [
        Outcome.PASS if yes else Outcome.FAIL if no else Outcome.INCONCLUSIVE
        for yes, no in zip(met, missed, strict=True)
    ]


def _alike(together: Batches, singly: Batches, *, at_most: float) -> float:
    """Return how many images count as one because those of a log are alike (the design effect), from 1 up.

    The variance of batches of whole logs over that of batches of single images; where nothing varies, nothing
    is known of it, and a log counts as one image.
    """
    effects = [
        float(logs.var(ddof=1) / images.var(ddof=1))
        for logs, images in (
            (together.required, singly.required),
            (together.measured, singly.measured),
            (together.required - together.measured, singly.required - singly.measured),
        )
        if images.var(ddof=1) > 0
    ]
    return min(max(1.0, *effects), at_most) if effects else at_most


def _bounded(
    evidence: Evidence,
    sides: tuple[float, float],
    error: float,
    plan: SamplingPlan,
    reach: Callable[[float], float],
) -> DistanceFinding:
    """Return the bounds and p-values of what is required and measured, from half the interval at any risk."""
    distance = sides[0] - sides[1]
    half = reach(plan.risk)
    ends = distance - half, distance + half
    return DistanceFinding(
        evidence.images,
        Interval(distance, *ends, plan.confidence, METHOD, evidence.logs, "ok"),
        *sides,
        error=error,
        detectable=half + _normal(1 - POWER) * error,
        p_met=_p_value(plan.margin - distance, reach) if distance <= plan.margin else NO_EVIDENCE,
        p_missed=_p_value(distance - plan.margin, reach) if distance > plan.margin else NO_EVIDENCE,
    )


def _p_value(gap: float, reach: Callable[[float], float]) -> float:
    """Return the smallest risk at which the bound still clears the gap."""
    if reach(NO_EVIDENCE) > gap:
        return NO_EVIDENCE
    if reach(SMALLEST_P) <= gap:
        return SMALLEST_P
    log_risk = scipy.optimize.brentq(
        lambda power: reach(math.exp(power)) - gap, math.log(SMALLEST_P), math.log(0.5)
    )
    return math.exp(log_risk)


def _normal(risk: float) -> float:
    return float(scipy.special.ndtri(1 - risk))


MOST_TIMES = 25
"""Where more than this many times the images are needed, asking for them is no advice."""
RUNS = (0, 1)
"""Every check is done twice with other random batches; only what both agree on is reported."""


@dataclass(frozen=True)
class Decision:
    """The finding about a requirement, its outcome, and the reason for it."""

    finding: DistanceFinding
    outcome: Outcome
    reason: str = ""


def decisions(evidence: Sequence[Evidence], plans: Sequence[SamplingPlan]) -> list[Decision]:
    """Decide all requirements of one SUT together, at one confidence, corrected for their number (Holm)."""
    pairs = list(zip(evidence, plans, strict=True))
    runs = [[find(rows, plan, run=run) for rows, plan in pairs] for run in RUNS]
    outcomes = [decide(findings, max(plan.risk for plan in plans)) for findings in runs] if plans else []
    return [
        _decision(finding, plan, first, second, among=len(plans))
        for finding, plan, first, second in zip(runs[0], plans, *outcomes, strict=True)
    ]


def images_needed(finding: DistanceFinding, plan: SamplingPlan, *, among: int = 1) -> int | None:
    """Return about how many images would settle it, if the distance stays what it is; None: too many.

    Under `rule: paper` that is how many a batch must hold. One of several requirements needs the evidence
    that Holm asks of the first of them.
    """
    if finding.distance is None or finding.error is None:
        return None
    gap, risk = abs(plan.margin - finding.distance), plan.risk / among
    kinds = _for_kinds(finding, plan) if finding.distance <= plan.margin else 0
    if plan.rule == "paper":
        if 0 < gap < unseen(finding.worth, risk):
            times = math.log(risk) / math.log1p(-gap) / finding.worth
            return max(math.ceil(finding.images * times), kinds) if times <= MOST_TIMES else None
        times = (_normal(risk) * finding.error / gap) ** 2 if gap > 0 else math.inf
        return math.ceil(finding.per_batch * times) if times <= MOST_TIMES else None
    error = finding.error

    def beyond(times: float) -> float:
        half = paired_reach(
            error / math.sqrt(times),
            finding.worth_logs * times,
            finding.worth * times,
            risk,
            extreme=finding.extreme / times,
        )
        return half - gap

    if beyond(MOST_TIMES) > 0:
        return None
    times = float(scipy.optimize.brentq(beyond, 1, MOST_TIMES)) if beyond(1) > 0 else 1.0
    return max(math.ceil(finding.images * times), kinds)


def _for_kinds(finding: DistanceFinding, plan: SamplingPlan) -> int:
    """Return how many images, alike within logs as these are, must be there for a PASS."""
    if plan.rarest_kind == 0:
        return 0
    alike = finding.images / finding.independent
    return math.ceil(images_to_meet(plan.rarest_kind, plan.risk) * alike)


def _decision(
    finding: DistanceFinding, plan: SamplingPlan, first: Outcome, second: Outcome, *, among: int
) -> Decision:
    if finding.interval.status == "refused":
        return Decision(finding, Outcome.INCONCLUSIVE, finding.interval.why)
    if first != second:
        words = f"n too small: of two sets of {plan.batches} random batches one says {first}, one {second}"
        return Decision(finding, Outcome.INCONCLUSIVE, f"{words}; raise batches:")
    if first is Outcome.PASS:
        return _passed(finding, plan)
    return Decision(finding, first, "" if first is Outcome.FAIL else _why_open(finding, plan, among))


def _passed(finding: DistanceFinding, plan: SamplingPlan) -> Decision:
    """Return a PASS, or why there is none although the bound is below the margin."""
    if finding.required is not None and finding.required <= plan.margin:
        words = f"{finding.required:.3g} is required, no more than the margin {plan.margin:g}"
        return Decision(finding, Outcome.INCONCLUSIVE, f"{words}: losing everything would pass, too")
    if finding.images < _for_kinds(finding, plan):
        return Decision(finding, Outcome.INCONCLUSIVE, _kinds_missing(finding, plan))
    kinds = f"for kinds of image from {_one_in(plan.rarest_kind)} on" if plan.rarest_kind > 0 else ""
    return Decision(finding, Outcome.PASS, kinds)


def _one_in(share: float) -> str:
    return f"1 in {1 / share:.3g}"


def _kinds_missing(finding: DistanceFinding, plan: SamplingPlan) -> str:
    """Say that nothing fell too far here, but that crowds, say, may be missing among so few images."""
    missed = (1 - plan.rarest_kind) ** finding.independent
    there = f"{finding.images} images"
    if finding.independent < finding.images:
        there += f" of {finding.logs} logs, alike within them,"
    return (
        f"met on these images, but {there} lack any of a kind that is {_one_in(plan.rarest_kind)} with a "
        f"chance of {missed:.0%}, and such a kind may hold most of what is counted (crowds); "
        f"{_for_kinds(finding, plan)} images would do, or set rarest_kind: to the share of the rarest kind "
        "that a PASS must hold for"
    )


def _why_open(finding: DistanceFinding, plan: SamplingPlan, among: int) -> str:
    """Say why neither bound clears the margin, and what would help, if anything does."""
    p_value = min(finding.p_met, finding.p_missed)
    if p_value <= plan.risk:
        claim = "met" if finding.p_met <= plan.risk else "missed"
        return f"{claim} taken alone (p = {p_value:.2g}), not as one of {among} (Holm)"
    if plan.margin == 0 and finding.distance == 0:
        return "nothing fell, but no number of images can show a fall of exactly 0; set a margin: above 0"
    needed = images_needed(finding, plan, among=among)
    if needed is None:
        return f"the distance is too close to the margin {plan.margin:g} to decide"
    between = f"the margin {plan.margin:g} lies between the bounds"
    there, wanted = f"{finding.images}", f"{needed} images"
    seen = unseen(finding.worth, plan.risk / among) <= abs(plan.margin - (finding.distance or 0))
    if plan.rule == "paper" and finding.per_batch < finding.images and seen:
        between += f", which rule: paper draws as wide as batches of {finding.per_batch} images spread"
        if needed <= finding.images:
            return f"{between}; more images would not help, images: {needed} or rule: paired would"
        wanted += " in each batch"
    if finding.logs < finding.images:  # more frames of the same logs say little more
        there += f" of {finding.logs}"
        wanted += f" of {math.ceil(finding.logs * needed / finding.images)} logs"
    return f"{between}; about {wanted} would decide it, there are {there}"


def without_interval(found: Decision, limit: Threshold) -> Decision:
    """Return the decision where people were asked, but too few to say how sure their threshold is.

    Then nobody knows from where on people fail, too, and a FAIL is not proven.
    """
    interval = limit.interval
    if found.outcome is not Outcome.FAIL or interval is None or interval.status != "refused":
        return found
    unknown = f"people may fail before: no interval of {limit.symbol} ({interval.why})"
    reason = f"FAIL up to {limit.tolerated_to:g}, but {unknown}"
    return replace(found, outcome=Outcome.INCONCLUSIVE, reason=reason)


def within_interval(
    found: Decision, lower: Decision, limit: Threshold, *, decided_to: float = 0.0
) -> Decision:
    """Return the decision once the uncertainty of the threshold is counted.

    `found` is about changes up to the threshold, `lower` about those up to the lower end of its interval,
    which people surely tolerate. A SUT that only falls beyond that end may fall where people do, too: it
    fails when it fails within the lower end. Where too few versions lie below that end, `lower` is about
    those up to `decided_to`, the least change that can be decided: who falls that early fails.
    """
    interval = limit.interval
    if interval is None or interval.low is None or interval.high is None:
        return found
    end = f"{limit.tolerated_to:g}"
    sure = f"{interval.low:g}, the lower end of the {interval.percent} interval of {limit.symbol}"
    if decided_to > interval.low:
        sure = (
            f"{decided_to:.3g}, the least change with enough versions (the {interval.percent} interval of "
            f"{limit.symbol} goes down to {interval.low:g})"
        )
    further = "beyond the data" if math.isinf(interval.high) else f"up to {interval.high:g}"
    not_checked = f"; people may tolerate it {further}, which was not checked"
    more = not_checked if interval.high > limit.tolerated_to else ""
    more += f"; {found.reason}" if found.outcome is Outcome.PASS and found.reason else ""
    passes, fails, undecided = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE
    outcome, reason = {
        (passes, passes): (passes, f"up to {end}{more}"),
        (passes, undecided): (passes, f"up to {end}{more}; undecided up to {sure}: {lower.reason}"),
        (passes, fails): (undecided, f"PASS up to {end} as a whole, but FAIL up to {sure}"),
        (fails, fails): (fails, f"also up to {sure}"),
        (fails, passes): (undecided, f"PASS up to {sure}; FAIL up to {end}, which people may not tolerate"),
        (fails, undecided): (undecided, f"FAIL up to {end}, but undecided up to {sure}: {lower.reason}"),
        (undecided, undecided): (undecided, found.reason),
    }.get((found.outcome, lower.outcome), (undecided, f"{found.reason}; {lower.outcome} up to {sure}"))
    return replace(found, outcome=outcome, reason=reason)

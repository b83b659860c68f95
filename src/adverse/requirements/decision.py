"""Whether a requirement is met, missed, or undecided on the images there are.

The reliability distance is what is required less what is measured; a requirement is met when the distance is
at most the margin. It PASSES when the upper bound of the distance is at most the margin, FAILS when the lower
bound is above it, and is INCONCLUSIVE in between: not having seen a fall does not show that there is none.

Bounds come from batches drawn with replacement, each a weight for every row. `logs` draws whole logs, each
image with the mean of its versions, since frames of one drive are alike. `images` draws images one by one,
each with one version drawn with it, as the paper does. docs/requirements.md explains why the default rule is
`paired` and what `paper` does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from adverse.curves.interval import Interval, holm, refused
from adverse.requirements.measures import Array, Evidence, Side
from adverse.requirements.verdicts import Outcome
from adverse.seeds import generator

CHUNK = 64
"""Batches that are weighed at a time, so that memory stays bounded."""


class Batches(NamedTuple):
    """What is required and what is measured in each batch (n,)."""

    required: Array
    measured: Array


def whole(evidence: Evidence) -> tuple[float, float]:
    """Return what is required and what is measured over all images, each counted once."""
    ones = np.ones((1, len(evidence.log)))
    required, measured = (
        float(side.tally.under(_by_image(side, ones))[0]) for side in (evidence.required, evidence.measured)
    )
    return required, measured


def batches_of_logs(evidence: Evidence, batches: int, images: int, *, seed: int, run: int) -> Batches:
    """Draw batches of about `images` images by drawing whole logs."""
    names, log = np.unique(evidence.log, return_inverse=True)
    drawn = max(1, round(len(names) * images / len(evidence.log)))
    rng = generator(seed, "batches of logs", str(run))
    parts = []
    for size in _sizes(batches):
        weights = _counts(rng.integers(len(names), size=(size, drawn)), len(names))[:, log]
        parts.append(
            [side.tally.under(_by_image(side, weights)) for side in (evidence.required, evidence.measured)]
        )
    return _joined(parts)


def batches_of_images(evidence: Evidence, batches: int, images: int, *, seed: int, run: int) -> Batches:
    """Draw batches of `images` images, and with each image one of its versions.

    A side that has fewer images draws as many as it has: a batch must not pretend more. Where both sides have
    the same images, the same are drawn for both.
    """
    rng = generator(seed, "batches of images", str(run))
    sides = (evidence.required, evidence.measured)
    rows = [_rows_by_image(side, len(evidence.log)) for side in sides]
    pools = [np.flatnonzero(index.number > 0) for index in rows]
    parts = []
    for size in _sizes(batches):
        place, which = rng.random((size, images)), rng.random((size, images))
        values = []
        for side, index, pool in zip(sides, rows, pools, strict=True):
            drawn = min(images, len(pool))
            image = pool[(place[:, :drawn] * len(pool)).astype(np.int64)]
            row = index.order[index.start[image] + (which[:, :drawn] * index.number[image]).astype(np.int64)]
            values.append(side.tally.under(_counts(row, len(side.image))))
        parts.append(values)
    return _joined(parts)


class _Rows(NamedTuple):
    order: NDArray[np.int64]
    start: NDArray[np.int64]
    number: NDArray[np.int64]


def _rows_by_image(side: Side, images: int) -> _Rows:
    """Return where the rows of each image are, once they are put in the order of the images."""
    count = np.bincount(side.image, minlength=images)
    return _Rows(np.argsort(side.image, kind="stable"), np.cumsum(count) - count, count)


def _by_image(side: Side, weights: Array) -> Array:
    """Return the weights (B, R) of rows from those (B, N) of images, shared evenly by an image's rows."""
    count = np.bincount(side.image, minlength=weights.shape[1])
    shared: Array = weights[:, side.image] / count[side.image]
    return shared


def _counts(drawn: NDArray[np.int64], kinds: int) -> Array:
    """Return how often each of `kinds` numbers stands in each line of `drawn`."""
    flat = drawn + np.arange(len(drawn))[:, None] * kinds
    return np.bincount(flat.ravel(), minlength=len(drawn) * kinds).reshape(-1, kinds).astype(np.float64)


def _sizes(batches: int) -> list[int]:
    return [min(CHUNK, batches - start) for start in range(0, batches, CHUNK)]


def _joined(parts: list[list[Array]]) -> Batches:
    required, measured = (np.concatenate([part[side] for part in parts]) for side in (0, 1))
    return Batches(required, measured)


IntervalRule = Literal["paired", "paper"]
METHOD = "two one-sided bounds"
POWER = 0.9
"""How often the minimum detectable effect is detected."""
FEWEST_IMAGES, FEWEST_LOGS = 20, 5
SMALLEST_P = 1e-12
NO_EVIDENCE = 0.5
"""The p-value of a claim that the measured distance itself speaks against: half or more."""


@dataclass(frozen=True)
class SamplingPlan:
    """How a requirement is checked: n batches of k images (None: as many as there are)."""

    batches: int = 1000
    images: int | None = None
    confidence: float = 0.95
    margin: float = 0.02
    seed: int = 0
    rule: IntervalRule = "paired"

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
    the p-values of the claims that the requirement is met and that it is missed.
    """

    images: int
    interval: Interval
    required: float | None = None
    measured: float | None = None
    error: float | None = None
    detectable: float | None = None
    p_met: float = 1.0
    p_missed: float = 1.0

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
    independent = logs if plan.rule == "paired" else images
    if images < FEWEST_IMAGES or independent < FEWEST_LOGS:
        have = f"{images} images" + (f" in {logs} logs" if logs < images else "")
        why = f"too few images: {have}; at least {FEWEST_IMAGES} in {FEWEST_LOGS} logs"
        return DistanceFinding(images, unbounded(why, distance), required, measured)
    drawn = len(evidence.log) if plan.images is None else min(plan.images, len(evidence.log))
    draw = batches_of_logs if plan.rule == "paired" else batches_of_images
    values = draw(evidence, plan.batches, drawn, seed=plan.seed, run=run)
    undefined = int((~np.isfinite(values.required) | ~np.isfinite(values.measured)).sum())
    if undefined:
        why = f"too few images: not defined in {undefined} of {plan.batches} batches"
        return DistanceFinding(images, unbounded(why, distance), required, measured)
    if plan.rule == "paper":
        required, measured = float(values.required.mean()), float(values.measured.mean())
        error = math.hypot(values.required.std(ddof=1), values.measured.std(ddof=1))
        return _bounded(evidence, (required, measured), error, plan, lambda risk: _normal(risk) * error)
    error = float((values.required - values.measured).std(ddof=1)) * math.sqrt(logs / (logs - 1))
    worth = float(min(images, drawn))
    if logs < images:
        alone = replace(evidence, log=np.arange(len(evidence.log)))
        singly = batches_of_logs(alone, plan.batches, drawn, seed=plan.seed, run=run)
        worth = max(float(logs), worth / _alike(values, singly, at_most=images / logs))

    def reach(risk: float) -> float:
        """Half the interval: the error, what so many images cannot rule out, half an image for rounding."""
        spread = float(special.stdtrit(logs - 1, 1 - risk)) * error
        return math.hypot(spread, unseen(worth, risk)) + 0.5 / worth

    return _bounded(evidence, (required, measured), error, plan, reach)


def unseen(images: float, risk: float) -> float:
    """Return the largest share of images that can behave differently without one of these being such.

    About 3 / images at a risk of 5 %: images that all behaved alike cannot rule out more.

    >>> round(unseen(300, 0.05), 4)
    0.0099
    """
    return float(1 - risk ** (1 / images))


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
    log_risk = optimize.brentq(
        lambda power: reach(math.exp(power)) - gap, math.log(SMALLEST_P), math.log(0.5)
    )
    return math.exp(log_risk)


def _normal(risk: float) -> float:
    return float(special.ndtri(1 - risk))


TOO_NEAR = 5
"""Where the bounds would have to be this many times nearer, asking for more images is no advice."""
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


def images_needed(finding: DistanceFinding, plan: SamplingPlan) -> int | None:
    """Return about how many images would settle it, if the distance stays what it is; None: too many."""
    if finding.distance is None or finding.interval.high is None:
        return None
    gap = abs(plan.margin - finding.distance)
    reach = finding.interval.high - finding.distance
    return None if gap < reach / TOO_NEAR else math.ceil(finding.images * (reach / gap) ** 2)


def _decision(
    finding: DistanceFinding, plan: SamplingPlan, first: Outcome, second: Outcome, *, among: int
) -> Decision:
    if finding.interval.status == "refused":
        return Decision(finding, Outcome.INCONCLUSIVE, finding.interval.why)
    if first != second:
        words = f"n too small: of two sets of {plan.batches} random batches one says {first}, one {second}"
        return Decision(finding, Outcome.INCONCLUSIVE, words)
    if first is not Outcome.INCONCLUSIVE:
        return Decision(finding, first)
    p_value = min(finding.p_met, finding.p_missed)
    if p_value <= plan.risk:
        claim = "met" if finding.p_met <= plan.risk else "missed"
        return Decision(
            finding, first, f"{claim} taken alone (p = {p_value:.2g}), not as one of {among} (Holm)"
        )
    needed = images_needed(finding, plan)
    if needed is None:
        return Decision(finding, first, f"the distance is too close to the margin {plan.margin:g} to decide")
    there, wanted = f"{finding.images}", f"{needed} images"
    if finding.logs < finding.images:  # more frames of the same logs say little more
        there += f" of {finding.logs}"
        wanted += f" of {math.ceil(finding.logs * needed / finding.images)} logs"
    more = f"about {wanted} would decide it, there are {there}"
    return Decision(finding, first, f"the margin {plan.margin:g} lies between the bounds; {more}")

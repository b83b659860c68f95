"""Thresholds from human answers: bins, a smoothing spline, and a one-sided test in each bin.

The threshold is the lower edge of the first bin in which people do significantly worse than on what they are
compared with (Hu et al. 2022, section 5): up to there the change is tolerated. Where no bin does, there is no
number; people tolerate the change at least up to the end of the last bin with enough answers.

Beside it stands an interval for where the drop begins. The threshold is the first bin in which a drop is
*proven*. How early that is depends on how many people answered, so the spread of the threshold itself says
little about where people begin to fail: in simulated studies it mostly misses the true point
(docs/human-study.md). So that point is estimated directly.

The rate is flat up to a drop point d and then falls as a power of the distance from it: at once, steeply,
evenly or gently (POWERS). Only the onset is fitted, up to where half of the fall is done or the evidence is
overwhelming, since nothing is known about how the fall goes on. For every d the best such curve is fitted;
the interval holds all d whose curve fits nearly as well as the best one. How nearly, the participants decide:
drawn anew many times, the loss of fit at the best d stays below that bound in 90% of the draws (for an
interval of 90%).
"""

from __future__ import annotations

import functools
import math
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from adverse.curves.interval import Interval, clopper_pearson, refused
from adverse.errors import StudyError
from adverse.humans.answers import BINS, CENTRES, EDGES, AnswerCounts, Array, Judgments, count_answers
from adverse.humans.drop_test import BaseRate, p_of_fewer
from adverse.humans.smoothing import LEAST_POINTS, smooth
from adverse.humans.thresholds import FOUND, INSUFFICIENT, KINDS, NOT_FOUND, SYMBOLS, Kind
from adverse.seeds import generator
from adverse.visual import Backend

POWERS = (0.0, 0.5, 1.0, 2.0)
"""How the drop sets in: at once, steeply, evenly, gently."""
HALF = 0.5
ENOUGH = 50.0
"""Squared distance, in standard errors, at which a drop is beyond doubt; what comes after is not fitted."""
SURE = 0.02
"""Rates are taken to be at least this far from 0 and 1 when their noise is judged."""
AFTER = 3
"""Populated bins that are fitted beyond that, lest a sudden drop be cut off where it happens."""
FLAT = 1e-9


def drop_interval(
    counted: AnswerCounts, draws: Array, fitted: Array, threshold_bin: int, confidence: float
) -> tuple[float, float]:
    """Return the interval of the drop point; an infinite upper end is beyond the data.

    `draws` (R, P) says how often each participant is drawn in each resample; `fitted` is the spline at every
    bin, NaN where a bin is not populated.
    """
    draws = np.vstack([np.ones(len(counted.answers)), draws])
    populated = np.isfinite(fitted)
    rate = np.clip(np.where(populated, fitted, 0.5), SURE, 1 - SURE)
    noise = rate * (1 - rate)
    base = min(max(counted.base_rate, SURE), 1 - SURE)
    used = _onset(counted.answers.sum(axis=0), rate, noise, populated, base, threshold_bin)
    weight = used / noise
    base_weight = float(counted.base_apart) / (base * (1 - base))
    loss = _losses(
        (draws @ counted.answers) * weight,
        (draws @ counted.successes) * weight,
        (draws @ counted.base_answers) * base_weight,
        (draws @ counted.base_successes) * base_weight,
    )
    best = int(loss[0].argmin())
    lost = loss[1:, best] - loss[1:].min(axis=1)
    bound = max(float(np.quantile(lost, confidence)), float(chdtri(1, 1 - confidence)))
    inside = np.flatnonzero(loss[0] - loss[0].min() <= bound)
    low, high = int(inside[0]), int(inside[-1])
    beyond = high >= np.flatnonzero(used)[-1]
    return float(EDGES[max(low - 1, 0)]), math.inf if beyond else float(EDGES[high + 1])


def _onset(answers: Array, rate: Array, noise: Array, populated: Array, base: float, start: int) -> Array:
    """Return which bins to fit (1 or 0): up to where, from the threshold on, the drop is beyond doubt."""
    fall = np.where(populated, np.clip(base - rate, 0, None), 0)
    evidence = np.cumsum(np.where(populated, answers * fall**2 / noise, 0))
    done = populated & ((evidence >= ENOUGH) | (fall >= HALF * fall.max())) & (np.arange(BINS) >= start)
    if not done.any():
        return populated.astype(np.float64)
    place = np.cumsum(populated)
    near: Array = (populated & (place <= place[int(np.argmax(done))] + AFTER)).astype(np.float64)
    return near


def _losses(weight: Array, weighted: Array, base_weight: Array, base_weighted: Array) -> Array:
    """Return minus the gain in fit of a drop at each edge over none at all, for each resample.

    Least squares of rate = top - depth * onset(d, power), depth not negative, in closed form; the best
    power counts.
    """
    shapes = _onsets()
    flat, squares = shapes.reshape(-1, BINS), _squared_onsets()
    total = weight.sum(axis=1) + base_weight
    top = (weighted.sum(axis=1) + base_weighted) / total
    first = weight @ flat.T
    spread = weight @ squares.T - first**2 / total[:, None]
    slope = weighted @ flat.T - first * top[:, None]
    falls = (slope < 0) & (spread > FLAT)
    gain = np.where(falls, slope**2 / np.where(falls, spread, 1), 0)
    best: Array = -gain.reshape(len(weight), *shapes.shape[:2]).max(axis=2)
    return best


@functools.cache
def _squared_onsets() -> Array:
    squares: Array = _onsets().reshape(-1, BINS) ** 2
    return squares


@functools.cache
def _onsets() -> Array:
    """Return every onset (edge, power, bin), 1 in the last bin; at the last edge nothing is left to fall."""
    beyond = np.clip((CENTRES - EDGES[:-1, None]) / (CENTRES[-1] - EDGES[:-1, None]), 0, None)
    shapes = np.stack([np.where(beyond > 0, beyond**power, 0.0) for power in POWERS], axis=1)
    return np.concatenate([shapes, np.zeros((1, len(POWERS), BINS))])


Weight = Literal["none", "answers"]

BASE_CONFIDENCE = 0.99
"""Of the interval of the rate on the originals that a rate from elsewhere must lie in."""
FEW = 10
"""A bin with this many answers, or fewer, is dropped; a base with fewer than this many is none."""
LEFT = 0.5
"""Share of the draws that must be left with enough bins."""
PROFILE, PERCENTILE = "profile over participants", "percentile over participants"
"""Methods of intervals; their independent units are participants."""
FEWEST_PEOPLE = 10
"""Fewer participants cannot be drawn anew in enough ways to tell how much people differ."""


@dataclass(frozen=True)
class EstimateOptions:
    """How thresholds are estimated; the defaults are the paper's.

    `weight`: whether the spline counts every bin alike or by its answers. `consecutive`: how many significant
    bins in a row make a threshold. `baseline_quantile`: which barely changed images give s0. `base_rate`: the
    rate of right answers on originals (m0) where it comes from outside the file.
    """

    alpha: float = 0.05
    weight: Weight = "none"
    consecutive: int = 1
    baseline_quantile: float = 0.05
    confidence: float = 0.9
    resamples: int = 500
    seed: int = 0
    base_rate: float | None = None

    def __post_init__(self) -> None:
        if self.base_rate is not None and not 0 < self.base_rate < 1:
            _refuse("base_rate", self.base_rate, "a share between 0 and 1")
        for name, most in (("alpha", 0.5), ("baseline_quantile", 1), ("confidence", 1)):
            if not 0 < getattr(self, name) < most:
                _refuse(name, getattr(self, name), f"a number between 0 and {most:g}")
        if self.consecutive not in (1, 2):
            _refuse("consecutive", self.consecutive, "1 or 2")
        if not 100 <= self.resamples <= 100_000:
            _refuse("resamples", self.resamples, "100 to 100000")


@dataclass(frozen=True)
class Bin:
    """One populated bin of visual change: its answers, and what the spline and the test say."""

    low: float
    high: float
    answers: int
    rate: float
    fitted: float
    band: tuple[float, float] | None
    p: float


@dataclass(frozen=True)
class Estimate:
    """A threshold with all that led to it; `status` is found, not found or insufficient.

    `interval` is that of the point where the drop begins, widened to hold `value`; None where there is no
    value. `spread` is where the estimate itself lands for other participants, `found_share` how often it is
    found at all. An infinite end is beyond the data. `tied` and `unseen` count answers that say nothing about
    t_p: on the original people are tied, or nobody saw it. `compat` names another script's rules, if any;
    where these are two-sided, `better` says that people do better at the threshold, not worse.
    """

    transformation: str
    kind: Kind
    status: str
    backend: Backend
    why: str = ""
    value: float | None = None
    tolerated_to: float | None = None
    interval: Interval | None = None
    spread: Interval | None = None
    found_share: float | None = None
    base: float | None = None
    base_answers: int = 0
    answers: int = 0
    participants: int = 0
    tied: int = 0
    unseen: int = 0
    smoothing: float | None = None
    bins: tuple[Bin, ...] = ()
    compat: str = ""
    better: bool = False

    @property
    def symbol(self) -> str:
        """t_c or t_p."""
        return SYMBOLS[self.kind]

    def plain(self) -> dict[str, Any]:
        """Return the estimate as JSON holds it."""
        return asdict(self) | {
            "interval": None if self.interval is None else self.interval.plain(),
            "spread": None if self.spread is None else self.spread.plain(),
        }


@dataclass(frozen=True, eq=False)
class Fit:
    """The spline over the populated bins of B counts at once, and where the test finds a drop.

    Rows are counts, columns all bins; NaN where a bin is not populated. `first` is the bin of the
    threshold, -1 where none is found. `hits` are the successes that are tested.
    """

    fitted: Array
    hits: Array
    first: NDArray[np.int64]
    lam: Array


def estimate(judgments: Judgments, options: EstimateOptions | None = None) -> list[Estimate]:
    """Estimate t_c and t_p of every transformation in the answers."""
    chosen = options or EstimateOptions()
    refuse_another_base(chosen.base_rate, judgments)
    return [
        estimate_one(judgments.of(name), name, kind, chosen)
        for name in judgments.transformations
        for kind in KINDS
    ]


def refuse_another_base(given: float | None, judgments: Judgments) -> None:
    """Refuse a rate from elsewhere that the answers on the originals in the same file contradict."""
    originals = judgments.originals.where(judgments.originals.truth != "")
    right, answers = int((originals.answer == originals.truth).sum()), len(originals)
    if given is None or not answers:
        return
    low, high = clopper_pearson(right, answers, BASE_CONFIDENCE)
    if not low <= given <= high:
        raise StudyError(
            "the base rate that was given is not that of these people",
            where="--base-rate",
            got=f"{given:g}, where {right} of {answers} answers on originals in the file are right "
            f"({right / answers:.1%})",
            wanted=f"{low:.3f} to {high:.3f}, the {BASE_CONFIDENCE:.0%} interval of that",
            fix="Leave --base-rate out: the originals of the file are counted. Or give answers without them.",
        )


def estimate_one(
    judgments: Judgments, name: str, kind: Kind, options: EstimateOptions, *, with_interval: bool = True
) -> Estimate:
    """Estimate one threshold from the answers on one transformation and on all originals.

    Without its interval, where only the curve is compared, it takes half the time.
    """
    counted = count_answers(judgments, kind, options.baseline_quantile)
    if options.base_rate is not None and kind == "correctness":
        none = np.zeros(len(counted.answers))
        counted = replace(counted, base_answers=none, base_successes=none, base_given=options.base_rate)
    backend = judgments.measured_by
    why = lacking(counted, options.alpha)
    answers = counted.answers.sum(axis=0)
    if why:
        return Estimate(
            name,
            kind,
            INSUFFICIENT,
            backend,
            why,
            answers=int(answers.sum()),
            participants=counted.participants,
            tied=counted.tied,
            unseen=counted.unseen,
        )
    successes = counted.successes.sum(axis=0)
    base = base_of(counted)
    spline = fit(answers[None], successes[None], base, options)
    first = int(spline.first[0])
    populated = np.flatnonzero(np.isfinite(spline.fitted[0]))
    value = None if first < 0 else float(EDGES[first])
    interval = spread = share = bands = None
    people = counted.participants
    if counted.participants >= FEWEST_PEOPLE:
        draws = draws_of(len(counted.answers), options, name, kind)
        again = _again(counted, draws, spline, options)
        if again is not None:
            share = float((again.first >= 0).mean())
            spread = None if value is None else _spread(value, again.first, options.confidence, people)
            bands = _bands(again.fitted[:, populated], options.confidence)
        if value is not None and with_interval:
            low, high = drop_interval(counted, draws, spline.fitted[0], first, options.confidence)
            ends = min(low, value), max(high, value)
            interval = Interval(value, *ends, options.confidence, PROFILE, people, "ok")
            if value < low:
                why = (
                    f"the drop seems to begin at {low:g} or later; the first significant bin may be an "
                    "accident of the spline: see whether two bins in a row agree"
                )
    elif value is not None:
        few = f"{people} participants, where {FEWEST_PEOPLE} are needed"
        interval = refused(value, few, confidence=options.confidence, method=PROFILE, logs=people)
    p = p_of_fewer(spline.hits[:, populated], answers[None, populated], base)[0]
    bins = tuple(
        Bin(
            float(EDGES[b]),
            float(EDGES[b + 1]),
            int(answers[b]),
            float(successes[b] / answers[b]),
            float(spline.fitted[0, b]),
            None if bands is None else bands[i],
            float(p[i]),
        )
        for i, b in enumerate(populated)
    )
    return Estimate(
        name,
        kind,
        NOT_FOUND if value is None else FOUND,
        backend,
        why,
        value,
        float(EDGES[populated[-1] + 1]) if value is None else value,
        interval,
        spread,
        share,
        counted.base_rate,
        int(counted.base_answers.sum()),
        int(answers.sum()),
        counted.participants,
        counted.tied,
        counted.unseen,
        float(spline.lam[0]),
        bins,
    )


def base_of(counted: AnswerCounts) -> BaseRate:
    """Return the rate that all people are compared with, and how many answers it is from."""
    answers = math.inf if counted.base_given is not None else float(counted.base_answers.sum())
    return BaseRate(np.array([counted.base_rate]), np.array([answers]))


def fit(
    answers: Array, successes: Array, base: BaseRate, options: EstimateOptions, lam: Array | None = None
) -> Fit:
    """Fit and test B rows of counts (B, BINS) against their bases; `lam` (B,) fixes the smoothing."""
    keep = answers > FEW
    counts = keep.sum(axis=1)
    order = np.argsort(~keep, axis=1, kind="stable")[:, : max(int(counts.max()), LEAST_POINTS)]
    n, k = (np.take_along_axis(values, order, axis=1) for values in (answers, successes))
    live = np.arange(order.shape[1]) < counts[:, None]
    rate = np.where(live, k / np.maximum(n, 1), 0)
    weights = np.where(live, n, 0) if options.weight == "answers" else live.astype(np.float64)
    weights = np.where(live, weights / weights.sum(axis=1, keepdims=True) * counts[:, None], 1.0)
    smoothed = smooth(CENTRES[order], rate, weights, counts, lam)
    hits = np.clip(np.rint(n * smoothed.fitted), 0, n)
    proven = live & (p_of_fewer(hits, n, base, enough=options.alpha) < options.alpha)
    place = _first_in_a_row(proven, options.consecutive)
    first = np.where(place < 0, -1, order[np.arange(len(order)), place])
    return Fit(_spread_out(smoothed.fitted, order, live), _spread_out(hits, order, live), first, smoothed.lam)


def _first_in_a_row(proven: NDArray[np.bool_], length: int) -> NDArray[np.int64]:
    """Return in each row the column where so many proven drops in a row begin; -1 if nowhere."""
    if length > 1:
        proven = proven.copy()
        proven[:, :-1] &= proven[:, 1:]
        proven[:, -1] = False
    return np.where(proven.any(axis=1), proven.argmax(axis=1), -1)


def draws_of(people: int, options: EstimateOptions, *key: str) -> Array:
    """Return how often each participant is drawn in each resample (R, P)."""
    rng = generator(options.seed, "human thresholds", *key)
    return rng.multinomial(people, np.full(people, 1 / people), options.resamples).astype(np.float64)


def lacking(counted: AnswerCounts, alpha: float) -> str:
    """Say why what was counted is too small to estimate anything from; empty where it is not.

    Where so few succeed even on the base that no success at all in the fullest bin would be no drop, finding
    none says nothing about what people tolerate.
    """
    if not counted.answers.any():
        return "no answer has what this threshold needs: truth for t_c, answers on the original for t_p"
    if counted.base_given is None and counted.base_answers.sum() < FEW:
        return f"fewer than {FEW} answers to compare with"
    answers = counted.answers.sum(axis=0)
    populated = int((answers > FEW).sum())
    if populated < LEAST_POINTS:
        return f"{populated} bins with more than {FEW} answers, where {LEAST_POINTS} are needed"
    if p_of_fewer(np.zeros((1, 1)), answers.max(keepdims=True)[None], base_of(counted))[0, 0] >= alpha:
        return f"the base rate is {counted.base_rate:.1%}: so low that no drop below it could be proven"
    return ""


def _again(counted: AnswerCounts, draws: Array, spline: Fit, options: EstimateOptions) -> Fit | None:
    """Fit once more for participants drawn anew, in the bins and with the smoothing of the data.

    None where hardly any draw has enough bins left: then nothing can be said about other participants.
    """
    populated = np.isfinite(spline.fitted[0])
    answers = (draws @ counted.answers) * populated
    base_answers = draws @ counted.base_answers
    drawn = (
        base_answers > 0
    )  # else the base is that of the data: from outside, or of people who were not drawn
    rates = (draws @ counted.base_successes) / np.maximum(base_answers, 1)
    rate, base_size = (float(values[0]) for values in base_of(counted))
    base = BaseRate(np.where(drawn, rates, rate), np.where(drawn, base_answers, base_size))
    enough = (answers > FEW).sum(axis=1) >= LEAST_POINTS
    if enough.mean() < LEFT:
        return None
    return fit(
        answers[enough],
        (draws @ counted.successes)[enough],
        BaseRate(base.rate[enough], base.answers[enough]),
        options,
        np.full(int(enough.sum()), spline.lam[0]),
    )


def _spread(value: float, first: NDArray[np.int64], confidence: float, people: int) -> Interval:
    """Return between which thresholds the middle resamples lie; none found counts as beyond all."""
    places = np.where(first < 0, BINS, first)
    low, high = np.quantile(places, _ends(confidence), method="inverted_cdf").astype(int)
    low, high = (math.inf if end == BINS else float(EDGES[end]) for end in (low, high))
    return Interval(value, low, high, confidence, PERCENTILE, people, "ok")


def _bands(fitted: Array, confidence: float) -> list[tuple[float, float] | None]:
    """Return between which values the curves of the draws lie in each bin; None where too few have it."""
    common = np.isfinite(fitted).mean(axis=0) >= LEFT
    ends = _quantiles(fitted[:, common], _ends(confidence))
    bands: list[tuple[float, float] | None] = [None] * len(common)
    for place, low, high in zip(np.flatnonzero(common), *ends, strict=True):
        bands[int(place)] = (float(low), float(high))
    return bands


def _quantiles(values: Array, shares: list[float]) -> Array:
    """Return quantiles of the numbers in each column: what np.nanquantile does, for all columns at once."""
    ordered = np.sort(values, axis=0)  # NaN comes last
    place = np.outer(shares, np.isfinite(values).sum(axis=0) - 1)
    before = np.floor(place).astype(np.int64)
    low, high = (np.take_along_axis(ordered, at, axis=0) for at in (before, np.ceil(place).astype(np.int64)))
    beyond = place - before
    between: Array = np.where(beyond < HALF, low + (high - low) * beyond, high - (high - low) * (1 - beyond))
    return between


def _ends(confidence: float) -> list[float]:
    return [(1 - confidence) / 2, (1 + confidence) / 2]


def _spread_out(values: Array, order: NDArray[np.int64], live: NDArray[np.bool_]) -> Array:
    out = np.full((len(values), BINS), np.nan)
    np.put_along_axis(out, order, np.where(live, values, np.nan), axis=1)
    return out


def _refuse(name: str, got: object, wanted: str) -> None:
    raise StudyError(f"{name} has an invalid value", got=repr(got), wanted=wanted, fix=f"Change {name}.")

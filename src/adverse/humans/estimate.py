"""Thresholds from human answers: bins, a smoothing spline, and a one-sided test in each bin.

The threshold is the lower edge of the first bin in which people do significantly worse than on what they are
compared with (Hu et al. 2022, section 5): up to there the change is tolerated. Where no bin does, there is no
number; people tolerate the change at least up to the end of the last bin with enough answers.

Beside it stands an interval for where the drop begins. The threshold is the first bin in which a drop is
*proven*. How early that is depends on how many people answered, so the spread of the threshold itself says
little about where people begin to fail: in simulated studies it mostly misses the true point
(docs/human-study.md). So that point is estimated directly (`drop_point`).
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adverse.curves.interval import Interval, clopper_pearson, refused
from adverse.errors import StudyError
from adverse.humans.answers import BINS, CENTRES, AnswerCounts, Array, Judgments, count_answers
from adverse.humans.drop_point import HALF, drop_interval
from adverse.humans.drop_test import BaseRate, p_of_fewer
from adverse.humans.evidence import able, base_of, lacking, provable_rate
from adverse.humans.participants import OverPeople, effective_people, over_people
from adverse.humans.pooling import FEW, WIDEST_HOLE, Pooled, pooled
from adverse.humans.smoothing import LEAST_POINTS, smooth
from adverse.humans.thresholds import FOUND, INSUFFICIENT, KINDS, NOT_FOUND, SYMBOLS, Kind
from adverse.seeds import generator
from adverse.text import counted as in_number
from adverse.visual import Backend

Weight = Literal["none", "answers"]

BASE_CONFIDENCE = 0.99
"""Of the interval of the rate on the originals that a rate from elsewhere must lie in."""
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
    proven: bool | None = None
    """Whether p would be as small whoever of the participants were left out; None where that is not asked."""


@dataclass(frozen=True)
class Estimate:
    """A threshold with all that led to it; `status` is found, not found or insufficient.

    `interval` is that of the point where the drop begins, widened to hold `value`; None where there is no
    value. `spread` is where the estimate itself lands for other participants, `found_share` how often it is
    found at all. An infinite end is beyond the data. `tied` and `unseen` count answers that say nothing about
    t_p: on the original people are tied, or nobody saw it. `worth` is the effective number of participants.
    `provable` is the highest rate that is a proven drop in a typical bin. `compat` names another script's
    rules, if any; where these are two-sided, `better` says that people do better at the threshold, not worse.
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
    worth: float | None = None
    provable: float | None = None

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
    as_counted, pools = counted, pooled(counted)
    counted = pools.counted
    answers, successes = counted.answers.sum(axis=0), counted.successes.sum(axis=0)
    worth = float(effective_people(counted.answers.sum(axis=1)))
    lacks = Estimate(
        name,
        kind,
        INSUFFICIENT,
        judgments.measured_by,
        lacking(counted, options.alpha),
        answers=int(answers.sum()),
        participants=counted.participants,
        tied=counted.tied,
        unseen=counted.unseen,
        worth=worth,
    )
    if lacks.why:
        return lacks
    base = base_of(counted)
    spline = fit(answers[None], successes[None], base, options)
    populated = np.flatnonzero(np.isfinite(spline.fitted[0]))
    p = p_of_fewer(spline.hits[:, populated], answers[None, populated], base)[0]
    weights = _weights(answers[None, populated], options)[0]
    people = over_people(counted, populated, weights, float(spline.lam[0]))
    place = int(
        _first_in_a_row(((p < options.alpha) & (people.p < options.alpha))[None], options.consecutive)[0]
    )
    span = _tolerated(pools, populated, place, options.alpha)
    if span.to is None:
        return replace(lacks, why=span.why)
    notes = [span.why, _by_few(p, people, pools, populated, span.to, options.alpha)]
    value = span.to if span.found else None
    interval = spread = share = bands = None
    logs = round(worth)
    if worth >= FEWEST_PEOPLE - 0.5:
        draws = draws_of(len(counted.answers), options, name, kind)
        again = _again(counted, draws, spline, options)
        if again is not None:
            share = float((again.first >= 0).mean())
            spread = (
                None if value is None else _spread(value, again.first, pools.low, options.confidence, logs)
            )
            bands = _bands(again.fitted[:, populated], options.confidence)
        if value is not None and with_interval:
            drop = drop_interval(
                as_counted,
                draws,
                pools.in_all(spline.fitted[0]),
                pools.numbered(populated),
                int(pools.first[populated[place]]),
                options.confidence,
            )
            low, high = pools.whole(*drop)
            ends = min(low, value), max(high, value)
            interval = Interval(value, *ends, options.confidence, PROFILE, logs, "ok")
            if value < low:
                notes.append(
                    f"the drop seems to begin at {low:g} or later; the first significant bin may be an "
                    "accident of the spline: see whether two bins in a row agree"
                )
    elif value is not None:
        few = in_number(counted.participants, "participant")
        if counted.participants >= FEWEST_PEOPLE:
            few += f", whose uneven answers are worth those of {worth:.1f}"
        few += f", where {FEWEST_PEOPLE} are needed"
        interval = refused(value, few, confidence=options.confidence, method=PROFILE, logs=logs)
    bins = tuple(
        Bin(
            float(pools.low[b]),
            float(pools.high[b]),
            int(answers[b]),
            float(successes[b] / answers[b]),
            float(spline.fitted[0, b]),
            None if bands is None else bands[i],
            float(p[i]),
            bool(people.p[i] < options.alpha),
        )
        for i, b in enumerate(populated)
    )
    return replace(
        lacks,
        status=NOT_FOUND if value is None else FOUND,
        why="; ".join(note for note in notes if note),
        value=value,
        tolerated_to=span.to,
        interval=interval,
        spread=spread,
        found_share=share,
        base=counted.base_rate,
        base_answers=int(counted.base_answers.sum()),
        smoothing=float(spline.lam[0]),
        bins=bins,
        provable=provable_rate(counted, options.alpha),
    )


class _Span(NamedTuple):
    """Up to where the change is tolerated (None: cannot be told), whether a drop ends it, and what to say."""

    to: float | None
    found: bool
    why: str = ""


def _tolerated(pools: Pooled, populated: NDArray[np.intp], place: int, alpha: float) -> _Span:
    """Return the tolerated range, given at which of the populated bins a drop is proven (-1: at none).

    It never goes on beyond a hole: of what nobody was asked, nobody knows.
    """
    first = float(pools.low[populated[0]])
    if place == 0 and first > WIDEST_HOLE:
        return _Span(None, False, f"people fail at {first:g} already, the least change that was shown")
    drop = float(pools.low[populated[place]]) if place >= 0 else None
    end = float(pools.high[populated[-1]]) if drop is None else drop
    hole = next((hole for hole in pools.holes if hole[0] < end), None)
    if hole is None and drop is not None:
        return _Span(drop, True)
    why = ""
    if hole is not None:
        end, why = hole[0], f"between {hole[0]:g} and {hole[1]:g} nobody was asked, or hardly anybody"
        if drop is not None:
            why += f"; people fail from {drop:g} on, and where that begins cannot be told"
    asked = np.flatnonzero(able(pools.counted, alpha) & (pools.low < end))
    if not len(asked):
        return _Span(None, False, why)
    return _Span(float(pools.high[asked[-1]]), False, why)


def _by_few(
    p: Array, people: OverPeople, pools: Pooled, populated: NDArray[np.intp], end: float, alpha: float
) -> str:
    """Say where up to the end of the tolerated range only few people do worse; empty where nowhere."""
    few = np.flatnonzero((p < alpha) & (people.p >= alpha) & (pools.low[populated] < end))
    if not len(few):
        return ""
    where = f"{pools.low[populated[few[0]]]:g} and {pools.high[populated[few[-1]]]:g}"
    number = "one or two" if people.by_two[few].any() else "too few"
    return f"between {where} the answers fall, but that rests on {number} participants: no proof about people"


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
    smoothed = smooth(CENTRES[order], rate, _weights(np.where(live, n, 0), options), counts, lam)
    hits = np.clip(np.rint(n * smoothed.fitted), 0, n)
    proven = live & (p_of_fewer(hits, n, base, enough=options.alpha) < options.alpha)
    place = _first_in_a_row(proven, options.consecutive)
    first = np.where(place < 0, -1, order[np.arange(len(order)), place])
    return Fit(_spread_out(smoothed.fitted, order, live), _spread_out(hits, order, live), first, smoothed.lam)


def _weights(answers: Array, options: EstimateOptions) -> Array:
    """Return how much each bin counts for the spline, 1 on average; 1 too where there are no answers."""
    live = answers > 0
    weights = answers if options.weight == "answers" else live.astype(np.float64)
    mean = weights.sum(axis=1, keepdims=True) / live.sum(axis=1, keepdims=True)
    scaled: Array = np.where(live, weights / mean, 1.0)
    return scaled


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


def _spread(value: float, first: NDArray[np.int64], edges: Array, confidence: float, people: int) -> Interval:
    """Return between which thresholds the middle resamples lie; none found counts as beyond all."""
    places = np.where(first < 0, BINS, first)
    low, high = np.quantile(places, _ends(confidence), method="inverted_cdf").astype(int)
    low, high = (math.inf if end == BINS else float(edges[end]) for end in (low, high))
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
    option = f"--{name.replace('_', '-')}"
    raise StudyError(f"{option} has an invalid value", got=repr(got), wanted=wanted, fix=f"Change {option}.")

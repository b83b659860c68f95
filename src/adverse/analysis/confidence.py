"""Confidence intervals of the figures of a SUT, and of the differences between SUTs, from resampled logs.

Logs are drawn once for the whole run, so that SUTs, settings and levels are compared on the same draws. The
interval of a difference is therefore narrower than those of the two areas it is made of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from adverse.curves.bootstrap import Resamples, draw, estimate
from adverse.curves.interval import Interval
from adverse.curves.quantities import Area, Array, Difference, Expected, Mean, Quantity, Ratios, Share
from adverse.curves.studentized import Spread, interval, intervals, spread
from adverse.levels.outcomes import Outcomes
from adverse.store.read import Store

Key = tuple[str, str]
"""(level, setting)"""


class Draws(NamedTuple):
    """A value and its resampled values, all that a ranking needs, and why it must claim nothing, if so."""

    value: float
    values: Array
    doubt: str
    spread: Spread | None = None
    """None where the value is not defined, or must claim nothing."""


@dataclass(frozen=True)
class Confidence:
    """Intervals by (level, setting) for areas and robustness; what rankings need of every area.

    `means` are the means over mutations of either, by (level, area or robustness); `expected` the areas to be
    expected under the study's conditions, by level; `at_0` areas at tolerance 0, where a level has one.
    """

    area: Mapping[Key, Interval]
    robust_area: Mapping[Key, Interval]
    robustness: Mapping[Key, Interval]
    draws: Mapping[Key, Draws]
    means: Mapping[Key, Interval]
    expected: Mapping[str, Interval]
    at_0: Mapping[Key, Interval]
    baseline: Mapping[str, Ratios]
    """The un-mutated curve of each level, for differences between SUTs."""


def resamples_of(store: Store, positive: Sequence[bool], count: int) -> Resamples:
    """Draw logs of the test split, positive and negative ones apart, by the study's seed."""
    seed = store.run.seed
    strata = ["positive" if one else "negative" for one in positive]
    return replace(draw(store.frames.logs, strata, seed=seed, count=count), confidence=store.confidence)


def ratios(outcomes: Outcomes, fpr_max: float) -> Ratios:
    """Return outcomes as the plain numerators and denominators that statistics work on."""
    if outcomes.kind == "time":
        return Ratios(outcomes.hits, outcomes.truths, outcomes.exposure, outcomes.cost, "ratio", fpr_max)
    return Ratios(outcomes.hits, outcomes.truths, outcomes.cost, outcomes.exposure, "rate", fpr_max)


def confidence(
    curves: Mapping[Key, Ratios],
    compared: Mapping[Key, tuple[Ratios, ...]],
    baseline: str,
    resamples: Resamples,
    *,
    weights: Mapping[str, float],
    conditions: Mapping[str, float],
    at_0: Mapping[Key, tuple[Ratios, ...]],
    covers: Mapping[Key, frozenset[str]],
    itself: bool = False,
) -> Confidence:
    """Return how sure every figure of a SUT is.

    `itself`: its clean answers are the truth, so that its clean area is 1 whatever the logs.

    `curves` are the settings that ran; `compared`, for each of them and for the worst cases (Any, AnyMild),
    the curves whose worst it is, over the same frames, the baseline first; `weights` those of the mutations
    in their mean; `conditions` the probability of each setting, if given; `at_0` the curves at tolerance 0,
    of a setting alone and of worst cases, for the levels that have one; `covers` the settings whose worst
    case a key of `compared` is, a setting of itself.
    """
    areas: dict[Key, Interval] = {}
    robust_areas: dict[Key, Interval] = {}
    shares: dict[Key, Interval] = {}
    draws: dict[Key, Draws] = {}
    means: dict[Key, Interval] = {}
    expected: dict[str, Interval] = {}
    others: dict[Key, Interval] = {}
    for level in dict.fromkeys(level for level, _ in curves):
        names = [name for one, name in compared if one == level]
        firsts = list(dict.fromkeys(compared[level, name][0] for name in names))
        wanted = _figures(level, names, curves, compared, at_0, {first: Area((first,)) for first in firsts})
        if weights and all((level, setting) in curves for setting in weights):
            for name in ("area", "share"):
                parts = tuple(_mean_part(wanted[f"{name} {setting}"]) for setting in weights)
                wanted[f"mean {name}"] = Mean(parts, tuple(weights.values()))
        if conditions and all((level, setting) in curves for setting in conditions):
            mixed = tuple(curves[level, setting] for setting in conditions)
            wanted["expected"] = Expected(mixed, tuple(conditions.values()))
        found = estimate(wanted, resamples)
        sure = {name: interval(one, confidence=resamples.confidence) for name, one in found.items()}
        sure |= _constructed(sure, baseline) if itself else {}
        clean = {first: sure[f"clean {number}"] for number, first in enumerate(firsts)}
        for name in names:
            sample, whole = found[f"area {name}"], clean[compared[level, name][0]]
            areas[level, name] = sure[f"area {name}"]
            worst = sure[f"worst {name}"].at_most(whole)
            robust_areas[level, name] = worst.low_at_most([areas[level, name]])
            if (level, name) not in curves:  # a worst case
                areas[level, name] = robust_areas[level, name]
            shares[level, name] = sure[f"share {name}"]
            doubt = areas[level, name].why if areas[level, name].status == "refused" else ""
            known = None if doubt else spread(sample)
            draws[level, name] = Draws(sample.value, sample.values, doubt, known)
        shares.pop((level, baseline), None)  # its share of itself is 1 by definition
        for name, told in (("area", "area"), ("share", "robustness")):
            if f"mean {name}" in found:
                means[level, told] = sure[f"mean {name}"]
        if "expected" in found:
            expected[level] = sure["expected"]
        others |= _strict_intervals(level, sure, at_0, baseline)
    plain_curves = {level: curve for (level, setting), curve in curves.items() if setting == baseline}
    robust_areas, shares, others = (_no_surer(one, covers) for one in (robust_areas, shares, others))
    areas |= {key: robust_areas[key] for key in areas.keys() - curves.keys()}
    return Confidence(areas, robust_areas, shares, draws, means, expected, others, plain_curves)


def _constructed(sure: Mapping[str, Interval], baseline: str) -> dict[str, Interval]:
    """Return clean figures that are 1 by construction without the doubt that few logs give them."""
    return {
        name: replace(one, low=one.value, high=one.value)
        for name, one in sure.items()
        if one.value == 1.0 and (name.startswith("clean ") or name.endswith(f" {baseline}"))
    }


def _no_surer(found: Mapping[Key, Interval], covers: Mapping[Key, frozenset[str]]) -> dict[Key, Interval]:
    """Return intervals in which no worst case is above the low end of any that it covers.

    The worst of several may rest on more logs than one of them alone, and so have the narrower interval; but
    what cannot be told of one of them cannot be told of the worst.
    """
    return {
        (level, name): one.low_at_most(
            other
            for (at, part), other in found.items()
            if at == level and covers[at, part] < covers[level, name]
        )
        for (level, name), one in found.items()
    }


def _strict_intervals(
    level: str, sure: Mapping[str, Interval], at_0: Mapping[Key, tuple[Ratios, ...]], baseline: str
) -> dict[Key, Interval]:
    """Return the intervals at tolerance 0; no worst case of the baseline's frames is above the baseline."""
    told = {(level, name): sure[f"at 0 {name}"] for one, name in at_0 if one == level}
    whole = (level, baseline)
    if whole not in told:
        return told
    first = at_0[whole][0]
    return {key: one.at_most(told[whole]) if at_0[key][0] is first else one for key, one in told.items()}


def _figures(
    level: str,
    names: Sequence[str],
    curves: Mapping[Key, Ratios],
    compared: Mapping[Key, tuple[Ratios, ...]],
    at_0: Mapping[Key, tuple[Ratios, ...]],
    wholes: Mapping[Ratios, Area],
) -> dict[str, Quantity]:
    """Return what a level has of every setting and worst case; what they share is the same object."""
    wanted: dict[str, Quantity] = {f"clean {number}": area for number, area in enumerate(wholes.values())}
    for name in names:
        every, first = Area(compared[level, name]), compared[level, name][0]
        wanted[f"area {name}"] = Area((curves[level, name],)) if (level, name) in curves else every
        wanted[f"worst {name}"] = every
        wanted[f"share {name}"] = Share(every, wholes[first])
        if (level, name) in at_0:
            wanted[f"at 0 {name}"] = Area(at_0[level, name])
    return wanted


def _mean_part(quantity: Quantity) -> Area | Share:
    if not isinstance(quantity, Area | Share):
        raise TypeError(f"a mean is over areas or shares, not {type(quantity).__name__}")
    return quantity


def plain_interval(found: Interval | None) -> dict[str, Any] | None:
    """Return an interval as a row of the results holds it; None where there is none."""
    return None if found is None else found.plain()


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
            rows.append({**heads, "difference": found.value, "difference_interval": found.plain()})
    return rows

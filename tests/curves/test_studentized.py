"""Intervals: where they lie, what they refuse, and that they never claim certainty. Coverage is in bench/."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from adverse.curves import (
    Area,
    Difference,
    Expected,
    Interval,
    Mean,
    Ratios,
    Recall,
    Sample,
    Share,
    area,
    draw,
    estimate,
    interval,
    intervals,
)
from adverse.curves.interval import none_seen
from adverse.curves.quantities import Quantity
from adverse.curves.studentized import AT_THE_END, METHOD, effective_logs, one_more_log
from adverse.seeds import generator
from curves.simulated import NAMES, outcomes
from interval_coverage import REGIMES, Regime, World, truths


def of(quantity: Quantity, positive: int, negative: int, confidence: float = 0.95) -> Interval:
    strata = ["positive"] * positive + ["negative"] * negative
    drawn = draw(NAMES[: positive + negative], strata, seed=4)
    return intervals({"it": quantity}, drawn, confidence=confidence)["it"]


def certain(hit: float, alarm: float, positive: int = 30, negative: int = 30, people: int = 10) -> Ratios:
    """Return a SUT that does the same in every log."""
    is_positive = np.arange(positive + negative) < positive
    truths, images = np.where(is_positive, people, 0), np.where(is_positive, 0, 50)
    return Ratios(truths[:, None] * [[hit]], truths, images[:, None] * [[alarm]], images)


def test_a_plain_case() -> None:
    rng = np.random.default_rng(2)
    curve = outcomes(rng, 40, 40)
    found = of(Area((curve,)), 40, 40)
    assert (found.status, found.method, found.logs, found.confidence) == ("ok", METHOD, 40, 0.95)
    assert found.value is not None
    assert found.low is not None
    assert found.high is not None
    assert 0 < found.low < found.value < found.high < 1
    wider = of(Area((curve,)), 40, 40, confidence=0.99)
    assert wider.low is not None
    assert wider.high is not None
    assert wider.low < found.low < found.high < wider.high


@pytest.mark.parametrize(("few", "status"), [(2, "refused"), (3, "few logs"), (19, "few logs"), (20, "ok")])
@pytest.mark.parametrize("positive_are_few", [True, False])
def test_the_status_follows_the_kind_of_log_there_is_less_of(
    few: int, status: str, *, positive_are_few: bool
) -> None:
    sizes = (few, 40) if positive_are_few else (40, few)
    found = of(Area((outcomes(np.random.default_rng(2), *sizes),)), *sizes)
    assert (found.status, found.logs) == (status, few)
    assert (found.low is None) == (status == "refused")
    assert found.value is not None
    assert bool(found.why) == (status != "ok")


def test_perfection_in_all_logs_is_not_certainty() -> None:
    found = of(Area((certain(1, 0),)), 30, 30)
    assert (found.value, found.high, found.method) == (1, 1, AT_THE_END)
    missed = none_seen(np.full(30, 10), tail=0.0125)
    alarmed = none_seen(np.full(30, 50), tail=0.0125) / 0.1
    assert found.low == pytest.approx((1 - missed) * (1 - alarmed))


def test_failure_in_all_logs_is_not_certainty() -> None:
    found = of(Area((certain(0, 0),)), 30, 30)
    assert (found.value, found.low, found.method) == (0, 0, AT_THE_END)
    assert found.high == pytest.approx(none_seen(np.full(30, 10), tail=0.0125))


def test_no_change_in_any_log_is_not_certainty() -> None:
    base, mutated = certain(0.8, 0.02), certain(0.8, 0.02)
    whole = Area((base,))
    share = of(Share(Area((base, mutated)), whole), 30, 30)
    assert (share.value, share.high, share.method) == (1, 1, AT_THE_END)
    assert share.low is not None
    assert 0.5 < share.low < 0.99
    difference = of(Difference(whole, Area((mutated,))), 30, 30)
    assert difference.value == 0
    assert difference.low is not None
    assert difference.high is not None
    assert -0.5 < difference.low < -0.01
    assert 0.01 < difference.high < 0.5


def test_more_logs_say_more_at_the_end() -> None:
    widths = []
    for logs in (3, 10, 30, 90):
        found = of(Area((certain(1, 0, logs, logs),)), logs, logs)
        assert found.low is not None
        widths.append(1 - found.low)
    assert widths == sorted(widths, reverse=True)
    assert widths[0] > 0.9


def test_the_end_of_a_ratio_of_times() -> None:
    is_positive = np.arange(60) < 30
    safe, time_s = np.where(is_positive, 1.0, 0.0), np.where(is_positive, 0.0, 9.0)
    curve = Ratios(safe[:, None], safe, time_s, time_s[:, None], "ratio")
    found = of(Area((curve,)), 30, 30)
    hidden = none_seen(np.ones(30), tail=0.0125)
    assert (found.value, found.method) == (1, AT_THE_END)
    assert found.low == pytest.approx((1 - hidden) ** 2)


def test_an_objective_that_never_varies_is_not_certain_either() -> None:
    """Recall varies from log to log, but no log has an alarm: that alone leaves room below."""
    curve = outcomes(np.random.default_rng(2), 40, 40)
    quiet = Ratios(curve.num_s, curve.den_s, np.zeros_like(curve.num_e), curve.den_e)
    ratio = Ratios(curve.num_s, curve.den_s, curve.den_e, curve.den_e, "ratio")  # efficiency 1 for sure, too
    wide, narrow = of(Area((quiet,)), 40, 40), of(Area((curve,)), 40, 40)
    assert wide.value is not None
    assert wide.low is not None
    hidden = none_seen(curve.den_e, tail=0.0125) / 0.1
    best = quiet.observed[0].max()
    assert wide.low < wide.value - best * hidden * 0.99
    assert wide.method == narrow.method == of(Area((ratio,)), 40, 40).method == METHOD


def test_a_mean_at_the_end() -> None:
    whole = Area((certain(1, 0),))
    mean = of(Mean((whole, Area((certain(1, 0),))), (0.5, 0.5)), 30, 30)
    assert (mean.low, mean.high) == (of(whole, 30, 30).low, 1)


def test_undefined_is_refused_not_zero() -> None:
    blind = Area((certain(0, 0),))
    found = of(Share(blind, blind), 30, 30)
    assert (found.value, found.low, found.high, found.status) == (None, None, None, "refused")
    assert "not defined" in found.why


def test_undefined_in_many_resamples_is_refused() -> None:
    """One log in forty has all there is: a third of the resamples miss it, and have nothing to divide by."""
    hits = np.zeros((80, 1))
    hits[0] = 5
    positive = np.arange(80) < 40
    curve = Ratios(hits, np.where(positive, 5, 0), np.zeros((80, 1)), np.where(positive, 0, 20))
    found = of(Share(Area((curve,)), Area((curve,))), 40, 40)
    assert found.value == 1
    assert found.status == "refused"
    assert "of the resamples" in found.why


def test_one_log_that_carries_everything_makes_a_wide_interval() -> None:
    hits = np.full((80, 1), 10.0)
    hits[0] = 0
    positive = np.arange(80) < 40
    found_by_log = np.where(positive[:, None], hits, 0.0)
    curve = Ratios(found_by_log, np.where(positive, 10, 0), np.zeros((80, 1)), np.where(positive, 0, 20))
    found = of(Area((curve,)), 40, 40)
    assert found.value == pytest.approx(39 / 40)
    assert found.low is not None
    assert found.low < 0.75  # one degree of freedom: 12.7 standard errors


def by_hand(sample: Sample, logs: int) -> tuple[float, float]:
    """Work out the interval step by step, with the quantiles of scipy."""
    pivots = [(v - sample.value) / e for v, e in zip(sample.values, sample.errors, strict=True) if e > 1e-9]
    squares = [u * u for u in sample.influence]
    effective = sum(squares) ** 2 / sum(s * s for s in squares)
    t = stats.t.ppf(0.975, max(1.0, min(effective, logs) - 2))
    bias = sum(sample.values) / len(sample.values) - sample.value
    low = sample.value - max(np.percentile(pivots, 97.5), t) * sample.error
    high = sample.value + max(-np.percentile(pivots, 2.5), t) * sample.error
    for kind in np.unique(sample.stratum):
        mine = sorted(
            u for u, stratum in zip(sample.influence, sample.stratum, strict=True) if stratum == kind
        )
        low += mine[0] * len(mine) / (len(mine) - 2)
        high += mine[-1] * len(mine) / (len(mine) - 2)
    return min(low, low - bias), max(high, high - bias)


@pytest.mark.parametrize("bias", [-0.02, 0.02])
@pytest.mark.parametrize("stretch", [0.5, 3.0])
def test_equals_the_steps_by_hand(bias: float, stretch: float) -> None:
    rng = np.random.default_rng(9)
    curve = outcomes(rng, 30, 25)
    value = area(*curve.observed)
    values = value + bias + 0.02 * stretch * rng.standard_normal(400)
    influence, errors = 0.003 * rng.standard_normal(55), rng.uniform(0.015, 0.025, 400)
    sample = Sample(value, 0.02, influence, np.repeat([0, 1], [30, 25]), values, errors, Area((curve,)))
    found = interval(sample)
    assert (found.low, found.high) == pytest.approx(by_hand(sample, 25))


def test_a_gate_lets_through_what_it_should_not_in_a_fortieth_of_all_studies() -> None:
    """The hardest regime of bench/interval_coverage.py: 60 + 8 logs, alarms in few of them.

    A limit that is exactly the truth is passed whenever the low end lies above it.
    """
    regime = next(one for one in REGIMES if one.name == "few negatives")
    truth, studies = truths(regime)["area"], 1000
    passed = sum(_low_end_of_area(regime, number) > truth for number in range(studies))
    assert passed <= stats.binom.ppf(0.99, studies, 0.025)


def _low_end_of_area(regime: Regime, number: int) -> float:
    world = World(regime, generator(number, "false pass"))
    curve = world.curve(regime.skill, 0.0, 1.0)
    drawn = draw(NAMES[: world.logs], world.is_positive.tolist(), seed=number, count=200)
    low = intervals({"it": Area((curve,))}, drawn)["it"].low
    assert low is not None
    return low


def test_one_more_log_like_the_most_extreme_of_each_kind() -> None:
    """A mean of 40 logs, one of them bad: one more such log would lower it by its distance over 41."""
    hits = np.full(40, 10)
    hits[7] = 0
    curve = Ratios(hits[:, None], np.full(40, 10), np.zeros((40, 1)), np.zeros(40))
    sample = estimate({"it": Recall(curve)}, draw(NAMES[:40], [0] * 40, seed=1, count=10))["it"]
    fall, rise = one_more_log(sample.influence, sample.stratum)
    mean = 39 / 40
    assert fall == pytest.approx(mean - 39 / 41, rel=0.1)
    assert rise == pytest.approx(40 / 41 - mean, rel=0.1)


def test_where_few_logs_carry_the_spread_one_more_trial_may_have_failed() -> None:
    """The same spread of recall, in all of 40 logs or in 2 of them: then 1 in N trials is added to it."""
    truths = np.full(40, 10)
    rng = np.random.default_rng(5)
    many, few = np.full(40, 8), np.full(40, 8)
    many += rng.permutation([-1, 1] * 20)
    few[:2] = [2, 10]
    for hits, hidden in ((many, 0.0), (few, none_seen(truths, tail=np.exp(-1)))):
        curve = Ratios(hits[:, None], truths, np.zeros((40, 1)), np.zeros(40))
        sample = estimate({"it": Recall(curve)}, draw(NAMES[:40], [0] * 40, seed=1))["it"]
        low, high = by_hand(sample, 40)
        found = interval(sample)
        assert (found.low, found.high) == pytest.approx((low - hidden, min(high + hidden, 1)))


def test_effective_logs_lies_between_one_and_all() -> None:
    rng = np.random.default_rng(1)
    for _ in range(100):
        assert 1 <= effective_logs(rng.standard_normal(12)) <= 12


def test_a_recall_asks_only_for_people_and_never_claims_certainty() -> None:
    """All of 30 logs perfect, not one negative log: the rule of three for the people alone."""
    found = of(Recall(certain(1.0, 0.0, 30, 0)), 30, 0)
    assert (found.value, found.high, found.logs) == (1.0, 1.0, 30)
    assert found.low == pytest.approx(1 - none_seen(np.full(30, 10), tail=0.025))


def test_the_recall_of_one_level_is_a_ratio_with_its_textbook_error() -> None:
    rng = np.random.default_rng(3)
    truths = rng.integers(5, 15, 40)
    hits = rng.binomial(truths, 0.7)
    curve = Ratios(hits[:, None], truths, np.zeros((40, 1)), np.zeros(40))
    drawn = draw(NAMES[:40], [0] * 40, seed=1, count=10)
    sample = estimate({"it": Recall(curve)}, drawn)["it"]
    ratio = hits.sum() / truths.sum()
    residuals = hits - ratio * truths
    wanted = np.sqrt(40 / 39 * np.sum(residuals**2)) / truths.sum()
    assert sample.value == pytest.approx(ratio)
    assert sample.error == pytest.approx(wanted)


def test_an_expected_area_lies_between_those_of_its_conditions() -> None:
    rng = np.random.default_rng(2)
    good, bad = outcomes(rng, 40, 40), outcomes(rng, 40, 40, skill=-0.3)
    best, middle, worst = (
        of(quantity, 40, 40).value
        for quantity in (Area((good,)), Expected((good, bad), (0.5, 0.5)), Area((bad,)))
    )
    assert best is not None
    assert middle is not None
    assert worst is not None
    assert worst < middle < best
    alone = of(Expected((good, bad), (1.0, 0.0)), 40, 40)
    plain = of(Area((good,)), 40, 40)
    assert alone.value == pytest.approx(plain.value)
    assert alone.low == pytest.approx(plain.low)
    perfect = of(Expected((certain(1, 0), certain(1, 0)), (0.5, 0.5)), 30, 30)
    assert perfect.low is not None
    assert perfect.value == 1 > perfect.low

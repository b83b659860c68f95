"""Intervals of rates against scipy's exact binomial, published figures, and the formula step by step."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from adverse.curves.interval import clopper_pearson, korn_graubard, none_seen, stratified


@pytest.mark.parametrize(
    ("hits", "trials", "low", "high"),
    [(81, 263, 0.2527, 0.3676), (15, 148, 0.0578, 0.1617), (0, 20, 0.0, 0.1684), (1, 29, 0.0009, 0.1776)],
)
def test_clopper_pearson_as_published(hits: int, trials: int, low: float, high: float) -> None:
    """Newcombe, Statistics in Medicine 17 (1998), table I, method 5."""
    assert clopper_pearson(hits, trials) == pytest.approx((low, high), abs=6e-5)


@given(st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.floats(0.5, 0.999))
def test_clopper_pearson_equals_the_exact_test_turned_round(
    counts: tuple[int, int], confidence: float
) -> None:
    wanted = stats.binomtest(*counts).proportion_ci(confidence, method="exact")
    assert clopper_pearson(*counts, confidence) == pytest.approx((wanted.low, wanted.high), abs=1e-9)


def by_hand(hits: list[int], trials: list[int], floor: float) -> tuple[float, float]:
    """Korn and Graubard (1998), one step after the other."""
    logs, total = len(trials), sum(trials)
    p = sum(hits) / total
    variance = logs / (logs - 1) * sum((h - p * n) ** 2 for h, n in zip(hits, trials, strict=True)) / total**2
    effect = variance * total / (p * (1 - p)) if 0 < p < 1 else 0.0
    size = sum(n * n for n in trials) / total
    effect = max(effect, 1 + floor * (size - 1))
    t_all, t_logs = stats.t.ppf(0.975, max(total - 1, 1)), stats.t.ppf(0.975, logs - 1)
    n = total / effect * (t_all / t_logs) ** 2
    x = p * n
    low = stats.beta.ppf(0.025, x, n - x + 1) if x > 0 else 0.0
    high = stats.beta.ppf(0.975, x + 1, n - x) if p < 1 else 1.0
    return float(low), float(high)


LOGS = st.lists(
    st.integers(1, 40).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=2, max_size=30
)


@given(LOGS, st.sampled_from([0.0, 0.05, 0.3]))
def test_korn_graubard_equals_the_steps_by_hand(logs: list[tuple[int, int]], floor: float) -> None:
    hits, trials = [h for h, _ in logs], [n for _, n in logs]
    got = korn_graubard(hits, trials, icc_floor=floor)
    assert got.low is not None
    assert got.high is not None
    low, high = by_hand(hits, trials, floor)
    assert got.low == pytest.approx(low, abs=1e-9)
    assert got.high == pytest.approx(high, abs=1e-9)


@given(LOGS)
def test_never_narrower_than_independent_trials(logs: list[tuple[int, int]]) -> None:
    hits, trials = np.array(logs).T
    got = korn_graubard(hits, trials)
    low, high = clopper_pearson(int(hits.sum()), int(trials.sum()))
    assert got.low is not None
    assert got.high is not None
    assert got.low <= low + 1e-9
    assert got.high >= high - 1e-9


def test_ends_claim_no_certainty() -> None:
    none, every = (
        korn_graubard(np.zeros(30), np.full(30, 10)),
        korn_graubard(np.full(30, 10), np.full(30, 10)),
    )
    assert (none.value, none.low) == (0, 0)
    assert (every.value, every.high) == (1, 1)
    assert none.high is not None
    assert every.low is not None
    assert 0.015 < none.high < 0.03  # 300 trials count as 207: 300 / (1 + 9 * 0.05)
    assert none.high == pytest.approx(1 - every.low)


def test_what_few_logs_can_say() -> None:
    assert korn_graubard([], []).status == "refused"
    assert korn_graubard([], []).value is None
    assert korn_graubard([3], [4]).status == "refused"
    assert korn_graubard([3, 0], [4, 0]).status == "refused"  # the second has no trials
    assert korn_graubard([3] * 19, [4] * 19).status == "few logs"
    assert korn_graubard([3] * 20, [4] * 20).status == "ok"


@pytest.mark.parametrize("bad", [([2], [1]), ([-1], [1]), ([1, 2], [3])])
def test_what_is_no_rate_is_refused(bad: tuple[list[int], list[int]]) -> None:
    with pytest.raises(ValueError, match="hits"):
        korn_graubard(*bad)
    with pytest.raises(ValueError, match="hits must lie"):
        clopper_pearson(2, 1)
    with pytest.raises(ValueError, match="confidence"):
        clopper_pearson(1, 2, 1.0)


def test_none_seen_is_the_upper_end_of_no_hits() -> None:
    trials = np.array([10, 20, 5, 40])
    assert none_seen(trials, tail=0.025) == pytest.approx(korn_graubard(np.zeros(4), trials).high)
    assert none_seen([100], tail=0.025) == 1
    assert none_seen(np.ones(1000), tail=0.05) == pytest.approx(3 / 1000, rel=0.01)  # the rule of three


LOGS_OF_TWO = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(0, 9), st.integers(0, 9)), min_size=2
)


@given(st.lists(st.integers(0, 6).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=1))
def test_one_stratum_is_no_strata(logs: list[tuple[int, int]]) -> None:
    hits, trials = zip(*logs, strict=True)
    one = stratified([[h] for h in hits], [[n] for n in trials], [sum(trials)])
    same = korn_graubard(hits, trials)
    assert (one.value, one.low, one.high) == pytest.approx((same.value, same.low, same.high))
    assert (one.status, one.logs) == (same.status, same.logs)


@given(LOGS_OF_TWO)
def test_strata_equal_the_steps_by_hand(logs: list[tuple[int, int, int, int]]) -> None:
    """Weighted by hand, one stratum and one log at a time; 30 and 270 there are."""
    counts = [((h, h + m), (g, g + k)) for h, g, m, k in logs]
    n = [sum(log[s][1] for log in counts) for s in (0, 1)]
    assume(0 < n[0] <= 30 and 0 < n[1] <= 270)
    counts = [log for log in counts if log[0][1] + log[1][1]]
    assume(len(counts) > 1)
    rates = [sum(log[s][0] for log in counts) / n[s] for s in (0, 1)]
    p = 0.1 * rates[0] + 0.9 * rates[1]
    found = stratified(
        [[log[0][0], log[1][0]] for log in counts], [[log[0][1], log[1][1]] for log in counts], [30, 270]
    )
    assert found.value == pytest.approx(p)
    total = sum(n)
    effect = total * (0.01 / n[0] + 0.81 / n[1])
    effect *= 1 + 0.05 * max(sum((a[1] + b[1]) ** 2 for a, b in counts) / total - 1, 0)
    scores = [
        0.1 * (a[0] - rates[0] * a[1]) / n[0] + 0.9 * (b[0] - rates[1] * b[1]) / n[1] for a, b in counts
    ]
    variance = len(counts) / (len(counts) - 1) * sum(score**2 for score in scores)
    if 0 < p < 1:
        effect = max(effect, variance * total / (p * (1 - p)))
    ratio = stats.t.ppf(0.975, max(total - 1, 1)) / stats.t.ppf(0.975, len(counts) - 1)
    trials = total / effect * ratio**2
    hits = min(p, 1.0) * trials
    assert found.low == pytest.approx(stats.beta.ppf(0.025, hits, trials - hits + 1) if p > 0 else 0.0)
    assert found.high == pytest.approx(stats.beta.ppf(0.975, hits + 1, trials - hits) if p < 1 else 1.0)


def test_strata_hold_the_truth_about_as_often_as_they_say() -> None:
    """Few of a small, bad stratum and few of a large, good one, in logs that differ."""
    rng = np.random.default_rng(4)
    covered = 0
    for _ in range(400):
        level = np.clip(rng.normal(0, 0.05, (30, 1)) + np.array([0.7, 0.1]), 0, 1)
        trials = np.stack([rng.integers(0, 3, 30), rng.integers(0, 3, 30)], axis=1)
        found = stratified(rng.binomial(trials, level), trials, [100, 900])
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= 0.1 * 0.7 + 0.9 * 0.1 <= found.high
    assert covered >= 0.94 * 400


def test_a_stratum_that_nobody_looked_at_gives_no_rate() -> None:
    found = stratified([[3, 0], [2, 0]], [[5, 0], [5, 0]], [10, 90])
    assert (found.value, found.low, found.status) == (None, None, "refused")
    assert stratified([[3, 0], [2, 0]], [[5, 0], [5, 0]], [10, 0]) == korn_graubard([3, 2], [5, 5])
    assert stratified(np.zeros((0, 2)), np.zeros((0, 2)), [0, 0]).value is None
    with pytest.raises(ValueError, match="no more trials than there are"):
        stratified([[3], [2]], [[5], [5]], [9])

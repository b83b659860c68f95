"""Whose answers a threshold rests on, and what they could have shown: few people, holes, too little power."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import fisher_exact

from adverse.humans.answers import BINS, ORIGINAL, Row, judgments_of
from adverse.humans.estimate import EstimateOptions, estimate_one
from adverse.humans.pooling import FEW, holes, pools_of
from adverse.humans.thresholds import INSUFFICIENT
from adverse.report.human_study import in_words

QUICK = EstimateOptions(resamples=100)


def study(
    people: int, answers: int, *, right: float = 0.95, seed: int = 0, originals: int = 1000
) -> list[Row]:
    """Answers of people who are all alike and never fail, evenly over all bins."""
    rng = np.random.default_rng(seed)
    asked = [(f"o{i}", ORIGINAL, 0.0) for i in range(originals)]
    asked += [(f"c{i}", "haze", i % 100 / 100) for i in range(answers)]
    return [
        (f"p{(i + i // 100) % people}", *shown, "vif", "car" if rng.random() < right else "no", "car")
        for i, shown in enumerate(asked)
    ]


@pytest.mark.parametrize(("bad", "found"), [(1, False), (2, False), (12, True)])
def test_one_or_two_people_make_no_drop_and_a_dozen_do(bad: int, *, found: bool) -> None:
    """People of 49 never fail; the others answer 60 images wrongly between 0.20 and 0.26."""
    rows = study(49, 2500)
    for person in range(bad):
        rows += [
            (f"bad {person}", f"b{person}, {i}", "haze", 0.2 + i % 6 / 100, "vif", "no", "car")
            for i in range(60)
        ]
    got = estimate_one(judgments_of(rows), "haze", "correctness", QUICK)
    assert (got.value is not None) == found
    assert any(b.p < 0.05 and b.low == 0.2 for b in got.bins)
    if not found:
        assert got.tolerated_to == 1
        assert "between 0.19 and 0.27 the answers fall" in in_words(got)
        assert "rests on one or two participants" in in_words(got)


@pytest.mark.parametrize(("people", "group", "status"), [(24, 1, INSUFFICIENT), (48, 4, "not found")])
def test_people_who_differ_and_see_one_band_each_have_no_threshold(
    people: int, group: int, status: str
) -> None:
    """Without a drop; answers taken for independent find one in most such studies."""
    rng = np.random.default_rng(0)
    naive = []
    for _ in range(4):
        chance = 1 / (1 + np.exp(-2.94 - rng.normal(0, 1, people)))
        rows: list[Row] = [
            (
                f"p{p}",
                f"i{p}, {i}",
                "haze" if i % 2 else ORIGINAL,
                (p // group + i / 320) * group / people if i % 2 else 0.0,
                "vif",
                "a" if rng.random() < chance[p] else "b",
                "a",
            )
            for p in range(people)
            for i in range(320)
        ]
        got = estimate_one(judgments_of(rows), "haze", "correctness", QUICK)
        assert got.status == status
        naive.append(any(b.p < 0.05 for b in got.bins))
    assert status == INSUFFICIENT or sum(naive) >= 2


def test_participants_count_by_what_they_gave() -> None:
    rows = [(("p0" if i >= 9 else f"p{i + 1}"), *row[1:]) for i, row in enumerate(study(1, 2000)[1000:])]
    got = estimate_one(judgments_of([*study(1, 0), *rows]), "haze", "correctness", QUICK)
    assert (got.status, got.participants) == (INSUFFICIENT, 10)
    assert "worth those of 1.0 participants, where 3 are needed: one gave 1991 of 2000" in got.why
    who = np.random.default_rng(0).choice(12, 3000, p=[0.18] * 5 + [0.1 / 7] * 7)
    uneven = [(f"p{k}", *row[1:]) for k, row in zip(who, study(1, 2000, right=0.5), strict=True)]
    got = estimate_one(judgments_of(uneven), "haze", "correctness", replace(QUICK, base_rate=0.95))
    assert got.interval is not None
    assert (got.interval.status, got.interval.logs) == ("refused", round(got.worth or 0))
    assert f"12 participants, whose uneven answers are worth those of {got.worth:.1f}" in in_words(got)


@pytest.mark.parametrize(("beyond", "also"), [(0.97, ""), (0.6, "people fail from 0.9 on")])
def test_the_tolerated_range_ends_where_nobody_was_asked(beyond: float, also: str) -> None:
    rows = [row for row in study(20, 10_000, right=0.97) if row[3] < 0.1]
    rows += [row for row in study(23, 10_000, right=beyond, seed=1, originals=0) if row[3] >= 0.9]
    got = estimate_one(judgments_of(rows), "haze", "correctness", QUICK)
    assert (got.status, got.value, got.tolerated_to, got.interval) == ("not found", None, 0.1, None)
    assert "between 0.1 and 0.9 nobody was asked" in got.why
    assert also in got.why
    assert got.why in in_words(got)
    late = [row for row in rows if row[2] == ORIGINAL or row[3] >= 0.9]
    got = estimate_one(judgments_of(late), "haze", "correctness", QUICK)
    assert got.status == (INSUFFICIENT if also else "not found")
    assert ("people fail at 0.9 already, the least change that was shown" in got.why) == bool(also)


@pytest.mark.parametrize(
    ("sparse", "right_from", "at_most"),
    [
        ([10] * 80, 10, 0.1),  # ten answers in each of 80 bins, all wrong
        ([0] * 5 + [1] * 11 + [0] * 64, 10, 0.1),  # eleven in all, spread over 0.11
        ([9] * 80, 30, 0.3),  # nine in each, right up to 0.3
        ([20, 10] * 40, 10, 0.11),  # ten wrong ones between twenty right ones
    ],
)
def test_answers_in_sparse_bins_count(sparse: list[int], right_from: int, at_most: float) -> None:
    """Before 0.1 and from 0.9 on people are right, and asked often."""
    counts = [40] * 10 + sparse + [40] * 10
    rows = study(30, 0, right=0.97)
    for place, count in enumerate(counts):
        wrong = right_from <= place < 90 and count <= 10
        rows += [
            (
                f"p{(place + i) % 30}",
                f"b{place}, {i}",
                "haze",
                place / 100,
                "vif",
                "no" if wrong else "car",
                "car",
            )
            for i in range(count)
        ]
    got = estimate_one(judgments_of(rows), "haze", "correctness", QUICK)
    assert got.status == "found"
    assert got.value is not None
    assert at_most - 0.03 <= got.value <= at_most
    assert got.answers == sum(counts)
    assert got.interval is not None
    assert got.interval.low is not None
    assert got.interval.high is not None
    inner = {edge for b in got.bins for edge in np.arange(round(100 * b.low) + 1, round(100 * b.high))}
    assert not inner & {round(100 * got.interval.low), round(100 * min(got.interval.high, 1))}


@settings(max_examples=30)
@given(st.lists(st.sampled_from([0, 0, 0, 1, 4, 10, 11, 40]), min_size=BINS, max_size=BINS))
def test_every_answer_is_in_a_pool_or_a_hole(answers: list[int]) -> None:
    counts = np.array(answers, np.float64)
    pools = pools_of(counts)
    assert all(
        counts[pool.first : pool.end].sum() > FEW and pool.first <= pool.at < pool.end for pool in pools
    )
    assert all(before.end <= after.first for before, after in pairwise(pools))
    inside = {place for pool in pools for place in range(pool.first, pool.end)}
    for place in np.flatnonzero(counts).tolist():
        between = bool(pools) and pools[0].first <= place < pools[-1].end
        assert place in inside or not between or any(a <= place / BINS < b for a, b in holes(pools))
        assert counts[place] <= FEW or place in inside


@pytest.mark.parametrize(("originals", "status"), [(10, INSUFFICIENT), (300, "found")])
def test_what_could_not_have_been_found_is_not_tolerated(originals: int, status: str) -> None:
    """Of 12 answers in a bin 85% are right up to 0.3 and half from there on; 8 of 10 on originals."""
    rows = [row for row in study(19, 1200, right=0.85, originals=0) if row[3] < 0.3]
    rows += [row for row in study(17, 1200, right=0.5, originals=0) if row[3] >= 0.3]
    rows += [
        (f"p{i % 20}", f"o{i}", ORIGINAL, 0.0, "vif", "car" if i % 5 else "no", "car")
        for i in range(originals)
    ]
    got = estimate_one(judgments_of(rows), "haze", "correctness", QUICK)
    assert got.status == status
    if status == INSUFFICIENT:
        assert "12 answers in a bin" in got.why
        assert "not even a fall to guessing (50%) could be proven" in got.why


def test_no_drop_says_which_would_have_been_proven() -> None:
    got = estimate_one(judgments_of(study(49, 2500)), "haze", "correctness", QUICK)
    assert got.provable is not None
    base = round(got.base * 1000) if got.base else 0
    for hits, proven in ((round(got.provable * 25), True), (round(got.provable * 25) + 1, False)):
        table = [[hits, 25 - hits], [base, 1000 - base]]
        assert (fisher_exact(table, alternative="less").pvalue < 0.05) == proven
    assert f"would have been proven where {got.provable:.0%} or fewer" in in_words(got)

"""Intervals of P, mPC and rPC: the jackknife against its textbook form, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from adverse.benchmarks.intervals import LeftOut, interval, intervals, p_value, without_groups
from adverse.benchmarks.mpc import CORRUPTIONS, SEVERITIES, under_corruption


def test_for_a_mean_it_is_students_interval() -> None:
    data = np.random.default_rng(1).random(30)
    without = np.array([np.delete(data, row).mean() for row in range(30)])
    found = interval(float(data.mean()), without, 30)
    low, high = stats.t.interval(0.95, 29, loc=data.mean(), scale=stats.sem(data))
    assert (found.low, found.high) == pytest.approx((low, high))


def test_every_log_is_left_out_once_whole() -> None:
    log_of_image = np.array([0, 0, 2, 3, 3, 3])
    left_out = LeftOut(["a", "unused", "b", "c"], log_of_image, seed=1)
    assert left_out.logs == 3
    assert left_out.weights.shape == (3, 6)
    assert sorted((1 - left_out.weights).sum(axis=1).tolist()) == [1, 2, 3]
    assert (left_out.weights.sum(axis=0) == 2).all()


def test_groups_depend_on_names_not_on_storage() -> None:
    names = [f"log{number:03}" for number in range(130)]
    plain = LeftOut(names, np.arange(130), seed=5).weights
    assert plain.shape == (50, 130)
    order = np.random.default_rng(0).permutation(130)
    mixed = LeftOut([names[number] for number in order], np.arange(130), seed=5).weights
    np.testing.assert_array_equal(mixed, plain[:, order])
    assert not np.array_equal(plain, LeftOut(names, np.arange(130), seed=6).weights)


def test_mpc_and_rpc_are_left_out_together() -> None:
    rng = np.random.default_rng(2)
    cells = {(name, severity): rng.random(40) for name in CORRUPTIONS for severity in SEVERITIES}
    clean = rng.random(40) + 1
    whole = under_corruption(
        float(clean.mean()), {cell: float(values.mean()) for cell, values in cells.items()}, metric="AP"
    )
    without = {cell: (values.sum() - values) / 39 for cell, values in cells.items()}
    plain = (clean.sum() - clean) / 39
    found = intervals(whole, without_groups(whole, plain, without, 40))
    means = np.mean(list(cells.values()), axis=0)
    assert found.corrupted == interval(whole.corrupted, (means.sum() - means) / 39, 40)
    ratio = (means.sum() - means) / (clean.sum() - clean)
    assert whole.relative is not None
    assert found.relative.low == pytest.approx(interval(whole.relative, ratio, 40, highest=math.inf).low)


def test_what_cannot_be_said_is_refused() -> None:
    assert interval(0.5, np.array([0.4, 0.6]), 2).why == "fewer than 3 logs"
    assert interval(0.5, np.array([0.4, 0.6, np.nan]), 3).why == "not defined without some of the logs"
    assert interval(math.nan, np.array([0.4, 0.6, 0.5]), 3).value is None
    assert interval(1.0, np.ones(30), 30).why == "no log differs from another"
    assert interval(0.5, np.array([0.4, 0.6, 0.5]), 3).status == "few logs"


def test_intervals_stay_where_the_number_can_be() -> None:
    wide = np.array([0.1, 0.9, 0.5, 0.7])
    assert (interval(0.5, wide, 40).low, interval(0.5, wide, 40).high) == (0, 1)
    assert interval(0.5, wide, 40, highest=math.inf).high > 1  # type: ignore[operator]


def test_the_p_value_of_a_mean_is_students() -> None:
    data = np.random.default_rng(3).normal(0.3, 1, 30)
    without = np.array([np.delete(data, row).mean() for row in range(30)])
    assert p_value(float(data.mean()), without) == pytest.approx(stats.ttest_1samp(data, 0).pvalue)
    assert p_value(0.0, np.zeros(30)) == 1

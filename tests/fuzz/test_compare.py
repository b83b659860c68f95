"""The interval of guided less unguided against the jackknife, and how often it holds the truth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adverse.fuzz.compare import difference_of_ratios


def _counts(seed: int, logs: int = 30) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    trials, others = rng.integers(5, 40, logs), rng.integers(5, 40, logs)
    return rng.binomial(trials, 0.3), trials, rng.binomial(others, 0.2), others


@pytest.mark.parametrize("seed", range(4))
def test_its_error_is_near_that_of_the_jackknife(seed: int) -> None:
    columns = _counts(seed)
    found = difference_of_ratios(*columns)
    logs = len(columns[0])
    left_out = []
    for log in range(logs):
        h, n, g, m = (np.delete(column, log) for column in columns)
        left_out.append(h.sum() / n.sum() - g.sum() / m.sum())
    error = np.sqrt((logs - 1) / logs * np.sum((np.array(left_out) - np.mean(left_out)) ** 2))
    assert found.low is not None
    assert found.high is not None
    assert (found.high - found.low) / 2 == pytest.approx(2.045 * error, rel=0.1)


def test_it_holds_the_truth_about_as_often_as_it_says() -> None:
    held = 0
    for seed in range(400):
        found = difference_of_ratios(*_counts(1000 + seed))
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 0.1 <= found.high
    assert 0.91 <= held / 400 <= 0.985


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=12))
def test_a_campaign_does_not_differ_from_itself(pairs: list[tuple[int, int]]) -> None:
    trials = np.array([max(pair) for pair in pairs])
    hits = np.array([min(pair) for pair in pairs])
    found = difference_of_ratios(hits, trials, hits, trials)
    if trials.sum() == 0:
        assert found.value is None
    else:
        assert found.value == 0
        if found.status != "refused":
            assert (found.low, found.high) == (0, 0)


def test_one_log_gives_no_interval() -> None:
    found = difference_of_ratios([3], [10], [1], [10])
    assert found.status == "refused"
    assert found.value == pytest.approx(0.2)

"""Margins along a condition: ascending is the sweep's answer, bisection is rarely too far, never too near."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from adverse.curves.margin_search import (
    FOUND,
    LOST,
    UNKNOWN,
    UNUSABLE,
    Known,
    Margins,
    Method,
    bisected_margins,
    margins,
    wanted_steps,
)

ANSWERS = arrays(np.int8, st.tuples(st.integers(1, 6), st.integers(2, 9)), elements=st.sampled_from([0, 1]))


def searched(truth: Known, method: Method, per_frame: int = 1) -> Known:
    """Ask for what a search wants until it wants nothing more; return what is known then."""
    known = np.full_like(truth, UNKNOWN)
    known[:, 0] = truth[:, 0]
    names = [f"person {number}" for number in range(len(truth))]
    frame = np.arange(len(truth)) // per_frame
    while (wanted := wanted_steps(known, method, frame, names, seed=3)).any():
        assert not (wanted & (known != UNKNOWN)).any()
        shown = np.array([wanted[frame == number].any(axis=0) for number in frame])
        known[shown] = truth[shown]
    return known


def slow(truth: Known) -> list[int]:
    """Return the first step at which each is lost, looking at every step; 0: not found clean."""
    found = []
    for row in truth.tolist():
        step = 0
        while step < len(row) and row[step] == FOUND:
            step += 1
        found.append(step)
    return found


@given(ANSWERS)
def test_ascending_is_exact_and_asks_for_nothing_beyond_the_loss(truth: Known) -> None:
    known = searched(truth, "ascend")
    found = margins(known)
    assert found.step.tolist() == slow(truth)
    for row, step in zip(known, slow(truth), strict=True):
        assert (row[1 : step + 1] != UNKNOWN).all()
        assert (row[max(step, 0) + 1 :] == UNKNOWN).all()


@given(ANSWERS)
def test_bisection_is_never_too_near_and_right_where_nobody_comes_back(truth: Known) -> None:
    found, wanted = bisected_margins(searched(truth, "bisect")), np.array(slow(truth))
    assert (found.step >= wanted).all()
    falling = np.minimum.accumulate(truth, axis=1)
    for per_frame in (1, 2):
        assert bisected_margins(searched(falling, "bisect", per_frame)).step.tolist() == slow(falling)


def test_an_answer_that_a_check_contradicts_is_worked_out_step_by_step() -> None:
    truth = np.array([[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1]], np.int8)
    known = searched(truth, "bisect")
    assert known[0, 9:].tolist() == [FOUND, LOST, FOUND, FOUND] or LOST not in known[0]
    if LOST in known[0]:  # seen: then every weaker step was looked at
        assert (known[0, :10] != UNKNOWN).all()


def test_bisection_costs_at_most_three_fifths_and_is_rarely_too_far() -> None:
    rng = np.random.default_rng(1)
    middle, slope = rng.logistic(7, 2.5, 1500), rng.uniform(0.15, 0.8, 1500)
    score = (middle[:, None] - np.arange(13)) * slope[:, None] + 0.25 * rng.normal(size=(1500, 13))
    truth = (score > 0).astype(np.int8)
    truth = truth[truth[:, 0] == FOUND]
    assert 0.05 < np.mean([(np.diff(row) > 0).any() for row in truth]) < 0.09  # as many come back
    known = searched(truth, "bisect")
    assert (known[:, 1:] != UNKNOWN).mean() <= 0.6
    assert np.mean(bisected_margins(known).step > np.array(slow(truth))) <= 0.01


def test_a_step_that_cannot_be_had_censors_what_follows() -> None:
    known = np.array([[FOUND, FOUND, UNUSABLE, LOST], [FOUND, FOUND, FOUND, LOST]], np.int8)
    for found in (margins(known), bisected_margins(known)):
        assert found == Margins(found.step, found.lost, found.at_risk)
        assert found.step.tolist() == [2, 3]
        assert found.lost.tolist() == [False, True]

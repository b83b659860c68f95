"""Standardized sensitivity against its definition, tried on every candidate threshold."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from adverse.levels.outcomes import first_level, grid, standardize

SCORES = st.lists(st.integers(0, 12).map(lambda k: k / 12), max_size=30)


@given(SCORES, st.integers(1, 40))
def test_lowest_threshold_that_does_not_exceed_the_level(scores: list[float], images: int) -> None:
    levels = grid(9, 0.01, 1)
    false = np.array(scores, np.float32)
    found = standardize(false, images, levels)
    for level, threshold in zip(levels, found.thresholds, strict=True):
        assert (false >= threshold).sum() <= level * images * (1 + 1e-9)
        lower = np.nextafter(threshold, np.float32(-np.inf)) if np.isfinite(threshold) else threshold
        if np.isfinite(threshold):  # one step lower would cost too many
            assert (false >= lower).sum() > level * images * (1 + 1e-9)


@given(SCORES, st.integers(1, 40))
def test_more_sensitive_never_means_a_higher_threshold(scores: list[float], images: int) -> None:
    thresholds = standardize(np.array(scores, np.float32), images, grid(20, 1e-3, 1)).thresholds
    assert (thresholds[1:] <= thresholds[:-1]).all()


@given(SCORES, st.lists(st.floats(-1, 2, width=32), max_size=20), st.integers(1, 40))
def test_first_level_is_the_first_at_which_a_score_counts(
    scores: list[float], asked: list[float], images: int
) -> None:
    thresholds = standardize(np.array(scores, np.float32), images, grid(7, 0.01, 1)).thresholds
    for score, level in zip(asked, first_level(np.array(asked, np.float32), thresholds), strict=True):
        counts = np.float32(score) >= thresholds
        assert level == (int(np.argmax(counts)) if counts.any() else len(thresholds))


def test_rounding_does_not_cost_a_false_positive() -> None:
    levels = grid(100, 1e-4, 1)
    found = standardize(np.full(1, 0.7, np.float32), 100, levels)
    assert found.resolved[np.searchsorted(levels, 0.01 * (1 - 1e-12))]
    assert levels[0] == 1e-4
    assert levels[-1] == 1


def test_levels_finer_than_one_in_all_images_are_not_resolved() -> None:
    found = standardize(np.zeros(0, np.float32), 50, np.array([0.01, 0.02, 0.5]))
    assert found.resolved.tolist() == [False, True, True]


def test_without_images_nothing_counts() -> None:
    found = standardize(np.zeros(0, np.float32), 0, grid(5, 0.01, 1))
    assert np.isposinf(found.thresholds).all()
    assert not found.resolved.any()

"""Orders compared: Kendall's tau equals scipy's, and swaps are what they are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from adverse.errors import StudyError
from adverse.requirements.results import Swap, ranking_gap

scores = st.lists(st.tuples(st.integers(-4, 4), st.integers(0, 5)), min_size=2, max_size=9)


@given(scores)
def test_tau_equals_scipys_and_swaps_are_the_pairs_apart(pairs: list[tuple[int, int]]) -> None:
    names = [f"sut {number}" for number in range(len(pairs))]
    distances, accuracies = [float(a) for a, _ in pairs], [float(b) for _, b in pairs]
    gap = ranking_gap(names, distances, accuracies)
    if len(set(distances)) > 1 and len(set(accuracies)) > 1:
        wanted = kendalltau([-value for value in distances], accuracies).statistic
        assert gap.tau == pytest.approx(wanted)
    else:
        assert gap.tau is None
    place = {name: number for number, name in enumerate(names)}
    for swap in gap.swaps:
        first, second = place[swap.by_accuracy], place[swap.by_distance]
        assert accuracies[first] > accuracies[second]
        assert distances[first] > distances[second]
    same = ranking_gap(names, [-value for value in accuracies], accuracies)
    assert not same.swaps
    assert same.accuracy_rank == same.distance_rank


def test_the_words_name_the_less_reliable() -> None:
    gap = ranking_gap(["plain", "robust", "third"], [0.20, 0.05, 0.30], [0.60, 0.58, 0.40])
    assert gap.swaps == (Swap("plain", "robust"),)
    assert (gap.accuracy_rank["plain"], gap.distance_rank["plain"]) == (1, 2)
    assert "plain before robust by accuracy, after it by reliability" in gap.words
    assert "plain is less reliable than the battery's mean accuracy" in gap.words
    assert "1 of 3 pairs" in gap.words
    assert "agree on every pair" in ranking_gap(["a", "b"], [0.1, 0.2], [0.9, 0.8]).words
    equal = ranking_gap(["a", "b", "c"], [0.1, 0.2, 0.2], [0.9, 0.8, 0.7]).words
    assert equal.startswith("The orders agree on 2 of 3 pairs")  # b and c are equal by distance: no agreement
    assert "cannot be put in order" in ranking_gap(["a", "b"], [0.1, 0.1], [0.9, 0.8]).words


def test_scores_that_are_none_are_refused() -> None:
    with pytest.raises(StudyError, match="without a score"):
        ranking_gap(["a", "b"], [0.1, float("nan")], [0.9, 0.8])
    with pytest.raises(StudyError, match="one distance and one accuracy"):
        ranking_gap(["a", "a"], [0.1, 0.2], [0.9, 0.8])

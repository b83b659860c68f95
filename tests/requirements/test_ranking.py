"""Orders compared: Kendall's tau equals scipy's, and swaps are what they are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from adverse.errors import StudyError
from adverse.requirements.ranking import RankingScores, Swap, ranking_gap, shown_pairs

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
    scores = [0.20, 0.05, 0.30], [0.60, 0.58, 0.40]
    chance = ranking_gap(["plain", "robust", "third"], *scores)
    assert chance.words.endswith("None of these differences is beyond chance.")
    assert "less reliable" not in chance.words
    gap = ranking_gap(["plain", "robust", "third"], *scores, {("plain", "robust")})
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


def scored(distance: float, accuracy: float, seed: int, logs: int = 40) -> RankingScores:
    """Return scores whose standard errors are 0.02, as draws of so many logs would have them."""
    noise = np.random.default_rng(seed).normal(0, 0.02, (2, 500))
    log = np.arange(logs)
    return RankingScores(distance, accuracy, distance + noise[0], accuracy + noise[1], log, logs)


def test_a_swap_is_beyond_chance_only_where_both_differences_are() -> None:
    first = scored(0.2, 0.8, 1)
    for second, sure in (
        (scored(0.05, 0.6, 2), True),
        (scored(0.05, 0.79, 2), False),  # by the battery they are equal
        (scored(0.18, 0.6, 2), False),  # by distance they are
        (scored(0.3, 0.6, 2), False),  # no swap
        (scored(0.05, 0.6, 2, logs=39), False),  # other logs: not paired
    ):
        wanted = {("first", "second")} if sure else set()
        assert shown_pairs({"first": first, "second": second}, 0.05) == wanted
    few = {"first": scored(0.2, 0.8, 1, logs=4), "second": scored(0.05, 0.6, 2, logs=4)}
    assert not shown_pairs(few, 0.05)


def test_equal_systems_are_seldom_called_less_reliable() -> None:
    """Two systems alike in truth, 400 times: chance alone must not make one less reliable than the other."""
    rng = np.random.default_rng(0)
    called = 0
    for _ in range(400):
        draws = rng.integers(20, size=(200, 20))
        values = rng.normal(0, 0.1, (2, 2, 20))  # system, score, log
        scores = {
            str(n): RankingScores(
                float(each[0].mean()),
                float(each[1].mean()),
                each[0][draws].mean(axis=1),
                each[1][draws].mean(axis=1),
                np.arange(20),
                20,
            )
            for n, each in enumerate(values)
        }
        called += bool(shown_pairs(scores, 0.05))
    assert called <= 0.05 * 400

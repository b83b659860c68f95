"""A search gives the answer of a sweep, with few evaluations, and says where nothing is monotone."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adverse.curves.limit_search import (
    Evaluation,
    LimitSearch,
    SearchResult,
    most_evaluations,
    reversals,
)
from limit_search import STEPS, WORLDS, World, run_case


def searched(every: Sequence[Evaluation], seed: int) -> tuple[SearchResult, list[int]]:
    """Search with what a sweep would find at steps 0, 1, ...; return the order of evaluations too."""
    search, order = LimitSearch(len(every) - 1, seed, "test"), []
    search.add(0, every[0])
    while steps := search.next_steps():
        for step in steps:
            search.add(step, every[step])
            order.append(step)
    return search.result(), order


@pytest.mark.parametrize("steps", [1, 2, 3, 5, 12, 17])
def test_every_monotone_response_is_found_with_few_evaluations(steps: int) -> None:
    for limit in range(-1, steps + 1):
        for seed in range(6):
            every = [Evaluation(step <= limit, limit + 0.5 - step) for step in range(steps + 1)]
            result, order = searched(every, seed)
            assert result.limit == (None if limit < 0 else limit)
            assert len(order) == len(set(order)) == result.evaluations <= most_evaluations(steps)
            assert not result.reversals
            assert not result.swept
            assert limit < 0 or order[0] == steps


@given(st.lists(st.booleans(), min_size=2, max_size=14), st.integers(0, 20))
@settings(max_examples=60)
def test_what_is_not_monotone_is_swept_once_it_is_seen(holds: list[bool], seed: int) -> None:
    every = [Evaluation(one, 0.1 if one else -0.1) for one in holds]
    result, order = searched(every, seed)
    first: int | None = holds.index(False) - 1 if False in holds else len(holds) - 1
    first = None if first == -1 else first
    seen = {0: every[0], **{step: every[step] for step in order}}
    assert result.reversals == reversals(seen)
    if result.reversals:
        assert result.swept
        assert sorted(order) == list(range(1, len(holds)))
        assert result.limit == first
    else:
        assert len(order) <= most_evaluations(len(holds) - 1)


def test_it_is_certain_only_up_to_the_first_step_that_is_not() -> None:
    every = [Evaluation(step < 5, 4.5 - step, (2.5 - step, 5.5 - step)) for step in range(8)]
    assert [one.certain for one in every] == [True] * 3 + [None] * 3 + [False] * 2
    result, order = searched(every, 1)
    assert result.limit == 4
    known = {0, *order}
    assert result.certain_to == max(step for step in known if step <= 2)
    assert result.fails_from == min(step for step in known if step >= 6)


def test_what_is_better_at_a_stronger_step_for_certain_is_swept() -> None:
    rooms = [0.5, 0.5, 0.4, 0.1, -0.1, 0.1, 0.3, 0.4, 0.5]
    every = [Evaluation(room >= 0, room, (room - 0.05, room + 0.05)) for room in rooms]
    for seed in range(20):
        result, order = searched(every, seed)
        if result.swept:
            assert (result.limit, sorted(order)) == (3, list(range(1, 9)))
        assert result.swept or min(rooms[step] for step in order) >= 0.4


def test_what_others_evaluated_costs_nothing() -> None:
    search = LimitSearch(12, 1, "test")
    search.add(0, Evaluation(True))
    search.add(6, Evaluation(True, 0.1), asked=False)
    assert search.asked == 0
    assert search.next_steps() == [12]


def test_a_search_begins_with_clean_images() -> None:
    with pytest.raises(ValueError, match="begins with clean"):
        LimitSearch(12, 1, "test").next_steps()


@pytest.mark.parametrize("world", [WORLDS[1], WORLDS[4]], ids=lambda world: world.name)
def test_simulated_worlds_have_the_answer_of_a_sweep(world: World) -> None:
    cases = [case for number in range(100) for case in run_case(world, number, seed=2)]
    assert sum(case.found == case.wanted for case in cases) >= 95
    assert all(case.evaluations <= (STEPS if case.swept else 5) for case in cases)

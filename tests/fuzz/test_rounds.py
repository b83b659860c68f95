"""Rounds: duplicates are counted once each, the search ends, and bases are those the best SUT masters."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from adverse.errors import DataError
from adverse.fuzz.job import DUPLICATE
from adverse.fuzz.job import TestUnit as Unit
from adverse.fuzz.plan import CampaignPlan, pruned
from adverse.fuzz.rounds import BASES, DRAWS_PER_TEST, ROUND, UNIT, Rounds

PICTURES = 1 << 100


def rows(unit: Unit, keys: list[str | None]) -> list[dict[str, Any]]:
    """What a worker would say about the draws of a unit; a draw without a key was refused."""
    made = []
    for number, arm in enumerate(unit.arms):
        row: dict[str, Any] = {"draw": unit.first + number, "arm": list(arm), "refused": {"road": 2}}
        key = keys[number % len(keys)]
        made.append(
            row
            if key is None
            else row | {"key": key, "picture": f"{int(key, 16) + PICTURES:032x}", "suts": {}}
        )
    return made


def rounds_of(bases: int = 20) -> Rounds:
    return Rounds(("change_color", "add_car"), range(bases), 3, None)


def test_a_round_covers_its_draws_once_with_mutations_in_turns() -> None:
    units = rounds_of().next_round()
    assert len(units) == ROUND // UNIT
    assert [unit.first for unit in units] == list(range(0, ROUND, UNIT))
    assert [arm.mutation for arm in units[0].arms[:4]] == ["change_color", "add_car"] * 2
    assert all(len(set(unit.bases)) == BASES for unit in units)
    assert {place for unit in units for place in unit.bases} == set(range(20))
    assert [unit.bases for unit in units] == [unit.bases for unit in rounds_of().next_round()]


def test_duplicates_between_units_are_counted_not_run_twice() -> None:
    rounds = rounds_of()
    units = rounds.next_round()
    same = [f"{n:032x}" for n in range(UNIT)]
    rounds.take([rows(unit, list(same)) for unit in units[:3]], wanted=1000)
    assert len(rounds.tests) == UNIT
    assert rounds.refused[DUPLICATE] == 2 * UNIT
    assert rounds.refused["road"] == 2 * 3 * UNIT
    assert sum(counts[DUPLICATE] for counts in rounds.by_mutation.values()) == 2 * UNIT
    assert len(rounds.next_round()[0].drawn_before) == 2 * 8 * UNIT  # recipes and pictures


def test_two_recipes_of_one_picture_are_one_test_and_a_duplicate() -> None:
    rounds = rounds_of()
    units = rounds.next_round()
    finished = [
        rows(unit, [f"{number:02x}{n:030x}" for n in range(UNIT)]) for number, unit in enumerate(units)
    ]
    for unit in finished:
        for row in unit:
            row["picture"] = row["key"][2:].rjust(32, "f")  # the same in all units
    assert not rounds.enough(finished, UNIT + 1)
    rounds.take(finished, wanted=1000)
    assert [row["draw"] for row in rounds.tests] == list(range(UNIT))
    assert rounds.refused[DUPLICATE] == (len(units) - 1) * UNIT


def test_no_more_tests_are_taken_than_wanted() -> None:
    rounds = rounds_of()
    units = rounds.next_round()
    finished = [rows(units[0], [None, *(f"{n:032x}" for n in range(UNIT - 1))])]
    assert not rounds.enough(finished, UNIT)
    assert rounds.enough(finished, 5)
    rounds.take(finished, 5)
    assert [row["draw"] for row in rounds.tests] == [1, 2, 3, 4, 5]
    assert rounds.draws == 6, "draws after the last wanted test say nothing"


def test_the_search_ends() -> None:
    rounds = rounds_of()
    rounds.take([rows(unit, [None]) for unit in rounds.next_round()], wanted=10_000)
    assert rounds.spent(10_000), "a round without a test"
    rare = rounds_of()
    number = 0
    while not rare.spent(100):
        keys: list[str | None] = [f"{number:032x}", *([None] * (UNIT - 1))]
        rare.take([rows(unit, keys) for unit in rare.next_round()], wanted=100)
        number += 1
    assert rare.draws <= DRAWS_PER_TEST * 100 + ROUND


def campaign_of(*suts: str, below: float = 95) -> CampaignPlan:
    tasks = [SimpleNamespace(name=name) for name in suts]
    return cast("CampaignPlan", SimpleNamespace(job=SimpleNamespace(suts=tasks), prune_below=below))


def frame(name: str, *, unusable: str | None = None, **percents: float | None) -> dict[str, Any]:
    said = {
        sut: {"score": None if value is None else [value, 100], "compat": None, "fault": None}
        for sut, value in percents.items()
    }
    return {"frame": name, "unusable": unusable, "suts": said}


def test_bases_are_those_that_the_best_system_masters() -> None:
    found = [
        frame("a", good=99, poor=90),
        frame("b", good=94.9, poor=99),
        frame("c", good=95, poor=10),
        frame("d", good=None, poor=99),
        frame("e", unusable="not an image"),
    ]
    kept = pruned(found, campaign_of("poor", "good"))
    assert kept.best == "good"
    assert kept.places == (0, 2)
    assert (kept.too_hard, kept.not_scored, dict(kept.unusable)) == (1, 1, {"e": "not an image"})
    assert [score and score[0].percent for score in kept.before["c"]] == [10, 95]
    with pytest.raises(DataError, match="no frame scores high enough"):
        pruned(found, campaign_of("poor", "good", below=99.5))
    with pytest.raises(DataError, match="no SUT has a score"):
        pruned(found[-1:], campaign_of("poor", "good"))

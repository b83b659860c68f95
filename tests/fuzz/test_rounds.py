"""Rounds: duplicates are counted once each, the search ends, and bases are those the best SUT masters."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adverse.errors import DataError
from adverse.fuzz.job import DUPLICATE
from adverse.fuzz.job import TestUnit as Unit
from adverse.fuzz.plan import CampaignPlan, pruned
from adverse.fuzz.rounds import BASES, DRAWS_PER_TEST, ROUND, UNIT, Rounds, Stream, turns

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


def stream_of(wanted: int = 1000, name: str = "add_car") -> Stream:
    return Stream(name, range(20), 3, wanted)


def test_a_round_covers_its_draws_once() -> None:
    units = stream_of().next_round()
    assert len(units) == ROUND // UNIT
    assert [unit.first for unit in units] == list(range(0, ROUND, UNIT))
    assert {arm.mutation for unit in units for arm in unit.arms} == {"add_car"}
    assert all(len(set(unit.bases)) == BASES for unit in units)
    assert {place for unit in units for place in unit.bases} == set(range(20))
    assert [unit.bases for unit in units] == [unit.bases for unit in stream_of().next_round()]
    other = stream_of(name="add_person").next_round()
    assert [unit.bases for unit in units] != [unit.bases for unit in other]
    assert not {unit.id for unit in units} & {unit.id for unit in other}


@given(
    st.dictionaries(st.sampled_from("abcde"), st.floats(0.1, 9), min_size=1),
    st.integers(0, 60),
    st.integers(0, 30),
)
def test_quotas_hold_at_any_number_of_tests_and_shorter_campaigns_begin_longer_ones(
    shares: dict[str, float], wanted: int, more: int
) -> None:
    order = turns(shares, wanted)
    assert len(order) == wanted
    for name, share in shares.items():
        assert abs(order.count(name) - wanted * share / sum(shares.values())) < max(2, len(shares))
    assert turns(shares, wanted + more)[:wanted] == order
    equal = turns(dict.fromkeys(shares, 1.0), wanted)
    assert equal == [[*shares][number % len(shares)] for number in range(wanted)]


def test_a_mutation_that_runs_dry_is_named_and_no_other_takes_its_place() -> None:
    rounds = Rounds({"add_car": 1.0, "add_person": 1.0}, range(20), 3, 64)
    cars, people = rounds.streams
    for stream, keys in ((cars, 32), (people, 5)):
        while not stream.over:
            names: list[str | None] = [f"{n:030x}{keys:02x}" for n in range(keys)]
            stream.take([rows(unit, names) for unit in stream.next_round()])
    assert rounds.short == {"add_person": (5, 32)}
    assert [row["arm"][0] for row in rounds.tests[:12]] == ["add_car", "add_person"] * 5 + ["add_car"] * 2
    assert len(rounds.tests) == 37
    assert rounds.refused[DUPLICATE] == rounds.by_mutation["add_person"][DUPLICATE] > 0


def test_duplicates_between_units_are_counted_not_run_twice() -> None:
    stream = stream_of()
    units = stream.next_round()
    same = [f"{n:032x}" for n in range(UNIT)]
    stream.take([rows(unit, list(same)) for unit in units[:3]])
    assert len(stream.tests) == UNIT
    assert stream.by_mutation == {"add_car": Counter({DUPLICATE: 2 * UNIT, "road": 2 * 3 * UNIT})}
    assert len(stream.next_round()[0].drawn_before) == 2 * 8 * UNIT  # recipes and pictures


def test_two_recipes_of_one_picture_are_one_test_and_a_duplicate() -> None:
    stream = stream_of(UNIT + 1)
    units = stream.next_round()
    finished = [
        rows(unit, [f"{number:02x}{n:030x}" for n in range(UNIT)]) for number, unit in enumerate(units)
    ]
    for unit in finished:
        for row in unit:
            row["picture"] = row["key"][2:].rjust(32, "f")  # the same in all units
    assert not stream.enough(finished)
    stream.take(finished)
    assert [row["draw"] for row in stream.tests] == list(range(UNIT))
    assert stream.by_mutation["add_car"][DUPLICATE] == (len(units) - 1) * UNIT


def test_a_draw_that_gives_no_test_counts_once_however_many_frames_it_tried() -> None:
    stream = Stream("add_car", range(8), 1, 10)
    tried = {"arm": ["add_car"], "refused": {DUPLICATE: 8}}
    test = {"arm": ["add_car"], "refused": {DUPLICATE: 3}, "picture": "p", "key": "0" * 32}
    other = {"arm": ["add_car"], "refused": {"road": 8}}
    stream.take([[test | {"picture": f"{1:032x}"}, tried, tried, other, test | {"picture": f"{1:032x}"}]])
    assert (stream.draws, len(stream.tests), stream.repeated) == (5, 1, 3)


def test_no_more_tests_are_taken_than_wanted() -> None:
    stream = stream_of(5)
    units = stream.next_round()
    finished = [rows(units[0], [None, *(f"{n:032x}" for n in range(UNIT - 1))])]
    assert not stream_of(UNIT).enough(finished)
    assert stream.enough(finished)
    stream.take(finished)
    assert [row["draw"] for row in stream.tests] == [1, 2, 3, 4, 5]
    assert stream.draws == 6, "draws after the last wanted test say nothing"


def test_the_search_ends() -> None:
    stream = stream_of(10_000)
    stream.take([rows(unit, [None]) for unit in stream.next_round()])
    assert stream.over, "a round without a test"
    rare = stream_of(100)
    number = 0
    while not rare.over:
        keys: list[str | None] = [f"{number:032x}", *([None] * (UNIT - 1))]
        rare.take([rows(unit, keys) for unit in rare.next_round()])
        number += 1
    assert rare.draws <= DRAWS_PER_TEST * 100 + ROUND


def campaign_of(*suts: str, below: float = 95) -> CampaignPlan:
    tasks = [SimpleNamespace(name=name) for name in suts]
    return cast("CampaignPlan", SimpleNamespace(job=SimpleNamespace(suts=tasks), prune_below=below))


def frame(name: str, *, unusable: str | None = None, **percents: float | None) -> dict[str, Any]:
    nothing: dict[str, Any] = {"sightings": {"overlap": {}, "phantoms": []}, "without": {}}
    said = {
        sut: {"score": None if value is None else [value, 100], "compat": None, "fault": None, **nothing}
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
    assert [before and before.score.percent for before in kept.before["c"]] == [10, 95]
    crashed = [frame(name, brittle=100, steady=96) for name in "fgh"]
    for row in crashed[:2]:
        row["suts"]["brittle"] |= {"score": None, "fault": "it crashed"}
    kept = pruned(crashed, campaign_of("brittle", "steady"))
    assert (kept.best, kept.places, kept.not_scored) == ("steady", (0, 1, 2), 0), (
        "no answer is no score of 100"
    )
    assert kept.means == {"brittle": pytest.approx(100 / 3), "steady": 96}
    assert "brittle gave no answer to 2 clean frames" in " ".join(kept.words())
    alone = pruned(crashed, campaign_of("brittle"))
    assert (alone.places, alone.not_scored, alone.unanswered) == ((2,), 0, {"brittle": 2}), "they have truth"
    with pytest.raises(DataError, match="no frame scores high enough"):
        pruned(found, campaign_of("poor", "good", below=99.5))
    with pytest.raises(DataError, match="no SUT has a score"):
        pruned(found[-1:], campaign_of("poor", "good"))

"""The guide learns what fails, looks for new failures, is reproducible, and gives up what is impossible."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import numpy as np
import pytest

from adverse.fuzz.features import THIRDS
from adverse.fuzz.guide import EXPLORE, HOPELESS, NOVELTY, REPEATED, SIZE_WORDS, Arm, Guide
from adverse.seeds import generator

CLASSES = {"change_color": ("car", "bus"), "add_car": ()}


def row(arm: Arm, number: int, *, kept: bool, **features: str) -> dict[str, Any]:
    """The row of a test that has what its arm asks for, in a frame and with an object of its own."""
    said = {"mutation": arm.mutation, **arm.asked, **features}
    return {"features": said, "kept": kept, "base": f"frame {number}", "thing": f"object {number}"}


def _rewarded(guide: Guide, rounds: int = 12, size: int = 64) -> Counter[str]:
    """Play a game in which add_car at the left, in the second size, nearly always fails a SUT."""
    chosen: Counter[str] = Counter()
    for number in range(rounds):
        draws = range(number * size, (number + 1) * size)
        arms = [guide.choose(draw) for draw in draws]  # all of a round before any of it is learnt
        for draw, arm in zip(draws, arms, strict=True):
            good = (arm.mutation, arm.place, arm.size) == ("add_car", "left", SIZE_WORDS[1])
            failed = generator(9, str(draw)).random() < (0.9 if good else 0.05)
            guide.learn(arm, row(arm, draw, kept=bool(failed), colour=f"colour {draw}"))
            if number >= rounds - 3:
                chosen["good" if good else "other"] += 1
    return chosen


def test_it_finds_what_fails() -> None:
    chosen = _rewarded(Guide(CLASSES, seed=1))
    share = chosen["good"] / chosen.total()
    assert 1 - 3 * EXPLORE < share < 1


def test_the_same_history_makes_the_same_choices() -> None:
    first, second, other = (Guide(CLASSES, seed=seed) for seed in (4, 4, 5))
    draws = range(900, 950)
    forwards = [first.choose(draw) for draw in draws]
    assert forwards == [second.choose(draw) for draw in reversed(draws)][::-1]
    assert forwards != [other.choose(draw) for draw in draws]
    assert _rewarded(first) == _rewarded(second)
    assert [first.choose(draw) for draw in draws] == [second.choose(draw) for draw in draws] != forwards


def test_what_is_always_refused_is_left_out() -> None:
    guide = Guide({"add_car": ()}, seed=1)
    for _ in range(HOPELESS):
        guide.learn(Arm("add_car", None, "left", SIZE_WORDS[0]), None)
    arms = [guide.choose(draw) for draw in range(300)]
    assert not any(arm.place == "left" or arm.size == SIZE_WORDS[0] for arm in arms)
    assert {arm.size for arm in arms if arm.size is not None} == set(SIZE_WORDS[1:])


def test_a_failure_is_worth_less_the_more_of_it_is_known() -> None:
    guide = Guide(CLASSES, seed=1)
    arm = Arm("add_car", None, "left", SIZE_WORDS[1])
    red = row(arm, 1, kept=True, colour="red")
    features = red["features"]
    assert guide.worth(features, "frame 1", "object 1") == 1
    guide.learn(arm, red)
    assert guide.worth(features, "frame 1", "object 1") == pytest.approx(REPEATED)
    for weight, other in zip(
        NOVELTY, ({"colour": "red"}, {"thing": "object 1"}, {"base": "frame 1"}), strict=True
    ):
        new = {"colour": "blue", "thing": "object 2", "base": "frame 2"} | other
        said = {**features, "colour": new["colour"]}
        assert guide.worth(said, new["base"], new["thing"]) == pytest.approx(1 - weight * (1 - REPEATED))


def test_more_is_expected_where_features_failed_and_less_of_objects_that_passed() -> None:
    guide = Guide(CLASSES, seed=1)
    arm = Arm("add_car")
    for number in range(40):
        red = number % 2 == 0
        guide.learn(arm, row(arm, number, kept=red, colour="red" if red else "blue"))

    def mean(colour: str, thing: str) -> float:
        features = {"mutation": "add_car", "colour": colour}
        draws = [guide.expected(features, "new frame", thing, generator(n, "x")) for n in range(50)]
        return sum(draws) / len(draws)

    assert mean("red", "new") > 2 * mean("blue", "new")
    assert mean("blue", "object 1") == pytest.approx(mean("blue", "new") / 2), "it was tested once and passed"


def test_hints_say_how_likely_a_failure_is_and_make_no_kind() -> None:
    guide = Guide(CLASSES, seed=1)
    arm = Arm("change_color")
    for number in range(30):
        hard = number % 3 == 0
        guide.learn(arm, row(arm, number, kept=hard) | {"hints": {"seen before": "1" if hard else "6"}})
    features = {"mutation": "change_color"}
    chances = [
        np.mean(
            [guide.expected(features, "f", "o", generator(n, "x"), {"seen before": seen}) for n in range(50)]
        )
        for seen in ("1", "6")
    ]
    assert chances[0] > 2 * chances[1]
    assert [name for name in guide.failed if name[0] == "kind"] == [("kind", "mutation change_color")]


def test_sizes_and_places_cover_the_image_once() -> None:
    ranges = [Arm("add_car", size=size).size_px(2048) for size in SIZE_WORDS]
    assert ranges[0] == (0.0, 0.05 * 2048)
    assert all(a is not None and b is not None and a[1] == b[0] for a, b in itertools.pairwise(ranges))
    assert ranges[-1] is not None
    assert ranges[-1][1] == float("inf")
    assert [Arm("add_car", place=place).position for place in THIRDS] == [(0, 0), (1, 0), (2, 0)]

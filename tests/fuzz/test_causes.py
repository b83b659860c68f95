"""Causes: a planted one is found, chance is not named, and counts are those of a plain loop."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from adverse.fuzz.causes import _clearest, causes_of, said
from adverse.fuzz.features import colour_name, features_of, size_words
from adverse.fuzz.objects import Kind, ObjectVerdict
from adverse.fuzz.outcome import CampaignOutcome, Case
from adverse.semantic import Recipe, apply
from drawn_scenes import CAR, car_mask, resources_of, street, with_object
from fuzz.test_votes import outcome_of

SAID_OF = [("change_color", [("place", "middle")]), ("add_traffic_sign", []), ("mirror_scene", [])]
COLOURS = ("red", "green", "blue", "grey")
PLACES = ("left", "middle", "right")


def campaign(seed: int, rates: dict[tuple[str, str], float], tests: int = 600) -> CampaignOutcome:
    """Draw tests with colour and place at random; each fails with the rate of its pair, else 2 %."""
    rng = np.random.default_rng(seed)
    rows, drops = [], []
    for _ in range(tests):
        colour, place = str(rng.choice(COLOURS)), str(rng.choice(PLACES))
        rate = rates.get((colour, place), rates.get((colour, ""), 0.02))
        drops.append(2.0 if rng.random() < rate else 0.0)
        features = {"mutation": "change_color", "colour": colour, "place": place}
        rows.append({"features": features | {"object": f"car {int(rng.integers(40))}"}})
    return replace(outcome_of(drops, logs=30), rows=tuple(rows))


def test_what_was_planted_is_found_with_its_counts() -> None:
    outcome = campaign(1, {("green", ""): 0.5, ("blue", "left"): 0.6})
    found = causes_of(outcome, "net")
    wanted = {(("colour", "green"),), (("colour", "blue"), ("place", "left"))}
    assert {cause.conditions for cause in found.causes} == wanted
    left = list(zip(outcome.tests["net"], outcome.rows, strict=True))
    for cause in found.causes:
        inside = [all(row["features"][name] == value for name, value in cause.conditions) for _, row in left]
        mine = [test.failed for (test, _), there in zip(left, inside, strict=True) if there]
        assert (cause.tests, cause.failures) == (len(mine), sum(mine))
        everything = [test.failed for test, _ in left]
        left = [pair for pair, there in zip(left, inside, strict=True) if not there]
        assert cause.other_tests == len(everything) - len(mine)
        assert cause.other_failures == sum(everything) - sum(mine)
        assert cause.rate.value == pytest.approx(1000 * sum(mine) / len(mine))
        assert cause.words.startswith(f"{sum(mine)} of the {len(mine)} tests whose object is ")
        assert cause.words.endswith(f"; of the {cause.other_tests} others, {cause.other_failures} fail.")
    assert found.unexplained < found.failures / 4
    assert "whose object is green fail (" in next(c for c in found.causes if len(c.conditions) == 1).words
    words = [said((("mutation", name), *more)) for name, more in SAID_OF]
    assert words == [
        "that repaint an object that is in the middle",
        "that add a traffic sign",
        "that mirror the frame",
    ]


def test_chance_is_rarely_named() -> None:
    named = sum(bool(causes_of(campaign(100 + seed, {}), "net").causes) for seed in range(40))
    assert named <= 6


def test_a_campaign_without_failures_has_no_causes() -> None:
    outcome = campaign(1, dict.fromkeys([(colour, "") for colour in COLOURS], 0.0))
    assert causes_of(outcome, "net").causes == ()


def test_none_of_six_is_not_a_rate_of_zero() -> None:
    """In two logs the interval begins a hair above 0: that is not above what six tests can tell."""
    drops = [2.0] * 19 + [0.0] * 11
    places = ["right"] * 24 + ["left"] * 6
    rows = [{"features": {"mutation": "add_car", "place": place, "object": "a"}} for place in places]
    outcome = replace(outcome_of(drops, logs=2), rows=tuple(rows))
    assert causes_of(outcome, "net").causes == ()


def test_features_of_tests(tmp_path: Path) -> None:
    base = with_object(street(), car_mask(), (20, 95), colour=(30, 40, 160))
    donor = with_object(street("donor"), car_mask(60, 40), (240, 100), colour=(200, 30, 30))
    resources = resources_of([base, donor], tmp_path)
    paint = Recipe(
        "change_color",
        "base",
        None,
        (("instance", CAR * 1000 + 1), ("hue_shift", 60), ("darker", 0), ("richer", 0)),
    )
    repainted = features_of(paint, apply(paint, base, resources), base)
    assert repainted == {
        "mutation": "change_color",
        "class": "car",
        "size": "above 20 % of the width",
        "place": "left",
        "colour": "red",
        "touches": "no object",
        "object": "base#26001",
    }
    add = Recipe("add_car", "base", "donor#26001")
    added = features_of(add, apply(add, base, resources), base)
    assert (added["place"], added["before"], added["object"]) == ("right", "road", "donor#26001")
    assert added["size"] == "10 to 20 % of the width"
    mirror = Recipe("mirror_scene", "base")
    assert features_of(mirror, apply(mirror, base, resources), base) == {"mutation": "mirror_scene"}
    assert [size_words(share) for share in (0.0499, 0.05, 0.2)] == [
        "below 5 % of the width",
        "5 to 10 % of the width",
        "above 20 % of the width",
    ]
    assert colour_name(np.array([250.0, 250, 250])) == "white"


def test_the_example_shows_what_most_of_a_group_are() -> None:
    """Most miss a person: the largest of whom hardly anything is seen, not the lost pole that is unseen."""

    def case(number: int, kind: Kind, overlap: float, side: int, drop: float = 0.0) -> Case:
        verdict = ObjectVerdict(kind, "person", (0, 0, side, side), overlap)
        return Case(number, "k", "add_person", "b", "l", "r", "t", drop, None, None, None, (verdict,))

    small, clear = case(1, "missed", 0.02, 5), case(2, "missed", 0.04, 20)
    blob, lost = case(3, "missed", 0.24, 40), case(4, "lost", 0.0, 60, drop=3.0)
    assert _clearest([small, clear, blob, lost]) is clear
    assert _clearest([small, replace(lost, verdicts=()), replace(blob, verdicts=())]).number == 4

"""The horizon and the camera's height by things that stand on the ground, and moves between photographs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adverse.seeds import generator
from adverse.semantic import Options, Recipe, Rejected, propose
from adverse.semantic.horizon import HEIGHTS_M, StandingThing, eye_level
from adverse.semantic.scenes import Scene
from drawn_scenes import PERSON, ROAD, resources_of, street, with_object


def seen(class_name: str, distance_m: float, horizon: float, height_m: float) -> StandingThing:
    """Return a thing through a pinhole of 600 px at a height, by the law of projection."""
    scale = 600 / distance_m
    return StandingThing(class_name, horizon + scale * height_m, scale * HEIGHTS_M[class_name][0])


@given(st.floats(20, 300), st.floats(1.2, 2.2))
@settings(max_examples=30, deadline=None)
def test_things_of_usual_height_tell_where_the_horizon_is(horizon: float, height_m: float) -> None:
    things = [seen("person", distance, horizon, height_m) for distance in (5, 8, 12, 20, 30)]
    things += [seen("car", distance, horizon, height_m) for distance in (7, 15)]
    level = eye_level(things)
    assert level is not None
    nearest = max(thing.foot_row for thing in things) - horizon
    assert level.horizon_row == pytest.approx(horizon, abs=0.06 * nearest)
    assert level.camera_height_m == pytest.approx(height_m, abs=0.2)
    child = seen("person", 6, horizon, height_m)
    with_child = eye_level([*things, child._replace(height_px=0.6 * child.height_px)])
    assert with_child is not None
    assert with_child.horizon_row == pytest.approx(horizon, abs=0.1 * nearest), "one child is not believed"


def test_one_thing_is_seen_at_the_height_of_eyes_unless_lines_say_otherwise() -> None:
    bus = StandingThing("bus", 300, 3.1 * 50)
    assert eye_level([bus]) == pytest.approx((300 - 1.6 * 50, 1.6))
    level = eye_level([bus], lines_meet=200, lines_spread=5)
    assert level is not None
    assert level.horizon_row == pytest.approx(200, abs=5)
    assert level.camera_height_m == pytest.approx((300 - level.horizon_row) / 50, rel=0.1)


def test_things_that_disagree_or_whose_height_is_not_known_tell_nothing() -> None:
    assert eye_level([]) is None
    assert eye_level([StandingThing("bear", 300, 90)]) is None
    rows = [StandingThing("person", foot, height) for foot, height in ((400, 20), (200, 160), (380, 30))]
    assert eye_level(rows) is None


def person_at(scene: Scene, foot: int, height: int, *, label_rim: bool = False) -> Scene:
    """Put a person whose foot is above a row; with a rim, the pixels around it have no label."""
    box = np.ones((height, height // 3), np.bool_)
    if label_rim:
        labels = scene.labels.copy()
        labels[foot : foot + 1] = 0
        scene = replace(scene, labels=labels)
    number = PERSON * 1000 + 1 + len(scene.things)
    at = (20 + 60 * len(scene.things), foot - height)
    return with_object(scene, box, at, label=PERSON, instance=number)


@pytest.mark.parametrize("label_rim", [False, True])
def test_what_moves_from_photograph_to_photograph_has_its_size_there(
    tmp_path: Path, *, label_rim: bool
) -> None:
    """Both cameras are at 1.6 m, but horizons (rows 60 and 90), sizes of images and distances differ."""
    donor = street("donor", point=None)
    for foot in (100, 110):
        donor = person_at(donor, foot, round(1.7 * (foot - 60) / 1.6), label_rim=label_rim)
    base = street("base", point=None, size=(400, 240))
    for foot in (140, 200):
        base = person_at(base, foot, round(1.7 * (foot - 90) / 1.6))
    assert base.horizon == pytest.approx(90, abs=3)
    options = Options(moves=True, off=frozenset({"light", "size"}))
    resources = resources_of([donor], tmp_path)
    for seed in range(8):
        recipe = propose("add_person", base, resources, generator(seed), options)
        assert isinstance(recipe, Recipe), recipe
        n = recipe.by_name
        foot, left, right = int(n["y"] + n["height"]), int(n["x"]), int(n["x"] + n["width"] - 1)
        assert n["height"] == pytest.approx(1.7 * (foot - 90) / 1.6, rel=0.12), "1.7 m tall by the pinhole"
        assert base.labels[foot - 1, [left, right]].tolist() == [ROAD, ROAD]


def test_who_sits_floats_or_would_be_a_giant_is_no_donor_to_be_moved(tmp_path: Path) -> None:
    base = replace(street("base"), horizon_row=60.0)
    options = Options(moves=True, off=frozenset({"light", "size", "height", "unoccluded"}))
    sitting = with_object(street("a"), np.ones((30, 30), np.bool_), (50, 90), label=PERSON, instance=24001)
    floating = with_object(street("b"), np.ones((40, 12), np.bool_), (50, 20), label=PERSON, instance=24001)
    for number, donor in enumerate((sitting, floating)):
        resources = resources_of([donor], tmp_path / str(number))
        refused = propose("add_person", base, resources, generator(1), options)
        assert isinstance(refused, Rejected)
        assert refused.reason == "standing", donor.id
    group = street("c", point=None)
    for foot, height_m in ((100, 1.7), (120, 1.7), (140, 1.7), (110, 3.4)):
        group = person_at(group, foot, round(height_m * (foot - 60) / 1.6))
    assert resources_of([group], tmp_path / "c").index("person").standing.tolist() == [True] * 3 + [False]


def test_who_is_seen_from_higher_up_is_not_put_in(tmp_path: Path) -> None:
    """The depth of the base's road, 160 m / rows, is that of a camera of 320 px half a metre above it."""
    donor = person_at(street("donor", point=None), 110, 50)
    base = street(depth=True)
    assert base.camera_height_m == pytest.approx(160 / 320, rel=0.01)
    resources = resources_of([donor], tmp_path)
    assert resources.index("person").camera_height_m.tolist() == pytest.approx([1.6])
    options = Options(moves=True, off=frozenset({"light", "size"}))
    refused = propose("add_person", base, resources, generator(1), options)
    assert isinstance(refused, Rejected)
    assert refused.reason == "height"

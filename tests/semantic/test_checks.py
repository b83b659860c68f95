"""Each conformity check: a case that passes, one that does not, and that one again with the check off."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adverse.seeds import generator
from adverse.semantic import Cell, Options, Recipe, Rejected, Resources, Scene, propose
from adverse.semantic.checks import median_under
from adverse.semantic.proposing import NO_POINT, OTHER_CELL, OWN_LOG, TRIES
from drawn_scenes import BUILDING, CAR, PERSON, POLE, ROAD, car_mask, resources_of, street, with_object

AT = (120, 95)
SOLID = car_mask(hole=False)
DEPTH = Options(occlusion=True)


def donor(
    *,
    name: str = "donor",
    width: int = 110,
    point: tuple[float, float] = (100, 60),
    colour: tuple[int, int, int] = (120, 40, 30),
    depth: bool = False,
) -> Scene:
    return with_object(street(name, point=point, depth=depth), car_mask(width), AT, colour=colour)


def behind_a_person() -> Scene:
    """Let a person stand before the car: lower in the image, and touching it."""
    return with_object(
        donor(), np.ones((60, 12), np.bool_), (150, 100), label=PERSON, instance=24001, colour=(9, 9, 9)
    )


def in_two_parts() -> Scene:
    """Let a pole cut the car; its foot is no lower than the car's, so that it does not count as before it."""
    scene = donor()
    labels, instances = scene.labels.copy(), scene.instances.copy()
    labels[95:145, 170:174], instances[95:145, 170:174] = POLE, 0
    return replace(scene, labels=labels, instances=instances)


def with_road_at_its_corner(scene: Scene, label: int) -> Scene:
    labels = scene.labels.copy()
    labels[144, 120] = label
    return replace(scene, labels=labels)


def with_a_car_at(depth_m: float) -> Scene:
    """Put a car where the new one would be, so far away; the new one is 2.46 m away."""
    return with_object(street(depth=True), SOLID, (110, 93), instance=26005, depth_m=depth_m)


def with_people_at(depth_m: float) -> Scene:
    crowd = np.ones((50, 104), np.bool_)
    return with_object(street(depth=True), crowd, (118, 92), label=PERSON, instance=24001, depth_m=depth_m)


CASES: dict[str, tuple[Callable[[], tuple[Scene, Scene]], Callable[[], tuple[Scene, Scene]], Options]] = {
    "size": (lambda: (donor(width=100), street()), lambda: (donor(width=99), street()), Options()),
    "unoccluded": (lambda: (donor(), street()), lambda: (behind_a_person(), street()), Options()),
    "whole": (lambda: (donor(), street()), lambda: (in_two_parts(), street()), Options()),
    "frame": (
        lambda: (donor(), street()),
        lambda: (donor(), street(size=(330, 160))),
        Options(),
    ),
    "perspective": (
        lambda: (donor(point=(90, 50)), street()),
        lambda: (donor(point=(220, 60)), street()),
        Options(),
    ),
    "road": (
        lambda: (donor(), with_road_at_its_corner(street(), ROAD)),
        lambda: (donor(), with_road_at_its_corner(street(), BUILDING)),
        Options(),
    ),
    "light": (
        lambda: (donor(colour=(125, 0, 0)), street()),
        lambda: (donor(colour=(126, 0, 0)), street()),
        Options(),
    ),
    "apart": (
        lambda: (donor(depth=True), with_a_car_at(20)),
        lambda: (donor(depth=True), with_a_car_at(6)),
        Options(occlusion=True, off=frozenset({"light"})),
    ),
    "visible": (
        lambda: (donor(depth=True), with_people_at(9)),
        lambda: (donor(depth=True), with_people_at(1.0)),
        Options(occlusion=True, off=frozenset({"light"})),
    ),
}


def proposed(pair: tuple[Scene, Scene], options: Options, folder: Path) -> Recipe | Rejected:
    given_donor, base = pair
    return propose("add_car", base, resources_of([given_donor], folder), generator(5), options)


@pytest.mark.parametrize("check", CASES)
def test_a_check_lets_through_refuses_and_can_be_turned_off(check: str, tmp_path: Path) -> None:
    good, bad, options = CASES[check]
    assert isinstance(proposed(good(), options, tmp_path / "good"), Recipe)
    refused = proposed(bad(), options, tmp_path / "bad")
    assert isinstance(refused, Rejected)
    assert refused.reason == check
    assert refused.counts == {check: 1}
    without = replace(options, off=options.off | {check})
    assert isinstance(proposed(bad(), without, tmp_path / "bad"), Recipe)


def test_a_finer_grid_tells_vanishing_points_apart(tmp_path: Path) -> None:
    pair = donor(point=(90, 50)), street(point=(130, 60))
    assert isinstance(proposed(pair, Options(), tmp_path), Recipe)
    fine = proposed(pair, Options(vanishing_grid=(8, 8)), tmp_path)
    assert isinstance(fine, Rejected)
    assert fine.reason == "perspective"


def test_a_base_without_vanishing_point_is_refused(tmp_path: Path) -> None:
    pair = donor(), street(point=None)
    refused = proposed(pair, Options(), tmp_path)
    assert isinstance(refused, Rejected)
    assert refused.reason == NO_POINT
    assert isinstance(proposed(pair, Options(off=frozenset({"perspective"})), tmp_path), Recipe)


def test_a_donor_without_vanishing_point_is_refused(tmp_path: Path) -> None:
    plain = with_object(street("donor", point=None), car_mask(), AT, colour=(120, 40, 30))
    refused = proposed((plain, street()), Options(), tmp_path)
    assert isinstance(refused, Rejected)
    assert refused.counts == {"perspective": 1}


def test_an_object_of_the_scenes_own_log_is_no_donor(tmp_path: Path) -> None:
    refused = proposed((donor(), street(log="donor")), Options(), tmp_path)
    assert isinstance(refused, Rejected)
    assert refused.reason == OWN_LOG


@pytest.mark.parametrize(
    ("where", "found"),
    [
        (Cell(), True),
        (Cell("car", (2, 1)), True),
        (Cell("person"), False),
        (Cell(position=(1, 1)), False),
        (Cell(position=(0, 0), grid=(1, 1)), True),
        (Cell(size_px=(100, 111)), True),
        (Cell(size_px=(50, 110)), False),
    ],
)
def test_a_campaign_can_ask_for_class_place_and_size(tmp_path: Path, where: Cell, *, found: bool) -> None:
    made = propose(
        "add_car", street(), resources_of([donor()], tmp_path), generator(1), Options(), where=where
    )
    assert isinstance(made, Recipe) == found
    base = with_object(street(), car_mask(), AT)
    changed = propose(
        "change_color", base, resources_of([donor()], tmp_path), generator(1), Options(), where=where
    )
    assert isinstance(changed, Recipe) == found
    if where.donor_class != "person" and isinstance(changed, Rejected):
        assert changed.reason == OTHER_CELL


def test_small_cars_are_not_repainted(tmp_path: Path) -> None:
    base = with_object(street(), car_mask(90, 40), (20, 100), instance=CAR * 1000 + 1)
    large = with_object(base, car_mask(110, 40), (150, 100), instance=CAR * 1000 + 2)
    resources = resources_of([large], tmp_path)
    counted: Counter[str] = Counter()
    for seed in range(20):
        recipe = propose("change_color", large, resources, generator(seed), Options(), counted=counted)
        assert isinstance(recipe, Recipe)
        assert recipe.by_name["instance"] == CAR * 1000 + 2
    assert counted == {"size": 20}
    refused = propose("change_color", base, resources, generator(1), Options())
    assert isinstance(refused, Rejected)
    assert refused.reason == "size"
    unchecked = Options(off=frozenset({"size"}))
    assert isinstance(propose("change_color", base, resources, generator(1), unchecked), Recipe)


def test_the_search_is_bounded_and_says_so(tmp_path: Path) -> None:
    dark = [donor(name=f"donor{number}", colour=(20, 20, 20)) for number in range(6)]
    resources = resources_of(dark, tmp_path)
    counted: Counter[str] = Counter()
    refused = propose("add_car", street(), resources, generator(1), Options(tries=4), counted=counted)
    assert isinstance(refused, Rejected)
    assert refused.counts == {"light": 4, TRIES: 1} == dict(counted)


def test_the_choice_is_that_of_a_plain_search_in_the_same_order(tmp_path: Path) -> None:
    """A witness for index, order and counts: look at one object after the other, each from its image."""
    rng = np.random.default_rng(4)
    scenes = []
    for number in range(25):
        point = [(100, 60), (220, 60)][int(rng.integers(2))]
        place = int(rng.integers(5, 150)), int(rng.integers(20, 105))
        size, value = int(rng.choice([80, 110, 140])), int(rng.integers(105, 135))
        scenes.append(
            with_object(street(f"s{number}", point=point), car_mask(size), place, colour=(value, 0, 0))
        )
    resources = resources_of(scenes, tmp_path)
    base = street()
    for seed in range(20):
        counted: Counter[str] = Counter()
        found = propose("add_car", base, resources, generator(seed), Options(), counted=counted)
        reasons: Counter[str] = Counter()
        chosen = None
        for number in generator(seed).permutation(len(scenes)).tolist():
            reason = _plain_reason(list(resources)[number].id, scenes, base)
            if reason is None:
                chosen = list(resources)[number].id
                break
            reasons[reason] += 1
        assert (found.donor if isinstance(found, Recipe) else None) == chosen
        assert counted == reasons


def _plain_reason(entity_id: str, scenes: list[Scene], base: Scene) -> str | None:
    name, _, instance = entity_id.partition("#")
    source = next(scene for scene in scenes if scene.id == name)
    rows, columns = np.nonzero(source.instances == int(instance))
    if max(np.ptp(rows), np.ptp(columns)) + 1 < 100:
        return "size"
    if rows.max() + 1 < 79:
        return "unoccluded"  # the building beside it meets the road at row 79, lower and so before it
    here, there = base.vanishing_point, source.vanishing_point
    assert here is not None
    assert there is not None
    if (here.x < 0.5, here.y < 0.5) != (there.x < 0.5, there.y < 0.5):
        return "perspective"
    if base.labels[rows.max(), columns.min()] != ROAD:
        return "road"
    value = [
        np.median(cv2.cvtColor(scene.image, cv2.COLOR_RGB2HSV)[rows, columns, 2]) for scene in (source, base)
    ]
    return "light" if abs(value[0] - value[1]) > 5 else None


@settings(max_examples=60)
@given(st.lists(st.integers(0, 255), min_size=1, max_size=30), st.data())
def test_the_median_is_numpys(values: list[int], data: st.DataObject) -> None:
    taken = data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values)))
    taken[0] = True
    value, mask = np.array([values], np.uint8), np.array([taken])
    assert median_under(value, mask) == np.median(value[mask])


def test_poles_and_groups_before_an_object_occlude_it_and_what_is_behind_does_not(tmp_path: Path) -> None:
    scene = donor()
    for name, label, foot, hidden in (
        ("pole", POLE, 150, True),
        ("group", CAR, 150, True),
        ("behind", CAR, 140, False),
    ):
        labels = scene.labels.copy()
        labels[90:foot, 230:236] = label  # right beside the car, without a number of its own
        (entity,) = resources_of([replace(scene, labels=labels)], tmp_path / name)
        assert entity.occluded is hidden


def test_by_depth_a_nearer_neighbour_occludes_and_a_farther_does_not(tmp_path: Path) -> None:
    for name, depth_m, hidden in (("near", 1.5, True), ("far", 9.0, False)):
        scene = with_object(
            donor(depth=True),
            np.ones((30, 10), np.bool_),
            (230, 105),
            label=PERSON,
            instance=24001,
            depth_m=depth_m,
        )
        car = next(one for one in resources_of([scene], tmp_path / name) if one.class_name == "car")
        assert car.occluded is hidden


def test_the_index_keeps_what_was_cut_out(tmp_path: Path) -> None:
    scene = donor(depth=True)
    (entity,) = resources_of([scene], tmp_path)
    inside = np.s_[95:145, 120:230]
    assert np.array_equal(entity.rgb[entity.alpha > 0], scene.image[inside][car_mask()])
    assert entity.depth_m is not None
    assert np.array_equal(np.isfinite(entity.depth_m), car_mask())
    assert entity.depth_range_m == pytest.approx((160 / 65, 160 / 65))
    assert entity.nearness == pytest.approx((144 - 79) / 160, rel=1e-3)
    assert entity.median_value == 120
    assert (entity.components, entity.largest_part, entity.cut) == (1, 1.0, False)
    assert entity.frame_size == (320, 160)
    outline = cv2.fillPoly(np.zeros((160, 320), np.uint8), [entity.polygon], 1) > 0
    assert np.array_equal(outline[inside], car_mask(hole=False)), "the outline of its outside"
    assert entity.rgba.shape == (50, 110, 4)
    assert isinstance(resources_of([scene], tmp_path), Resources)

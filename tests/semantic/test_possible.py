"""Possible scenes without depth: order by the ground, room, covered donors, vanishing points, paint."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pydantic import TypeAdapter

from adverse.seeds import generator
from adverse.semantic import PRESETS, Options, Recipe, Rejected, apply, propose
from adverse.semantic.contact import contact_rows
from drawn_scenes import BUILDING, CAR, CLASSES, PERSON, car_mask, resources_of, street, with_object

AT = (120, 95)


def test_contact_rows_are_those_of_a_slow_loop() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        labels = np.repeat(rng.choice([7, 8, 11, 21], (12, 9)), 2, axis=0)
        instances = np.where(rng.random(labels.shape) < 0.2, 5, 0).astype(np.int32)
        rows = np.nonzero(instances == 5)[0]
        feet = {5: int(rows.max())} if len(rows) else {}
        found = contact_rows(labels, instances, feet, [7, 8])
        for row, column in np.ndindex(labels.shape):
            wanted = -1
            if instances[row, column]:
                wanted = feet[5]
            elif labels[row, column] in (7, 8):
                wanted = row
            else:
                last = row
                same = (labels[row, column], 0)
                while last + 1 < 24 and (labels[last + 1, column], instances[last + 1, column]) == same:
                    last += 1
                below = (
                    last + 1 < 24 and instances[last + 1, column] == 0 and labels[last + 1, column] in (7, 8)
                )
                wanted = last if below else -1
            assert found[row, column] == wanted


def test_without_depth_what_meets_the_ground_lower_is_nearer(tmp_path: Path) -> None:
    """A wall and a person stand before the car, whose foot is row 144, and a person behind it."""
    donor = with_object(street("donor"), car_mask(), AT, colour=(120, 40, 30))
    base = with_object(street(), np.ones((55, 10), np.bool_), (130, 98), label=PERSON, instance=24001)
    base = with_object(base, np.ones((40, 10), np.bool_), (160, 92), label=PERSON, instance=24002)
    labels = base.labels.copy()
    labels[90:150, 200:210] = BUILDING  # meets the road at row 149
    base = replace(base, labels=labels)
    options = Options(occlusion=True, off=frozenset({"light", "apart", "perspective"}))
    resources = resources_of([donor], tmp_path)
    recipe = propose("add_car", base, resources, generator(2), options)
    assert isinstance(recipe, Recipe)
    done = apply(recipe, base, resources)
    car = np.zeros((160, 320), np.bool_)
    car[95:145, 120:230] = car_mask()
    before = (base.instances == 24001) | ((base.labels == BUILDING) & (np.arange(160) >= 90)[:, None])
    assert np.array_equal(done.mask, car & ~before)
    assert done.scene.depth_m is None


@pytest.mark.parametrize(("foot", "fits"), [(145, False), (139, False), (100, True)])
def test_two_cars_are_never_in_one_place(tmp_path: Path, foot: int, *, fits: bool) -> None:
    """The horizon is about row 60, so feet at 145 and 100 are 5.6 and 12 m away, and a car is 4.5 m long."""
    donor = with_object(street("donor"), car_mask(), AT, colour=(120, 40, 30))
    base = with_object(street(), np.ones((30, 60), np.bool_), (150, foot - 30), instance=CAR * 1000 + 7)
    horizon = base.horizon
    assert horizon is not None
    far = [320 * 1.5 / (row - horizon) for row in (145, foot)]
    assert (far[1] > far[0] + 4.5) == fits
    options = Options(occlusion=True, off=frozenset({"light", "visible", "perspective", "road"}))
    found = propose("add_car", base, resources_of([donor], tmp_path), generator(1), options)
    assert isinstance(found, Recipe) == fits
    if isinstance(found, Rejected):
        assert found.reason == "apart"


@pytest.mark.parametrize("name", ["vegetation", "fence", "wall", "guard rail"])
def test_donors_that_anything_covers_are_refused(tmp_path: Path, name: str) -> None:
    """A hedge, fence or rail before the lower part of a car; behind it, it does not matter."""
    for before, rows in ((True, slice(125, 152)), (False, slice(60, 120))):
        scene = with_object(street(f"donor {before}"), car_mask(hole=False), AT, colour=(120, 40, 30))
        labels, instances = scene.labels.copy(), scene.instances.copy()
        where = np.zeros(labels.shape, np.bool_)
        where[rows, 100:250] = True
        where &= (instances == 0) | before
        labels[where], instances[where] = 50, 0
        scene = replace(scene, labels=labels, instances=instances, classes={**CLASSES, 50: name})
        (entity,) = resources_of([scene], tmp_path / str(before))
        assert entity.occluded == before


def test_objects_of_any_class_can_be_added(tmp_path: Path) -> None:
    classes = {**CLASSES, 33: "traffic sign"}
    donor = with_object(
        street("donor", classes=classes), car_mask(), AT, label=33, instance=33001, colour=(120, 40, 30)
    )
    resources = resources_of([donor], tmp_path)
    base = street(classes=classes)
    recipe = propose("add_traffic_sign", base, resources, generator(1), Options())
    assert isinstance(recipe, Recipe)
    done = apply(recipe, base, resources)
    assert (done.scene.labels[done.mask] == 33).all()


def test_vanishing_points_may_be_near_instead_of_in_one_quadrant(tmp_path: Path) -> None:
    scenes = [
        with_object(street(f"at {x}", point=(x, 60)), car_mask(), AT, colour=(120, 40, 30))
        for x in (100, 112, 150, 220)
    ]
    resources = resources_of(scenes, tmp_path)
    points = {entity.scene: entity.vanishing for entity in resources}
    base = street(point=(158, 60))
    own = base.vanishing_point
    assert own is not None
    for within in (0.05, 0.2, None):
        options = Options(vanishing_within=within, off=frozenset({"light"}))
        taken = set()
        for seed in range(30):
            found = propose("add_car", base, resources, generator(seed), options)
            taken |= {found.donor.partition("#")[0]} if isinstance(found, Recipe) and found.donor else set()
        if within is None:
            wanted = {name for name, point in points.items() if point and (point[0] < 0.5) == (own.x < 0.5)}
        else:
            wanted = {name for name, point in points.items() if point and abs(point[0] - own.x) <= within}
        assert taken == wanted


def test_the_own_log_can_be_allowed(tmp_path: Path) -> None:
    first = with_object(street("a", log="one"), car_mask(), AT, colour=(120, 40, 30))
    base = street("b", log="one")
    resources = resources_of([first, base], tmp_path)
    assert isinstance(propose("add_car", base, resources, generator(1), Options()), Rejected)
    allowed = Options(off=frozenset({"log"}))
    assert isinstance(propose("add_car", base, resources, generator(1), allowed), Recipe)
    refused = propose("add_car", first, resources, generator(1), allowed)
    assert isinstance(refused, Rejected), "never from the frame itself"


def test_realistic_paint_leaves_tyres_windows_and_lights_alone(tmp_path: Path) -> None:
    scene = with_object(street(), car_mask(hole=False), AT, colour=(60, 90, 160))
    image = scene.image.copy()
    image[138:145, 130:150] = (25, 25, 28)  # a tyre
    image[118:124, 122:130] = (210, 25, 20)  # a tail light
    image[130:136, 160:200] = (12, 20, 60)  # paint in the shade
    scene = replace(scene, image=image)
    resources = resources_of([scene], tmp_path)
    options = TypeAdapter(Options).validate_python(PRESETS["realistic"])
    recipe = propose("change_color", scene, resources, generator(2), options)
    assert isinstance(recipe, Recipe)
    done = apply(recipe, scene, resources).scene
    same = (done.image == scene.image).all(axis=2)
    own = scene.instances > 0
    assert same[138:145, 130:150].all()
    assert same[118:124, 122:130].all()
    assert not same[own].all()
    paint = own & ((scene.image == (60, 90, 160)) | (scene.image == (12, 20, 60))).all(axis=2)
    assert not same[paint].any()
    plain = propose("change_color", scene, resources, generator(2), Options())
    assert isinstance(plain, Recipe)
    assert not (apply(plain, scene, resources).scene.image == scene.image).all(axis=2)[118:124, 122:130].any()


@pytest.mark.parametrize(("brightness", "fits"), [(120, True), (139, True), (150, False)])
def test_light_is_compared_around_an_object_not_with_what_it_covers(
    tmp_path: Path, brightness: int, *, fits: bool
) -> None:
    """A black car fits a grey street, unless the street that it comes from was lit otherwise."""
    donor = with_object(street("donor", brightness=brightness), car_mask(), AT, colour=(20, 20, 20))
    resources = resources_of([donor], tmp_path)
    by_surroundings = Options(light_of="surroundings", light_within=20)
    found = propose("add_car", street(), resources, generator(1), by_surroundings)
    assert isinstance(found, Recipe) == fits
    paper = propose("add_car", street(), resources, generator(1), Options())
    assert isinstance(paper, Rejected)
    assert paper.reason == "light"

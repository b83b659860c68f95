"""What goes beyond the paper, each with the pixels it may change and what it says when it cannot be done."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from adverse.errors import MutationError
from adverse.seeds import generator
from adverse.semantic import Mutated, Options, Recipe, Rejected, Resources, Scene, apply, propose
from adverse.semantic.painting import GAIN_LIMITS, harmonised
from adverse.semantic.proposing import NO_DEPTH, NO_GROUND
from adverse.semantic.scenes import GroundPlane
from adverse.types import Camera
from drawn_scenes import BUILDING, CAR, PERSON, ROAD, car_mask, resources_of, street, with_object

AT = (120, 95)
NO_LIGHT = frozenset({"light"})


@pytest.fixture(scope="module")
def resources(tmp_path_factory: pytest.TempPathFactory) -> Resources:
    donor = with_object(street("donor", depth=True), car_mask(), AT, colour=(120, 40, 30))
    return resources_of([donor], tmp_path_factory.mktemp("set"))


def made(resources: Resources, base: Scene, options: Options, kind: str = "add_car") -> Mutated:
    recipe = propose(kind, base, resources, generator(2), options)
    assert isinstance(recipe, Recipe), recipe
    done = apply(recipe, base, resources)
    again = apply(Recipe.from_json(recipe.to_json()), base, resources)
    assert np.array_equal(done.scene.image, again.scene.image)
    assert np.array_equal(done.scene.labels, again.scene.labels)
    outside = ~done.touched
    assert np.array_equal(done.scene.image[outside], base.image[outside])
    assert np.array_equal(done.scene.labels[~done.mask], base.labels[~done.mask])
    assert np.array_equal(done.scene.instances[~done.mask], base.instances[~done.mask])
    assert not (done.mask & ~done.touched).any()
    return done


def car_in_frame() -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    whole = np.zeros((160, 320), np.bool_)
    whole[95:145, 120:230] = car_mask()
    return whole


def test_what_is_nearer_hides_what_is_added_and_what_is_farther_is_hidden(resources: Resources) -> None:
    person, behind = np.ones((60, 10), np.bool_), np.ones((20, 10), np.bool_)
    base = with_object(street(depth=True), person, (130, 92), label=PERSON, instance=24001, depth_m=1.5)
    base = with_object(base, behind, (150, 92), label=PERSON, instance=24002, depth_m=20.0)
    done = made(resources, base, Options(occlusion=True, off=NO_LIGHT))
    near = base.instances == 24001
    assert np.array_equal(done.mask, car_in_frame() & ~near)
    assert (done.scene.instances[near] == 24001).all()
    assert (done.scene.instances[(base.instances == 24002) & car_in_frame()] == CAR * 1000 + 1).all()
    assert done.scene.depth_m is not None
    assert done.scene.depth_m[done.mask] == pytest.approx(160 / 65)
    boxes = {one.instance: one.box for one in done.scene.things.values()}
    assert boxes[24002] == (150, 92, 160, 95), "what is left of the one behind: above the roof"
    plain = made(resources, base, Options(off=NO_LIGHT))
    assert np.array_equal(plain.mask, car_in_frame())


def test_occlusion_without_depth_says_so(resources: Resources) -> None:
    options = Options(occlusion=True, off=frozenset({"perspective"}))
    refused = propose("add_car", street(point=None), resources, generator(1), options)
    assert isinstance(refused, Rejected)
    assert refused.reason == NO_DEPTH


def test_depth_that_is_no_longer_known_is_not_told(tmp_path: Path) -> None:
    donor = with_object(street("donor"), car_mask(), AT, colour=(120, 40, 30))
    done = made(resources_of([donor], tmp_path), street(depth=True), Options())
    assert done.scene.depth_m is not None
    assert np.isnan(done.scene.depth_m[done.mask]).all()
    assert np.isfinite(done.scene.depth_m[~done.mask]).all()


def test_a_contact_shadow_falls_on_ground_beside_the_foot_and_nowhere_else(resources: Resources) -> None:
    base = street()
    labels = base.labels.copy()
    labels[140:, 235:] = BUILDING
    base = replace(base, labels=labels)
    done = made(resources, base, Options(shadow=True))
    assert np.array_equal(done.mask, car_in_frame())
    beside = done.touched & ~done.mask
    rows, columns = np.nonzero(beside)
    assert (base.labels[beside] == ROAD).all()
    reach = round(0.06 * 110)
    assert rows.min() >= 144 - 0.45 * 50 - reach
    assert rows.max() <= 144 + reach
    assert columns.min() >= 120 - reach
    assert columns.max() <= 229 + reach
    darker = base.image[beside].astype(int) - done.scene.image[beside]
    assert darker.min() >= 0
    assert darker.max() > 20


def test_feathering_mixes_inwards_and_leaves_the_middle(resources: Resources) -> None:
    base = street()
    done = made(resources, base, Options(feather_px=3))
    assert np.array_equal(done.touched, car_in_frame())
    image = done.scene.image.astype(int)
    assert image[130, 175].tolist() == [120, 40, 30]
    edge = image[130, 120]
    assert edge.tolist() == np.rint([120, 0.25 * 40 + 0.75 * 120, 0.25 * 30 + 0.75 * 120]).tolist()
    assert (done.scene.labels[done.mask] == CAR).all()


def test_harmonising_follows_the_surroundings_within_limits(resources: Resources, tmp_path: Path) -> None:
    colour = np.full((1, 1, 3), 100, np.uint8)
    assert harmonised(colour, (99, 99, 99), (119, 99, 79))[0, 0].tolist() == [120, 100, 80]
    assert harmonised(colour, (0, 0, 0), (255, 0, 0))[0, 0].tolist() == [
        round(100 * GAIN_LIMITS[1]),
        100,
        100,
    ]
    bright = with_object(street("d", brightness=200), car_mask(), AT, colour=(120, 40, 30))
    base = street(brightness=160)
    done = made(resources_of([bright], tmp_path), base, Options(harmonise=True, off=NO_LIGHT))
    assert np.array_equal(done.touched, car_in_frame())
    mean = done.scene.image[done.mask].mean(axis=0)
    assert (mean < [110, 37, 28]).all()
    same = made(resources, street(depth=True), Options(harmonise=True))
    assert np.abs(same.scene.image[same.mask] - np.array([120.0, 40, 30])).max() <= 3


def test_removing_leaves_void_and_no_object(resources: Resources) -> None:
    base = with_object(street(depth=True), car_mask(hole=False), AT, colour=(255, 0, 0))
    done = made(resources, base, Options(), "remove_object")
    own = base.instances > 0
    assert (done.mask & own).sum() == own.sum()
    rows, columns = np.nonzero(done.mask)
    assert (columns.min(), rows.min(), columns.max(), rows.max()) == (117, 92, 232, 147), (
        "3 px more on each side"
    )
    assert not done.scene.things
    assert (done.scene.labels[done.mask] == 0).all()
    assert done.scene.void == {0}
    reddest = done.scene.image[own].astype(int)
    assert (reddest[:, 0] - reddest[:, 1]).max() < 40, "painted over with what is around"


def test_mirroring_turns_everything_that_is_known(resources: Resources) -> None:
    camera = Camera(300, 300, 100, 79.5, 320, 160)
    base = replace(with_object(street(depth=True), car_mask(80), (10, 95)), camera=camera)
    done = made(resources, base, Options(), "mirror_scene").scene
    assert done.camera is not None
    assert done.depth_m is not None
    assert base.depth_m is not None
    for after, before in (
        (done.image, base.image),
        (done.labels, base.labels),
        (done.instances, base.instances),
        (done.depth_m, base.depth_m),
    ):
        assert np.array_equal(after[:, ::-1], before)
    assert done.camera.cx == 319 - 100
    point = np.array([1.5, 0.2, 6.0])
    u = camera.cx + camera.fx * point[0] / point[2]
    mirrored_u = done.camera.cx + done.camera.fx * -point[0] / point[2]
    assert mirrored_u == pytest.approx(319 - u), "what is on the right is as far on the left"
    (thing,) = done.things.values()
    assert thing.box == (320 - 90, 95, 310, 145)
    again = apply(Recipe("mirror_scene", done.id), done, resources).scene
    assert np.array_equal(again.image, base.image)
    assert again.camera == camera


def test_a_moved_object_is_scaled_by_the_ground_plane(resources: Resources) -> None:
    base = street(depth=True)
    plane = base.ground
    assert plane is not None
    assert plane.nearness(10, 100) == pytest.approx((100 - 79) / 160, rel=1e-3)
    options = Options(moves=True, off=frozenset({"light", "size", "standing"}))  # it is not drawn to scale
    places = set()
    for seed in range(12):
        recipe = propose("add_car", base, resources, generator(seed), options)
        assert isinstance(recipe, Recipe), recipe
        done = apply(recipe, base, resources)
        n = recipe.by_name
        left, bottom = int(n["x"]), int(n["y"] + n["height"])
        places.add((left, bottom))
        assert base.labels[bottom - 1, left] == ROAD
        before, after = (144 - 79) / 160, (bottom - 1 - 79) / 160
        assert n["closer"] == pytest.approx(after / before, rel=1e-3)
        assert n["width"] == pytest.approx(110 * after / before, abs=0.51)
        assert n["height"] == pytest.approx(50 * after / before, abs=0.51)
        area = car_mask().sum() * (n["width"] * n["height"]) / 5500
        assert done.mask.sum() == pytest.approx(area, rel=0.06)
        assert done.scene.depth_m is not None
        assert np.median(done.scene.depth_m[done.mask]) == pytest.approx(1 / after, rel=0.01)
        inner = done.scene.image[done.mask].astype(int)
        assert np.abs(inner - [120, 40, 30]).max() <= 1, "no black of the cut-out's outside bleeds in"
        assert np.array_equal(done.scene.labels[~done.mask], base.labels[~done.mask])
        assert np.array_equal(done.scene.image[~done.mask], base.image[~done.mask])
    assert len(places) > 8


def test_a_horizon_is_enough_to_move_and_without_either_it_says_so(tmp_path: Path) -> None:
    donor = with_object(street("donor"), car_mask(), AT, colour=(120, 40, 30))
    set_without_depth = resources_of([donor], tmp_path)
    options = Options(moves=True, off=frozenset({"light", "size"}))
    level = replace(street(), horizon_row=79.0)
    assert level.ground == pytest.approx(GroundPlane(0.0, 1 / 1.5, -79 / 1.5, metric=False))
    recipe = propose("add_car", level, set_without_depth, generator(1), options)
    assert isinstance(recipe, Recipe)
    bottom = recipe.by_name["y"] + recipe.by_name["height"] - 1
    (entity,) = set_without_depth
    assert entity.scale_px_m is not None
    assert entity.scale_px_m == pytest.approx(50 / 1.5, rel=0.15), "it is 50 px tall, and a car 1.5 m"
    assert recipe.by_name["closer"] == pytest.approx((bottom - 79) / 1.5 / entity.scale_px_m)
    options = replace(options, off=options.off | {"perspective"})
    refused = propose("add_car", street(point=None), set_without_depth, generator(1), options)
    assert isinstance(refused, Rejected)
    assert refused.reason == NO_GROUND


@pytest.mark.parametrize(
    ("recipe", "word"),
    [
        (Recipe("add_car", "base"), "needs a donor"),
        (Recipe("add_car", "base", "donor#9"), "not in the resource set"),
        (
            Recipe("add_car", "base", "donor#26001", (("x", 300), ("y", 0), ("width", 40), ("height", 9))),
            "fit",
        ),
        (Recipe("add_cat", "base"), "no such semantic mutation"),
        (Recipe("change_color", "base", None, (("instance", 3),)), "no pixel in the scene"),
        (Recipe("change_color", "base"), "is missing a number"),
    ],
)
def test_a_recipe_that_asks_for_the_impossible_is_an_error(
    resources: Resources, recipe: Recipe, word: str
) -> None:
    with pytest.raises(MutationError, match=word):
        apply(recipe, street(), resources)

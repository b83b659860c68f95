"""What a mutation may change: nothing outside its mask, exactly the class inside, the same bytes again."""

from __future__ import annotations

import colorsys
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from adverse.errors import MutationError
from adverse.seeds import generator
from adverse.semantic import Mutated, Options, Recipe, Resources, Scene, apply, propose
from adverse.semantic.painting import acting, recoloured
from drawn_scenes import CAR, ROAD, car_mask, resources_of, street, with_object


@pytest.fixture(scope="module")
def resources(tmp_path_factory: pytest.TempPathFactory) -> Resources:
    donor = with_object(street("donor"), car_mask(), (120, 95), colour=(120, 40, 30))
    return resources_of([donor], tmp_path_factory.mktemp("set"))


def added(resources: Resources, base: Scene, options: Options | None = None) -> Mutated:
    recipe = propose("add_car", base, resources, generator(1), options or Options())
    assert isinstance(recipe, Recipe), recipe
    return apply(recipe, base, resources)


def same_bytes(one: Scene, other: Scene) -> bool:
    pairs = [(one.image, other.image), (one.labels, other.labels), (one.instances, other.instances)]
    return one.id == other.id and all(np.array_equal(a, b) for a, b in pairs)


def test_an_addition_changes_exactly_its_mask(resources: Resources) -> None:
    base = street()
    made = added(resources, base)
    expected = np.zeros(base.labels.shape, np.bool_)
    expected[95:145, 120:230] = car_mask()
    assert np.array_equal(made.mask, expected)
    assert np.array_equal(made.touched, expected)
    assert np.array_equal(made.scene.image[~expected], base.image[~expected])
    assert (made.scene.image[expected] == (120, 40, 30)).all()
    assert np.array_equal(made.scene.labels, np.where(expected, CAR, base.labels))
    assert np.array_equal(made.scene.instances, np.where(expected, CAR * 1000 + 1, 0))
    assert made.scene.labels[95 + 10, 120 + 55] == ROAD, "one sees through the windows"
    (thing,) = made.scene.things.values()
    assert (thing.label, thing.box, thing.pixels) == (CAR, (120, 95, 230, 145), expected.sum())
    truth = made.scene.truth(("car", "person"))
    assert truth.boxes.tolist() == [[120, 95, 230, 145]]


def test_a_recipe_replays_to_the_same_bytes_after_being_written_down(resources: Resources) -> None:
    base = street()
    recipe = propose("add_car", base, resources, generator(1), Options())
    assert isinstance(recipe, Recipe)
    again = Recipe.from_json(recipe.to_json())
    assert again == recipe
    assert again.key() == recipe.key()
    assert same_bytes(apply(recipe, base, resources).scene, apply(again, street(), resources).scene)


def test_a_recipe_for_another_scene_is_refused(resources: Resources) -> None:
    with pytest.raises(MutationError, match="another scene"):
        apply(Recipe("add_car", "other", "donor#26001"), street(), resources)


pixels = st.lists(st.tuples(*[st.integers(0, 255)] * 3), min_size=1, max_size=40)


@given(pixels, st.integers(45, 135), st.integers(20, 50), st.integers(10, 40))
def test_recolouring_is_the_scalar_rule_pixel_by_pixel(
    drawn: list[tuple[int, int, int]], shift: int, darker: int, richer: int
) -> None:
    given_pixels = np.array(drawn, np.uint8)
    got = recoloured(given_pixels, shift, darker, richer)
    one_by_one = [cv2.cvtColor(np.array([[p]], np.uint8), cv2.COLOR_RGB2HLS)[0, 0].tolist() for p in drawn]
    bright = sum(hls[1] for hls in one_by_one) / len(drawn) > 100
    for (hue, lightness, saturation), result in zip(one_by_one, got, strict=True):
        new_hue = hue + shift - (180 if hue + shift >= 180 else 0)
        new_lightness, new_saturation = lightness, saturation
        if bright and lightness > 100:
            new_lightness = lightness - darker
            if saturation < 50:
                new_saturation = saturation + richer
        witness = (
            np.array(colorsys.hls_to_rgb(new_hue / 180, new_lightness / 255, new_saturation / 255)) * 255
        )
        assert np.abs(witness - result).max() <= 1


@given(
    pixels=arrays(np.uint8, st.tuples(st.integers(1, 8), st.just(3)), elements=st.integers(0, 255)),
    grey=st.booleans(),
    numbers=st.tuples(st.integers(45, 135), st.integers(20, 50), st.integers(10, 40)),
)
def test_numbers_that_do_nothing_are_left_out_of_a_recipe(
    pixels: NDArray[np.uint8],
    grey: bool,  # noqa: FBT001
    numbers: tuple[int, int, int],
) -> None:
    """The picture stays what it is, and each number that is left out could have been any other."""
    pixels = np.repeat(pixels[:, :1], 3, axis=1) if grey else pixels
    left = acting(pixels, *numbers)
    wanted = recoloured(pixels, *numbers)
    assert np.array_equal(recoloured(pixels, *left), wanted)
    for place, value in enumerate(left):
        assert value in (0, numbers[place])
        if value == 0:
            other = [*numbers[:place], numbers[place] + 1, *numbers[place + 1 :]]
            assert np.array_equal(recoloured(pixels, *other), wanted)


def test_a_hue_turns_round_and_does_not_run_over() -> None:
    magenta = np.array([[200, 0, 190]], np.uint8)  # hue 151 of 180: 151 + 120 would be 15 in 8 bits
    hue = cv2.cvtColor(recoloured(magenta, 120, 0, 0).reshape(1, 1, 3), cv2.COLOR_RGB2HLS)[0, 0, 0]
    assert abs(int(hue) - (151 + 120) % 180) <= 1


def test_recolouring_changes_no_label_and_no_other_pixel(resources: Resources) -> None:
    base = with_object(street(), car_mask(), (40, 90), colour=(200, 20, 20))
    recipe = propose("change_color", base, resources, generator(3), Options())
    assert isinstance(recipe, Recipe)
    assert 45 <= recipe.by_name["hue_shift"] <= 135
    made = apply(recipe, base, resources)
    own = base.instances == CAR * 1000 + 1
    assert np.array_equal(made.mask, own)
    assert np.array_equal(made.scene.image[~own], base.image[~own])
    assert (made.scene.image[own] != base.image[own]).any(axis=1).all()
    assert np.array_equal(made.scene.labels, base.labels)
    assert np.array_equal(made.scene.instances, base.instances)


def outside(mask: NDArray[np.bool_], made: Scene, base: Scene) -> bool:
    return all(
        np.array_equal(a[~mask], b[~mask])
        for a, b in ((made.image, base.image), (made.labels, base.labels), (made.instances, base.instances))
    )


def test_the_folder_reads_back(tmp_path: Path) -> None:
    donor = with_object(street("donor"), car_mask(), (120, 95))
    one = resources_of([donor], tmp_path)
    (path,) = (tmp_path / "cache").iterdir()
    (entity,) = Resources.open(path)
    assert entity.id == "donor#26001"
    assert np.array_equal(entity.alpha > 0, car_mask())
    assert one.key == Resources.open(path).key

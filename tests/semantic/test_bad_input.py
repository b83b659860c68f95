"""Scenes and data sets that something is wrong with: clear words, counted, and never an endless search."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from adverse.errors import DataError, MutationError
from adverse.seeds import generator
from adverse.semantic import Options, Recipe, Rejected, Resources, Scene, propose, scene_of
from adverse.semantic.cutouts import GROUPS, MIXED, UNNAMED, VOID
from adverse.semantic.proposing import NO_CLASS, NO_OBJECT, NO_ROAD
from adverse.semantic.resources import UNREADABLE
from drawn_scenes import (
    BUILDING,
    CAR,
    CLASSES,
    Stored,
    car_mask,
    dataset_of,
    resources_of,
    street,
    with_object,
)


def donor() -> Scene:
    return with_object(street("donor"), car_mask(), (120, 95), colour=(120, 40, 30))


@pytest.mark.parametrize(
    ("field", "array", "word"),
    [
        ("labels", np.zeros((160, 321), np.uint8), r"label map of a scene.*\(160, 321\)"),
        ("labels", np.zeros((160, 320), np.float32), "label map.*whole numbers"),
        ("labels", np.zeros((160, 320), np.int64), "uint8 or uint16"),
        ("instances", np.zeros((100, 320), np.int32), "instance map"),
        ("instances", np.full((160, 320), -1, np.int32), "from 0"),
        ("depth_m", np.zeros((160, 10), np.float32), "depth map"),
        ("image", np.zeros((160, 320), np.uint8), "image"),
    ],
)
def test_maps_that_do_not_fit_are_refused(field: str, array: NDArray[np.uint8], word: str) -> None:
    with pytest.raises(DataError, match=word):
        replace(street(), **{field: array})  # type: ignore[arg-type]


def test_a_bad_frame_is_counted_and_the_others_are_used(tmp_path: Path) -> None:
    scenes = [donor(), replace(donor(), id="bad")]
    data = dataset_of(scenes, tmp_path)
    np.save(tmp_path / "1-labels.npy", np.zeros((4, 4), np.uint8))
    made = Resources.build(data, tmp_path / "cache")
    assert [one.id for one in made] == ["donor#26001"]
    assert made.notes == {UNREADABLE: 1}
    assert "label map of a scene does not fit" in made.faults["bad"]
    np.save(tmp_path / "0-labels.npy", np.zeros((4, 4), np.uint8))
    with pytest.raises(DataError, match="label map of a scene does not fit"):
        Resources.build(data, tmp_path / "cache")
    assert len(list((tmp_path / "cache").iterdir())) == 1, "nothing half-made is left"


def test_a_data_set_without_instances_says_so(tmp_path: Path) -> None:
    data = dataset_of([donor()], tmp_path)
    frame = replace(data.logs[0].frames[0], instances=None)
    data = replace(data, logs=(replace(data.logs[0], frames=(frame,)),))
    with pytest.raises(DataError, match="no objects to cut out"):
        Resources.build(data, tmp_path)
    with pytest.raises(DataError, match="no instance map"):
        scene_of(frame, data)


def test_unknown_ids_and_groups_are_no_donors_and_are_counted(tmp_path: Path) -> None:
    scene = donor()
    labels, instances = scene.labels.copy(), scene.instances.copy()
    labels[:10, :10], instances[:10, :10] = 200, 200001  # a class nobody named
    labels[20:30, :10], instances[20:30, :10] = CAR, 26002
    labels[27:30, :10] = BUILDING  # an object of two classes
    labels[40:50, :10] = CAR  # a group: cars that are not told apart
    odd = replace(scene, labels=labels, instances=instances)
    made = resources_of([odd], tmp_path)
    assert made.classes == {"car": 1}
    assert made.notes == {UNNAMED: 1, MIXED: 1, GROUPS: 1, VOID.format(200): 100}
    assert odd.void == {200}
    truth = odd.truth(("car",))
    assert truth.boxes.tolist() == [[120, 95, 230, 145], [0, 20, 10, 30], [0, 40, 10, 50]]
    assert truth.ignore.tolist() == [False, False, True]


def test_no_road_no_donor_no_object_no_class(tmp_path: Path) -> None:
    resources = resources_of([donor()], tmp_path)
    indoors = replace(street(), labels=np.full((160, 320), BUILDING, np.uint8))
    without_cars = {number: name for number, name in CLASSES.items() if name != "car"}
    cases = [
        ("add_car", indoors, NO_ROAD),
        ("add_person", street(), NO_OBJECT),
        ("change_color", street(), NO_OBJECT),
        ("remove_object", street(), NO_OBJECT),
        ("add_car", replace(street(), classes=without_cars), NO_CLASS),
    ]
    for kind, scene, reason in cases:
        refused = propose(kind, scene, resources, generator(1), Options())
        assert isinstance(refused, Rejected)
        assert (refused.reason, refused.counts) == (reason, {reason: 1})
    assert propose("add_car", indoors, resources, generator(1), Options(off=frozenset({"road"})))


def test_words_that_nobody_knows_are_refused_with_the_ones_there_are(tmp_path: Path) -> None:
    with pytest.raises(MutationError, match="Did you mean 'add_car'"):
        propose("add_cat", street(), resources_of([donor()], tmp_path), generator(1), Options())
    with pytest.raises(MutationError, match="Did you mean 'light'"):
        Options(off=frozenset({"ligth"}))
    with pytest.raises(MutationError, match="out of range"):
        Options(tries=0)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"mutation": 3, "base": "a", "donor": null, "numbers": {}}', '{"numbers": {"a": "b"}}'],
)
def test_what_is_no_recipe_is_refused(text: str) -> None:
    with pytest.raises(MutationError, match="recipe"):
        Recipe.from_json(text)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), True])
def test_a_number_that_is_none_is_refused(number: float) -> None:
    with pytest.raises(MutationError, match="numbers are wrong"):
        Recipe("add_car", "a", "b", (("x", number),))


def test_a_file_that_is_no_resource_set_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "resources-x.arrow"
    path.write_bytes(b"ARROW1 not really")
    with pytest.raises(DataError, match="resource set cannot be read"):
        Resources.open(path)
    with pytest.raises(DataError, match="resource set cannot be read"):
        Resources.open(tmp_path / "none")


def test_the_set_is_built_once_and_again_when_the_content_changes(tmp_path: Path) -> None:
    data = dataset_of([donor()], tmp_path)
    seen: list[int] = []
    first = Resources.build(data, tmp_path / "cache", watch=lambda done, _: seen.append(done))
    again = Resources.build(data, tmp_path / "cache", watch=lambda done, _: seen.append(done))
    assert seen == [1]
    assert first.key == again.key
    image = np.load(tmp_path / "0-image.npy")
    image[0, 0, 0] ^= 1
    np.save(tmp_path / "0-image.npy", image)
    assert Resources.build(data, tmp_path / "cache").key != first.key
    renamed = replace(data, pixel_classes={**CLASSES, CAR: "automobile"})
    assert Resources.build(renamed, tmp_path / "cache").classes == {"automobile": 1}
    assert isinstance(data.logs[0].frames[0].image, Stored)

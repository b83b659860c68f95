from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np

from adverse.semantic import Options
from adverse.semantic.inspecting import cannot, cutout_sheet, facts, held, words
from bad_input.command import adverse_here
from drawn_scenes import car_mask, resources_of, street, with_object


def test_what_a_set_holds_is_counted_by_check(tmp_path: Path) -> None:
    scenes = [
        with_object(street("a"), car_mask(), (120, 95)),
        with_object(street("b"), car_mask(90), (120, 95)),
        with_object(street("c", point=None), car_mask(), (120, 95)),
    ]
    found = resources_of(scenes, tmp_path)
    (row,) = held(found, Options())
    assert row._asdict() == {
        "class_name": "car",
        "objects": 3,
        "large": 2,
        "unoccluded": 3,
        "whole": 3,
        "with_point": 2,
        "with_depth": 0,
        "donors": 1,
    }
    assert cannot(found) == [
        "add_person needs objects of the class 'person': there are none",
    ]
    assert words(found)[0].startswith("3 objects")
    assert json.dumps(facts(found))
    sheet = cutout_sheet(found, tile_px=100)
    assert sheet.shape == (139, 300, 3)
    assert (sheet == (120, 30, 30)).all(axis=2).sum() > 1000


def test_the_command_cuts_out_draws_and_says_what_it_cannot_do(tmp_path: Path) -> None:
    scene = with_object(street(), car_mask(), (120, 95))
    for kind, array in (("images", scene.image), ("labels", scene.labels), ("instances", scene.instances)):
        (tmp_path / "data" / "log" / kind).mkdir(parents=True)
        stored = array.astype(np.uint16) if kind == "instances" else array
        cv2.imwrite(str(tmp_path / "data" / "log" / kind / "1.png"), stored)
    (tmp_path / "data" / "pixel_classes.json").write_text(json.dumps(dict(scene.classes)))
    sheet = tmp_path / "sheet.png"
    said = adverse_here(
        "fuzz", "resources", tmp_path / "data", "--sheet", sheet, "--cache", tmp_path / "cache"
    )
    assert said.code == 0
    assert "1 objects, resource set" in said.text
    assert "cannot: nothing is added that comes from the scene's own log" in said.text
    assert sheet.is_file()
    (tmp_path / "data" / "log" / "instances" / "1.png").unlink()
    adverse_here("fuzz", "resources", tmp_path / "data").expect(2, "there are no objects to cut out")

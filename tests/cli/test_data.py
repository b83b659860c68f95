"""`adverse data check` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from bad_input.command import adverse_here
from formats import picture, text, write_cityscapes, write_kitti_odometry, write_voc, write_yolo


def test_the_format_is_told_by_the_folders_and_the_study_line_is_given(tmp_path: Path) -> None:
    root = write_voc(tmp_path / "voc")
    said = adverse_here("data", "check", root)
    assert said.code == 0
    assert said.text.startswith(f"voc, recognized by its folders: {root}")
    shown = yaml.safe_load(said.text.partition("In a study:\n")[2])
    assert shown == {"data": {"format": "voc", "root": str(root)}}


def test_options_are_those_of_the_data_section(tmp_path: Path) -> None:
    root = write_cityscapes(tmp_path / "city")
    said = adverse_here("data", "check", root, "-o", "boxes=polygons", "-o", "split={test: train}", "--json")
    found = json.loads(said.text)
    assert found["data"]["boxes"] == "polygons"
    assert found["splits"] == [{"name": "test", "logs": 1, "images": 1}]
    assert found["usable"] is True
    assert {level["name"]: level["able"] for level in found["levels"]}["located"] is True
    for wrong in ("boxes=circles", "boxs=polygons", "boxes", "split={"):
        adverse_here("data", "check", root, "-o", wrong).expect(2, "--option")


def test_a_study_file_names_the_data_itself(tmp_path: Path) -> None:
    write_voc(tmp_path / "voc")
    study = {"name": "one", "data": {"format": "voc", "root": "voc", "difficult": "count"}}
    text(tmp_path / "study.yaml", yaml.safe_dump(study))
    said = adverse_here("data", "check", tmp_path / "study.yaml", "--json")
    assert said.code == 0
    person = next(one for one in json.loads(said.text)["classes"] if one["name"] == "person")
    assert (person["boxes"], person["ignored"]) == (3, 0)


def test_a_yaml_file_of_yolo_is_no_study(tmp_path: Path) -> None:
    root = write_yolo(tmp_path / "yolo")
    said = adverse_here("data", "check", root / "data.yaml")
    assert said.text.startswith("yolo, recognized by its folders")


def test_exit_codes(tmp_path: Path) -> None:
    adverse_here("data", "check", tmp_path / "nowhere").expect(2, "does not exist")
    adverse_here("data", "check", tmp_path).expect(2, "cannot be determined", "--format")
    adverse_here("data", "check", tmp_path, "--format", "vco").expect(2, "no dataset called 'vco'", "voc")
    root = write_kitti_odometry(tmp_path / "kitti")
    adverse_here("data", "check", root).expect(0, "recall cannot be measured; agreement can")


def test_a_format_of_ones_own_can_be_checked(tmp_path: Path) -> None:
    text(
        tmp_path / "mine.py",
        "from pathlib import Path\n"
        "from adverse import Dataset, Frame, Log, Truth, dataset\n"
        "from adverse.data.images import ImageFile\n\n\n"
        "def looks_like(path):\n"
        '    return {"root": str(path)} if (path / "mine.txt").exists() else None\n\n\n'
        "@dataset(looks_like=looks_like)\n"
        "def mine(root: Path):\n"
        '    """Read mine."""\n'
        '    frame = Frame("a", "a", 0, ImageFile(root / "a.png"), Truth.none(), "a")\n'
        '    return Dataset("mine", ("person",), (Log("a", (frame,)),))\n',
    )
    picture(tmp_path / "data/a.png")
    text(tmp_path / "data/mine.txt", "")
    said = adverse_here("data", "check", tmp_path / "data", "--plugin", tmp_path / "mine.py")
    said.expect(1, "mine, recognized by its folders", "nothing can be scored")

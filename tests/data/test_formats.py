"""Guessing a format by its layout: each is recognised as itself, and as nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from adverse import plugins
from adverse.data.formats import guess, guessed_options, read_format
from adverse.errors import DataError, PluginError
from adverse.types import Dataset
from formats import (
    WRITERS,
    picture,
    text,
    write_kitti_odometry,
    write_kitti_raw,
    write_kitti_tracking,
    write_mot,
    write_voc,
    write_yolo,
)

FORMATS = plugins.load().all("dataset")


def write_coco(root: Path) -> Path:
    picture(root / "val2017/1.png")
    images = [{"id": 1, "file_name": "1.png", "width": 64, "height": 48}]
    boxes = [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4]}]
    truth = {"images": images, "annotations": boxes, "categories": [{"id": 1, "name": "person"}]}
    text(root / "annotations/instances_val2017.json", json.dumps(truth))
    text(root / "annotations/panoptic_val2017.json", json.dumps({**truth, "annotations": [{"id": 1}]}))
    text(root / "annotations/broken.json", "{")
    return root


def write_folder(root: Path) -> Path:
    picture(root / "log/images/1.png")
    truth = {"images": [{"id": 1, "file_name": "log/images/1.png"}], "annotations": [], "categories": []}
    text(root / "truth.json", json.dumps(truth))
    return root


ALL = {
    **WRITERS,
    "coco": write_coco,
    "folder": write_folder,
    "kitti (tracking)": write_kitti_tracking,
    "kitti (odometry)": write_kitti_odometry,
    "kitti (raw)": write_kitti_raw,
    "mot": write_mot,
}


@pytest.mark.parametrize("name", ALL)
def test_each_format_is_recognised_and_can_be_read(tmp_path: Path, name: str) -> None:
    root = ALL[name](tmp_path / "data")
    found = guess(root, FORMATS)
    assert found.format.name == name.split(" ", maxsplit=1)[0]
    bound = plugins.bind(found.format, found.options, where="test")
    assert read_format(found.format, bound, where="test").logs
    assert guessed_options(found.format, root) == found.options


def test_a_coco_file_is_found_with_its_images(tmp_path: Path) -> None:
    root = write_coco(tmp_path / "data")
    options = {"root": str(root), "annotations": "annotations/instances_val2017.json", "images": "val2017"}
    assert guess(root, FORMATS).options == options
    assert guess(root / "annotations/instances_val2017.json", FORMATS).options == options


def test_splits_of_a_folder_are_told_by_their_names(tmp_path: Path) -> None:
    for split in ("validation", "test"):
        picture(tmp_path / "data" / split / "log/1.png")
    found = guess(tmp_path / "data", FORMATS)
    assert found.options["split"] == {"validation": "validation", "test": "test"}


def test_what_could_be_two_formats_is_not_guessed(tmp_path: Path) -> None:
    root = write_voc(write_yolo(tmp_path / "data"))
    with pytest.raises(DataError, match="cannot be determined") as caught:
        guess(root, FORMATS)
    assert "voc, yolo" in str(caught.value.got)
    assert "--format" in str(caught.value.fix)


def test_nothing_is_no_format(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be determined"):
        guess(tmp_path, FORMATS)
    with pytest.raises(DataError, match="does not exist"):
        guess(tmp_path / "nowhere", FORMATS)


def test_a_plug_in_can_be_recognised_and_named_when_it_fails(tmp_path: Path) -> None:
    @plugins.dataset(name="mine", looks_like=lambda path: {"root": str(path)} if path.name == "x" else None)
    def mine(root: Path) -> Dataset:
        raise ValueError(root.name)

    (plugin,) = [mine.__adverse__]  # type: ignore[attr-defined]
    (tmp_path / "x").mkdir()
    found = guess(tmp_path / "x", [plugin])
    with pytest.raises(PluginError, match="'mine' failed"):
        read_format(found.format, {"root": tmp_path}, where="test")


@pytest.mark.parametrize(
    ("file", "images", "folders", "chosen"),
    [
        ("instances_val.json", 2, {"test": 2, "val": 2}, "val"),  # by the word in the name
        ("instances_test.json", 2, {"test": 1, "train": 2}, "test"),  # also where an image is missing
        (
            "annotations/instances_val2017.json",
            2,
            {"images/test": 2, "images/validation": 2},
            "images/validation",
        ),
        ("truths.json", 2, {"a": 3, "b": 2}, "b"),  # by the images that are listed, and no other
        ("truths.json", 2, {"a": 1, "b": 3}, "b"),
        ("truths.json", 2, {"a": 2, "b": 2}, None),
    ],
)
def test_a_coco_file_goes_with_the_folder_that_fits(
    tmp_path: Path, file: str, images: int, folders: dict[str, int], chosen: str | None
) -> None:
    for folder, count in folders.items():
        for number in range(count):
            picture(tmp_path / folder / f"{number}.png")
    listed = [{"id": n, "file_name": f"{n}.png", "width": 64, "height": 48} for n in range(images)]
    truth = {"images": listed, "annotations": [], "categories": [{"id": 1, "name": "person"}]}
    text(tmp_path / file, json.dumps(truth))
    if chosen is not None:
        assert guess(tmp_path, FORMATS).options["images"] == chosen
        return
    with pytest.raises(DataError, match="several folders fit") as caught:
        guess(tmp_path, FORMATS)
    assert all(f"images={folder}" in (caught.value.fix or "") for folder in folders)
    reader = next(one for one in FORMATS if one.name == "coco")
    assert guessed_options(reader, tmp_path, ["images=a"]) == {"root": str(tmp_path)}

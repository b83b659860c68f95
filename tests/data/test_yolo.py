"""The `yolo` format: boxes and polygons in shares, background images, and the YAML file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from adverse.data.coco import coco
from adverse.data.yolo import looks_like, yolo
from adverse.errors import AdverseError, DataError, StudyError
from adverse.types import Dataset, Frame
from formats import YOLO_YAML, picture, text, write_yolo
from pictures import SHARED

PHOTOS = SHARED / "data/coco128_permissive"


def frames(data: Dataset) -> dict[str, Frame]:
    return {frame.id: frame for log in data.logs for frame in log.frames}


def test_boxes_polygons_and_background(tmp_path: Path) -> None:
    root = write_yolo(tmp_path / "yolo")
    data = yolo(root)
    read = frames(data)
    assert data.categories == ("person", "dog")
    assert list(read) == ["images/train/1", "images/train/2", "images/val/3", "images/val/4"]
    np.testing.assert_allclose(read["images/train/1"].truth.boxes, [[24, 12, 40, 36]])
    np.testing.assert_allclose(read["images/train/2"].truth.boxes[0], [16, 12, 32, 36])
    assert read["images/train/2"].truth.labels.tolist() == [1, 0]
    assert len(read["images/val/4"].truth.boxes) == 0
    assert data.notes == {"images without annotations": 2, "images without a label file": 1}
    assert root / "labels/train/1.txt" in data.annotations


def test_splits_are_entries_of_the_file(tmp_path: Path) -> None:
    root = write_yolo(tmp_path / "yolo")
    data = yolo(root, split={"validation": "train", "test": "val"})
    assert [log.split for log in data.logs] == ["validation", "validation", "test", "test"]
    assert data.logs[2].id == "test/images/val/3"
    with pytest.raises(StudyError, match="has no test"):
        yolo(root, split={"test": "test"})


def test_lists_of_images_and_exporters_paths(tmp_path: Path) -> None:
    root = write_yolo(tmp_path / "yolo")
    text(root / "val.txt", "./images/val/3.png\nimages/train/1.png\nimages/val/9.png\n")
    text(root / "data.yaml", "val: val.txt\nnames: [person, dog]\n")
    read = frames(yolo(root))
    assert list(read) == ["images/train/1", "images/val/3", "images/val/9"]
    assert "missing" in str(read["images/val/9"].fault)
    text(root / "data.yaml", "val: ../images/val\nnames: [person, dog]\n")
    assert len(yolo(root).logs) == 2


def test_labels_beside_the_images(tmp_path: Path) -> None:
    picture(tmp_path / "all/1.png")
    text(tmp_path / "all/1.txt", "0 0.5 0.5 1 1\n0 0.5 0.5 1 1\n")
    text(tmp_path / "all/2.txt", "")
    text(tmp_path / "d.yaml", "val: all\nnames: [person]\n")
    data = yolo(tmp_path, file="d.yaml", class_map={"person": "human"})
    assert data.categories == ("human",)
    assert data.notes == {"label lines that stand twice": 1, "label files without an image": 1}


def test_keypoints_are_left_aside_where_they_are_declared(tmp_path: Path) -> None:
    root = write_yolo(tmp_path / "yolo")
    text(root / "labels/train/1.txt", "0 0.5 0.5 0.25 0.5 0.1 0.2 2 0.3 0.4 1\n")
    with pytest.raises(DataError, match="label file is wrong"):
        yolo(root)  # visibility 2 is no share
    text(root / "data.yaml", YOLO_YAML + "kpt_shape: [2, 3]\n")
    np.testing.assert_allclose(frames(yolo(root))["images/train/1"].truth.boxes, [[24, 12, 40, 36]])


def test_it_is_recognised(tmp_path: Path) -> None:
    root = write_yolo(tmp_path / "yolo")
    assert looks_like(root) == {"root": str(root), "file": "data.yaml"}
    assert looks_like(root / "data.yaml") == {"root": str(root), "file": "data.yaml"}
    assert looks_like(root / "labels") is None
    text(root / "data.yaml", "name: a study\n")
    assert looks_like(root) is None


@pytest.mark.parametrize(
    ("line", "got"),
    [
        ("0 0.5 0.5 0.25", "3 numbers after the class"),
        ("0 0.5 0.5 0.25 0.5 0.9", "5 numbers after the class"),
        ("0 32 24 16 24", "32"),
        ("0 0.5 x 0.25 0.5", "'x'"),
        ("0 0.5 nan 0.25 0.5", "'nan'"),
        ("2 0.5 0.5 0.25 0.5", "class 2"),
        ("0.5 0.5 0.5 0.25 0.5", "class 0.5"),
        ("-1 0.5 0.5 0.25 0.5", "class -1"),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, line: str, got: str) -> None:
    root = write_yolo(tmp_path / "yolo")
    text(root / "labels/train/2.txt", f"0 0.5 0.5 0.1 0.1\n{line}\n")
    with pytest.raises(DataError) as caught:
        yolo(root)
    assert caught.value.where == f"{root / 'labels/train/2.txt'}, line 2"
    assert caught.value.got == got


def test_a_box_without_size_costs_its_image(tmp_path: Path) -> None:
    root = write_yolo(tmp_path / "yolo")
    text(root / "labels/train/2.txt", "0 0.5 0.5 0 0.1\n")
    read = frames(yolo(root))
    assert "has no size" in str(read["images/train/2"].fault)
    assert read["images/train/1"].fault is None


@pytest.mark.parametrize(
    ("content", "where", "got"),
    [
        ("names: [a\n", "line 2", "expected"),
        ("names: [a]\nnames: [b]\nval: x\n", "line 2", "names again"),
        ("val: images/val\n", "field names", "nothing"),
        ("names: [a]\n", "", "no train, val or test"),
        ("a: &a [x, x]\nb: &b [*a, *a]\nnames: *b\nval: images/val\n", "line 2", "alias *a"),
        ("[" * 9000 + "]" * 9000, "data.yaml", "more than 50 levels of nesting"),
        ("names: [a]\nnc: 2\nval: images/val\n", "field nc", "2 for 1 names"),
        ("names: [a, a]\nval: images/val\n", "field names", "one name twice"),
        ("names: {0: a, x: b}\nval: images/val\n", "field names", "'x'"),
        ("names: [a]\nval: images/nowhere\n", "field val", "nowhere"),
        ("names: [a]\nval: /etc\n", "field val", "/etc"),
        ("names: [a]\nval: a/../../b\n", "field val", "b"),
        ("names: [a]\nval: !!python/object:os.system {}\n", "line 2", "could not determine a constructor"),
    ],
)
def test_a_broken_yaml_file_is_named(tmp_path: Path, content: str, where: str, got: str) -> None:
    root = write_yolo(tmp_path / "yolo")
    text(root / "data.yaml", content)
    with pytest.raises(AdverseError) as caught:
        yolo(root)
    assert str(caught.value.where).startswith(str(root / "data.yaml"))
    assert where in str(caught.value.where)
    assert got in str(caught.value.got)


def test_two_images_cannot_share_a_label_file(tmp_path: Path) -> None:
    root = write_yolo(tmp_path / "yolo")
    picture(root / "images/val/3.jpg")
    with pytest.raises(DataError, match="two images have one label file"):
        yolo(root)


@pytest.mark.skipif(not PHOTOS.is_dir(), reason="the shared COCO sample is not beside the repository")
def test_real_photos_read_as_yolo_have_the_boxes_of_coco(tmp_path: Path) -> None:
    known = coco(PHOTOS, annotations="instances_train2017_permissive.json", images="train2017")
    truth = json.loads((PHOTOS / "instances_train2017_permissive.json").read_text())
    root = tmp_path / "yolo"
    (root / "images").mkdir(parents=True)
    numbers = {category["id"]: category["name"] for category in truth["categories"]}
    names = [numbers[key] for key in sorted(numbers)]
    text(root / "data.yaml", f"val: images\nnames: {json.dumps(names)}\n")
    for image in truth["images"]:
        (root / "images" / image["file_name"]).write_bytes(
            (PHOTOS / "train2017" / image["file_name"]).read_bytes()
        )
        lines = []
        for one in truth["annotations"]:
            if one["image_id"] == image["id"]:
                x, y, w, h = one["bbox"]
                centre = (x + w / 2) / image["width"], (y + h / 2) / image["height"]
                shares = (*centre, w / image["width"], h / image["height"])
                lines.append(f"{names.index(numbers[one['category_id']])} {' '.join(map(repr, shares))}\n")
        text(root / "labels" / f"{Path(image['file_name']).stem}.txt", "".join(lines))
    read = {frame.id.removeprefix("images/"): frame for frame in frames(yolo(root)).values()}
    assert len(read) == 33
    assert sum(len(frame.truth.boxes) for frame in read.values()) == 246
    for frame_id, frame in frames(known).items():
        np.testing.assert_allclose(read[frame_id].truth.boxes, frame.truth.boxes, atol=1e-6)

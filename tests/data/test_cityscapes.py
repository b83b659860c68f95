"""The `cityscapes` format: instances, polygons, labels, disparity, calibration and the vehicle's way."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from adverse.data.cityscapes import cityscapes, looks_like
from adverse.data.cityscapes_truth import NOT_JUDGED, OBJECTS, OTHERS, PIXEL_CLASSES
from adverse.data.images import write_image
from adverse.errors import AdverseError, DataError
from adverse.types import Dataset, Frame
from formats import CITY_CAMERA, HEIGHT, WIDTH, city_ids, city_polygons, city_vehicle, text, write_cityscapes
from pictures import SHARED

REAL = SHARED / "data/cityscapes_format_from_coco"
FACTS = SHARED / "data/cityscapes_label_facts/labels.json"
VAL = "gtFine/val/a/a_000000_000019_gtFine"


def frames(data: Dataset) -> dict[str, Frame]:
    return {frame.id: frame for log in data.logs for frame in log.frames}


def objects(data: Dataset, frame: str) -> list[tuple[str, list[float], bool]]:
    truth = frames(data)[frame].truth
    rows = zip(truth.labels, truth.boxes, truth.ignore, strict=True)
    return [(data.categories[label], box.tolist(), bool(ignore)) for label, box, ignore in rows]


def test_boxes_are_drawn_around_instances_and_groups_are_ignored(tmp_path: Path) -> None:
    data = cityscapes(write_cityscapes(tmp_path / "city"), split={"test": "val"})
    assert data.categories == tuple(OBJECTS.values())
    assert [log.id for log in data.logs] == ["a_000000_000019", "a_000000_000039"]
    assert objects(data, "a_000000_000019") == [
        ("person", [40, 5, 44, 9], True),
        ("person", [50, 5, 56, 9], True),
        ("person", [5, 10, 12, 30], False),
        ("person", [20, 12, 28, 32], False),
        ("car", [34, 30, 60, 44], False),
        ("trailer", [2, 40, 8, 46], True),  # not judged
    ]
    assert data.notes == {"boxes marked crowd or ignore": 6}


def test_boxes_of_polygons_hold_hidden_parts_and_end_at_the_border(tmp_path: Path) -> None:
    data = cityscapes(write_cityscapes(tmp_path / "city"), boxes="polygons", class_map={"car": "vehicle"})
    assert objects(data, "a_000000_000019") == [
        ("person", [5, 10, 12, 30], False),
        ("person", [8, 12, 28, 32], False),
        ("person", [40, 5, 44, 9], True),
        ("vehicle", [34, 30, WIDTH, 44], False),
    ]


def test_labels_depth_camera_and_right_image(tmp_path: Path) -> None:
    frame = frames(cityscapes(write_cityscapes(tmp_path / "city")))["a_000000_000019"]
    assert frame.labels is not None
    assert frame.depth_m is not None
    assert frame.right is not None
    assert frame.camera is not None
    ids = city_ids()
    np.testing.assert_array_equal(frame.labels(), np.where(ids >= 1000, ids // 1000, ids))
    depth = frame.depth_m()
    assert np.isnan(depth[0, :32]).all()
    assert np.isposinf(depth[0, 32:]).all()
    np.testing.assert_allclose(depth[1:], 50 * 0.2 / 1)  # one pixel of disparity
    assert (frame.camera.fx, frame.camera.cx, frame.camera.baseline_m) == (50, 32, 0.2)


def test_an_image_alone_has_the_vehicles_world(tmp_path: Path) -> None:
    pose = frames(cityscapes(write_cityscapes(tmp_path / "city")))["a_000000_000019"].world_from_camera
    assert pose is not None
    np.testing.assert_allclose(pose[:3, 3], [1.7, 0.1, 1.2])
    np.testing.assert_allclose(pose[:3, :3] @ [0, 0, 1], [1, 0, 0], atol=1e-12)
    np.testing.assert_allclose(pose[:3, :3] @ [1, 0, 0], [0, -1, 0], atol=1e-12)


def test_a_camera_that_looks_down_sees_the_ground_ahead(tmp_path: Path) -> None:
    root = write_cityscapes(tmp_path / "city")
    tilted = {**CITY_CAMERA, "extrinsic": {**CITY_CAMERA["extrinsic"], "pitch": 0.1}}
    text(root / "camera/val/a/a_000000_000019_camera.json", json.dumps(tilted))
    pose = frames(cityscapes(root))["a_000000_000019"].world_from_camera
    assert pose is not None
    np.testing.assert_allclose(pose[:3, :3] @ [0, 0, 1], [np.cos(0.1), 0, -np.sin(0.1)], atol=1e-12)


def test_a_sequence_is_a_log_with_the_vehicles_way(tmp_path: Path) -> None:
    data = cityscapes(write_cityscapes(tmp_path / "city"), split={"test": "val"}, logs="sequence")
    (log,) = data.logs
    assert log.id == "a_000000"
    assert [frame.id for frame in log.frames] == ["a_000000/000019", "a_000000/000039"]
    assert [frame.time_s for frame in log.frames] == [19 / 17, 39 / 17]
    first, second = (frame.world_from_camera for frame in log.frames)
    assert first is not None
    assert second is not None
    np.testing.assert_allclose(first[:3, 3], [1.7, 0.1, 1.2])
    np.testing.assert_allclose(second[:3, 3] - first[:3, 3], [12, 0, 0], atol=1e-4)  # east is ahead here


def test_a_turn_to_the_left_is_one_in_the_world(tmp_path: Path) -> None:
    root = write_cityscapes(tmp_path / "city")
    north = {**city_vehicle(0), "gpsHeading": 0.0}
    text(root / "vehicle/val/a/a_000000_000039_vehicle.json", json.dumps(north))
    pose = cityscapes(root, split={"test": "val"}, logs="sequence").logs[0].frames[1].world_from_camera
    assert pose is not None
    np.testing.assert_allclose(pose[:3, :3] @ [0, 0, 1], [0, 1, 0], atol=1e-12)
    np.testing.assert_allclose(pose[:3, 3], [-0.1, 1.7, 1.2], atol=1e-9)


def test_without_the_other_files_there_is_only_truth(tmp_path: Path) -> None:
    root = write_cityscapes(tmp_path / "city")
    for kind in ("camera", "vehicle", "disparity", "rightImg8bit"):
        (root / kind).rename(tmp_path / kind)
    frame = frames(cityscapes(root))["a_000000_000019"]
    assert (frame.camera, frame.depth_m, frame.right, frame.world_from_camera) == (None,) * 4


def test_it_is_recognised(tmp_path: Path) -> None:
    root = write_cityscapes(tmp_path / "city")
    assert looks_like(root) == {"root": str(root), "split": {"test": "val"}}
    (root / "gtFine").rename(root / "gtCoarse")
    assert looks_like(root) == {"root": str(root), "annotations": "gtCoarse", "split": {"test": "val"}}
    assert looks_like(tmp_path) is None


def instances(value: int) -> Callable[[Path], None]:
    def spoil(root: Path) -> None:
        ids = city_ids()
        ids[0, 0] = value
        write_image(root / f"{VAL}_instanceIds.png", ids)

    return spoil


def polygons(**changed: object) -> Callable[[Path], None]:
    def spoil(root: Path) -> None:
        content = city_polygons()
        content.update(changed)
        text(root / f"{VAL}_polygons.json", json.dumps(content))

    return spoil


SMALL = np.zeros((9, 9), np.uint16)


@pytest.mark.parametrize(
    ("spoil", "boxes", "where", "got"),
    [
        (instances(99), "instances", f"{VAL}_instanceIds.png", "instance id 99"),
        (instances(7003), "instances", f"{VAL}_instanceIds.png", "instance id 7003"),
        (instances(34000), "instances", f"{VAL}_instanceIds.png", "instance id 34000"),
        (
            lambda root: write_image(root / f"{VAL}_instanceIds.png", SMALL),
            "instances",
            f"{VAL}_instanceIds.png",
            "9x9",
        ),
        (
            lambda root: (root / f"{VAL}_instanceIds.png").unlink(),
            "instances",
            "leftImg8bit/val/a/a_000000_000019_leftImg8bit.png",
            f"no {VAL}_instanceIds.png",
        ),
        (polygons(imgWidth=9), "polygons", f"{VAL}_polygons.json", "9x48"),
        (
            polygons(objects=[{"label": "persn", "polygon": [[1, 1]]}]),
            "polygons",
            f"{VAL}_polygons.json, field objects[0].label",
            "persn",
        ),
        (
            polygons(objects=[{"label": "person", "polygon": []}]),
            "polygons",
            f"{VAL}_polygons.json, field objects[0].polygon",
            "[]",
        ),
        (
            lambda root: text(root / "camera/val/a/a_000000_000019_camera.json", "{}"),
            "instances",
            "camera/val/a/a_000000_000019_camera.json, field extrinsic",
            "nothing",
        ),
        (
            lambda root: (root / f"leftImg8bit/val/a/{'a_000000_000019'}_leftImg8bit.png").rename(
                root / "leftImg8bit/val/a/1_leftImg8bit.png"
            ),
            "instances",
            "leftImg8bit/val/a/1_leftImg8bit.png",
            "1_leftImg8bit",
        ),
    ],
)
def test_a_broken_file_is_named(
    tmp_path: Path, spoil: Callable[[Path], None], boxes: str, where: str, got: str
) -> None:
    root = write_cityscapes(tmp_path / "city")
    spoil(root)
    with pytest.raises(AdverseError) as caught:
        cityscapes(root, boxes=boxes)  # type: ignore[arg-type]
    assert (caught.value.where or "").removeprefix("instance file ") == str(root / where)
    assert got in str(caught.value.got)
    assert caught.value.fix


def test_a_broken_disparity_is_named(tmp_path: Path) -> None:
    root = write_cityscapes(tmp_path / "city")
    path = root / "disparity/val/a/a_000000_000019_disparity.png"
    depth = frames(cityscapes(root))["a_000000_000019"].depth_m
    assert depth is not None
    for spoilt, what in ((SMALL, "image's size"), (np.zeros((HEIGHT, WIDTH), np.uint8), "16-bit gray PNG")):
        write_image(path, spoilt)
        with pytest.raises(DataError, match=what) as caught:
            depth()
        assert caught.value.where == f"disparity file {path}"


def test_a_broken_image_is_a_fault_of_its_frame(tmp_path: Path) -> None:
    root = write_cityscapes(tmp_path / "city")
    (root / "leftImg8bit/val/a/a_000000_000019_leftImg8bit.png").write_bytes(b"no image")
    read = frames(cityscapes(root))
    assert "not an image" in str(read["a_000000_000019"].fault)
    assert read["a_000000_000039"].fault is None


def test_other_folders_are_not_cityscapes(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="laid out as Cityscapes"):
        cityscapes(tmp_path)


@pytest.mark.skipif(not FACTS.is_file(), reason="the shared label facts are not beside the repository")
def test_the_label_set_is_the_one_published() -> None:
    facts = json.loads(FACTS.read_text())
    assert {one["id"]: one["name"] for one in facts if one["hasInstances"]} == OBJECTS
    assert tuple(o["name"] for o in facts if o["hasInstances"] and o["ignoreInEval"]) == NOT_JUDGED
    assert {one["id"]: one["name"] for one in facts if not one["ignoreInEval"]} == PIXEL_CLASSES
    assert {one["name"] for one in facts} | {"license plate"} == {*OBJECTS.values(), *OTHERS}


@pytest.mark.skipif(not REAL.is_dir(), reason="no street scenes in Cityscapes' layout beside the repository")
def test_real_scenes() -> None:
    listed = {row["frame"]: row for row in csv.DictReader((REAL / "frames.csv").read_text().splitlines())}
    data = cityscapes(REAL)
    assert len(data.logs) == 10
    person, car = data.categories.index("person"), data.categories.index("car")
    for frame in frames(data).values():
        truth = frame.truth
        counted = truth.labels[~truth.ignore]
        assert (counted == person).sum() == int(listed[frame.id]["persons"])
        assert (counted == car).sum() == int(listed[frame.id]["cars"])
        assert frame.labels is not None
        labels = frame.labels()
        for box, label in zip(truth.boxes.astype(int), truth.labels, strict=True):
            x0, y0, x1, y1 = box
            kind = 24 + int(label)
            inside = labels[y0:y1, x0:x1] == kind
            assert inside[0].any()  # the box touches its object on all four sides
            assert inside[-1].any()
            assert inside[:, 0].any()
            assert inside[:, -1].any()
    groups = cityscapes(REAL, boxes="polygons", split={"test": "val"})
    assert sum(int(frame.truth.ignore.sum()) for frame in frames(groups).values()) > 0

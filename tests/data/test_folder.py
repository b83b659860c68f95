from __future__ import annotations

import json
import pickle
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pil

from adverse.data.folder import folder
from adverse.errors import DataError
from adverse.types import Camera, Dataset, Frame

Json = dict[str, Any]
POSES = "frame,time_s,x_m,y_m,z_m,qw,qx,qy,qz\n"
CAMERA: Json = {"fx": 50, "fy": 50.0, "cx": 8, "cy": 6, "width": 16, "height": 12, "baseline_m": 0.2}


def picture(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Pil.fromarray(np.zeros((12, 16, 3), np.uint8)).save(path, "PNG")
    return path


def truth(*names: str) -> Json:
    """Each image holds one person, 3 m ahead."""
    return {
        "images": [{"id": i, "file_name": n, "width": 16, "height": 12} for i, n in enumerate(names)],
        "categories": [{"id": 1, "name": "person"}],
        "annotations": [
            {
                "id": i,
                "image_id": i,
                "category_id": 1,
                "bbox": [1, 1, 5, 5],
                "position_m": [3, 0.5, 0],
                "iscrowd": 0,
            }
            for i, _ in enumerate(names)
        ],
    }


def put(path: Path, content: Json) -> None:
    path.write_text(json.dumps(content))


def frames(data: Dataset) -> dict[str, Frame]:
    return {frame.id: frame for log in data.logs for frame in log.frames}


@pytest.fixture
def row(tmp_path: Path) -> Path:
    """A full log: two frames with depth, right image, poses, calibration and truth."""
    log = tmp_path / "row3"
    for name in ("10.png", "9.png"):
        picture(log / "images" / name)
        picture(log / "right" / name)
    (log / "depth").mkdir()
    np.save(log / "depth/9.npy", np.full((12, 16), 4.0, np.float32))
    Pil.fromarray(np.full((12, 16), 5000, np.uint16)).save(log / "depth/10.png")
    (log / "poses.csv").write_text(POSES + "9,0,0,0,1,1,0,0,0\n10,0.1,0.3,0,1,1,0,0,0\n")
    put(tmp_path / "camera.json", CAMERA)
    put(tmp_path / "truth.json", truth("row3/images/9.png", "row3/images/10.png"))
    return tmp_path


def test_a_full_log_is_read_with_all_that_belongs_to_it(row: Path) -> None:
    data = folder(row, depth_scale_m=0.001)
    assert data.categories == ("person",)
    assert data.notes == {}
    assert set(data.annotations) == {row / "truth.json", row / "camera.json", row / "row3/poses.csv"}
    (log,) = data.logs
    assert (log.id, log.split) == ("row3", "test")
    assert [(frame.id, frame.index, frame.image_id) for frame in log.frames] == [
        ("row3/9", 0, 0),
        ("row3/10", 1, 1),
    ]
    second = pickle.loads(pickle.dumps(log.frames[1]))
    assert second.camera == Camera(50, 50, 8, 6, 16, 12, 0.2)
    assert second.time_s == 0.1
    assert second.world_from_camera[:3, 3].tolist() == [0.3, 0, 1]
    assert second.image().shape == second.right().shape == (12, 16, 3)
    np.testing.assert_allclose(second.depth_m(), np.full((12, 16), 5.0))
    np.testing.assert_array_equal(log.frames[0].depth_m(), np.full((12, 16), 4.0))  # type: ignore[misc]
    assert second.truth.boxes.tolist() == [[1, 1, 6, 6]]
    assert second.truth.positions_m.tolist() == [[3, 0.5, 0]]


def test_plain_folders_of_images_are_logs_without_truth(tmp_path: Path) -> None:
    for name in ("b/2.png", "b/10.png", "b/1.png", "a/deep/x.png", "top.png", "a/labels/1.png", ".git/x.png"):
        picture(tmp_path / name)
    data = folder(tmp_path)
    assert data.categories == ()
    assert data.notes == {"no truth file": 1}
    root = tmp_path.name
    assert list(frames(data)) == [f"{root}/top", "a/deep/x", "b/1", "b/2", "b/10"]
    assert [log.id for log in data.logs] == [root, "a/deep", "b"]
    frame = frames(data)["b/10"]
    assert (frame.index, frame.image_id, len(frame.truth.boxes)) == (2, "b/10", 0)
    assert (frame.depth_m, frame.right, frame.camera, frame.time_s) == (None, None, None, None)


def test_images_may_be_taken_one_by_one(row: Path) -> None:
    together, alone = folder(row), folder(row, logs="image")
    assert [log.id for log in alone.logs] == [frame.id for log in together.logs for frame in log.frames]
    assert all(frame.log_id == log.id and frame.index == 0 for log in alone.logs for frame in log.frames)
    assert all(len(log.frames) == 1 for log in alone.logs)
    assert {log.split for log in alone.logs} == {log.split for log in together.logs}


def test_splits_are_folders(tmp_path: Path) -> None:
    for name in ("val/r1/1.png", "test/r1/1.png", "train/r1/1.png"):
        picture(tmp_path / name)
    put(tmp_path / "truth.json", truth("val/r1/1.png", "test/r1/1.png", "train/r1/1.png"))
    data = folder(tmp_path, split={"validation": "val", "test": "test"})
    assert [(log.id, log.split) for log in data.logs] == [
        ("validation/r1", "validation"),
        ("test/r1", "test"),
    ]
    assert list(frames(data)) == ["validation/r1/1", "test/r1/1"]
    assert data.notes == {"images of the truth file outside the splits": 1}
    assert list(frames(folder(tmp_path, split={"test": "test"}))) == ["r1/1"]
    for name, word in [("tset", "no such folder"), ("../x", "leaves")]:
        with pytest.raises(DataError, match=word):
            folder(tmp_path, split={"test": name})


def test_truth_decides_what_is_used(row: Path) -> None:
    put(row / "truth.json", truth("row3/images/9.png", "row3/images/11.png", "other/1.png"))
    data = folder(row)
    assert list(frames(data)) == ["other/1", "row3/9", "row3/11"]
    assert data.notes["image files not in the truth file"] == 1
    missing = frames(data)["row3/11"].fault
    assert missing is not None
    assert "image file is missing" in missing
    assert str(row / "row3/images/11.png") in missing
    assert frames(data)["row3/9"].fault is None
    put(row / "truth.json", truth())
    with pytest.raises(DataError, match=r"none that the truth file lists.*Fix: Check root"):
        folder(row)


def test_another_truth_file_can_be_named_and_must_exist(row: Path) -> None:
    put(row / "only9.json", truth("row3/images/9.png"))
    assert list(frames(folder(row, truth="only9.json"))) == ["row3/9"]
    with pytest.raises(DataError, match=r"annotation file is missing.*no\.json"):
        folder(row, truth="no.json")


def test_misplaced_truth_is_told_with_the_layout(row: Path) -> None:
    """In images/ it would not be read; beside images/, it may name images where format coco has them."""
    truth = json.loads((row / "truth.json").read_text())
    flat = row.parent / "flat"
    (flat / "images").mkdir(parents=True)
    name = Path(truth["images"][0]["file_name"]).name
    shutil.copy(row / truth["images"][0]["file_name"], flat / "images" / name)
    truth |= {"images": [truth["images"][0] | {"file_name": name}], "annotations": []}
    cases = {"images/truth.json": "no truth.json there", "truth.json": f"images/{name}"}
    for place, words in cases.items():
        (flat / place).write_text(json.dumps(truth))
        with pytest.raises(DataError, match=re.escape(words)) as refusal:
            folder(flat)
        assert "ROOT/LOG/images/" in str(refusal.value)
    truth["images"][0]["file_name"] = f"images/{name}"
    (flat / "truth.json").write_text(json.dumps(truth))
    assert [len(log.frames) for log in folder(flat).logs] == [1]


@pytest.mark.parametrize("position", [[1, 2], [1, 2, "3"], "here", [1, 2, 10**400]])
def test_a_bad_position_costs_one_frame(row: Path, position: Any) -> None:
    content = truth("row3/images/9.png", "row3/images/10.png")
    content["annotations"][0]["position_m"] = position
    put(row / "truth.json", content)
    found = frames(folder(row))
    assert "position of annotation 0 is not three finite numbers" in (found["row3/9"].fault or "")
    assert found["row3/10"].fault is None


def test_positions_may_be_missing_here_and_there(row: Path) -> None:
    content = truth("row3/images/9.png", "row3/images/10.png")
    del content["annotations"][0]["position_m"]
    put(row / "truth.json", content)
    found = frames(folder(row))
    assert found["row3/9"].fault is None
    positions = found["row3/9"].truth.positions_m
    assert positions is not None
    assert np.isnan(positions).all()


def test_what_has_no_partner_is_counted(row: Path) -> None:
    (row / "row3/depth/9.npy").rename(row / "row3/depth/8.npy")
    (row / "row3/right/9.png").unlink()
    (row / "row3/poses.csv").write_text(POSES + "10,0.1,0.3,0,1,1,0,0,0\n")
    data = folder(row)
    assert data.notes == {
        "depth files without an image": 1,
        "frames without depth": 1,
        "frames without right": 1,
        "frames without a pose": 1,
    }
    first = frames(data)["row3/9"]
    assert (first.depth_m, first.right, first.time_s) == (None, None, None)


def test_a_nearer_calibration_wins(row: Path) -> None:
    put(row / "row3/camera.json", {**CAMERA, "fx": 70})
    camera = frames(folder(row))["row3/9"].camera
    assert camera is not None
    assert camera.fx == 70


@pytest.mark.parametrize(
    ("change", "field"),
    [({"fx": -1}, "fx"), ({"fx": None}, "fx"), ({"f_x": 1}, "f_x"), ({"width": 1.5}, "width")],
)
def test_a_wrong_calibration_is_refused(row: Path, change: Json, field: str) -> None:
    put(row / "camera.json", {**CAMERA, **change})
    with pytest.raises(DataError) as caught:
        folder(row)
    assert caught.value.where == f"{row / 'camera.json'}, field {field}"
    assert caught.value.fix


def test_calibration_and_truth_must_agree_and_bind_the_image(row: Path) -> None:
    put(row / "camera.json", {**CAMERA, "width": 17})
    with pytest.raises(DataError, match=r"different image sizes.*\(16, 12\).*\(17, 12\)"):
        folder(row)
    (row / "truth.json").unlink()
    with pytest.raises(DataError, match=r"16x12.*17x12"):
        frames(folder(row))["row3/9"].image()


@pytest.mark.parametrize(
    ("lines", "frame", "got"),
    [
        ("8,0,0,0,1,1,0,0,0\n9,1,0,0,1,1,0,0,0\n", "8", "no such image"),
        ("10,0,0,0,1,1,0,0,0\n9,1,0,0,1,1,0,0,0\n", "10", "order in time"),
    ],
)
def test_poses_must_fit_the_images(row: Path, lines: str, frame: str, got: str) -> None:
    (row / "row3/poses.csv").write_text(POSES + lines)
    with pytest.raises(DataError) as caught:
        folder(row)
    assert caught.value.where == f"{row / 'row3/poses.csv'}, frame {frame!r}"
    assert got in str(caught.value)
    assert caught.value.fix


def test_ambiguous_files_are_refused(tmp_path: Path) -> None:
    picture(tmp_path / "log/a.png")
    twin = picture(tmp_path / "log/a.jpg")
    with pytest.raises(DataError, match=r"two images of the log 'log' have the same name.*a\.jpg.*a\.png"):
        folder(tmp_path)
    twin.unlink()
    loose = picture(tmp_path / "log/images/b.png")
    with pytest.raises(DataError, match="both beside and in images/"):
        folder(tmp_path)
    loose.unlink()
    (tmp_path / "log/depth").mkdir()
    for name in ("a.npy", "a.png"):
        (tmp_path / "log/depth" / name).write_bytes(b"")
    with pytest.raises(DataError, match=r"two depth files belong to one image.*Fix: "):
        folder(tmp_path)


def test_two_logs_of_one_name_are_refused(tmp_path: Path) -> None:
    picture(tmp_path / "row/a.png")
    picture(tmp_path / "row/row/a.png")
    with pytest.raises(DataError, match=r"two logs are called 'row'.*Fix: Move"):
        folder(tmp_path / "row")


def test_nothing_to_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "log/readme.txt").write_text("no pictures")
    for root in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(DataError, match="the data set has no images") as caught:
            folder(root)
        assert caught.value.where == str(root)
        assert caught.value.fix


def test_symlinks_out_of_the_data_set_are_refused(tmp_path: Path) -> None:
    outside, root = picture(tmp_path / "outside/a.png"), tmp_path / "root"
    picture(root / "log/a.png")
    (root / "again").symlink_to(root / "log")
    assert [log.id for log in folder(root).logs] == ["log"]
    (root / "log/b.png").symlink_to(outside)
    with pytest.raises(DataError, match=r"symlink.*b\.png"):
        folder(root)
    (root / "log/b.png").unlink()
    (root / "elsewhere").symlink_to(outside.parent)
    with pytest.raises(DataError, match=r"symlink.*elsewhere"):
        folder(root)


def test_a_path_in_the_truth_file_may_not_leave_the_root(row: Path) -> None:
    put(row / "truth.json", truth("../a.png"))
    with pytest.raises(DataError, match=r"leaves its folder.*truth\.json, field images\[0\]\.file_name"):
        folder(row)

"""What `adverse data check` finds out, counted by hand on small data sets, and how it says it."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from adverse import plugins
from adverse.data.check import UNLABELLED, ClassCount, DataCheck, SplitCount, check
from adverse.data.check_text import COLUMNS, words
from adverse.data.cityscapes import cityscapes
from adverse.data.class_folders import class_folders
from adverse.data.coco import coco
from adverse.data.folder import folder
from adverse.data.kitti import kitti
from adverse.data.voc import voc
from adverse.types import Dataset, Frame, Log, Truth
from formats import (
    picture,
    write_cityscapes,
    write_kitti,
    write_kitti_odometry,
    write_kitti_tracking,
    write_voc,
)
from pictures import SHARED

MUTATIONS = plugins.load().all("mutation")
PHOTOS = SHARED / "data/coco128_permissive"


def said(found: DataCheck) -> str:
    lines = words(found, "title", {"format": "x", "root": "y"})
    assert all(len(line) <= COLUMNS for line in lines if not line.startswith(("  where:", "  first:")))
    return "\n".join(lines)


def test_boxes_logs_and_splits_are_counted(tmp_path: Path) -> None:
    found = check(voc(write_voc(tmp_path / "voc"), split={"validation": "val", "test": "test"}), MUTATIONS)
    assert found.usable
    assert (found.images, found.decoded, found.unusable, found.logs) == (4, 4, 0, 4)
    assert found.sizes == {"64x48": 4}
    assert found.splits == [SplitCount("validation", 2, 2), SplitCount("test", 2, 2)]
    assert found.classes == [ClassCount("dog", 1, 0, 1, 0, 3), ClassCount("person", 2, 1, 2, 1, 1)]
    assert found.labels == 1
    assert found.mutations_out["depth_m"] == ["defocus", "haze", "rain", "snow"]
    assert [level.name for level in found.levels if level.able] == ["image"]
    text = said(found)
    assert "validation 2 logs, 2 images; test 2 logs, 2 images" in text
    assert "not defocus, haze, rain, snow: no test frame has depth" in text
    assert "1 x boxes partly outside the image" in text
    assert "No problems." in text


def test_logs_with_depth_and_poses_can_be_driven(tmp_path: Path) -> None:
    found = check(kitti(write_kitti_tracking(tmp_path / "kitti")), MUTATIONS)
    assert found.frames_per_s == pytest.approx(10)
    assert (found.poses, found.cameras, found.depth.frames, found.stereo) == (6, 6, 6, 0)
    assert found.depth.nearest_m == pytest.approx(3.0, abs=1e-5)
    assert found.depth.known_share is not None
    assert 0.05 < found.depth.known_share < 1
    assert [level.name for level in found.levels if level.able] == ["image", "located", "path", "loop"]
    assert found.positions
    assert found.mutations_out == {}
    person = next(one for one in found.classes if one.name == "Pedestrian")
    assert person == ClassCount("Pedestrian", 3, 1, 1, 0, 1)
    text = said(found)
    assert "10 frames per second" in text
    assert "those by depth with invalid_depth: nearest" in text
    assert "robot: in the study must tell the radii" in text


def test_single_images_do_not_drive(tmp_path: Path) -> None:
    for data in (kitti(write_kitti(tmp_path / "k")), cityscapes(write_cityscapes(tmp_path / "c"))):
        found = check(data, MUTATIONS)
        assert [level.name for level in found.levels if level.able] == ["image", "located", "path"]
        assert found.stereo == 3
        assert "from: stereo" not in said(found)
        assert "not loop: every log is one image" in said(found)
        logs = [
            replace(log, frames=tuple(replace(frame, depth_m=None) for frame in log.frames))
            for log in data.logs
        ]
        found = check(replace(data, logs=tuple(logs)), MUTATIONS)
        assert found.depth_from_pairs
        assert [level.name for level in found.levels if level.able] == ["image", "located", "path"]
        assert "located: `depth: {from: stereo}` in the study computes depth" in said(found)
        assert "no test frame has depth; `depth: {from: stereo}`" in " ".join(said(found).split())


def test_what_cannot_be_used_stops_a_study(tmp_path: Path) -> None:
    root = write_voc(tmp_path / "voc")
    (root / "JPEGImages/000003.jpg").unlink()
    (root / "JPEGImages/000001.jpg").write_bytes(b"no image")
    found = check(voc(root))
    assert not found.usable
    assert found.unusable == 2
    first, *rest = found.problems
    assert first.stops
    assert first.what.startswith("2 of 4 test frames cannot be used")
    assert {problem.what for problem in rest} == {
        "the image file is missing",
        "the file is not an image of a supported format",
    }
    assert all(problem.fix and "0000" in problem.where for problem in rest)
    text = said(found)
    assert "Problems that would stop a study" in text
    assert "1 x the image file is missing" in text


def test_alike_problems_are_told_once(tmp_path: Path) -> None:
    data = kitti(write_kitti_tracking(tmp_path / "kitti"))
    for number in range(3):
        (tmp_path / f"kitti/velodyne/0000/{number:06}.bin").write_bytes(b"short")
    found = check(data)
    (problem,) = found.problems
    assert (problem.times, problem.stops) == (3, False)
    assert problem.what == "the velodyne file is empty or truncated"
    assert problem.where.startswith("velodyne file")
    assert found.unusable == 0  # the images are fine


def test_data_without_annotations_is_for_label_free_runs_and_without_test_frames_of_no_use(
    tmp_path: Path,
) -> None:
    found = check(kitti(write_kitti_odometry(tmp_path / "kitti")))
    assert [problem.what for problem in found.problems] == [UNLABELLED]
    assert not any(level.able for level in found.levels)
    assert "truth: clean" in said(found)
    assert (found.usable, found.labelled) == (True, False)  # label-free
    unboxed = check(replace(kitti(tmp_path / "kitti"), categories=("Car",)))
    assert not unboxed.usable  # classes, and not one box: somebody meant to annotate
    empty = check(Dataset("none", (), ()))
    assert [problem.stops for problem in empty.problems] == [True, True]
    assert "no test frames" in said(empty)


def test_data_for_classifiers_and_segmenters_need_no_boxes(tmp_path: Path) -> None:
    for name in ("cat", "dog"):
        picture(tmp_path / "classes" / name / "1.png")
    found = check(class_folders(tmp_path / "classes"))
    assert found.usable
    assert found.pictured == 2
    assert "all frames tell their class, for classifiers" in said(found)
    assert found.pictured_classes == {"cat": 1, "dog": 1}
    assert "classification: top-1 and top-5" in said(found)
    assert "no test frame has a box" not in said(found)
    assert any(
        "--format class-folders" in problem.fix for problem in check(folder(tmp_path / "classes")).problems
    )
    assert "19 classes, for segmenters" in said(check(cityscapes(write_cityscapes(tmp_path / "city"))))


class Counted:
    """An image that counts how often it is decoded."""

    path = Path("x")
    recipe = ""
    read = 0

    def __call__(self) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
        type(self).read += 1
        return np.zeros((4, 6, 3), np.uint8)


def test_a_sample_or_everything() -> None:
    frames = tuple(Frame(str(n), "log", n, Counted(), Truth.none(), n) for n in range(250))
    data = Dataset("many", ("person",), (Log("log", frames),))
    found = check(data)
    assert (found.decoded, found.images, Counted.read) == (100, 250, 100)
    told: list[tuple[int, int]] = []
    assert check(data, everything=True, watch=lambda done, of: told.append((done, of))).decoded == 250
    assert Counted.read == 350
    assert told[-1] == (250, 250)


def test_a_reader_that_raises_anything_is_a_problem() -> None:
    class Broken(Counted):
        def __call__(self) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
            raise KeyError("pixels")

    data = Dataset("one", ("person",), (Log("log", (Frame("f", "log", 0, Broken(), Truth.none(), 0),)),))
    problems = {problem.what for problem in check(data).problems}
    assert "a file cannot be read" in problems


def test_many_classes_are_cut_short(tmp_path: Path) -> None:
    root = write_voc(tmp_path / "voc")
    names = tuple(f"class {n} with a name that is much too long for a table" for n in range(30))
    data = voc(root)
    text = said(check(Dataset("many", names, data.logs)))
    assert "and 18 more classes" in text


@pytest.mark.skipif(not PHOTOS.is_dir(), reason="the shared COCO sample is not beside the repository")
def test_real_photos(tmp_path: Path) -> None:
    for name in ("train2017", "instances_train2017_permissive.json"):
        copy = shutil.copytree if (PHOTOS / name).is_dir() else shutil.copy
        copy(PHOTOS / name, tmp_path / name)
    data = coco(tmp_path, annotations="instances_train2017_permissive.json", images="train2017")
    found = check(data, everything=True)
    assert found.usable
    assert found.images == 33
    assert sum(one.boxes + one.ignored for one in found.classes) == 246
    person = next(one for one in found.classes if one.name == "person")
    assert person.boxes + person.ignored == 75

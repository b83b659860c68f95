"""The `kitti` format: four layouts, depth from the laser, poses, and the rules for what is ignored."""

from __future__ import annotations

import itertools
import math
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from adverse.data.depth import projected_depth
from adverse.data.kitti import kitti, looks_like
from adverse.data.kitti_files import Difficulty, read_oxts
from adverse.errors import AdverseError, DataError, StudyError
from adverse.types import Dataset, Frame
from formats import (
    CAR,
    DONT_CARE,
    HEIGHT,
    KITTI_CALIB,
    PEDESTRIAN,
    SITTING,
    WIDTH,
    oxts,
    text,
    tracklet,
    tracklet_xml,
    write_kitti,
    write_kitti_odometry,
    write_kitti_raw,
    write_kitti_tracking,
)


def frames(data: Dataset) -> dict[str, Frame]:
    return {frame.id: frame for log in data.logs for frame in log.frames}


def rows(data: Dataset, frame: str) -> list[tuple[str, bool]]:
    truth = frames(data)[frame].truth
    return [
        (data.categories[label], bool(ignore))
        for label, ignore in zip(truth.labels, truth.ignore, strict=True)
    ]


def test_object_images_are_logs_of_one_frame(tmp_path: Path) -> None:
    data = kitti(write_kitti(tmp_path / "kitti"))
    assert [log.id for log in data.logs] == ["000000", "000001", "000002"]
    first = frames(data)["000000"]
    assert first.camera is not None
    assert (first.camera.fx, first.camera.width, first.camera.height) == (50, WIDTH, HEIGHT)
    assert first.camera.baseline_m == pytest.approx(0.5)
    assert first.right is not None
    assert first.image_id == "000000"
    np.testing.assert_array_equal(first.truth.boxes[0], [20, 10, 30, 40])
    assert pickle.loads(pickle.dumps(first)).image().shape == (HEIGHT, WIDTH, 3)
    assert len(data.annotations) == 6


def test_dont_care_is_ignored_for_all_and_a_neighbour_for_its_class(tmp_path: Path) -> None:
    root = write_kitti(tmp_path / "kitti")
    data = kitti(root)
    assert data.categories == ("Car", "Pedestrian", "Person_sitting", "Cyclist")
    assert rows(data, "000000") == [
        ("Pedestrian", False),
        ("Person_sitting", False),
        ("Pedestrian", True),
        *((name, True) for name in data.categories),
    ]
    people = kitti(root, class_map={"Pedestrian": "person", "Person_sitting": "person"})
    assert rows(people, "000000")[:2] == [("person", False), ("person", False)]  # then both are the target
    assert rows(people, "000000")[2:] == [(name, True) for name in people.categories]


def test_dont_care_can_be_dropped(tmp_path: Path) -> None:
    data = kitti(write_kitti(tmp_path / "kitti"), dont_care="drop")
    assert rows(data, "000000") == [("Pedestrian", False), ("Person_sitting", False), ("Pedestrian", True)]


@pytest.mark.parametrize(
    ("difficulty", "ignored"),
    [("all", [False, False, False]), ("easy", [False, True, True]), ("moderate", [False, False, True])],
)
def test_what_is_beyond_a_difficulty_is_ignored(
    tmp_path: Path, difficulty: Difficulty, ignored: list[bool]
) -> None:
    """The pedestrian is in full view but 30 px high; the second is partly hidden, the car largely."""
    root = write_kitti(tmp_path / "kitti")
    tall = PEDESTRIAN.replace("20 10 30 40", "20 1 30 45")
    text(root / "training/label_2/000000.txt", f"{tall}\n{SITTING}\n{CAR}\n")
    data = kitti(root, difficulty=difficulty)
    judged = [row for row in rows(data, "000000") if row[0] != "Pedestrian"]
    assert [("Pedestrian", ignored[0]), *judged] == [
        ("Pedestrian", False),
        ("Person_sitting", ignored[1]),
        ("Car", ignored[2]),
    ]
    low = kitti(write_kitti(tmp_path / "low"), difficulty="easy")
    assert rows(low, "000000")[0] == ("Pedestrian", True)  # under 40 px


def test_the_wall_is_where_the_scanner_saw_it(tmp_path: Path) -> None:
    frame = frames(kitti(write_kitti(tmp_path / "kitti")))["000000"]
    assert frame.depth_m is not None
    depth = frame.depth_m()
    assert depth.shape == (HEIGHT, WIDTH)
    assert depth.dtype == np.float32
    known = np.isfinite(depth)
    assert 0.3 < known.mean() < 1
    np.testing.assert_allclose(depth[known], 10 - 0.27, atol=1e-5)


def test_the_nearest_point_of_a_pixel_counts_and_nothing_behind() -> None:
    projection = np.array([[10.0, 0, 2, 0], [0, 10, 2, 0], [0, 0, 1, 0]])
    points = np.array([[0, 0, 5], [0, 0, 3], [0, 0, 9], [0, 0, -4], [0.07, 0, 1], [-5, 0, 1], [0, 0, 0.05]])
    depth = projected_depth(points, projection, (5, 4))
    expected = np.full((4, 5), np.nan)
    expected[2, 2], expected[2, 3] = 3, 1  # 0.7 px right of the middle of column 2 is column 3
    np.testing.assert_array_equal(depth, expected.astype(np.float32))


def test_the_world_of_an_object_image_is_its_cameras(tmp_path: Path) -> None:
    frame = frames(kitti(write_kitti(tmp_path / "kitti")))["000000"]
    assert frame.world_from_camera is not None
    assert frame.truth.positions_m is not None
    np.testing.assert_allclose(frame.world_from_camera[:3, :3] @ [0, 0, 1], [1, 0, 0])
    np.testing.assert_allclose(frame.world_from_camera[:3, 3], [0, 0.06, 0])  # t = K^-1 p = (0.06, 0, 0)
    np.testing.assert_allclose(frame.truth.positions_m[0], [8, 1, -1.6])
    assert np.isnan(frame.truth.positions_m[-1]).all()


def test_splits_are_lists_of_images(tmp_path: Path) -> None:
    root = write_kitti(tmp_path / "kitti")
    text(root / "training/ImageSets/val.txt", "000001\n")
    text(root / "training/ImageSets/test.txt", "000000\n000002\n")
    data = kitti(root, split={"validation": "val", "test": "test"})
    assert [(log.id, log.split) for log in data.logs] == [
        ("validation/000001", "validation"),
        ("test/000000", "test"),
        ("test/000002", "test"),
    ]
    text(root / "training/ImageSets/test.txt", "000000\n000009\n")
    with pytest.raises(DataError, match="list is wrong") as caught:
        kitti(root, split={"test": "test"})
    assert caught.value.where == f"{root}/training/ImageSets/test.txt, line 2"


def test_sequences_are_logs_with_poses_and_times(tmp_path: Path) -> None:
    data = kitti(write_kitti_tracking(tmp_path / "kitti"))
    assert [(log.id, len(log.frames)) for log in data.logs] == [("0000", 4), ("0001", 2)]
    log = data.logs[0]
    assert [frame.time_s for frame in log.frames] == [0, 0.1, 0.2, 0.3]
    assert [frame.id for frame in log.frames][:2] == ["0000/000000", "0000/000001"]
    assert all(frame.depth_m is not None for frame in log.frames)
    poses = [frame.world_from_camera for frame in log.frames]
    assert all(pose is not None for pose in poses)
    path = np.array([pose[:3, 3] for pose in poses if pose is not None])
    steps = np.diff(path, axis=0)
    # witness: the length of 1e-5 degrees on a sphere, to the north-east by equal parts
    north = np.radians(1e-5 * np.cos(np.radians(49))) * 6378137
    np.testing.assert_allclose(steps, [[north * np.sqrt(2), 0, 0]] * 3, atol=1e-3)
    first = poses[0]
    assert first is not None
    np.testing.assert_allclose(first[:3, :3] @ [0, 0, 1], [1, 0, 0], atol=1e-9)  # it looks where it goes
    # from the GPS 0.8 m back and 0.3 m right to the scanner, 0.27 m on and 8 cm down to the camera
    np.testing.assert_allclose(first[:3, 3], [0.8 + 0.27, -0.3 + 0.06, 0.8 - 0.08], atol=1e-9)


def test_a_standing_person_stays_where_it_is_in_the_world(tmp_path: Path) -> None:
    root = write_kitti_tracking(tmp_path / "kitti")
    frames_read = kitti(root).logs[0].frames
    step = np.radians(1e-5 * np.cos(np.radians(49))) * 6378137 * np.sqrt(2)
    lines = [f"{n} 1 {PEDESTRIAN.replace('8.0 0.1', f'{8 - n * step} 0.1')}\n" for n in range(4)]
    text(root / "label_02/0000.txt", "".join(lines))
    found = [frame.truth.positions_m for frame in kitti(root).logs[0].frames]
    points = np.array([point[0] for point in found if point is not None])
    assert np.ptp(points, axis=0).max() < 1e-3
    assert len(frames_read) == 4


def test_labelled_frames_without_an_image(tmp_path: Path) -> None:
    root = write_kitti_tracking(tmp_path / "kitti")
    (root / "image_02/0000/000001.png").unlink()
    data = kitti(root)
    assert "image file is missing" in str(frames(data)["0000/000001"].fault)
    left = kitti(root, missing_images="skip")
    assert list(frames(left)) == ["0000/000000", "0000/000002", "0000/000003", "0001/000000", "0001/000001"]
    assert left.notes["labelled frames without an image, left out"] == 1


def test_without_gps_a_sequence_has_no_poses(tmp_path: Path) -> None:
    root = write_kitti_tracking(tmp_path / "kitti")
    (root / "oxts/0000.txt").unlink()
    (root / "velodyne/0000/000002.bin").unlink()
    data = kitti(root)
    assert {frame.world_from_camera is None for frame in data.logs[0].frames} == {True}
    assert data.notes["frames without a velodyne scan"] == 1


def test_odometry_is_a_log_without_labels(tmp_path: Path) -> None:
    data = kitti(write_kitti_odometry(tmp_path / "kitti"))
    assert data.categories == ()
    (log,) = data.logs
    assert log.id == "04"
    assert [frame.time_s for frame in log.frames] == [0, 0.1, 0.2]
    assert all(frame.right and frame.depth_m and not frame.fault for frame in log.frames)
    path = [frame.world_from_camera[:3, 3] for frame in log.frames if frame.world_from_camera is not None]
    np.testing.assert_allclose(path, [[0, 0.06, 0], [1, 0.06, 0], [2, 0.06, 0]], atol=1e-12)


def test_raw_drives_are_logs(tmp_path: Path) -> None:
    root = write_kitti_raw(tmp_path / "kitti")
    data = kitti(root)
    (log,) = data.logs
    assert log.id == "2011_09_26_drive_0001_sync"
    np.testing.assert_allclose([frame.time_s or 0 for frame in log.frames], [0, 0.1, 0.2])
    assert log.frames[1].id == f"{log.id}/0000000001"
    depth = log.frames[0].depth_m
    assert depth is not None
    np.testing.assert_allclose(np.nanmedian(depth()), 9.73, atol=1e-5)
    tracking = kitti(write_kitti_tracking(tmp_path / "tracking")).logs[0]
    for raw, same in zip(log.frames, tracking.frames, strict=False):
        assert raw.world_from_camera is not None
        assert same.world_from_camera is not None
        np.testing.assert_allclose(raw.world_from_camera, same.world_from_camera, atol=1e-12)
    assert kitti(root / "2011_09_26").logs[0].id == log.id


DRIVE = "2011_09_26/2011_09_26_drive_0001_sync"


def with_tracklets(root: Path, *items: str) -> Path:
    """Write a raw drive of three frames with these tracklets."""
    write_kitti_raw(root)
    text(root / DRIVE / "tracklet_labels.xml", tracklet_xml(*items))
    return root


def test_a_tracklet_is_seen_as_its_solid_is_projected(tmp_path: Path) -> None:
    """Points all over the solid, one by one through the calibration files, are inside the box and fill it."""
    pose = (7.0, 0.6, -1.4, 0.4)
    at = " ".join(map(str, pose))
    root = with_tracklets(
        tmp_path / "kitti", tracklet("Pedestrian", 1, [f"{at} 0 0"], "1.7 0.5 0.9"), tracklet("Car", 0, [])
    )
    data = kitti(root)
    assert data.categories == ("Car", "Pedestrian", "Cyclist")
    assert [len(frame.truth.boxes) for frame in data.logs[0].frames] == [0, 1, 0]
    (frame,) = [frame for frame in data.logs[0].frames if len(frame.truth.boxes)]
    x, y, z, left = pose
    pixels = []
    for along, across, up in itertools.product(
        np.linspace(-0.45, 0.45, 7), np.linspace(-0.25, 0.25, 5), (0, 1.7)
    ):
        ahead = x + along * math.cos(left) - across * math.sin(left)
        beside = y + along * math.sin(left) + across * math.cos(left)
        right, down, deep = -beside, -(z + up) - 0.08, ahead - 0.27  # as calib_velo_to_cam has it
        pixels.append(((50 * right + 32 * deep + 3) / deep + 0.5, (50 * down + 24 * deep) / deep + 0.5))
    wanted = [*np.min(pixels, axis=0), *np.max(pixels, axis=0)]
    np.testing.assert_allclose(frame.truth.boxes[0], wanted, atol=1e-4)
    assert frame.truth.attributes == ({"truncated": "no", "occluded": "no"},)
    assert frame.truth.ids.tolist() == [0]


def test_a_standing_tracklet_stays_where_it_is_in_the_world(tmp_path: Path) -> None:
    step = np.radians(1e-5 * np.cos(np.radians(49))) * 6378137 * np.sqrt(2)  # of the car, as `oxts` has it
    poses = [f"{9 - n * step} 1.0 -1.7 0 0 0" for n in range(3)]
    frames_read = kitti(with_tracklets(tmp_path / "kitti", tracklet("Pedestrian", 0, poses))).logs[0].frames
    points = np.array([frame.truth.positions_m for frame in frames_read])[:, 0]
    assert np.ptp(points, axis=0).max() < 1e-3
    # from the GPS 0.8 m on, 0.3 m right and 0.8 m up to the scanner, and from there to the feet
    np.testing.assert_allclose(points[0], [0.8 + 9, -0.3 + 1.0, 0.8 - 1.7], atol=1e-9)


def test_what_nobody_can_see_of_a_tracklet_does_not_count(tmp_path: Path) -> None:
    poses = ["8 0 -1.7 0 2 0", "8 0 -1.7 0 1 0", "8 0 -1.7 0 -1 2"]
    aside = ["2 1.4 -1.0 0 0 1"]
    items = [
        tracklet("Person (sitting)", 0, poses),
        tracklet("Pedestrian", 0, aside),
        tracklet("Van", 2, ["-5 0 0 0 0 99"]),
    ]
    root = with_tracklets(tmp_path / "kitti", *items)
    data = kitti(root)
    hidden, partly, outside = (frame.truth for frame in data.logs[0].frames)
    names = [data.categories[label] for label in hidden.labels]
    assert names == ["Person_sitting", "Pedestrian", "Pedestrian"]  # sitting is ignored as a pedestrian too
    assert hidden.ignore.tolist() == [True, True, False]
    assert hidden.attributes[0]["occluded"] == "fully"
    assert hidden.attributes[2]["truncated"] not in ("no", "")
    assert (partly.ignore.tolist(), partly.attributes[0]["occluded"]) == ([False, True], "partly")
    assert len(outside.boxes) == 0
    assert kitti(root, difficulty="moderate").logs[0].frames[0].truth.ignore.all()

    other = root / DRIVE.replace("0001", "0002")
    shutil.copytree(root / DRIVE, other)
    (other / "tracklet_labels.xml").unlink()
    both = kitti(root)
    assert [log.id for log in both.logs] == [data.logs[0].id]
    assert both.notes["drives without tracklets, left out: others have them"] == 1


@pytest.mark.parametrize(
    ("old", "new", "got"),
    [
        ("Pedestrian", "Pedestrain", "'Pedestrain'"),
        ("<h>1.8</h>", "<h>-1</h>", "'-1'"),
        ("<h>1.8</h>", "", "no <h> in it"),
        ("<first_frame>0", "<first_frame>0.5", "'0.5'"),
        ("<poses><count>1<", "<poses><count>4<", "4, and 1 items"),
        ("<tx>8</tx>", "<tx>nan</tx>", "'nan'"),
        (
            "<!DOCTYPE boost_serialization>",
            '<!DOCTYPE boost_serialization [<!ENTITY a "b">]>',
            "a <!DOCTYPE>",
        ),
    ],
)
def test_broken_tracklets_are_named(tmp_path: Path, old: str, new: str, got: str) -> None:
    root = with_tracklets(tmp_path / "kitti", tracklet("Pedestrian", 0, ["8 0 -1.7 0 0 0"]))
    path = root / DRIVE / "tracklet_labels.xml"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(DataError) as caught:
        kitti(root)
    assert str(caught.value.where).startswith(f"{path}, line ")
    assert got in str(caught.value.got)
    assert caught.value.fix


def test_tracklets_need_the_place_of_the_scanner(tmp_path: Path) -> None:
    root = with_tracklets(tmp_path / "kitti", tracklet("Pedestrian", 0, ["8 0 -1.7 0 0 0"]))
    (root / "2011_09_26/calib_velo_to_cam.txt").unlink()
    with pytest.raises(DataError, match="cannot be placed") as caught:
        kitti(root)
    assert "calib_velo_to_cam.txt" in str(caught.value.got)


@pytest.mark.parametrize("write", [write_kitti, write_kitti_tracking, write_kitti_odometry, write_kitti_raw])
def test_all_layouts_are_recognised(tmp_path: Path, write: Callable[[Path], Path]) -> None:
    root = write(tmp_path / "kitti")
    assert looks_like(root) == {"root": str(root)}
    assert looks_like(tmp_path) is None


def test_gray_cameras(tmp_path: Path) -> None:
    root = write_kitti_odometry(tmp_path / "kitti")
    for camera, number in ((0, 2), (1, 3)):
        (root / f"sequences/04/image_{number}").rename(root / f"sequences/04/image_{camera}")
    frame = kitti(root, cameras="gray").logs[0].frames[0]
    assert frame.camera is not None
    assert frame.camera.baseline_m == pytest.approx(0.5)
    assert frame.world_from_camera is not None
    np.testing.assert_allclose(frame.world_from_camera[:3, 3], 0, atol=1e-12)


def spoilt(name: str, old: str, new: str) -> Callable[[Path], None]:
    def spoil(root: Path) -> None:
        path = root / "training" / name
        content = path.read_text()
        assert old in content
        path.write_text(content.replace(old, new))

    return spoil


@pytest.mark.parametrize(
    ("spoil", "where", "got"),
    [
        (
            spoilt("label_2/000000.txt", "Pedestrian", "Pedestrain"),
            "label_2/000000.txt, line 1",
            "Pedestrain",
        ),
        (
            spoilt("label_2/000000.txt", DONT_CARE, DONT_CARE + " 0.9"),
            "label_2/000000.txt, line 3",
            "16 words",
        ),
        (spoilt("label_2/000000.txt", "20 10", "20 ten"), "label_2/000000.txt, line 1", "'ten'"),
        (spoilt("label_2/000000.txt", "20 10", "nan 10"), "label_2/000000.txt, line 1", "'nan'"),
        (spoilt("calib/000001.txt", "P2:", "P9:"), "calib/000001.txt", "P0, P1, P9"),
        (spoilt("calib/000001.txt", "P3:", "P2:"), "calib/000001.txt, line 4", "P2 again"),
        (spoilt("calib/000001.txt", "P2: 50", "P2: 50 1"), "calib/000001.txt, line 3", "13 numbers"),
        (
            spoilt("calib/000001.txt", "P2: 50", "P2: -50"),
            "calib/000001.txt, line 3",
            "not a projection matrix",
        ),
        (
            spoilt("calib/000001.txt", "R0_rect: 1", "R0_rect: 2"),
            "calib/000001.txt, line 5",
            "not a rotation",
        ),
        (spoilt("calib/000001.txt", "cam: 0 -1", "cam: 0 -3"), "calib/000001.txt, line 6", "not a rotation"),
        (spoilt("calib/000001.txt", "R0_rect: 1", "R0_rect: x"), "calib/000001.txt, line 5", "'x'"),
        (lambda root: (root / "training/label_2/000001.txt").unlink(), "image_2/000001.png", "no 000001.txt"),
        (lambda root: text(root / "training/calib/a.txt", ""), "calib/a.txt", "'a'"),
    ],
)
def test_a_broken_file_is_named(tmp_path: Path, spoil: Callable[[Path], None], where: str, got: str) -> None:
    root = write_kitti(tmp_path / "kitti")
    spoil(root)
    with pytest.raises(AdverseError) as caught:
        kitti(root)
    assert caught.value.where == f"{root}/training/{where}"
    assert got in str(caught.value.got)
    assert caught.value.fix


@pytest.mark.parametrize(
    ("content", "what"), [(b"", "empty"), (b"x" * 30, "truncated"), (b"\xff" * 16, "not finite")]
)
def test_a_broken_scan_is_named(tmp_path: Path, content: bytes, what: str) -> None:
    root = write_kitti(tmp_path / "kitti")
    path = root / "training/velodyne/000000.bin"
    path.write_bytes(content)
    depth = frames(kitti(root))["000000"].depth_m
    assert depth is not None
    with pytest.raises(DataError, match=what) as caught:
        depth()
    assert caught.value.where == f"velodyne file {path}"


@pytest.mark.parametrize(
    ("name", "content", "where"),
    [
        ("poses/04.txt", "1 0 0 0 0 1 0 0 0 0 1 0\n1 0 0\n", "line 2"),
        ("poses/04.txt", "2 0 0 0 0 1 0 0 0 0 1 0\n", "line 1"),
        ("sequences/04/times.txt", "0\n0.1\n0.1\n", "line 3"),
        ("sequences/04/calib.txt", "", ""),
    ],
)
def test_broken_poses_and_times_are_named(tmp_path: Path, name: str, content: str, where: str) -> None:
    root = write_kitti_odometry(tmp_path / "kitti")
    text(root / name, content)
    with pytest.raises(DataError) as caught:
        kitti(root)
    assert str(caught.value.where).startswith(str(root / name))
    assert where in str(caught.value.where)


def test_broken_gps_and_clocks_are_named(tmp_path: Path) -> None:
    text(tmp_path / "oxts.txt", oxts(0) + "95" + oxts(1)[2:])
    with pytest.raises(DataError, match="OXTS file is wrong") as caught:
        read_oxts(tmp_path / "oxts.txt")
    assert caught.value.where == f"{tmp_path / 'oxts.txt'}, line 2"
    root = write_kitti_raw(tmp_path / "kitti")
    clock = root / "2011_09_26/2011_09_26_drive_0001_sync/image_02/timestamps.txt"
    text(clock, "2011-09-26 13:02:25.9\nyesterday\n")
    with pytest.raises(DataError, match="time file is wrong") as caught:
        kitti(root)
    assert caught.value.where == f"{clock}, line 2"


def test_other_folders_and_options_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="laid out as KITTI"):
        kitti(tmp_path)
    root = write_kitti(tmp_path / "kitti")
    with pytest.raises(DataError, match="laid out as KITTI"):
        kitti(root, layout="tracking")
    with pytest.raises(StudyError, match="class_map"):
        kitti(root, class_map={"pedestrian": "person"})
    assert "Tr_velo_to_cam" in KITTI_CALIB

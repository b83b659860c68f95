"""The `kitti` format on real frames, where they are beside the repository (they are never copied into it)."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from adverse.data.kitti import kitti
from adverse.types import Depth, Frame
from formats import text
from pictures import SHARED

OBJECTS = SHARED / "data/kitti_object_NC"
TRACKING = SHARED / "data/kitti_tracking_NC"
ODOMETRY = SHARED / "data/kitti_odometry06_NC"
CAMERA_HEIGHT_M = 1.65
"""Of KITTI's cameras above the road, as its makers tell."""

needs_objects = pytest.mark.skipif(
    not OBJECTS.is_dir(), reason="no KITTI object frames beside the repository"
)
needs_tracking = pytest.mark.skipif(not TRACKING.is_dir(), reason="no KITTI sequences beside the repository")
needs_odometry = pytest.mark.skipif(not ODOMETRY.is_dir(), reason="no KITTI odometry beside the repository")


def depth_of(frame: Frame) -> Depth:
    assert frame.depth_m is not None
    depth: Depth = frame.depth_m()
    return depth


def matrix(name: str, path: Path) -> list[float]:
    (line,) = [line for line in path.read_text().splitlines() if line.startswith(f"{name}:")]
    return [float(word) for word in line.split()[1:]]


def slow_depth(number: str, width: int, height: int) -> NDArray[np.float64]:
    """Project point by point in plain Python, as the devkit's readme says: P2 R0_rect Tr_velo_to_cam x."""
    folder = OBJECTS / "training"
    calib = folder / f"calib/{number}.txt"
    p2, r0, tr = (matrix(name, calib) for name in ("P2", "R0_rect", "Tr_velo_to_cam"))
    depth = np.full((height, width), np.inf)
    for x, y, z, _ in np.fromfile(folder / f"velodyne/{number}.bin", "<f4").reshape(-1, 4).tolist():
        camera = [tr[4 * i] * x + tr[4 * i + 1] * y + tr[4 * i + 2] * z + tr[4 * i + 3] for i in range(3)]
        turned = [sum(r0[3 * i + j] * camera[j] for j in range(3)) for i in range(3)]
        u, v, w = (sum(p2[4 * i + j] * turned[j] for j in range(3)) + p2[4 * i + 3] for i in range(3))
        if w < 0.1:
            continue
        column, row = int(np.floor(u / w + 0.5)), int(np.floor(v / w + 0.5))
        if 0 <= column < width and 0 <= row < height:
            depth[row, column] = min(depth[row, column], w)
    depth[np.isinf(depth)] = np.nan
    return depth


@needs_objects
@pytest.mark.parametrize("number", ["000000", "000001", "000002"])
def test_projected_depth_agrees_with_the_calibration(number: str) -> None:
    (frame,) = (log.frames[0] for log in kitti(OBJECTS).logs if log.id == number)
    depth = depth_of(frame)
    expected = slow_depth(number, depth.shape[1], depth.shape[0])
    different = (np.isnan(depth) != np.isnan(expected)) | (np.abs(depth - expected) > 1e-4)
    assert different.mean() < 1e-5  # a point on the very edge of a pixel may round to either side
    assert 0.03 < np.isfinite(depth).mean() < 0.06
    assert depth.shape == frame.image().shape[:2]


@needs_objects
def test_the_nearest_surface_in_a_true_box_is_its_object() -> None:
    """The places were labelled by hand; the tenth percentile is on the object, not on what is behind it."""
    gaps = {}
    for log in kitti(OBJECTS).logs:
        (frame,) = log.frames
        assert frame.truth.positions_m is not None
        depth = depth_of(frame)
        for box, point, ignore in zip(
            frame.truth.boxes, frame.truth.positions_m, frame.truth.ignore, strict=True
        ):
            x0, y0, x1, y1 = box.astype(int)
            inside = depth[y0:y1, x0:x1]
            inside = inside[np.isfinite(inside)]
            if not ignore and point[0] < 40 and len(inside) >= 20:
                gaps[log.id, float(point[0])] = point[0] - np.percentile(inside, 10)
    assert gaps.keys() == {("000000", 8.41), ("000002", 8.55), ("000002", 34.38)}
    assert gaps["000000", 8.41] == pytest.approx(0.15, abs=0.3)  # a pedestrian is thin
    assert all(-0.5 < gap < 3 for gap in gaps.values())  # the near side of a car is 2 m before its middle


@needs_objects
def test_the_road_is_as_far_as_a_camera_so_high_sees_it() -> None:
    """Rows near the bottom show road: depth = focal length * height / (row - horizon), but for pitch."""
    for log in kitti(OBJECTS).logs:
        (frame,) = log.frames
        depth = depth_of(frame)
        assert frame.camera is not None
        rows, columns = np.nonzero(np.isfinite(depth))
        road = (rows > depth.shape[0] - 40) & (np.abs(columns - frame.camera.cx) < 60)
        assert road.sum() > 50
        expected = frame.camera.fy * CAMERA_HEIGHT_M / (rows[road] - frame.camera.cy)
        assert np.median(depth[rows[road], columns[road]] / expected) == pytest.approx(1, abs=0.1)


@needs_tracking
def test_the_crowded_sequence_is_one_positive_log() -> None:
    data = kitti(TRACKING)
    log = next(log for log in data.logs if log.id == "0016")
    person = data.categories.index("Pedestrian")
    counted = [((f.truth.labels == person) & ~f.truth.ignore).sum() for f in log.frames]
    assert len(log.frames) == 209
    assert sum(counted) == 2027
    cyclist = data.categories.index("Cyclist")
    assert sum(((f.truth.labels == cyclist) & ~f.truth.ignore).sum() for f in log.frames) == 272
    regions = sum(((f.truth.labels == person) & f.truth.ignore).sum() for f in log.frames)
    assert regions == 1010  # DontCare; nobody sits in this sequence
    there = [frame for frame in log.frames if frame.fault is None]
    assert [frame.index for frame in there] == [2, 7, 12]
    assert [int(counted[frame.index]) for frame in there] == [8, 8, 8]
    assert there[0].image().shape == (370, 1224, 3)


@needs_tracking
def test_only_frames_with_images_when_asked() -> None:
    data = kitti(TRACKING, missing_images="skip", class_map={"Pedestrian": "person"})
    assert [(log.id, len(log.frames)) for log in data.logs] == [("0001", 3), ("0016", 3)]
    assert all(frame.fault is None for log in data.logs for frame in log.frames)


@needs_odometry
def test_real_poses_and_stereo(tmp_path: Path) -> None:
    """Frames 12 to 14 of sequence 06, put where the odometry data have them; poses are told twice."""
    folder = tmp_path / "sequences/06"
    for number in (12, 13, 14):
        (folder / "image_2").mkdir(parents=True, exist_ok=True)
        shutil.copy(ODOMETRY / f"kitti06-{number}-color.png", folder / f"image_2/{number:06}.png")
    (folder / "image_3").mkdir()
    shutil.copy(ODOMETRY / "kitti06-12-R-color.png", folder / "image_3/000012.png")
    shutil.copy(ODOMETRY / "times.txt", folder / "times.txt")
    (tmp_path / "poses").mkdir()
    shutil.copy(ODOMETRY / "06.txt", tmp_path / "poses/06.txt")
    p = "707.0912 0 601.8873 {} 0 707.0912 183.1104 0 0 0 1 0"
    shifts = (0, -379.8145, 0, -379.8145)
    text(folder / "calib.txt", "".join(f"P{n}: {p.format(shift)}\n" for n, shift in enumerate(shifts)))
    data = kitti(tmp_path)
    (log,) = data.logs
    assert data.notes == {"no labels": 1, "frames without a right image": 2}
    told = np.loadtxt(ODOMETRY / "groundtruth.txt")  # time, place, quaternion x y z w, in camera axes
    for frame, number in zip(log.frames, (12, 13, 14), strict=True):
        assert frame.time_s == pytest.approx(told[number, 0], abs=1e-6)
        assert frame.camera is not None
        assert frame.camera.baseline_m == pytest.approx(0.5371, abs=1e-3)
        assert frame.world_from_camera is not None
        x, y, z = told[number, 1:4]
        np.testing.assert_allclose(frame.world_from_camera[:3, 3], [z, -x, -y], atol=1e-5)
        qx, qy, qz, qw = told[number, 4:8]
        forward = [2 * (qx * qz + qy * qw), 2 * (qy * qz - qx * qw), 1 - 2 * (qx * qx + qy * qy)]
        looks = frame.world_from_camera[:3, :3] @ [0, 0, 1]
        np.testing.assert_allclose(looks, [forward[2], -forward[0], -forward[1]], atol=1e-4)
        assert frame.image().shape == (370, 1226, 3)
    assert log.frames[0].right is not None
    speeds = np.diff([f.world_from_camera[0, 3] for f in log.frames if f.world_from_camera is not None]) * 10
    assert ((speeds > 5) & (speeds < 20)).all()

"""nuScenes, on a made-up sample in its layout: poses, boxes, depth and tracks against slow references."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

from adverse.cli.app import app
from adverse.data.images import write_image
from adverse.data.nuscenes import nuscenes
from adverse.data.nuscenes_tables import Annotation, pose_of
from adverse.data.seen_box import seen_box
from adverse.errors import DataError

WIDTH, HEIGHT, FOCAL = 160, 90, 100.0
INTRINSIC = [[FOCAL, 0, 79.5], [0, FOCAL, 44.5], [0, 0, 1]]
CAMERA_TURN = [0.5, -0.5, 0.5, -0.5]
"""Camera axes (x right, y down, z forward) into those of the vehicle (x forward, y left, z up)."""
STILL = [1, 0, 0, 0]
LASER_M = [[10.0, 0.0, 0.0, 9.0, 3.0], [20.0, 1.0, -1.0, 9.0, 4.0], [-5.0, 0.0, 0.0, 9.0, 5.0]]


def _tables(root: Path, **changes: Any) -> Path:
    """Write two scenes of two samples; the vehicle drives 1 m forward from sample to sample."""
    records: dict[str, list[dict[str, Any]]] = {
        "sensor": [
            {"token": "s1", "channel": "CAM_FRONT", "modality": "camera"},
            {"token": "s2", "channel": "LIDAR_TOP", "modality": "lidar"},
        ],
        "calibrated_sensor": [
            {
                "token": "c1",
                "sensor_token": "s1",
                "translation": [1, 0, 1.5],
                "rotation": CAMERA_TURN,
                "camera_intrinsic": INTRINSIC,
            },
            {
                "token": "c2",
                "sensor_token": "s2",
                "translation": [0, 0, 1.5],
                "rotation": STILL,
                "camera_intrinsic": [],
            },
        ],
        "category": [{"token": "k1", "name": "human.pedestrian.adult"}, {"token": "k2", "name": "animal"}],
        "visibility": [{"token": "4", "level": "v80-100"}],
        "instance": [{"token": "i1", "category_token": "k1"}, {"token": "i2", "category_token": "k2"}],
        **{name: [] for name in ("scene", "sample", "sample_data", "ego_pose", "sample_annotation")},
    }
    for scene, shot in itertools.product("ab", range(2)):
        name = f"{scene}{shot}"
        if not shot:
            records["scene"].append({"token": scene, "name": f"scene-{scene}"})
        records["sample"].append({"token": name, "timestamp": 10**6 * shot, "scene_token": scene})
        for kind, calibration, file, late in (
            ("cam", "c1", f"samples/CAM_FRONT/{name}.png", 0.0),
            ("lidar", "c2", f"samples/LIDAR_TOP/{name}.pcd.bin", 0.5),
        ):
            pose = f"p{kind}{name}"
            records["ego_pose"].append(
                {"token": pose, "translation": [shot + late, 0, 0], "rotation": STILL, "timestamp": 0}
            )
            data: dict[str, Any] = {"token": f"{kind}{name}", "sample_token": name, "ego_pose_token": pose}
            data |= {"calibrated_sensor_token": calibration, "filename": file, "is_key_frame": True}
            data |= {"timestamp": 5 * 10**5 * shot, "width": WIDTH, "height": HEIGHT}
            records["sample_data"] += [data, {**data, "token": f"sweep{kind}{name}", "is_key_frame": False}]
        for instance, x, points in (("i1", 12.0, 5), ("i2", 8.0, 0), ("i1", -20.0, 3)):
            box: dict[str, Any] = {
                "token": f"n{name}{instance}{x}",
                "sample_token": name,
                "instance_token": instance,
            }
            box |= {"translation": [x, 1.0, 1.0], "size": [0.6, 0.8, 1.8], "rotation": STILL}
            box |= {"num_lidar_pts": points, "num_radar_pts": 0, "visibility_token": "4"}
            records["sample_annotation"].append(box)
        for folder in ("CAM_FRONT", "LIDAR_TOP"):
            (root / "samples" / folder).mkdir(parents=True, exist_ok=True)
        write_image(
            root / "samples/CAM_FRONT" / f"{name}.png", np.full((HEIGHT, WIDTH, 3), 60 + shot, np.uint8)
        )
        np.array(LASER_M, "<f4").tofile(root / "samples/LIDAR_TOP" / f"{name}.pcd.bin")
    records |= changes
    (root / "v1.0-mini").mkdir()
    for name, rows in records.items():
        (root / "v1.0-mini" / f"{name}.json").write_text(json.dumps(rows))
    return root


def test_frames_have_what_the_tables_say(tmp_path: Path) -> None:
    read = nuscenes(_tables(tmp_path))
    assert [log.id for log in read.logs] == ["scene-a", "scene-b"]
    assert read.categories == ("animal", "pedestrian")
    for shot, frame in enumerate(read.logs[0].frames):
        assert frame.time_s == 0.5 * shot
        pose = frame.world_from_camera
        assert pose is not None
        np.testing.assert_allclose(pose[:3, 3], [shot + 1, 0, 1.5])
        np.testing.assert_allclose(pose[:3, :3] @ [0, 0, 1], [1, 0, 0], atol=1e-12)  # it looks forward
        assert frame.camera is not None
        assert (frame.camera.fx, frame.camera.cx, frame.camera.width) == (FOCAL, 79.5, WIDTH)
        # of three boxes one is behind the camera; the one without points is ignored
        assert frame.truth.ignore.tolist() == [False, True]
        assert [read.categories[label] for label in frame.truth.labels] == ["pedestrian", "animal"]
        assert frame.truth.positions_m is not None
        assert frame.truth.positions_m[0].tolist() == [12.0, 1.0, 1.0]
        # its nearest side, 0.4 m before its middle, is the largest: a pixel is a metre times focal / depth
        near = 12 - 0.4 - (shot + 1)
        wanted = [80 - FOCAL * 1.3 / near, 45 - FOCAL * 0.4 / near, 80 - FOCAL * 0.7 / (near + 0.8)]
        assert frame.truth.boxes[0, :3].tolist() == pytest.approx(wanted, abs=1e-3)
    first, second = (frame.truth.ids.tolist() for frame in read.logs[0].frames)
    assert first == second


def test_the_laser_goes_through_the_world_of_its_own_moment(tmp_path: Path) -> None:
    frame = nuscenes(_tables(tmp_path)).logs[0].frames[0]
    assert frame.depth_m is not None
    depth = frame.depth_m()
    # the scan was taken half a metre further on than the image, whose camera is 1 m before the laser
    wanted = {(45, 80): 10 + 0.5 - 1, (round(44.5 + 100 / 19.5), round(79.5 - 100 / 19.5)): 20 + 0.5 - 1}
    found = {(int(row), int(column)): float(depth[row, column]) for row, column in np.argwhere(depth > 0)}
    assert found == pytest.approx(wanted)


STEPS, ENDS = np.linspace(0, 1, 90), np.array([0.0, 1.0])
FACES = np.concatenate(
    [
        np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 3)
        for axes in ((STEPS, STEPS, ENDS), (STEPS, ENDS, STEPS), (ENDS, STEPS, STEPS))
    ]
)
"""Points all over the faces of a cube."""


def _slow_box(corners: NDArray[np.float64], intrinsic: NDArray[np.float64]) -> list[float] | None:
    """Project points all over a solid, and keep those that the image shows."""
    origin = corners[0]
    points = origin + FACES @ np.array([corners[4] - origin, corners[2] - origin, corners[1] - origin])
    seen = points[points[:, 2] >= 0.1] @ intrinsic.T
    pixels = seen[:, :2] / seen[:, 2:] + 0.5
    inside = ((pixels >= 0) & (pixels <= (WIDTH, HEIGHT))).all(axis=1)
    if not inside.any():
        return None
    shown = pixels[inside]
    return [*shown.min(axis=0), *shown.max(axis=0)]


def test_boxes_are_around_what_the_image_shows() -> None:
    rng = np.random.default_rng(2)
    intrinsic = np.array(INTRINSIC, np.float64)
    compared = 0
    for _ in range(40):
        turn = rng.normal(size=4)
        place = (rng.uniform(-6, 6), rng.uniform(-3, 3), rng.uniform(-1, 14))
        thing = Annotation("t", "s", "i", place, (1.5, 3.0, 1.2), tuple(turn / np.linalg.norm(turn)))
        corners = thing.corners_m()
        slow, shown = _slow_box(corners, intrinsic), seen_box(corners, intrinsic, (WIDTH, HEIGHT))
        if slow is None:
            continue
        assert shown is not None
        box = shown.box
        np.testing.assert_allclose(box, slow, atol=3.0)  # points of the slow one lie some pixels apart
        assert box[0] <= slow[0] + 1e-3
        assert box[3] >= slow[3] - 1e-3
        compared += 1
    assert compared > 15


def test_a_pose_turns_as_a_quaternion_says() -> None:
    quarter = pose_of((1.0, 2.0, 3.0), (np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)), "t")  # to the left
    np.testing.assert_allclose(quarter @ [1, 0, 0, 1], [1, 3, 3, 1], atol=1e-12)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"scene": [{"token": "a", "name": "scene-a"}]}, "refers to one that is not there"),
        ({"ego_pose": []}, "refers to one that is not there"),
        ({"sample": {"a": 1}}, "not a list of records"),
        ({"sensor": [{"token": 3, "channel": "x", "modality": "lidar"}]}, "record of a table cannot be used"),
    ],
)
def test_what_is_wrong_with_tables_is_said(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError, match=words):
        nuscenes(_tables(tmp_path, **changes))


def test_data_check_knows_the_layout(tmp_path: Path) -> None:
    root = _tables(tmp_path / "nuscenes")
    result = CliRunner().invoke(app, ["data", "check", str(root)])
    assert result.exit_code == 0, result.output
    assert "nuscenes" in result.output
    assert "pedestrian" in result.output
    for place, words in (
        (tmp_path, "below the folder given"),
        (root / "samples/CAM_FRONT", "above the folder"),
    ):
        found = CliRunner().invoke(app, ["data", "check", str(place)])  # too high, and too low
        assert found.exit_code == 0, found.output
        assert words in " ".join(found.output.split())
        assert "pedestrian" in found.output
    _tables(tmp_path / "other")
    several = CliRunner().invoke(app, ["data", "check", str(tmp_path)])
    assert "several data sets lie below the folder" in str(several.exception)
    with pytest.raises(DataError, match="no scene has keyframes of this camera"):
        nuscenes(root, camera="CAM_BACK")

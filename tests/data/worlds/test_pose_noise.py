"""Noise of recorded positions: as large as asked for, the same in any order, and no harm to the path."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from adverse.cli import main
from adverse.data.folder import folder
from adverse.data.worlds.scripts import quaternion
from adverse.data.worlds.writing import SCRIPTS, World, WorldSpec, pose_error_m, write_log, write_world
from adverse.robot.trajectory import trajectory
from adverse.types import LogKind

RTK_MM = 20.0
QUIET = WorldSpec("orchard", (("test", 2),), 64, 48, 5)
NOISY = WorldSpec("orchard", (("test", 2),), 64, 48, 5, RTK_MM)
KINDS: tuple[LogKind, LogKind] = ("positive", "negative")


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Both worlds on disk."""
    made = {name: tmp_path_factory.mktemp(name) for name in ("quiet", "noisy")}
    write_world(made["quiet"], QUIET)
    write_world(made["noisy"], NOISY, workers=2)
    return made


def contents(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def errors_m(spec: WorldSpec, logs: int, frames: int) -> NDArray[np.float64]:
    return np.array(
        [
            [pose_error_m(spec, f"test/{log}", f"{frame:04d}") for frame in range(frames)]
            for log in range(logs)
        ]
    )


def test_without_noise_the_true_poses_are_written(roots: dict[str, Path]) -> None:
    for name, kind in QUIET.log_names():
        drive = SCRIPTS["orchard"](QUIET.seed, name, kind).drive
        lines = ["frame,time_s,x_m,y_m,z_m,qw,qx,qy,qz"]
        for number, time_s in enumerate(drive.times_s()):
            pose = drive.pose(time_s)
            values = [time_s, *pose[:3, 3], *quaternion(pose[:3, :3])]
            lines.append(",".join([f"{number:04d}", *(repr(float(value)) for value in values)]))
        assert (roots["quiet"] / name / "poses.csv").read_text() == "\n".join(lines) + "\n"
    assert "pose_noise_mm" not in json.loads((roots["quiet"] / "truth.json").read_text())["info"]


def test_noise_changes_positions_alone(roots: dict[str, Path]) -> None:
    quiet, noisy = contents(roots["quiet"]), contents(roots["noisy"])
    assert set(quiet) == set(noisy)
    differ = {name for name in quiet if quiet[name] != noisy[name]}
    assert differ == {"truth.json", *(f"{name}/poses.csv" for name, _ in QUIET.log_names())}
    truths: list[dict[str, Any]] = [json.loads(files["truth.json"]) for files in (quiet, noisy)]
    assert truths[1].pop("info") == {**truths[0].pop("info"), "pose_noise_mm": RTK_MM}
    assert truths[0] == truths[1]
    for name, _ in QUIET.log_names():
        before, after = (
            list(csv.DictReader(files[f"{name}/poses.csv"].decode().splitlines())) for files in (quiet, noisy)
        )
        for one, two in zip(before, after, strict=True):
            assert {key for key in one if one[key] != two[key]} == {"x_m", "y_m", "z_m"}


def test_frames_are_handed_out_with_noise_and_people_without(roots: dict[str, Path]) -> None:
    quiet, noisy = (folder(roots[name], split={"test": "test"}) for name in ("quiet", "noisy"))
    for one, two in zip(quiet.logs, noisy.logs, strict=True):
        for number, (true, recorded) in enumerate(zip(one.frames, two.frames, strict=True)):
            assert true.world_from_camera is not None
            assert recorded.world_from_camera is not None
            off = recorded.world_from_camera - true.world_from_camera
            wanted = pose_error_m(NOISY, f"test/{one.id}", f"{number:04d}")
            np.testing.assert_allclose(off[:3, 3], wanted, atol=1e-12)
            assert np.abs(off[:, :3]).max() == 0
            if true.truth.positions_m is not None:
                np.testing.assert_array_equal(true.truth.positions_m, recorded.truth.positions_m)


def test_noise_is_normal_and_new_with_every_frame_and_axis() -> None:
    error = errors_m(NOISY, 20, 100) / (RTK_MM / 1000)
    count = error.size
    assert abs(error.mean()) < 4 / math.sqrt(count)
    assert abs((error**2).mean() - 1) < 4 * math.sqrt(2 / count)
    assert abs((error**4).mean() - 3) < 4 * math.sqrt(96 / count)  # the fourth moment's own variance: 105 - 9
    for other in (np.roll(error, 1, axis=0), np.roll(error, 1, axis=1), np.roll(error, 1, axis=2)):
        assert abs((error * other).mean()) < 4 / math.sqrt(count)
    louder = WorldSpec("orchard", (("test", 2),), 64, 48, 5, 2 * RTK_MM)
    np.testing.assert_allclose(errors_m(louder, 2, 5), 2 * errors_m(NOISY, 2, 5), rtol=1e-12)
    other_seed = WorldSpec("orchard", (("test", 2),), 64, 48, 6, RTK_MM)
    assert not np.isin(errors_m(other_seed, 2, 5), errors_m(NOISY, 2, 5)).any()


def test_a_log_has_its_noise_whatever_was_rendered_before(roots: dict[str, Path], tmp_path: Path) -> None:
    name, kind = NOISY.log_names()[-1]
    write_log(tmp_path, NOISY, name, kind)
    written = (tmp_path / name / "poses.csv").read_bytes()
    assert written == (roots["noisy"] / name / "poses.csv").read_bytes()


@pytest.mark.parametrize("world", ["orchard", "street"])
def test_the_path_stays_where_it_was(world: World) -> None:
    """Turned at its end by 1 degree as the median and 5 at most; 10 m ahead it is off by less than 1 m."""
    spec = WorldSpec(world, (("test", 1),), 64, 48, 1, RTK_MM)
    turned, ends_m, stations_m = [], [], []
    for number in range(60):
        kind = KINDS[number % 2]
        name = f"test/{kind}{number:03d}"
        drive = SCRIPTS[world](spec.seed, name, kind).drive
        times = np.array(drive.times_s())
        poses = np.array([drive.pose(time_s) for time_s in times])
        error = np.array([pose_error_m(spec, name, f"{frame:04d}") for frame in range(len(times))])
        true = trajectory(poses[:, :2, 3], poses[:, :2, 2], time_s=times)
        noisy = trajectory(poses[:, :2, 3] + error[:, :2], poses[:, :2, 2], time_s=times)
        one, two = (path.corners[-1] - path.corners[-2] for path in (true, noisy))
        turned.append(abs(math.degrees(math.atan2(one[0] * two[1] - one[1] * two[0], one @ two))))
        ends_m.append(np.hypot(*(true.corners[-1] - noisy.corners[-1])))
        stations_m.append(np.abs(true.stations - noisy.stations).max())
    assert np.median(turned) < 1
    assert np.max(turned) < 5
    assert np.max(ends_m) < 1
    assert np.max(stations_m) < 0.3


def test_the_command_takes_the_noise(tmp_path: Path) -> None:
    out = tmp_path / "street"
    size = ["--logs", "4", "--size", "64x48", "--workers", "1"]
    with pytest.raises(SystemExit) as ended:
        main(["world", "street", str(out), *size, "--pose-noise-mm", "20"])
    assert ended.value.code == 0
    assert json.loads((out / "truth.json").read_text())["info"]["pose_noise_mm"] == RTK_MM

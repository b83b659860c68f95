"""A baseline that is off by ten is found by recorded depth, positions, poses or heights, a right one not."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from adverse.cli.app import app
from adverse.data.folder import folder
from adverse.data.images import write_image
from adverse.data.rig import COLUMNS
from adverse.data.worlds.scripts import quaternion
from adverse.study.depth_maps import with_depth
from adverse.study.pair_check import doubtful_pairs
from adverse.study.scale_check import doubtful_scale, scale_by_motion
from adverse.study.spec import DepthSection
from adverse.types import Camera, Dataset
from stereo_scenes import orchard_video

SIZE = (320, 240)
MOVED = np.array(
    [
        [0.99875026, -0.02, 0.04582576, 0.1],
        [0.02, 0.9998, 0, -0.05],
        [-0.0458, 0, 0.99895, -0.5],
        [0, 0, 0, 1],
    ]
)


@pytest.fixture
def video(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write three stereo pairs of a drive with poses; the cache is of this test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root, rows = tmp_path / "data", [",".join(COLUMNS)]
    frames = orchard_video(3, *SIZE)
    for number, frame in enumerate(frames):
        for kind, image in (("images", frame.left), ("right", frame.right)):
            (root / "row" / kind).mkdir(parents=True, exist_ok=True)
            write_image(root / "row" / kind / f"{number}.png", image)
        place = (*frame.pose[:3, 3], *quaternion(frame.pose[:3, :3]))
        rows.append(",".join([str(number), str(number / 7.5), *(repr(float(value)) for value in place)]))
    (root / "row" / "poses.csv").write_text("\n".join(rows) + "\n")
    return root


def with_baseline(root: Path, times: float) -> Dataset:
    camera = asdict(orchard_video(3, *SIZE)[0].camera)
    (root / "camera.json").write_text(json.dumps({**camera, "baseline_m": camera["baseline_m"] * times}))
    return folder(root)


def computed(dataset: Dataset) -> Dataset:
    section = DepthSection.model_validate({"from": "stereo", "refine": "none"})
    return with_depth(dataset, section, folder=Path(), where="study.yaml")


@pytest.mark.parametrize("times", [0.1, 1.0, 2.54, 10.0])
def test_the_scale_follows_from_how_points_move(times: float) -> None:
    camera = Camera(250, 260, 160, 118, 320, 240, 0.24)
    rng = np.random.default_rng(1)
    start = rng.integers(0, (320, 240), (80, 2)).astype(np.float32)
    depth = rng.uniform(3, 20, (240, 320))
    ray = np.column_stack([(start - (160, 118)) / (250, 260), np.ones(80)])
    point = ray * depth[start[:, 1].astype(int), start[:, 0].astype(int)][:, None]
    there = point @ MOVED[:3, :3].T + MOVED[:3, 3]
    end = (there[:, :2] / there[:, 2:] * (250, 260) + (160, 118)).astype(np.float32)
    seen = scale_by_motion(start, end, (depth * times).astype(np.float32), camera, MOVED)
    assert seen == pytest.approx(times, rel=1e-3)
    wild = rng.permutation(end)  # points that were followed to anywhere
    assert scale_by_motion(start, wild, depth.astype(np.float32), camera, MOVED) is None


@pytest.mark.parametrize(("times", "got"), [(1.0, None), (10.0, "10 times"), (0.1, "1/10 of")])
def test_poses_contradict_a_baseline_that_is_off_by_ten(video: Path, times: float, got: str | None) -> None:
    found = list(doubtful_scale(computed(with_baseline(video, times))))
    assert [doubt.certain for doubt in found] == ([] if got is None else [True])
    if got is not None:
        assert "does not fit the poses" in found[0].what
        assert got in found[0].got
        said = CliRunner().invoke(app, ["depth", str(video), str(video.parent / "out"), "--workers", "1"])
        assert "does not fit the poses" in str(said.exception)
        assert not (video.parent / "out").exists()
        assert [doubt.certain for doubt in doubtful_pairs(folder(video))] == [False]


@pytest.mark.parametrize(("times", "what"), [(1.0, None), (10.0, "recorded depth"), (0.1, "recorded depth")])
def test_recorded_depth_and_positions_contradict_it_too(video: Path, times: float, what: str | None) -> None:
    (video / "row" / "poses.csv").unlink()
    (video / "row" / "depth").mkdir()
    for number, frame in enumerate(orchard_video(3, *SIZE)):
        np.save(video / "row" / "depth" / f"{number}.npy", frame.depth_m)
    found = list(doubtful_scale(computed(with_baseline(video, times))))
    assert [doubt.what.removeprefix("depth from stereo does not fit the ") for doubt in found] == (
        [what] if what else []
    )


@pytest.mark.parametrize(("times", "certain"), [(1.0, []), (10.0, [False]), (0.05, [False])])
def test_where_nothing_else_is_known_the_height_of_the_camera_is_implausible(
    video: Path, times: float, certain: list[bool]
) -> None:
    (video / "row" / "poses.csv").unlink()
    found = list(doubtful_scale(computed(with_baseline(video, times))))
    assert [doubt.certain for doubt in found] == certain
    assert all("the camera above the ground is" in doubt.got for doubt in found)


def test_positions_are_compared_in_the_camera_s_frame(video: Path) -> None:
    dataset = computed(with_baseline(video, 10.0))
    frames = []
    for frame, truth in zip(dataset.logs[0].frames, orchard_video(3, *SIZE), strict=True):
        rows, columns = np.nonzero(truth.person)
        box = np.array([[columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]], np.float64)
        middle = np.array([*box[0, :2] + box[0, 2:], 2]) / 2
        camera = truth.camera
        ray = np.array([(middle[0] - camera.cx) / camera.fx, (middle[1] - camera.cy) / camera.fy, 1])
        place = ray * float(np.median(truth.depth_m[truth.person]))
        world = truth.pose[:3, :3] @ place + truth.pose[:3, 3]
        labelled = replace(
            frame.truth,
            boxes=box,
            labels=np.zeros(1, np.int64),
            ignore=np.zeros(1, np.bool_),
            ids=np.zeros(1, np.int64),
            positions_m=world[None],
        )
        frames.append(replace(frame, truth=labelled))
    log = replace(dataset.logs[0], frames=tuple(frames))
    (doubt,) = doubtful_scale(replace(dataset, logs=(log,)))
    assert "does not fit the annotated positions" in doubt.what

"""Label maps and the robot file of the folder format: what is read, what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from adverse.data.folder import folder
from adverse.data.images import write_image
from adverse.errors import DataError

LABELS = np.arange(48, dtype=np.uint8).reshape(6, 8)


def log(root: Path, labels: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> Path:
    (root / "log" / "images").mkdir(parents=True)
    (root / "log" / "labels").mkdir()
    write_image(root / "log" / "images" / "0.png", np.zeros((6, 8, 3), np.uint8))
    write_image(root / "log" / "labels" / "0.png", labels)
    return root


def test_labels_come_back_as_written(tmp_path: Path) -> None:
    frame = folder(log(tmp_path, LABELS)).logs[0].frames[0]
    assert frame.labels is not None
    np.testing.assert_array_equal(frame.labels(), LABELS)


@pytest.mark.parametrize("wrong", [LABELS[:5], np.zeros((6, 8, 3), np.uint8), LABELS.astype(np.uint16)])
def test_labels_of_another_size_or_kind_are_refused(
    tmp_path: Path, wrong: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]
) -> None:
    frame = folder(log(tmp_path, wrong)).logs[0].frames[0]
    assert frame.labels is not None
    with pytest.raises(DataError, match="label map is not"):
        frame.labels()


def test_the_robot_comes_with_the_data(tmp_path: Path) -> None:
    root = log(tmp_path, LABELS)
    assert folder(root).robot is None
    robot = {"control_radius_m": 2.0, "safety_radius_m": 1.0}
    (root / "robot.json").write_text(json.dumps(robot))
    read = folder(root)
    assert read.robot == robot
    assert root / "robot.json" in read.annotations


@pytest.mark.parametrize(
    "wrong",
    [
        {"control_radius_m": 1.0, "safety_radius_m": 2.0},
        {"control_radius_m": 1.0},
        {"control_radius_m": 0.0, "safety_radius_m": 0.0},
        {"control_radius_m": 2.0, "safety_radius_m": 1.0, "mass_kg": 900},
    ],
)
def test_a_robot_that_makes_no_sense_is_refused(tmp_path: Path, wrong: dict[str, float]) -> None:
    root = log(tmp_path, LABELS)
    (root / "robot.json").write_text(json.dumps(wrong))
    with pytest.raises(DataError):
        folder(root)

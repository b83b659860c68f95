"""Trajectories, pathified distances and the Localizer against geometry done another way."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adverse.errors import StudyError
from adverse.robot.localizer import localize
from adverse.robot.obstacles import pathified_distance_m
from adverse.robot.profile import Robot, read_robot
from adverse.robot.trajectory import EXTENSION_M, trajectory

AHEAD = np.array([1.0, 0.0])
SEEDS = st.integers(0, 5000)


def straight(metres: float = 20.0, step: float = 0.4) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    x = np.arange(0, metres, step)
    return np.stack([x, np.zeros_like(x)], axis=1)


def test_a_straight_drive_goes_on_straight() -> None:
    path = trajectory(straight(), AHEAD)
    assert path.recorded_m == pytest.approx(19.6)
    assert path.length_m == pytest.approx(29.6)
    np.testing.assert_allclose(path.corners[-1], [29.6, 0], atol=1e-9)
    np.testing.assert_allclose(path.stations, straight()[:, 0])


def test_noise_is_smoothed_out_of_the_end_direction() -> None:
    rng = np.random.default_rng(1)
    ends = []
    for _ in range(50):
        noisy = straight() + rng.normal(0, 0.02, (50, 2))
        ends.append(trajectory(noisy, AHEAD).corners[-1] - noisy[-1])
    angles = np.arctan2(*np.array(ends).T[::-1])
    last_piece = np.arctan2(0.02 * np.sqrt(2), 0.4)
    assert np.std(angles) < last_piece / 3


def test_standing_still_adds_no_path_and_looks_ahead() -> None:
    stood = trajectory(np.zeros((7, 2)), np.array([0.0, 2.0]))
    assert stood.recorded_m == 0
    np.testing.assert_allclose(stood.corners, [[0.0, 0.0], [0.0, EXTENSION_M]])
    waited = trajectory(np.vstack([straight(), np.tile(straight()[-1], (5, 1))]), AHEAD)
    assert waited.recorded_m == pytest.approx(19.6)
    assert (waited.stations[-6:] == waited.stations[-1]).all()


@pytest.mark.parametrize(
    ("point", "distance"),
    [
        ((10.0, 0.0), 8.0),
        ((10.0, 1.2), 10 - np.sqrt(4 - 1.44)),
        ((10.0, 2.0), 10.0),  # grazing counts
        ((10.0, 2.001), np.inf),
        ((1.0, 1.0), 0.0),  # already inside
        ((-1.0, 0.5), 0.0),
        ((-3.0, 0.0), np.inf),  # behind
        ((28.0, 0.0), 26.0),  # on the extension
        ((np.nan, 0.0), np.inf),
    ],
)
def test_known_distances(point: tuple[float, float], distance: float) -> None:
    path = trajectory(straight(), AHEAD)
    found = pathified_distance_m(path, np.zeros(1), np.array([point]), 2.0)
    assert found[0] == pytest.approx(distance, abs=1e-9)


@given(SEEDS)
@settings(deadline=None)
def test_equals_walking_the_path_in_millimetres(seed: int) -> None:
    rng = np.random.default_rng(seed)
    heading = np.cumsum(rng.normal(0, 0.15, 15))
    corners = np.cumsum(0.7 * np.stack([np.cos(heading), np.sin(heading)], axis=1), axis=0)
    path = trajectory(corners, AHEAD)
    start = path.stations[rng.integers(0, 15)]
    point = corners[rng.integers(0, 15)] + rng.normal(0, 2.5, 2)
    along = np.append(np.arange(start, path.length_m, 1e-3), path.length_m)
    walked = np.stack([np.interp(along, path.along_m, path.corners[:, axis]) for axis in (0, 1)], axis=1)
    inside = np.hypot(*(walked - point).T) <= 1.5
    found = pathified_distance_m(path, np.array([start]), point[None], 1.5)[0]
    if inside.any():
        assert found == pytest.approx(along[np.argmax(inside)] - start, abs=2e-3)
    else:
        assert found > 1e6 or np.hypot(*(walked - point).T).min() < 1.5 + 1e-3  # a graze between two steps


@given(SEEDS)
@settings(deadline=None)
def test_a_projected_point_is_found_again(seed: int) -> None:
    """Project a world point into a random camera; the Localizer must bring it back."""
    rng = np.random.default_rng(seed)
    quaternion = rng.normal(size=4)
    quaternion /= np.linalg.norm(quaternion)
    w, x, y, z = quaternion
    rotation = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = rotation, rng.normal(0, 10, 3)
    in_camera = np.array([rng.uniform(-3, 3), rng.uniform(-2, 2), rng.uniform(1, 30)])
    world = rotation @ in_camera + pose[:3, 3]
    camera = np.array([[500.0, 520.0, 319.5, 239.5, 640, 480]])
    u = 500 * in_camera[0] / in_camera[2] + 319.5 + 0.5  # pixel 0 is centred at 0.5 of a box
    v = 520 * in_camera[1] / in_camera[2] + 239.5 + 0.5
    box = np.array([[u - 7, v - 20, u + 7, v + 20]])
    np.testing.assert_allclose(localize(box, in_camera[2:], camera, pose[None])[0], world, atol=1e-9)


def test_what_has_no_depth_has_no_place() -> None:
    camera, pose = np.array([[500.0, 500, 320, 240]]), np.eye(4)[None]
    for depth in (np.nan, np.inf):
        assert np.isnan(localize(np.array([[0, 0, 9, 9.0]]), np.array([depth]), camera, pose)).all()


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ({"control_radius_m": 2.0}, "safety_radius_m"),
        ({"control_radius_m": 1.0, "safety_radius_m": 2.0}, "<= control_radius_m"),
        ({"control_radius_m": 2, "safety_radius_m": 1, "profile": "orchard-tracktor"}, "orchard-tractor"),
        ({"control_radius_m": 2, "safety_radius_m": 1, "step": 1}, "step_s"),
        ({"control_radius_m": "2", "safety_radius_m": 1}, "a number"),
        ({"control_radius_m": 2, "safety_radius_m": 1, "min_acceleration_mps2": 4.5}, "it brakes"),
    ],
)
def test_a_robot_that_cannot_be(section: dict[str, object], words: str) -> None:
    with pytest.raises(StudyError) as error:
        read_robot(section)
    assert words in str(error.value)


def test_the_papers_vehicle_is_the_default() -> None:
    told = read_robot({"profile": "orchard-tractor", "control_radius_m": 2, "safety_radius_m": 1})
    assert told == Robot(control_radius_m=2, safety_radius_m=1)

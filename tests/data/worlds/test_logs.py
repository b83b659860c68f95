"""How logs go: careful driving, people who walk without jumps, splits that share nothing."""

from __future__ import annotations

import functools
from collections.abc import Callable
from itertools import pairwise
from typing import Literal

import numpy as np
import pytest

from adverse.data.rig import rotation
from adverse.data.worlds import orchard
from adverse.data.worlds.orchard import orchard_log
from adverse.data.worlds.people import STILL
from adverse.data.worlds.rendering import render
from adverse.data.worlds.scripts import FRAME_RATE_HZ, Script, Walker, quaternion, stereo_camera
from adverse.data.worlds.street import street_log
from adverse.robot.obstacles import pathified_distance_m
from adverse.robot.playback import drive
from adverse.robot.profile import Robot
from adverse.robot.trajectory import trajectory
from adverse.seeds import generator
from adverse.types import LogKind
from data.worlds.views import SEED

COMFORT = 1.9
"""m/s^2: harder braking is felt as an emergency; the robot itself may brake at 4.572."""


@functools.cache
def logs() -> dict[str, Script]:
    names = [f"test/{number}" for number in range(30)]
    return {name: orchard_log(SEED, name, "positive") for name in names}


@pytest.mark.parametrize("number", range(30))
def test_the_driver_stops_before_people_in_the_way_and_brakes_gently(number: int) -> None:
    log = logs()[f"test/{number}"]
    times = np.linspace(0, log.drive.duration_s, 400)
    way = np.array([log.drive.travelled_m(time) for time in times])
    speed = np.gradient(way, times)
    assert speed[:50] == pytest.approx(orchard.SPEED, rel=1e-6)
    assert (np.diff(way) > -1e-12).all()
    assert np.abs(np.gradient(speed, times)).max() < COMFORT
    if log.drive.brake_s:
        assert speed[-1] < 0.05
        end = log.drive.pose(log.drive.duration_s)[:2, 3]
        first = log.actors[0].centre_m(log.drive.duration_s)
        gap = np.hypot(*(np.array(first[:2]) - end))
        near, far = orchard.NEAR_M, orchard.GAP_M
        assert near[0] <= gap + 1e-9 <= near[1] + 2e-9 or far[0] <= gap
        assert abs(first[1] - log.drive.aside_m(first[0])) < orchard.ROBOT["safety_radius_m"]


def test_some_logs_end_inside_the_control_radius_and_nobody_is_ever_inside_the_safety_radius() -> None:
    control_m, safety_m = orchard.ROBOT["control_radius_m"], orchard.ROBOT["safety_radius_m"]
    inside = 0
    for log in logs().values():
        times = log.drive.times_s()
        for actor in log.actors:
            away = [np.hypot(*(actor.centre_m(t)[:2] - log.drive.pose(t)[:2, 3])) for t in times]
            assert min(away) > safety_m
        last = np.hypot(*(log.actors[0].centre_m(times[-1])[:2] - log.drive.pose(times[-1])[:2, 3]))
        inside += bool(log.drive.brake_s and last < control_m)
    stops = sum(log.drive.brake_s > 0 for log in logs().values())
    assert 0.15 * stops < inside < 0.6 * stops


@pytest.mark.parametrize("hold", ["obstacle", "speed"])
def test_the_truth_stops_before_people_in_the_way(hold: Literal["obstacle", "speed"]) -> None:
    """With `hold: speed` only those near enough on the last image: its safe speed is never 0 otherwise."""
    robot = Robot(**orchard.ROBOT, hold=hold)
    for log in logs().values():
        if not log.drive.brake_s:
            continue
        times = np.array(log.drive.times_s())
        poses = np.array([log.drive.pose(t) for t in times])
        path = trajectory(poses[:, :2, 3], poses[:, :2, 2], time_s=times)
        people = np.array([log.actors[0].centre_m(t)[:2] for t in times])
        away = pathified_distance_m(path, path.stations, people, robot.control_radius_m)
        true = (path.stations + away)[:, None]
        nobody = np.full(len(times), np.inf)
        stop_m = drive(path.stations, true, nobody, path.length_m, robot, positive=True).stop_m[0]
        if hold == "obstacle":
            assert stop_m <= path.length_m
        else:
            assert np.isfinite(stop_m) == (away == 0).any()


def test_who_is_stopped_for_at_arms_length_is_in_the_last_picture() -> None:
    camera = stereo_camera(80, 60)
    near = [
        (name, log)
        for name, log in logs().items()
        if log.drive.brake_s and log.actors[0].centre_m(0)[0] < log.drive.length_m + orchard.NEAR_M[1]
    ]
    for name, log in near[:4]:
        time_s = log.drive.times_s()[-1]
        seen = render(log.scene(), camera, log.drive.pose(time_s), time_s, generator(SEED, name))
        person = next(thing for thing in seen.things if thing.id == 1)
        assert person.pixels > 0.5 * person.full_pixels
        assert person.visible[3] - person.visible[1] > camera.height / 4
    assert len(near) >= 4


def test_logs_have_people_in_the_way_beside_it_walking_and_still() -> None:
    postures = {actor.posture for log in logs().values() for actor in log.actors if isinstance(actor, Walker)}
    assert postures >= {"walking", *STILL}
    stops = [log.drive.brake_s > 0 for log in logs().values()]
    assert 0.5 < np.mean(stops) < 1
    assert {len(log.actors) for log in logs().values()} == {1, 2}


def test_walking_people_move_continuously() -> None:
    walkers = [log.actors[0] for log in logs().values()]
    walking = [one for one in walkers if isinstance(one, Walker) and one.posture == "walking"]
    assert len(walking) > 5
    for walker in walking:
        step_s = 1 / FRAME_RATE_HZ
        places = [walker.solids(number * step_s).centre_m for number in range(30)]
        moves = np.array([np.sqrt(((b - a) ** 2).sum(axis=1)) for a, b in pairwise(places)])
        speed = float(np.hypot(*walker.velocity))
        assert moves.max() < 3.2 * speed * step_s  # a foot swings at about three times the walking speed
        middle = np.array([walker.ground_m(number * step_s) for number in range(30)])
        assert np.hypot(*np.diff(middle, axis=0).T) == pytest.approx(speed * step_s)
        halves = [walker.solids(number * step_s / 8).centre_m for number in range(9)]
        assert np.abs(np.diff(halves, axis=0)).max() < moves.max() / 3


def test_feet_touch_the_ground_in_every_posture() -> None:
    for log in logs().values():
        for actor in log.actors:
            solids = actor.solids(0.3)
            bottom = (solids.centre_m[:, 2] - solids.reach_m).min()
            assert -0.12 < bottom < 0.12


@pytest.mark.parametrize("draw", [orchard_log, street_log])
def test_negative_logs_have_nobody(draw: Callable[[int, str, LogKind], Script]) -> None:
    assert any(isinstance(actor, Walker) for actor in draw(SEED, "test/n", "positive").actors)
    assert not any(isinstance(actor, Walker) for actor in draw(SEED, "test/n", "negative").actors)


def test_seed_split_and_kind_all_change_the_geometry_and_nothing_else_does() -> None:
    base = orchard_log(1, "test/a", "positive")
    again = orchard_log(1, "test/a", "positive")
    for one, two in zip(base.still, again.still, strict=True):
        np.testing.assert_array_equal(one, two)
    for other in (
        orchard_log(2, "test/a", "positive"),
        orchard_log(1, "train/a", "positive"),
        orchard_log(1, "test/a", "negative"),
    ):
        assert not np.isin(other.still.centre_m[:, 0], base.still.centre_m[:, 0]).any()


def test_poses_survive_as_quaternions() -> None:
    turn = logs()["test/0"].drive.pose(1.0)[:3, :3]
    np.testing.assert_allclose(rotation(np.array(quaternion(turn))), turn, atol=1e-12)
    assert np.linalg.det(turn) == pytest.approx(1)

"""Closed forms of the controller, and a plain Python loop that must agree to the bit."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adverse.robot.clearance import clearance_m
from adverse.robot.playback import drive, trace
from adverse.robot.profile import Robot
from adverse.robot.trajectory import Trajectory
from plain_playback import plain_clearance, plain_loop, random_log

ROBOT = Robot(control_radius_m=2.0, safety_radius_m=1.0)
NOBODY = np.full(1, np.inf)


def one(obstacle: float, end: float = 40.0, robot: Robot = ROBOT, *, positive: bool = True) -> Any:
    """Drive with one image at the start that shows an obstacle at a place."""
    return drive(np.zeros(1), np.array([[obstacle]]), NOBODY, end, robot, positive=positive)


@pytest.mark.parametrize("distance", [1.0, 1.5, 2.0, 5.0, 9.99, 17.3, 30.0])
def test_stops_at_the_obstacle(distance: float) -> None:
    """From 0.984 m on, whatever the step."""
    for step in (0.05, 0.013, 0.4):
        stop = one(distance, robot=Robot(2.0, 1.0, step_s=step)).stop_m[0]
        assert stop == pytest.approx(distance, abs=1e-6)


def test_a_sudden_obstacle_takes_the_braking_distance() -> None:
    assert one(0.0).stop_m[0] == pytest.approx(3**2 / (2 * 4.572), abs=1e-9)  # 0.984 m
    assert one(0.5).stop_m[0] == pytest.approx(0.98425, abs=1e-5)


def test_the_time_to_a_stop_is_the_analytic_one() -> None:
    assert one(20.0).time_s[0] == pytest.approx((20.0 - 0.98425197) / 3 + 3 / 4.572, abs=1e-6)


def test_a_fine_literal_integration_converges_to_it() -> None:
    """Euler with a step of 0.1 ms: speed towards the safe speed at the full rate, as the paper says it."""
    rng = np.random.default_rng(4)
    stations = np.concatenate([[0.0], np.cumsum(rng.uniform(0.2, 0.8, 30))])
    obstacles = np.where(rng.random(31) < 0.4, stations + rng.uniform(0.5, 5, 31), np.inf)
    end = float(stations[-1])
    robot = Robot(2.0, 1.0, step_s=1e-3)
    run = drive(stations, obstacles[:, None], np.full(31, np.inf), end, robot, positive=False)
    x, v, t, image, obstacle, stops, dt = 0.0, 3.0, 0.0, -1, math.inf, 0, 1e-4
    while x < end:
        while image + 1 < 31 and stations[image + 1] <= x:
            image += 1
            obstacle = obstacles[image]
        safe = min(math.sqrt(2 * 4.572 * max(obstacle - x, 0)), 3.0)
        if v == 0 and obstacle - x <= 1e-3:
            stops, obstacle = stops + 1, math.inf
        v = min(v + 1.524 * dt, safe) if safe > v else max(v - 4.572 * dt, safe)
        x, t = x + v * dt, t + dt
        if v < 1e-3 and obstacle - x < 2e-3:
            v = 0.0
    assert run.stops[0] == stops
    assert run.time_s[0] == pytest.approx(t, rel=5e-3)


def test_nothing_in_the_way_is_full_speed_to_the_end() -> None:
    run = one(np.inf, end=33.0, positive=False)
    assert run.time_s[0] == pytest.approx(11.0, abs=1e-12)
    assert (run.stops[0], math.isnan(run.stop_m[0])) == (0, True)


def test_always_firing_is_the_known_stop_and_go() -> None:
    """Every image shows an obstacle at its own place: brake from v, stop, start, brake at the next image."""
    gap, images = 6.0, 8
    stations = gap * np.arange(images, dtype=np.float64)
    run = drive(stations, stations[:, None], np.full(images, np.inf), gap * images, ROBOT, positive=False)
    up, down, top = 1.524, 4.572, 3.0
    rolled = top**2 / (2 * down)  # first stop, from full speed
    time = top / down
    for number in range(1, images):
        left = gap * number - rolled
        ramp = top**2 / (2 * up)
        if left > ramp:
            speed, spent = top, top / up + (left - ramp) / top
        else:
            speed, spent = math.sqrt(2 * up * left), math.sqrt(2 * left / up)
        time += spent + speed / down
        rolled = gap * number + speed**2 / (2 * down)
    left = gap * images - rolled
    ramp = top**2 / (2 * up)
    time += math.sqrt(2 * left / up) if left < ramp else top / up + (left - ramp) / top
    assert run.stops[0] == images
    assert run.time_s[0] == pytest.approx(time, rel=0.02)
    fine = drive(
        stations,
        stations[:, None],
        np.full(images, np.inf),
        gap * images,
        Robot(2, 1, step_s=1e-3),
        positive=False,
    )
    assert fine.time_s[0] == pytest.approx(time, rel=1e-3)


def test_holding_the_speed_is_the_papers_literal_reading() -> None:
    """With one image only, a constant safe speed above zero never becomes a stop."""
    literal = Robot(2.0, 1.0, hold="speed")
    run = one(0.5, end=10, robot=literal)
    assert math.isnan(run.stop_m[0])
    assert one(0.0, end=10, robot=literal).stop_m[0] == pytest.approx(0.98425, abs=1e-5)


def test_entering_the_safety_radius_while_moving_is_a_violation() -> None:
    late = drive(np.zeros(1), np.array([[5.0, np.inf]]), np.array([6.0]), 12.0, ROBOT, positive=True)
    assert late.violated.tolist() == [False, True]


@pytest.mark.parametrize("step", [0.05, 0.013, 0.4])
@pytest.mark.parametrize("hold", ["obstacle", "speed"])
def test_the_speed_at_the_safety_radius_is_the_analytic_one(
    step: float, hold: Literal["obstacle", "speed"]
) -> None:
    """Seen when it is too late, at 0: braking from 3 m/s at once, which takes 0.984 m."""
    robot = Robot(2.0, 1.0, step_s=step, hold=hold)
    for person in (0.0, 0.2, 0.5, 0.9, 0.98):
        run = drive(np.zeros(1), np.zeros((1, 1)), np.array([person]), 20.0, robot, positive=True)
        assert run.speed_inside_mps[0] == pytest.approx(math.sqrt(9 - 2 * 4.572 * person), abs=1e-9)
        assert run.violated[0]
    before = drive(np.zeros(1), np.zeros((1, 1)), np.array([0.985]), 20.0, robot, positive=True)
    assert (before.speed_inside_mps[0], before.violated[0]) == (0.0, False)
    blind = drive(np.zeros(1), np.full((1, 1), np.inf), np.array([19.9]), 20.0, robot, positive=True)
    assert blind.speed_inside_mps[0] == pytest.approx(3.0)


def test_speeding_up_inside_the_safety_radius_counts() -> None:
    """It brakes for what one image shows, and the next one, inside the radius, shows nothing."""
    stations, obstacle, person = np.array([0.0, 0.9]), np.array([0.0, np.inf]), np.array([0.5, 0.5])
    run = drive(stations, obstacle[:, None], person, 20.0, ROBOT, positive=True)
    assert math.isnan(run.stop_m[0])
    assert run.speed_inside_mps[0] == pytest.approx(3.0)


@given(st.integers(0, 5000), st.booleans(), st.booleans())
@settings(deadline=None, max_examples=60)
def test_a_trace_violates_where_the_run_does(seed: int, positive: bool, literal: bool) -> None:  # noqa: FBT001
    stations, obstacles, person = random_log(seed, levels=1)
    end = float(stations[-1]) + (10 if positive else 0)
    robot = Robot(2.0, 1.0, hold="speed" if literal else "obstacle")
    run = drive(stations, obstacles, person, end, robot, positive=positive)
    told = trace(stations, obstacles[:, 0], person, end, robot, positive=positive)
    assert told.violating.any() == run.violated[0]


@given(st.integers(0, 5000))
@settings(deadline=None, max_examples=60)
def test_clearance_is_that_of_looking_everywhere(seed: int) -> None:
    rng = np.random.default_rng(seed)
    corners = np.cumsum(rng.uniform([0.1, -0.3], [0.8, 0.3], (int(rng.integers(2, 12)), 2)), axis=0)
    along = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(corners, axis=0).T))])
    count = int(rng.integers(1, 8))
    stations = np.sort(rng.choice([0.0, *rng.uniform(0, along[-1], 5)], count))
    image = np.sort(rng.integers(0, count, int(rng.integers(0, 12))))
    points = rng.uniform([-1, -3], [8, 3], (len(image), 2))
    points[rng.random(len(image)) < 0.1] = np.nan
    reached = np.concatenate([rng.uniform(0, along[-1], 4), along[[0, -1]], stations[:1]])
    path = Trajectory(corners, along, stations, float(along[-1]))
    found = clearance_m(path, stations, image, points, reached)
    for place, away in zip(reached.tolist(), found.tolist(), strict=True):
        people = [
            [tuple(points[p]) for p in np.flatnonzero(image == n) if np.isfinite(points[p, 0])]
            for n in range(count)
        ]
        wanted = plain_clearance(corners, stations.tolist(), people, place, step=0.005)
        assert away == pytest.approx(wanted, abs=0.005)
        assert away <= wanted + 1e-9


def test_clearance_at_a_person_on_the_path_is_what_is_left_of_it() -> None:
    path = Trajectory(np.array([[0.0, 0], [20, 0]]), np.array([0.0, 20]), np.zeros(1), 10.0)
    person = np.array([[12.0, 0.0]])
    found = clearance_m(path, np.zeros(1), np.zeros(1, np.int64), person, np.array([9.5, 10, 11, 12, 20]))
    np.testing.assert_allclose(found, [2.5, 2, 1, 0, 0], atol=1e-12)
    nobody = clearance_m(path, np.zeros(1), np.zeros(0, np.int64), person[:0], np.array([20.0]))
    assert nobody.tolist() == [np.inf]


@given(st.integers(0, 5000), st.booleans(), st.booleans())
@settings(deadline=None, max_examples=60)
def test_equals_a_plain_loop(seed: int, positive: bool, literal: bool) -> None:  # noqa: FBT001
    stations, obstacles, person = random_log(seed, levels=5)
    end = float(stations[-1]) + (10 if positive else 0)
    robot = Robot(2.0, 1.0, hold="speed" if literal else "obstacle")
    found = drive(stations, obstacles, person, end, robot, positive=positive)
    for k in range(5):
        column = obstacles[:, k].tolist()
        wanted = plain_loop(stations.tolist(), column, person.tolist(), end, robot, positive=positive)
        got = (found.stop_m[k], found.time_s[k], found.stops[k], found.speed_inside_mps[k])
        np.testing.assert_array_equal(got, wanted)


def test_a_trace_tells_the_same_run() -> None:
    stations = 0.4 * np.arange(20, dtype=np.float64)
    obstacle = np.where(np.arange(20) > 5, 12.0, np.inf)
    run = drive(stations, obstacle[:, None], np.full(20, np.inf), 17.6, ROBOT, positive=True)
    told = trace(stations, obstacle, np.full(20, np.inf), 17.6, ROBOT, positive=True)
    assert told.position_m[-1] == run.stop_m[0]
    assert told.time_s[-1] == pytest.approx(run.time_s[0], abs=1e-12)
    assert told.stopped[-1]
    assert (np.diff(told.position_m) >= 0).all()
    assert (told.speed_mps <= 3.0).all()

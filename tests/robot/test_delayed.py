"""A robot that learns late: latency, lost images and a tracker, by closed forms and slow references."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from adverse.errors import StudyError
from adverse.levels.context import Context, level_input
from adverse.levels.contract import THRESHOLDS, made_up_input
from adverse.levels.loop import input_obstacles_m, loop
from adverse.robot.playback import drive, trace
from adverse.robot.profile import Robot, read_robot
from adverse.robot.tracker import tracked_m

ROBOT = Robot(2.0, 1.0, max_speed_mps=3.0)
BRAKING_M = 3.0**2 / (2 * 4.572)
END_M = 60.0


def _late(latency_s: float, seen_at_m: float, obstacle_m: float, *, hold: str = "obstacle") -> float:
    """Return where a robot stops that sees one obstacle in one image, and nothing in later ones' stead."""
    robot = replace(ROBOT, latency_s=latency_s, hold=hold)  # type: ignore[arg-type]
    stations = np.array([0.0, seen_at_m])
    obstacles = np.array([[math.inf], [obstacle_m]])
    driven = drive(
        stations, obstacles, np.full(2, math.inf), END_M, robot, positive=True, arrives=np.ones(2, bool)
    )
    return float(driven.stop_m[0])


@pytest.mark.parametrize("latency_s", [0.0, 0.05, 0.1, 0.2, 0.33, 1.0])
def test_latency_adds_speed_times_latency_to_the_stopping_distance(latency_s: float) -> None:
    seen_at_m = 3.0 * 0.05 * 40  # passed at a whole step, so that the moment is known exactly
    stop_m = _late(latency_s, seen_at_m, seen_at_m + 0.5)  # nearer than it can brake
    assert stop_m == pytest.approx(seen_at_m + 3.0 * latency_s + BRAKING_M, abs=1e-6)


@pytest.mark.parametrize("latency_s", [0.0, 0.2, 1.0])
def test_latency_costs_nothing_where_the_obstacle_is_far(latency_s: float) -> None:
    far_m = 6.0 + 3.0 * latency_s + BRAKING_M + 2
    assert _late(latency_s, 6.0, far_m) == pytest.approx(far_m, abs=1e-5)


@pytest.mark.parametrize("hold", ["obstacle", "speed"])
@pytest.mark.parametrize("positive", [True, False])
def test_without_latency_and_losses_it_is_the_robot_that_knows_at_once(hold: str, positive: bool) -> None:  # noqa: FBT001
    rng = np.random.default_rng(5)
    robot = replace(ROBOT, hold=hold)  # type: ignore[arg-type]
    for _ in range(20):
        stations = np.sort(rng.uniform(0, 40, 60))
        obstacles = np.where(
            rng.random((60, 7)) < 0.15, stations[:, None] + rng.uniform(0, 12, (60, 7)), np.inf
        )
        close = np.where(rng.random(60) < 0.2, stations + rng.uniform(0, 5, 60), np.inf)
        given = (stations, obstacles, close, 42.0, robot)
        once, late = (
            drive(*given, positive=positive, arrives=arrives) for arrives in (None, np.ones(60, bool))
        )
        for one, other in zip(once, late, strict=True):
            np.testing.assert_allclose(other, one, rtol=0, atol=1e-9)


def _reference(
    stations: Sequence[float],
    arrives: Sequence[bool],
    obstacles: Sequence[float],
    latency_s: float,
    dt: float,
) -> float:
    """Return where a robot stops, by tiny steps of time and the words of the paper alone."""
    position, speed, time = 0.0, 3.0, 0.0
    under_way: list[tuple[float, float]] = []
    passed, obstacle = 0, math.inf
    while position < END_M:
        while passed < len(stations) and stations[passed] <= position:
            if arrives[passed]:
                under_way.append((time + latency_s, obstacles[passed]))
            passed += 1
        while under_way and under_way[0][0] <= time:
            obstacle = under_way.pop(0)[1]
        safe = math.sqrt(max(2 * 4.572 * (obstacle - position), 0)) if obstacle < math.inf else 3.0
        wanted = min(safe, 3.0)
        speed = max(wanted, speed - 4.572 * dt) if speed > wanted else min(wanted, speed + 1.524 * dt)
        if speed < 5e-3 and wanted < 5e-3:
            return position
        position += speed * dt
        time += dt
    return math.nan


@pytest.mark.parametrize("latency_s", [0.0, 0.3])
def test_losses_and_latency_agree_with_a_slow_reference(latency_s: float) -> None:
    rng = np.random.default_rng(11)
    robot = replace(ROBOT, latency_s=latency_s, step_s=0.005)
    compared = 0
    for _ in range(12):
        stations = np.arange(0, 30, 0.4)
        person = rng.uniform(8, 28)
        seen = rng.random(len(stations)) < 0.5
        obstacles = np.where(seen & (stations > person - 9), person, np.inf)
        arrives = rng.random(len(stations)) < 0.7
        driven = drive(
            stations,
            obstacles[:, None],
            np.full(len(stations), np.inf),
            END_M,
            robot,
            positive=True,
            arrives=arrives,
        )
        slow = _reference(stations.tolist(), arrives.tolist(), obstacles.tolist(), latency_s, 2e-4)
        assert math.isnan(slow) == bool(np.isnan(driven.stop_m[0]))
        if not math.isnan(slow):
            assert driven.stop_m[0] == pytest.approx(slow, abs=0.03)
            compared += 1
    assert compared > 3


def test_a_trace_ends_where_the_drive_does() -> None:
    robot = replace(ROBOT, latency_s=0.4)
    stations, arrives = np.arange(0, 20, 0.5), np.arange(40) % 3 != 0
    obstacles = np.where(stations > 6, 13.0, np.inf)
    given = (stations, np.full(40, np.inf), END_M, robot)
    steps = trace(given[0], obstacles, *given[1:], positive=True, arrives=arrives)
    driven = drive(given[0], obstacles[:, None], *given[1:], positive=True, arrives=arrives)
    assert steps.position_m[-1] == pytest.approx(float(driven.stop_m[0]))
    assert steps.stopped[-1]


def _slow_tracker(
    frames: list[list[tuple[int, tuple[float, float], float]]], level: int, coast: int, gate: float
) -> list[float]:
    tracks: list[list[object]] = []
    nearest = []
    for detections in frames:
        left = [one for one in detections if one[0] <= level]
        free = list(range(len(tracks)))
        pairs = sorted(
            (math.dist(tracks[t][0], one[1]), t, n)  # type: ignore[arg-type]
            for t in free
            for n, one in enumerate(left)
        )
        used: set[int] = set()
        for away, t, n in pairs:
            if away <= gate and t in free and n not in used:
                tracks[t] = [left[n][1], left[n][2], 0]
                free.remove(t)
                used.add(n)
        for t in free:
            tracks[t][2] += 1  # type: ignore[operator]
        tracks = [one for one in tracks if one[2] <= coast]  # type: ignore[operator]
        tracks += [[one[1], one[2], 0] for n, one in enumerate(left) if n not in used]
        nearest.append(min((float(one[1]) for one in tracks), default=math.inf))  # type: ignore[arg-type]
    return nearest


@pytest.mark.parametrize("coast", [1, 3])
def test_the_tracker_is_that_of_a_slow_reference(coast: int) -> None:
    rng = np.random.default_rng(coast)
    frames: list[list[tuple[int, tuple[float, float], float]]] = []
    for n in range(60):
        people = [(5 + 0.1 * n, 0.0), (9.0, 1.0 - 0.05 * n)]
        seen = [p for p in people if rng.random() < 0.6]
        seen += [tuple(rng.uniform(0, 12, 2))] if rng.random() < 0.3 else []
        noisy = [(x + rng.normal(0, 0.2), y + rng.normal(0, 0.2)) for x, y in seen]
        frames.append([(int(rng.integers(3)), p, p[0] if abs(p[1]) < 1.5 else math.inf) for p in noisy])
    flat = [one for frame in frames for one in frame]
    found = tracked_m(
        np.concatenate([[0], np.cumsum([len(frame) for frame in frames])]).astype(np.int64),
        np.array([one[0] for one in flat]),
        np.array([one[1] for one in flat]),
        np.array([one[2] for one in flat]),
        3,
        coast_frames=coast,
        association_m=0.8,
    )
    for level in range(3):
        assert found[:, level].tolist() == _slow_tracker(frames, level, coast, 0.8)


def _made_up(robot: Robot, seed: int = 0) -> tuple[Context, NDArray[np.float64]]:
    given = made_up_input()
    context = Context(given.frames, given.truth, given.context.localized_m, robot, seed=seed)
    again = level_input(context, given.matched, THRESHOLDS, given.counted)
    outcomes = loop(again)["annotated"]
    return context, np.concatenate([outcomes.hits, outcomes.cost, input_obstacles_m(again)])


def test_a_study_level_without_any_of_it_is_what_it_was() -> None:
    plain = Robot(2.0, 1.0)
    assert plain.plain().keys() == {name for name in plain.plain() if "latency" not in name}
    assert "latency_s" not in plain.plain()
    assert replace(plain, latency_s=0.2).plain()["latency_s"] == 0.2
    _, first = _made_up(plain)
    _, second = _made_up(replace(plain, association_m=5.0))  # of a tracker that there is not
    assert first.tobytes() == second.tobytes()


def test_lost_frames_are_drawn_by_log_and_those_of_a_lower_rate_are_among_them() -> None:
    few, many = (_made_up(Robot(2.0, 1.0, drop_rate=rate))[0].lost_frames for rate in (0.2, 0.6))
    assert few.any()
    assert not (few & ~many).any()
    assert many.mean() == pytest.approx(0.6, abs=0.2)
    other = _made_up(Robot(2.0, 1.0, drop_rate=0.6), seed=1)[0].lost_frames
    assert (other != many).any()


def test_latency_makes_stops_later_and_a_tracker_bridges_what_is_missed() -> None:
    _, now = _made_up(Robot(2.0, 1.0))
    _, late = _made_up(Robot(2.0, 1.0, latency_s=2.0))
    assert late[:6].sum() < now[:6].sum()
    _, tracked = _made_up(Robot(2.0, 1.0, coast_frames=2))
    assert np.isfinite(tracked[12:]).sum() > np.isfinite(now[12:]).sum()


@pytest.mark.parametrize(
    ("name", "value"),
    [("latency_s", -0.1), ("latency_s", 61), ("drop_rate", 1), ("coast_frames", 1.5), ("association_m", 0)],
)
def test_what_cannot_be_is_refused(name: str, value: float) -> None:
    with pytest.raises(StudyError, match=name):
        read_robot({"control_radius_m": 2, "safety_radius_m": 1, name: value})

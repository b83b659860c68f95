"""The located, path and loop levels against their definitions, followed image by image and level by level."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from adverse.levels.context import TruePlaces
from adverse.levels.located import located_outcomes
from adverse.levels.loop import loop_outcomes, obstacles_m, playbacks
from adverse.levels.path import path_events
from adverse.levels.places import NO_POSE, LogPath, Places, log_paths, path_distances_m, stations_m
from adverse.robot.profile import Robot
from adverse.robot.trajectory import BACK_AND_FORTH
from adverse.store.tables import Answers, Frames, TruthTable
from levels.scenes import random_scene, reordered
from noisy_poses import Case, driven_m, noise, on_course, people
from plain_playback import plain_clearance, plain_loop

SEEDS = st.integers(0, 10_000)
THRESHOLDS = np.array([1.1, 0.9, 0.7, 0.5, 0.1, -np.inf], np.float32)
ROBOT = Robot(control_radius_m=1.5, safety_radius_m=0.7)
FACING = np.array([[0.0, 0, 1], [-1, 0, 0], [0, -1, 0]])


def driven_scene(seed: int) -> tuple[Answers, Places, TruthTable, Places, Frames, NDArray[np.bool_]]:
    """Return a random scene on curved drives, its things at random places near the path, some unknown."""
    answers, truth, frames = random_scene(seed, frames=24, logs=3)
    rng = np.random.default_rng(seed)
    poses = np.tile(np.eye(4), (24, 1, 1))
    for log in range(3):
        rows = np.flatnonzero(frames.log == log)
        heading = np.cumsum(rng.normal(0, 0.05, len(rows)))
        steps = rng.uniform(0.2, 0.9, len(rows))[:, None] * np.stack([np.cos(heading), np.sin(heading)], 1)
        poses[rows, :3, :3] = FACING
        poses[rows, :2, 3] = np.cumsum(steps, axis=0)
    frames = replace(frames, poses=poses)
    frame = np.repeat(answers.frame, np.diff(answers.offsets))

    def places(at: NDArray[np.int64]) -> Places:
        points = poses[at, :2, 3] + np.stack([rng.uniform(-1, 12, len(at)), rng.normal(0, 1.5, len(at))], 1)
        points[rng.random(len(at)) < 0.1] = np.nan
        away = points - poses[at, :2, 3]
        return Places(at, points, np.hypot(*away.T))

    true = places(truth.frame)
    detected = places(frame)
    for d, f in enumerate(frame):  # half of the detections near a true place
        mine = np.flatnonzero(truth.frame == f)
        if len(mine) and rng.random() < 0.5:
            detected.points_m[d] = true.points_m[rng.choice(mine)] + rng.normal(0, 0.6, 2)
    away = detected.points_m - poses[frame, :2, 3]
    return (
        answers,
        Places(frame, detected.points_m, np.hypot(*away.T)),
        truth,
        true,
        frames,
        rng.random(24) < 0.9,
    )


def is_positive(log: int, truth: TruthTable, frames: Frames) -> bool:
    return bool((frames.log[truth.frame] == log).any())


@given(SEEDS)
@settings(deadline=None, max_examples=50)
def test_located(seed: int) -> None:
    answers, detected, truth, true, frames, counted = driven_scene(seed)
    found = located_outcomes(answers, detected, truth, true, frames, THRESHOLDS, counted)
    for log in range(3):
        mine = [f for f in range(24) if frames.log[f] == log and counted[f]]
        near = [
            t
            for t in range(len(truth.frame))
            if truth.frame[t] in mine and not truth.ignore[t] and true.range_m[t] <= 10
        ]
        assert found.truths[log] == len(near)
        for k, threshold in enumerate(THRESHOLDS):
            hits, alarms = 0, 0
            for f in mine:
                seen = [d for d in np.flatnonzero(detected.frame == f) if answers.scores[d] >= threshold]
                free = {t for t in near if truth.frame[t] == f}
                seen.sort(key=lambda d: (-answers.scores[d], *detected.points_m[d]))
                for d in seen:
                    gaps = {t: np.hypot(*(detected.points_m[d] - true.points_m[t])) for t in free}
                    gaps = {t: gap for t, gap in gaps.items() if gap <= 1}
                    if gaps:
                        free.remove(min(gaps, key=lambda t: gaps[t]))
                        hits += 1
                if not is_positive(log, truth, frames):
                    alarms += any(detected.range_m[d] <= 10 for d in seen)
            assert found.hits[log, k] == hits
            assert found.cost[log, k] == alarms


@given(SEEDS, st.sampled_from([None, 0.0, 0.3]))
@settings(deadline=None, max_examples=50)
def test_path(seed: int, tolerance_m: float | None) -> None:
    robot = replace(ROBOT, stop_tolerance_m=tolerance_m)
    headline = 1.5 - 0.7 if tolerance_m is None else tolerance_m
    answers, detected, truth, true, frames, counted = driven_scene(seed)
    paths = log_paths(frames)
    seen_m = path_distances_m(frames, paths, detected, ROBOT.control_radius_m)
    true_m = path_distances_m(frames, paths, true, ROBOT.control_radius_m)
    events = path_events(
        answers,
        seen_m,
        truth,
        true_m,
        frames,
        THRESHOLDS,
        counted,
        paths,
        tolerance_m=robot.tolerance_m,
    )
    found = events.outcomes(len(THRESHOLDS))
    at_0 = events.with_hits("at_0").outcomes(len(THRESHOLDS))
    np.testing.assert_array_equal(found.with_hits("at_0").hits, at_0.hits)
    for log in range(3):
        mine = [f for f in range(24) if frames.log[f] == log and counted[f]]
        for k, threshold in enumerate(THRESHOLDS):

            def nearest(f: int) -> float:
                rows = (truth.frame == f) & ~truth.ignore
                return float(np.nanmin(true_m[rows], initial=np.inf))

            def seen(f: int, low: float, high: float, limit: float = threshold) -> bool:
                rows = (detected.frame == f) & (answers.scores >= limit)
                return bool(((seen_m[rows] >= low) & (seen_m[rows] < high)).any())

            def right(f: int | None, late: float) -> bool:
                return (
                    f is not None and np.isfinite(nearest(f)) and seen(f, 0, nearest(f) + late + 1e-4 + 1e-12)
                )

            hits, strict_hits, images, alarms = 0, 0, 0, 0
            for at, f in enumerate(mine):
                before = mine[at - 1] if at else None
                if nearest(f) < 5:
                    images += 1
                    again = before if nearest(f) >= 2 else None
                    hits += right(f, headline) or right(again, headline)
                    strict_hits += right(f, 0) or right(again, 0)
                if not is_positive(log, truth, frames):
                    lenient = before is not None and seen(f, 2, 5) and seen(before, 2, 5)
                    alarms += seen(f, 0, 2) or lenient
            assert found.truths[log] == images
            assert (found.hits[log, k], at_0.hits[log, k]) == (hits, strict_hits)
            assert found.cost[log, k] == alarms


def nearest(
    one: LogPath, things: NDArray[np.int64], distances: NDArray[np.float64], kept: NDArray[np.bool_]
) -> list[float]:
    """Return the place on the path of the nearest thing of each image."""
    return [
        float(np.nanmin(station + distances[(things == row) & kept], initial=np.inf))
        for station, row in zip(one.path.stations, one.rows, strict=True)
    ]


@given(SEEDS)
@example(67)
@settings(deadline=None, max_examples=30)
def test_loop(seed: int) -> None:
    answers, detected, truth, true, frames, _ = driven_scene(seed)
    counted = np.ones(24, np.bool_)
    paths = log_paths(frames)
    radius = ROBOT.control_radius_m
    seen_m = path_distances_m(frames, paths, detected, radius)
    true_m = path_distances_m(frames, paths, true, radius)
    close_m = path_distances_m(frames, paths, true, ROBOT.safety_radius_m)
    seen_places = obstacles_m(answers, seen_m, stations_m(frames, paths), THRESHOLDS, counted)
    runs, left_out = playbacks(
        seen_places, truth, TruePlaces(true, true_m, close_m), frames, paths, counted, ROBOT
    )
    found = loop_outcomes(runs, left_out, frames, len(THRESHOLDS), ROBOT)
    never = 0
    for log in np.unique(frames.log):
        one = paths.found[int(log)]
        stations = one.path.stations.tolist()
        positive = is_positive(log, truth, frames)
        end = one.path.length_m if positive else one.path.recorded_m

        people = nearest(one, truth.frame, close_m, ~truth.ignore)
        told = nearest(one, truth.frame, true_m, ~truth.ignore)
        best = plain_loop(stations, told, people, end, ROBOT, positive=positive)
        if positive and np.isnan(best[0]):
            never += 1
            continue
        for k, threshold in enumerate(THRESHOLDS):
            obstacles = nearest(one, detected.frame, seen_m, answers.scores >= threshold)
            run = plain_loop(stations, obstacles, people, end, ROBOT, positive=positive)
            if positive:
                late = np.inf if np.isnan(run[0]) else run[0] - best[0]
                assert found.hits[log, k] == (late <= 1.5 - 0.7 + 1e-4)
                assert found.beside["at_0"][log, k] == (late <= 1e-4)
                assert found.beside["violations"][log, k] == (run[3] > 0)
                assert found.measured["lateness_m"][log, k] == late
                assert found.measured["speed_at_safety_radius_mps"][log, k] == run[3]
                reached = end if np.isnan(run[0]) else run[0]
                about = [true.points_m[(truth.frame == row) & ~truth.ignore].tolist() for row in one.rows]
                about = [[p for p in points if np.isfinite(p[0])] for points in about]
                away = plain_clearance(one.path.corners, stations, about, reached, step=0.02)
                near = found.measured["clearance_m"][log, k]
                assert near == pytest.approx(away, abs=0.02)
                if run[3] > 0:  # who was moving inside was inside
                    assert near < ROBOT.safety_radius_m + 1e-3
                elif near < ROBOT.safety_radius_m - 1e-3:  # seen in the last step before it stood
                    step_m = ROBOT.max_speed_mps * ROBOT.step_s
                    assert min(abs(reached - station) for station in stations) < step_m
            else:
                assert np.isnan([values[log, k] for values in found.measured.values()]).all()
                assert found.cost[log, k] == run[1]
                assert found.exposure[log] == best[1]
    assert found.left_out.get("the truth never stops", 0) == never


@given(SEEDS, SEEDS)
@settings(deadline=None, max_examples=20)
def test_storage_order_does_not_matter(seed: int, other: int) -> None:
    answers, detected, truth, true, frames, counted = driven_scene(seed)
    labelled = replace(answers, depths_m=np.arange(len(answers.scores), dtype=np.float32))
    again = reordered(labelled, other)
    order = again.depths_m.astype(np.int64)
    moved = Places(detected.frame[order], detected.points_m[order], detected.range_m[order])
    first = located_outcomes(answers, detected, truth, true, frames, THRESHOLDS, counted)
    second = located_outcomes(again, moved, truth, true, frames, THRESHOLDS, counted)
    np.testing.assert_array_equal(first.hits, second.hits)
    np.testing.assert_array_equal(first.cost, second.cost)


@pytest.mark.fault(29)
def test_frames_too_far_apart_are_not_played_back() -> None:
    answers, detected, truth, true, frames, counted = driven_scene(3)
    paths = log_paths(frames)
    along = path_distances_m(frames, paths, true, 1.5)
    seen = path_distances_m(frames, paths, detected, 1.5)
    strict = replace(ROBOT, max_gap_m=0.05)
    obstacles = obstacles_m(answers, seen, stations_m(frames, paths), THRESHOLDS, counted)
    places = TruePlaces(true, along, along)
    runs, left_out = playbacks(obstacles, truth, places, frames, paths, counted, strict)
    assert runs == {}
    assert left_out["frames too far apart"] == len(np.unique(frames.log))


def test_a_log_without_a_path_is_left_out_with_its_reason() -> None:
    answers, detected, truth, true, frames, _ = driven_scene(5)
    poses = frames.poses.copy()
    rows = [np.flatnonzero(frames.log == log) for log in range(3)]
    assert all(len(mine) >= 4 for mine in rows)
    poses[rows[0][1], 0, 3] = np.nan
    there_and_back = 3 - np.abs(np.linspace(-3, 4, len(rows[1])))
    poses[rows[1], 0, 3], poses[rows[1], 1, 3] = there_and_back, 0.0
    frames = replace(frames, poses=poses)
    paths = log_paths(frames)
    wanted = {NO_POSE: 1, BACK_AND_FORTH: 1}
    everything = np.ones(24, np.bool_)
    seen, along = (path_distances_m(frames, paths, places, 1.5) for places in (detected, true))
    outcomes = path_events(
        answers, seen, truth, along, frames, THRESHOLDS, everything, paths, tolerance_m=0.0
    )
    assert outcomes.left_out == wanted
    assert outcomes.truths[:2].tolist() == [0, 0]
    obstacles = obstacles_m(answers, seen, stations_m(frames, paths), THRESHOLDS, everything)
    places = TruePlaces(true, along, along)
    runs, left_out = playbacks(obstacles, truth, places, frames, paths, everything, ROBOT)
    assert set(runs) == {2}
    assert left_out == wanted


def test_noise_at_a_standstill_does_not_decide_who_is_safe() -> None:
    """Drive at a person and stop 3 m before: the truth stops there, and so does who sees the person."""
    case = Case(0.01, 3.0, 10.0, heading_deg=0.0)
    time_s, way = driven_m(case)
    count = len(time_s)
    for seed in range(10):
        poses = np.tile(np.eye(4), (count, 1, 1))
        poses[:, :3, :3] = FACING
        poses[:, :2, 3] = on_course(way, case.radius_m)[0] + noise(case, count, np.random.default_rng(seed))
        names = tuple(map(str, range(count)))
        cameras, test = np.full((count, 7), np.nan), np.ones(count, np.bool_)
        frames = Frames(names, ("log",), np.zeros(count, np.int64), test, poses, cameras, time_s)
        paths = log_paths(frames)
        at = np.arange(count)
        person = Places(at, np.tile(people(case)[0], (count, 1)), np.zeros(count))
        distance = path_distances_m(frames, paths, person, ROBOT.control_radius_m)
        place = paths.found[0].path.stations + distance
        np.testing.assert_allclose(place, 12 + 3 - ROBOT.control_radius_m, atol=0.1)

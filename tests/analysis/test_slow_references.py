"""Detection range, safe speed and stops in time, worked out again one person, step and log at a time."""

from __future__ import annotations

import math
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from adverse.analysis import detection_range
from adverse.analysis.headline import stop_costs, stopping
from adverse.analysis.loop import drive_log
from adverse.analysis.results import read_summary
from adverse.robot.profile import Robot
from adverse.seeds import generator
from adverse.store.finished_run import finished

STEP_M, WANTED, LEAST_PEOPLE = 2.5, 0.95, 2
TICK_S = 1e-4
ROBOT: dict[str, Any] = {"control_radius_m": 2.0, "safety_radius_m": 1.0}


def range_slowly(people: list[tuple[float, bool]]) -> float | None:
    """Walk away from the camera step by step, until a step has too few people or too few of them found."""
    steps = defaultdict(list)
    for distance_m, found in people:
        steps[math.floor(distance_m / STEP_M)].append((distance_m, found))
    enough = [step for step in sorted(steps) if len(steps[step]) >= LEAST_PEOPLE]
    if not enough:
        return None
    if not all(found for step in steps if step < enough[0] for _, found in steps[step]):
        return 0.0
    reach, step = 0.0, enough[0]
    while step in enough:
        seen = [distance_m for distance_m, found in steps[step] if found]
        if len(seen) < WANTED * len(steps[step]) - 1e-9:
            break
        reach, step = max(seen), step + 1
    return reach


def drawn_rows(monkeypatch: pytest.MonkeyPatch, seed: int) -> tuple[list[tuple[float, bool]], dict[str, Any]]:
    """Return people, most of the near ones found, and what is told of them as one setting of a run."""
    draw = generator(seed, "range")
    count = int(draw.integers(20, 120))
    away_m = draw.uniform(1.0, 20.0, count)
    found = draw.random(count) > np.where(away_m < draw.uniform(2.0, 18.0), 0.01, 0.5)
    ignored, log = draw.random(count) < 0.1, np.sort(draw.integers(0, 6, count))
    store: Any = SimpleNamespace(
        truth=SimpleNamespace(ignore=ignored, frame=np.arange(count)),
        frames=SimpleNamespace(log=log, logs=list("abcdef"), time_s=np.arange(count) * 0.25),
        run=SimpleNamespace(robot=ROBOT),
        groups={"haze": "mild"},
    )
    known = SimpleNamespace(counted=~ignored, found=found & ~ignored)
    monkeypatch.setattr(detection_range, "distances_m", lambda _: away_m)
    monkeypatch.setattr(detection_range, "found_people", lambda *_: {"haze": known})
    sut: Any = SimpleNamespace(sut="a")
    (row,) = detection_range.range_rows(store, sut, {}, None)
    pairs = zip(away_m.tolist(), found.tolist(), ignored.tolist(), strict=True)
    return [(distance, seen) for distance, seen, out in pairs if not out], row


def test_the_range_is_that_of_people_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    told = set()
    for seed in range(60):
        people, row = drawn_rows(monkeypatch, seed)
        assert row["people"] == len(people)
        assert row["range_m"] == pytest.approx(range_slowly(people)), seed
        told.add(row["range_m"])
    assert len(told) > 20


def stops_within(robot: Robot, speed_mps: float, blind_s: float, room_m: float) -> bool:
    """Drive on until the robot has seen, then brake, tick by tick; tell whether it halts within the room."""
    travelled_m, time_s = 0.0, 0.0
    while speed_mps > 0:
        braking = robot.min_acceleration_mps2 if time_s >= blind_s else 0.0
        after = max(speed_mps + braking * TICK_S, 0.0)
        travelled_m += (speed_mps + after) / 2 * TICK_S
        speed_mps, time_s = after, time_s + TICK_S
    return travelled_m <= room_m


def test_the_speed_of_a_range_is_the_highest_that_a_drive_survives(monkeypatch: pytest.MonkeyPatch) -> None:
    robot, driven = Robot(**ROBOT), 0
    for seed in range(8):
        _, row = drawn_rows(monkeypatch, seed)
        room_m = (row["range_m"] or 0.0) - robot.safety_radius_m
        if room_m > 0:
            blind_s = robot.step_s + 0.25  # between two frames, and until the next step of control
            assert stops_within(robot, row["speed_mps"] - 0.005, blind_s, room_m)
            assert not stops_within(robot, row["speed_mps"] + 0.005, blind_s, room_m)
            driven += 1
    assert driven > 3


def test_stops_in_time_are_those_of_the_logs_driven_one_by_one(driven: Path) -> None:
    store = finished(driven)
    known = read_summary(store)
    stops = stopping(known, store.run)
    assert stops is not None

    tolerance_m = Robot(**(store.run.robot or {})).tolerance_m
    logs = sorted({store.frames.logs[n] for n in store.frames.log[store.frames.test].tolist()})
    costs = {one.sut: one for one in stop_costs(known, store.run)}
    for line in stops.lines[:2]:
        late = []
        for log in logs:
            one = drive_log(
                store, log=log, sut=stops.sut, sensitivity=stops.sensitivity, setting=line.setting
            )
            if not one.positive or not one.by_truth.stopped[-1]:
                continue
            never = not one.by_sut.stopped[-1]
            late.append(math.inf if never else one.by_sut.position_m[-1] - one.by_truth.position_m[-1])
        assert (line.stopped, line.logs) == (sum(x <= tolerance_m + 1e-6 for x in late), len(late))
        assert line.latest_m == pytest.approx(max(late))
    assert costs[stops.sut].stopped == stops.lines[0].stopped

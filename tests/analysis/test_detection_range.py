"""A range is never longer than people were found, and a speed is called safe only at its cautious end."""

from __future__ import annotations

import math

import numpy as np
import pytest

from adverse.analysis.detection_range import Steps, _range, _ranges_m, _speeds, _steps, longest_gap_s
from adverse.curves.bootstrap import draw
from adverse.curves.interval import given, refused
from adverse.robot.profile import Robot

FAR = np.array([2.4, 4.1, 0.0, 9.9, 11.0])
ROBOT = Robot(2.0, 1.0, min_acceleration_mps2=-4.0, step_s=0.5)


def steps_of(people: list[float]) -> Steps:
    return _steps(np.array(people, np.float64), FAR)


@pytest.mark.parametrize(
    ("people", "tested", "nearer", "end"),
    [
        ([10, 2, 3, 10, 3], (0, 1, 2, 3, 4), (), "nobody further"),
        ([10, 2, 0, 10, 3], (0, 1), (), "too few people"),  # nothing is known between 5 and 7.5 m
        ([10, 2, 1, 10, 3], (0, 1), (), "too few people"),
        ([10, 2, 2, 2, 1], (0, 1, 2, 3), (), "too few people"),
        ([0, 1, 4, 4, 0], (2, 3), (1,), "nobody further"),
        ([1, 0, 1, 1, 0], (), (), "too few people"),
    ],
)
def test_a_step_with_too_few_people_ends_a_range(
    people: list[float], tested: tuple[int, ...], nearer: tuple[int, ...], end: str
) -> None:
    steps = steps_of(people)
    assert (steps.tested, steps.nearer, steps.end) == (tested, nearer, end)


def test_a_range_is_the_distance_of_the_furthest_found_before_a_step_that_fails_or_is_empty() -> None:
    steps = Steps((0, 1, 2), (), np.array([2.4, 4.1, 6.0]), "nobody further")
    people = np.array([[10, 2, 20], [10, 2, 20], [10, 2, 20], [10, 0, 20]], np.float64)
    found = np.array([[10, 2, 19], [10, 2, 18], [9, 2, 20], [10, 0, 20]], np.float64)
    assert _ranges_m(found, people, steps).tolist() == [6.0, 4.1, 0.0, 2.4]
    lone = Steps((1,), (0,), FAR, "nobody further")
    assert _ranges_m(np.array([[0.0, 5], [1, 5]]), np.array([[1.0, 5], [1, 5]]), lone).tolist() == [0.0, 4.1]


def test_an_interval_falls_with_logs_that_alone_hold_a_step_and_is_refused_without_width() -> None:
    """25 logs with somebody at 2 m, three of them also at 4 m: a resample draws none of these in 3.6 %."""
    resamples = draw([f"{n:02d}" for n in range(25)], ["+"] * 25, seed=1, count=2000)
    people = np.zeros((25, 5))
    people[:, 0], people[:3, 1] = 1, 1
    without = (resamples.counts[:, np.isin(resamples.order, range(3))] == 0).all(axis=1).mean()
    assert 0.025 < without < 0.05  # (22 / 25) ** 25 is 0.041
    found = _range(people, people, steps_of([25, 3, 0, 0, 0]), resamples)
    assert (found.low, found.value, found.high) == (2.4, 4.1, 4.1)
    people[:, 1] = 1
    sure = _range(people, people, steps_of([25, 25, 0, 0, 0]), resamples)
    assert (sure.low, sure.value, sure.high, sure.status) == (None, 4.1, None, "refused")
    many = 3 * people  # who finds everybody, of enough people, has a range and so a speed: at least this
    perfect = _range(many, many, steps_of([75, 75, 0, 0, 0]), resamples)
    assert 1 - 0.025 ** (1 / 75) < 0.05  # the rule of three, were they as 75 or more on their own
    assert (perfect.low, perfect.value, perfect.high, perfect.status) == (4.1, 4.1, 4.1, "ok")
    assert _range(people * 0, people * 0, steps_of([0, 0, 0, 0, 0]), resamples).value is None


def test_the_safe_speed_is_that_of_the_lower_end_and_needs_frame_rate_interval_and_all_frames() -> None:
    interval = given(9.0, 4.0, 12.0, confidence=0.95, method="bootstrap", logs=30)
    known = _speeds(ROBOT, 1.0, interval, "ok")
    speeds = (known["safe_speed_mps"], known["speed_mps"], known["speed_mps_interval"]["high"])
    for speed, room in zip(speeds, (3.0, 8.0, 11.0), strict=True):
        assert speed * 1.5 + speed**2 / 8 == pytest.approx(room)  # driven on for 1.5 s, then braked
    for why, found in {
        "no robot": _speeds(None, 1.0, interval, "ok"),
        "no frame rate": _speeds(ROBOT, None, interval, "ok"),
        "could not be used": _speeds(ROBOT, 1.0, interval, "incomplete"),
        "agree": _speeds(ROBOT, 1.0, refused(9.0, "agree", confidence=0.95, method="", logs=9), "ok"),
        "nobody": _speeds(ROBOT, 1.0, refused(math.nan, "nobody", confidence=0.95, method="", logs=0), "ok"),
    }.items():
        assert found["safe_speed_mps"] is None
        assert why in found["no_speed"]


def test_the_longest_gap_counts_and_single_images_have_none() -> None:
    times = np.array([0.0, 0.1, 0.2, 0.0, 1.0, 5.0])
    assert longest_gap_s(np.array([0, 0, 0, 1, 1, 2]), times) == 1.0
    assert longest_gap_s(np.arange(6), times) is None
    assert longest_gap_s(np.zeros(6, np.int64), np.full(6, np.nan)) is None

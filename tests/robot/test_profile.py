"""The tolerance of a stop: the buffer between the radii, or what the study says instead."""

from __future__ import annotations

import math
from typing import Any

import pytest

from adverse.errors import StudyError
from adverse.robot.profile import Robot, read_robot


@pytest.mark.parametrize(("given", "tolerance_m"), [({}, 0.5), ({"stop_tolerance_m": 0}, 0.0)])
def test_the_tolerance_is_the_buffer_unless_another_is_given(
    given: dict[str, Any], tolerance_m: float
) -> None:
    robot = read_robot({"control_radius_m": 2.0, "safety_radius_m": 1.5, **given})
    assert (robot.buffer_m, robot.tolerance_m) == (0.5, tolerance_m)


def test_without_a_buffer_there_is_no_tolerance() -> None:
    assert Robot(1.5, 1.5).tolerance_m == 0.0


@pytest.mark.parametrize("value", [-0.1, math.inf, math.nan, None, "0.5", True])
def test_a_tolerance_is_a_number_from_0_up(value: object) -> None:
    with pytest.raises(StudyError, match="stop_tolerance_m has a value it cannot take"):
        read_robot({"control_radius_m": 2.0, "safety_radius_m": 1.0, "stop_tolerance_m": value})


def test_words_say_what_the_robot_is_told_late() -> None:
    assert Robot(2.0, 1.5).late_words == ""
    assert Robot(2.0, 1.5, latency_s=0.2).words.endswith("least; it knows of an image 0.2 s later.")

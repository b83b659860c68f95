"""Paths of noisy drives: who is in the way stays in the way, and what makes no path is refused."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.interpolate import make_smoothing_spline

from adverse.robot.pose_noise import noise_m, smoothed, usable_times_s
from adverse.robot.trajectory import (
    BACK_AND_FORTH,
    CONTRADICTED,
    ENDS_IN_REVERSE,
    EXTENSION_M,
    NO_DIRECTION,
    UNCLEAR,
    NoPathError,
    Trajectory,
    trajectory,
)
from noisy_poses import FURTHEST_M, Case, driven_m, noise, on_course, simulate

RNG = np.random.default_rng
CIRCLES = {"straight": math.inf, "circle": 10.0, "tight": 5.0}


def unit(angle: NDArray[np.float64] | float) -> NDArray[np.float64]:
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1)


def turned_deg(path: Trajectory, wanted: float) -> float:
    end = path.corners[-1] - path.corners[-2]
    return abs(math.degrees(math.remainder(math.atan2(end[1], end[0]) - wanted, math.tau)))


def line(*corners: tuple[float, float], step: float = 0.1) -> NDArray[np.float64]:
    """Walk from corner to corner."""
    pieces = [
        np.linspace(a, b, round(math.dist(a, b) / step), endpoint=False)
        for a, b in itertools.pairwise(corners)
    ]
    return np.vstack([*pieces, corners[-1]])


@pytest.mark.parametrize("wandering_s", [0.0, 2.0])
@pytest.mark.parametrize("backing_m", [0.0, 1.0])
@pytest.mark.parametrize("radius_m", CIRCLES.values(), ids=CIRCLES)
def test_who_is_ahead_stays_ahead(radius_m: float, backing_m: float, wandering_s: float) -> None:
    for noise_m_, heading_deg in itertools.product((0.01, 0.05), (None, 2.0)):
        tallies = [
            simulate(Case(noise_m_, stood, rate, radius_m, backing_m, heading_deg, wandering_s), 5, seed)
            for seed, (stood, rate) in enumerate(itertools.product((0.0, 3.0, 10.0), (5.0, 30.0)))
        ]
        assert sum(one.missed + one.wrongly + one.refused for one in tallies) == 0
        assert np.median([turn for one in tallies for turn in one.turns_deg]) < 3
        assert np.median([length for one in tallies for length in one.lengths_m]) < 0.1 + noise_m_


@given(
    st.sampled_from([math.inf, 20.0, 10.0, 5.0]),
    st.sampled_from([5.0, 10.0, 30.0]),
    st.sampled_from([0.0, 0.7, 3.0]),
    st.floats(-3, 3),
    st.sampled_from(["heading", "none"]),
)
@settings(deadline=None, max_examples=60)
def test_positions_without_noise_are_the_path(
    radius_m: float, rate_hz: float, standing_s: float, start: float, given: str
) -> None:
    time_s, way = driven_m(Case(0.0, standing_s, rate_hz))
    where, heading = on_course(way, radius_m)
    spin = np.array([unit(start), unit(start + math.pi / 2)])
    forward = unit(heading + start)
    path = trajectory(where @ spin, forward if given == "heading" else forward[-1], time_s=time_s)
    walked = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(where, axis=0).T))])
    np.testing.assert_allclose(path.stations, walked, atol=1e-3)
    for axis in (0, 1):
        at_frames = np.interp(path.stations, path.along_m, path.corners[:, axis])
        np.testing.assert_allclose(at_frames, (where @ spin)[:, axis], atol=1e-3)
    assert turned_deg(path, heading[-1] + start) < 0.1
    assert path.length_m == pytest.approx(path.recorded_m + EXTENSION_M)


@pytest.mark.parametrize("rate_hz", [5.0, 10.0, 30.0])
@pytest.mark.parametrize("radius_m", CIRCLES.values(), ids=CIRCLES)
def test_the_noise_is_that_of_the_positions_not_of_the_drive(radius_m: float, rate_hz: float) -> None:
    for sigma in (0.0, 0.01, 0.05):
        time_s, way = driven_m(Case(sigma, 1.0, rate_hz))
        found = [
            noise_m(time_s, on_course(way, radius_m)[0] + RNG(seed).normal(0, sigma, (len(way), 2)))
            for seed in range(20)
        ]
        assert np.mean([one or 0.0 for one in found]) == pytest.approx(sigma, rel=0.25, abs=5e-4)


def test_sparse_frames_say_nothing_about_noise() -> None:
    time_s = np.arange(30.0)
    bends = 3 * unit(np.cumsum(RNG(1).normal(0, 0.2, 30))).cumsum(axis=0)
    assert noise_m(time_s, bends) is None
    np.testing.assert_array_equal(trajectory(bends, unit(0.0), time_s=time_s).corners[:-1], bends)
    assert noise_m(time_s[:5] / 10, bends[:5]) is None


@pytest.mark.parametrize("penalty", [1e-6, 1e-3, 1.0])
def test_smoothing_is_that_of_scipy(penalty: float) -> None:
    rng = RNG(2)
    time_s = np.cumsum(rng.uniform(0.02, 0.5, 40))
    values = rng.normal(size=(40, 2))
    wanted = [make_smoothing_spline(time_s, values[:, axis], lam=penalty)(time_s) for axis in (0, 1)]
    np.testing.assert_allclose(smoothed(time_s, values, penalty).T, wanted, atol=1e-8)


@pytest.mark.parametrize("noise_mm", [0, 10, 50])
@pytest.mark.parametrize("metres", [0.0, 0.3, 1.0])
def test_a_short_drive_goes_on_where_the_camera_looks(metres: float, noise_mm: int) -> None:
    turns = []
    for seed in range(40):
        rng = RNG(seed)
        way = np.clip(np.arange(60) * 0.1 - 2.0, 0.0, metres)
        where = np.stack([way, np.zeros(60)], axis=1) + rng.normal(0, noise_mm / 1000, (60, 2))
        path = trajectory(where, unit(np.radians(rng.normal(0, 2, 60))), time_s=np.arange(60) / 10)
        assert path.recorded_m <= metres + 0.01 * noise_mm + 1e-9
        turns.append(turned_deg(path, 0.0))
    assert np.median(turns) < 3
    assert max(turns) < 20


@pytest.mark.parametrize("mount_deg", [0, 20, 80, 120, 180])
def test_a_camera_may_look_elsewhere(mount_deg: int) -> None:
    """The path follows the drive; a camera to the side or to the rear does not turn it."""
    case = Case(0.02, 3.0, 10.0, 10.0)
    time_s, way = driven_m(case)
    where, heading = on_course(way, case.radius_m)
    for seed in range(10):
        seen = where + noise(case, len(where), RNG(seed))
        path = trajectory(seen, unit(heading + math.radians(mount_deg)), time_s=time_s)
        assert turned_deg(path, FURTHEST_M / case.radius_m) < 5


def test_a_rotation_that_never_turns_is_no_heading() -> None:
    time_s, way = driven_m(Case(0.0, 3.0, 10.0))
    where, heading = on_course(way, 5.0)
    path = trajectory(where, np.tile([1.0, 0.0], (len(where), 1)), time_s=time_s)
    assert turned_deg(path, heading[-1]) < 0.1


@pytest.mark.parametrize("given", ["heading", "none"])
def test_frames_while_backing_up_are_at_the_furthest_point(given: str) -> None:
    where = line((0, 0), (8, 0), (6.5, 0))
    looks = np.tile([1.0, 0.0], (len(where), 1))
    path = trajectory(where, looks if given == "heading" else looks[0])
    assert path.recorded_m == pytest.approx(8.0, abs=1e-3)
    np.testing.assert_allclose(path.corners[-1], [18, 0], atol=1e-3)
    assert (np.diff(path.stations) >= 0).all()
    np.testing.assert_allclose(path.stations[80:], 8.0, atol=1e-3)


def test_a_manoeuvre_that_goes_on_forwards_is_driven_as_it_was() -> None:
    where = line((0, 0), (8, 0), (6, 0), (12, 0))
    path = trajectory(where, np.tile([1.0, 0.0], (len(where), 1)))
    assert path.recorded_m == pytest.approx(8 + 2 + 6, abs=2e-3)
    np.testing.assert_allclose(path.corners[-1], [22, 0], atol=1e-3)


def refused(where: NDArray[np.float64], forward: NDArray[np.float64]) -> str:
    with pytest.raises(NoPathError) as error:
        trajectory(where, forward)
    return str(error.value)


def test_what_contradicts_the_drive_is_refused() -> None:
    ahead = np.array([1.0, 0.0])
    there_and_back = line((0, 0), (5, 0), (-1, 0))
    assert refused(there_and_back, ahead) == BACK_AND_FORTH
    assert refused(there_and_back, np.tile(ahead, (len(there_and_back), 1))) == BACK_AND_FORTH
    parked = line((0, 0), (8, 0), (5, 1), (3, 4))
    assert refused(parked, np.tile(ahead, (len(parked), 1))) == ENDS_IN_REVERSE
    drive = np.vstack([line((0, 0), (8, 0)), np.tile([8.0, 0.0], (20, 1))])
    turns_on_the_spot = np.clip(np.arange(101) - 80, 0, 5) * math.pi / 10
    assert refused(drive, unit(turns_on_the_spot)) == CONTRADICTED
    corner = line((0, 0), (8, 0), (8, 0.5))
    assert refused(corner, ahead) == CONTRADICTED
    assert refused(np.zeros((5, 2)), np.zeros((5, 2))) == NO_DIRECTION
    far_apart = np.array([[0.0, 0.0], [6.0, 0.0]])  # whatever it did in between
    assert refused(far_apart, ahead) == UNCLEAR
    assert turned_deg(trajectory(far_apart, np.tile(unit(0.2), (2, 1))), 0.2) < math.degrees(0.1)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 6])
def test_few_poses(count: int) -> None:
    looks = np.tile([0.0, 1.0], (count, 1))
    stood = trajectory(np.zeros((count, 2)), looks)
    assert stood.recorded_m == 0
    np.testing.assert_allclose(stood.corners, [[0.0, 0.0], [0.0, EXTENSION_M]], atol=1e-12)
    driven = trajectory(np.stack([np.zeros(count), 0.5 * np.arange(count)], axis=1), looks)
    np.testing.assert_allclose(driven.stations, 0.5 * np.arange(count), atol=1e-9)
    np.testing.assert_allclose(driven.corners[-1], [0.0, 0.5 * (count - 1) + EXTENSION_M], atol=1e-6)
    jitter = trajectory(RNG(count).normal(0, 0.01, (count, 2)), looks)
    assert jitter.recorded_m == 0
    assert turned_deg(jitter, math.pi / 2) < 1e-9


def test_times_that_cannot_be_used_are_spaced_evenly() -> None:
    np.testing.assert_allclose(usable_times_s(np.array([5.0, 6.0, 8.0]), 3), [0, 1, 3])
    np.testing.assert_allclose(usable_times_s(np.array([5.0, 5.0, 7.0]), 3), [0, 1, 2])
    np.testing.assert_allclose(usable_times_s(np.array([5.0, np.nan, 7.0]), 3), [0, 0.1, 0.2])
    np.testing.assert_allclose(usable_times_s(np.full(3, 4.0), 3), [0, 0.1, 0.2])
    np.testing.assert_allclose(usable_times_s(None, 2), [0, 0.1])


def test_a_long_gap_in_time_changes_nothing_beside_it() -> None:
    case = Case(0.02, 3.0, 10.0)
    time_s, way = driven_m(case)
    where = on_course(way, case.radius_m)[0] + noise(case, len(way), RNG(3))
    path = trajectory(where, unit(0.0), time_s=np.where(way > 5, time_s + 3600, time_s))
    assert turned_deg(path, 0.0) < 5
    assert path.recorded_m == pytest.approx(FURTHEST_M, abs=0.1)


@pytest.mark.parametrize("wandering_s", [2.0, 10.0])
def test_slow_noise_at_a_standstill_is_no_drive(wandering_s: float) -> None:
    case = Case(0.05, 10.0, 10.0, wandering_s=wandering_s)
    looks = unit(np.full(100, 1.0))
    for seed in range(150):
        path = trajectory(noise(case, 100, RNG(seed)), looks, time_s=np.arange(100) / 10)
        assert turned_deg(path, 1.0) < 1e-6


@pytest.mark.parametrize("frames", [2, 3, 4, 5])
def test_a_few_frames_within_their_noise_turn_no_path(frames: int) -> None:
    looks, refused = unit(np.zeros(frames)), 0
    for seed in range(100):
        seen = 0.05 * np.arange(frames)[:, None] * [1.0, 0.0] + RNG(seed).normal(0, 0.05, (frames, 2))
        try:
            path = trajectory(seen, looks, time_s=np.arange(frames) / 2)
        except NoPathError:
            refused += 1
        else:
            assert turned_deg(path, 0.0) < 30
    assert refused < 5


def test_exact_positions_tell_a_direction_however_close() -> None:
    path = trajectory(line((0, 0), (0.3, 0), step=0.01), unit(np.full(31, 0.5)), time_s=np.arange(31) / 10)
    assert turned_deg(path, 0.0) < 3

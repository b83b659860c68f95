"""The failed stop is one, the worst by its rule, and its moments are steps of the two runs."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest

from adverse.analysis.failed_stop import LEAD_S, MOMENTS_HZ, TAIL_S, FailedStop, failed_stop, moments
from adverse.analysis.loop import EXAMPLE_SENSITIVITY, drive_log, stops_at
from adverse.robot.clearance import clearance_m, distances_m
from adverse.robot.playback import Trace
from adverse.store.finished_run import finished
from adverse.store.read import Store


@pytest.fixture(scope="module")
def store(driven: Path) -> Store:
    return finished(driven)


@pytest.fixture(scope="module")
def failed(store: Store) -> FailedStop:
    found = failed_stop(store)
    assert found is not None
    return found


def test_it_is_the_one_that_driving_every_log_finds(store: Store, failed: FailedStop) -> None:
    logs = sorted(set(stops_at(store)["log"].to_pylist()))
    runs = {
        (sut, setting.id, log): drive_log(
            store, log=log, sut=sut, sensitivity=EXAMPLE_SENSITIVITY, setting=setting.id
        )
        for sut, setting, log in itertools.product(store.suts, store.run.settings, logs)
    }
    clean = store.run.baseline.id
    stopped = {sut: sum(runs[sut, clean, log].safe is True for log in logs) for sut in store.suts}
    known = [
        key
        for key, run in runs.items()
        if key[1] != clean and runs[key[0], clean, key[2]].safe and run.safe is False
    ]
    assert known
    one = failed.driven
    assert (one.sut, one.setting, one.log) in known
    assert failed.clean.safe
    assert failed.of == sum(sut == one.sut for sut, _, _ in known)
    groups = {setting.id: setting.group for setting in store.run.mutations}
    assert stopped[one.sut] == max(stopped[sut] for sut, _, _ in known)
    mild = [key for key in known if key[0] == one.sut and groups[key[1]] == "mild"]
    assert groups[one.setting] == ("mild" if mild else "severe")


def test_no_failed_stop_without_a_robot(run: Path) -> None:
    assert failed_stop(finished(run)) is None


def last_step(trace: Trace, time_s: float) -> int:
    """Return the last step no later than a time, by looking at each."""
    at = 0
    for step, time in enumerate(trace.time_s.tolist()):
        if time <= time_s + 1e-9:
            at = step
    return at


def test_moments_are_steps_of_the_two_runs(failed: FailedStop) -> None:
    one = failed.driven
    story = moments(one)
    times = [moment.time_s for moment in story]
    assert np.diff(times) == pytest.approx(1 / MOMENTS_HZ)
    assert times[0] == max(one.by_truth.time_s[-1] - LEAD_S, 0)
    assert times[-1] >= one.by_truth.time_s[-1] + TAIL_S - 1e-9
    for moment in story:
        for state, trace in ((moment.truth, one.by_truth), (moment.sut, one.by_sut)):
            step = last_step(trace, moment.time_s)
            assert state.position_m == trace.position_m[step]
            assert state.speed_mps == trace.speed_mps[step]
            assert state.stopped == trace.stopped[step]
            assert state.violated == trace.violating[: step + 1].any()
            passed = [n for n, at in enumerate(one.playback.stations) if at <= state.position_m + 1e-6]
            assert state.image == (passed[-1] if passed else -1)
    assert story[-1].truth.stopped
    assert not story[-1].sut.stopped or one.lateness_m != math.inf


def test_the_smallest_distance_is_the_clearance(failed: FailedStop) -> None:
    playback = failed.driven.playback
    path, people = playback.path, playback.people
    ends = np.linspace(0.5, path.length_m, 7)
    near = clearance_m(path, playback.stations, *people, ends)
    for end, clearance in zip(ends, near, strict=True):
        places = np.append(np.arange(0, end, 0.002), end)
        away = distances_m(path, playback.stations, *people, places)
        assert away.min() == pytest.approx(clearance, abs=0.003)


def test_nobody_in_sight_is_infinitely_far_away(failed: FailedStop) -> None:
    playback = failed.driven.playback
    nobody = (np.zeros(0, np.int64), np.zeros((0, 2)))
    away = distances_m(playback.path, playback.stations, *nobody, np.array([0.0, 3.0]))
    assert np.isposinf(away).all()
    unknown = (playback.people[0], np.full_like(playback.people[1], np.nan))
    assert np.isposinf(distances_m(playback.path, playback.stations, *unknown, np.array([1.0]))).all()

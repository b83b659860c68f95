"""Slices count the people they say, stand out only where they do; a range ends where people are lost."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adverse.analysis.slices import STEP_M, _doubt, _ranges_m, distances_m
from adverse.curves.interval import korn_graubard
from adverse.store.finished_run import finished


@pytest.fixture(scope="module")
def summary(driven: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((driven / "results" / "summary.json").read_text())
    return found


def test_every_kind_of_slice_holds_each_person_once(summary: dict[str, Any]) -> None:
    plain = {(row["sut"], row["setting"]): row for row in summary["plain_metrics"]}
    kinds = {row["slice"] for row in summary["slices"]}
    assert {"distance", "height"} <= kinds
    for (sut, setting), row in plain.items():
        for kind in kinds:
            mine = [
                one
                for one in summary["slices"]
                if (one["sut"], one["setting"], one["slice"]) == (sut, setting, kind)
            ]
            assert sum(one["people"] for one in mine) == row["truths"], (sut, setting, kind)
            found = sum(round(one["people"] * one["recall"]) for one in mine)
            assert found == row["true_positives"], (sut, setting, kind)


def test_distances_are_those_of_positions_and_poses_on_the_ground(
    driven: Path, summary: dict[str, Any]
) -> None:
    store = finished(driven)
    truth = store.truth
    people = {}
    for at, frame in enumerate(truth.frame.tolist()):
        camera = store.frames.poses[frame, :3, 3]
        away = math.dist(truth.positions_m[at][:2], camera[:2])
        assert distances_m(store)[at] == pytest.approx(away)
        people[store.frames.ids[frame], int(store.truth_ids[at])] = away
    lost = summary["failures"]
    assert lost
    for row in lost:
        assert row["distance_m"] == pytest.approx(people[row["frame"], row["person"]], abs=0.01)


def test_the_doubt_is_the_risk_at_which_the_intervals_part() -> None:
    lost, kept = np.array([9, 8, 10, 9, 7, 9]), np.array([1, 0, 2, 1, 1, 0])
    trials = np.full(6, 10)
    doubt = _doubt((lost, trials), (kept, trials))
    assert doubt is not None
    for factor, parted in ((1.01, True), (0.99, False)):
        low = korn_graubard(lost, trials, confidence=1 - factor * doubt).low
        high = korn_graubard(kept, trials, confidence=1 - factor * doubt).high
        assert low is not None
        assert high is not None
        assert (low > high) is parted
    assert _doubt((kept, trials), (lost, trials)) == 1.0
    assert _doubt((lost[:1], trials[:1]), (kept, trials)) is None


def test_equal_rates_hardly_ever_stand_out() -> None:
    rng = np.random.default_rng(5)
    named = 0
    for _ in range(400):
        rate = rng.beta(2, 5, size=12)
        trials = rng.integers(3, 30, size=(2, 12))
        hits = rng.binomial(trials, rate)
        named += (_doubt((hits[0], trials[0]), (hits[1], trials[1])) or 1.0) < 0.05
    assert named <= 20


def test_a_range_ends_with_the_last_step_in_which_people_are_found() -> None:
    people = np.array([10.0, 2.0, 0.0, 10.0, 3.0])
    found = np.array([[10, 2, 0, 9, 3], [10, 2, 0, 10, 3], [9, 2, 0, 10, 3], [10, 2, 0, 10, 0]], np.float64)
    reach = _ranges_m(found, np.broadcast_to(people, found.shape), [0, 1, 3, 4])
    assert reach.tolist() == [2 * STEP_M, 5 * STEP_M, 0.0, 4 * STEP_M]

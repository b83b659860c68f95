"""Slices count the people they say, stand out only where they do."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy import stats

from adverse.analysis import slices
from adverse.analysis.results import Summary
from adverse.analysis.slices import Counts, _doubt, distances_m, stand_out
from adverse.curves.interval import ICC_FLOOR, korn_graubard
from adverse.report.slices import slice_sentences
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


def test_losses_are_those_of_the_objects_one_by_one(driven: Path, summary: dict[str, Any]) -> None:
    results = driven / "results"
    slices: dict[tuple[str, int], set[tuple[str, str]]] = {}
    for row in pq.read_table(results / "slice_members.parquet").to_pylist():
        slices.setdefault((row["frame"], row["object"]), set()).add((row["slice"], row["part"]))
    before, lost = Counter[tuple[str, ...]](), Counter[tuple[str, ...]]()
    for row in pq.read_table(results / "objects.parquet").to_pylist():
        for part in slices.get((row["frame"], row["object"]), ()):
            key = (row["sut"], row["setting"], *part)
            before[key] += row["found_before"]
            lost[key] += row["found_before"] and not row["found"]
    with_losses = [row for row in summary["slices"] if row["lost"] is not None]
    assert with_losses
    for row in with_losses:
        key = (row["sut"], row["setting"], row["slice"], row["part"])
        assert row["found_before"] == before[key]
        assert row["lost"] == pytest.approx(lost[key] / before[key])


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


def slowly(counts: Counts, risk: float) -> tuple[float, float]:
    """Return Korn and Graubard's interval step by step, with the least design effect that we assume."""
    logs = [(int(h), int(n)) for h, n in zip(*counts, strict=True) if n]
    total = sum(n for _, n in logs)
    p = sum(h for h, _ in logs) / total
    spread = sum((h - p * n) ** 2 for h, n in logs) * len(logs) / (len(logs) - 1)
    effect = spread / total / (p * (1 - p)) if 0 < p < 1 else 0.0
    effect = max(effect, 1 + ICC_FLOOR * (sum(n * n for _, n in logs) / total - 1))
    t_all, t_logs = (stats.t.isf(risk / 2, df) for df in (max(total - 1, 1), len(logs) - 1))
    n = total / effect * (t_all / t_logs) ** 2
    low = stats.beta.ppf(risk / 2, p * n, n - p * n + 1) if p > 0 else 0.0
    return float(low), float(stats.beta.isf(risk / 2, p * n + 1, n - p * n)) if p < 1 else 1.0


def slow_outstanding(pairs: list[tuple[Counts, Counts]]) -> set[int]:
    """Name by Holm's rule as it is written: the k-th smallest p against 5 % of those not yet named.

    Instead of p, whether the intervals part at that very risk.
    """
    left = {n for n, pair in enumerate(pairs) if all((trials > 0).sum() > 1 for _, trials in pair)}
    named: set[int] = set()
    while left:
        risk = 0.05 / len(left)
        parted = {n for n in left if slowly(pairs[n][0], risk)[0] > slowly(pairs[n][1], risk)[1]}
        if not parted:
            break
        named |= parted
        left -= parted
    return named


def some_pairs(seed: int, *, effects: int) -> list[tuple[Counts, Counts]]:
    rng = np.random.default_rng(seed)
    pairs = []
    for number in range(12):
        rate = rng.beta(2, 5, size=(1, 10)) + np.array([[0.5 if number < effects else 0.0], [0.0]])
        trials = rng.integers(0, 40, size=(2, 10))
        hits = rng.binomial(trials, rate.clip(0, 1))
        pairs.append(((hits[0], trials[0]), (hits[1], trials[1])))
    return [*pairs, (pairs[0][0], (np.zeros(10, np.int64), np.zeros(10, np.int64)))]


@pytest.mark.parametrize("seed", range(6))
def test_what_stands_out_among_many_is_what_holms_rule_names_slowly(seed: int) -> None:
    pairs = some_pairs(seed, effects=5)
    found = stand_out(pairs)
    named = {n for n, one in enumerate(found) if one is not None}
    assert named == slow_outstanding(pairs)
    assert named  # there are effects to be named
    for n in named:
        one = found[n]
        assert one is not None
        for interval, counts in zip((one.inside, one.outside), pairs[n], strict=True):
            assert (interval.low, interval.high) == pytest.approx(slowly(counts, 0.05 / 2 / 12), abs=1e-9)


def test_equal_rates_hardly_ever_stand_out_among_many() -> None:
    wrong = sum(any(stand_out(some_pairs(100 + seed, effects=0))) for seed in range(30))
    assert wrong <= 5  # 5 % of 30 families; 6 or more would be seen once in 300 times


def test_who_is_never_found_stands_out_though_nobody_of_them_is_lost(
    driven: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = finished(driven)
    everybody = np.ones(len(store.truth.frame), np.bool_)
    lying = np.arange(len(everybody)) % 2 == 0
    parts = [slices.Slice("pose", "lying", lying), slices.Slice("pose", "standing", ~lying)]
    known = slices.FoundPeople(everybody, ~lying, ~lying)
    monkeypatch.setattr(slices, "slices_of", lambda _: parts)
    monkeypatch.setattr(slices, "found_people", lambda *_: dict.fromkeys(store.groups, known))
    sut: Any = SimpleNamespace(sut="blind", baseline=store.run.baseline.id)
    (row,) = slices.slice_rows(store, sut, {})[1]
    assert (row["by"], row["part"], row["missed"], row["missed_elsewhere"]) == ("missed", "lying", 1.0, 0.0)
    trials = np.bincount(store.frames.log[store.truth.frame][lying])
    low = slowly((trials, trials), 0.05 / 2 / 2)[0]  # both poses were compared clean, and none mutated
    assert row["missed_interval"]["low"] == pytest.approx(low, abs=1e-9)
    (line,) = slice_sentences(Summary({"outstanding_slices": [row]}), store.run)
    assert line.startswith("blind misses 100% (")
    assert "of the people with pose lying on clean frames already, 0% (0 to " in line

"""Curves against one threshold at a time over every score, and thinned thresholds against all of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import adverse
from adverse.analysis.detections import sut_detections
from adverse.analysis.thresholds import SLACK, chosen_thresholds
from adverse.curves import area
from adverse.levels.context import evaluate_all, level_input, run_context
from adverse.levels.outcomes import Events
from adverse.plugins import built_in
from adverse.store.finished_run import finished
from analysis.test_context import ROBOT, WIDTH, perfect, write_drives

LEVELS = ["image/ROC_A", "image/ROC_B", "located/annotated", "path/annotated", "path/localized"]


def unsure(images: Any) -> list[Any]:
    """Find the person with a score that varies, and the wall now and then, by what the image looks like."""
    answers = []
    for index, (boxes, _, _) in enumerate(perfect(images)):
        rng = np.random.default_rng(int(images[index].astype(np.int64).sum()) + index)
        wall = [[WIDTH // 2 - 30, 2, WIDTH // 2 + 30, 6]] * int(rng.random() < 0.2)
        found = [*boxes, *wall]
        scores = np.round(rng.uniform(0.1, 1, len(found)), 2)
        answers.append((found, scores.tolist(), [0] * len(found)))
    return answers


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("exact")
    write_drives(root / "data")
    study = {
        "name": "exact",
        "data": {"format": "folder", "root": str(root / "data")},
        "mutations": ["brightness(scale=0.9)"],
        "levels": ["image", "located", "path", "loop"],
        "robot": ROBOT,
        "sensitivity": {"levels": 20, "lowest": 0.01, "highest": 2.0},
        "robustness": {"bootstrap": 0},
    }
    adverse.run(study, root / "run", detectors={"unsure": unsure})
    return root / "run"


def table(folder: Path, name: str, level: str) -> dict[str, np.ndarray[Any, Any]]:
    rows = pq.read_table(folder / "results" / f"{name}.parquet").to_pylist()
    mine = [row for row in rows if (row["level"], row["setting"]) == (level, "identity")]
    return {key: np.array([row[key] for row in mine]) for key in ("threshold", "safety", "efficiency")}


def at(points: dict[str, np.ndarray[Any, Any]], threshold: float) -> tuple[float, float]:
    """Read a step curve: the last point whose threshold is not below."""
    index = int((points["threshold"] >= threshold).sum()) - 1
    return float(points["safety"][index]), float(points["efficiency"][index])


@pytest.mark.parametrize("level", LEVELS)
def test_every_score_alone_gives_the_same_point(folder: Path, level: str) -> None:
    store = finished(folder)
    context = run_context(store)
    levels = built_in("level")
    one = sut_detections(store, "unsure")
    judged, counted = one.settings["identity"], one.counted("identity")
    scores = np.unique(judged.answers.scores)
    assert len(scores) > 10
    points = table(folder, "curves", level)
    every = []
    for score in scores[::-1]:
        alone = np.array([score], np.float32)
        found = evaluate_all(levels, level_input(context, judged, alone, counted))
        every.append((found[level].safety()[0], found[level].efficiency(0.1)[0]))
    rows = json.loads((folder / "results" / "summary.json").read_text())["rows"]
    row = next(row for row in rows if (row["level"], row["setting"]) == (level, "identity"))
    assert 0 <= area(*np.array([*every, (0, 1)]).T) - row["area"] <= SLACK
    assert row["robustness"] == 1
    for threshold, safety, efficiency in zip(*points.values(), strict=True):
        counted_scores = int((scores >= threshold).sum())  # those of the mutated images lie in between
        assert [(0.0, 1.0), *every][counted_scores] == (safety, efficiency)


@pytest.mark.parametrize("level", LEVELS)
def test_the_shared_sensitivities_are_points_of_every_curve(folder: Path, level: str) -> None:
    store = finished(folder)
    shared = sut_detections(store, "unsure").sensitivity
    points = table(folder, "curves", level)
    judged = sut_detections(store, "unsure").settings["identity"]
    for threshold in shared.thresholds:
        counts = [
            np.sum(judged.answers.scores >= t)
            for t in (threshold, points["threshold"][points["threshold"] >= threshold][-1])
        ]
        assert counts[0] == counts[1]


def made_up(rng: np.random.Generator, size: int, logs: int = 5) -> Events:
    hits, alarms = (
        rng.integers(0, size + 1, rng.integers(1, 400)),
        rng.integers(0, size + 1, rng.integers(0, 400)),
    )
    return Events(
        tuple(f"log {n}" for n in range(logs)),
        rng.integers(0, logs, len(hits)),
        hits,
        np.full(logs, len(hits)),
        rng.integers(0, logs, len(alarms)),
        alarms,
        np.full(logs, float(rng.integers(1, 2000))),
    )


def slow_area(group: Sequence[Events], thresholds: Iterable[int]) -> float:
    """The area of the worst of some curves by the definition, one threshold at a time."""
    points = []
    for k in thresholds:
        safety = min(np.sum(one.hit_level <= k) / one.truths.sum() for one in group)
        rate = max(np.sum(one.alarm_level <= k) / one.exposure.sum() for one in group)
        points.append((safety, 1 - min(rate / 0.1, 1)))
    return area(*np.array(points).T)


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, SLACK, 0.01]))
@settings(max_examples=40, deadline=None)
def test_thinning_costs_no_area_more_than_it_may(seed: int, slack: float) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 300))
    events = [made_up(rng, size) for _ in range(3)]
    compared = [(events[0],), (events[0], events[1]), tuple(events)]
    keep = rng.integers(0, size, 3)
    chosen = chosen_thresholds(size, compared, 0.1, keep=keep, slack=slack)
    assert set(keep.tolist()) | {0, size - 1} <= set(chosen.tolist())
    assert (np.diff(chosen) > 0).all()
    for group in compared:
        lost = slow_area(group, range(size)) - slow_area(group, chosen.tolist())
        assert -1e-12 <= lost <= slack + 1e-12


def test_few_of_many_thresholds_are_enough() -> None:
    rng = np.random.default_rng(1)
    size = 100_000
    scores = rng.uniform(0, 1, 20_000) ** 2 * size
    events = Events(
        ("log",),
        np.zeros(20_000, np.int64),
        scores.astype(np.int64),
        np.array([25_000]),
        np.zeros(20_000, np.int64),
        np.sort(rng.integers(0, size, 20_000)),
        np.array([50_000.0]),
    )
    chosen = chosen_thresholds(size, [(events,)], 0.1, keep=np.array([0]))
    assert len(chosen) < 400


@pytest.mark.parametrize("truths", [0, 3])
def test_where_no_area_is_defined_the_thresholds_to_keep_are_left(truths: int) -> None:
    none = np.zeros(0, np.int64)
    events = Events(("log",), none, none, np.array([truths]), none, none, np.array([0.0]))
    assert chosen_thresholds(9, [(events,)], 0.1, keep=np.array([4])).tolist() == [0, 4, 8]

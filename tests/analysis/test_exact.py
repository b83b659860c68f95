"""Exact curves against one threshold at a time, and against the grid's points."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import adverse
from adverse.analysis.detections import sut_detections
from adverse.analysis.results import analyze
from adverse.curves import area
from adverse.levels.context import evaluate_all, level_input, run_context
from adverse.plugins import built_in
from adverse.store.read import finished
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
        "sensitivity": {"levels": 20, "lowest": 0.01, "highest": 2.0, "exact": True},
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
    points = table(folder, "exact", level)
    every = []
    for score in scores[::-1]:
        alone = np.array([score], np.float32)
        found = evaluate_all(levels, level_input(context, judged, alone, counted))
        every.append((found[level].safety()[0], found[level].efficiency(0.1)[0]))
        assert at(points, float(score)) == every[-1]
    rows = json.loads((folder / "results" / "summary.json").read_text())["rows"]
    row = next(row for row in rows if (row["level"], row["setting"]) == (level, "identity"))
    assert row["area_exact"] == pytest.approx(area(*np.array([*every, (0, 1)]).T))
    assert row["robustness_exact"] == 1


@pytest.mark.parametrize("level", LEVELS)
def test_grid_points_lie_on_the_exact_curve(folder: Path, level: str) -> None:
    points, grid = table(folder, "exact", level), table(folder, "curves", level)
    for threshold, safety, efficiency in zip(*grid.values(), strict=True):
        assert at(points, threshold) == (safety, efficiency)
    assert len(np.unique(grid["threshold"])) > 3


def test_it_is_an_option_of_the_analysis_too(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["statistics"]["sensitivity"]["exact"]
    rows = analyze(folder, exact=True).rows
    assert {row["level"] for row in rows if row["area_exact"] is None} == {
        *("loop/annotated", "loop/localized"),
        *(row["level"] for row in rows if row["setting"] in ("Any", "AnyMild")),
    }

"""A real model on real photographs, end to end: it sees people, and blur takes them away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adverse
from adverse.analysis.detections import sut_detections
from adverse.analysis.thresholds import SLACK, every_threshold
from adverse.curves import area
from adverse.levels.context import evaluate_all, level_input, run_context
from adverse.plugins import built_in
from adverse.store.finished_run import finished

SHARED = Path(__file__).parents[2] / "shared"
PHOTOS = SHARED / "data" / "coco128_permissive"
MODEL = SHARED / "models" / "FastestDet.onnx"


def areas_lie_just_below_those_over_every_score(run: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    store = finished(run)
    context, levels = run_context(store), built_in("level")
    image = [level for level in levels if level.name == "image"]
    detections = sut_detections(store, "fastestdet")
    every = every_threshold(detections)
    curves = {}
    for setting, matched in detections.settings.items():
        outcomes = evaluate_all(image, level_input(context, matched, every, detections.counted(setting)))
        for name, part in outcomes.items():
            curves[name, setting] = np.array([part.safety(), part.efficiency(0.1)])
    assert len(every) > 1000
    for row in rows:
        if row["setting"] in detections.settings:
            clean, mutated = curves[row["level"], "identity"], curves[row["level"], row["setting"]]
            assert 0 <= area(*mutated) - row["area"] + 1e-12 <= SLACK
            assert 0 <= area(*np.minimum(clean, mutated)) - row["robust_area"] + 1e-12 <= SLACK


@pytest.mark.skipif(
    not (PHOTOS.is_dir() and MODEL.is_file()), reason="needs the shared photos and FastestDet.onnx"
)
def test_fastestdet_loses_people_to_blur(tmp_path: Path) -> None:
    study = {
        "name": "real",
        "data": {
            "format": "coco",
            "root": str(PHOTOS),
            "annotations": "instances_train2017_permissive.json",
            "images": "train2017",
        },
        "suts": [
            {
                "name": "fastestdet",
                "adapter": "onnx",
                "model": str(MODEL),
                "decoder": "fastestdet",
                "resize": "stretch",
                "interpolation": "area",
                "channels": "bgr",
                "batch": 4,
            }
        ],
        "mutations": [{"gaussian_blur": {"sigma_px": [1.5, 3]}}],
    }
    finished_run = adverse.run(study, tmp_path / "run")
    areas_lie_just_below_those_over_every_score(tmp_path / "run", finished_run.rows)
    rows = [row for row in finished_run.rows if row["level"] == "image/ROC_A"]
    areas = {row["setting"]: row["area"] for row in rows}
    assert 0.15 < areas["identity"] < 0.35
    assert areas["identity"] > areas["gaussian_blur(sigma_px=1.5)"] > areas["gaussian_blur(sigma_px=3)"]
    assert {row["status"] for row in rows} == {"ok"}
    assert rows[0]["frames"] == 33

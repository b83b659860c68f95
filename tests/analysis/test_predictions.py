"""Predictions of a run start from its ADR, and what is drawn of them is what was fitted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import nnls

import adverse
from adverse.analysis.predictions import predictions, run_scores
from adverse.curves import predict_contextual
from adverse.store.finished_run import finished
from adverse.store.read import Store
from analysis.test_context import ROBOT, write_drives
from analysis.test_thresholds import unsure
from bad_input.command import adverse_here

MUTATIONS = [
    "alpha_blend(alpha=0.2)",
    "alpha_blend(alpha=0.6)",
    "haze(beta=0.05)",
    "haze(beta=0.3)",
    "alpha_blend(alpha=0.2) + jpeg(quality=40)",
]
SUTS = ("a", "b", "c", "d")
NAMES = MUTATIONS[:4]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    root = tmp_path_factory.mktemp("predictions")
    write_drives(root / "data")
    study = {
        "name": "predictions",
        "data": {"format": "folder", "root": str(root / "data")},
        "mutations": MUTATIONS,
        "robot": ROBOT,
        "robustness": {"bootstrap": 0},
    }
    adverse.run(study, root / "run", detectors=dict.fromkeys(SUTS, unsure))
    return finished(root / "run")


def rows(values: np.ndarray[Any, Any], store: Store) -> list[dict[str, Any]]:
    """Return rows of ADR, baseline first, one line for each setting of the run."""
    return [
        {"sut": sut, "setting": setting, "adr": None if np.isnan(value) else float(value)}
        for setting, line in zip(store.groups, values, strict=True)
        for sut, value in zip(SUTS, line, strict=True)
    ]


def test_each_sut_is_predicted_from_the_adr_of_the_others(store: Store) -> None:
    values = 0.2 + 0.6 * np.random.default_rng(3).random((6, 4))
    found = predictions(store.run, rows(values, store))
    relative = values / values[0]
    points = {(row["sut"], row["setting"]): row for row in found["predicted"]}
    for sut, name in enumerate(SUTS):
        others = [other for other in range(4) if other != sut]
        observed, predicted = [], []
        for setting in (3, 4):
            fitted = nnls(relative[:3, others].T, relative[setting, others])[0]
            observed.append(relative[setting, sut])
            predicted.append(float(fitted @ relative[:3, sut]))
            point = points[name, NAMES[setting - 1]]
            assert (point["observed"], point["predicted"]) == pytest.approx((observed[-1], predicted[-1]))
        mean = sum(observed) / 2
        wrong = sum((a - b) ** 2 for a, b in zip(observed, predicted, strict=True))
        (row,) = (row for row in found["predictions"] if row["sut"] == name)
        assert row["r2"] == pytest.approx(1 - wrong / sum((value - mean) ** 2 for value in observed))
        assert (row["simple"], row["contextual"]) == ("alpha_blend", "haze")
    for setting in (3, 4):
        mine = [row for row in found["prediction_weights"] if row["setting"] == NAMES[setting - 1]]
        assert [(row["from"], row["strength"]) for row in mine] == [
            ("baseline", 0.0),
            (NAMES[0], 0.2),
            (NAMES[1], 0.6),
        ]
        wanted = nnls(relative[:3].T, relative[setting])[0]
        assert [row["weight"] for row in mine] == pytest.approx(wanted.tolist())


def test_suts_that_detect_nobody_are_left_out(store: Store) -> None:
    values = 0.2 + 0.6 * np.random.default_rng(4).random((6, 4))
    values[0, 1] = 0.0
    found = predictions(store.run, rows(values, store))
    assert {row["sut"] for row in found["predictions"]} == {"a", "c", "d"}
    values[0, 2] = np.nan
    assert not any(predictions(store.run, rows(values, store)).values())


def test_the_command_predicts_from_a_run(store: Store) -> None:
    summary = json.loads((store.folder.results / "summary.json").read_text())
    assert summary["predictions"]
    options = ("--simple", "alpha_blend", "--contextual", "haze", "--json")
    said = json.loads(adverse_here("predict", store.folder.path, *options).text)
    wanted = predict_contextual(
        run_scores(store.run, summary["adr"]), simple="alpha_blend", contextual="haze"
    )
    assert said == json.loads(json.dumps(wanted.plain()))
    assert {row["sut"]: row["r2"] for row in summary["predictions"]} == {
        sut: one["r2"] for sut, one in said["suts"].items()
    }


def test_magnitudes_need_no_level_with_depth(store: Store) -> None:
    rows = (store.folder.results / "magnitudes.csv").read_text().splitlines()
    assert {line.partition(",")[0] for line in rows[1:]} == set(NAMES[2:])
    assert store.run.levels == ("image",)


def test_magnitudes_follow_the_true_boxes_when_they_change(tmp_path: Path) -> None:
    write_drives(tmp_path / "data")
    study = {
        "name": "changed",
        "data": {"format": "folder", "root": str(tmp_path / "data")},
        "mutations": [NAMES[2]],
        "robustness": {"bootstrap": 0},
    }
    adverse.run(study, tmp_path / "run", detectors={"a": unsure})
    before = (tmp_path / "run" / "results" / "magnitudes.csv").read_text()
    truth = json.loads((tmp_path / "data" / "truth.json").read_text())
    for annotation in truth["annotations"]:
        annotation["bbox"][2] *= 3
    (tmp_path / "data" / "truth.json").write_text(json.dumps(truth))
    with pytest.warns(UserWarning, match="a was asked about every image again"):
        adverse.run(study, tmp_path / "run", detectors={"a": unsure})
    adverse.run(study, tmp_path / "fresh", detectors={"a": unsure})
    resumed, fresh = (
        (tmp_path / name / "results" / "magnitudes.csv").read_text() for name in ("run", "fresh")
    )
    assert resumed == fresh != before


def test_a_folder_that_is_no_run_is_one_clear_error(tmp_path: Path) -> None:
    adverse_here("predict", tmp_path, "--simple", "a", "--contextual", "b").expect(2, "run")

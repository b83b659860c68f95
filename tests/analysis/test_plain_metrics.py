"""Plain metrics against a slow loop over what is stored, and AP against pycocotools."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import adverse
from adverse.analysis.plain_metrics import PLAIN_METRICS, ratio_intervals, ratio_parts
from adverse.analysis.results import analyze
from adverse.curves.bootstrap import draw
from adverse.curves.interval import korn_graubard
from adverse.curves.quantities import Ratios, Recall
from adverse.curves.studentized import intervals
from adverse.errors import StudyError
from adverse.levels.outcomes import Outcomes
from adverse.store.finished_run import finished
from adverse.study.spec import study_from
from analysis.test_compare import Spots
from analysis.test_compare import write_data as write_spots
from analysis.test_further_figures import same
from benchmarks.coco_witness import pycocotools_says
from benchmarks.test_table import IMAGES, run, stored, truth_file, write_data

BLUR = "gaussian_blur(sigma_px=2)"
POINTS: dict[str, dict[str, Any]] = {
    "default": {},
    "sensitivity": {"sensitivity": 0.5},
    "score": {"score": 0.45},
    "by SUT": {"score": {"shy": 0.7}, "sensitivity": 1.0},
}
NAMES = ("person", "car")


@pytest.fixture(scope="module", params=POINTS)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    folder = tmp_path_factory.mktemp("plain")
    write_data(folder)
    more = {"targets": list(NAMES), "robustness": {"bootstrap": 200}}
    path = run(folder, [BLUR], **more, operating_point=POINTS[request.param])
    analyze(path)
    return request.param, path


def summary_of(path: Path) -> dict[str, Any]:
    return dict(json.loads((path / "results" / "summary.json").read_text()))


def slow_counts(path: Path, sut: str, setting: str, threshold: float) -> tuple[int, int]:
    """Count true and false positives, one detection after the other, the surest first."""
    truth, hits, false = truth_file(path), 0, 0
    found = dict(stored(path, sut))[setting]
    for image in range(IMAGES):
        for label in range(len(NAMES)):
            true = [
                row for row in range(len(truth)) if (truth.images[row], truth.labels[row]) == (image, label)
            ]
            mine = [
                row for row in range(len(found)) if (found.images[row], found.labels[row]) == (image, label)
            ]
            for row in sorted(mine, key=lambda row: -found.scores[row]):
                box = found.boxes[row]
                real = [t for t in true if not truth.crowd[t] and same(box, truth.boxes[t])]
                if real:
                    true.remove(real[0])
                    hits += found.scores[row] >= threshold
                elif not any(covered(box, truth.boxes[t]) >= 0.5 for t in true if truth.crowd[t]):
                    false += found.scores[row] >= threshold
    return hits, false


def covered(box: Any, crowd: Any) -> float:
    wide, tall = np.minimum(box[2:], crowd[2:]) - np.maximum(box[:2], crowd[:2])
    return float(max(wide, 0) * max(tall, 0) / np.prod(box[2:] - box[:2]))


def slow_threshold(path: Path, sut: str, sensitivity: float) -> float:
    """Return the lowest threshold at which there are few enough false positives on un-mutated images."""
    scores = {float(score) for score in dict(stored(path, sut))["identity"].scores}
    too_low = [s for s in scores if slow_counts(path, sut, "identity", s)[1] / IMAGES > sensitivity]
    return float(np.nextafter(np.float32(max(too_low)), np.float32(2))) if too_low else -math.inf


@pytest.mark.parametrize("sut", ["squares", "shy"])
@pytest.mark.parametrize("setting", ["identity", BLUR])
def test_they_are_those_of_a_slow_loop(made: tuple[str, Path], sut: str, setting: str) -> None:
    name, path = made
    point = {"sensitivity": 0.1, **POINTS[name]}
    score = point.get("score")
    score = score.get(sut) if isinstance(score, dict) else score
    threshold = slow_threshold(path, sut, point["sensitivity"]) if score is None else score
    hits, false = slow_counts(path, sut, setting, threshold)
    truths = int((~truth_file(path).crowd).sum())
    (row,) = (r for r in summary_of(path)["plain_metrics"] if (r["sut"], r["setting"]) == (sut, setting))
    assert (row["true_positives"], row["false_positives"], row["truths"]) == (hits, false, truths)
    assert row["recall"] == hits / truths
    assert row["precision"] == (hits / (hits + false) if hits + false else None)
    misses = truths - hits
    assert row["f1"] == pytest.approx(2 * hits / (2 * hits + false + misses))
    assert row["false_positives_per_image"] == false / IMAGES
    assert row["status"] == "ok"


def test_the_counts_differ_between_operating_points(tmp_path: Path) -> None:
    write_data(tmp_path)
    path = run(tmp_path, [BLUR], targets=list(NAMES))
    seen = {slow_counts(path, "squares", "identity", threshold) for threshold in (0.45, 0.7, 0.0)}
    assert len(seen) > 1


@pytest.mark.parametrize("sut", ["squares", "shy"])
def test_ap_is_that_of_pycocotools(made: tuple[str, Path], sut: str) -> None:
    path, truth = made[1], truth_file(made[1])
    rows = {row["setting"]: row for row in summary_of(path)["plain_metrics"] if row["sut"] == sut}
    for setting, found in stored(path, sut):
        twelve, _ = pycocotools_says(truth, found, IMAGES, len(NAMES))
        assert rows[setting]["ap"] == pytest.approx(twelve[0], abs=1e-9)
        assert rows[setting]["ap50"] == pytest.approx(twelve[1], abs=1e-9)
        for name in ("ap", "ap50"):
            low, high = (rows[setting][f"{name}_interval"][end] for end in ("low", "high"))
            assert low is None or low <= rows[setting][name] <= high


def test_recall_and_precision_have_the_intervals_of_rates() -> None:
    """Two misses in one picture leave recall surer than sixteen in sixteen pictures."""
    people = np.where(np.arange(36) < 20, 2.0, 1.0)
    few, many = people.copy(), people.copy()
    few[0] -= 2
    many[:16] -= 1
    resamples = draw([f"{n:02}" for n in range(36)], ["+"] * 36, seed=1, count=50)
    lows = []
    for hits in (few, many):
        parts = {"recall": (hits, people), "precision": (hits, hits), "f1": (hits, people)}
        found = ratio_intervals(parts, resamples)
        assert found["recall"] == korn_graubard(hits, people)
        lows.append(found["recall"].low or 0.0)
    assert 0.8 < lows[0] < 54 / 56
    assert lows[1] < 40 / 56 < lows[0]


def test_the_table_holds_the_same(made: tuple[str, Path]) -> None:
    summary = summary_of(made[1])
    with (made[1] / "results" / "plain_metrics.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(summary["plain_metrics"]) == 4
    for line, row in zip(rows, summary["plain_metrics"], strict=True):
        for name in PLAIN_METRICS:
            assert line[name] == ("" if row[name] is None else repr(row[name]))
            low = (row[f"{name}_interval"] or {}).get("low")
            assert line[f"{name}_low"] == ("" if low is None else repr(low))
    for sut in ("squares", "shy"):
        point = summary["sensitivity"][sut]["operating_point"]
        assert {row["score_threshold"] for row in summary["plain_metrics"] if row["sut"] == sut} == {
            point["score"]
        }


@pytest.mark.parametrize(("score", "precision"), [(0.1, 0.0), (2.0, None)])
def test_what_is_not_defined_is_none(tmp_path: Path, score: float, precision: float | None) -> None:
    write_data(tmp_path)
    truth = json.loads((tmp_path / "truth.json").read_text())
    truth["annotations"] = [entry for entry in truth["annotations"] if entry["category_id"] != 1]
    (tmp_path / "truth.json").write_text(json.dumps(truth))
    path = run(tmp_path, [], robustness={"bootstrap": 100}, operating_point={"score": score})
    analyze(path)
    for row in summary_of(path)["plain_metrics"]:
        assert {row[name] for name in ("recall", "f1", "ap50", "ap")} == {None}
        assert row["precision"] == precision
        assert (row["false_positives_per_image"] == 0) == (precision is None)
        assert row["status"] == "insufficient"


def test_false_positives_may_be_more_than_one_per_image() -> None:
    logs, rng = 40, np.random.default_rng(5)
    false, images = rng.poisson(30, logs).astype(np.float64), np.full(logs, 10.0)
    resamples = draw([f"{n:02}" for n in range(logs)], ["+"] * logs, seed=1, count=500)
    ratios = Ratios(false[:, None], images, false[:, None], images)
    found = intervals({"rate": Recall(ratios, highest=math.inf)}, resamples)["rate"]
    assert found.low is not None
    assert found.high is not None
    assert 2.5 < found.low < 3 - 0.1 < 3 + 0.1 < found.high < 3.6
    assert found.value == pytest.approx(false.sum() / images.sum())
    error = np.std(false / 10, ddof=1) / math.sqrt(logs)
    assert found.high - found.low > 2 * 1.9 * error


def test_an_interval_of_f1_holds_what_other_logs_give() -> None:
    """F1 of a population of logs lies in the interval of a sample of them about as often as it says."""
    rng = np.random.default_rng(11)
    inside, repetitions = 0, 60
    for seed in range(repetitions):
        logs = 30
        truths = rng.integers(3, 9, logs)
        hits = rng.binomial(truths, 0.7)
        false = rng.poisson(1.5, logs)
        outcomes = Outcomes(
            tuple(map(str, range(logs))), hits[:, None], truths, false[:, None].astype(float), np.ones(logs)
        )
        part, whole = ratio_parts(outcomes)["f1"]
        resamples = draw([f"{n:02}" for n in range(logs)], ["+"] * logs, seed=seed, count=200)
        found = intervals({"f1": Recall(Ratios(part[:, None], whole, part[:, None], whole))}, resamples)["f1"]
        true = 2 * 0.7 * 5.5 / (0.7 * 5.5 + 1.5 + 5.5)
        assert found.low is not None
        assert found.high is not None
        inside += found.low <= true <= found.high
    assert inside >= 0.88 * repetitions


@pytest.mark.parametrize(
    ("point", "words"),
    [
        ({"sensitivity": 0.1, "score": 0.5}, "not both"),
        ({"score": {"sqares": 0.5}}, "Did you mean 'squares'"),
        ({"score": math.inf}, "finite"),
        ({"sensitivity": 0}, "greater than 0"),
        ({"recall": 0.5}, "recall"),
    ],
)
def test_a_wrong_operating_point_is_refused(tmp_path: Path, point: dict[str, Any], words: str) -> None:
    study = {
        "name": "plain",
        "data": {"format": "coco"},
        "suts": [{"name": "squares", "adapter": "squares"}],
        "operating_point": point,
    }
    with pytest.raises(StudyError) as caught:
        study_from(study, tmp_path)
    assert words in str(caught.value)


def test_a_run_knows_the_operating_point_of_each_sut(made: tuple[str, Path]) -> None:
    name, path = made
    wanted = {
        "default": {"squares": (0.1, None), "shy": (0.1, None)},
        "sensitivity": {"squares": (0.5, None), "shy": (0.5, None)},
        "score": {"squares": (None, 0.45), "shy": (None, 0.45)},
        "by SUT": {"squares": (1.0, None), "shy": (None, 0.7)},
    }[name]
    points = finished(path).run.operating_points
    assert {sut: (point.sensitivity, point.score) for sut, point in points.items()} == wanted
    assert pq.read_table(path / "frames.parquet").num_rows == IMAGES


POINTS_METRIC = '''
import numpy as np
from adverse import metric
from adverse.levels.context import LevelInput, LogScores
from adverse.levels.match import HIT

@metric(title="points of hits", lowest=-100, highest=100)
def points(given: LevelInput) -> LogScores:
    """Give the score of a hit in points from -100 to 100."""
    matched, frames = given.matched, given.frames
    hit = (matched.outcome == HIT) & given.counted[matched.frame]
    log, logs = frames.log[matched.frame[hit]], len(frames.logs)
    points = 200 * given.answers.scores[hit].astype(float) - 100
    return LogScores(np.bincount(log, points, minlength=logs), np.bincount(log, minlength=logs).astype(float))
'''


def test_an_interval_of_a_metric_keeps_to_the_range_of_the_metric(tmp_path: Path) -> None:
    write_spots(tmp_path / "data", [f"log{number:02}" for number in range(12)])
    (tmp_path / "points.py").write_text(POINTS_METRIC)
    study = {
        "name": "points",
        "data": {"format": "folder", "root": str(tmp_path / "data")},
        "mutations": ["brightness(scale=0.5)"],
        "plugins": [str(tmp_path / "points.py")],
        "metrics": ["points"],
        "robustness": {"bootstrap": 200},
        "operating_point": {"score": 0.0},
    }
    adverse.run(study, tmp_path / "run", detectors={"keen": Spots(60, "keen")})
    row, dark = summary_of(tmp_path / "run")["metrics"]
    assert 1 < row["value"] < 100
    assert row["value_interval"]["low"] < row["value"] < row["value_interval"]["high"] <= 100
    assert row["value_interval"]["high"] - row["value"] > 1
    assert (
        -100 <= dark["value_interval"]["low"] < dark["value"] < 0
    )  # which a range from 0 to 1 has no room for

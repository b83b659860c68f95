"""Studies without annotations: clean answers stand in for the truth, and what comes out is agreement."""

from __future__ import annotations

import csv
import functools
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from starlette.testclient import TestClient
from typer.testing import CliRunner

import adverse
from adverse.analysis.pairing import pair
from adverse.cli.app import app
from adverse.errors import StudyError
from adverse.pages.view.app import routes
from adverse.pages.view.session import ExploredRun
from adverse.report.agreement import page_words, words
from adverse.requirements.gate import check_rules
from adverse.requirements.history import history
from adverse.serving import Door, application
from adverse.store.finished_run import finished
from adverse.study.plan import make_plan
from adverse.study.spec import read_study
from adverse.types import Detections
from pictures import three_squares, write_logs

LOGS, FRAMES = 6, 4
SCORE = 0.5


class Bright:
    """Finds bright squares; its score is how bright they are, as a share of white."""

    classes = ("person",)
    fingerprint = "bright 1"

    def detect(self, images: list[NDArray[np.uint8]]) -> list[Detections]:
        return [self._one(image) for image in images]

    def _one(self, image: NDArray[np.uint8]) -> Detections:
        found: list[tuple[float, float, float, float]] = []
        scores = []
        for left in range(0, 90, 30):
            part = image[:, left + 2 : left + 32].mean(axis=2)
            rows, columns = np.nonzero(part > 75)
            if len(rows):
                x = left + 2
                box = (x + columns.min(), rows.min(), x + columns.max() + 1, rows.max() + 1)
                found.append(tuple(map(float, box)))  # type: ignore[arg-type]
                scores.append(float(part[rows, columns].mean()) / 255)
        return Detections(np.array(found).reshape(-1, 4), scores)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("label-free")
    drawn = functools.partial(three_squares, gray=60, darker=(40, 6))
    write_logs(root / "data", LOGS, FRAMES, drawn)
    for log in range(LOGS):
        folder = root / "data" / f"log{log}"
        (folder / "depth").mkdir()
        for frame in range(FRAMES):
            np.save(folder / "depth" / f"{frame}.npy", np.full((48, 96), 4.0 + log + frame, np.float32))
        rows = "".join(f"{frame},{frame / 2},0,0,1,0.5,-0.5,0.5,-0.5\n" for frame in range(FRAMES))
        (folder / "poses.csv").write_text(f"frame,time_s,x_m,y_m,z_m,qw,qx,qy,qz\n{rows}")
    path = root / "study.yaml"
    path.write_text(
        "{name: free, seed: 3, data: {format: folder, root: data}, suts: [{name: ours, adapter: python}],\n"
        f" truth: {{from: clean, score: {SCORE}}}, robustness: {{bootstrap: 200}},\n"
        " mutations: ['brightness(scale=0.6)', 'brightness(scale=0.4)', 'haze(visibility_m=200)'],\n"
        " metrics: [distance_at_first, stable_range]}\n"
    )
    adverse.run(path, root / "run", detectors={"ours": Bright()}, workers=0)
    return path


def _iou(a: list[float], b: list[float]) -> float:
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    both = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1])
    return width * height / (both - width * height)


def _agreement(run: Path, setting: str, sut: str = "ours") -> tuple[int, int, int]:
    """Count clean answers, those found again, and new detections, the slow way."""
    store = finished(run)
    clean, mutated = (
        {row["frame"]: row for row in store.detections(who, name).to_pylist()}
        for who, name in (("ours", store.run.baseline.id), (sut, setting))
    )
    kept = hit = new = 0
    for frame, before in clean.items():
        left = [box for box, score in zip(before["boxes"], before["scores"], strict=True) if score >= SCORE]
        kept += len(left)
        after = mutated[frame]
        for score, box in sorted(zip(after["scores"], after["boxes"], strict=True), reverse=True):
            if score < SCORE:
                continue
            best = max(left, key=lambda other: _iou(box, other), default=None)
            if best is not None and _iou(box, best) >= 0.5:
                left.remove(best)
                hit += 1
            else:
                new += 1
    return kept, hit, new


def test_agreement_is_the_share_of_clean_answers_that_are_found_again(study: Path) -> None:
    run = study.parent / "run"
    summary = json.loads((run / "results" / "summary.json").read_text())
    assert summary["truth"]["sut"] == "ours"
    seen = set()
    for row in summary["plain_metrics"]:
        kept, hit, new = _agreement(run, row["setting"])
        assert kept > 30
        assert row["truths"] == kept
        assert row["agreement"] == pytest.approx(hit / kept)
        assert row["false_positives"] == new
        assert "recall" not in row
        seen.add(row["agreement"])
        interval = row["agreement_interval"]
        if row["group"] == "baseline":
            assert (interval["low"], interval["why"].split(":")[0]) == (None, "by construction")
        else:
            assert interval["low"] <= row["agreement"] <= interval["high"]
    for row in summary["rows"]:  # no doubt of the clean figure, which is 1, enters those of mutations
        if row["group"] != "baseline" and row["area"] == row["robust_area"] and row["robustness_interval"]:
            assert row["robust_area_interval"]["low"] == pytest.approx(row["robustness_interval"]["low"])
    assert 1.0 in seen  # clean, by construction
    assert min(seen) < 0.5
    with (run / "results" / "plain_metrics.csv").open() as file:
        heading = next(csv.reader(file))
    assert "agreement" in heading
    assert "recall" not in heading


def test_objects_are_located_by_depth_at_the_clean_answers(study: Path) -> None:
    run = study.parent / "run"
    metrics = json.loads((run / "results" / "summary.json").read_text())["metrics"]
    clean = {row["metric"]: row["value"] for row in metrics if row["group"] == "baseline"}
    store = finished(run)
    # squares are answered in all frames of a log or in none; they are a metre further away in each
    first = [
        4.0 + int(row["frame"][3])
        for row in store.detections("ours", store.run.baseline.id).to_pylist()
        for score in row["scores"]
        if row["frame"].endswith("/0") and score >= SCORE
    ]
    assert len(set(first)) == LOGS
    expected = {"distance_at_first": np.mean(first), "stable_range": np.mean(first) + FRAMES - 1}
    assert clean == pytest.approx(expected)
    wanted = [("metrics: [flicker]", False), ("metrics: [stable_range]", True)]
    for text, located in wanted:
        asking = study.with_name("asking.yaml")
        given = study.read_text().replace("python", "contrast-blobs")
        asking.write_text(given.replace("metrics: [distance_at_first, stable_range]", text))
        assert make_plan(read_study(asking)).job.locate == located


def test_rules_hold_metrics_and_every_mutation_to_limits(study: Path, tmp_path: Path) -> None:
    run = study.parent / "run"
    summary = json.loads((run / "results" / "summary.json").read_text())
    rules = tmp_path / "rules.yaml"
    rules.write_text(
        "rules:\n"
        "  - {measure: metric, metric: stable_range, setting: worst case, at_least: 0.1, bound: point}\n"
        "  - {measure: agreement, setting: worst case, at_least: 0.01, bound: point}\n"
        "  - {measure: metric, metric: stable_rage, setting: clean, at_least: 1}\n"
    )
    metric, agreement, unknown = check_rules(run, rules)
    ranges = [row for row in summary["metrics"] if row["metric"] == "stable_range"]
    for checked, rows, name in (
        (metric, ranges, "value"),
        (agreement, summary["plain_metrics"], "agreement"),
    ):
        # the reference on clean frames is compared with itself: that decides nothing, and keeps nothing open
        wanted = [row[name] for row in rows if row["group"] != "baseline"]
        assert [verdict.measured for verdict in checked.verdicts] == wanted
    assert [verdict.outcome for verdict in unknown.verdicts] == ["INCONCLUSIVE"]
    assert "Did you mean 'stable_range'" in unknown.verdicts[0].reason
    found = history([run], measure="stable_range").points
    assert [point.value for point in found] == [row["value"] for row in ranges if row["group"] == "baseline"]


class Dim(Bright):
    """Does not look at the right third of an image."""

    fingerprint = "dim 1"

    def detect(self, images: list[NDArray[np.uint8]]) -> list[Detections]:
        return [self._one(np.concatenate([image[:, :62], image[:, :1].repeat(34, 1)], 1)) for image in images]


def test_another_sut_can_be_the_reference(study: Path, tmp_path: Path) -> None:
    path = study.parent / "reference.yaml"
    text = study.read_text().replace("from: clean", "from: ours").replace("{name: free", "{name: reference")
    path.write_text(text.replace("truth:", f"operating_point: {{score: {SCORE}}}, truth:"))
    adverse.run(path, tmp_path / "run", detectors={"ours": Bright(), "dim": Dim()}, workers=0)
    rows = json.loads((tmp_path / "run" / "results" / "summary.json").read_text())["plain_metrics"]
    for row in rows:
        kept, hit, new = _agreement(tmp_path / "run", row["setting"], row["sut"])
        assert (row["truths"], row["false_positives"]) == (kept, new)
        assert row["agreement"] == pytest.approx(hit / kept)
    clean = {row["sut"]: row["agreement"] for row in rows if row["setting"] == "identity"}
    assert clean["ours"] == 1.0
    assert 0.5 < clean["dim"] < 0.8  # about two squares of three


def _text(page: str) -> str:
    page = re.sub(r"<(script|style)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return re.sub(r"<[^>]*>", " ", page)


def test_every_page_says_agreement_and_what_it_rests_on(study: Path, tmp_path: Path) -> None:
    run = study.parent / "run"
    cli = CliRunner()
    said = cli.invoke(app, ["report", str(run)])
    assert said.exit_code == 0, said.output
    text = _text((run / "report.html").read_text())
    basis = "agreement with the answers of ours to clean frames with a score of 0.5 or more"
    assert basis in text
    assert not re.search(r"\brecall\b|ground truth|false (?:positive|alarm)", text, re.IGNORECASE)
    for command in (
        ["analyze", str(run)],
        ["analyze", str(run), "--tables"],
        ["compare", str(run), str(run)],
    ):
        shown = cli.invoke(app, command).output
        assert re.search("label-free", shown, re.IGNORECASE), command
        assert not re.search(r"\brecall\b|ground truth|false (?:positive|alarm)", shown, re.IGNORECASE), (
            command
        )
    exported = cli.invoke(app, ["export", str(run), str(tmp_path / "coco")])
    assert "no ground truth: the answers of ours" in " ".join(exported.output.split())
    written = json.loads((tmp_path / "coco" / "annotations.json").read_text())
    assert written["info"]["description"].startswith("no ground truth")
    door = Door("127.0.0.1", 8123, "secret-token")
    guest = TestClient(application(door, routes(ExploredRun(run))), base_url="http://127.0.0.1:8123")
    guest.cookies.set(door.cookie, door.token)
    for address in ("/explore", "/grid"):
        explored = _text(guest.get(address).text)
        assert basis in explored
        assert not re.search(r"\brecall\b|ground truth|false (?:positive|alarm)", explored, re.IGNORECASE)
    rules = tmp_path / "rules.yaml"
    rules.write_text("rules: [{measure: agreement, setting: 'brightness(scale=0.4)', at_least: 0.9}]")
    checked = cli.invoke(app, ["check", str(run), str(rules)])
    assert checked.exit_code == 1
    assert "label-free: compared with the answers of ours" in " ".join(checked.output.split())
    rules.write_text("rules: [{measure: recall, setting: 'brightness(scale=0.4)', at_least: 0.9}]")
    checked = cli.invoke(app, ["check", str(run), str(rules)])
    assert checked.exit_code == 3
    assert "label-free, so recall is not known" in " ".join(checked.output.split())


def test_a_reference_is_one_of_the_suts(study: Path, tmp_path: Path) -> None:
    text = study.read_text()

    def refused(change: str, by: str, **more: Any) -> str:
        path = study.parent / "other.yaml"
        path.write_text(text.replace(change, by))
        with pytest.raises(StudyError) as caught:
            adverse.run(path, tmp_path / "run", detectors={"ours": Bright(), **more}, workers=0)
        return str(caught.value)

    assert "there is no SUT 'yours'" in refused("from: clean", "from: yours")
    assert "has several SUTs" in refused("", "", theirs=Bright())
    assert "needs annotations" in refused("truth:", "levels: [located], truth:")
    assert "truth" in refused("truth:", "task: classification, truth:")


def test_words_leave_names_and_markup_alone() -> None:
    assert words("Recall of recall-net: 2 false positives") == "Agreement of recall-net: 2 new detections"
    page = '<a href="#recall" title="recall">recall</a><script>let recall = 1</script>'
    assert (
        page_words(page) == '<a href="#recall" title="agreement">agreement</a><script>let recall = 1</script>'
    )


def test_runs_are_compared_only_where_their_clean_answers_are_the_same(study: Path, tmp_path: Path) -> None:
    """A system that sees less has less to lose: against its own answers it would look better."""
    adverse.run(study, tmp_path / "dim", detectors={"ours": Dim()}, workers=0)
    run = study.parent / "run"
    for after in (tmp_path / "dim", tmp_path / "score"):
        if after.name == "score":
            other = study.parent / "score.yaml"
            other.write_text(study.read_text().replace(f"score: {SCORE}", "score: 0.4"))
            adverse.run(other, after, detectors={"ours": Bright()}, workers=0)
        with pytest.raises(StudyError, match="each against clean answers of its own") as caught:
            pair(run, after, {})
        assert "truth: {from: NAME" in str(caught.value.fix)

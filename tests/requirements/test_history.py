"""One measure over many runs: the figures of each, in the order in which they ended."""

from __future__ import annotations

import copy
import json
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from playwright.sync_api import Browser
from typer.testing import CliRunner

import adverse
from adverse.cli.app import app
from adverse.errors import StudyError
from adverse.report.history import history_lines, history_table
from adverse.requirements.history import _differs, history
from adverse.requirements.rules import Rule
from adverse.store.finished_run import finished
from adverse.store.read import Store
from adverse.store.run import OperatingPoint
from adverse.study import provenance
from analysis.test_compare import MUTATIONS, Spots, write_data
from browsing import barriers_of
from html_reading import read


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three versions of a detector, the last two on the same data; the newest was run first."""
    folder = tmp_path_factory.mktemp("history")
    made = []
    with pytest.MonkeyPatch.context() as patch:
        for name, least, day, logs in (("v3", 70, 17, 12), ("v1", 160, 15, 10), ("v2", 120, 16, 12)):
            write_data(folder / f"data{logs}", [f"log{number:02}" for number in range(logs)])
            study = {
                "name": "lamp",
                "data": {"format": "folder", "root": str(folder / f"data{logs}")},
                "mutations": MUTATIONS,
                "robustness": {"bootstrap": 50},
                "fpr_max": 5.0,
            }
            patch.setattr("adverse.study.run._now", lambda day=day: f"2026-01-{day}T12:00:00+00:00")
            adverse.run(study, folder / name, detectors={"keen": Spots(least, name)})
            made.append(folder / name)
    return made


def test_figures_are_those_of_the_runs_in_the_order_of_their_ends(runs: list[Path]) -> None:
    found = history(runs)
    assert [path.name for path in found.folders] == ["v1", "v2", "v3"]
    level = found.rule.level
    for point in found.points:
        rows = adverse.open_run(point.folder).rows
        row = next(row for row in rows if (row["level"], row["setting"]) == (level, "Any"))
        assert point.value == row["robust_area"]
        assert point.interval is None or point.interval.plain() == row["robust_area_interval"]
    assert [point.differs for point in found.points] == [("other data",), (), ()]


def changed(store: Store, *path: str, to: object) -> Store:
    """Return a run whose manifest says something else."""
    other = copy.copy(store)
    other._manifest = copy.deepcopy(store._manifest)
    other.__dict__.pop("run", None)  # read from the manifest once
    place = other._manifest
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = to
    return other


def test_what_a_figure_rests_on_otherwise_than_in_the_newest_is_said(
    runs: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By content: moved data are the same, relabelled data are not. Nor do other SUTs or mutations count."""
    newest = finished(runs[0])
    first, second = [name for name in newest.groups if name != newest.run.baseline.id][:2]
    entries = newest._manifest["settings"]
    moved = changed(newest, "data", "fingerprint", to="elsewhere")
    truth = changed(newest, "data", "annotations", to={"truth.json": "other boxes"})
    code = changed(newest, "settings", first, "code", to=["another version"])
    fewer = changed(newest, "settings", to={name: entries[name] for name in entries if name != first})
    free = changed(newest, "statistics", "truth", to={"sut": "keen", "score": 0.5})
    noise = changed(newest, "study", "noise", to="shared")
    point = newest.run.operating_points["keen"]

    def differs(run: Store, setting: str | None = None) -> list[str]:
        measure = {"measure": "recall", "setting": setting} if setting else {"measure": "faults"}
        return list(_differs(run, newest, Rule(**measure)))  # type: ignore[arg-type]

    def operated(**points: OperatingPoint) -> Store:
        other = copy.copy(newest)
        other.__dict__["run"] = replace(newest.run, operating_points=points)
        return other

    said = [differs(run) for run in (moved, free, noise)]
    assert said == [[], ["compared with other clean answers"], ["another seed"]]
    for run in (code, fewer):
        said = [differs(run, setting) for setting in (None, "Any", first, second, "clean")]
        assert said == [["other mutations"]] * 3 + [[], []]
    assert differs(operated(keen=point, another=point)) == []
    assert differs(operated(keen=replace(point, sensitivity=0.3))) == ["evaluated in another way"]
    monkeypatch.setattr(truth, "_frames_and_truth", lambda: "other rows")
    assert differs(truth) == ["other data"]
    assert not moved.changes_since(newest)


def test_any_measure_of_the_gate_can_be_followed(runs: list[Path]) -> None:
    recall = history(runs, measure="recall", setting="brightness(scale=0.5)")
    assert [point.figure for point in recall.points] == ["keen under brightness 0.5"] * 3
    values = [point.value for point in recall.points]
    assert values == sorted(values, key=lambda value: value or 0.0), "each version sees darker spots"
    faults = history(runs, measure="faults")
    assert [point.value for point in faults.points] == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"measure": "recal"}, "Did you mean 'recall'"),
        ({"measure": "faults", "setting": "Any"}, "Leave out --setting"),
    ],
)
def test_what_cannot_be_shown_says_why(runs: list[Path], options: dict[str, str], words: str) -> None:
    with pytest.raises(StudyError) as caught:
        history(runs, **options)
    assert words in str(caught.value)


def test_without_anything_left_in_the_worst_case_the_clean_figure_is_followed(
    runs: list[Path], tmp_path: Path
) -> None:
    """Such as of runs without mutations, which are also reported again."""
    data = runs[0].parent / "data10"
    study = {"name": "lamp", "data": {"format": "folder", "root": str(data)}, "fpr_max": 5.0}
    study |= {"robustness": {"bootstrap": 50}}
    adverse.run(study, tmp_path / "run", detectors={"keen": Spots(70, "keen")})
    found = history([tmp_path / "run"])
    assert found.rule.setting == "clean"
    (point,) = found.points
    assert (point.value or 0) > 0.5
    (tmp_path / "run" / "report.html").unlink(missing_ok=True)
    again = CliRunner().invoke(app, ["report", str(tmp_path / "run"), "--quiet"])
    assert again.exit_code == 0, again.output
    assert "not shown" not in (tmp_path / "run" / "report.html").read_text()


def test_a_sut_that_a_run_lacks_is_insufficient(runs: list[Path]) -> None:
    points = history(runs, suts=["nobody"]).points
    assert {point.value for point in points} == {None}
    assert all("no such SUT" in point.doubt for point in points)
    found = history(runs, suts=["nobody"])
    assert [line[:14] for line in history_lines(found) if line.startswith("?")] == ["? v1, v2, v3: "]
    assert {row[-1].text for row in history_table(found).rows} == {"insufficient"}
    assert {row[-1].marks for row in history_table(found).rows} == {"?"}


def test_terminal_page_and_json_say_the_same(runs: list[Path], tmp_path: Path, browser: Browser) -> None:
    page = tmp_path / "history.html"
    words = ["history", *map(str, runs)]
    shown = CliRunner().invoke(app, [*words, "--html", str(page)], env={"COLUMNS": "80"})
    assert shown.exit_code == 0
    records = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert [record["finished"][:10] for record in records] == ["2026-01-15", "2026-01-16", "2026-01-17"]
    rows = read(page.read_text()).all_tables[0][1:]
    for record, row in zip(records, rows, strict=True):
        number = f"{record['value']:.3g}"
        assert number in shown.stdout
        assert row[-1].startswith(number)
    assert "v1*" in shown.stdout
    assert "worst-case area at image/ROC_A of all mutations, over 3 runs" in " ".join(shown.stdout.split())
    chart = page.read_text().partition("<table")[0]
    assert "v1*" in chart, "the chart marks it, too"
    assert chart.count("<circle") == len(records), "every run is a point, also where it has no neighbour"
    assert barriers_of(browser, page) == []
    assert "not comparable with the newest: other data" in " ".join(shown.stdout.split())
    assert all(len(line) <= 80 for line in shown.stdout.splitlines() if "written" not in line)


def test_resuming_a_finished_run_keeps_its_date(runs: list[Path]) -> None:
    before = adverse.open_run(runs[0]).run.provenance.finished
    study = json.loads((runs[0] / "manifest.json").read_text())["data"]["options"]["root"]
    again = {
        "name": "lamp",
        "data": {"format": "folder", "root": study},
        "mutations": MUTATIONS,
        "robustness": {"bootstrap": 50},
        "fpr_max": 5.0,
    }
    adverse.run(again, runs[0], detectors={"keen": Spots(70, "v3")})
    assert adverse.open_run(runs[0]).run.provenance.finished == before == "2026-01-17T12:00:00+00:00"


def test_the_commit_is_that_of_the_repository_that_tracks_the_model(tmp_path: Path) -> None:
    def git(*words: str) -> str:
        named = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b", *words]
        return subprocess.run(named, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q")
    for name in ("tracked.onnx", "loose.onnx"):
        (tmp_path / name).write_bytes(b"weights")
    git("add", "tracked.onnx")
    git("commit", "-q", "-m", "model")
    suts = [
        SimpleNamespace(name=name, made_of={"files": {"model": {"path": str(path), "sha256": ""}}})
        for name, path in (
            ("ours", tmp_path / "tracked.onnx"),
            ("loose", tmp_path / "loose.onnx"),
            ("gone", tmp_path / "no" / "such.onnx"),
        )
    ]
    plan = SimpleNamespace(job=SimpleNamespace(suts=suts))
    assert provenance._commits(plan) == {"ours": git("rev-parse", "HEAD")}  # type: ignore[arg-type]

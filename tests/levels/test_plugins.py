"""A level and a metric of one file each: in summary, terminal and report, and held to a contract."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import adverse
from adverse import plugins
from adverse.analysis.results import analyze
from adverse.cli.app import app
from adverse.errors import PluginError, StudyError
from adverse.levels.context import LevelInput, LogScores
from adverse.levels.contract import check_level, check_metric
from adverse.levels.image import image_outcomes
from adverse.levels.outcomes import Outcomes
from adverse.plugins import Plugin
from adverse.report.page import write_report
from adverse.report.run_tables import level_tables, metric_tables
from analysis.test_context import perfect, write_drives

DOCS = (Path(__file__).parents[2] / "docs" / "plug-ins.md").read_text()


def example(heading: str) -> str:
    """Return the example of the documentation under a heading."""
    match = re.search(rf"^## {heading}\n\n```python\n(.*?)```", DOCS, re.DOTALL | re.MULTILINE)
    assert match is not None
    return match[1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plugins")
    write_drives(path / "data")
    (path / "tall.py").write_text(example("A level").replace("40", "10"))
    (path / "hit_score.py").write_text(example("A metric"))
    study = {
        "name": "plugins",
        "data": {"format": "folder", "root": str(path / "data")},
        "mutations": ["brightness(scale=0)"],
        "plugins": [str(path / "tall.py"), str(path / "hit_score.py")],
        "levels": ["image", "tall"],
        "metrics": ["hit_score"],
        "sensitivity": {"levels": 5, "lowest": 0.01, "highest": 2.0},
    }
    adverse.run(study, path / "run", detectors={"perfect": perfect})
    write_report(path / "run")
    return path


@pytest.fixture
def summary(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "run" / "results" / "summary.json").read_text()))


def test_a_level_of_a_plug_in_has_its_rows(summary: dict[str, Any]) -> None:
    rows = {row["setting"]: row for row in summary["rows"] if row["level"] == "tall"}
    assert set(rows) == {"identity", "brightness(scale=0)", "AnyMild", "Any"}
    assert rows["identity"]["area"] == 1.0
    assert 0 < rows["identity"]["truths"] < 30
    assert rows["brightness(scale=0)"]["area"] == 0.0
    assert summary["levels"]["tall"]["title"] == "tall people only"
    assert "tall" not in summary["levels_not_evaluated"]


def test_a_metric_of_a_plug_in_has_its_rows(folder: Path, summary: dict[str, Any]) -> None:
    rows = {row["setting"]: row for row in summary["metrics"]}
    assert rows["identity"]["value"] == pytest.approx(0.9)
    assert rows["identity"]["share"] == 1.0
    assert (rows["brightness(scale=0)"]["value"], rows["brightness(scale=0)"]["status"]) == (
        None,
        "insufficient",
    )
    assert "hit_score" in (folder / "run" / "results" / "metrics.csv").read_text()


def test_both_are_in_the_terminal_and_in_the_report(folder: Path) -> None:
    registry = plugins.load([folder / "tall.py", folder / "hit_score.py"])
    summary = analyze(folder / "run", registry=registry)
    titles = [table.title for table in (*level_tables(summary), *metric_tables(summary))]
    assert any(title.startswith("tall: ") for title in titles)
    assert any(title.startswith("hit score: mean score of hits") for title in titles)
    page = (folder / "run" / "report.html").read_text()
    assert "tall: area" in page
    assert "hit score: mean score of hits" in page
    assert (folder / "run" / "report_tables" / "hit_score.csv").exists()


def test_a_run_folder_does_not_make_its_plug_ins_run(folder: Path) -> None:
    with pytest.raises(PluginError, match=r"level of a plug-in that was not loaded.*--trust"):
        analyze(folder / "run")
    result = CliRunner().invoke(app, ["analyze", str(folder / "run"), "--trust"])
    assert result.exit_code in (0, 3), result.output  # darkness leaves the metric without a value
    assert "tall" in result.output


def test_a_gate_can_ask_for_a_level_of_a_plug_in(folder: Path) -> None:
    rules = folder / "rules.yaml"
    rules.write_text(
        "rules:\n  - {measure: area, level: tall, setting: baseline, at_least: 0.9, bound: point}\n"
    )
    result = CliRunner().invoke(app, ["check", str(folder / "run"), str(rules), "--trust"])
    assert result.exit_code == 0, result.output


def test_a_study_that_does_not_name_it_does_not_notice(folder: Path, tmp_path: Path) -> None:
    study = {
        "name": "plain",
        "data": {"format": "folder", "root": str(folder / "data")},
        "plugins": [str(folder / "tall.py")],
        "sensitivity": {"levels": 5, "lowest": 0.01, "highest": 2.0},
    }
    found = adverse.run(study, tmp_path / "run", detectors={"perfect": perfect}).summary
    assert set(found.data["levels"]) == {"image"}
    assert list(found.data["levels_not_evaluated"]) == ["located", "path", "loop"]
    assert "metrics" not in found.data
    assert "tall" not in write_report(tmp_path / "run").read_text()


@pytest.mark.parametrize(
    ("key", "name", "words"),
    [
        ("levels", "pth", "no level called 'pth'.*path"),
        ("metrics", "hit_scor", "no metric called 'hit_scor'"),
    ],
)
def test_an_unknown_name_is_refused(folder: Path, tmp_path: Path, key: str, name: str, words: str) -> None:
    study = {"name": "x", "data": {"format": "folder", "root": str(folder / "data")}, key: [name]}
    with pytest.raises(StudyError, match=words):
        adverse.run(study, tmp_path / "run", detectors={"perfect": perfect})


@pytest.mark.parametrize("kind", ["level", "metric"])
def test_a_crash_names_the_plug_in_and_its_line(folder: Path, tmp_path: Path, kind: str) -> None:
    file = tmp_path / f"broken_{kind}.py"
    file.write_text(f"from adverse import {kind}\n@{kind}(title='x')\ndef broken(given):\n    return 1 / 0\n")
    study = {
        "name": "x",
        "data": {"format": "folder", "root": str(folder / "data")},
        "plugins": [str(file)],
        f"{kind}s": ["broken"],
    }
    with pytest.raises(PluginError, match=f"the {kind} broken crashes.*line 4.*ZeroDivisionError"):
        adverse.run(study, tmp_path / "run", detectors={"perfect": perfect})


def test_what_a_level_needs_is_asked_of_the_data(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "level.py").write_text(
        "from adverse import level\n@level(title='x', needs=('robot',))\ndef driven(given):\n    'Drive.'\n"
    )
    study = {
        "name": "x",
        "data": {"format": "folder", "root": str(folder / "data")},
        "plugins": [str(tmp_path / "level.py")],
        "levels": ["driven"],
    }
    with pytest.raises(StudyError, match="control_radius_m"):
        adverse.run(study, tmp_path / "run", detectors={"perfect": perfect})


@pytest.mark.parametrize("level", plugins.built_in("level"), ids=lambda plugin: plugin.name)
def test_every_built_in_level_keeps_the_contract(level: Plugin) -> None:
    assert [finding.check for finding in check_level(level) if not finding.ok] == []


def test_check_plugin_runs_the_contracts(folder: Path, tmp_path: Path) -> None:
    for name in ("tall.py", "hit_score.py"):
        result = CliRunner().invoke(app, ["check-plugin", str(folder / name)])
        assert result.exit_code == 0, result.output
        assert "the same twice" in result.output
    bad = tmp_path / "bad.py"
    bad.write_text(example("A metric").replace("total, np.bincount", "2 * total, np.bincount"))
    result = CliRunner().invoke(app, ["check-plugin", str(bad)])
    assert result.exit_code == 1
    assert "values that it cannot have" in result.output


def _plain(given: LevelInput) -> Outcomes:
    return image_outcomes(given.matched, given.truth, given.frames, given.thresholds, given.counted)["ROC_A"]


def _by_order(given: LevelInput) -> float:
    scores = given.answers.scores
    return float((scores * np.arange(len(scores))).sum())


def _with(**changes: Callable[[Outcomes, LevelInput], Any]) -> Callable[[LevelInput], Outcomes]:
    def level(given: LevelInput) -> Outcomes:
        plain = _plain(given)
        values = {field: getattr(plain, field) for field in ("logs", "hits", "truths", "cost", "exposure")}
        return Outcomes(**{**values, **{field: change(plain, given) for field, change in changes.items()}})

    return level


@pytest.mark.parametrize(
    ("broken", "check"),
    [
        (lambda _: 3, "a row for each log"),
        (_with(truths=lambda plain, _: plain.truths[:-1]), "a row for each log"),
        (_with(hits=lambda plain, _: plain.hits + 100), "hits lie between"),
        (_with(cost=lambda plain, _: plain.cost - 100), "hits lie between"),
        (_with(hits=lambda plain, _: plain.hits[:, ::-1]), "a lower threshold never"),
        (_with(hits=lambda plain, _: plain.hits * 0 + plain.truths[:, None]), "no detections, no hits"),
        (_with(cost=lambda plain, _: plain.cost + np.random.default_rng().random()), "the same twice"),
        (
            _with(cost=lambda plain, given: plain.cost + _by_order(given)),
            "the order of detections",
        ),
        (_with(exposure=lambda plain, _: plain.exposure * 0 + 9), "frames that do not count"),
        (_with(cost=lambda plain, _: plain.cost / plain.cost.max()), "a threshold alone"),
    ],
)
def test_a_broken_level_is_caught(broken: Callable[[LevelInput], Any], check: str) -> None:
    mark = plugins.level(title="broken")(broken).__adverse__  # type: ignore[attr-defined]
    failed = [finding.check for finding in check_level(mark) if not finding.ok]
    assert any(name.startswith(check) for name in failed), failed


@pytest.mark.parametrize(
    ("broken", "check"),
    [
        (lambda _: 0.5, "a total and a weight"),
        (lambda given: LogScores(np.ones(1), np.ones(1)), "a total and a weight"),  # noqa: ARG005
        (
            lambda given: LogScores(2 * (ones := np.ones(len(given.frames.logs))), ones),
            "a total and a weight",
        ),
        (lambda given: LogScores(ones := np.ones(6), ones / len(given.answers.scores)), "no detections"),
        (
            lambda _: LogScores(np.random.default_rng().random(6), np.ones(6)),
            "the same twice",
        ),
        (
            lambda given: LogScores(np.full(6, _by_order(given) % 1), np.ones(6)),
            "the order of detections",
        ),
    ],
)
def test_a_broken_metric_is_caught(broken: Callable[[LevelInput], Any], check: str) -> None:
    mark = plugins.metric(title="broken")(broken).__adverse__  # type: ignore[attr-defined]
    failed = [finding.check for finding in check_metric(mark) if not finding.ok]
    assert any(name.startswith(check) for name in failed), failed

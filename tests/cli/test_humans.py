"""From made-up answers to thresholds, on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from typer.testing import CliRunner

from adverse.cli.app import app
from adverse.errors import StudyError
from adverse.humans.answers import read_judgments
from adverse.humans.thresholds import threshold
from browsing import barriers_of
from human_studies import experiment_of, quick_batch, write_study


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["humans", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def test_answers_are_made_up_estimated_and_used(tmp_path: Path, browser: Browser) -> None:
    answers, out, page = (tmp_path / name for name in ("answers.csv", "estimates.json", "page.html"))
    run("simulate", answers, "--drop", "0.5", "--answers", "2000", "--transformation", "t.frost")
    assert len(read_judgments(answers)) == 4000  # half of them on originals
    told = run("estimate", answers, "--out", out, "--page", page, "--resamples", "100")
    assert "t_c of t.frost = 0." in told
    assert "90% interval of where the drop begins" in told
    assert "two random parts of the images" in told
    found = threshold(str(out), "t.frost", "correctness")
    assert found.value is not None
    assert f"t_c of t.frost = {found.value:g} by vif: from that visual change on" in told
    assert page.read_text().count("<svg") == 2
    assert barriers_of(browser, page) == []
    assert (
        json.loads(run("estimate", answers, "--json", "--no-reuse", "--resamples", "100"))["answers"] == 2000
    )


def test_a_page_shows_any_name_as_text(tmp_path: Path) -> None:
    answers, page = tmp_path / "answers.csv", tmp_path / "page.html"
    run("simulate", answers, "--no-drop", "--transformation", "<script>alert(1)</script>")
    told = run("estimate", answers, "--page", page, "--no-reuse", "--resamples", "100")
    assert "tolerated up to a visual change of" in told
    assert "<script>alert" not in page.read_text()


def test_a_size_is_tried_before_anybody_is_asked() -> None:
    told = run("simulate", "--answers", "1500", "--participants", "30", "--repeat", "3")
    assert "of 3 simulated studies" in told


def test_answers_or_a_plan_but_not_both(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"give either OUT\.csv or --repeat"):
        run("simulate")
    with pytest.raises(StudyError, match=r"give either OUT\.csv or --repeat"):
        run("simulate", tmp_path / "x.csv", "--repeat", "3")


def test_a_study_is_exported_and_a_participant_erased(tmp_path: Path) -> None:
    study = write_study(tmp_path, images=12, batch=10, batches=1)
    experiment = experiment_of(study)
    for number in range(2):
        quick_batch(experiment, f"secret {number}")
    left_out = tmp_path / "left-out.csv"
    result = CliRunner().invoke(app, ["humans", "export", str(study), "--excluded", str(left_out)])
    (tmp_path / "answers.csv").write_text(result.stdout)
    assert "on originals, 0 trials left out" in result.stderr
    found = read_judgments(tmp_path / "answers.csv")
    assert left_out.read_text().startswith("participant,image,")
    gone = found.participant[0]
    assert run("erase", study, gone) == f"erased: {gone}\n"
    again = CliRunner().invoke(app, ["humans", "export", str(study)]).stdout
    assert gone not in again
    assert again.count("\n") > 1

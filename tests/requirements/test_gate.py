"""Verdicts follow from intervals and from nothing else; what is not known never passes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import junitparser
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import adverse
from adverse.analysis.plain_metrics import PLAIN_METRICS
from adverse.analysis.results import Summary
from adverse.cli.app import app
from adverse.curves.interval import Interval
from adverse.report.verdicts import verdict_lines
from adverse.requirements.gate import check_rules, check_run, outcome_of
from adverse.requirements.rules import PLAIN, Rule
from adverse.requirements.run_figures import SHIFTED, RunFigure, RunFigures
from adverse.requirements.verdicts import (
    Outcome,
    Verdict,
    exit_code,
    from_json,
    read_verdicts,
    to_json,
    to_junit,
    write_verdicts,
)
from adverse.store.finished_run import finished
from analysis.test_compare import MUTATIONS, Spots, write_data
from study.test_tasks import Threshold, _mapped, segmentation, write_scenes

UNIT = st.floats(0, 1)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gate")
    write_data(folder / "data", [f"log{number:02}" for number in range(12)])
    study = {
        "name": "gate",
        "data": {"format": "folder", "root": str(folder / "data")},
        "mutations": MUTATIONS,
        "robustness": {"bootstrap": 100},
        "fpr_max": 5.0,
    }
    suts = {"keen": Spots(70, "keen"), "dull": Spots(160, "dull"), "blind": Spots(255, "blind")}
    adverse.run(study, folder / "run", detectors=suts)
    return folder / "run"


def verdicts(run: Path, tmp_path: Path, *rules: dict[str, Any]) -> list[Verdict]:
    path = tmp_path / "rules.yaml"
    path.write_text(json.dumps({"rules": rules}))
    return check_run(run, path)


def rule(**more: Any) -> Rule:
    return Rule.model_validate({"measure": "area", "level": "image", "setting": "Any", **more})


def between(low: float, high: float) -> Interval:
    return Interval(low, low, high, 0.95, "jackknife", 30, "ok")


@given(value=UNIT, ends=st.tuples(UNIT, UNIT).map(sorted), limit=UNIT)
def test_a_lower_bound_decides_only_when_it_can(value: float, ends: list[float], limit: float) -> None:
    low, high = ends
    outcome, _ = outcome_of(rule(at_least=limit), RunFigure("x", value, between(low, high)))
    assert (outcome is Outcome.PASS) == (low >= limit)
    assert (outcome is Outcome.FAIL) == (high < limit)
    turned, _ = outcome_of(rule(at_most=limit), RunFigure("x", value, between(low, high)))
    assert (turned is Outcome.PASS) == (high <= limit)
    assert (turned is Outcome.FAIL) == (low > limit)


@given(
    limit=UNIT, bound=st.sampled_from(["lower", "point"]), value=st.none() | UNIT, doubt=st.text(max_size=3)
)
def test_what_is_not_known_never_passes(limit: float, bound: str, value: float | None, doubt: str) -> None:
    told = rule(at_least=limit, bound=bound)
    if value is None or doubt:
        assert outcome_of(told, RunFigure("x", value, between(0.9, 1.0), doubt))[0] is Outcome.INCONCLUSIVE
    if bound == "lower":
        assert outcome_of(told, RunFigure("x", value, None))[0] is Outcome.INCONCLUSIVE


@given(value=UNIT, limit=UNIT)
def test_a_point_is_taken_as_it_is(value: float, limit: float) -> None:
    outcome, _ = outcome_of(rule(at_least=limit, bound="point"), RunFigure("x", value))
    assert (outcome is Outcome.PASS) == (value >= limit)


def test_figures_are_those_of_the_results(run: Path, tmp_path: Path) -> None:
    summary = json.loads((run / "results" / "summary.json").read_text())
    for measure in ("area", "robustness"):
        told = {"measure": measure, "level": "image", "setting": "AnyMild", "at_least": 0.5}
        found = verdicts(run, tmp_path, told)
        rows = [row for row in summary["rows"] if row["setting"] == "AnyMild"]
        assert [one.measured for one in found] == [row[measure] for row in rows]
        intervals = [row[f"{measure}_interval"] for row in rows]
        assert [one.interval and one.interval.plain() for one in found] == intervals
    (one,) = verdicts(
        run, tmp_path, {"measure": "mean_area", "level": "image/ROC_B", "sut": "keen", "at_least": 0}
    )
    (wanted,) = (r for r in summary["means"] if (r["sut"], r["level"]) == ("keen", "image/ROC_B"))
    assert (one.measured, one.interval) == (
        wanted["area"],
        Interval.read(wanted["area"], wanted["area_interval"]),
    )
    found = verdicts(run, tmp_path, {"measure": "adr", "setting": "baseline", "at_least": 0.1})
    assert [one.measured for one in found] == [r["adr"] for r in summary["adr"] if r["setting"] == "identity"]


@pytest.mark.parametrize("measure", [name for name in PLAIN if name != "false_positives_per_image"])
def test_plain_metrics_are_those_of_the_results(run: Path, tmp_path: Path, measure: str) -> None:
    rows = json.loads((run / "results" / "summary.json").read_text())["plain_metrics"]
    rule = {"measure": measure, "setting": "brightness(scale=0.5)", "at_least": 0.5}
    found = verdicts(run, tmp_path, rule)
    wanted = {row["sut"]: row for row in rows if row["setting"] == "brightness(scale=0.5)"}
    assert [one.measured for one in found] == [row[measure] for row in wanted.values()]
    for one, row in zip(found, wanted.values(), strict=True):
        plain = row[f"{measure}_interval"]
        assert one.interval == (None if plain is None else Interval.read(row[measure], plain))
    assert set(PLAIN) == set(PLAIN_METRICS)
    keen, _, blind = found
    assert keen.outcome is not Outcome.FAIL
    assert blind.outcome is not Outcome.PASS
    assert "under brightness 0.5 is" in keen.name
    assert verdicts(run, tmp_path, {**rule, "setting": "brightness 0.5"}) == found


def test_false_positives_have_a_ceiling(run: Path, tmp_path: Path) -> None:
    rule = {"measure": "false_positives_per_image", "setting": "baseline", "sut": "keen"}
    (one,) = verdicts(run, tmp_path, {**rule, "at_most": 3})
    assert (one.outcome, one.measured) == (Outcome.PASS, 0.0)
    assert one.interval is not None
    assert one.interval.high is not None
    assert one.interval.high > 0  # what was seen in none of 36 images may still happen
    (other,) = verdicts(run, tmp_path, {**rule, "at_most": one.interval.high / 2})
    assert other.outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize(("setting", "covered"), [("AnyMild", 2), ("Any", 3)])
@pytest.mark.parametrize("measure", ["recall", "adr"])
def test_a_metric_under_any_mutation_is_that_under_each(
    run: Path, tmp_path: Path, setting: str, covered: int, measure: str
) -> None:
    found = verdicts(run, tmp_path, {"measure": measure, "setting": setting, "sut": "keen", "at_least": 0.1})
    assert len(found) == covered
    assert len({one.name for one in found}) == covered


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        (
            {"measure": "area", "level": "path", "setting": "Any", "at_least": 0},
            "did not evaluate level path",
        ),
        (
            {"measure": "area", "level": "image", "setting": "AnyMidl", "at_least": 0},
            "Did you mean 'AnyMild'?",
        ),
        ({"measure": "area", "level": "image", "setting": "Any", "at_least": 0, "sut": "kene"}, "'keen'?"),
        ({"measure": "rPC", "at_least": 50}, "75 are missing"),
        ({"measure": "mean_iou", "setting": "baseline", "at_least": 0}, "did not evaluate mean IoU"),
        ({"measure": "recall", "setting": "brightness(scale=0.4)", "at_least": 0}, "no such mutation"),
        ({"measure": "expected_area", "level": "image", "at_least": 0}, "did not evaluate"),
        ({"measure": "requirements"}, "not of a requirements check"),
    ],
)
def test_what_was_not_tested_is_inconclusive(
    run: Path, tmp_path: Path, told: dict[str, Any], reason: str
) -> None:
    found = verdicts(run, tmp_path, told)
    assert {one.outcome for one in found} == {Outcome.INCONCLUSIVE}
    assert all(reason in one.reason for one in found)


def test_without_mutations_there_is_no_worst_case(run: Path, tmp_path: Path) -> None:
    """Or the baseline would pass for it."""
    study = {"name": "plain", "data": {"format": "folder", "root": str(run.parent / "data")}}
    adverse.run(
        {**study, "robustness": {"bootstrap": 0}}, tmp_path / "run", detectors={"keen": Spots(70, "keen")}
    )
    rules = [
        {"measure": measure, "setting": setting, "at_least": 0} | ({"level": "image"} if level else {})
        for measure, level in (("area", True), ("recall", False))
        for setting in ("Any", "AnyMild")
    ]
    found = verdicts(tmp_path / "run", tmp_path, *rules)
    assert [one.outcome for one in found] == [Outcome.INCONCLUSIVE] * 4
    assert all("insufficient: no " in one.reason for one in found)


def test_the_mutation_that_decides_stands_for_all_of_a_rule(run: Path, tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    both = [{"measure": "recall", "setting": "Any", "at_least": limit} for limit in (0.0, 0.9)]
    path.write_text(json.dumps({"rules": both}))
    checked = check_rules(run, path)
    assert len(checked) == 2 * 3  # a line for each rule and SUT
    assert [one for some in checked for one in some.verdicts] == check_run(run, path)
    for some in checked:
        assert len(some.verdicts) == 1 + len(MUTATIONS)
        worst = some.folded
        assert exit_code([worst]) == exit_code(some.verdicts)
        lows = [one.interval.low for one in some.verdicts if one.interval and one.outcome == worst.outcome]
        assert worst.interval is not None
        assert worst.interval.low == min(low for low in lows if low is not None)
        assert f"the worst of {len(some.verdicts)} (" in worst.reason
    brief, whole = (
        CliRunner().invoke(app, ["check", str(run), str(path), *more]).output for more in ([], ["--tables"])
    )
    assert f"{6 * (1 + len(MUTATIONS))} verdicts in all; --tables prints each." in brief
    assert len(brief.splitlines()) < len(whole.splitlines()) / 2


def test_counts_and_a_blind_sut(run: Path, tmp_path: Path) -> None:
    found = verdicts(
        run,
        tmp_path,
        {"measure": "faults", "at_most": 0},
        {"measure": "quarantined", "at_most": 0},
        {"measure": "robustness", "level": "image/ROC_B", "setting": "Any", "sut": "blind", "at_least": 0.5},
    )
    assert [one.outcome for one in found] == [Outcome.PASS] * 4 + [Outcome.INCONCLUSIVE]
    assert found[-1].measured is None


def test_verdicts_that_lie_in_a_run_are_no_evidence(run: Path, tmp_path: Path) -> None:
    """Not even sealed ones: the gate judges requirements again, and this run is not that of a check."""
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    interval = Interval(0.05, 0.0, 0.2, 0.95, "jackknife", 30, "ok")
    fine = Verdict("stays calm", "people tolerate more than the SUT", 0.1, 0.05, interval, Outcome.PASS, "")
    write_verdicts(finished(copy), "requirements", [fine])
    (found,) = verdicts(copy, tmp_path, {"measure": "requirements"})
    assert found.outcome is Outcome.INCONCLUSIVE


SURE = {"measure": "faults", "at_most": 0}
OPEN = {"measure": "rPC", "at_least": 50}
BROKEN = {"measure": "area", "level": "image", "setting": "Any", "at_least": 1.0, "bound": "point"}


@pytest.mark.parametrize(
    ("rules", "code", "counts"),
    [([SURE], 0, (3, 0, 0)), ([SURE, OPEN], 3, (6, 0, 3)), ([BROKEN, SURE, OPEN], 1, (12, 6, 3))],
)
def test_the_command_prints_writes_and_exits(
    run: Path, tmp_path: Path, rules: list[dict[str, Any]], code: int, counts: tuple[int, int, int]
) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(json.dumps({"rules": rules}))
    files = [f"--junit={tmp_path / 'gate.xml'}", f"--markdown={tmp_path / 'gate.md'}"]
    said = CliRunner(env={"COLUMNS": "80"}).invoke(app, ["check", str(run), str(path), *files, "--save"])
    assert said.exit_code == code, said.output
    told = [line for line in said.output.splitlines() if line.startswith(("✓", "✗", "?", "  "))]
    assert told[0][0] in "✓✗?"
    assert max(map(len, told)) <= 80
    assert "Each rule stands alone" in said.output
    suite = junitparser.JUnitXml.fromfile(str(tmp_path / "gate.xml"))
    assert (suite.tests, suite.failures, suite.errors) == counts
    kept = read_verdicts(finished(run))["rules"]
    cases = [case for group in suite for case in group]
    assert [case.name for case in cases] == [one.name for one in kept]
    kinds = {Outcome.PASS: junitparser.SystemOut, Outcome.FAIL: junitparser.Failure}
    for case, one in zip(cases, kept, strict=True):
        kind = kinds.get(one.outcome, junitparser.Error)
        assert case.is_passed == (one.outcome is Outcome.PASS)
        assert one.outcome is Outcome.PASS or isinstance(case.result[0], kind)
    assert (tmp_path / "gate.md").read_text().count("| **") == counts[0]


def test_scores_of_a_segmenter(tmp_path: Path) -> None:
    write_scenes(tmp_path / "data")
    study = segmentation(tmp_path / "data", mutations=["brightness(scale=0.5)"])
    adverse.run(study, tmp_path / "run", detectors={"threshold": _mapped(Threshold(20))})
    rows = json.loads((tmp_path / "run" / "results" / "summary.json").read_text())["rows"]
    for measure in ("mean_iou", "pixel_accuracy"):
        told = {"measure": measure, "setting": "baseline", "at_least": 0, "bound": "point"}
        (one,) = verdicts(tmp_path / "run", tmp_path, told)
        assert one.measured == rows[0]["scores"][measure]
        assert one.outcome is Outcome.PASS
    (one,) = verdicts(
        tmp_path / "run", tmp_path, {"measure": "share", "setting": "brightness(scale=0.5)", "at_least": 0}
    )
    assert one.measured == rows[1]["share"]
    (area,) = verdicts(
        tmp_path / "run", tmp_path, {"measure": "area", "level": "image", "setting": "Any", "at_least": 0}
    )
    assert "a run of segmentation has no" in area.reason


def test_every_verdict_says_that_results_come_from_different_machines() -> None:
    mixed = "mixed environments: results of this run come from 2; they differ in numpy (2.0; 2.1)"
    warnings = ("something else", mixed, f"{SHIFTED}: why")
    store = SimpleNamespace(
        run=SimpleNamespace(
            warnings=warnings, kills={"other": 2}, truth=None, selection=None, alike_logs=None
        )
    )
    figures: Any = SimpleNamespace(store=store, summary=Summary({"counts": {}}), _mutation_remarks=())
    assert RunFigures.remarks(figures, "") == (mixed, f"{SHIFTED}: why")
    verdict = Verdict("a", "b", 1, 0.3, None, Outcome.PASS, remarks=(mixed,))
    assert from_json(to_json([verdict]), where="here") == [verdict]
    assert mixed in to_junit([verdict], suite="s")
    assert verdict_lines([verdict, verdict]).count(f"- {mixed}") == 1


def test_data_without_people_is_the_reason_that_a_verdict_gives() -> None:
    """And not too little data: nobody is annotated on the test images, those of validation do not count."""
    row = {"sut": "a", "level": "image/ROC_A", "setting": "Any", "robustness": None, "status": "insufficient"}
    for ignored, words in (
        (True, "no person or dog is annotated on the test images"),
        (False, "too little data"),
    ):
        store: Any = SimpleNamespace(
            truth=SimpleNamespace(frame=np.array([0, 1]), ignore=np.array([False, ignored])),
            frames=SimpleNamespace(test=np.array([False, True])),
            targets=("person", "dog"),
            suts=("a",),
            task="detection",
            groups={"identity": "baseline", "fog": "mild"},
            run=SimpleNamespace(levels=(), relations=(), baseline=SimpleNamespace(id="identity")),
        )
        summary = Summary({"rows": [row], "task": "detection", "failed_everywhere": {}})
        figures = RunFigures(store, summary=summary)
        (figure,) = figures._levels(Rule(measure="robustness", level="image", setting="Any"), "a")
        assert figure.doubt.startswith("insufficient: ")
        assert words in figure.doubt

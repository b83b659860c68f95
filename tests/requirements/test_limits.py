"""Limits are those of a sweep, by settings of an ordinary run; the gate asks how far they go."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from adverse import plugins
from adverse.cli.app import app
from adverse.errors import StudyError
from adverse.plugins import Registry
from adverse.report.limits import BETWEEN, domain_table, limit_lines, render_limits, whole_table
from adverse.requirements import limits_run
from adverse.requirements.conditions import conditions_of
from adverse.requirements.gate import check_run, rule_verdicts
from adverse.requirements.limits import evaluation, limit_rules, read_limits
from adverse.requirements.limits_run import StudyLimits, search_limits
from adverse.requirements.rules import Rule
from adverse.requirements.run_figures import UNTRUSTED, RunFigure, RunFigures
from adverse.requirements.verdicts import Outcome, Verdict
from adverse.store.finished_run import finished
from adverse.strict_yaml import YamlFile
from adverse.study.engines import Stop
from adverse.study.engines.local import InlineEngine
from adverse.study.run import run_study
from adverse.study.spec import StudyFile, study_with
from analysis.test_compare import Spots, write_data

SCALES = [0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6, 0.55, 0.5, 0.45, 0.4]
RULE = {"measure": "recall", "at_least": 0.6}


class Quiet:
    """Hears nothing, and counts what is done."""

    def __init__(self) -> None:
        self.done = 0

    def note(self, text: str) -> None:
        pass

    def under_way(self, answered: int) -> None:
        pass

    def begin(self, total: int, done: int) -> None:
        pass

    def advance(self, statuses: Any) -> None:
        self.done += sum(statuses.values())

    def end(self) -> None:
        pass


class Killed(Quiet):
    """Dies as the process would, once some units of the second round are done."""

    def __init__(self, units: int = 1) -> None:
        super().__init__()
        self.rounds, self.units = 0, units

    def begin(self, total: int, done: int) -> None:
        super().begin(total, done)
        self.rounds += 1

    def advance(self, statuses: Any) -> None:
        super().advance(statuses)
        self.units -= self.rounds == 2
        if not self.units:
            raise SystemExit(137)


def inline(_logs: Path) -> InlineEngine:
    return InlineEngine()


def study(folder: Path, **more: Any) -> StudyFile:
    data: dict[str, Any] = {
        "name": "limits",
        "data": {"format": "folder", "root": str(folder / "data")},
        "robustness": {"bootstrap": 10},
        "fpr_max": 5.0,
        "limits": {"rules": [RULE], "conditions": [{"brightness": {"scale": SCALES}}]},
        **more,
    }
    suts = {"keen": Spots(70, "keen"), "dull": Spots(120, "dull")}
    return study_with(YamlFile(folder / "study.yaml", data, {}), suts)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("limits")
    write_data(path / "data", [f"log{number:02}" for number in range(8)])
    return path


@pytest.fixture(scope="module")
def found(folder: Path) -> StudyLimits:
    limits = search_limits(study(folder), folder / "out", inline, watch=Quiet(), stop=Stop())
    assert limits is not None
    return limits


def test_limits_are_those_of_a_sweep(folder: Path, found: StudyLimits) -> None:
    swept = study(folder, mutations=[{"brightness": {"scale": SCALES}}])
    run_study(swept, folder / "sweep", InlineEngine(), watch=Quiet(), stop=Stop())
    rules = folder / "sweep.yaml"
    assert [one.sut for one in found.limits] == ["keen", "dull"]
    for one in found.limits:
        every = [{**RULE, "sut": one.sut, "setting": "clean"}]
        every += [{**RULE, "sut": one.sut, "setting": setting.id} for setting in one.condition.settings]
        rules.write_text(json.dumps({"rules": every}))
        verdicts = check_run(folder / "sweep", rules)
        measured = [verdict.measured for verdict in verdicts]
        failing = [step for step, value in enumerate(measured) if (value or 0.0) < 0.6]
        assert one.result.limit == failing[0] - 1
        assert 1 < one.result.limit < 12
        assert one.result.evaluations <= 5
        assert {step: measured[step] for step in one.values} == one.values
        passing = {step for step, verdict in enumerate(verdicts) if verdict.outcome is Outcome.PASS}
        failed = {step for step, verdict in enumerate(verdicts) if verdict.outcome is Outcome.FAIL}
        known = sorted(one.values)
        assert one.result.fails_from == min((step for step in known if step in failed), default=None)
        assert (one.result.certain_to is None) == (0 not in passing)
    assert found.settings == sum(one.result.evaluations for one in found.limits) <= 10


def test_nothing_is_asked_twice_and_the_answer_stays(folder: Path, found: StudyLimits) -> None:
    watch = Quiet()
    again = search_limits(study(folder), folder / "out", inline, watch=watch, stop=Stop())
    assert again is not None
    assert watch.done == 0
    assert whole_table(again).csv() == whole_table(found).csv()


def test_a_search_that_was_killed_and_stopped_goes_on_to_the_same_answer(
    folder: Path, found: StudyLimits
) -> None:
    class Once(Quiet):
        """Stops the search softly in its second round."""

        def __init__(self, stop: Stop) -> None:
            super().__init__()
            self.stop, self.rounds = stop, 0

        def begin(self, total: int, done: int) -> None:
            super().begin(total, done)
            self.rounds += 1
            self.stop.soft = self.rounds == 2

    only = {"rules": [{**RULE, "sut": "keen"}], "conditions": [{"brightness": {"scale": SCALES}}]}
    stop, file = Stop(), study(folder, limits=only)
    stopped = Once(stop)
    with pytest.raises(SystemExit):
        search_limits(file, folder / "stopped", inline, watch=Killed(), stop=Stop())
    assert search_limits(file, folder / "stopped", inline, watch=stopped, stop=stop) is None
    again = search_limits(file, folder / "stopped", inline, watch=Quiet(), stop=Stop())
    assert again is not None
    assert [one.plain() for one in again.limits] == [found.limits[0].plain()]


def verdicts(folder: Path, tmp_path: Path, *rules: dict[str, Any]) -> list[Verdict]:
    path = tmp_path / "rules.yaml"
    path.write_text(json.dumps({"rules": rules}))
    return check_run(folder / "out" / "keen", path)


def test_the_gate_asks_how_far_a_limit_goes(folder: Path, found: StudyLimits, tmp_path: Path) -> None:
    limit = found.limits[0]
    rule = {"measure": "limit", "of": "recall >= 0.6"}
    near, far, odd, other, misnamed = verdicts(
        folder,
        tmp_path,
        {**rule, "setting": "brightness(scale=0.97)"},
        {**rule, "setting": "brightness(scale=0.4)"},
        {**rule, "setting": "gaussian_blur(sigma_px=2)"},
        {**rule, "of": "recall >= 0.9", "setting": "brightness(scale=0.5)"},
        {**rule, "setting": "bright(scale=0.5)"},
    )
    certain = limit.result.certain_to
    assert near.outcome is (Outcome.PASS if certain else Outcome.INCONCLUSIVE)
    assert far.outcome is (Outcome.FAIL if limit.result.fails_from else Outcome.INCONCLUSIVE)
    assert far.measured == SCALES[(limit.result.limit or 0) - 1]
    assert odd.reason == "no limit was searched for this mutation with these options"
    assert "no limit was searched for the rule 'recall >= 0.9'" in other.reason
    strange = RunFigures(finished(folder / "out" / "keen"), Registry(plugins.load().all("level")))
    asked = Rule.model_validate({**rule, "setting": "brightness(scale=0.97)"})
    ((_, unknown),) = rule_verdicts(strange, asked)  # the mutation is of a plug-in that is not run
    assert (misnamed.reason, unknown.reason) == ("there is no mutation called 'bright'", UNTRUSTED)
    assert misnamed.outcome is unknown.outcome is Outcome.INCONCLUSIVE
    assert strange.withheld(asked)


def test_the_limits_of_a_run_are_worked_out_again_from_it(folder: Path, found: StudyLimits) -> None:
    (again,) = RunFigures(finished(folder / "out" / "keen")).limits
    assert again.plain() == found.limits[0].plain()


def test_page_and_tables_say_the_same(found: StudyLimits) -> None:
    table = domain_table(found, found.rules[0])
    assert table.headings == ["condition", "keen", "dull"]
    keen = found.limits[0]
    assert table.texts()[0][1] == keen.condition.words(keen.result.limit)
    unknown = replace(keen, values={0: None}, result=replace(keen.result, limit=None))
    told = domain_table(replace(found, limits=(unknown, *found.limits[1:])), found.rules[0])
    assert told.texts()[0][1] == "not measured"  # not that it does not hold
    page = render_limits(found)
    assert page.count("<svg") == 1
    assert f"{found.settings} settings were run" in page
    assert limit_lines(found)[-1].endswith("where a sweep of all steps takes 24.")
    assert BETWEEN in limit_lines(found)
    assert BETWEEN not in limit_lines(replace(found, settings=24))  # every step was run


@pytest.mark.parametrize(
    ("section", "words"),
    [
        (None, "no limits: section"),
        ({"rules": []}, "cannot be read"),
        ({"rules": [RULE], "step": 3}, "cannot be read"),
        ({"rules": [{"measure": "faults", "at_most": 0}]}, "not a rule that a condition can be searched by"),
        ({"rules": [{**RULE, "setting": "clean"}]}, "not a rule that a condition can be searched by"),
        ({"rules": [{"measure": "recall"}]}, "a rule has one limit"),
        ({"rules": [{"measure": "area", "at_least": 0.5}]}, "area needs level:"),
        ({"rules": [RULE], "conditions": ["channel_dropout"]}, "says no strength of its own"),
        ({"rules": [RULE], "conditions": [{"brightness": {"scale": 0.5}}]}, "one option of one mutation"),
        ({"rules": [RULE], "conditions": [{"brightness": {"scale": [0.5, 0.9, 0.7]}}]}, "do not go one way"),
        (
            {"rules": [RULE], "conditions": [{"brightness": {"scale": [0.2, 0.9]}}]},
            "begin with the strongest",
        ),
        ({"rules": [RULE], "conditions": [{"haze": {"visibility_m": [9, 400]}}]}, "begin with the strongest"),
        ({"rules": [RULE], "conditions": [{"jpeg": {"quality": [5, 80]}}]}, "begin with the strongest"),
        ({"rules": [RULE]}, "no mutation of the study has a strength"),
    ],
)
def test_a_section_that_cannot_be_searched_is_one_error(section: Any, words: str) -> None:
    def read() -> None:
        known = read_limits(section, where="limits")
        limit_rules(known, where="limits")
        conditions_of(known, [], plugins.load(), where="limits")

    with pytest.raises(StudyError, match=words):
        read()


def test_a_strength_of_its_own_has_as_many_steps_as_asked_for() -> None:
    section = read_limits({"rules": [RULE], "conditions": ["gaussian_blur"], "steps": 4}, where="limits")
    (blur,) = conditions_of(section, [], plugins.load(), where="limits")
    assert blur.values == (2.5, 10.0, 22.5, 40.0)
    assert blur.words(1) == "sigma 2.5 px"
    assert (blur.words(0), blur.words(None)) == ("clean", "not even clean")


def test_a_level_that_is_not_evaluated_is_no_rule_to_search_by(folder: Path, tmp_path: Path) -> None:
    file = study(folder, limits={"rules": [{"measure": "stops_in_time", "at_least": 0.9}]})
    with pytest.raises(StudyError, match="does not evaluate level loop"):
        search_limits(file, tmp_path, inline, watch=Quiet(), stop=Stop())


def test_the_command_says_what_is_missing(folder: Path) -> None:
    path = folder / "bare.yaml"
    path.write_text(json.dumps({"name": "bare", "data": {"format": "folder", "root": "data"}}))
    told = CliRunner().invoke(app, ["limits", str(path)])
    assert isinstance(told.exception, StudyError)
    assert "no limits: section" in str(told.exception)


def test_with_json_the_command_prints_that_alone(
    folder: Path, found: StudyLimits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder / "told.yaml"
    path.write_text(json.dumps({"name": "told", "data": {"format": "folder", "root": "data"}}))
    monkeypatch.setattr(limits_run, "search_limits", lambda *_, **__: found)
    printed = CliRunner().invoke(app, ["limits", str(path), "--out", str(tmp_path), "--json"])
    assert printed.exception is None
    assert printed.stdout == (tmp_path / "limits.json").read_text()
    assert {row["sut"] for row in json.loads(printed.stdout)} == {"keen", "dull"}


@pytest.mark.parametrize(("measure", "certain"), [("robustness", True), ("area", None)])
def test_all_of_a_clean_figure_is_left_for_certain(measure: str, *, certain: bool | None) -> None:
    rule = Rule(measure=measure, level="path", setting="identity", at_least=0.5)
    assert evaluation(rule, RunFigure("x", 1.0)).certain is certain

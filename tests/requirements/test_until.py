"""A run until its rules are settled: plan first, verdicts as the whole run's, the same however it is cut."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from adverse import plugins
from adverse.analysis.results import read_summary, run_results
from adverse.analysis.stopped import looks_of, opened, stopped_lines
from adverse.cli.app import app
from adverse.cli.options import trusted_plugins
from adverse.curves.group_sequential import boundaries, look_confidence
from adverse.curves.interval import Interval, korn_graubard
from adverse.data.images import write_image
from adverse.errors import StoreError, StudyError
from adverse.pages.view.session import ExploredRun
from adverse.report.until import cells_table, render_until, until_lines, verdict_table
from adverse.requirements.gate import check_run
from adverse.requirements.rules import Rule
from adverse.requirements.run_figures import RunFigures
from adverse.requirements.until import (
    LEAST_LOGS,
    MOST_LOOKS,
    UntilPlan,
    log_order,
    settle,
    staged,
    stays_open,
)
from adverse.requirements.until_run import UntilRun, run_until
from adverse.requirements.verdicts import Outcome, Verdict
from adverse.store.finished_run import finished
from adverse.store.folder import RunFolder
from adverse.store.read import Store
from adverse.store.verify import verify
from adverse.strict_yaml import YamlFile
from adverse.study.engines import Stop
from adverse.study.engines.local import InlineEngine
from adverse.study.plan import read_dataset
from adverse.study.run import run_study
from adverse.study.spec import StudyFile, study_with
from adverse.types import Image
from requirements.test_limits import Killed, Quiet

LOGS = 26
SHOWN = ("brightness(scale=0.3)", "brightness(scale=0.6)")
RULES: list[dict[str, Any]] = [
    {"measure": "recall", "setting": "clean", "at_least": 0.5},
    {"measure": "recall", "setting": "brightness(scale=0.3)", "at_least": 0.5},
    {"name": "some", "measure": "recall", "setting": "brightness(scale=0.6)", "at_least": 0.6},
]


class Spot:
    """Finds the bright spot where it is bright enough."""

    classes = ("person",)
    fingerprint = "spot"

    def detect(self, images: Sequence[Image]) -> list[Any]:
        found: list[Any] = []
        for image in images:
            rows, columns = np.nonzero(image[..., 0] > 90)
            box = [[columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]] if len(rows) else []
            found.append((box, [float(image[..., 0].max()) / 255] * len(box)))
        return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("until")
    images: list[dict[str, Any]] = []
    truth: list[dict[str, Any]] = []
    for number in range(2 * LOGS):
        rng = np.random.default_rng(number)
        image = rng.integers(0, 50, (24, 32, 3)).astype(np.uint8)
        name = f"log{number:02}/0.png"
        (root / "data" / name).parent.mkdir(parents=True)
        images.append({"id": number + 1, "file_name": name, "width": 32, "height": 24})
        if number < LOGS:
            image[8:16, 10:16] = 130 if number % 3 else 220
            truth.append({"id": number + 1, "image_id": number + 1, "category_id": 1, "bbox": [10, 8, 6, 8]})
        write_image(root / "data" / name, image)
    whole = {"images": images, "annotations": truth, "categories": [{"id": 1, "name": "person"}]}
    (root / "data" / "truth.json").write_text(json.dumps(whole))
    (root / "rules.yaml").write_text(json.dumps({"rules": RULES}))
    return root


def study(folder: Path, **more: Any) -> StudyFile:
    data: dict[str, Any] = {
        "name": "until",
        "data": {"format": "folder", "root": str(folder / "data")},
        "mutations": ["brightness(scale=0.6)", "brightness(scale=0.3)", "brightness(scale=0.9)"],
        "robustness": {"bootstrap": 20},
        "operating_point": {"score": 0.1},
        **more,
    }
    return study_with(YamlFile(folder / "study.yaml", data, {}), {"spot": Spot()})


def until(
    folder: Path, out: str, watch: Quiet | None = None, stop: Stop | None = None, **more: Any
) -> UntilRun | None:
    return run_until(
        study(folder),
        folder / "rules.yaml",
        folder / out,
        InlineEngine(),
        watch=watch or Quiet(),
        stop=stop or Stop(),
        **{"looks": 3, **more},
    )


@pytest.fixture(scope="module")
def run(folder: Path) -> UntilRun:
    found = until(folder, "out")
    assert found is not None
    return found


@pytest.fixture(scope="module")
def whole(folder: Path) -> Path:
    """Return the whole study, run at once."""
    run_study(study(folder), folder / "whole", InlineEngine(), watch=Quiet(), stop=Stop())
    return folder / "whole"


@pytest.fixture(scope="module")
def apart(folder: Path) -> Store:
    """Return the whole study, cut log by log."""
    file = study(folder)
    file.log_by_log = True
    run_study(file, folder / "apart", InlineEngine(), watch=Quiet(), stop=Stop())
    return finished(folder / "apart")


def test_clear_rules_are_settled_early_and_their_cells_dropped(run: UntilRun) -> None:
    passes, fails, some = run.verdicts
    assert [str(one.verdict.outcome) for one in run.verdicts] == ["PASS", "FAIL", "FAIL"]
    assert passes.look is not None
    assert min(passes.logs) >= 24
    assert fails.look is not None
    assert fails.look < passes.look
    used = run.logs_used
    assert used["spot", "brightness(scale=0.3)"] == sum(fails.logs) < used["spot", "identity"]
    assert ("spot", "brightness(scale=0.9)") not in used  # no rule is about it
    assert run.images == sum(used.values()) < 0.7 * run.images_of_all
    assert some.verdict.name == "some"


def test_figures_and_intervals_are_those_of_the_logs_of_their_look(
    folder: Path, run: UntilRun, whole: Path, apart: Store
) -> None:
    verdicts = check_run(whole, folder / "rules.yaml")
    assert [one.outcome for one in verdicts] == [one.verdict.outcome for one in run.verdicts]
    for one, rule in zip(run.verdicts, RULES, strict=True):
        assert one.look is not None
        shares = [sum(count) / (2 * LOGS) for count in run.plan.counts]
        sure = look_confidence(boundaries(shares, kind="obrien-fleming")[one.look - 1])
        logs = [log for stage in run.plan.stages[: one.look] for log in stage]
        part = apart.of_logs(logs, confidence=sure)
        (figure,) = RunFigures(part).figures(Rule.model_validate(rule))
        assert (figure.value, figure.interval) == (one.verdict.measured, one.verdict.interval)
        assert figure.interval is not None
        assert figure.interval.confidence == sure > 0.95
        hits = [_found(log) for log in logs if int(log[3:]) < LOGS] if "0.6" in rule["setting"] else None
        assert hits is None or figure.value == pytest.approx(np.mean(hits))


def test_logs_without_people_are_shown_only_to_rules_that_they_can_change(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adverse.requirements.until.SHARES", (0.1, 0.95, 1.0))
    root = tmp_path / "data"
    shutil.copytree(folder / "data", root / "test")
    shutil.move(root / "test/log00", root / "validation/log00")
    truth = json.loads((root / "test/truth.json").read_text())
    for image in truth["images"]:
        image["file_name"] = f"{'validation' if image['id'] == 1 else 'test'}/{image['file_name']}"
    (root / "truth.json").write_text(json.dumps(truth))
    (root / "test/truth.json").unlink()
    data = {
        "format": "folder",
        "root": str(root),
        "split": {"validation": "validation", "test": "test"},
    }
    rules = [
        {"measure": "recall", "setting": SHOWN[1], "at_least": 0.35},
        {"measure": "false_positives_per_image", "setting": SHOWN[0], "at_most": 0.0},
    ]
    (tmp_path / "rules.yaml").write_text(json.dumps({"rules": rules}))
    file, out = study(folder, data=data), tmp_path / "out"
    go_on = partial(run_until, file, tmp_path / "rules.yaml", out, InlineEngine(), looks=2, stop=Stop())
    with pytest.raises(SystemExit):  # between the two looks only logs with people are left to one rule
        go_on(watch=Killed(2))
    run = go_on(watch=Quiet())
    assert run is not None
    people, both = run.verdicts
    assert (run.plan.counts, run.looks) == (((24, 25), (25, 26)), 2)
    assert (people.logs, both.logs) == ((25, 25), (25, 26))
    assert run.logs_used == {("spot", "identity"): 51, ("spot", SHOWN[0]): 51, ("spot", SHOWN[1]): 50}
    assert run.images == sum(run.logs_used.values())
    assert people.verdict.measured == pytest.approx(8 / 25)  # of log01 to log25, by _found
    interval = people.verdict.interval
    assert interval is not None
    sure = run.plan.confidence(1)
    hits = korn_graubard([1] * 8 + [0] * 17, [1] * 25, confidence=sure)
    assert (interval.low, interval.high) == pytest.approx((hits.low, hits.high))
    found = check_run(out, tmp_path / "rules.yaml")
    assert [(one.outcome, one.measured, one.interval) for one in found] == [
        (one.verdict.outcome, one.verdict.measured, one.verdict.interval) for one in run.verdicts
    ]
    assert "look 2 of 2, 25 + 25 logs" in found[0].reason
    looks = looks_of(finished(out, selected=("until",)))
    assert {cell: looks.logs(*cell) for cell in looks.reached} == run.logs_used
    assert looks.of("spot", SHOWN) == 0  # figures of the look that both were shown whole
    assert looks.of("spot", SHOWN, people=True) == 1
    assert "only rules about logs with people" in stopped_lines(looks)[-1]
    assert set(looks.shown_logs) == {log for stage in run.plan.stages for log in stage}
    assert not verify(RunFolder(out), inputs=False).problems


def _found(log: str) -> bool:
    return int(log[3:]) % 3 == 0  # 0.6 * 130 is not above 90, 0.6 * 220 is


def test_every_figure_of_a_stopped_run_is_of_the_logs_of_its_look(
    folder: Path, run: UntilRun, apart: Store
) -> None:
    out = folder / "out"
    with pytest.raises(StoreError, match="stopped early, when its rules were settled"):
        finished(out)
    told = CliRunner().invoke(app, ["analyze", str(out)])
    assert told.exit_code == 3, told.output  # the worst case of all mutations is not known
    assert "Stopped early: " in told.output
    summary = read_summary(opened(out))
    used = {(cell["sut"], cell["setting"]): cell["logs"] for cell in summary.data["stopped_early"]["cells"]}
    assert used == run.logs_used
    rows = [row for row in summary.data["plain_metrics"] if row["setting"] in ("identity", *SHOWN)]
    assert len(rows) == 3
    for row in rows:
        look = [sum(count) for count in run.plan.counts].index(used["spot", row["setting"]])
        logs = [log for stage in run.plan.stages[: look + 1] for log in stage]
        part = run_results(apart.of_logs(logs, confidence=run.plan.confidence(look))).summary.data
        same = next(one for one in part["plain_metrics"] if one["setting"] == row["setting"])
        assert [row[name] for name in ("recall", "recall_interval", "logs")] == [
            same[name] for name in ("recall", "recall_interval", "logs")
        ]
    confidences = set(_confidences(summary.data))
    assert confidences
    assert confidences <= {run.plan.confidence(look) for look in range(run.looks)}
    assert 0.95 not in confidences
    assert not summary.data.get("rankings")
    any_row = next(row for row in summary.rows if row["setting"] == "Any")
    assert (any_row["area"], any_row["status"]) == (None, "insufficient")  # one mutation was not run
    page = (out / "report.html").read_text()
    assert "Stopped early: " in page
    assert "Logs used, of 52" in page
    assert ExploredRun(out).logs


def _confidences(value: Any) -> Iterator[float]:
    """Yield the confidence of every interval of a summary, Bonferroni's among many apart."""
    if isinstance(value, dict):
        if "method" in value and value.get("low") is not None:
            yield value["confidence"]
        for name, part in value.items():
            if name != "outstanding_slices":
                yield from _confidences(part)
    elif isinstance(value, list):
        for part in value:
            yield from _confidences(part)


def test_a_stopped_run_is_held_to_its_plan_and_to_other_rules(folder: Path, run: UntilRun) -> None:
    found = check_run(folder / "out", folder / "rules.yaml")
    assert [(one.outcome, one.measured, one.interval) for one in found] == [
        (one.verdict.outcome, one.verdict.measured, one.verdict.interval) for one in run.verdicts
    ]
    assert all("repeated interval" in one.reason for one in found)
    others = folder / "others.yaml"
    rules = [
        {"measure": "recall", "setting": "brightness(scale=0.3)", "at_least": 0.0},
        {"measure": "recall", "setting": "brightness(scale=0.9)", "at_least": 0.1},
        {"measure": "faults", "at_most": 0},
        {"measure": "robust_area", "setting": "Any", "level": "image/ROC_A", "at_least": 0.0},
    ]
    others.write_text(json.dumps({"rules": rules}))
    few, *untold = check_run(folder / "out", others, registry=trusted_plugins(folder / "out"))
    assert str(few.outcome) == "INCONCLUSIVE"  # the figure keeps the limit, on fewer than 24 + 24 logs
    assert "24 logs of either kind" in few.reason
    assert [str(one.outcome) for one in untold] == ["INCONCLUSIVE"] * 3
    assert "no rule of the plan asked for it" in untold[0].reason
    assert "go on to the whole study" in untold[1].reason


def test_a_kill_and_a_stop_change_no_verdict_and_the_whole_study_uses_what_is_there(
    folder: Path, run: UntilRun, whole: Path
) -> None:
    class Second(Quiet):
        """Stops softly while the second look is run, which was begun and killed before."""

        begun = kept = 0

        def begin(self, total: int, done: int) -> None:
            super().begin(total, done)
            self.begun, self.kept = self.begun + 1, done
            stop.soft = self.begun == 2

    out, watch, stop = folder / "killed", Quiet(), Stop()
    with pytest.raises(SystemExit):
        until(folder, "killed", Killed(3))
    stopped, last = Second(), Quiet()
    assert until(folder, "killed", stopped, stop) is None
    again = until(folder, "killed", last)
    assert again is not None
    assert again.plain() == run.plain()
    assert stopped.kept + stopped.done + last.done == run.images  # nothing is asked twice
    ran = run_study(study(folder), out, InlineEngine(), watch=watch, stop=Stop())
    assert ran.status == "complete"
    assert watch.done == run.images_of_all - run.images
    assert [one.plain() if one else None for one in _recalls(out)] == [
        one.plain() if one else None for one in _recalls(whole)
    ]
    assert not verify(RunFolder(out), inputs=False).problems
    with pytest.raises(StudyError, match="begun without a plan"):
        until(folder, "killed")


def _recalls(path: Path) -> list[Any]:
    figures = RunFigures(finished(path))
    return [next(iter(figures.figures(Rule.model_validate(rule)))).interval for rule in RULES]


def test_the_plan_stands_before_the_first_answer_and_may_not_change(folder: Path, run: UntilRun) -> None:
    class Before(Quiet):
        """Looks at the manifest before anything is run, and stops."""

        facts: Any = None

        def begin(self, total: int, done: int) -> None:
            super().begin(total, done)
            self.facts = RunFolder(folder / "before").read_manifest()["selection"]["facts"]
            stop.soft = True

    stop = Stop()
    watch = Before()
    assert until(folder, "before", watch, stop) is None
    assert watch.facts == json.loads(json.dumps(run.plan.facts))
    for change in ({"looks": 4}, {"spending": "pocock"}):
        with pytest.raises(StudyError, match="not the one that the run was begun with"):
            until(folder, "before", **change)


def test_page_and_tables_say_that_it_stopped(run: UntilRun) -> None:
    assert until_lines(run)[0].startswith(f"Stopped early, after look {run.looks} of 3: {run.images} of")
    assert verdict_table(run).texts()[1][1] == "FAIL"
    assert cells_table(run).texts()[0][1] == str(run.logs_used["spot", "identity"])
    page = render_until(run)
    assert "Stopped early" in page
    assert f"at this look {100 * run.plan.confidence(run.looks - 1):.6g}%" in page


def test_logs_come_in_equal_parts_in_an_order_of_the_seed(folder: Path) -> None:
    file = study(folder)
    dataset = read_dataset(file, plugins.load())
    orders = [log_order(dataset, ("person",), seed) for seed in (0, 0, 1)]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0][0]) == [f"log{number:02}" for number in range(LOGS)]
    stages = staged(*orders[0], 5)
    assert sorted(log for stage in stages for kind in stage for log in kind) == sorted(
        [*orders[0][0], *orders[0][1]]
    )
    shares = np.array([0.3, 0.45, 0.625, 0.8, 1.0])
    assert np.cumsum([[len(p), len(n)] for p, n in stages], axis=0).tolist() == [
        [math.ceil(LOGS * share)] * 2 for share in shares
    ]


@pytest.mark.parametrize("looks", range(2, MOST_LOOKS + 1))
def test_every_look_adds_logs_of_either_kind(looks: int) -> None:
    for count in (LEAST_LOGS, 40, 101):
        stages = staged(range(count), range(LEAST_LOGS), looks)
        assert all(positive and negative for positive, negative in stages)
        assert [log for positive, _ in stages for log in positive] == list(range(count))


@pytest.mark.parametrize(
    ("rule", "limit"), [("violations", {"at_most": 0.2}), ("stops_in_time", {"at_least": 0.7})]
)
def test_what_stays_open_is_what_no_further_logs_could_settle(rule: str, limit: dict[str, float]) -> None:
    counts = ((12, 12), (18, 18), (25, 25), (32, 32), (40, 40))
    plan = UntilPlan((), counts, "obrien-fleming", (), {"fixed_thresholds": True})
    moving = UntilPlan((), counts, "obrien-fleming", (), {"fixed_thresholds": False})
    asked = Rule.model_validate({"measure": rule, "setting": "clean", **limit})

    def rate(hits: int, logs: int, look: int) -> Interval:
        return korn_graubard([1] * hits + [0] * (logs - hits), [1] * logs, confidence=plan.confidence(look))

    def clear(hits: int, logs: int, look: int) -> bool:
        ends = rate(hits, logs, look)
        assert ends.low is not None
        assert ends.high is not None
        if rule == "violations":
            return ends.high <= limit["at_most"] or ends.low > limit["at_most"]
        return ends.low >= limit["at_least"] or ends.high < limit["at_least"]

    certain = []
    for look, hits in ((2, 7), *((3, hits) for hits in range(1, 31))):
        logs, later = counts[look][0], counts[look + 1 :]
        more = [
            (hits + added, logs + extra, look + 1 + k)
            for k, (end, _) in enumerate(later)
            for extra in (0, 1, end - logs - 1, end - logs)  # some logs may turn out to be of no use
            for added in range(extra + 1)
        ]
        found = stays_open(plan, look, asked, rate(hits, logs, look))
        assert found == (not any(clear(*one) for one in more))
        assert not stays_open(moving, look, asked, rate(hits, logs, look))
        certain += [(look, hits)] * found
    assert certain


def test_a_rule_that_stays_open_is_dropped_and_says_so() -> None:
    plan = UntilPlan((), ((32, 32), (40, 40)), "obrien-fleming", (), {"fixed_thresholds": True})
    rule = Rule.model_validate({"measure": "violations", "setting": "clean", "at_most": 0.2})
    interval = korn_graubard([1] * 4 + [0] * 28, [1] * 32, confidence=plan.confidence(0))
    verdict = Verdict("v", "", 0.2, interval.value, interval, Outcome.INCONCLUSIVE, "open")
    (said,) = settle(plan, 0, (0, rule), [verdict], {}).values()
    assert (said.look, str(said.verdict.outcome)) == (1, "INCONCLUSIVE")
    assert said.verdict.reason == "open; it would stay so whatever the logs that were not run show"
    recall = rule.model_copy(update={"measure": "recall", "at_most": None, "at_least": 0.2})
    assert not settle(plan, 0, (0, recall), [verdict], {})


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"measure": "faults", "at_most": 0}, "faults cannot be settled early"),
        ({**RULES[0], "bound": "point"}, "goes by the figure itself"),
        ({**RULES[0], "setting": "haze(visibility_m=50)"}, "the study has no mutation"),
        ({**RULES[0], "sut": "other"}, "the study has no SUT"),
        ({"measure": "violations", "setting": "clean", "at_most": 0.2}, "does not evaluate level loop"),
        (
            {"measure": "area", "level": "path", "setting": "clean", "at_least": 0.2},
            "does not evaluate level path",
        ),
    ],
)
def test_rules_that_cannot_be_settled_are_one_error(
    folder: Path, tmp_path: Path, rule: Any, words: str
) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(json.dumps({"rules": [rule]}))
    with pytest.raises(StudyError, match=words):
        run_until(study(folder), path, tmp_path / "out", InlineEngine(), watch=Quiet(), stop=Stop())


def test_the_command_says_that_logs_are_too_few(folder: Path, tmp_path: Path) -> None:
    data = {"format": "folder", "root": str(folder / "data"), "split": {"test": ["log0*"]}}
    path = tmp_path / "study.yaml"
    section = {"name": "x", "data": data, "suts": [{"name": "hog", "adapter": "opencv-hog"}]}
    path.write_text(json.dumps(section))
    told = CliRunner().invoke(app, ["run", str(path), "--until", str(folder / "rules.yaml")])
    assert isinstance(told.exception, StudyError)

"""Margins of a run are those of a sweep, with fewer images; survival is Kaplan and Meier's; the gate asks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adverse.cli.options import trusted_plugins
from adverse.curves.bootstrap import draw
from adverse.curves.margin_search import Margins
from adverse.errors import StoreError, StudyError
from adverse.plugins import Registry, load
from adverse.report.margins import (
    margin_lines,
    margins_json,
    margins_table,
    nearest,
    people_table,
    render_margins,
)
from adverse.requirements.gate import check_run
from adverse.requirements.margins import RunMargins, read_margins, survival_curve
from adverse.requirements.margins_run import StudyMargins, search_margins
from adverse.requirements.rules import Rule
from adverse.requirements.run_figures import UNTRUSTED, RunFigures
from adverse.requirements.verdicts import Outcome, Verdict
from adverse.store.finished_run import finished
from adverse.store.folder import RunFolder
from adverse.store.verify import verify
from adverse.strict_yaml import YamlFile
from adverse.study.engines import Stop
from adverse.study.engines.local import InlineEngine
from adverse.study.run import run_study
from adverse.study.spec import StudyFile, study_with
from analysis.test_compare import Spots, write_data
from requirements.test_limits import Killed, Quiet, inline

SCALES = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4]


def study(folder: Path, **more: Any) -> StudyFile:
    data: dict[str, Any] = {
        "name": "margins",
        "data": {"format": "folder", "root": str(folder / "data")},
        "robustness": {"bootstrap": 20},
        "fpr_max": 5.0,
        "margins": {"conditions": [{"brightness": {"scale": SCALES}}]},
        **more,
    }
    return study_with(YamlFile(folder / "study.yaml", data, {}), {"dull": Spots(110, "dull")})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("margins")
    write_data(path / "data", [f"log{number:02}" for number in range(8)])
    return path


@pytest.fixture(scope="module")
def found(folder: Path) -> StudyMargins:
    margins = search_margins(study(folder), folder / "out", inline, watch=Quiet(), stop=Stop())
    assert margins is not None
    return margins


@pytest.fixture(scope="module")
def sweep(folder: Path) -> RunMargins:
    swept = study(folder, mutations=[{"brightness": {"scale": SCALES}}], noise="common")
    run_study(swept, folder / "sweep", InlineEngine(), watch=Quiet(), stop=Stop())
    return RunMargins(finished(folder / "sweep"), load())


def lost_at(sweep: RunMargins) -> list[int]:
    """Return where each person is lost, from the boxes of the sweep: nothing but a loop."""
    store, rows = sweep.store, []
    for person in sweep.people.tolist():
        frame = int(store.truth.frame[person])
        for step, setting in enumerate(store.groups):
            answers = store.answers("dull", settings=[setting])[setting]
            row = answers.frame.tolist().index(frame)
            boxes = answers.boxes[answers.offsets[row] : answers.offsets[row + 1]]
            if not any(_iou(box, store.truth.boxes[person]) >= 0.5 for box in boxes):
                rows.append(step)
                break
        else:
            rows.append(len(store.groups))
    return rows


def _iou(one: Any, other: Any) -> float:
    wide, high = (max(0.0, min(one[k + 2], other[k + 2]) - max(one[k], other[k])) for k in (0, 1))
    sizes = [(box[2] - box[0]) * (box[3] - box[1]) for box in (one, other)]
    return float(wide * high / (sum(sizes) - wide * high))


def test_margins_are_those_of_a_sweep_with_fewer_images(found: StudyMargins, sweep: RunMargins) -> None:
    (mine,) = found.suts[0].conditions
    (whole,) = sweep.of_sut("dull")
    assert mine.margins.step.tolist() == whole.margins.step.tolist() == lost_at(sweep)
    assert [point.share for point in mine.survival] == [point.share for point in whole.survival]
    assert mine.looked_at < 0.75 * mine.sweep
    assert mine.looked_at == sum(min(step, len(SCALES)) for step in mine.margins.step.tolist())
    assert whole.looked_at > mine.sweep  # frames without anybody, too


def test_bisection_gives_the_same_on_answers_that_only_fall(folder: Path, found: StudyMargins) -> None:
    section = {"conditions": [{"brightness": {"scale": SCALES}}], "method": "bisect"}
    file = study(folder, margins=section)
    again = search_margins(file, folder / "bisect", inline, watch=Quiet(), stop=Stop())
    assert again is not None
    (mine,), (other,) = found.suts[0].conditions, again.suts[0].conditions
    assert mine.margins.step.tolist() == other.margins.step.tolist()


def test_a_search_goes_on_where_it_was_killed_and_stopped_and_asks_nothing_twice(
    folder: Path, found: StudyMargins
) -> None:
    class Third(Quiet):
        """Stops the search softly in its third round."""

        rounds = 0

        def begin(self, total: int, done: int) -> None:
            super().begin(total, done)
            self.rounds += 1
            stop.soft = self.rounds == 3

    stop = Stop()
    killed, first, second, third = Killed(2), Third(), Quiet(), Quiet()
    out = folder / "stopped"
    with pytest.raises(SystemExit):
        search_margins(study(folder), out, inline, watch=killed, stop=Stop())
    assert search_margins(study(folder), out, inline, watch=first, stop=stop) is None
    again = search_margins(study(folder), out, inline, watch=second, stop=Stop())
    assert again is not None
    assert people_table(again).csv() == people_table(found).csv()
    assert search_margins(study(folder), out, inline, watch=third, stop=Stop()) is not None
    assert third.done == 0
    shown = 24 + sum(one.looked_at for one in found.suts[0].conditions)
    assert killed.done + first.done + second.done == shown
    assert not verify(RunFolder(out / "dull"), inputs=False).problems


def test_only_who_knows_how_reads_such_a_run(found: StudyMargins) -> None:
    with pytest.raises(StoreError, match="a search for margins"):
        finished(found.suts[0].folder)


def verdicts(run: Path, tmp_path: Path, *rules: dict[str, Any]) -> list[Verdict]:
    path = tmp_path / "rules.yaml"
    path.write_text(json.dumps({"rules": rules}))
    return check_run(run, path)


def test_the_gate_asks_how_many_stay_found(found: StudyMargins, sweep: RunMargins, tmp_path: Path) -> None:
    rules = [
        {"measure": "margin", "setting": "brightness(scale=0.75)", "at_least": 0.5},
        {"measure": "margin", "setting": "brightness(scale=0.1)", "at_least": 0.5},
        {"measure": "margin", "setting": "gaussian_blur(sigma_px=2)", "at_least": 0.5},
        {"measure": "recall", "setting": "clean", "at_least": 0.5},
    ]
    rules.append({"measure": "margin", "setting": "haz(visibility_m=9)", "at_least": 0.5})
    between, beyond, other, biased, misnamed = verdicts(found.suts[0].folder, tmp_path, *rules)
    (mine,) = found.suts[0].conditions
    assert between.measured == mine.survival[3].share  # a setting between two steps: the stronger one
    assert between.interval == mine.survival[3].interval
    assert "goes no further than" in beyond.reason
    assert "in several strengths" in other.reason
    assert "chose its frames" in biased.reason
    assert misnamed.reason == "there is no mutation called 'haz'"
    assert {one.outcome for one in (beyond, other, biased, misnamed)} == {Outcome.INCONCLUSIVE}
    assert "no intervals" not in between.reason
    strange = RunFigures(finished(found.suts[0].folder, selected=("margins",)), Registry([]))
    (unknown,) = strange.figures(Rule.model_validate(rules[0]))  # a mutation of a plug-in that is not run
    assert (unknown.value, unknown.doubt) == (None, UNTRUSTED)
    assert trusted_plugins(found.suts[0].folder).all("mutation")  # as check --trust loads them
    (swept,) = RunFigures(sweep.store).figures(Rule.model_validate(rules[0]))
    assert (swept.value, swept.interval) == (between.measured, between.interval)


def test_survival_is_that_of_kaplan_and_meier_where_some_could_not_be_seen() -> None:
    step = np.array([1, 2, 2, 3, 4, 4])
    lost = np.array([True, True, False, True, False, False])
    found = Margins(step, lost, np.ones(6, np.bool_))
    log = np.arange(6)
    resamples = draw([f"log{number}" for number in log], ["+"] * 6, seed=1, count=50)
    curve = survival_curve(found, 3, log, 6, resamples)
    # step 1: 1 of 6 lost; step 2: 1 of 4, one not seen there; step 3: 1 of 3
    assert [point.share for point in curve] == pytest.approx([1, 5 / 6, 5 / 8, 5 / 12])
    assert [(point.at_risk, point.lost) for point in curve] == [(6, 0), (6, 1), (4, 1), (3, 1)]
    for point in curve[1:]:
        assert point.interval is not None
        assert point.interval.low is not None
        assert point.interval.high is not None
        assert point.interval.low <= (point.share or 0.0) <= point.interval.high


def test_when_all_are_lost_nobody_is_left() -> None:
    found = Margins(np.array([1, 1]), np.array([True, True]), np.ones(2, np.bool_))
    assert [point.share for point in survival_curve(found, 3, np.zeros(2, np.int64), 1, None)] == [1, 0, 0, 0]


def test_page_and_tables_show_who_is_nearest(found: StudyMargins) -> None:
    sut = found.suts[0]
    (mine,) = sut.conditions
    order = nearest(sut.run, sut.conditions)
    steps = [int(mine.margins.step[number]) for _, number in order]
    assert steps == sorted(steps)
    assert len(order) == int(mine.margins.lost.sum())
    page = render_margins(found)
    assert "the smallest margins" in page
    assert page.count('class="pair"') == min(8, 2 * len({row // 3 for _, row in order}))
    assert margins_table(found).texts()[0][:3] == ["dull", "brightness", str(int(mine.margins.at_risk.sum()))]
    assert len(json.loads(margins_json(found))["people"]) == len(mine.people)
    assert f"{mine.looked_at} mutated images of {mine.sweep}" in margin_lines(found)[-1]


@pytest.mark.parametrize("section", [{"method": "guess"}, {"steps": 1}, {"condition": []}])
def test_a_section_that_cannot_be_read_is_one_error(section: Any) -> None:
    with pytest.raises(StudyError, match="the margins: section cannot be read"):
        read_margins(section, where="margins")

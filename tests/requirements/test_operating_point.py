"""An operating point is what its own half of the logs says of it; the gate has the same rules."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from adverse.analysis.closed_loop import Operation, confirmed, drive_settings
from adverse.analysis.detections import sut_detections
from adverse.analysis.loop import Driver, drive_detections
from adverse.analysis.plain_metrics import operating_threshold
from adverse.cli.app import app
from adverse.curves.curve import hypervolume
from adverse.curves.interval import korn_graubard
from adverse.curves.operating_point import halves
from adverse.errors import StudyError
from adverse.levels.context import level_input, run_context
from adverse.levels.loop import input_obstacles_m
from adverse.levels.outcomes import positive_logs
from adverse.report.operating_point import (
    operating_lines,
    pareto_table,
    render_operating_points,
    whole_table,
)
from adverse.requirements.gate import check_run
from adverse.requirements.operating_point import operating_points
from adverse.requirements.operating_results import OperatingPoints
from adverse.requirements.rules import read_rules
from adverse.requirements.verdicts import Outcome
from adverse.store.finished_run import finished
from adverse.store.read import Store
from adverse.text import setting_text
from synthetic_run import Size, write_run

HAZE, DEFOCUS = "haze(visibility_m=1)", "defocus(focus_m=1, kappa=2)"
EASY = {"measure": "violations", "setting": "AnyMild", "at_most": 0.95}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("operate") / "run"
    write_run(folder, Size(1, 3, 24, 16, 4, bootstrap=50))
    return folder


def rules_file(tmp_path: Path, *rules: dict[str, Any]) -> Path:
    path = tmp_path / "rules.yaml"
    path.write_text(json.dumps({"rules": rules}))
    return path


def chosen(run: Path, tmp_path: Path, *rules: dict[str, Any], seed: int | None = None) -> OperatingPoints:
    return operating_points(finished(run), rules_file(tmp_path, *rules), seed=seed)


def driven_one_by_one(store: Store, setting: str, threshold: float) -> dict[str, tuple[bool, bool]]:
    """Return of every positive log whether the robot moved inside a safety radius, and stopped in time."""
    context, detections = run_context(store), sut_detections(store, "sut00")
    positive = positive_logs(store.truth, store.frames)
    driver = Driver("sut00", setting, 0.0, threshold)
    found = {}
    for number in np.unique(store.frames.log[store.frames.test]).tolist():
        log = store.frames.logs[number]
        if positive[number]:
            driven = drive_detections(context, detections.settings[setting], driver, log, kind="annotated")
            if driven.safe is not None:
                found[log] = (bool(driven.by_sut.violating.any()), driven.safe)
    return found


def test_the_gate_counts_what_single_drives_do(run: Path, tmp_path: Path) -> None:
    store = finished(run)
    threshold = float(operating_threshold(store, sut_detections(store, "sut00")).score)
    ends = {setting: driven_one_by_one(store, setting, threshold) for setting in (HAZE, "identity")}
    verdicts = check_run(
        run,
        rules_file(
            tmp_path,
            {"measure": "violations", "level": "loop/annotated", "setting": HAZE, "at_most": 0.5},
            {"measure": "stops_in_time", "level": "loop/annotated", "setting": "clean", "at_least": 0.5},
            {
                "measure": "violations",
                "level": "loop/annotated",
                "conditions": {"clean": 0.75, HAZE: 0.25},
                "at_most": 0.5,
            },
            {**EASY, "level": "loop/annotated"},
        ),
    )
    hazy, calm = ([end[0] for end in ends[setting].values()] for setting in (HAZE, "identity"))
    in_time = [end[1] for end in ends["identity"].values()]
    assert 0 < sum(hazy) < len(hazy)
    mixed = 0.25 * np.array(hazy) + 0.75 * np.array(calm)
    for verdict, values in zip(verdicts[:3], map(np.asarray, (hazy, in_time, mixed)), strict=True):
        wanted = korn_graubard(values.astype(np.float64), np.ones(len(values)))
        assert verdict.measured == pytest.approx(wanted.value)
        assert verdict.interval is not None
        assert (verdict.interval.low, verdict.interval.high) == pytest.approx((wanted.low, wanted.high))
    assert "under its conditions" in verdicts[2].requirement
    assert [verdict.requirement.partition("annotated")[2] for verdict in verdicts[3:]] == [
        " on clean images is at most 0.95",
        " under haze 1 m is at most 0.95",
        f" under {setting_text(DEFOCUS)} is at most 0.95",
    ]


def test_the_point_is_that_of_the_logs_that_check(run: Path, tmp_path: Path) -> None:
    store = finished(run)
    (point,) = chosen(run, tmp_path, EASY).points
    assert point.level == "loop/annotated"
    assert point.logs.choice_positive + point.logs.check_positive == len(driven_one_by_one(store, HAZE, 0.5))
    (rate,) = point.chosen.rates
    alone = {one.setting: one.shared.rates[0].rate for one in point.conditions}
    assert set(alone) == {"identity", HAZE, DEFOCUS}
    assert rate.rate == alone[rate.setting]
    assert rate.rate.high == max(one.high or 0.0 for one in alone.values())
    whole = driven_one_by_one(store, rate.setting, point.chosen.threshold)
    assert rate.rate.logs == point.logs.check_positive
    assert round((rate.rate.value or 0.0) * rate.rate.logs) <= sum(end[0] for end in whole.values())
    efficiencies = [one.shared.efficiency.value or 0.0 for one in point.conditions]
    assert point.chosen.efficiency.value == min(efficiencies)
    assert point.chosen.outcome is Outcome.PASS


def test_another_seed_deals_other_logs_and_the_same_seed_says_the_same(run: Path, tmp_path: Path) -> None:
    calm = {**EASY, "setting": "clean"}
    first, again, other = (chosen(run, tmp_path, calm, seed=seed) for seed in (1, 1, 2))
    assert first.plain() == again.plain()
    assert first.plain() != other.plain()


def test_conditions_with_chances_give_the_expected_rate(run: Path, tmp_path: Path) -> None:
    rule = {"measure": "violations", "conditions": {"clean": 0.5, HAZE: 0.5}, "at_most": 0.9}
    (point,) = chosen(run, tmp_path, rule).points
    (rate,) = point.chosen.rates
    alone = [one.shared.rates[0].rate.value for one in point.conditions]
    assert rate.rate.value == pytest.approx(np.mean([value or 0.0 for value in alone]))
    efficiency = [one.shared.efficiency.value or 0.0 for one in point.conditions]
    assert point.chosen.efficiency.value == pytest.approx(np.mean(efficiency))


def test_stops_in_time_is_the_same_rule_the_other_way_round(run: Path, tmp_path: Path) -> None:
    rule = {"measure": "stops_in_time", "setting": "clean", "at_least": 0.4}
    (point,) = chosen(run, tmp_path, rule).points
    (rate,) = point.chosen.rates
    assert rate.words == "late or no stops at most 0.6"
    assert rate.at_most == pytest.approx(0.6)


def test_what_cannot_be_kept_fails_and_what_is_not_sure_is_open(run: Path, tmp_path: Path) -> None:
    tight = {**EASY, "setting": HAZE, "at_most": 0.001}
    (point,) = chosen(run, tmp_path, tight).points
    assert point.chosen.outcome is not Outcome.PASS
    assert point.chosen.reason
    (line, *_) = operating_lines(chosen(run, tmp_path, tight))
    assert "More logs alone are not expected to help" in line or "cannot be kept" in line


def test_page_and_files_are_whole(run: Path, tmp_path: Path) -> None:
    found = chosen(run, tmp_path, EASY, {"measure": "recall", "setting": "Any", "at_least": 0.5})
    page = render_operating_points(found)
    assert page.count("<svg") == 1
    assert "Rules that have no say in a threshold here: recall" in page
    assert [record["setting"] for record in whole_table(found).data()] == ["identity", HAZE, DEFOCUS]
    json.dumps(found.plain(), allow_nan=False)


def test_the_command_prints_little_and_says_by_its_code_how_it_went(run: Path, tmp_path: Path) -> None:
    files = [str(tmp_path / name) for name in ("p.html", "p.csv", "p.json")]
    options = [part for pair in zip(("--html", "--csv", "--json"), files, strict=True) for part in pair]
    told = CliRunner().invoke(app, ["operate", str(run), str(rules_file(tmp_path, EASY)), *options])
    assert told.exit_code == 0, told.output
    assert len(told.output.splitlines()) <= 30
    assert json.loads(Path(files[2]).read_text())["operating_points"][0]["sut"] == "sut00"
    tight = rules_file(tmp_path, {**EASY, "at_most": 0.01})
    assert CliRunner().invoke(app, ["operate", str(run), str(tight), "--tables"]).exit_code in (1, 3)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"measure": "recall", "setting": "Any", "at_least": 0.5}, "no rule here depends on a threshold"),
        ({**EASY, "bound": "point"}, "chosen by the ends of intervals"),
        ({**EASY, "sut": "nobody"}, "no SUT 'nobody'"),
        ({**EASY, "setting": "haze(visibility_m=9)"}, "no mutation 'haze"),
    ],
)
def test_rules_that_choose_nothing_are_refused(
    run: Path, tmp_path: Path, rule: dict[str, Any], words: str
) -> None:
    with pytest.raises(StudyError, match=words):
        chosen(run, tmp_path, rule)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"measure": "violations", "at_most": 0.1}, "violations needs setting:"),
        ({**EASY, "conditions": {"clean": 1.0}}, "setting: or conditions:, not both"),
        ({"measure": "violations", "conditions": {"clean": 0.5}, "at_most": 0.1}, "do not sum to 1"),
        ({"measure": "violations", "setting": "clean", "at_least": 0.1}, "wrong way round"),
        (
            {
                "measure": "area",
                "level": "path",
                "setting": "Any",
                "conditions": {"clean": 1.0},
                "at_least": 0,
            },
            "area takes no conditions",
        ),
    ],
)
def test_keys_that_do_not_fit_are_errors(tmp_path: Path, rule: dict[str, Any], words: str) -> None:
    with pytest.raises(StudyError, match=words):
        read_rules(rules_file(tmp_path, rule))


def test_a_run_without_a_robot_has_no_operating_point(tmp_path: Path) -> None:
    write_run(tmp_path / "run", Size(1, 2, 4, 8, 1, bootstrap=0, levels=("image",)))
    with pytest.raises(StudyError, match="no closed loop"):
        chosen(tmp_path / "run", tmp_path, EASY)
    (verdict,) = check_run(tmp_path / "run", rules_file(tmp_path, {**EASY, "setting": "clean"}))
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert "did not evaluate level loop" in verdict.reason


def test_an_obstacle_counts_once_enough_images_in_a_row_show_one(run: Path) -> None:
    store = finished(run)
    context, detections = run_context(store), sut_detections(store, "sut00")
    thresholds = np.array([0.6, 0.3], np.float32)
    given = level_input(context, detections.settings[HAZE], thresholds, detections.counted(HAZE))
    obstacles = input_obstacles_m(given)
    assert confirmed(obstacles, given, 1) is obstacles
    kept = confirmed(obstacles, given, 3)
    for path in context.paths.found.values():
        rows = path.rows.tolist()
        for k in range(2):
            for place, row in enumerate(rows):
                last = [obstacles[other, k] for other in rows[max(place - 2, 0) : place + 1]]
                wanted = obstacles[row, k] if len(last) == 3 and np.isfinite(last).all() else np.inf
                assert kept[row, k] == wanted
    assert np.isfinite(kept).sum() < np.isfinite(obstacles).sum()


def test_other_ways_to_drive_are_further_points_and_the_best_of_all_are_a_pareto_set(
    run: Path, tmp_path: Path
) -> None:
    rules = rules_file(tmp_path, {**EASY, "setting": HAZE})
    store = finished(run)
    ways: dict[str, Any] = {"speeds_mps": [1.0, 3.0], "radii_m": [2.0, 2.5], "confirms": [1, 2]}
    found = operating_points(store, rules, **ways)
    assert found.operations == 8
    (point,) = found.points
    detections, context = sut_detections(store, "sut00"), run_context(store)
    thresholds = np.array(point.curve.threshold, np.float32)
    dealt = halves(
        [store.frames.logs[n] for n in np.unique(store.frames.log[store.frames.test])],
        positive_logs(store.truth, store.frames)[np.unique(store.frames.log[store.frames.test])].tolist(),
        seed=found.seed,
    )
    check = np.zeros(len(store.frames.logs), np.bool_)
    check[np.unique(store.frames.log[store.frames.test])[dealt.check]] = True
    fastest = drive_settings(store, detections, context, thresholds, Operation(3.0, 2.0))[0].settings[HAZE]
    driven = {
        way: drive_settings(store, detections, context, thresholds, way)[0].settings[HAZE]
        for way in (Operation(*parts) for parts in itertools.product((1.0, 3.0), (2.0, 2.5), (1, 2)))
    }
    people = check & np.all(
        [one.truths > 0 for one in driven.values()], axis=0
    )  # those that all of them drove
    nobody = check & np.all([one.exposure > 0 for one in driven.values()], axis=0)
    every: dict[tuple[Operation, int], tuple[float, float]] = {}
    for way, one in driven.items():
        safety = 1 - one.beside["violations"][people].mean(axis=0)
        efficiency = fastest.exposure[nobody].sum() / one.cost[nobody].sum(axis=0)
        every |= {(way, k): (safety[k], efficiency[k]) for k in range(len(thresholds))}
    for best in point.pareto.points:
        mine = every[best.operation, point.curve.threshold.index(best.threshold)]
        assert (best.safety, best.efficiency) == pytest.approx(mine)
        assert not any(
            s >= mine[0] and e >= mine[1] and (s > mine[0] or e > mine[1]) for s, e in every.values()
        )
    assert point.pareto.hypervolume == pytest.approx(hypervolume(list(every.values())))
    own = [pair for (way, _), pair in every.items() if way == Operation(3.0, 2.0)]
    assert point.pareto.threshold_alone == pytest.approx(hypervolume(own))
    assert point.present.operation == Operation(3.0, 2.0)
    assert len(pareto_table(found, point).rows) == len(point.pareto.points)
    assert "with the threshold alone" in render_operating_points(found)


@pytest.mark.parametrize("ways", [{"confirms": [0]}, {"radii_m": [0.5]}, {"speeds_mps": [0.0]}])
def test_a_way_that_no_robot_drives_is_an_error(run: Path, tmp_path: Path, ways: dict[str, Any]) -> None:
    with pytest.raises(StudyError):
        operating_points(finished(run), rules_file(tmp_path, EASY), **ways)

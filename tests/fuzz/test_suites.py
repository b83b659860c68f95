"""Suites: the same tests asked of another SUT, compared, gated, and written as data sets that others read."""

from __future__ import annotations

import html
import json
import os
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
import yaml

from adverse.data.cityscapes import cityscapes
from adverse.errors import AdverseError, DataError, StoreError, StudyError
from adverse.fuzz.folder import CampaignFolder
from adverse.fuzz.outcome import CampaignOutcome, read_outcome
from adverse.fuzz.regression import compare_suites, not_compared
from adverse.fuzz.replay import replay_campaign
from adverse.fuzz.run import run_campaign
from adverse.interop.suites import suite_tests, write_suite
from adverse.report.fuzz import summary_words
from adverse.report.suites import changes_in_terminal, suite_headline
from adverse.requirements.suite_rules import each_test
from adverse.requirements.verdicts import Outcome
from adverse.semantic import Recipe, Resources, apply, scene_of
from adverse.study.engines import Stop
from adverse.study.engines.local import InlineEngine
from adverse.study.spec import read_study
from bad_input.command import adverse_here
from fuzz.suite_parts import ALL_CARS, BETTER, BLIND, SHY, read_back
from fuzz.whole_campaign import Quiet
from small_campaign import SEGMENTER, write_campaign

TESTS = 26


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))
    path = write_campaign(tmp_path_factory.mktemp("suite"), frames=4)
    (path.parent / "plugin.py").write_text(SEGMENTER + BETTER)
    return path


@pytest.fixture(scope="module")
def new_study(study: Path) -> Path:
    return with_sut(study, "new.yaml", {"name": "new", "adapter": "better"})


def with_sut(study: Path, name: str, sut: dict[str, Any], **more: Any) -> Path:
    data = yaml.safe_load(study.read_text()) | {"suts": [sut], "fuzz": {}, **more}
    path = study.parent / name
    path.write_text(yaml.safe_dump(data))
    return path


@pytest.fixture(scope="module")
def campaign(study: Path) -> CampaignFolder:
    return run_campaign(
        read_study(study), study.parent / "run", InlineEngine(), tests=TESTS, watch=Quiet(), stop=Stop()
    ).folder


@pytest.fixture(scope="module")
def replayed(campaign: CampaignFolder, new_study: Path) -> CampaignFolder:
    return replay(campaign, new_study, new_study.parent / "replay")


def replay(
    campaign: CampaignFolder, study: Path, out: Path, *, only_failures: bool = False
) -> CampaignFolder:
    return replay_campaign(
        campaign,
        read_study(study),
        out,
        InlineEngine(),
        watch=Quiet(),
        stop=Stop(),
        only_failures=only_failures,
    ).folder


def test_a_replay_of_the_same_system_says_the_same(campaign: CampaignFolder, study: Path) -> None:
    before = read_outcome(campaign)
    again = read_outcome(replay(campaign, study, study.parent / "same"))
    assert [row["picture"] for row in again.rows] == [row["picture"] for row in before.rows]
    for sut in before.suts:
        assert [(t.key, t.drop, t.bin, t.verdicts) for t in again.tests[sut]] == [
            (t.key, t.drop, t.bin, t.verdicts) for t in before.tests[sut]
        ]
    (same,) = compare_suites(before, again)
    failing = sum(test.failed for test in before.tests["colour 0"])
    counts = {"new": 0, "base lost": 0, "still failing": failing, "fixed": 0, "passing": TESTS - failing}
    assert same.counts() == counts
    assert same.difference.value == 0
    twice = read_outcome(replay(CampaignFolder(study.parent / "same"), study, study.parent / "twice"))
    assert [row["picture"] for row in twice.rows] == [row["picture"] for row in before.rows]


def test_what_changed_is_counted_as_a_loop_over_the_rows_does(
    campaign: CampaignFolder, replayed: CampaignFolder
) -> None:
    before, after = read_outcome(campaign), read_outcome(replayed)
    (compared,) = compare_suites(before, after)
    old = {row["picture"]: fails(row["suts"]["colour 0"]) for row in before.rows}
    new = {row["picture"]: fails(row["suts"]["new"]) for row in after.rows}
    lost = lost_bases(campaign, before, after)
    words = {(True, True): "still failing", (True, False): "fixed", (False, True): "new"}
    slow = Counter(
        "base lost" if picture in lost and not new[picture] else
        words.get((old[picture], new[picture]), "passing")
        for picture in old
    )  # fmt: skip
    assert +Counter(compared.counts()) == slow
    assert min(slow[name] for name in ("new", "fixed")) > 0, f"{slow} shows nothing else"
    now = sum(new[picture] or picture in lost for picture in new)
    assert compared.difference.value == pytest.approx((now - sum(old.values())) / TESTS)
    assert compared.of("new")[0].record()["after"]
    pair = [compared, replace(compared, before="other", after="other", tests=compared.tests[:4])]
    first, second = suite_headline(pair).splitlines()  # a line each: a sum over SUTs counts tests twice
    assert first.startswith(f"colour 0 -> new: {slow['new']} test")
    assert second.startswith("other: ")
    both = replace(after, tests={**after.tests, "other": after.tests["new"]})
    both = replace(both, campaign=replace(after.campaign, suts={**after.campaign.suts, "other": "x"}))
    matched = compare_suites(before, both, suts={"colour 0": "new"})
    left_out = not_compared(before, both, matched)
    assert left_out == "Not compared: other (of the second campaign)."
    answer, last = suite_headline(matched, left_out).splitlines()
    assert answer.startswith("colour 0 -> new: ")
    assert last == left_out
    assert not_compared(before, after, [compared]) == ""
    shown = [[column.heading for column in changes_in_terminal(some).columns] for some in (pair, pair[:1])]
    assert ["SUT" in headings for headings in shown] == [True, False]


def lost_bases(campaign: CampaignFolder, before: CampaignOutcome, after: CampaignOutcome) -> set[str]:
    """The pictures in which the new SUT lacks what the old one had in the frame as it was.

    Or that score 10 points less than it, or, having failed by its score, no more than they did then.
    """
    units = [unit for unit in campaign.journal().entries if unit.phase == "baseline"]
    clean = {row["frame"]: row["suts"]["colour 0"] for unit in units for row in unit.rows}
    lost = set()
    for row, was in zip(after.rows, before.rows, strict=True):
        said = row["suts"]["new"]
        found = [name for name, share in clean[row["base"]]["sightings"]["overlap"].items() if share >= 0.5]
        right, judged = said["score"]
        then = was["suts"]["colour 0"]
        asked = 100 * then["score"][0] / then["score"][1] + then["drop"]
        gone = any(said["seen"]["overlap"].get(name, 1) < 0.25 for name in found)
        now, failed = 100 * right / judged, 100 * then["score"][0] / then["score"][1]
        if gone or asked - now >= 10 or (then["drop"] >= 1 and now <= failed):
            lost.add(row["picture"])
    return lost


def fails(said: dict[str, Any]) -> bool:
    return said["fault"] is not None or bool(said["verdicts"]) or (said["drop"] or 0) >= 1


def test_only_failures(campaign: CampaignFolder, new_study: Path) -> None:
    outcome = read_outcome(replay(campaign, new_study, new_study.parent / "some", only_failures=True))
    kept = [row["picture"] for row in read_outcome(campaign).rows if row["kept"]]
    assert [row["picture"] for row in outcome.rows] == kept


def test_a_replay_can_be_resumed_and_keeps_to_its_campaign(
    campaign: CampaignFolder, replayed: CampaignFolder, new_study: Path
) -> None:
    before = (replayed.path / "log").read_bytes()
    assert replay(campaign, new_study, replayed.path).path == replayed.path
    assert (replayed.path / "log").read_bytes() == before, "nothing was done again"
    with pytest.raises(StoreError, match="the tests that it replays"):
        replay(campaign, new_study, replayed.path, only_failures=True)


def test_tests_that_come_out_otherwise_are_refused(
    campaign: CampaignFolder, new_study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adverse.semantic.painting.recoloured", lambda pixels, *_: pixels // 2)
    with pytest.raises(StoreError, match=r"cannot be made again.*its recipe makes another picture now"):
        replay(campaign, new_study, tmp_path / "run")


def test_other_data_are_refused(campaign: CampaignFolder, study: Path, tmp_path: Path) -> None:
    other = write_campaign(tmp_path / "other", frames=4, seed=9)
    with pytest.raises(DataError, match="not those of the campaign"):
        replay(campaign, other, tmp_path / "run")
    fewer = write_campaign(tmp_path / "fewer", frames=2)
    with pytest.raises(DataError, match="2 of 4 missing"):
        replay(campaign, fewer, tmp_path / "run2")
    assert not (tmp_path / "run2" / "manifest.json").exists(), "the right data can still be replayed there"
    task = with_sut(study, "task.yaml", {"name": "x", "adapter": "better"}, targets=["car"])
    with pytest.raises(StudyError, match="something else than the campaign"):
        replay(campaign, task, tmp_path / "run3")


def test_by_command_with_gate_and_junit(
    campaign: CampaignFolder, replayed: CampaignFolder, new_study: Path, tmp_path: Path
) -> None:
    junit, page = tmp_path / "suite.xml", tmp_path / "compare.html"
    said = adverse_here(
        "fuzz", "replay", campaign.path, "--study", new_study, "--out", replayed.path, "--workers", "0",
        "--junit", junit,
    )  # fmt: skip
    said.expect(0, "fixed", "still failing")
    outcome = read_outcome(replayed)
    failing = sum(test.failed for test in outcome.tests["new"])
    (compared,) = compare_suites(read_outcome(campaign), outcome)
    lost, worse = len(compared.of("base lost")), len(compared.of("new", "base lost"))
    (suite,) = ET.fromstring(junit.read_text()).iter("testsuite")
    assert (suite.get("tests"), suite.get("failures")) == (str(TESTS), str(failing + lost))
    table = tmp_path / "tests.json"
    options = ("--html", page, "--json", table, "--fail-on-regression")
    compare = adverse_here("compare", campaign.path, replayed.path, *options)
    assert compare.code == 1
    assert f"{worse - lost} test" in compare.text
    listed = Counter(row["change"] for row in json.loads(table.read_text()))
    assert listed == {name: count for name, count in compared.counts().items() if count and name != "passing"}
    assert "data:image" in page.read_text()
    adverse_here("verify", replayed.path).expect(0)
    rules = tmp_path / "rules.yaml"
    rules.write_text(
        yaml.safe_dump(
            {
                "rules": [
                    {"measure": "failures", "at_most": failing},
                    {"measure": "new_failures", "against": str(campaign.path), "at_most": worse - 1},
                    {"measure": "failures_per_1000", "mutation": "change_color", "at_most": 999},
                    {"measure": "phantom", "at_most": 0, "sut": "new"},
                    {"measure": "failures_per_1000", "at_most": 1000, "bound": "point"},
                ]
            }
        )
    )
    verdicts = tmp_path / "verdicts.json"
    assert adverse_here("check", replayed.path, rules, "--json", verdicts).code == 1
    decided = [(row["outcome"], row["measured"]) for row in json.loads(verdicts.read_text())]
    assert decided[:2] == [("PASS", failing), ("FAIL", worse)]
    assert decided[3] == ("PASS", 0)
    assert decided[4] == ("PASS", pytest.approx(1000 * failing / TESTS))
    mixture = {"measure": "failures_per_1000", "at_most": 1000, "bound": "point"}
    rules.write_text(yaml.safe_dump({"rules": [mixture]}))
    adverse_here("check", campaign.path, rules, "--json", verdicts).expect(0)
    (row,) = json.loads(verdicts.read_text())
    first = read_outcome(campaign)
    shares = first.campaign.shares
    (tests,) = first.tests.values()
    wanted = 0.0
    for mutation, share in shares.items():
        mine = [test.failed for test in tests if test.mutation == mutation]
        wanted += 1000 * share / sum(shares.values()) * sum(mine) / len(mine)
    assert row["measured"] == pytest.approx(wanted)
    assert "change_color 80 %" in row["requirement"]
    for rule, words in (
        ({"measure": "new_failures", "at_most": 0}, "against"),
        ({"measure": "failures", "at_most": 0, "mutation": "add_cow"}, "no mutation"),
        ({"measure": "failures_per_1000", "at_most": 0}, "shows that a rate is 0"),
    ):
        rules.write_text(yaml.safe_dump({"rules": [rule]}))
        adverse_here("check", replayed.path, rules).expect(2, words)


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@pytest.mark.parametrize(("how", "whole"), [("coco", False), ("coco-panoptic", True), ("cityscapes", True)])
def test_exports_are_read_back_with_the_same_pixels_and_truth(
    campaign: CampaignFolder, study: Path, tmp_path: Path, how: str, *, whole: bool
) -> None:
    out = tmp_path / "suite"
    options = ("--study", study) if whole else ()
    adverse_here("fuzz", "export", campaign.path, out, "--format", how, *options).expect(0, "tests written")
    outcome = read_outcome(campaign)
    rows = [row for row in outcome.rows if whole or row["kept"]]
    lines = [json.loads(line) for line in (out / "recipes.jsonl").read_text().splitlines()]
    assert [line["picture"] for line in lines] == [row["picture"] for row in rows]
    data = cityscapes(study.parent / "data", split={"test": "val"})
    resources = Resources.build(data, tmp_path / "cache")
    scenes = {frame.id: scene_of(frame, data) for log in data.logs for frame in log.frames}
    read = read_back(out, how)
    for line, (image, labels, instances) in zip(lines, read, strict=True):
        recipe = Recipe.from_json(json.dumps(line["recipe"]))
        made = apply(recipe, scenes[recipe.base], resources).scene
        assert np.array_equal(image, made.image)
        for number in np.unique(made.instances[made.instances > 0]).tolist():
            mask = made.instances == number
            assert len(np.unique(instances[mask])) == 1
            assert (instances == instances[mask][0]).sum() == mask.sum()
        if labels is not None:
            names = {label: data.pixel_classes[label] for label in np.unique(made.labels).tolist()}
            for label, name in names.items():
                assert set(labels[made.labels == label].tolist()) == {name}
    adverse_here("fuzz", "export", campaign.path, out).expect(2, "not empty")
    adverse_here("data", "check", out).expect(0, "No problems")


def test_remnants_are_groups_in_cityscapes_and_its_sequences_are_logs(
    campaign: CampaignFolder, tmp_path: Path
) -> None:
    outcome = read_outcome(campaign)
    tests = list(suite_tests(campaign, outcome))
    cars = [int(test.instances.max()) for test in tests]
    hidden = [
        replace(test, ignored=frozenset({car})) if number % 2 else test
        for number, (test, car) in enumerate(zip(tests, cars, strict=True))
    ]
    write_suite(iter(hidden), outcome, tmp_path / "suite", "cityscapes")
    data = cityscapes(tmp_path / "suite", split={"test": "val"}, logs="sequence")
    assert len(data.logs) == len({test.row["log"] for test in tests})
    frames = {int(frame.id[-6:]): frame for log in data.logs for frame in log.frames}
    for test, car in zip(hidden, cars, strict=True):
        frame = frames[test.number]
        assert frame.instances is not None
        assert frame.labels is not None
        where = test.instances == car
        assert np.array_equal(frame.labels()[where], test.labels[where])
        assert (frame.instances()[where] == 0).all() == (car in test.ignored)


def test_a_sut_without_an_answer_to_the_base_neither_passes_nor_is_fixed(
    campaign: CampaignFolder, study: Path, tmp_path: Path
) -> None:
    """It refuses what is red, so it answers about repainted cars alone: there is nothing to compare with."""
    (study.parent / "shy.py").write_text(SEGMENTER + SHY)
    sut = {"name": "shy", "adapter": "shy"}
    shy = with_sut(study, "shy.yaml", sut, plugins=["shy.py"])
    after = read_outcome(replay(campaign, shy, tmp_path / "run"))
    for row in after.object_counts():
        assert (row.answered, row.per_1000.value) == (0, None)
    assert [(row.scored, row.faults) for row in after.counts()][-1] == (0, TESTS)
    answered = [row for row in after.rows if row["suts"]["shy"]["fault"] is None]
    assert answered, "repainted cars"
    before = read_outcome(campaign)
    (compared,) = compare_suites(before, after)
    failing = sum(test.failed for test in before.tests["colour 0"])
    counts = {"new": TESTS - failing, "base lost": 0, "still failing": failing, "fixed": 0, "passing": 0}
    assert compared.counts() == counts
    assert {verdict.outcome for verdict in each_test(after)} == {Outcome.FAIL}
    rules, verdicts = tmp_path / "rules.yaml", tmp_path / "verdicts.json"
    measures = ("missed", "lost", "phantom", "faults")
    rules.write_text(yaml.safe_dump({"rules": [{"measure": name, "at_most": 0} for name in measures]}))
    adverse_here("check", tmp_path / "run", rules, "--json", verdicts)
    states = [row["outcome"] for row in json.loads(verdicts.read_text())]
    assert states == [*3 * ["INCONCLUSIVE"], "FAIL"], "who never answers is not known to miss nothing"
    assert f"{TESTS} tests without an answer" in " ".join(summary_words(after))
    assert "shy gave no answer to 4 clean frames" in summary_words(after)[0]
    first, *others = before.tests["colour 0"]
    unscored = replace(before, tests={"colour 0": (replace(first, drop=None, bin=None), *others)})
    assert f" of {TESTS - 1} scored tests lower" in summary_words(unscored)[1]


def test_a_sut_that_sees_nothing_fixes_nothing(campaign: CampaignFolder, study: Path, tmp_path: Path) -> None:
    """No test lowers the score of who sees no car to begin with; none is fixed, and the gate says so."""
    (study.parent / "blind.py").write_text(SEGMENTER + BLIND)
    sut = {"name": "blind", "adapter": "blind"}
    blind = with_sut(study, "blind.yaml", sut, plugins=["blind.py"])
    out, junit = tmp_path / "run", tmp_path / "suite.xml"
    options = ("--study", blind, "--out", out, "--workers", "0", "--junit", junit)
    said = adverse_here("fuzz", "replay", campaign.path, *options)
    said.expect(0, "base lost", "0 fixed", "Clean score of the base frames")
    before, after = read_outcome(campaign), read_outcome(CampaignFolder(out))
    (compared,) = compare_suites(before, after)
    failing = sum(fails(row["suts"]["blind"]) for row in after.rows)
    lost = len(compared.of("base lost"))
    assert lost == TESTS - failing > 0, "a car of each base is not found, so no test passes"
    assert compared.counts()["fixed"] == compared.counts()["passing"] == 0
    assert compared.difference.value is not None
    assert compared.difference.value > 0
    assert compared.clean_scores is not None
    assert compared.clean_scores[0] > compared.clean_scores[1] + 1
    (suite,) = ET.fromstring(junit.read_text()).iter("testsuite")
    assert suite.get("failures") == str(TESTS)
    page = tmp_path / "page.html"
    compare = adverse_here("compare", campaign.path, out, "--fail-on-regression", "--html", page)
    compare.expect(1, f"{lost} base lost")
    assert f"{lost} base lost" in page.read_text()
    whys = [test.base_lost for test in compared.of("base lost")]
    assert max(map(len, whys)) > 100
    assert all(html.escape(why) in page.read_text() for why in whys), "no number in them is cut"
    rules, verdicts = tmp_path / "rules.yaml", tmp_path / "verdicts.json"
    against = {"against": str(campaign.path), "at_most": 0}
    measures = ("new_failures", "still_failing")
    rules.write_text(yaml.safe_dump({"rules": [{"measure": name, **against} for name in measures]}))
    gate = adverse_here("check", out, rules, "--json", verdicts)
    assert (gate.code, "base lost" in gate.text) == (1, True)
    measured = [row["measured"] for row in json.loads(verdicts.read_text())]
    old = sum(test.failed for test in before.tests["colour 0"])
    assert measured == [len(compared.of("new")) + lost, old]
    # without the campaign before, nothing passes that would not if all that says nothing failed
    units = [unit for unit in CampaignFolder(out).journal().entries if unit.phase == "baseline"]
    clean_rows = {row["frame"]: row["suts"]["blind"] for unit in units for row in unit.rows}
    overlaps = {frame: row["sightings"]["overlap"] for frame, row in clean_rows.items()}
    painted = [
        overlaps[row["base"]][str(json.loads(row["recipe"])["numbers"]["instance"])]
        for row in after.rows
        if row["arm"][0] == "change_color" and not fails(row["suts"]["blind"])
    ]
    open_ = sum(share < 0.5 for share in painted)
    assert open_ > 0, "no car is found, painted or not"
    missed = sum(row.kinds["missed"] for row in after.object_counts())
    asked: dict[tuple[str, float], tuple[str, float]] = {
        ("failures", failing): ("INCONCLUSIVE", failing),
        ("failures", TESTS): ("PASS", failing),
        ("failures", failing - 1): ("FAIL", failing),
        ("lost", 0): ("INCONCLUSIVE", 0),
        ("missed", missed): ("PASS", missed),
        ("phantom", 0): ("PASS", 0),
    }
    rate = {"measure": "failures_per_1000", "at_most": 1000 * (failing + 1) / TESTS, "bound": "point"}
    fell = {"measure": "clean_drop", **against}
    some = [{"measure": name, "at_most": most} for name, most in asked]
    rules.write_text(yaml.safe_dump({"rules": [*some, rate, {**rate, "bound": "upper"}, fell]}))
    gate = adverse_here("check", out, rules, "--json", verdicts)
    decided = [(row["outcome"], row["measured"]) for row in json.loads(verdicts.read_text())]
    assert decided[:-3] == list(asked.values())
    assert [state for state, _ in decided[-3:]] == ["INCONCLUSIVE", "INCONCLUSIVE", "FAIL"]
    clean = compared.clean_scores
    assert decided[-1][1] == pytest.approx(clean[0] - clean[1])
    assert f"{open_} tests may be either, {open_} as the SUT does not see" in " ".join(gate.text.split())
    assert f"{open_} tests without a failure that say nothing" in " ".join(summary_words(after))
    states = Counter(verdict.outcome for verdict in each_test(after))
    assert states == {
        Outcome.FAIL: failing,
        Outcome.INCONCLUSIVE: open_,
        Outcome.PASS: TESTS - failing - open_,
    }


def test_who_finds_all_as_it_answers_all_alike_passes_no_rule(
    campaign: CampaignFolder, study: Path, tmp_path: Path
) -> None:
    """Cars everywhere: every added car is found, no phantom is new; and no answer is no clean score."""
    (study.parent / "cars.py").write_text(SEGMENTER + ALL_CARS)
    sut = {"name": "cars", "adapter": "all-cars", "batch": 1}
    cars = with_sut(study, "cars.yaml", sut, plugins=["cars.py"])
    out = tmp_path / "run"
    after = read_outcome(replay(campaign, cars, out))
    units = [unit for unit in CampaignFolder(out).journal().entries if unit.phase == "baseline"]
    scores = [row["suts"]["cars"]["score"] for unit in units for row in unit.rows]
    known = [100 * score[0] / score[1] for score in scores if score is not None]
    assert 0 < len(known) < len(scores)
    assert max(known) < 50
    fell = [100 - score for score in known]  # the one before gets all of each base right
    worst = (sum(fell) + 100 * (len(scores) - len(known))) / len(scores)
    against = {"against": str(campaign.path)}
    rules, verdicts = tmp_path / "rules.yaml", tmp_path / "verdicts.json"
    asked = [{"measure": name, "at_most": 0, "mutation": "add_car"} for name in ("missed", "phantom", "lost")]
    drop = {"measure": "clean_drop", **against}
    limits = (fell[0] - 1, fell[0] + 0.01, worst + 0.01)
    rules.write_text(yaml.safe_dump({"rules": [*asked, *({**drop, "at_most": most} for most in limits)]}))
    gate = adverse_here("check", out, rules, "--json", verdicts)
    states = [row["outcome"] for row in json.loads(verdicts.read_text())]
    assert states == [*3 * ["INCONCLUSIVE"], "FAIL", "INCONCLUSIVE", "PASS"]
    assert "2 base frames without an answer" in " ".join(gate.text.split())
    (compared,) = compare_suites(read_outcome(campaign), after)
    assert "No answer to 2 base frames now" in suite_headline([compared])
    rules.write_text(yaml.safe_dump({"rules": [{**drop, "against": "run", "at_most": 0}]}))
    adverse_here("check", out, rules).expect(2, "against itself", "rules[0].against")


def test_rules_against_a_campaign_say_what_was_compared(
    campaign: CampaignFolder, replayed: CampaignFolder, new_study: Path, tmp_path: Path
) -> None:
    some = replay(campaign, new_study, tmp_path / "some", only_failures=True)
    shared = len(read_outcome(some).rows)
    assert {row["arm"][0] for row in read_outcome(some).rows} == {"change_color"}
    rules, verdicts = tmp_path / "rules.yaml", tmp_path / "verdicts.json"
    rule = {"measure": "new_failures", "against": str(some.path), "at_most": 0}
    rules.write_text(yaml.safe_dump({"rules": [rule, {**rule, "mutation": "add_person"}]}))
    said = adverse_here("check", replayed.path, rules, "--json", verdicts)
    assert said.code == 3
    assert f"{TESTS - shared} of {TESTS} tests are not there" in said.text
    first, second = json.loads(verdicts.read_text())
    assert (first["outcome"], first["measured"]) == ("PASS", 0)
    assert (second["outcome"], second["measured"]) == ("INCONCLUSIVE", None)
    rules.write_text(yaml.safe_dump({"rules": [{**rule, "against": str(campaign.path), "at_most": TESTS}]}))
    adverse_here("check", replayed.path, rules).expect(0, "compared with 'colour 0'")
    before, after = read_outcome(campaign), read_outcome(replayed)
    others: dict[str, Any] = {"visible_share": 0.9, "targets": ("car",), "pixel_classes": {7: "car"}}
    for name, other in others.items():
        judged_otherwise = replace(after, campaign=replace(after.campaign, **{name: other}))
        with pytest.raises(StoreError, match=f"cannot be compared.*{name}"):
            compare_suites(before, judged_otherwise)


def test_campaigns_without_a_common_test_cannot_be_compared(campaign: CampaignFolder, tmp_path: Path) -> None:
    other = write_campaign(tmp_path, frames=2, seed=8)
    ran = run_campaign(
        read_study(other), tmp_path / "run", InlineEngine(), tests=4, watch=Quiet(), stop=Stop()
    )
    outcomes: list[CampaignOutcome] = [read_outcome(campaign), read_outcome(ran.folder)]
    with pytest.raises(AdverseError, match="share no test"):
        compare_suites(*outcomes)

"""Whole campaigns: the same bytes however they are run, only failures kept, faults and bad input told."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

import adverse
from adverse.curves.interval import korn_graubard
from adverse.data.cityscapes import cityscapes
from adverse.errors import AdverseError, DataError, IncompleteError, StoreError, StudyError
from adverse.fuzz.compare import compare
from adverse.fuzz.folder import CampaignFolder, base_file, failure_file, sut_stem
from adverse.fuzz.outcome import read_outcome
from adverse.report.fuzz import counts_table, times_table
from adverse.report.fuzz_charts import counts_chart
from adverse.semantic import Recipe, Resources, apply, scene_of
from adverse.study.engines import Stop
from adverse.study.engines.local import InlineEngine, LocalEngine
from fuzz.campaigns import TESTS, Quiet, content, fuzz, read_manifest
from small_campaign import write_campaign


def test_it_finds_what_a_system_that_goes_by_colour_must_fail(plain: Path) -> None:
    outcome = read_outcome(CampaignFolder(plain))
    counts = {row.mutation: row for row in outcome.counts()}
    assert counts["change_color"].inconsistencies > 15, "a repainted car is not red any more"
    objects = {row.mutation: row for row in outcome.object_counts()}
    assert objects["change_color"].kinds["lost"] == counts["change_color"].inconsistencies
    assert objects["add_car"].kinds == {"missed": 0, "lost": 0, "phantom": 0}
    assert objects["add_car"].added == 1
    assert counts["change_color"].published_scorer == 0, "which never looked at cars"
    assert counts["all"].tests == TESTS == outcome.count
    assert counts["add_car"].inconsistencies == 0, "another red car is found like the first"


def test_the_rate_is_one_interval_from_the_outcome_to_csv_and_json(plain: Path) -> None:
    outcome = read_outcome(CampaignFolder(plain))
    row = outcome.counts()[-1]
    repainted = [test for test in outcome.tests["colour 0"] if test.mutation == "change_color"]
    logs = list(dict.fromkeys(test.log for test in repainted))
    failed = [sum(t.bin is not None for t in repainted if t.log == log) for log in logs]
    tested = [sum(t.log == log for t in repainted) for log in logs]
    rates, total = [], 0.0
    for mutation, share in (("change_color", 20), ("add_car", 4), ("add_person", 1)):
        mine = [test for test in outcome.tests["colour 0"] if test.mutation == mutation]
        rates.append(sum(test.bin is not None for test in mine) / len(mine))
        total += share / 25 * rates[-1]
    assert row.per_1000.value == pytest.approx(1000 * total)
    assert row.per_1000.value != pytest.approx(1000 * sum(rates) / 3)
    assert row.record()["weights"] == "change_color 80 %, add_car 16 %, add_person 4 %"
    one = outcome.counts()[0]
    assert one.per_1000 == korn_graubard(failed, tested).scaled(1000)
    assert one.record()["weights"] is None
    table = counts_table(outcome)
    as_csv = list(csv.DictReader(io.StringIO(table.csv())))[-1]
    as_json = json.loads(table.json())[-1]
    for name, value in row.per_1000.plain().items():
        if name in ("low", "high", "logs", "why"):
            assert as_json[f"per_1000_{name}"] == value
            assert as_csv[f"per_1000_{name}"] == ("" if value is None else str(value))
    assert as_json["per_1000_interval"] == as_csv["per_1000_interval"] == row.per_1000.status
    assert table.rows[-1][table.headings.index("per 1,000 tests")].note == row.per_1000.why


def test_only_what_failed_is_kept_and_replays_to_the_same_drop(plain: Path, study: Path) -> None:
    outcome = read_outcome(CampaignFolder(plain))
    failed = {test.key: test for test in outcome.tests["colour 0"] if test.bin}
    units = CampaignFolder(plain).journal().entries
    all_failed = {row["key"] for unit in units for row in unit.rows if row.get("kept")}
    assert {path.name for path in (plain / "failures").iterdir()} == all_failed >= set(failed)
    key, test = next(iter(failed.items()))
    folder = plain / failure_file(key, "")
    stem = sut_stem("colour 0")
    names = {path.name for path in folder.iterdir()}
    assert names == {"image.png", "labels.png", "instances.png", "recipe.json", f"{stem}.png"}
    recipe = Recipe.from_json((folder / "recipe.json").read_text())
    assert (recipe.key(), recipe.base) == (key, test.base)
    scores = []
    for where in (plain / base_file(test.base, ""), folder):
        true = cv2.imread(str(where / "labels.png"), cv2.IMREAD_UNCHANGED)
        said = cv2.imread(str(where / f"{stem}.png"), cv2.IMREAD_UNCHANGED)
        assert true is not None
        assert said is not None
        wanted = np.array([255] * 256)
        wanted[[7, 11, 26, 24]] = [0, 1, 2, 3]
        scores.append(100 * (wanted[true] == said).mean())
    assert test.drop == pytest.approx(scores[0] - scores[1], abs=1e-9)
    data = study.parent / "data" / "leftImg8bit" / "val" / "aachen" / f"{test.base}_leftImg8bit.png"
    original = cv2.imread(str(data))
    kept = cv2.imread(str(plain / base_file(test.base, "image.png")))
    assert original is not None
    assert np.array_equal(original, kept)  # type: ignore[arg-type]


def test_workers_stops_and_resumes_change_nothing(plain: Path, study: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    stop = Stop()
    stopped = fuzz(study, out, engine=LocalEngine(2, out / "logs"), watch=Quiet(stop, at=1), tests=600)
    assert stopped.status == "interrupted"
    with pytest.raises(IncompleteError, match="not finished"):
        read_outcome(stopped.folder)
    watch = Quiet()
    assert fuzz(study, out, engine=InlineEngine(), watch=watch).status == "complete"
    assert any("done before" in note for note in watch.notes)
    mine, wanted = content(out), content(plain)
    extra = {name for name in mine if name not in wanted}
    assert {name: mine[name] for name in mine if name not in extra} == wanted
    assert all(name.startswith(("failures/", "bases/")) for name in extra), "of tests beyond those asked for"


@pytest.mark.parametrize(("car", "most"), [((200, 150, 150), 300), ((60, 60, 62), 90), ((60, 60, 60), 0)])
def test_tests_are_distinct_pictures(tmp_path: Path, car: tuple[int, int, int], most: int) -> None:
    """Repaint a car: a light one, not faded; a dark one, by its hue; a dark grey one, not at all."""
    study = write_campaign(tmp_path, frames=1, car=car, fuzz={"mutations": ["change_color"]})
    outcome = read_outcome(fuzz(study, tmp_path / "run", tests=300).folder)
    data = cityscapes(tmp_path / "data", split={"test": "val"})
    scene = scene_of(data.logs[0].frames[0], data)
    resources = Resources.build(data, tmp_path)
    pictures = set()
    for row in outcome.rows:
        made = apply(Recipe.from_json(row["recipe"]), scene, resources).scene
        pictures.add(made.image.tobytes() + made.labels.tobytes() + made.instances.tobytes())
    assert len(pictures) == outcome.count == len({row["key"] for row in outcome.rows})
    assert scene.image.tobytes() not in {picture[: scene.image.nbytes] for picture in pictures}
    assert outcome.count <= most
    assert outcome.duplicates > 0 or not most
    assert (sum(r["nothing changed"] for r in outcome.refused_by_mutation.values()) > 0) == (most == 0)


def test_duplicates_of_additions_are_seen_as_those_of_paint_are(tmp_path: Path) -> None:
    """Each frame is there twice, so each car and person too: half of all recipes make a picture again.

    How many pictures there are is counted by making all of them.
    """
    off = ["perspective", "light", "road", "unoccluded"]
    section = {"mutations": ["add_car", "add_person"], "options": {"off": off}}
    study = write_campaign(tmp_path, frames=2, twins=True, fuzz=section)
    outcome = read_outcome(fuzz(study, tmp_path / "run", tests=24).folder)
    data = cityscapes(tmp_path / "data", split={"test": "val"})
    resources = Resources.build(data, tmp_path)
    pictures: dict[str, set[str]] = {"add_car": set(), "add_person": set()}
    recipes: Counter[str] = Counter()
    for frame in (frame for log in data.logs for frame in log.frames):
        scene = scene_of(frame, data)
        for donor in resources:
            if donor.scene != scene.id:
                kind = f"add_{donor.class_name}"
                made = apply(Recipe(kind, scene.id, donor.id), scene, resources).scene
                recipes[kind] += 1
                pictures[kind].add(made.picture)
    assert outcome.short == {kind: (len(pictures[kind]), 12) for kind in pictures}
    for kind, distinct in pictures.items():
        assert {row["picture"] for row in outcome.rows if row["arm"][0] == kind} == distinct
        assert len(distinct) < recipes[kind]
        assert outcome.refused_by_mutation[kind]["duplicate"] > 0


def test_the_page_has_the_bars_and_the_times_of_the_paper(plain: Path) -> None:
    """Figures 11 and 15, with the numbers of the tables, and table 3, with those of the log of times."""
    folder = CampaignFolder(plain)
    outcome = read_outcome(folder)
    counts = {row.mutation: row for row in outcome.counts()}
    drawn = counts_chart(outcome).data()
    for name in outcome.campaign.bins:
        (bars,) = (values for series, values in drawn.items() if series.startswith(f"{name} "))
        assert bars["tests"] == [counts["all"].bins[name]]
    failing = Counter(test.mutation for test in outcome.tests["colour 0"] if test.failed)
    assert drawn["colour 0"]["tests"] == [failing[name] for name in outcome.campaign.mutations]
    times = times_table(folder)
    assert times is not None
    rows = [json.loads(line) for line in folder.times.read_text().splitlines()]
    for record in times.records or ():
        column = "generation_s" if record["activity"] == "test generation" else f"sut {record['activity']}"
        spent = [1000 * row[column] for row in rows if row["mutation"] == record["mutation"]]
        assert (record["tests"], record["mean_ms"]) == (len(spent), pytest.approx(np.mean(spent)))
        assert record["deviation_ms"] == pytest.approx(np.std(spent))
    assert len(times.records or ()) == 2 * len(outcome.campaign.mutations)
    page = (plain / "fuzz.html").read_text()
    assert 'id="times"' in page
    assert page.count("<rect") > sum(len(values["tests"]) for values in drawn.values())


def test_bins_are_those_of_the_study(tmp_path: Path) -> None:
    section = {"mutations": ["change_color"], "bins": {"slight": 0.5, "grave": 20}}
    study = write_campaign(tmp_path, frames=2, fuzz=section)
    folder = fuzz(study, tmp_path / "run", tests=30).folder
    outcome = read_outcome(folder)
    drops = [test.drop or 0.0 for test in outcome.tests["colour 0"]]
    slight, grave = sum(0.5 <= drop < 20 for drop in drops), sum(drop >= 20 for drop in drops)
    assert outcome.counts()[0].bins == {"slight": slight, "grave": grave}
    assert slight > 0
    assert "slight [0.5, 20)" in counts_table(outcome).headings
    last = {row["severity"]: row["expected"] for row in outcome.discovery() if row["of"] == "objects"}
    failing = {test.thing for test in outcome.tests["colour 0"] if test.bin}
    lost = {test.thing for test in outcome.tests["colour 0"] if test.verdicts}
    assert last == pytest.approx({"slight": len(failing), "grave": grave, "objects": len(lost)})


def test_a_longer_campaign_begins_with_the_shorter_one(plain: Path, study: Path) -> None:
    before = read_outcome(CampaignFolder(plain))
    longer = fuzz(study, study.parent / "longer", tests=TESTS + 8)
    after = read_outcome(longer.folder)
    assert after.rows[:TESTS] == before.rows
    assert len({row["key"] for row in after.rows}) == TESTS + 8


def test_killed_campaigns_go_on(plain: Path, tmp_path: Path) -> None:
    slow = write_campaign(tmp_path, sleep_s=0.01)
    out = tmp_path / "run"
    options = ["--tests", str(TESTS), "--out", str(out), "--workers", "1"]
    command = [sys.executable, "-m", "adverse", "fuzz", str(slow), *options]
    env = {**os.environ, "PYTHONPATH": str(Path(adverse.__file__).parents[1])}
    process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, start_new_session=True)
    log = out / "log"
    while process.poll() is None and (not log.exists() or log.read_bytes().count(b'"tests"') < 2):
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = CampaignFolder(out).journal().entries
    assert sum(unit.phase == "tests" for unit in done) >= 2
    assert read_manifest(out)["status"] == "running"
    with log.open("ab") as file:
        file.write(b"0123 a line that was never fini")  # what a power cut leaves
    ended = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "never finished" in ended.stdout
    assert read_manifest(out)["status"] == "complete"
    tests = json.loads((out / "results" / "tests.json").read_text())
    wanted = json.loads((plain / "results" / "tests.json").read_text())
    assert tests == wanted, "the slow system answers as the quick one does"


def test_guided_campaigns_are_the_same_too_and_are_compared(plain: Path, study: Path, tmp_path: Path) -> None:
    first = fuzz(study, tmp_path / "a", guided=True)
    second = fuzz(study, tmp_path / "b", guided=True, engine=LocalEngine(2, tmp_path / "b" / "logs"))
    assert content(first.folder.path) == content(second.folder.path)
    guided, unguided = read_outcome(first.folder), read_outcome(CampaignFolder(plain))
    (row,) = compare(guided, unguided)
    assert row.guided.value == pytest.approx(
        1000 * sum(test.bin is not None for test in guided.tests["colour 0"]) / TESTS
    )
    record = row.record()
    assert record["difference"] == pytest.approx(record["guided_per_1000"] - record["unguided_per_1000"])
    assert record["difference_low"] <= record["difference"] <= record["difference_high"]
    with pytest.raises(StoreError, match="cannot be compared"):
        compare(guided, replace(unguided, campaign=replace(unguided.campaign, seed=77)))


def test_a_system_that_crashes_costs_answers_not_the_campaign(tmp_path: Path) -> None:
    study = write_campaign(
        tmp_path, crash_on="some", frames=2, fuzz={"mutations": ["change_color"], "prune_below": 0}
    )
    out = tmp_path / "run"
    watch = Quiet()
    ran = fuzz(study, out, tests=25, engine=LocalEngine(1, out / "logs"), watch=watch)
    assert ran.status == "complete"
    assert any("process of its own" in note for note in watch.notes)
    outcome = read_outcome(ran.folder)
    faults = [test for test in outcome.tests["colour 0"] if test.fault]
    assert faults
    assert all(test.drop is None for test in faults)
    assert outcome.counts()[-1].faults == len(faults)
    assert outcome.counts()[-1].scored == 25 - len(faults)


def test_detectors_are_fuzzed_by_boxes(tmp_path: Path) -> None:
    study = write_campaign(
        tmp_path,
        task="detection",
        targets=["car"],
        suts=0,
        fuzz={
            "quota": {"change_color": 4, "add_car": 1},
            "mutations": ["change_color", "add_car"],
            "prune_below": 90,
        },
    )
    text = study.read_text().replace("suts: []", "suts:\n- {name: boxes, adapter: boxes-by-colour}")
    study.write_text(text)
    outcome = read_outcome(fuzz(study, tmp_path / "run", tests=40).folder)
    counts = {row.mutation: row for row in outcome.counts()}
    assert counts["change_color"].bins["extreme"] > 0, "no box where the car is not red"
    assert counts["add_car"].bins["extreme"] > 0, "one box around two cars finds neither"
    objects = {row.mutation: row for row in outcome.object_counts()}
    assert objects["change_color"].kinds["lost"] == counts["change_color"].bins["extreme"]
    assert objects["add_car"].kinds["missed"] > 0
    assert objects["add_car"].kinds["lost"] > 0


def test_removing_an_easy_object_is_no_failure_of_the_rest(tmp_path: Path) -> None:
    """The detector finds cars and never people: without its car the mean over what is there would be 0."""
    study = write_campaign(
        tmp_path,
        task="detection",
        targets=["car", "person"],
        suts=0,
        fuzz={"mutations": ["remove_object"], "prune_below": 40},
    )
    text = study.read_text().replace("suts: []", "suts:\n- {name: boxes, adapter: boxes-by-colour}")
    study.write_text(text)
    outcome = read_outcome(fuzz(study, tmp_path / "run", tests=20).folder)
    tests = outcome.tests["boxes"]
    assert {test.drop for test in tests} <= {0.0, None}
    assert [test.verdicts for test in tests] == [()] * len(tests)
    people = [test for test in tests if "#24" in test.thing]
    assert people
    assert all(test.drop == 0 for test in people), "the car is found as it was before"


def test_what_cannot_be_made_is_given_up_and_said(tmp_path: Path) -> None:
    section = {"mutations": ["add_car"], "prune_below": 80, "options": {}}
    study = write_campaign(tmp_path, frames=2, fuzz=section)
    watch = Quiet()
    ran = fuzz(study, tmp_path / "run", tests=500, watch=watch)
    assert ran.status == "saturated"
    assert ran.tests < 500
    outcome = read_outcome(ran.folder)
    assert outcome.count == ran.tests
    assert outcome.refusals()


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        ({"fuzz": {"mutations": ["add_cow"]}}, StudyError, "no semantic mutation 'add_cow'"),
        ({"fuzz": {"options": {"shadows": True}}}, StudyError, "no fuzz option 'shadows'"),
        ({"fuzz": {"options": {"tries": "many"}}}, StudyError, "invalid value"),
        ({"fuzz": {"quota": {"add_car": 1}}}, StudyError, "quota is needed for each mutation"),
        ({"fuzz": {"bins": {"a": 5, "b": 5}}}, StudyError, "bins of drops"),
        ({"fuzz": {"scorer": "ap"}}, StudyError, "does not score a segmentation study"),
        ({"fuzz": {"judged_as": {"cow": "x"}}}, StudyError, "'cow'"),
        ({"task": "classification"}, StudyError, "only segmenters and detectors"),
        (
            {"fuzz": {"judged_as": {"road": "car", "building": "road"}}},
            DataError,
            "no frame scores high enough",
        ),
    ],
)
def test_bad_input_is_told(
    tmp_path: Path, change: dict[str, Any], kind: type[AdverseError], words: str
) -> None:
    study = write_campaign(tmp_path, frames=2, **change)
    with pytest.raises(kind, match=words):
        fuzz(study, tmp_path / "run", tests=5)

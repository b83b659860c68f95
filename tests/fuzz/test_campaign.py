"""Whole campaigns: what they find and count, only failures kept."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from pathlib import Path

import cv2
import numpy as np
import pytest

from adverse.curves.interval import korn_graubard
from adverse.data.cityscapes import cityscapes
from adverse.fuzz.folder import CampaignFolder, base_file, failure_file, sut_stem
from adverse.fuzz.outcome import read_outcome
from adverse.report.fuzz import counts_table, times_table
from adverse.report.fuzz_charts import counts_chart
from adverse.semantic import Recipe, Resources, apply, scene_of
from fuzz.whole_campaign import TESTS, Quiet, fuzz
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
    outcome = read_outcome(fuzz(study, tmp_path / "run", tests=20).folder)
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
    assert ran.tests == watch.done < 500, "only tests are counted as done"
    assert watch.notes[-1] == f"no more tests of add_car could be made: {ran.tests} of 500"
    outcome = read_outcome(ran.folder)
    assert outcome.count == ran.tests
    assert outcome.refusals()

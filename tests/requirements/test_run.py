"""Requirements checked from files to verdicts, for detectors, segmenters and classifiers."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

from adverse.cli.app import app
from adverse.content import digest, file_sha256
from adverse.curves.interval import Interval
from adverse.data.images import write_image
from adverse.errors import StudyError
from adverse.humans.thresholds import FORMAT, FORMAT_VERSION, checksum
from adverse.report.requirements import requirement_lines
from adverse.requirements.basis import on_its_basis
from adverse.requirements.decision import Decision, DistanceFinding
from adverse.requirements.evidence import VersionStats, stats_of, within_reach
from adverse.requirements.results import as_data, recheck, save
from adverse.requirements.verdicts import Outcome, read_verdicts
from adverse.store.finished_run import finished
from requirements.light_squares import (
    ADAPTERS,
    FRAMES,
    PLUGIN,
    checked,
    pictures,
    write_study,
)

CONTRAST = {"transformation": "t.contrast", "threshold": 0.9}


@pytest.mark.parametrize("task", list(ADAPTERS))
def test_who_keeps_up_passes_and_who_does_not_fails(tmp_path: Path, task: str) -> None:
    both = [{**CONTRAST, "kind": kind} for kind in ("correctness", "prediction")]
    more: dict[str, Any] = {} if task == "detection" else {"score": None}
    path = write_study(tmp_path, task, both, **more)
    found, heard = checked(path, tmp_path / "out")
    outcomes = {(one.sut, one.kind): one.decision.outcome for one in found.results}
    assert outcomes["steady", "correctness"] is Outcome.PASS
    assert outcomes["steady", "prediction"] is Outcome.PASS
    assert outcomes["shy", "correctness"] is not Outcome.PASS
    if task == "detection":
        assert outcomes["shy", "correctness"] is Outcome.FAIL
        assert outcomes["shy", "prediction"] is Outcome.FAIL
    distances = {(one.sut, one.kind): one.decision.finding.distance for one in found.results}
    for kind in ("correctness", "prediction"):  # most pixels are dark, and the shy one calls all of them so
        assert distances["shy", kind] > distances["steady", kind] + (0.02 if task == "segmentation" else 0.05)
    assert all(one.within.versions + one.within.rejections == 2 * FRAMES for one in found.results)
    assert heard.done == FRAMES * 2 * 4  # as they are, two versions, barely changed; two SUTs
    seen = found.results[0].within.visual_change
    assert ((seen >= 0) & (seen <= 0.9)).all()
    lower, upper = np.histogram(seen, bins=2, range=(0, 0.9))[0]
    assert abs(lower - upper) <= found.results[0].within.rejections + 1  # evenly covered


@pytest.mark.parametrize("task", ["classification", "segmentation"])
def test_answers_can_be_compared_without_any_truth(tmp_path: Path, task: str) -> None:
    """The same images as a plain folder, and as data with truth: what is compared is the same."""
    require = [{**CONTRAST, "kind": "prediction"}]
    path = write_study(tmp_path, task, require, score=None, frames=24)
    labelled, _ = checked(path, tmp_path / "labelled")
    for number, (image, _) in enumerate(pictures()):
        folder = tmp_path / "plain" / f"log{number:03}" / "images"
        folder.mkdir(parents=True)
        write_image(folder / f"{number:03}.png", image)
    study = yaml.safe_load((tmp_path / "study.yaml").read_text())
    study["data"] = {"format": "folder", "root": "plain"}
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(study))
    found, _ = checked(path, tmp_path / "unlabelled")
    outcomes = {one.sut: one.decision for one in found.results}
    assert outcomes["steady"].finding.measured == 1.0
    assert outcomes["steady"].finding.images == 24
    assert outcomes["shy"].finding.measured < outcomes["shy"].finding.required
    if task == "segmentation":  # the frames have the same ids there, and so the same versions
        assert [one.decision.finding.measured for one in found.results] == [
            one.decision.finding.measured for one in labelled.results
        ]
    save(found)
    assert [verdict.outcome for verdict in recheck(found.store)] == [one.outcome for one in outcomes.values()]
    correct = path.read_text().replace("prediction", "correctness")
    path.write_text(correct)
    with pytest.raises(StudyError, match=r"needs a (label map|category) for every frame"):
        checked(path, tmp_path / "correct")
    if task == "classification":
        analyzed = CliRunner().invoke(app, ["analyze", str(tmp_path / "unlabelled")])
        assert "accuracy needs a category" in str(analyzed.exception)


def people_file(folder: Path, low: float | None) -> Path:
    """Write the estimates of a human study: people tolerate contrast up to 0.9, or only up to `low`.

    Without it they are too few for an interval.
    """
    interval = Interval(0.9, low or 0.0, math.inf, 0.9, "profile over participants", 30, "ok").plain()
    if low is None:
        interval |= {"low": None, "high": None, "status": "refused", "why": "5 participants"}
    entry = {
        "transformation": "t.contrast",
        "kind": "correctness",
        "status": "found",
        "backend": "vifp",
        "value": 0.9,
        "tolerated_to": 0.9,
        "interval": interval,
        "bins": [{"low": 0.1, "high": 0.11, "fitted": 1.02}, {"low": 0.9, "high": 0.91, "fitted": 0.7}],
    }
    whole = {"format": FORMAT, "version": FORMAT_VERSION, "thresholds": [entry]}
    whole |= {"checksum": checksum(whole)}
    path = folder / "people.json"
    path.write_text(json.dumps(whole, allow_nan=False))
    return path


def test_what_falls_only_where_people_may_fail_does_not_fail(tmp_path: Path) -> None:
    """The shy one keeps up to 0.3 and falls beyond: how far people tolerate it decides, and is not known."""
    require = {"transformation": "t.contrast", "kind": "correctness", "threshold": "people.json"}
    path = write_study(tmp_path, "detection", [require], versions=3)
    study = tmp_path / "study.yaml"
    study.write_text(study.read_text().replace("25.0", "10.0"))
    people_file(tmp_path, 0.3)
    found, _ = checked(path, tmp_path / "out")
    by_sut = {one.sut: one for one in found.results}
    assert by_sut["steady"].decision.outcome is Outcome.PASS
    assert "beyond the data, which was not checked" in by_sut["steady"].decision.reason
    shy = by_sut["shy"]
    assert (shy.decision.outcome, shy.lower.outcome) == (Outcome.INCONCLUSIVE, Outcome.PASS)
    assert shy.decision.reason.startswith("PASS up to 0.3, the lower end of the 90% interval of t_c; FAIL")
    values = {point.low: point.value for point in shy.curve}
    assert values[min(values)] == 1
    assert values[max(values)] < 0.5
    assert np.ravel(shy.threshold.people) == pytest.approx([0.105, 1.0, 0.905, 0.7])
    assert "from 30 participants" in shy.threshold.origin
    save(found)
    assert [verdict.outcome for verdict in recheck(found.store)] == [Outcome.PASS, Outcome.INCONCLUSIVE]
    people_file(tmp_path, 0.0)  # nothing is surely tolerated
    again, _ = checked(path, tmp_path / "out")
    least = "the least change with enough versions (the 90% interval of t_c goes down to 0); FAIL up to 0.9"
    assert least in again.results[1].decision.reason
    people_file(tmp_path, 0.85)
    again, _ = checked(path, tmp_path / "out")
    assert again.results[1].decision.outcome is Outcome.FAIL
    people_file(tmp_path, None)
    again, _ = checked(path, tmp_path / "out")
    assert again.results[1].decision.outcome is Outcome.INCONCLUSIVE
    assert "no interval of t_c (5 participants)" in again.results[1].decision.reason


def test_a_check_goes_on_where_it_stopped_and_says_the_same(tmp_path: Path) -> None:
    path = write_study(tmp_path, "detection", [{**CONTRAST, "kind": "correctness"}])
    first, _ = checked(path, tmp_path / "out")
    again, heard = checked(path, tmp_path / "out")
    assert (heard.before, heard.done) == (FRAMES * 2 * 3, 0)
    assert as_data(first) == as_data(again)
    fresh, _ = checked(path, tmp_path / "other")
    assert as_data(first) == as_data(fresh)
    path.write_text(path.read_text().replace("threshold: 0.9", "threshold: 0.8"))
    _, changed = checked(path, tmp_path / "out")
    assert changed.before == FRAMES * 2  # only the versions are new


@pytest.mark.parametrize(
    ("missed", "outcome", "words"),
    [
        ([], Outcome.PASS, ""),
        ([0.92], Outcome.PASS, "PASS up to 0.88, the largest change that was reached; 5 % of the range"),
        ([0.91, 0.92, 0.93], Outcome.INCONCLUSIVE, "PASS up to 0.88, but 15 % of the range was not reached"),
        ([0.1, 0.2, 0.3], Outcome.INCONCLUSIVE, "PASS on what was reached, but 15 % of the range"),
    ],
)
def test_a_pass_is_only_of_what_was_reached(missed: list[float], outcome: Outcome, words: str) -> None:
    finding = DistanceFinding(20, Interval(0.0, -0.1, 0.1, 0.95, "", 20, "ok"))
    made = VersionStats(17, 99, np.array([0.05, 0.88]), aimed=20, missed=np.array(missed))
    found = within_reach(Decision(finding, Outcome.PASS), made, 0.94)
    assert found.outcome is outcome
    assert found.reason.startswith(words)
    failed = within_reach(Decision(finding, Outcome.FAIL), made, 0.94)
    assert failed.outcome is Outcome.FAIL


def test_a_place_whose_version_raised_was_not_reached() -> None:
    made = {"status": "ok", "reason": None, "details": [("aimed_at", 0.4), ("visual_change", 0.4)]}
    raised = "the mutation up_to failed; where: frame 'a'; got: ValueError: no. Fix: Mend it."
    lost = {"status": "quarantined", "reason": raised, "details": [("aimed_at", 0.395)]}
    reach = stats_of([made] * 84 + [lost] * 56)
    assert (reach.versions, reach.aimed, len(reach.missed)) == (84, 140, 56)
    finding = DistanceFinding(70, Interval(0.0, -0.05, 0.05, 0.95, "", 70, "ok"))
    found = within_reach(Decision(finding, Outcome.PASS), reach, 0.9)
    assert found.outcome is Outcome.INCONCLUSIVE
    assert found.reason.startswith("PASS up to 0.40, but 40 % of the range was not reached")


@pytest.mark.parametrize(
    ("changes", "required", "faults", "outcome", "words"),
    [
        ([0.01, 0.025], 1.0, 0.0, Outcome.PASS, ""),
        ([0.01] * 9 + [0.165], 0.98, 0.0, Outcome.PASS, "1 of 10 barely changed images could not be"),
        ([0.012] * 8 + [0.1, 0.165], 0.9, 0.0, Outcome.INCONCLUSIVE, "go from 0.012 to 0.165, so what is"),
        ([0.012] * 8 + [0.1, 0.165], 1.0, 0.0, Outcome.PASS, "2 of 10 barely changed images could not be"),
        ([0.01], 0.5, 0.0, Outcome.PASS, "50 % of the answers are lost at the least change already"),
        (
            [0.01],
            0.5,
            0.5,
            Outcome.INCONCLUSIVE,
            "met, but faults on 50 % of the barely changed images, more",
        ),
        (None, 0.5, 0.5, Outcome.INCONCLUSIVE, "faults on 50 % of the images as they are, more than"),
        (None, 0.5, 0.05, Outcome.PASS, "faults on 5 % of the images as they are"),
        (None, 0.5, 0.0, Outcome.PASS, ""),
    ],
)
def test_a_pass_rests_on_what_is_required(
    changes: list[float] | None, required: float, faults: float, outcome: Outcome, words: str
) -> None:
    """Barely changed is up to 0.025: changes above count as not reached, and at most 1 in 10 may be such."""
    rows = [
        {"status": "ok", "reason": None, "details": [("aimed_at", 0.02), ("visual_change", change)]}
        for change in changes or ()
    ]
    barely = None if changes is None else stats_of(rows, highest=0.025)
    finding = DistanceFinding(20, Interval(0.0, -0.1, 0.04, 0.95, "", 20, "ok"), required, required)
    found = on_its_basis(Decision(finding, Outcome.PASS), barely, 0.025, faults, 0.05)
    assert found.outcome is outcome
    assert words in found.reason
    assert bool(words) == bool(found.reason)
    failed = on_its_basis(Decision(finding, Outcome.FAIL, "no"), barely, 0.025, faults, 0.05)
    assert failed.outcome is Outcome.FAIL


def test_barely_changed_images_that_are_not_and_faults_prevent_a_pass(tmp_path: Path) -> None:
    """JPEG cannot change these images by 0.001; one SUT fails on half of all images, alike everywhere."""
    kinds = [{"transformation": "t.jpeg", "kind": kind, "threshold": 0.5} for kind in ("prediction",)]
    kinds.append({**CONTRAST, "kind": "correctness"})
    path = write_study(tmp_path, "classification", kinds, score=None, barely=0.002, margin=0.3)
    plugin = PLUGIN.replace(
        "gray.std() < self.least:", "self.least and image[:, :28].mean() > image[:, 28:].mean():"
    )
    plugin = plugin.replace("return np.zeros((0, 4)), np.zeros(0)", "raise ValueError('left')")
    (tmp_path / "systems.py").write_text(plugin)
    found, _ = checked(path, tmp_path / "out")
    steady, contrast, shy, faulty = found.results
    assert steady.barely.unreached == 1
    assert steady.decision.finding.distance <= 0.05
    assert steady.decision.outcome is Outcome.INCONCLUSIVE
    changes = steady.barely.visual_change
    assert f"go from {changes.min():.3f} to {changes.max():.3f}" in steady.decision.reason
    assert contrast.decision.outcome is Outcome.PASS
    assert shy.decision.outcome is Outcome.INCONCLUSIVE
    assert faulty.decision.finding.required == 0.5
    assert faulty.decision.outcome is Outcome.INCONCLUSIVE
    assert "faults on 50 % of the images as they are, more than the margin 0.3" in faulty.decision.reason
    rows = as_data(found)["results"]
    assert rows[0]["barely_unreached"] == 1
    lines = requirement_lines(as_data(found))
    assert sum("barely changed images are changed by more" in line for line in lines) == 1


def test_what_cannot_be_reached_is_told(tmp_path: Path) -> None:
    beyond = {"transformation": "t.jpeg", "kind": "correctness", "threshold": 0.999}
    path = write_study(tmp_path, "detection", [beyond], versions=8, tries=8, frames=24)
    found, _ = checked(path, tmp_path / "out")
    one = found.results[0]
    assert one.within.rejections > 0
    assert one.within.tries <= 8 * 8 * 24
    assert "the visual change is never so large" in one.within.refused
    assert one.within.unreached == one.within.rejections / (8 * 24) > 0.1
    assert one.decision.outcome is Outcome.INCONCLUSIVE  # nothing fell, but not all of the range was seen
    share, most = f"{100 * one.within.unreached:.0f} %", one.within.visual_change.max()
    assert f"PASS on what was reached, but {share} of the range" in one.decision.reason
    assert f"the largest change is {most:.2f}, not 0.999" in one.decision.reason
    row = as_data(found)["results"][0]
    assert row["versions_unreached"] == pytest.approx(one.within.unreached, abs=1e-6)
    assert row["versions_largest_change"] == most
    (line,) = [line for line in requirement_lines(as_data(found)) if "rejected" in line]
    assert f"{one.within.rejections} of {8 * 24} versions" in line
    reached = f"checked up to {most:.2f} of 0.999; {share} of the range was not reached"
    assert any(reached in line for line in requirement_lines(as_data(found)))
    fallen_back = as_data(found) | {"results": [row | {"threshold_doubt": "t_c 0.9 is a fallback"}]}
    assert any("threshold t_c 0.9 is a fallback" in line for line in requirement_lines(fallen_back))


def test_options_are_drawn_again_until_the_change_is_small_enough(tmp_path: Path) -> None:
    drawn = {**CONTRAST, "kind": "correctness", "threshold": 0.4}
    drawn["parameters"] = {"strength": {"uniform": [0.0, 1.0]}}
    path = write_study(tmp_path, "detection", [drawn], tries=30)
    found, _ = checked(path, tmp_path / "out")
    reach = found.results[0].within
    assert reach.visual_change.max() <= 0.4
    assert reach.tries > reach.versions  # some were too much
    passed = Decision(found.results[0].decision.finding, Outcome.PASS)
    reached = f"{np.quantile(reach.visual_change, 0.95):.3f}"  # 1 in 20 goes further
    assert within_reach(passed, reach, float(reached)).outcome is Outcome.PASS
    assert f"or threshold: {reached}, would" in within_reach(passed, reach, 0.9).reason
    short = within_reach(passed, reach, 0.9)  # the requirement goes further than the options do
    assert short.outcome is Outcome.INCONCLUSIVE
    assert short.reason.startswith("PASS up to 0.3")
    assert "but the requirement goes up to 0.9" in short.reason
    unseen = within_reach(passed, VersionStats(9, 9, np.zeros(9)), 0.9)
    assert unseen.reason.endswith("lies beyond; wider parameters: would decide it")


def test_few_frames_are_inconclusive(tmp_path: Path) -> None:
    path = write_study(tmp_path, "detection", [{**CONTRAST, "kind": "correctness"}], frames=12, images=500)
    found, heard = checked(path, tmp_path / "out")
    assert heard.done == 12 * 2 * 3
    assert {one.decision.outcome for one in found.results} == {Outcome.INCONCLUSIVE}
    assert all("too few images" in one.decision.reason for one in found.results)
    assert any("batches of 500 images" in line for line in requirement_lines(as_data(found)))


def test_the_command_prints_writes_and_ends_as_the_verdicts_say(tmp_path: Path) -> None:
    names = [{**CONTRAST, "kind": "correctness", "name": "contrast <b>"}]
    path = write_study(tmp_path, "detection", names, ranking=True)
    out = tmp_path / "out"
    done = CliRunner().invoke(
        app, ["requirements", "check", str(path), "--out", str(out), "--workers", "1"], env={"COLUMNS": "80"}
    )
    assert done.exit_code == 1, done.output
    assert "PASS" in done.output
    assert "FAIL" in done.output
    table = [
        line
        for line in done.output.splitlines()
        if not line.startswith(("- ", "results", "verdicts", "page"))
    ]
    assert max(map(len, table)) <= 80
    verdicts = read_verdicts(finished(out))["requirements"]
    assert [verdict.outcome for verdict in verdicts] == [Outcome.PASS, Outcome.FAIL]
    assert verdicts[0].required == 0.15
    page = (out / "requirements.html").read_text()
    assert "contrast &lt;b&gt;" in page
    assert "<b>" not in page
    rows = json.loads((out / "results" / "requirements.json").read_text())["results"]
    assert [row["battery"] for row in rows] == ["c.contrast"] * 2
    assert rows[0]["battery_mean"] > rows[1]["battery_mean"]
    assert "Both orders agree on every pair" in done.output
    assert 'id="rankings"' in page
    assert "Worst failures within what people tolerate" in page
    assert page.count("data:image/jpeg") == 4  # two failures, before and after
    assert rows[0]["worst"] == []
    for version in rows[1]["worst"]:
        assert (version["before"], version["after"]) == (1, 0)
        assert version["visual_change"] <= 0.9
    first, second = (version["visual_change"] for version in rows[1]["worst"][:2])
    assert first <= second  # the least changed of those that fell the same
    assert (out / "requirements.csv").read_text().startswith("sut,requirement")
    assert CliRunner().invoke(app, ["verify", str(out)]).exit_code == 0
    (out / "requirements.html").unlink()
    assert CliRunner().invoke(app, ["report", str(out)]).exit_code == 0
    assert (out / "requirements.html").read_text() == page
    (tmp_path / "gate.yaml").write_text("rules: [{measure: requirements}]")
    gate = CliRunner().invoke(app, ["check", str(out), str(tmp_path / "gate.yaml")])
    assert gate.exit_code == 1, gate.output
    assert "contrast <b>" in gate.output
    forge(out)
    again = CliRunner().invoke(app, ["check", str(out), str(tmp_path / "gate.yaml")])
    assert "changed" in str(again.exception), again.output
    results = out / "results" / "requirements.json"
    results.write_text(results.read_text().replace('"measured"', '"measured" '))
    refused = CliRunner().invoke(app, ["report", str(out)])
    assert "seals.json" in str(refused.exception)


def forge(out: Path) -> None:
    """Turn every verdict that lies in the folder into PASS, and seal the files anew."""
    seals = json.loads((out / "seals.json").read_text())
    for name in ("results/requirements.json", "verdicts/requirements.json"):
        path = out / name
        path.write_text(path.read_text().replace('"outcome": "FAIL"', '"outcome": "PASS"'))
        seals["files"][name][0] = file_sha256(path)
    seals["digest"] = digest(json.dumps(seals["files"], sort_keys=True))
    (out / "seals.json").write_text(json.dumps(seals))


def test_a_check_from_many_workers_is_the_same_to_the_byte(tmp_path: Path) -> None:
    path = write_study(tmp_path, "detection", [{**CONTRAST, "kind": "prediction"}], frames=24)
    here, _ = checked(path, tmp_path / "here")
    save(here)
    there = tmp_path / "there"
    CliRunner().invoke(app, ["requirements", "check", str(path), "--out", str(there), "--workers", "2"])
    for name in ("results/requirements.json", "verdicts/requirements.json"):
        assert (tmp_path / "here" / name).read_bytes() == (there / name).read_bytes()

"""Campaigns stopped, killed, spread over workers, guided or damaged find the same, byte for byte."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

import adverse
from adverse.content import ChangedError
from adverse.errors import IncompleteError, StoreError
from adverse.fuzz.compare import compare
from adverse.fuzz.folder import CampaignFolder
from adverse.fuzz.outcome import read_outcome
from adverse.study.engines import Stop
from adverse.study.engines.local import InlineEngine, LocalEngine
from fuzz.whole_campaign import TESTS, Quiet, content, fuzz
from small_campaign import write_campaign


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
    assert watch.before + watch.done == TESTS, "those of a round that was begun are counted, once"
    mine, wanted = content(out), content(plain)
    extra = {name for name in mine if name not in wanted}
    assert {name: mine[name] for name in mine if name not in extra} == wanted
    assert all(name.startswith(("failures/", "bases/")) for name in extra), "of tests beyond those asked for"


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
    assert CampaignFolder(out).read_manifest()["status"] == "running"
    with log.open("ab") as file:
        file.write(b"0123 a line that was never fini")  # what a power cut leaves
    ended = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "never finished" in ended.stdout
    assert CampaignFolder(out).read_manifest()["status"] == "complete"
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


def test_lost_and_changed_pictures_are_made_again(study: Path, tmp_path: Path) -> None:
    out = fuzz(study, tmp_path / "run", tests=60).folder.path
    before = content(out)
    lost, changed = sorted((out / "failures").rglob("image.png"))[:2]
    lost.unlink()
    changed.write_bytes(changed.read_bytes()[::-1])
    watch = Quiet()
    fuzz(study, out, tests=60, watch=watch)
    assert any("lost files" in note for note in watch.notes)
    assert content(out) == before


@pytest.mark.parametrize(
    ("moment", "kind"),
    [
        ("frames are shown", "leftImg8bit"),
        ("are kept as bases", "instanceIds"),
        ("resource set", "labelIds"),
    ],
)
def test_a_file_that_changes_during_a_campaign_ends_it(
    plain: Path, study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str, kind: str
) -> None:
    """Image, label map or instance map, before any of the three times that they are read."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    files = sorted((study.parent / "data").rglob(f"*_{kind}.png"))
    place, old = files[3], files[3].read_bytes()

    class Meddler(Quiet):
        def note(self, text: str) -> None:
            if moment in text:
                place.write_bytes(files[2].read_bytes())

    try:
        with pytest.raises(ChangedError, match=f"{place.name} was changed"):
            fuzz(study, tmp_path / "run", watch=Meddler())
    finally:
        place.write_bytes(old)
    assert fuzz(study, tmp_path / "run").status == "complete"
    assert content(tmp_path / "run") == content(plain)

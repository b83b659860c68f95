"""One seal over a run folder: whatever is changed in it is found, named and read by nobody."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

import adverse
from adverse.content import digest, file_sha256
from adverse.errors import StoreError
from adverse.seeds import generator
from adverse.store.folder import RunFolder
from adverse.store.seals import drop_of_other_states

from .cases import CANNOT_RUN, INCOMPLETE, PASS
from .command import Said, adverse_here
from .good_study import GoodStudy

LEVEL = '''
import numpy as np

from adverse import level
from adverse.levels.match import HIT
from adverse.levels.outcomes import Events, as_float, first_level


@level(title="tall people", sentence="People taller than 20 pixels.", exact=True)
def tall(given):
    """Count every true person as found by the first hit."""
    matched, truth, frames = given.matched, given.truth, given.frames
    first = first_level(given.answers.scores, given.thresholds)
    hit = given.counted[matched.frame] & (matched.outcome == HIT)
    people = np.bincount(frames.log[truth.frame[given.counted[truth.frame]]], minlength=len(frames.logs))
    images = as_float(np.bincount(frames.log[given.counted], minlength=len(frames.logs)))
    nobody = np.zeros(0, np.int64)
    return Events(frames.logs, frames.log[matched.frame[hit]], first[hit], people, nobody, nobody, images)
'''
FAULTS = {"measure": "faults", "at_most": 0}
TALL = {"measure": "area", "level": "tall", "setting": "baseline", "at_least": 0.01, "bound": "point"}
IMAGE = {"measure": "area", "level": "image", "setting": "Any", "at_least": 0.01, "bound": "point"}
BROKEN = {"measure": "area", "level": "image", "setting": "Any", "at_most": 0.01, "bound": "point"}


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> GoodStudy:
    """A run with everything in its folder: logs, results, a report, verdicts, a signature."""
    study = GoodStudy(tmp_path_factory.mktemp("signed") / "study", "coco")
    (study.folder / "tall.py").write_text(LEVEL)
    study.study |= {"plugins": ["probe.py", "tall.py"], "levels": ["image", "tall"]}
    (study.folder / "rules.yaml").write_text(json.dumps({"rules": [FAULTS, TALL, IMAGE]}))
    study.adverse(workers=1).expect(PASS)
    adverse_here("check", study.run, study.folder / "rules.yaml", "--save", "--trust").expect(PASS)
    adverse_here("report", study.run, "--trust").expect(PASS)
    adverse_here("seal", study.run, "--new-key", study.folder / "key", "--trust").expect(PASS)
    verify = ("verify", study.run, "--trust", "--key", study.folder / "key.pub")
    adverse_here(*verify).expect(PASS, "signed with key")
    return study


@pytest.fixture
def run(signed: GoodStudy, tmp_path: Path) -> Path:
    """A copy of it that a test may spoil."""
    return Path(shutil.copytree(signed.run, tmp_path / "run"))


def verified(run: Path, *options: str | Path) -> Said:
    return adverse_here("verify", run, "--no-inputs", "--trust", *options)


def refused(run: Path, *named: str) -> None:
    """Expect that verify finds a change, and that nothing that reads the run accepts it."""
    verified(run).expect(CANNOT_RUN, *named)
    adverse_here("compare", run, run).expect(CANNOT_RUN)
    with pytest.raises(StoreError):
        adverse.open_run(run)


@pytest.mark.fault(58)
def test_a_flipped_byte_in_any_file(run: Path) -> None:
    files = [path for path in sorted(run.rglob("*")) if path.is_file() and path.stat().st_size]
    kinds = {path.relative_to(run).parts[0] for path in files}
    assert kinds >= {".adverse", "manifest.json", "seals.json", "study.yaml", "journal", "cells.parquet"}
    assert kinds >= {"detections", "results", "verdicts", "report.html", "report_tables"}
    assert kinds >= {"signature.dsse.json", "frames.parquet"}
    chance = generator(17, "flips")
    for path in files:
        data = path.read_bytes()
        at = int(chance.integers(len(data)))
        path.write_bytes(data[:at] + bytes([data[at] ^ 1 << int(chance.integers(8))]) + data[at + 1 :])
        verified(run).expect(CANNOT_RUN, str(path))
        with pytest.raises(StoreError) as refusal:
            adverse.open_run(run)
        assert str(path) in str(refusal.value)
        path.write_bytes(data)
    for name in ("manifest.json", "seals.json"):  # what a JSON reader would not see
        path = run / name
        data = path.read_bytes()
        path.write_bytes(data.replace(b" ", b"\t", 1))
        verified(run).expect(CANNOT_RUN, str(path))
        path.write_bytes(data)
    verified(run).expect(PASS)


def truncated(run: Path) -> Path:
    path = run / "report.html"
    path.write_bytes(path.read_bytes()[:-1])
    return path


def removed(run: Path) -> Path:
    path = run / "verdicts" / "rules.yaml"
    path.unlink()
    return path


def renamed(run: Path) -> Path:
    path = run / "results" / "adr.csv"
    path.rename(path.with_name("bdr.csv"))
    return path.with_name("bdr.csv")


def swapped(run: Path) -> Path:
    first, second = run / "results" / "adr.csv", run / "results" / "plain_metrics.csv"
    data = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(data)
    return first


def added(folder: str) -> Callable[[Path], Path]:
    def add(run: Path) -> Path:
        (run / folder / "more.csv").write_text("a,b\n1,2\n")
        return run / folder / "more.csv"

    return add


def linked(name: str) -> Callable[[Path], Path]:
    def link(run: Path) -> Path:
        path = run / name
        path.rename(run.parent / path.name)
        path.symlink_to(run.parent / path.name)
        return path

    return link


def piped(run: Path) -> Path:
    path = run / "results" / "adr.csv"
    path.unlink()
    os.mkfifo(path)
    return path


CHANGES = {
    **{change.__name__: change for change in (truncated, removed, renamed, swapped, piped)},
    **{f"added to {name}": added(name) for name in ("results", "detections", "verdicts", "logs")},
    **{f"link for {name}": linked(name) for name in ("manifest.json", "journal", "results", "report.html")},
}


@pytest.mark.fault(58)
@pytest.mark.parametrize("change", CHANGES)
def test_files_added_removed_renamed_swapped_cut_and_linked(run: Path, change: str) -> None:
    refused(run, str(CHANGES[change](run)))


def test_leftovers_of_a_cut_write_are_neither_sealed_nor_read(signed: GoodStudy, run: Path) -> None:
    """A run that is finished deletes them; whoever meets one before that says so and goes on."""
    for name in (".summary.json.99999999.partial", ".rules.json.99999999.partial"):
        (run / "results" / name).write_text("[half")
    verified(run).expect(PASS, "2 .partial files")
    assert "partial" not in (run / "seals.json").read_text() + (run / "manifest.json").read_text()
    orphan = run / "detections" / f"{'0' * 16}-{'0' * 8}.parquet"
    orphan.write_bytes(b"never acknowledged")
    adverse_here("run", signed.file, "--out", run, "--workers", "0").expect(PASS)
    assert not list(run.rglob("*.partial"))
    assert not orphan.exists()
    verified(run).expect(PASS)


def forge(run: Path, name: str, data: str) -> Path:
    """Write a file and adapt its seal, as one can who knows how seals are made."""
    path = run / name
    path.write_text(data)
    seals = json.loads((run / "seals.json").read_text())
    seals["files"][name] = [file_sha256(path), seals["files"]["results/summary.json"][1]]
    seals["files"] = dict(sorted(seals["files"].items()))
    seals["digest"] = digest(json.dumps(seals["files"], sort_keys=True))
    (run / "seals.json").write_text(json.dumps(seals, indent=1) + "\n")
    return path


@pytest.mark.fault(58)
def test_a_forged_verdict_never_passes(signed: GoodStudy, run: Path) -> None:
    rules = signed.folder / "broken.yaml"
    rules.write_text(json.dumps({"rules": [FAULTS, BROKEN]}))
    assert adverse_here("check", run, rules, "--save").code == 1
    path = run / "verdicts" / "rules.json"
    verdicts = json.loads(path.read_text())
    forge(run, "verdicts/rules.json", json.dumps([one | {"outcome": "PASS"} for one in verdicts]))
    for command in (("report", run), ("verify", run), ("seal", run, "--key", signed.folder / "key")):
        adverse_here(*command).expect(CANNOT_RUN, str(path), "not what the run gives", "FAIL")
    forge(run, "verdicts/rules.json", json.dumps(verdicts[:1]))  # the failing ones left out
    adverse_here("report", run).expect(CANNOT_RUN, str(path), "1 verdicts where the run gives")
    (run / "verdicts" / "rules.yaml").unlink()
    adverse_here("report", run).expect(CANNOT_RUN, "rules.yaml")
    assert adverse_here("check", run, rules, "--save").code == 1
    adverse_here("report", run).expect(PASS)
    assert ">FAIL<" in (run / "report.html").read_text()


def test_without_its_plug_in_a_rule_does_not_pass_and_the_others_are_computed(
    signed: GoodStudy, run: Path
) -> None:
    needs = "INCONCLUSIVE: 1 saved verdict of 4 could not be computed again"
    said = adverse_here("verify", run)
    assert (said.code, needs in said.text, "--trust" in said.text) == (INCOMPLETE, True, True)
    adverse_here("seal", run, "--key", signed.folder / "key").expect(CANNOT_RUN, "--trust")
    rules = signed.folder / "rules.yaml"
    said = adverse_here("check", run, rules)
    assert said.code == INCOMPLETE
    assert (said.text.count("PASS"), said.text.count("INCONCLUSIVE")) >= (3, 1)
    assert "--trust" in said.text
    adverse_here("report", run).expect(PASS)
    page = (run / "report.html").read_text()
    assert "NO RULES" not in page
    assert ">INCONCLUSIVE<" in page
    verdicts = json.loads((run / "verdicts" / "rules.json").read_text())
    assert {one["outcome"] for one in verdicts} == {"PASS"}
    image = [one | ({"measured": 0.99} if "image" in one["name"] else {}) for one in verdicts]
    path = forge(run, "verdicts/rules.json", json.dumps(image))
    for command in ("report", "verify"):
        adverse_here(command, run).expect(CANNOT_RUN, str(path), "not what the run gives")
    tall = [one | ({"measured": 0.99} if "tall" in one["name"] else {}) for one in verdicts]
    forge(run, "verdicts/rules.json", json.dumps(tall))
    assert adverse_here("verify", run).code == INCOMPLETE
    verified(run).expect(CANNOT_RUN, str(path), "not what the run gives")


def test_an_export_is_sealed_and_names_the_state_of_its_run(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "coco"
    adverse_here("export", run, out).expect(PASS)
    state = json.loads((run / "seals.json").read_text())["files"]["results/summary.json"][1]
    adverse_here("verify", out).expect(PASS, f"state {state}")
    for path in [path for path in sorted(out.rglob("*")) if path.is_file()]:
        data = path.read_bytes()
        path.write_bytes(data[:2] + bytes([data[2] ^ 1]) + data[3:])
        adverse_here("verify", out).expect(CANNOT_RUN, str(path) if path.name != ".adverse" else str(out))
        path.write_bytes(data)
    (out / "more.json").write_text("[]")
    adverse_here("verify", out).expect(CANNOT_RUN, "more.json")


def test_what_makes_a_signature_stale_is_told(signed: GoodStudy, run: Path) -> None:
    public = signed.folder / "key.pub"
    adverse_here("report", run, "--trust").expect(PASS)
    verified(run, "--key", public).expect(PASS)  # nothing changed: the report is the same to the byte
    rules = signed.folder / "faults.yaml"
    rules.write_text(json.dumps({"rules": [FAULTS]}))
    older = "signature of the run is now of an older state"
    adverse_here("check", run, rules, "--save").expect(PASS, older, f"adverse report {run}")
    verified(run).expect(PASS, "older state", "verdicts/rules.json changed")
    verified(run, "--key", public).expect(CANNOT_RUN, "older state", "verdicts/rules.json changed")
    seal = ("seal", run, "--trust", "--key", signed.folder / "key")
    refusal = adverse_here(*seal)  # it shows the rules of before
    refusal.expect(CANNOT_RUN, "report", "not what the run gives", "from before the verdicts were saved")
    adverse_here("report", run, "--trust").expect(PASS)
    adverse_here(*seal).expect(PASS)
    verified(run, "--key", public).expect(PASS)


FORGERIES = {
    "results/summary.json": ('"area": 1.0', '"area": 0.5'),
    "report.html": ("probe", "perfect"),
    "report_tables/ADR.csv": ("probe", "perfect"),
    "results/adr.csv": ("probe", "perfect"),
}


@pytest.mark.fault(58)
@pytest.mark.parametrize("name", FORGERIES)
def test_what_the_run_does_not_give_is_not_signed(signed: GoodStudy, run: Path, name: str) -> None:
    """Even where its seal was rewritten to fit: results and report are computed again first."""
    before, after = FORGERIES[name]
    text = (run / name).read_text()
    assert before in text
    path = forge(run, name, text.replace(before, after, 1))
    seal = ("seal", run, "--trust", "--replace", "--key", signed.folder / "key")
    adverse_here(*seal).expect(CANNOT_RUN, str(path), "not what the run gives", "Have it made again: adverse")
    adverse_here("analyze", run, "--trust").expect(PASS)
    adverse_here(*seal).expect(PASS)


def test_a_page_of_an_older_state_says_so(signed: GoodStudy, run: Path) -> None:
    study = signed.folder / "other.yaml"
    changed = yaml.safe_load(signed.file.read_text())
    changed["suts"][0] |= {"mood": "interrupt", "at": 1}
    study.write_text(yaml.safe_dump(changed))
    page = run / "report.html"
    stopped = adverse_here("run", study, "--out", run, "--workers", "0")
    stopped.expect(130, "the signature of the run is now of an older state")
    assert b"This page is of an older state" in page.read_bytes()
    verified(run).expect(INCOMPLETE, "not finished", "older state")
    adverse_here("report", run).expect(INCOMPLETE, "not finished")
    adverse_here("run", signed.file, "--out", run, "--workers", "0").expect(PASS)
    assert b"This page is of an older state" not in page.read_bytes()
    fresh = adverse_here("run", signed.file, "--out", run, "--workers", "0", "--fresh")
    fresh.expect(PASS, "deleted signature.dsse.json: the run it signed is gone")


def test_verdicts_of_the_run_before_are_deleted_with_a_word(run: Path) -> None:
    lines = drop_of_other_states(RunFolder(run), "another")
    (line,) = lines  # results and report are made again by the run itself
    assert "deleted verdicts/rules.json, verdicts/rules.yaml" in line
    assert line.endswith(f"Make them again: adverse check {run} RULES --save")
    assert not list((run / "verdicts").iterdir())


def test_the_way_out_of_a_changed_list_of_results_works(signed: GoodStudy, run: Path) -> None:
    (run / "seals.json").write_text("{}")
    said = verified(run)
    said.expect(CANNOT_RUN, "the list of results was changed", "adverse check --save")
    listed = re.search(r"run folder \(([^)]*)\)", " ".join(said.text.split()))
    assert listed is not None
    (run / "seals.json").unlink()
    alone = verified(run)
    alone.expect(CANNOT_RUN, "the list of results is missing")
    assert alone.text.count("error:") == 1
    for name in listed[1].split(", "):
        path = run / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    adverse_here("analyze", run, "--trust").expect(PASS)
    adverse_here("check", run, signed.folder / "rules.yaml", "--save", "--trust").expect(PASS)
    verified(run).expect(PASS)


def test_advice_about_a_damaged_manifest_works_for_a_copy_too(signed: GoodStudy, run: Path) -> None:
    (run / "manifest.json").write_text("{}")
    said = adverse_here("report", run)
    said.expect(CANNOT_RUN, "the manifest was changed", "--out and a new folder: this one is a copy")
    with pytest.raises(StoreError, match="copied or moved"):  # so that --fresh would be no way out
        RunFolder(run).create()
    text = signed.run.joinpath("manifest.json").read_bytes()
    try:
        signed.run.joinpath("manifest.json").write_text("{}")
        adverse_here("report", signed.run).expect(CANNOT_RUN, "again with --fresh.")
    finally:
        signed.run.joinpath("manifest.json").write_bytes(text)


def test_a_file_of_others_is_to_be_moved_not_made_again(run: Path) -> None:
    (run / "results" / "own.txt").write_text("mine")
    said = verified(run)
    said.expect(CANNOT_RUN, "own.txt", "Move it elsewhere.")
    assert "Have it made again" not in said.text

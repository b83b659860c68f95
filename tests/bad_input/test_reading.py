"""Commands read a finished run as it was written, run no code that it names, and delete nothing of others."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from adverse.analysis.results import analyze
from adverse.content import digest, file_sha256
from adverse.errors import AdverseError
from adverse.pages.view.session import ExploredRun
from adverse.study.engines import Stop
from adverse.study.engines.local import InlineEngine
from adverse.study.run import run_study
from adverse.study.spec import read_study
from watching import Quiet

from .cases import CANNOT_RUN, INCOMPLETE, PASS
from .command import Said, adverse_here
from .good_study import GoodStudy
from .test_verify import flip

RULES = {
    "rules": [
        {"measure": "area", "level": "image", "setting": "baseline", "at_least": 0.999, "bound": "point"}
    ]
}
DRIVE = ("--log", "0.png", "--sut", "probe", "--sensitivity", "0.1")


def view(run: Path) -> Said:
    """What `adverse view` does before it serves."""
    try:
        ExploredRun(run)
    except AdverseError as error:
        return Said(error.exit_code, f"{error}")
    return Said(PASS, "")


def readers(study: GoodStudy) -> dict[str, Callable[[], Said]]:
    """Return every command that reads a run folder."""
    run, rules = study.run, study.folder / "rules.yaml"
    rules.write_text(json.dumps(RULES))
    return {
        "report": lambda: adverse_here("report", run),
        "view": lambda: view(run),
        "check": lambda: adverse_here("check", run, rules),
        "compare": lambda: adverse_here("compare", run, run),
        "export": lambda: adverse_here("export", run, study.folder / "coco"),
        "bench-table": lambda: adverse_here("bench-table", run, "--partial"),
        "drive": lambda: adverse_here("drive", run, *DRIVE),
        "analyze": lambda: adverse_here("analyze", run),
        "verify": lambda: adverse_here("verify", run),
    }


RESULTS = ("report", "view", "check", "compare", "verify")
"""Commands that look at what was worked out; the others make it anew, or read detections alone."""
ALL = (*RESULTS, "export", "bench-table", "drive", "analyze")


def edit_area(run: Path) -> Path:
    """Write a better figure over the one that was worked out."""
    path = run / "results" / "summary.json"
    summary = json.loads(path.read_text())
    for row in summary["rows"]:
        row |= {"area": 0.9999, "robustness": 0.9999}
    path.write_text(json.dumps(summary, indent=1) + "\n")
    return path


def seal_anew(run: Path, name: str) -> None:
    """Forge the seal of a file too, as one can who knows how it is made."""
    seals = json.loads((run / "seals.json").read_text())
    state = seals["files"]["results/summary.json"][1]
    seals["files"][name] = [file_sha256(run / name), state]
    seals["digest"] = digest(json.dumps(seals["files"], sort_keys=True))
    (run / "seals.json").write_text(json.dumps(seals, indent=1) + "\n")


def another_weight(study: GoodStudy, **sut: Any) -> None:
    (study.folder / "model.bin").write_text("other weights")
    study.sut(**sut)
    study.rewrite()


@pytest.mark.fault(58)
@pytest.mark.parametrize("command", RESULTS)
def test_an_edited_figure_is_not_shown(done: GoodStudy, command: str) -> None:
    path = edit_area(done.run)
    readers(done)[command]().expect(CANNOT_RUN, str(path), "changed", f"adverse analyze {done.run}")
    adverse_here("analyze", done.run).expect(PASS)
    assert "0.9999" not in path.read_text()
    adverse_here("report", done.run).expect(PASS)


@pytest.mark.fault(58)
@pytest.mark.parametrize("command", ALL)
def test_edited_detections_are_not_read(done: GoodStudy, command: str) -> None:
    path = min((done.run / "detections").iterdir())
    flip(path)
    readers(done)[command]().expect(CANNOT_RUN, str(path), "changed")


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> GoodStudy:
    """A finished run that was started again with another model, and stopped."""
    study = GoodStudy(tmp_path_factory.mktemp("stopped") / "study", "coco")
    study.adverse().expect(PASS)
    another_weight(study, mood="interrupt", at=1)
    study.adverse().expect(130, "Run the same command to resume")
    assert (study.run / "results" / "summary.json").exists()
    return study


@pytest.mark.fault(57)
@pytest.mark.parametrize("command", [name for name in ALL if name != "verify"])
def test_a_run_that_was_started_again_and_stopped(stopped: GoodStudy, command: str) -> None:
    readers(stopped)[command]().expect(INCOMPLETE, str(stopped.run), "not finished")


def test_results_of_an_earlier_state(done: GoodStudy) -> None:
    """A run that was stopped before its results were worked out, and one with old results put back."""
    kept = done.folder / "kept"
    shutil.copytree(done.run, kept)
    another_weight(done, mood="empty")
    run_study(read_study(done.file), done.run, InlineEngine(), watch=Quiet(), stop=Stop())
    adverse_here("report", done.run).expect(CANNOT_RUN, "no results yet", f"adverse analyze {done.run}")
    shutil.copytree(kept / "results", done.run / "results", dirs_exist_ok=True)
    shutil.copy(kept / "seals.json", done.run)
    for command in RESULTS:
        said = readers(done)[command]()
        said.expect(CANNOT_RUN, "another state of the run", f"adverse analyze {done.run}")
    analyze(done.run)
    assert {row["area"] for row in done.rows()} == {0.0}
    adverse_here("report", done.run).expect(PASS)


def test_running_again_without_a_change_keeps_what_was_worked_out(done: GoodStudy) -> None:
    adverse_here("check", done.run, _rules(done), "--save")
    before = (done.run / "verdicts" / "rules.json").read_bytes()
    done.adverse(workers=2).expect(PASS)
    assert (done.run / "verdicts" / "rules.json").read_bytes() == before
    another_weight(done)
    done.adverse().expect(PASS)
    assert not (done.run / "verdicts" / "rules.json").exists()
    assert not (done.run / "report_tables" / "verdicts_rules.csv").exists()


def test_the_gate_works_its_figures_out_again(done: GoodStudy) -> None:
    another_weight(done, mood="empty")
    done.adverse().expect(PASS)
    before = adverse_here("check", done.run, _rules(done))
    assert (before.code, before.text.count("FAIL")) == (1, 3)
    edit_area(done.run)
    seal_anew(done.run, "results/summary.json")
    assert adverse_here("check", done.run, _rules(done)) == before


def test_a_verdict_written_by_hand(done: GoodStudy) -> None:
    folder = done.run / "verdicts"
    folder.mkdir(exist_ok=True)
    path = folder / "requirements.json"
    verdict = {"name": "fine", "requirement": "all is well", "required": None, "measured": None}
    path.write_text(json.dumps([{**verdict, "interval": None, "outcome": "PASS", "reason": ""}]))
    rules = done.folder / "theirs.yaml"
    rules.write_text(json.dumps({"rules": [{"measure": "requirements"}]}))
    for command in (("report", done.run), ("check", done.run, rules)):
        adverse_here(*command).expect(CANNOT_RUN, str(path), "not written by adverse", "Delete it")
    seal_anew(done.run, "verdicts/requirements.json")
    said = adverse_here("check", done.run, rules)
    assert (said.code, "INCONCLUSIVE" in said.text) == (INCOMPLETE, True)


PLUG_IN = """
from pathlib import Path
from adverse import mutation
Path(__file__).with_name("executed").touch()

@mutation
def darker(image):
    \"\"\"Halve.\"\"\"
    return image // 2
"""


def test_reading_runs_no_plug_in_unless_it_is_trusted(coco: GoodStudy) -> None:
    plug_in = coco.folder / "darker.py"
    plug_in.write_text(PLUG_IN)
    coco.study["plugins"].append("darker.py")
    coco.study["mutations"].append("darker")
    coco.adverse().expect(PASS)
    executed = coco.folder / "executed"
    assert executed.exists()

    def forget() -> None:
        executed.unlink(missing_ok=True)
        for name in [name for name in sys.modules if name.startswith("adverse_plugin_")]:
            del sys.modules[name]

    for command in ALL:
        forget()
        readers(coco)[command]()
        assert not executed.exists(), command
    forget()
    adverse_here("report", coco.run).expect(PASS, "note: No pictures of darker", str(plug_in), "--trust")
    page = (coco.run / "report.html").read_text()
    assert "No pictures of darker" in page
    assert str(plug_in) in page
    assert "--trust" in page
    assert not executed.exists()
    adverse_here("report", coco.run, "--trust").expect(PASS)
    assert executed.exists()
    assert "No pictures of" not in (coco.run / "report.html").read_text()


def test_a_run_refuses_files_of_others_before_any_work(done: GoodStudy) -> None:
    """In all places that only adverse writes into, one after the other; beside them they may stay."""
    beside = done.run / "notes.txt"
    beside.write_text("mine")
    outside = done.folder / "outside"
    outside.mkdir()
    names = ["detections/a/b.txt", "detections/mine.parquet", "results/link", "results/notes.csv"]
    names += ["verdicts/x.txt", "logs/x.txt", "report_tables/x.md"]
    theirs = [done.run / name for name in names]
    for path in theirs:
        path.parent.mkdir(exist_ok=True)
        path.symlink_to(outside) if path.name == "link" else path.write_text("mine")
    for path in theirs:
        before = [(each, each.stat()) for each in sorted(done.run.rglob("*")) if each.name != "lock"]
        for options in (("--fresh",), ()):
            said = done.adverse("run", *options)
            said.expect(CANNOT_RUN, "was not written by adverse", str(path), "Move it", "Nothing was run")
        after = [(each, each.stat()) for each in sorted(done.run.rglob("*")) if each.name != "lock"]
        assert [(each, now.st_ino, now.st_mtime_ns) for each, now in after] == [
            (each, then.st_ino, then.st_mtime_ns) for each, then in before
        ]
        path.unlink()
    done.adverse("run", "--fresh").expect(PASS, "16/16 images done")
    done.adverse("verify").expect(PASS, "not written by adverse, and not checked: notes.txt")
    assert beside.read_text() == "mine"


def test_fresh_in_a_folder_that_is_not_ours(coco: GoodStudy) -> None:
    """A manifest.json, a lock or a journal does not make a folder ours."""
    (coco.run / "results").mkdir(parents=True)
    (coco.run / "manifest.json").write_text("{}")
    (coco.run / "results" / "summary.json").write_text("mine")
    for options in (("--fresh",), ()):
        coco.adverse("run", *options).expect(CANNOT_RUN, str(coco.run), "not a run", "--out")
    assert (coco.run / "results" / "summary.json").read_text() == "mine"


@pytest.mark.parametrize("name", ["results", "detections", "."])
def test_fresh_does_not_follow_links(coco: GoodStudy, name: str) -> None:
    coco.adverse().expect(PASS)
    outside = coco.folder / "outside"
    linked = (coco.run / name).resolve()
    linked.rename(outside)
    linked.symlink_to(outside)
    before = sorted(path.name for path in outside.rglob("*"))
    coco.adverse("run", "--fresh").expect(CANNOT_RUN, "symbolic link", "--out")
    assert sorted(path.name for path in outside.rglob("*")) == before


def test_a_list_of_results_that_names_files_outside(done: GoodStudy) -> None:
    thesis = done.folder / "thesis.tex"
    thesis.write_text("chapter 1")
    seal_anew_path = "../thesis.tex"
    seals = json.loads((done.run / "seals.json").read_text())
    seals["files"][seal_anew_path] = [file_sha256(thesis), "0"]
    seals["digest"] = digest(json.dumps(seals["files"], sort_keys=True))
    (done.run / "seals.json").write_text(json.dumps(seals, indent=1) + "\n")
    adverse_here("report", done.run).expect(CANNOT_RUN, "seals.json", "changed")
    done.adverse("run", "--fresh").expect(PASS)
    assert thesis.exists()


def _rules(study: GoodStudy) -> Path:
    path = study.folder / "rules.yaml"
    path.write_text(json.dumps(RULES))
    return path

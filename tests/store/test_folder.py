"""A fresh start deletes all that adverse wrote, and nothing else; runs and campaigns share one kit."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from adverse.analysis.results import analyze
from adverse.errors import LockedError, StoreError
from adverse.fuzz.folder import CampaignFolder
from adverse.report.page import write_report
from adverse.store.folder import RunFolder
from adverse.store.owned_folder import MARK, OwnedFolder, claim, delete_ours
from analysis.test_results import study

KINDS = [RunFolder, CampaignFolder]


def test_a_cleared_run_folder_holds_only_what_others_put_there(tmp_path: Path) -> None:
    path = study(tmp_path, ["brightness(scale=0.5)"])
    analyze(path)
    write_report(path)
    assert len(list((path / "results").iterdir())) > 5
    theirs = path / "results" / "thesis.tex"
    theirs.write_text("chapter 1")
    RunFolder(path).clear()
    left = {file for file in path.rglob("*") if file.is_file()}
    assert left == {path / MARK, path / "lock", theirs}


@pytest.mark.parametrize("kind", KINDS)
def test_a_manifest_says_that_it_was_changed(tmp_path: Path, kind: type[OwnedFolder]) -> None:
    folder = kind(tmp_path / "out")
    folder.create()
    with pytest.raises(StoreError, match=f"not a {kind.kind}"):
        folder.read_manifest()
    folder.write_manifest({"status": "running", "seed": 3})
    assert folder.read_manifest()["seed"] == 3
    folder.manifest.write_text(folder.manifest.read_text().replace("3", "4", 1))
    with pytest.raises(StoreError, match=f"manifest was changed.*{kind.command}"):
        folder.read_manifest()


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_in_use_is_locked(tmp_path: Path, kind: type[OwnedFolder]) -> None:
    notes: list[str] = []
    folder = kind(tmp_path / "out")
    again = kind(folder.path).in_use(fresh=True, note=notes.append)
    with folder.in_use(fresh=False, note=notes.append), pytest.raises(LockedError), again:
        pass
    with folder.in_use(fresh=True, note=notes.append):
        assert folder.path.is_dir()
    assert notes == []


def test_a_mark_that_was_copied_makes_no_folder_ours(tmp_path: Path) -> None:
    """Not even beside files of the names that we write: nothing is deleted, and nothing written."""
    made = RunFolder(tmp_path / "made")
    made.create()
    made.write_manifest({"status": "running"})
    theirs = RunFolder(tmp_path / "theirs")
    theirs.path.mkdir()
    for name in ("journal", "study.yaml", "report.html"):
        (theirs.path / name).write_text("mine")
    shutil.copy(made.path / MARK, theirs.path)
    before = sorted(tmp_path.rglob("*"))
    for work in (theirs.create, theirs.clear):
        with pytest.raises(StoreError, match="made for another run folder"):
            work()
    with (
        pytest.raises(StoreError, match="made for another run folder"),
        theirs.in_use(fresh=True, note=print),
    ):
        pass
    with pytest.raises(StoreError, match="made for another"):
        delete_ours(theirs.path, RunFolder.kind, {".": ".*"})
    shutil.copy(made.manifest, theirs.path)
    study = made.study
    study.write_text("ours")
    made.write_manifest({"status": "running"})  # lists study.yaml, which is another one there
    shutil.copy(made.manifest, theirs.path)
    with pytest.raises(StoreError, match="made for another"):
        theirs.clear()
    assert sorted({*before, study, theirs.manifest}) == sorted(tmp_path.rglob("*"))
    assert (theirs.path / "study.yaml").read_text() == "mine"


@pytest.mark.parametrize("kind", KINDS)
def test_a_whole_folder_may_be_copied_and_moved(tmp_path: Path, kind: type[OwnedFolder]) -> None:
    made = kind(tmp_path / "made")
    made.create()
    made.write_manifest({"status": "running"})
    moved = kind(made.path.rename(tmp_path / "moved"))
    moved.clear()
    moved.write_manifest({"status": "running"})
    copy = kind(Path(shutil.copytree(moved.path, tmp_path / "copy")))
    with pytest.raises(StoreError, match="made for another"):
        copy.clear()
    with copy.in_use(fresh=True, note=print):
        assert not copy.manifest.exists()
    assert moved.manifest.exists()


def test_a_folder_whose_mark_was_never_finished_is_taken(tmp_path: Path) -> None:
    """As kill -9 in the first moment of a run leaves it; any other file there is somebody's."""
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / f".{MARK}.4711.partial").write_text("This fol")
    claim(folder, "run folder")
    other = tmp_path / "other"
    other.mkdir()
    (other / ".notes.4711.partial").write_text("mine")
    with pytest.raises(StoreError, match="holds something"):
        claim(other, "run folder")


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    """A run folder that was sent to you must not empty a file of yours."""
    folder = RunFolder(tmp_path / "run")
    folder.create()
    thesis = tmp_path / "thesis.tex"
    thesis.write_text("chapter 1")
    (folder.path / "lock").symlink_to(thesis)
    with pytest.raises(StoreError, match="cannot be written"), folder.in_use(fresh=False, note=print):
        pass
    assert thesis.read_text() == "chapter 1"

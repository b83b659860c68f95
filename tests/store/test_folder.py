"""A fresh start deletes all that adverse wrote, and nothing else; runs and campaigns share one kit."""

from __future__ import annotations

from pathlib import Path

import pytest

from adverse.analysis.results import analyze
from adverse.errors import LockedError, StoreError
from adverse.fuzz.folder import CampaignFolder
from adverse.report.page import write_report
from adverse.store.folder import RunFolder
from adverse.store.owned_folder import MARK, OwnedFolder
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
def test_a_folder_in_use_is_locked_and_remembers_hashes(tmp_path: Path, kind: type[OwnedFolder]) -> None:
    image = tmp_path / "image.png"
    image.write_bytes(b"pixels")
    notes: list[str] = []
    folder = kind(tmp_path / "out")
    with folder.in_use(fresh=False, note=notes.append) as hashes:
        hashes.of([image])
        hashes.remember()
        with pytest.raises(LockedError), kind(folder.path).in_use(fresh=True, note=notes.append):
            pass
    assert folder.file_hashes.exists()
    with folder.in_use(fresh=True, note=notes.append) as hashes:
        assert not hashes.remembered
    assert notes == []

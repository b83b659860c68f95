"""The folder of a campaign: what it refuses, what it never deletes, and bad input."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from adverse.errors import AdverseError, DataError, StoreError, StudyError
from adverse.fuzz.folder import CampaignFolder
from adverse.fuzz.outcome import read_outcome
from bad_input.command import adverse_here
from fuzz.whole_campaign import content, fuzz
from small_campaign import write_campaign


def test_a_campaign_that_counted_recipes_is_refused_with_the_reason(study: Path, tmp_path: Path) -> None:
    folder = fuzz(study, tmp_path / "run", tests=5).folder
    manifest = folder.read_manifest()
    folder.write_manifest({name: manifest[name] for name in manifest if name not in ("version", "digest")})
    for again in (lambda: read_outcome(folder), lambda: fuzz(study, folder.path, tests=5)):
        with pytest.raises(StoreError, match=r"another version of adverse.*a quota of distinct"):
            again()


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        ({"fuzz": {"mutations": ["add_cow"]}}, StudyError, "no semantic mutation 'add_cow'"),
        ({"fuzz": {"mutations": ["add_car", "add_car"]}}, StudyError, "listed twice"),
        ({"fuzz": {"options": {"shadows": True}}}, StudyError, "no fuzz option 'shadows'"),
        ({"fuzz": {"options": {"tries": "many"}}}, StudyError, "invalid value"),
        ({"fuzz": {"quota": {"add_car": 1}}}, StudyError, "quota is needed for each mutation"),
        (
            {"fuzz": {"mutations": ["add_car"], "quota": {"add_car": 0.0}}},
            StudyError,
            "quota must be a number above 0.*add_car: 0",
        ),
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


def test_a_folder_keeps_to_its_campaign(plain: Path, study: Path, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="another campaign"):
        fuzz(study, plain, seed=99)
    with pytest.raises(StoreError, match="guided or not"):
        fuzz(study, plain, guided=True)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("hello")
    with pytest.raises(StoreError, match="not a fuzz campaign"):
        fuzz(study, tmp_path / "mine")


def test_a_campaign_keeps_to_the_files_that_its_code_reads(tmp_path: Path) -> None:
    palette = tmp_path / "palette"
    palette.write_text("red")  # long before it is read: what is as new as its reader counts as changed
    study = write_campaign(tmp_path, frames=2)
    with (tmp_path / "plugin.py").open("a") as plugin:
        plugin.write(f"\nPALETTE = Path({str(palette)!r}).read_text()\n")
    fuzz(study, tmp_path / "run", tests=2)
    assert str(palette) in str(CampaignFolder(tmp_path / "run").read_manifest()["files_read"])
    palette.write_text("tan")
    with pytest.raises(StoreError, match="palette was changed"):
        fuzz(study, tmp_path / "run", tests=4)


def _edit_manifest(folder: Path) -> Path:
    path = folder / "manifest.json"
    path.write_text(path.read_text().replace('"threshold": 0.5', '"threshold": 0.4'))
    return path


def _cut_a_line(folder: Path) -> Path:
    path = folder / "log"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(
        b"".join(line for line in lines if b'"phase":"tests","id":"change_color-00000032"' not in line)
    )
    return path


def _edit_picture(folder: Path) -> Path:
    for path in (folder / "failures").rglob("image.png"):
        path.write_bytes(path.read_bytes()[:-1] + b"x")
    return Path("image.png")


@pytest.mark.parametrize("edit", [_edit_manifest, _cut_a_line, _edit_picture])
def test_an_edited_campaign_is_not_shown(plain: Path, tmp_path: Path, edit: Callable[[Path], Path]) -> None:
    folder = tmp_path / "run"
    shutil.copytree(plain, folder)
    path = edit(folder)
    said = adverse_here("fuzz", "report", folder)
    said.expect(2, str(path), "changed", "adverse fuzz")


def test_fresh_deletes_nothing_of_others(study: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    fuzz(study, out, tests=20)
    mine = [out / "notes.txt", out / "results" / "notes.csv", out / "failures" / "notes.txt"]
    for path in mine:
        path.write_text("mine")
    left = content(out)
    folder = CampaignFolder(out)
    folder.clear()
    assert [path.read_text() for path in mine] == ["mine"] * 3
    assert set(content(out)) == {"results/notes.csv", "failures/notes.txt"} < set(left)
    other = tmp_path / "other"
    (other / "results").mkdir(parents=True)
    (other / "manifest.json").write_text("{}")
    (other / "results" / "counts.csv").write_text("mine")
    with pytest.raises(StoreError, match="not marked"):
        CampaignFolder(other).clear()
    with pytest.raises(StoreError, match="not a fuzz campaign"):
        fuzz(study, other, tests=5)
    assert (other / "results" / "counts.csv").read_text() == "mine"

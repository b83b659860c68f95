"""A campaign keeps to its folder: what is edited, lost, changed or of others is told."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from adverse.content import ChangedError
from adverse.errors import StoreError
from adverse.fuzz.folder import CampaignFolder
from adverse.fuzz.outcome import read_outcome
from bad_input.command import adverse_here
from fuzz.campaigns import Quiet, content, fuzz, read_manifest
from small_campaign import write_campaign


def test_a_campaign_that_counted_recipes_is_refused_with_the_reason(study: Path, tmp_path: Path) -> None:
    folder = fuzz(study, tmp_path / "run", tests=5).folder
    manifest = folder.read_manifest()
    folder.write_manifest({name: manifest[name] for name in manifest if name not in ("version", "digest")})
    for again in (lambda: read_outcome(folder), lambda: fuzz(study, folder.path, tests=5)):
        with pytest.raises(StoreError, match=r"another version of adverse.*a quota of distinct"):
            again()


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
    study = write_campaign(tmp_path, frames=2)
    palette = tmp_path / "palette"
    palette.write_text("red")
    with (tmp_path / "plugin.py").open("a") as plugin:
        plugin.write(f"\nPALETTE = Path({str(palette)!r}).read_text()\n")
    fuzz(study, tmp_path / "run", tests=2)
    assert str(palette) in str(read_manifest(tmp_path / "run")["files_read"])
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

"""The commands as a user meets them: they teach, they print what scripts can read, they say how it went."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from adverse import mutations
from adverse.data.images import ImageFile, write_image
from adverse.study import demo as demos
from bad_input.command import adverse_here
from small_study import write_study

COMMANDS = (
    "data",
    "data check",
    "plan",
    "run",
    "analyze",
    "check",
    "compare",
    "bench-table",
    "drive",
    "predict",
    "verify",
    "view",
    "export",
    "list",
    "mutate",
    "check-plugin",
    "world",
    "models",
    "demo",
)
GOOD = """
import numpy as np
from adverse import mutation

@mutation
def invert(image):
    \"\"\"Turn light into dark.\"\"\"
    return 255 - image
"""


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "in.png"
    write_image(path, np.random.default_rng(1).integers(0, 256, (20, 30, 3), np.uint8))
    return path


def test_the_first_help_shows_every_command() -> None:
    said = adverse_here("--help")
    assert said.code == 0
    assert all(command in said.text for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_teaches_by_example(command: str) -> None:
    said = adverse_here(*command.split(), "--help")
    assert said.code == 0
    assert f"adverse {command}" in said.text


@pytest.mark.parametrize("kind", ["mutations", "batteries", "suts", "datasets", "levels"])
def test_lists_for_people_and_for_scripts(kind: str) -> None:
    entries = json.loads(adverse_here("list", kind, "--json").text)
    assert entries
    assert all(entry["name"] and entry["summary"] for entry in entries)
    text = adverse_here("list", kind).text
    assert all(entry["name"].rpartition(".")[2] in text for entry in entries), "c. and t. are named once"
    assert len(text.splitlines()) <= 30
    assert max(map(len, text.splitlines())) <= 80
    name = entries[0]["name"]
    one = adverse_here("list", kind, name).text
    assert one.startswith(f"{name}\n    {entries[0]['summary']}")
    adverse_here("list", kind, f"{name}x").expect(2, f"Did you mean {name!r}")


def test_mutate_gives_the_pixels_of_the_library(picture: Path, tmp_path: Path) -> None:
    name = "salt_pepper(fraction=0.2)"
    assert adverse_here("mutate", picture, tmp_path / "out.png", "--mutation", name, "--seed", "3").code == 0
    wanted = mutations.apply(ImageFile(picture)(), name, seed=3, key="in")
    np.testing.assert_array_equal(ImageFile(tmp_path / "out.png")(), wanted)


def test_mutate_takes_depth(picture: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "in.npy", np.full((20, 30), np.inf, np.float32))
    args = ("--mutation", "haze(visibility_m=100)", "--depth", tmp_path / "in.npy")
    assert adverse_here("mutate", picture, tmp_path / "out.png", *args).code == 0
    assert (ImageFile(tmp_path / "out.png")() == (205, 208, 211)).all()


def test_a_sheet_shows_a_battery(picture: Path, tmp_path: Path) -> None:
    assert adverse_here("mutate", picture, "--sheet", tmp_path / "sheet.png", "-m", "first-look").code == 0
    drawn = ImageFile(tmp_path / "sheet.png")()
    assert drawn.shape[0] > 4 * 20
    assert adverse_here("mutate", picture).code == 2


def test_check_plugin_passes_a_good_one_and_fails_a_bad_one(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.write_text(GOOD)
    bad.write_text(
        GOOD.replace("return 255 - image", "image[:] = 0; return image").replace("invert", "spoil")
    )
    assert adverse_here("check-plugin", good).code == 0
    said = adverse_here("check-plugin", bad)
    assert said.code == 1
    assert "FAIL the input stays untouched" in said.text


def test_a_study_from_plan_to_verify(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = write_study(tmp_path, frames=3, logs=2, size=(64, 48), sleep_s=0)
    run = tmp_path / "run"
    plan = adverse_here("plan", study, "--out", run, "--workers", "2")
    assert plan.code == 0
    assert "48 images to judge, 0 done, 48 to do" in plan.text
    assert "for the images with 2 workers (by a timed sample of" in plan.text
    facts = json.loads(adverse_here("plan", study, "--out", run, "--json", "--no-estimate").text)
    assert facts["images"] == {"planned": 48, "done": 0, "to_do": 48}
    assert facts["seconds"] is None
    monkeypatch.setattr("adverse.study.run.WORTH_TIMING", 48)
    ran = adverse_here("run", study, "--out", run, "--workers", "0")
    assert ran.code == 0, ran.text
    estimate = ran.text.index("for the images with 1 worker (by a timed sample of")
    assert estimate < ran.text.index("- 48/48 images done")
    assert "clean" in ran.text
    lines = [line for line in ran.text.splitlines() if not line.endswith("s so far")]  # on a busy machine
    assert len(lines) <= 30, ran.text
    tables = adverse_here("analyze", run, "--tables").text
    assert "clean" in tables
    assert "identity" not in tables
    rows = json.loads((run / "results" / "summary.json").read_text())["rows"]
    assert {"sut", "level", "setting", "group", "area", "robustness", "status"} <= rows[0].keys()
    before = (run / "results" / "summary.json").read_bytes()
    told = json.loads(adverse_here("analyze", run, "--json").text)
    assert told["exit_code"] == 0
    assert (told["results"], told["report"]) == (
        str(run / "results" / "summary.json"),
        str(run / "report.html"),
    )
    assert json.loads(adverse_here("run", study, "--out", run, "--json").text) == told
    page = json.loads(adverse_here("report", run, "--json").text)
    assert str(run / "report.html") in page.values()
    quiet = adverse_here("analyze", run, "--quiet")
    assert (quiet.code, quiet.text) == (0, "")
    assert (run / "results" / "summary.json").read_bytes() == before
    for command in ("verify", "report"):
        said = adverse_here(command, run, "--quiet")
        assert (said.code, said.text) == (0, "")
    checked = json.loads(adverse_here("verify", run, "--json").text)
    assert checked["files"] > 5
    assert (checked["problems"], checked["finished"], checked["signed_with"]) == ([], True, None)
    (run / "results" / "troubles.parquet").write_bytes(b"")
    changed = adverse_here("verify", run, "--quiet")
    assert changed.code == 2
    assert changed.text.startswith("error: a file was changed")
    assert (
        "troubles.parquet" in json.loads(adverse_here("verify", run, "--json").text)["problems"][0]["where"]
    )
    assert "48 done, 0 to do" in adverse_here("plan", study, "--out", run).text


@pytest.fixture
def small_demos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both demos on a few small logs, under one mutation."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("os.cpu_count", lambda: 1)  # render here, too
    monkeypatch.setattr(demos, "SIZE", (96, 72))
    for name, models in (("QUICK", ("anchor",)), ("FULL", ("anchor", "centre"))):
        small = {"logs": {"validation": 1, "test": 2}, "mutations": ("haze(visibility_m=97.8)",)}
        monkeypatch.setattr(demos, name, replace(getattr(demos, name), models=models, **small))


@pytest.mark.parametrize("full", [[], ["--full"]])
@pytest.mark.usefixtures("small_demos")
def test_the_demo_runs(tmp_path: Path, full: list[str]) -> None:
    folder = tmp_path / "demo"
    said = adverse_here("demo", "--out", folder, "--workers", "0", *full)
    assert said.code in (0, 3), said.text  # three logs support few figures
    assert "haze" in said.text
    assert "explore: adverse view" in said.text
    assert ("centre" in said.text) == bool(full)
    summary, page = (folder / "run" / name for name in ("results/summary.json", "report.html"))
    before, made = {path: path.read_bytes() for path in (summary, page)}, summary.stat().st_mtime_ns
    again = adverse_here("demo", "--out", folder, "--workers", "0", *full)
    assert again.code == said.code
    assert "already complete" in again.text
    assert {path: path.read_bytes() for path in before} == before
    assert summary.stat().st_mtime_ns == made
    if not full:
        quiet = adverse_here("demo", "--out", folder, "--workers", "0", "--quiet")
        assert (quiet.code, quiet.text) == (said.code, "")
        as_json = adverse_here("demo", "--out", folder, "--workers", "0", "--json")
        assert as_json.code == said.code
        facts = json.loads(as_json.text)
        assert (facts["report"], facts["exit_code"]) == (str(page), said.code)
        assert facts["counts"] == json.loads(before[summary])["counts"]
        other = adverse_here("demo", "--out", folder, "--full")
        assert other.code == 2
        assert "the folder holds another study" in other.text
        page.write_text("changed")
        assert adverse_here("demo", "--out", folder, "--workers", "0").code == said.code
        assert page.read_bytes() == before[page]
        os.utime(summary, (0, 0))  # older than our code, which might compute something else
        assert "already complete" not in adverse_here("demo", "--out", folder, "--workers", "0").text
        assert summary.read_bytes() == before[summary]

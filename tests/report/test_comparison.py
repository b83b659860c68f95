"""`adverse compare` as people meet it: in the terminal, as a page, as files, and by its exit code."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from typer.testing import CliRunner

from adverse.cli.app import app
from adverse.errors import AdverseError
from adverse.text import setting_text
from browsing import barriers
from html_reading import read


@pytest.fixture(scope="module")
def compared(run: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    folder = tmp_path_factory.mktemp("compared")
    files = [f"--{kind}={folder / f'c.{kind}'}" for kind in ("html", "csv", "json")]
    said = CliRunner().invoke(app, ["compare", str(run), str(run), "--sut", "keen=blind", *files])
    assert said.exit_code == 0, said.output
    return said.output, folder


def test_the_terminal_opens_with_the_answer(compared: tuple[str, Path]) -> None:
    text, _ = compared
    first = text.splitlines()[0]
    assert "got worse for certain" in first
    assert "keen -> blind" in text
    assert "Inconclusive: " in text
    assert max(map(len, text.splitlines()[2:])) <= 200
    written = sum(line.startswith("written") for line in text.splitlines())
    assert sum(-(-len(line) // 80) for line in text.splitlines()) - written <= 30


def test_every_number_of_the_page_is_in_its_twins(compared: tuple[str, Path]) -> None:
    _, folder = compared
    rows = json.loads((folder / "c.json").read_text())
    with (folder / "c.csv").open(newline="") as file:
        written = list(csv.DictReader(file))
    known = [None if row["before"] == "" else float(row["before"]) for row in written]
    assert known == [row["before"] for row in rows]
    page = read((folder / "c.html").read_text())
    cells = [line for table in page.all_tables for line in table[1:]]
    assert len(cells) == len(rows)
    for cell, row in zip(cells, rows, strict=True):
        assert [cell[1].replace(" ", "_"), cell[2]] == [row["level"], setting_text(row["setting"])]
        sides = ["-" if row[side] is None else f"{row[side]:.3f}" for side in ("before", "after")]
        change = "insufficient" if row["difference"] is None else f"{row['difference']:+.3f}"
        assert cell[3:6] == [*sides, change]
        if row["difference_low"] is not None:
            ends = f"{row['difference_low']:+.3f} to {row['difference_high']:+.3f}"
            assert cell[6].removeprefix("~") == ends


def test_the_page_opens_without_a_complaint_and_shuts_nobody_out(
    compared: tuple[str, Path], browser: Browser
) -> None:
    _, folder = compared
    page = browser.new_page(viewport={"width": 400, "height": 800})
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.goto((folder / "c.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    assert complaints == []
    assert barriers(page) == []
    page.close()


@pytest.mark.parametrize("pair", ["keen", "=dull", "keen="])
def test_a_pair_that_cannot_be_read_is_an_error(run: Path, pair: str) -> None:
    said = CliRunner().invoke(app, ["compare", str(run), str(run), "--sut", pair])
    assert isinstance(said.exception, AdverseError)
    assert said.exception.where == "--sut"

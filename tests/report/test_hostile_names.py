"""Names that try something: shown in the terminal, in pages and in files, and obeyed by none of them."""

from __future__ import annotations

import csv
import io
import json
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser
from rich.table import Table
from typer.testing import CliRunner

import adverse
from adverse.analysis.compare import compare
from adverse.analysis.results import read_summary
from adverse.cli.app import app
from adverse.cli.console import Console
from adverse.data.images import write_image
from adverse.errors import AdverseError
from adverse.report.comparison import comparison_lines, comparison_table, render_comparison, terminal_table
from adverse.report.page import page_tables, render
from adverse.report.pictures import Looker
from adverse.report.run_tables import level_tables
from adverse.report.verdicts import to_markdown, verdict_answers, verdict_table, verdict_tables
from adverse.requirements.verdicts import Outcome, Verdict, to_junit
from adverse.store.finished_run import finished
from adverse.text import HIDDEN
from adverse.types import Image
from html_reading import read

ESCAPE, BIDI = "\x1b[2J\x1b[31m", "\u202e"
HOSTILE = {
    "script": "<script>window.hit=1</script>",
    "quotes": "\"'><img src=x onerror=window.hit=1>",
    "formula": "=cmd()",
    "bidi": f"row{BIDI}3",
    "escape": f"a{ESCAPE}b",
    "markup": "[red]x[/red] :boom:",
    "lines": "one\ntwo",
    "long": "n" * 300,
}
IN_PATHS = {name: text.replace("/", "|")[:120] for name, text in HOSTILE.items()}
"""The same, as file names can be."""


class Faulty:
    """Fails on bright images with a message that tries everything."""

    classes = (HOSTILE["script"],)
    fingerprint = "faulty"

    def detect(self, images: Sequence[Image]) -> list[Any]:
        if images[0].max() > 200:
            raise ValueError("boom " + " ".join(HOSTILE.values()))
        return [([], []) for _ in images]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a run whose logs, class and faults all have hostile names."""
    folder = tmp_path_factory.mktemp("hostile")
    images: list[dict[str, Any]] = []
    for number, log in enumerate(IN_PATHS.values()):
        (folder / "data" / log).mkdir(parents=True)
        for frame in range(2):
            name = f"{log}/{frame}.png"
            write_image(folder / "data" / name, np.full((16, 16, 3), 250 if number % 2 else 20, np.uint8))
            images.append({"id": len(images) + 1, "file_name": name, "width": 16, "height": 16})
    truth = {
        "images": images,
        "annotations": [{"id": 1, "image_id": 3, "category_id": 1, "bbox": [1, 1, 8, 8]}],
        "categories": [{"id": n, "name": text} for n, text in enumerate(HOSTILE.values(), start=1)],
    }
    (folder / "data" / "truth.json").write_text(json.dumps(truth))
    study = {
        "name": "hostile",
        "data": {"format": "folder", "root": str(folder / "data")},
        "targets": [HOSTILE["script"]],
        "mutations": ["brightness(scale=0.9)"],
        "robustness": {"bootstrap": 20},
    }
    adverse.run(study, folder / "run", detectors={"faulty": Faulty()})
    return folder / "run"


def harmless(text: str) -> None:
    """Check that nothing in a terminal's text acts on it."""
    bad = {char for char in text if char != "\n" and unicodedata.category(char) in HIDDEN}
    assert not bad, bad


def printed(*things: Any) -> str:
    """Return what our console prints, on a terminal with colours."""
    sink = io.StringIO()
    console = Console(file=sink, width=100, force_terminal=True, color_system=None)
    for thing in things:
        console.print(thing)
    return sink.getvalue()


@pytest.mark.parametrize("name", HOSTILE)
def test_studies_and_suts_cannot_have_such_names(tmp_path: Path, name: str) -> None:
    for study, sut in ((HOSTILE[name], "fine"), ("fine", HOSTILE[name])):
        data = {"format": "folder", "root": str(tmp_path)}
        with pytest.raises(AdverseError):
            adverse.run({"name": study, "data": data}, tmp_path / "run", detectors={sut: Faulty()})


@pytest.mark.fault(52)
def test_analyze_check_and_compare_print_letters_only(run: Path, tmp_path: Path) -> None:
    rules = [{"measure": "faults", "at_most": 0, "name": text[:200]} for text in HOSTILE.values()]
    rules += [
        {"measure": "area", "level": "image", "setting": text, "at_least": 0} for text in HOSTILE.values()
    ]
    path = tmp_path / "rules.yaml"
    path.write_text(json.dumps({"rules": rules}))
    for words, code in (
        (["analyze", str(run)], 0),
        (["check", str(run), str(path)], 1),
        (["compare", str(run), str(run)], 0),
        (["report", str(run)], 0),
    ):
        said = CliRunner().invoke(app, words)
        assert said.exit_code == code, said.output
        harmless(said.output)
    shown = CliRunner(env={"COLUMNS": "400"}).invoke(app, ["check", str(run), str(path)]).output
    assert "[red]x[/red] :boom:" in shown
    assert "a\\x1b[2J\\x1b[31mb" in shown
    assert "one\\ntwo" in shown


def test_the_console_obeys_nothing_it_is_given() -> None:
    text = printed(*HOSTILE.values())
    harmless(text)
    assert "[red]x[/red] :boom:" in text
    table = Table(title=HOSTILE["escape"])
    table.add_column(HOSTILE["markup"])
    table.add_row(HOSTILE["bidi"])
    text = printed(table)
    harmless(text)
    assert "[red]x[/red]" in text


@pytest.mark.fault(52)
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_suts_in_every_table(run: Path, name: str) -> None:
    """SUTs cannot be called so, but other tools may write results that say so."""
    summary = read_summary(finished(run))
    rows = [{**row, "sut": HOSTILE[name], "setting": HOSTILE[name]} for row in summary.rows]
    hostile_summary = replace(summary, data={**summary.data, "rows": rows})
    harmless(printed(*(table.terminal(shares=True) for table in level_tables(hostile_summary))))
    verdict = Verdict(HOSTILE[name], HOSTILE[name], 1, 0, None, Outcome.FAIL, HOSTILE[name])
    harmless(printed(verdict_table(HOSTILE[name], [verdict]).terminal(details=True)))
    found = compare(run, run)
    changed = tuple(
        replace(one, before_sut=HOSTILE[name], setting=HOSTILE[name], outcome="regression")
        for one in found.changes
    )
    hostile = replace(found, changes=changed, notes=tuple(HOSTILE.values()))
    narrow = terminal_table(hostile)
    assert narrow is not None
    harmless(printed(narrow.terminal(details=True), *comparison_lines(hostile)))
    table = comparison_table(hostile)
    cells = [cell for row in csv.reader(io.StringIO(table.csv())) for cell in row]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "@", "\t"))]
    assert json.loads(table.json())[0]["before_sut"] == HOSTILE[name]
    page = render_comparison(hostile)
    assert "<script>window" not in page
    assert "<img" not in page
    harmless("".join(char for char in page if char != "\n"))


@pytest.mark.fault(52)
def test_pages_run_none_of_it(run: Path, browser: Browser, tmp_path: Path) -> None:
    store = finished(run)
    summary = read_summary(store)
    verdicts = {
        text: [Verdict(text, text, 1, 0, None, outcome, text) for outcome in Outcome]
        for text in HOSTILE.values()
    }
    assert all("\n" not in line for line in verdict_answers(verdicts))
    assert [table.data()[0]["name"] for table in verdict_tables(verdicts)] == list(HOSTILE.values())
    summary.data["study"] = HOSTILE["script"]
    vars(store)["run"] = replace(store.run, name=HOSTILE["script"])  # no study file could say it
    looker = Looker(store)
    pages = {
        "report": render(looker, summary, page_tables(looker, summary)),
        "compare": render_comparison(compare(run, run)),
    }
    for name, text in pages.items():
        path = tmp_path / f"{name}.html"
        path.write_text(text)
        tags = [tag for tag, _ in read(text).tags]
        assert tags.count("script") == 1
        assert "img" not in tags
        page = browser.new_page()
        page.goto(path.as_uri())
        assert page.evaluate("window.hit") is None
        page.close()


@pytest.mark.fault(52)
def test_files_for_ci_hold_it_as_text() -> None:
    verdicts = [Verdict(text, text, 1, 0, None, Outcome.FAIL, text) for text in HOSTILE.values()]
    harmless(to_junit(verdicts, suite=HOSTILE["escape"]))
    markdown = to_markdown(verdicts, title=HOSTILE["lines"])
    harmless(markdown)
    assert "<script>" not in markdown
    assert len(markdown.splitlines()) == 6 + len(verdicts)

"""The report says what the results say, runs nothing that it is not meant to, and survives any name."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from adverse.data.images import write_image
from adverse.report.galleries import EXPLORER_PORT
from adverse.report.page import hazards_of, write_report
from adverse.report.pictures import Looker
from adverse.store.read import Store
from adverse.text import setting_text
from html_reading import read

EXPLORER = f"http://127.0.0.1:{EXPLORER_PORT}/explore?"
HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def page(run: Path) -> str:
    return (run / "report.html").read_text()


def test_every_number_of_the_tables_is_that_of_the_results(run: Path, page: str) -> None:
    summary = json.loads((run / "results" / "summary.json").read_text())
    tables = read(page).tables
    for level in {row["level"] for row in summary["rows"]}:
        (table,) = (rows for caption, rows in tables.items() if caption.startswith(f"{level}:"))
        suts = table[0][1:]
        shown = {
            (sut, line[0]): value
            for line in table[1:]
            if len(line) > 1
            for sut, value in zip(suts, line[1:], strict=True)
        }
        rows = [row for row in summary["rows"] if row["level"] == level]
        wanted = {(row["sut"], setting_text(row["setting"])): row for row in rows}
        assert shown.keys() == wanted.keys()
        for key, row in wanted.items():
            text = row["status"] if row["area"] is None else f"{row['area']:.3f}"
            assert shown[key] == text, key


def test_the_table_of_adr_is_that_of_the_results(run: Path, page: str) -> None:
    rows = json.loads((run / "results" / "summary.json").read_text())["adr"]
    (table,) = (lines for caption, lines in read(page).tables.items() if caption.startswith("ADR:"))
    cells = {
        (sut, line[0]): text for line in table[1:] for sut, text in zip(table[0][1:], line[1:], strict=False)
    }
    assert {key: text for key, text in cells.items() if text} == {
        (row["sut"], setting_text(row["setting"])): f"{row['adr']:.3f}" for row in rows
    }
    survives = [row["share"] for row in rows if row["group"] != "baseline" and row["share"] is not None]
    assert all(f"{share:.1%} of its clean figure survives" in page for share in survives)


def test_the_twins_hold_every_digit(run: Path, page: str) -> None:
    summary = json.loads((run / "results" / "summary.json").read_text())
    text = (run / "report_tables" / "image_ROC_B.csv").read_text()
    written = list(csv.DictReader(io.StringIO(text)))
    wanted = [row for row in summary["rows"] if row["level"] == "image/ROC_B"]
    assert [float(row["area"]) for row in written] == [row["area"] for row in wanted]
    links = [attrs["href"] or "" for tag, attrs in read(page).tags if tag == "a" and "download" in attrs]
    inside = [base64.b64decode(link.partition("base64,")[2]).decode() for link in links if "text/csv" in link]
    assert any(list(csv.DictReader(io.StringIO(text))) == written for text in inside)


@pytest.mark.fault(52)
def test_only_our_script_and_style_may_run(page: str) -> None:
    reader = read(page)
    (policy,) = (attrs["content"] or "" for tag, attrs in reader.tags if attrs.get("http-equiv"))
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for tag in ("style", "script"):
        (text,) = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    for tag, attrs in reader.tags:
        assert tag not in ("iframe", "object", "embed", "link", "base", "form", "img")
        assert not any(name.startswith("on") for name in attrs)
        for name in ("href", "src"):
            if tag == "a" and (attrs.get(name) or "").startswith(EXPLORER):
                continue  # on this machine, and only when somebody follows it
            assert not (attrs.get(name) or "").startswith(("http", "//", "javascript"))
    assert len([tag for tag, _ in reader.tags if tag == "script"]) == 1


def test_hostile_names_are_shown_and_never_live(page: str) -> None:
    assert "\u202e" not in page
    assert "row\\u202e3" in page
    assert "<img" not in page
    assert HOSTILE not in page


def test_failures_and_mutations_are_pictures(page: str) -> None:
    reader = read(page)
    pictures = [attrs["href"] or "" for tag, attrs in reader.tags if tag == "image"]
    assert len(pictures) >= 2 + 3  # one failure, three settings
    assert all(one.startswith("data:image/jpeg;base64,") for one in pictures)
    assert "required false positives per image" in page


def test_a_run_whose_data_are_gone_still_has_a_report(run: Path, page: str) -> None:
    data = run.parent / "data"
    data.rename(run.parent / "elsewhere")
    try:
        path = write_report(run)
        text = path.read_text()
        assert "Pictures are left out" in text
        assert read(text).tables.keys() == read(page).tables.keys()
    finally:
        (run.parent / "elsewhere").rename(data)
        write_report(run)


def test_changed_images_are_not_shown_as_what_was_run(run: Path) -> None:
    images = {path: path.read_bytes() for path in (run.parent / "data").rglob("*.png")}
    told: list[str] = []
    try:
        for path in images:
            write_image(path, np.full((24, 32, 3), 90, np.uint8))
        text = write_report(run, tell=told.append).read_text()
        assert "changed after the run" in told[0]
        assert "Not pictured, because the images were changed after the run" in text
        assert not [attrs for tag, attrs in read(text).tags if tag == "image"]
    finally:
        for path, content in images.items():
            path.write_bytes(content)
        write_report(run)


def test_every_plot_has_a_table_beside_it(driven: Path) -> None:
    page = write_report(driven).read_text()
    loop = page.partition('<section id="loop">')[2].partition("</section>")[0]
    drawn = loop.count('role="img"')
    assert drawn >= 1
    tables = read(loop).all_tables
    assert len(tables) == drawn
    ends = [table for table in tables if table[0][0] == "mutation"]
    assert {"never stops", "lateness, m", "clearance, m"} <= set(ends[0][0])
    for table in tables[len(ends) :]:
        assert table[0][1:4] == ["time, s", "position, m", "speed, m/s"]
        times = [float(row[1]) for row in table[1:] if row[0] == "truth"]
        assert times == sorted(times)
        assert len(times) > 2
    curves = page.partition('<section id="curves">')[2].partition("</section>")[0]
    assert curves.count('role="img"') == curves.count("<summary>as a table</summary>") > 0


def test_the_hazards_of_a_plug_in_are_read_if_it_is_trusted_and_still_there(tmp_path: Path) -> None:
    study = tmp_path / "study.yaml"
    study.write_text(
        "name: wet\ndata: {format: folder, root: x}\nsuts: [{name: a, adapter: contrast-blobs}]\n"
        "targets: [person]\nplugins: [wet.py]\n"
    )
    (tmp_path / "wet.py").write_text(
        "from adverse import Hazard, mutation\n"
        "@mutation(hazards=(Hazard('object', 'wetness', 'more', 'the scene is wet'),))\n"
        "def wet(image):\n    'Copy.'\n    return image.copy()\n"
    )
    store = SimpleNamespace(
        folder=SimpleNamespace(study=study), run=SimpleNamespace(folder=tmp_path), groups={"wet": "mild"}
    )
    trusting = Looker(cast("Store", store), trust=True)
    assert [row.words for row in hazards_of(trusting).exercised] == ["the scene is wet"]
    assert hazards_of(Looker(cast("Store", store))).not_said == ("wet",)
    study.write_text(study.read_text().replace("wet.py", "gone.py"))
    assert hazards_of(Looker(cast("Store", store), trust=True)).not_said == ("wet",)

"""One table, five renderings: they agree cell by cell, and views of it keep what it holds."""

from __future__ import annotations

import csv
import io
import json
import math

import pytest
from rich.console import Console

from adverse.report.table import Cell, Column, Table
from html_reading import read

NAMES = ("plain", "=cmd()", "a|b <script>")
TABLE = Table(
    "areas",
    "Areas & shares",
    (Column("SUT", align="left"), Column("area", ".3f"), Column("tests"), Column("", drawn=True)),
    (
        (Cell(NAMES[0]), Cell(0.5, details=("0.40 to 0.60",)), Cell(12), Cell(drawing="<svg></svg>")),
        (Cell(NAMES[1]), Cell(1 / 3, share=0.25, marks="*"), Cell(7), Cell()),
        (Cell(NAMES[2]), Cell(None, note="not run"), Cell(-1), Cell()),
    ),
    groups={1: "mild", 2: ""},
)
TEXTS = [["plain", "0.500", "12"], ["=cmd()", "0.333*", "7"], ["a|b <script>", "-", "-1"]]


def in_terminal(table: Table, *, width: int = 80, **options: bool) -> list[list[str]]:
    sink = io.StringIO()
    Console(file=sink, width=width).print(table.terminal(**options))
    lines = [line.split("\u2502") for line in sink.getvalue().splitlines() if line.startswith("\u2502")]
    return [[cell.strip() for cell in line[1:-1]] for line in lines]


def test_five_renderings_agree_cell_by_cell() -> None:
    assert [row[:3] for row in TABLE.texts()] == TEXTS
    (rows,) = read(TABLE.html()).all_tables
    assert rows[0][:3] == ["SUT", "area", "tests"]
    assert [row[:3] for row in rows[1:] if len(row) > 1] == TEXTS
    assert [row for row in in_terminal(TABLE) if row[1]] == TEXTS
    lines = [line.strip("| ").split(" | ") for line in TABLE.markdown().splitlines()]
    assert lines[0] == ["SUT", "area", "tests"]
    assert lines[2:] == [
        ["plain", "0.500 (0.40 to 0.60)", "12"],
        ["=cmd()", "0.333\\*", "7"],
        ["a\\|b &lt;script&gt;", "-", "-1"],
    ]
    values: list[list[object]] = [[NAMES[0], 0.5, 12], [NAMES[1], 1 / 3, 7], [NAMES[2], None, -1]]
    assert [list(record.values()) for record in json.loads(TABLE.json())] == values
    head, *written = csv.reader(io.StringIO(TABLE.csv()))
    assert head == ["SUT", "area", "tests"]
    assert [[float(cell) if cell else None for cell in row[1:]] for row in written] == [
        row[1:] for row in values
    ]
    assert [row[0] for row in written] == ["plain", "'=cmd()", "a|b <script>"]


def test_a_page_shows_details_notes_shades_and_drawings() -> None:
    text = TABLE.html("wide")
    assert '<table class="wide">' in text
    assert "<caption>Areas &amp; shares</caption>" in text
    assert "<td>0.500<small>0.40 to 0.60</small></td>" in text
    assert '<td class="s2">0.333*</td>' in text
    assert '<td title="not run">-</td>' in text
    assert '<td class="drawn"><svg></svg></td>' in text
    assert text.count('scope="rowgroup"') == 1  # a group without words is only a line
    assert "<script>" not in text


def test_a_terminal_shows_shares_before_marks_and_details_below() -> None:
    assert ["=cmd()", "0.333  25%*", "7"] in in_terminal(TABLE, shares=True)
    assert ["", "0.40 to 0.60", ""] in in_terminal(TABLE, details=True)
    undefined = Table(
        "a", "", (Column("x", ".1f"), Column("y", ".1f")), ((Cell(1.0), Cell(2.0, share=math.nan)),)
    )
    assert in_terminal(undefined, shares=True) == [["1.0", "2.0    -"]]
    assert 'class="s' not in undefined.html()


def test_views_show_less_and_keep_the_records() -> None:
    assert TABLE.only("area", "SUT").texts()[0] == ["0.500", "plain"]
    assert TABLE.where("SUT", NAMES[1]).texts() == [TABLE.texts()[1]]
    assert TABLE.where("SUT", NAMES[1]).groups == {0: "mild"}
    stacked = TABLE.stacked("SUT and tests", "SUT", "tests")
    assert stacked.headings == ["SUT and tests", "area", ""]
    assert stacked.rows[0][0].details == ("12",)
    assert "0.40 to 0.60" not in TABLE.without_details("area").html()
    assert [table.headings for table in TABLE.abreast(2)] == [["SUT", "area", "tests"], ["SUT", ""]]
    assert TABLE.first(1, more="see the CSV").caption == "and 2 more: see the CSV"
    assert TABLE.first(3, more="") is TABLE
    for view in (
        TABLE.only("area"),
        TABLE.where("SUT", ""),
        stacked,
        TABLE.first(1, more=""),
        *TABLE.abreast(2),
    ):
        assert view.csv() == TABLE.csv()
        assert view.json() == TABLE.json()


@pytest.mark.parametrize("name", ["a\x1b[31mb", "row\u202e3", "one\ntwo", "[red]x[/red]"])
def test_no_name_acts_on_what_shows_it(name: str) -> None:
    cell = Cell(name, details=(name,), note=name)
    table = Table(name, name, (Column(name, align="left"), Column("b")), ((cell, cell),), groups={0: name})
    sink = io.StringIO()
    Console(file=sink, width=200, force_terminal=True, color_system=None).print(table.terminal(details=True))
    for text in (table.html(), table.markdown(), table.csv(), sink.getvalue()):
        assert not {char for char in text if not char.isprintable() and char != "\n"}
    assert len(table.markdown().splitlines()) == 3


def test_headings_break_between_words_where_the_terminal_is_narrow() -> None:
    names = [
        "yolov4-tiny",
        "ssd-mobilenet-v3",
        "mobilenet-ssd-voc",
        "keen at image/ROC_A",
        "person_detector_v2",
    ]
    columns = (Column("mutation", align="left"), *(Column(name, ".0%") for name in names))
    table = Table("", "", columns, ((Cell("gaussian blur 3 px"), *(Cell(0.5) for _ in names)),))

    sink = io.StringIO()
    Console(file=sink, width=80).print(table.terminal())
    heads = [line.split("\u2503")[1:-1] for line in sink.getvalue().splitlines() if line.startswith("\u2503")]
    assert [[cell.strip() for cell in column if cell.strip()] for column in zip(*heads, strict=True)] == [
        ["mutation"],
        ["yolov4-", "tiny"],
        ["ssd-", "mobilenet-", "v3"],
        ["mobilenet-", "ssd-voc"],
        ["keen at", "image/", "ROC_A"],
        ["person_", "detector_", "v2"],
    ]

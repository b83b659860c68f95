"""Charts are well-formed, name every line once, and cut lines where there is nothing to draw."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import numpy as np

from adverse.report.chart import Line, Mark, Panel, svg

SVG = "{http://www.w3.org/2000/svg}"


def test_every_line_is_named_in_its_colour_in_one_row() -> None:
    x = np.arange(4.0)
    lines = [Line("a <b>", x, x), Line("truth", x, 2 * x, dashed=True)]
    tree = ET.fromstring(
        svg("both & one", [Panel("speed", "time", lines, [Mark("stop", 3.0), Mark("near", 2.9)])])
    )
    names = list(tree.iter(f"{SVG}tspan"))
    assert [name.text for name in names] == ["\u2014 a <b>", "- - truth"]
    drawn = [line.get("stroke") for line in tree.iter(f"{SVG}polyline")]
    assert drawn == [name.get("fill") for name in names]
    marks = [text for text in tree.iter(f"{SVG}text") if text.text in ("stop", "near")]
    assert len({mark.get("y") for mark in marks}) == 2  # words that are close do not cover each other


def test_a_gap_cuts_the_line() -> None:
    y = np.array([1.0, 2.0, np.nan, 3.0, 4.0, 5.0])
    tree = ET.fromstring(svg("gap", [Panel("p", "x", [Line("a", np.arange(6.0), y)])]))
    assert [len((line.get("points") or "").split()) for line in tree.iter(f"{SVG}polyline")] == [2, 3]

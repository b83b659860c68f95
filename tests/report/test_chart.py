"""Charts are well-formed, carry their data, name every line once, and cut lines where nothing is known."""

from __future__ import annotations

import json
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from adverse.report.chart import (
    Axis,
    Band,
    Chart,
    Dots,
    Line,
    Mark,
    Panel,
    PanelSize,
    time_panel,
)
from adverse.report.interval_bar import interval_bar

SVG = "{http://www.w3.org/2000/svg}"


def test_every_line_is_named_in_its_colour_in_one_row() -> None:
    x = np.arange(4.0)
    lines = [Line("a <b>", x, x), Line("truth", x, 2 * x, dashes="6 4")]
    panel = time_panel("speed", "time", lines, [Mark("stop", 3.0), Mark("near", 2.9)])
    tree = ET.fromstring(Chart("both & one", [panel]).svg())
    names = list(tree.iter(f"{SVG}tspan"))
    assert [name.text for name in names] == ["\u2014 a <b>", "- - truth"]
    drawn = [line.get("stroke") for line in tree.iter(f"{SVG}polyline")]
    assert drawn == [name.get("fill") for name in names]
    marks = [text for text in tree.iter(f"{SVG}text") if text.text in ("stop", "near")]
    assert len({mark.get("y") for mark in marks}) == 2  # words that are close do not cover each other


def test_names_that_one_row_does_not_hold_stand_in_several_below_the_title() -> None:
    x = np.arange(2.0)
    names = [f"detector-{number:02}-of_the_new_kind" for number in range(12)]
    panel = Panel(
        "", Axis("", (0.0, 1.0), ()), Axis("", (0.0, 1.0), ()), [Line(name, x, x) for name in names]
    )
    tree = ET.fromstring(Chart("many", [panel, panel], legend_left=True).svg())
    rows = [text for text in tree.iter(f"{SVG}text") if text.find(f"{SVG}tspan") is not None]
    written = [[span.text or "" for span in row] for row in rows]
    assert [name[2:] for row in written for name in row] == names * 2
    assert all(6 * len("   ".join(row)) < panel.size.width for row in written), "none runs off the chart"
    moved = [float((group.get("transform") or "").split()[-1][:-1]) for group in tree.iter(f"{SVG}g")]
    tops = [float(row.get("y") or 0) for row in rows]
    assert moved[0] + min(tops) > 20 + 12, "nor over its title"
    assert moved[1] + min(tops) > moved[0] + panel.size.height, "nor over the panel above"
    assert float((tree.get("viewBox") or "").split()[-1]) == moved[1] + panel.size.height


def test_a_gap_cuts_the_line() -> None:
    y = np.array([1.0, 2.0, np.nan, 3.0, 5.0, 4.0])
    tree = ET.fromstring(Chart("gap", [time_panel("p", "x", [Line("a", np.arange(6.0), y)])]).svg())
    assert [len((line.get("points") or "").split()) for line in tree.iter(f"{SVG}polyline")] == [2, 3]


def test_the_svg_carries_its_data() -> None:
    level = np.geomspace(0.001, 1, 5)
    safety, efficiency = np.array([0.1, np.nan, 0.5, 0.75, 1 / 3]), np.linspace(1, 0, 5)
    share = Axis("safety", (0.0, 1.0), (0.0, 1.0))
    chart = Chart(
        "trade-off </metadata>",
        [
            Panel(
                "", Axis("efficiency", (0.0, 1.0), (0.0, 1.0)), share, [Line("SUT <a>", efficiency, safety)]
            ),
            Panel(
                "over sensitivity",
                Axis("sensitivity", (0.001, 1.0), (0.001, 1.0), log=True),
                share,
                [Line("SUT <a>", level, safety)],
                [Mark("chosen", 0.01)],
                [Dots("bins", [0.01], [0.5], [3.0], "#000")],
                [Band("band", [0.01, 0.1], [0.2, 0.3], [0.4, 0.5], "#000")],
            ),
        ],
    )
    tree = ET.fromstring(chart.svg())
    (metadata,) = tree.iter(f"{SVG}metadata")
    data = json.loads(metadata.text or "")
    line = data["SUT <a>"]
    assert line["safety"] == [0.1, None, 0.5, 0.75, 0.333333]
    assert line["efficiency"] == efficiency.tolist()
    assert line["sensitivity"] == pytest.approx(level, rel=1e-5)
    assert data["chosen"] == {"sensitivity": [0.01]}
    assert data["bins"] == {"sensitivity": [0.01], "safety": [0.5]}
    assert data["band"] == {
        "sensitivity": [0.01, 0.1],
        "safety, low": [0.2, 0.3],
        "safety, high": [0.4, 0.5],
    }


def test_a_point_is_where_its_axes_say() -> None:
    panel = time_panel("p", "x", [Line("a", [0.0, 10.0], [0.0, 4.0])])
    size = panel.size
    assert panel.place(0.0, 0.0).tolist() == [size.left, size.height - size.bottom]
    assert panel.place(panel.x.ends[1], panel.y.ends[1]).tolist() == [size.width - size.right, size.top]
    log = Axis("sensitivity", (0.01, 100.0), (0.01, 100.0), log=True)
    assert log.part([0.01, 1.0, 100.0]).tolist() == [0.0, 0.5, 1.0]


def test_a_bar_has_its_ends_in_order() -> None:
    tree = ET.fromstring(interval_bar(-0.5, 0.0, 0.5, span=(-1.0, 1.0), lines=(0.0,), dashed=(0.25,)))
    assert [tree.get(f"data-{name}") for name in ("low", "value", "high")] == ["-0.5", "0", "0.5"]
    zero, margin, reach = tree.iter(f"{SVG}line")
    (dot,) = tree.iter(f"{SVG}circle")
    assert zero.get("x1") == dot.get("cx")
    assert float(reach.get("x1") or 0) < float(dot.get("cx") or 0) < float(margin.get("x1") or 0)


def test_infinite_values_have_a_place_with_a_word_and_names_stand_at_ticks() -> None:
    x = Axis("lateness, m", (0.0, 4.0), (0.0, 3.0), infinite="never stops")
    y = Axis("", (0.0, 1.0), (0.5,), names=("fog & rain",))
    panel = Panel("late", x, y, [Line("reach", [1.0, np.inf], [0.5, 0.5])])
    chart = Chart("late", [panel, panel], across=2)
    tree = ET.fromstring(chart.svg())
    texts = {text.text: text for text in tree.iter(f"{SVG}text")}
    assert {"never stops", "fog & rain", "0", "3"} <= set(texts)
    line = next(tree.iter(f"{SVG}polyline")).get("points") or ""
    assert line.split()[1].partition(",")[0] == texts["never stops"].get("x")
    assert chart.data()["reach"]["lateness, m"] == [1.0, None]  # no number is made up


def test_panels_may_differ_in_width() -> None:
    axis = Axis("x", (0.0, 1.0), ())
    panels = [Panel("", axis, axis, [], size=PanelSize(width=width)) for width in (300, 100, 200)]
    tree = ET.fromstring(Chart("c", panels, across=3).svg())
    assert (tree.get("viewBox") or "").split()[2] == "600"
    moved = [group.get("transform") for group in tree.iter(f"{SVG}g")]
    assert [(words or "").split()[0] for words in moved] == ["translate(0", "translate(300", "translate(400"]

"""Predictions of contextual mutations as charts: predicted against observed, and weights beside magnitudes.

As figures 7 and 8 of Pezzementi et al. 2018.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adverse.analysis.results import Summary
from adverse.report.chart import COLOURS, Axis, Band, Chart, Dots, Line, Panel, PanelSize, round_ticks
from adverse.report.table import Cell, Row, Table, columns, setting_cell
from adverse.store.read import Store
from adverse.text import setting_text, shown

SCATTER = PanelSize(330, 330, 52, 16, 26, 44)
WEIGHTS = PanelSize(300, 220, 52, 16, 26, 44)
ACROSS = 3
FONT_PX = 11
WEIGHT_COLOUR, PIXEL_COLOUR, EQUAL_COLOUR = "#0072b2", "#e69f00", "#888"
RADIUS_PX = 4.0
TOUCHING = 1e-6
"""What is as near to a round number needs no further tick."""
MAGNITUDES = {"sigma_px": "blur radius, pixels", "alpha": "alpha of the haze colour"}
SCORE = "ADR over the clean one"


@dataclass(frozen=True)
class PredictionFigure:
    """A chart about predictions, and what its colours mean."""

    heading: str
    svg: str
    legend: tuple[tuple[str, str], ...]
    numbers: Table
    across: int
    """Panels beside each other; the page makes room for three."""


def prediction_figures(store: Store, summary: Summary) -> Iterator[PredictionFigure]:
    """Yield predicted against observed for all families, then the weights of each family."""
    points = summary.data.get("predicted", ())
    if not points:
        return
    suts = list(dict.fromkeys(str(row["sut"]) for row in points))
    families = list(dict.fromkeys(str(row["contextual"]) for row in points))
    colours = {sut: COLOURS[number % len(COLOURS)] for number, sut in enumerate(suts)}
    panels = [_scatter([row for row in points if row["contextual"] == one], colours) for one in families]
    chart = Chart(
        "predicted against observed ADR", panels, across=len(panels), standing_alone=False, font_px=FONT_PX
    )
    legend = tuple((shown(sut), colour) for sut, colour in colours.items())
    numbers = _table(
        "predicted", "predicted against observed ADR", points, ("sut", "setting", "observed", "predicted")
    )
    yield PredictionFigure("Predicted against observed", chart.svg(), legend, numbers, len(panels))
    magnitudes = _magnitudes(store)
    for family in families:
        mine = [row for row in summary.data["prediction_weights"] if row["contextual"] == family]
        settings = list(dict.fromkeys(str(row["setting"]) for row in mine))
        drawn = [
            _weights([row for row in mine if row["setting"] == one], magnitudes.get(one, ()))
            for one in settings
        ]
        title = f"What predicts {family}, and what it comes to inside the true boxes"
        across = min(ACROSS, len(drawn))
        chart = Chart(title, drawn, across=across, standing_alone=False, font_px=FONT_PX)
        words = f"weight of each strength of {mine[0]['simple']}"
        yield PredictionFigure(
            title,
            chart.svg(),
            ((words, WEIGHT_COLOUR), ("share of the pixels inside true boxes", PIXEL_COLOUR)),
            _table(f"weights {family}", title, mine, ("setting", "from", "strength", "weight")),
            across,
        )


def _scatter(points: Sequence[Row], colours: Mapping[str, str]) -> Panel:
    most = max(1.0, *(row[name] for row in points for name in ("observed", "predicted")))
    ticks = tuple(round_ticks(0.0, most - TOUCHING))
    ends = (0.0, ticks[-1])
    first = points[0]
    dots = []
    for sut, colour in colours.items():
        mine = [row for row in points if row["sut"] == sut]
        observed, predicted = ([row[name] for row in mine] for name in ("observed", "predicted"))
        dots.append(Dots(shown(sut), observed, predicted, np.full(len(mine), RADIUS_PX), colour))
    equal = Line("equal", ends, ends, EQUAL_COLOUR, "4 4", 1.0)
    title = f"{first['contextual']} from {first['simple']}"
    axes = Axis(f"observed: {SCORE}", ends, ticks), Axis(f"predicted: {SCORE}", ends, ticks)
    return Panel(title, *axes, [equal], dots=dots, size=SCATTER)


def _weights(weights: Sequence[Row], histogram: Sequence[Mapping[str, Any]]) -> Panel:
    """Return the weights as upright lines at their strengths, over the histogram of what really applies."""
    strengths = [row["strength"] for row in weights]
    values = [row["weight"] for row in weights]
    edges = [float(row["from"]) for row in histogram] + [float(row["to"]) for row in histogram[-1:]]
    shares = [float(row["share"]) for row in histogram]
    x = round_ticks(0.0, max(*strengths, *edges) - TOUCHING)
    y = round_ticks(0.0, max(*values, *shares) - TOUCHING)
    label = MAGNITUDES.get(str(histogram[0]["magnitude"]), "") if histogram else ""
    stems = Line(
        "weight",
        [end for at in strengths for end in (at, at, math.nan)],
        [end for value in values for end in (0.0, value, math.nan)],
        WEIGHT_COLOUR,
        width=4,
    )
    heads = Dots("weight", strengths, values, np.full(len(values), RADIUS_PX), WEIGHT_COLOUR)
    bands: list[Band] = []
    outline: list[Line] = []
    if histogram:
        across, up = np.repeat(edges, 2)[1:-1], np.repeat(shares, 2)
        bands.append(Band("share of pixels", across, np.zeros_like(up), up, PIXEL_COLOUR))
        outline = [Line("share of pixels", across, up, PIXEL_COLOUR, width=1.2)]
    margin = 0.03 * x[-1]
    axes = Axis(label or "strength", (-margin, x[-1] + margin), tuple(x)), Axis("", (0.0, y[-1]), tuple(y))
    title = setting_text(weights[0]["setting"], longest=44)
    return Panel(title, *axes, [*outline, stems], dots=[heads], bands=bands, size=WEIGHTS)


def _table(name: str, title: str, records: Sequence[Row], headings: Sequence[str]) -> Table:
    rows = tuple(
        tuple(
            setting_cell(row[name]) if name in ("setting", "from") else Cell(row[name]) for name in headings
        )
        for row in records
    )
    return Table(name, title, columns(*headings, format=".3f", left=2), rows, tuple(records))


def _magnitudes(store: Store) -> dict[str, list[dict[str, str]]]:
    """Return the histogram of each contextual setting, as the results hold it."""
    path = store.result("magnitudes.csv")
    found: dict[str, list[dict[str, str]]] = {}
    if path is not None:
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                found.setdefault(row["setting"], []).append(row)
    return found

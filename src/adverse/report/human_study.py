"""The page of a human study: its thresholds in words, as a table, and as pictures.

Thresholds of a human study in words and as a table.

The picture of a threshold: the bins, the spline with its band, the test, and what follows from them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

from rich.table import Table as RichTable
from rich.text import Text

from adverse.humans.answers import Judgments
from adverse.humans.estimate import Estimate, Options
from adverse.humans.estimates_file import Reuse, counts_in_words
from adverse.humans.thresholds import FOUND, INSUFFICIENT, Kind
from adverse.report.chart import BLANK
from adverse.report.layout import rendered
from adverse.report.tables import Cell, Table
from adverse.text import shown

WORSE: dict[Kind, str] = {
    "correctness": "less often right than on the originals",
    "prediction": "less often of the opinion that most had on the original than for barely changed images",
}


def in_words(found: Estimate) -> str:
    """Say what was found, so that it can stand in a document.

    >>> in_words(Estimate("haze", "correctness", "insufficient", "vif", "2 bins with more than 10 answers"))
    't_c of haze: cannot be told; 2 bins with more than 10 answers'
    """
    head = f"{found.symbol} of {shown(found.transformation)}"
    if found.status == INSUFFICIENT:
        return f"{head}: cannot be told; {found.why}"
    compared = f"({found.base:.1%} of {found.base_answers} answers)"
    if found.tied:
        compared += f", {found.tied} answers left out because people are tied on the original"
    if found.status != FOUND:
        return (
            f"{head}: tolerated up to a visual change of {found.tolerated_to:g} by {found.backend}, the last "
            "populated bin. "
            f"Nowhere are people significantly {WORSE[found.kind]} {compared}, so there is no number."
        )
    if found.interval is None:
        sure = f"No interval: {found.why.removeprefix('no interval: ')}."
    else:
        low, high = found.interval
        end = "beyond the data" if high is None else f"{high:g}"
        sure = f"{found.confidence:.0%} interval of where the drop begins: {low:g} to {end}."
        sure += f" Note: {found.why}." if found.why else ""
    return (
        f"{head} = {found.value:g} by {found.backend}: from that visual change on people are significantly "
        f"{WORSE[found.kind]} {compared}. {sure}"
    )


def threshold_table(estimates: Sequence[Estimate]) -> Table:
    """Return the thresholds as a table; its plain rows hold everything but the bins."""
    rows = [
        (
            Cell(shown(found.transformation)),
            Cell(found.symbol),
            Cell(_threshold(found)),
            Cell(_span(found)),
            Cell("-" if found.base is None else f"{found.base:.3f}"),
            Cell(str(found.answers)),
        )
        for found in estimates
    ]
    columns = ("transformation", "kind", "threshold", "drop begins", "base rate", "answers")
    return Table(
        "thresholds",
        "What people tolerate",
        columns,
        tuple(rows),
        tuple(_plain(found) for found in estimates),
    )


def rich_table(estimates: Sequence[Estimate]) -> RichTable:
    """Return the table for the terminal."""
    table = threshold_table(estimates)
    made = RichTable(title=table.title)
    for number, column in enumerate(table.columns):
        made.add_column(column, overflow="fold", justify="left" if number == 0 else "right")
    for row in table.rows:
        made.add_row(*(Text(entry.text) for entry in row))
    return made


def _threshold(found: Estimate) -> str:
    if found.value is not None:
        return f"{found.value:.2f}"
    return found.status if found.tolerated_to is None else f"none up to {found.tolerated_to:.2f}"


def _span(found: Estimate) -> str:
    if found.interval is None:
        return "-"
    low, high = found.interval
    return f"{low:.2f} or later" if high is None else f"{low:.2f} to {high:.2f}"


def _plain(found: Estimate) -> dict[str, Any]:
    row = found.plain()
    del row["bins"]
    for name in ("interval", "spread"):
        row[f"{name}_low"], row[f"{name}_high"] = row.pop(name) or (None, None)
    return row


WIDTH, HEIGHT = 760, 340
LEFT, RIGHT, TOP, BOTTOM = 58, 16, 58, 46
SPLINE, DROP, BASE, PLAIN = "#0072b2", "#d55e00", "#444444", "#8a8a8a"
"""Okabe and Ito's blue and vermillion, which colour-blind people can tell apart."""
LARGEST_PX, SMALLEST_PX = 6.0, 1.5
TICKS = tuple(k / 10 for k in range(11))


def threshold_svg(found: Estimate, alpha: float) -> str:
    """Draw one threshold: dots are bins, their area the answers, orange where significantly worse."""
    title = f"{found.symbol} of {shown(found.transformation)}: {_outcome(found)}"
    shape = f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {shape} role="img" aria-label="{escape(title)}">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="20" font-size="15" font-weight="bold">{escape(title)}</text>',
        _legend(found),
        _axes(found),
    ]
    if found.bins and found.base is not None:
        parts += [_interval(found), _band(found), _base(found.base), _dots(found, alpha), _line(found)]
        parts.append(_human_curves_threshold(found))
    return "".join([*parts, "</svg>\n"])


def _outcome(found: Estimate) -> str:
    if found.value is not None:
        return f"{found.value:g}"
    if found.tolerated_to is not None:
        return f"no drop up to {found.tolerated_to:g}"
    return "too few answers"


def _x(dv: float) -> float:
    return LEFT + dv * (WIDTH - LEFT - RIGHT)


def _y(rate: float) -> float:
    return HEIGHT - BOTTOM - min(max(rate, 0.0), 1.0) * (HEIGHT - TOP - BOTTOM)


def _axes(found: Estimate) -> str:
    parts = []
    for tick in TICKS:
        x, y = _x(tick), _y(tick)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e4e4e4"/>')
        if round(tick * 10) % 2 == 0:
            parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{tick:g}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    what = "share right" if found.kind == "correctness" else "share as before"
    parts.append(f'<text x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">visual change</text>')
    spot = f'transform="translate(14 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)"'
    parts.append(f'<text {spot} text-anchor="middle">{what}</text>')
    return "".join(parts)


def _legend(found: Estimate) -> str:
    base = "originals" if found.kind == "correctness" else "barely changed images"
    entries = [
        (SPLINE, "\u2014 spline and its band"),
        (PLAIN, "\u25cf bin"),
        (DROP, "\u25cf significantly worse"),
        (BASE, f"- - {base}"),
    ]
    if found.interval is not None:
        entries.append((DROP, f"\u2592 where the drop begins ({found.confidence:.0%})"))
    spans = (f'<tspan fill="{colour}">{escape(words)}</tspan>' for colour, words in entries)
    return f'<text x="{LEFT}" y="42">{(3 * BLANK).join(spans)}</text>'


def _interval(found: Estimate) -> str:
    if found.interval is None:
        return ""
    low, high = found.interval
    end = _x(1.0 if high is None else high)
    box = f'x="{_x(low):.1f}" width="{end - _x(low):.1f}" y="{TOP}" height="{HEIGHT - TOP - BOTTOM}"'
    return f'<rect {box} fill="{DROP}" fill-opacity="0.13"/>'


def _band(found: Estimate) -> str:
    told = [(_middle(b.low, b.high), b.band) for b in found.bins if b.band is not None]
    if not told:
        return ""
    there = [(x, band[1]) for x, band in told]
    back = [(x, band[0]) for x, band in reversed(told)]
    return f'<polygon points="{_points(there + back)}" fill="{SPLINE}" fill-opacity="0.18"/>'


def _base(rate: float) -> str:
    ends = f'x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{_y(rate):.1f}" y2="{_y(rate):.1f}"'
    return f'<line {ends} stroke="{BASE}" stroke-dasharray="6 4"/>'


def _dots(found: Estimate, alpha: float) -> str:
    most = max(b.answers for b in found.bins)
    return "".join(
        f'<circle cx="{_x(_middle(b.low, b.high)):.1f}" cy="{_y(b.rate):.1f}" '
        f'r="{max(SMALLEST_PX, LARGEST_PX * math.sqrt(b.answers / most)):.1f}" '
        f'fill="{DROP if b.p < alpha else PLAIN}" fill-opacity="0.6"/>'
        for b in found.bins
    )


def _line(found: Estimate) -> str:
    points = _points([(_middle(b.low, b.high), b.fitted) for b in found.bins])
    return f'<polyline points="{points}" fill="none" stroke="{SPLINE}" stroke-width="2"/>'


def _human_curves_threshold(found: Estimate) -> str:
    if found.value is None:
        return ""
    x = _x(found.value)
    ends = f'x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"'
    line = f'<line {ends} stroke="{DROP}" stroke-width="2"/>'
    right = found.value < 0.85
    spot = f'x="{x + (5 if right else -5):.1f}" y="{HEIGHT - BOTTOM - 8}"'
    anchor = "start" if right else "end"
    return f'{line}<text {spot} text-anchor="{anchor}" fill="{DROP}">{found.symbol} = {found.value:g}</text>'


def _middle(low: float, high: float) -> float:
    return (low + high) / 2


def _points(places: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{_x(x):.1f},{_y(y):.1f}" for x, y in places)


def thresholds_page(
    judgments: Judgments, estimates: Sequence[Estimate], agreement: Sequence[Reuse], options: Options
) -> str:
    """Return one self-contained HTML page."""
    return rendered(
        "human_thresholds.html",
        counts=counts_in_words(judgments),
        words=[in_words(found) for found in estimates],
        table=threshold_table(estimates),
        figures=[threshold_svg(found, options.alpha) for found in estimates],
        reuse=[shown(found.words, longest=400) for found in agreement],
        alpha=options.alpha,
        consecutive=options.consecutive,
    )

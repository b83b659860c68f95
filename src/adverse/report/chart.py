"""A chart, written once: panels with axes, drawn as SVG that carries its data; no library in the browser.

Whoever draws beside a chart asks its panels where a point is (`Panel.place`), so that a marker never leaves
its line.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from adverse.text import shown

Array = NDArray[np.float64]
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9")
"""Okabe and Ito's, which colour-blind people can tell apart."""
BLANK = "\u00a0"
"""A space that is kept where others are run together."""
HEADING_PX = 34
LEGEND_PX = 20
LETTER_PX = 6.6
"""The width of a letter of a legend, on average."""
LABEL_PX, LABEL_AWAY_PX = 10, 7
INK, PAPER = "#1a1a1a", "white"


class PanelSize(NamedTuple):
    """The size of a panel, and what is left for words on each side, in pixels."""

    width: int = 760
    height: int = 220
    left: int = 58
    right: int = 26
    top: int = 26
    bottom: int = 34


@dataclass(frozen=True)
class Axis:
    """What is drawn along one side, from the first to the last of `ends`."""

    label: str
    ends: tuple[float, float]
    ticks: tuple[float, ...]
    log: bool = False
    names: tuple[str, ...] = ()
    """What is written at the ticks; their numbers if there are none."""
    striped: bool = False
    """Whether every second tick has a tint, half a unit to either side: rows that are told apart."""
    infinite: str = ""
    """If given, infinite values are drawn at the last end, under this word."""

    def words(self) -> list[tuple[float, str]]:
        """Return the ticks, and what is written at each."""
        named = list(zip(self.ticks, self.names or [f"{tick:g}" for tick in self.ticks], strict=True))
        return [*named, (math.inf, self.infinite)] if self.infinite else named

    def part(self, values: ArrayLike) -> Array:
        """Return where values are between the ends: 0 at the first, 1 at the last."""
        known, ends = np.asarray(values, np.float64), np.array(self.ends)
        if self.infinite:
            known = np.where(np.isposinf(known), ends[1], known)
        if self.log:
            known, ends = np.log10(known), np.log10(ends)
        return np.asarray((known - ends[0]) / (ends[1] - ends[0]))


@dataclass(frozen=True, eq=False)
class Line:
    """One line; gaps where a value is not finite."""

    name: str
    x: ArrayLike
    y: ArrayLike
    colour: str | None = None
    """None: by its place among the lines."""
    dashes: str = ""
    width: float = 1.8
    symbols: tuple[int | None, ...] = ()
    """Points that carry a circle, a square and a triangle, in this order; None: no such point."""
    opacity: float = 1.0
    marked: bool = False
    """Whether every point has a circle: where it was measured, not only drawn through."""


@dataclass(frozen=True, eq=False)
class Dots:
    """Points, each with its radius in pixels; or, of one size, with a symbol that tells them from others."""

    name: str
    x: ArrayLike
    y: ArrayLike
    radius: ArrayLike
    colour: str
    symbol: int | None = None
    """0: a circle, 1: a square, 2: a triangle; None: a pale circle of its radius."""
    labels: tuple[str, ...] = ()
    """What is written beside each, if anything."""


@dataclass(frozen=True)
class Arrow:
    """A line from one point to another, with a head at its end."""

    start: tuple[float, float]
    end: tuple[float, float]
    colour: str


@dataclass(frozen=True, eq=False)
class Band:
    """What lies between two lines over the same x."""

    name: str
    x: ArrayLike
    low: ArrayLike
    high: ArrayLike
    colour: str


@dataclass(frozen=True)
class Bars:
    """Upright bars of one width around places on the x axis, each with its count above it."""

    name: str
    x: tuple[float, ...]
    y: tuple[int, ...]
    wide: float
    """On the x axis."""
    colour: str


@dataclass(frozen=True)
class Mark:
    """A vertical line at a place, with a word beside it."""

    name: str
    x: float
    colour: str = "#555"
    dashes: str = "2 3"
    side: Literal["left", "right"] = "left"
    above: bool = False
    """The word stands above the panel instead of at its foot, in the colour of all words."""
    parts: tuple[tuple[float, float], ...] = ()
    """From where to where on the other axis it is drawn; none: all along."""


@dataclass(frozen=True)
class Panel:
    """Lines, dots and bands over common axes, and marks."""

    title: str
    x: Axis
    y: Axis
    lines: Sequence[Line]
    marks: Sequence[Mark] = ()
    dots: Sequence[Dots] = ()
    bands: Sequence[Band] = ()
    size: PanelSize = field(default=PanelSize())
    arrows: Sequence[Arrow] = ()
    bars: Sequence[Bars] = ()

    def place(self, x: ArrayLike, y: ArrayLike) -> Array:
        """Return points in pixels of the panel, with x and y last."""
        size = self.size
        across, up = self.x.part(x), self.y.part(y)
        wide, high = size.width - size.left - size.right, size.height - size.top - size.bottom
        return np.stack([size.left + across * wide, size.height - size.bottom - up * high], axis=-1)

    def colour(self, number: int) -> str:
        """Return the colour of a line."""
        return self.lines[number].colour or COLOURS[number % len(COLOURS)]

    def body(self) -> str:
        """Return all that is drawn, without the names of the lines."""
        parts = [*self._axes()]
        parts += [_polygon(band.colour, self._around(band)) for band in self.bands]
        parts += [part for bars in self.bars for part in self._bars(bars)]
        parts += self._marks()
        symbols: list[str] = []
        for dots in self.dots:
            places = self.place(dots.x, dots.y)
            for (x, y), radius in zip(places, np.asarray(dots.radius), strict=True):
                if dots.symbol is not None:
                    symbols += [_symbol(dots.symbol, x, y, dots.colour)] if np.isfinite(x + y) else []
                    continue
                look = f'fill="{dots.colour}" fill-opacity="0.6"'
                parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" {look}/>')
        for number, line in enumerate(self.lines):
            parts += self._line(line, self.colour(number))
        parts += [self._arrow(arrow) for arrow in self.arrows]
        return "".join([*parts, *symbols, *self._labels()])

    def _labels(self) -> Iterator[str]:
        """Write beside dots what they are, moved down where another word stands."""
        words = [
            (float(x) + LABEL_AWAY_PX, float(y) + LABEL_PX / 3, label)
            for dots in self.dots
            for (x, y), label in zip(self.place(dots.x, dots.y), dots.labels, strict=False)
        ]
        written: list[tuple[float, float, float]] = []
        for x, y, label in sorted(words, key=lambda word: (word[1], word[0])):
            width, line = 0.6 * LABEL_PX * len(label), y
            while any(
                abs(line - below) < LABEL_PX and x < right and left < x + width
                for left, right, below in written
            ):
                line += 1
            written.append((x, x + width, line))
            yield f'<text x="{x:.1f}" y="{line:.1f}" font-size="{LABEL_PX}">{escape(label)}</text>'

    def legend(self, *, left: bool, wrapped: bool = True) -> str:
        """Name what is drawn above the panel, each in its colour; at the left in as many rows as it takes."""
        named: list[tuple[str, str, Line | Dots | Band | Bars]] = [
            *(
                (self.colour(number), "- - " if line.dashes else "\u2014 ", line)
                for number, line in enumerate(self.lines)
            ),
            *((dots.colour, "\u25cf ", dots) for dots in self.dots),
            *((band.colour, "\u2592 ", band) for band in self.bands),
            *((bars.colour, "\u25a0 ", bars) for bars in self.bars),
        ]
        spans = [
            f'<tspan fill="{colour}">{sample}{escape(series.name)}</tspan>'
            for colour, sample, series in named
            if series.name
        ]
        if not left:
            spot = f'x="{self.size.width - self.size.right}" y="16" text-anchor="end"'
            return f"<text {spot}>{(3 * BLANK).join(spans)}</text>"
        rows = self.legend_rows() if wrapped else [list(range(len(spans)))]
        foot = self.size.top - (22 if any(mark.above for mark in self.marks) else 16)
        return "".join(
            f'<text x="{self.size.left}" y="{foot - LEGEND_PX * (len(rows) - 1 - number)}">'
            f"{(3 * BLANK).join(spans[place] for place in row)}</text>"
            for number, row in enumerate(rows)
        )

    def legend_rows(self) -> list[list[int]]:
        """Return which names stand in which row above the panel, so that each row fits its width."""
        drawn: list[Line | Dots | Band | Bars] = [*self.lines, *self.dots, *self.bands, *self.bars]
        names = [f"- - {series.name}" for series in drawn if series.name]
        rows: list[list[int]] = [[]]
        room = float(self.size.width - self.size.left)
        left = room
        for place, name in enumerate(names):
            wide = LETTER_PX * (len(name) + 3)
            if rows[-1] and wide > left:
                rows.append([])
                left = room
            rows[-1].append(place)
            left -= wide
        return rows

    def series(self) -> Iterator[tuple[str, str, ArrayLike]]:
        """Yield all numbers behind the panel: of what, what they are, and the values."""
        x, y = self.x.label, self.y.label or self.title
        drawn: list[Line | Dots | Bars] = [*self.lines, *self.dots, *self.bars]
        for points in drawn:
            yield from ((points.name, x, points.x), (points.name, y, points.y))
        for band in self.bands:
            name = band.name or f"band of {y}"
            yield from ((name, x, band.x), (name, f"{y}, low", band.low), (name, f"{y}, high", band.high))
        for mark in self.marks:
            yield mark.name, x, [mark.x]
        if self.arrows:
            for name, at in (("from", "start"), ("to", "end")):
                yield f"arrows {name}", x, [getattr(arrow, at)[0] for arrow in self.arrows]
                yield f"arrows {name}", y, [getattr(arrow, at)[1] for arrow in self.arrows]

    def _axes(self) -> Iterator[str]:
        size = self.size
        right, bottom = size.width - size.right, size.height - size.bottom
        if self.title:
            yield f'<text x="{size.left}" y="16">{escape(self.title)}</text>'
        shape = f'width="{right - size.left}" height="{bottom - size.top}" fill="none"'
        yield f'<rect x="{size.left}" y="{size.top}" {shape} stroke="currentColor" stroke-opacity="0.25"/>'
        for tick in self.y.ticks[1::2] if self.y.striped else ():
            (_, low), (_, high) = self.place([self.x.ends[0]] * 2, [tick - 0.5, tick + 0.5])
            tint = 'fill="currentColor" fill-opacity="0.05"'
            band = f'x="{size.left}" y="{high:.1f}" width="{right - size.left}" height="{low - high:.1f}"'
            yield f"<rect {band} {tint}/>"
        for tick, words in self.y.words():
            _, y = self.place(self.x.ends[0], tick)
            ends = f'x1="{size.left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"'
            yield f'<line {ends} stroke="currentColor" stroke-opacity="0.12"/>'
            yield f'<text x="{size.left - 6}" y="{y + 4:.1f}" text-anchor="end">{escape(words)}</text>'
        for tick, words in self.x.words():
            x, _ = self.place(tick, self.y.ends[0])
            yield f'<text x="{x:.1f}" y="{bottom + 15}" text-anchor="middle">{escape(words)}</text>'
        middle = (size.left + right) / 2
        yield f'<text x="{middle}" y="{bottom + 31}" text-anchor="middle">{escape(self.x.label)}</text>'
        if self.y.label:
            turn = f'transform="translate(14 {(size.top + bottom) / 2}) rotate(-90)"'
            yield f'<text {turn} text-anchor="middle">{escape(self.y.label)}</text>'

    def _marks(self) -> Iterator[str]:
        size = self.size
        bottom = size.height - size.bottom
        for number, mark in enumerate(self.marks):
            x, _ = self.place(mark.x, self.y.ends[0])
            dash = f' stroke-dasharray="{mark.dashes}"' if mark.dashes else ' stroke-width="2"'
            for part in mark.parts or (self.y.ends,):
                low, high = (float(self.place(mark.x, end)[1]) for end in part)
                ends = f'x1="{x:.1f}" x2="{x:.1f}" y1="{high:.1f}" y2="{low:.1f}"'
                yield f'<line {ends} stroke="{mark.colour}"{dash}/>'
            away, anchor = (-4, "end") if mark.side == "left" else (4, "start")
            y = size.top - 5 if mark.above else bottom - 8 - 14 * number
            fill = "" if mark.above else f' fill="{mark.colour}"'
            spot = f'x="{x + away:.1f}" y="{y}" text-anchor="{anchor}"'
            yield f"<text {spot}{fill}>{escape(mark.name)}</text>"

    def _line(self, line: Line, colour: str) -> Iterator[str]:
        spots = self.place(line.x, line.y)
        finite = np.all(np.isfinite(spots), axis=1)
        dash = f' stroke-dasharray="{line.dashes}"' if line.dashes else ""
        for run in np.split(np.arange(len(spots)), np.flatnonzero(~finite)):
            kept = run[finite[run]]
            if len(kept):
                points = " ".join(f"{x:.1f},{y:.1f}" for x, y in _thinned(spots[kept]))
                stroke = f'stroke="{colour}" stroke-width="{line.width}"'
                stroke += f' stroke-opacity="{line.opacity}"' if line.opacity < 1 else ""
                yield f'<polyline points="{points}" fill="none" {stroke}{dash}/>'
        for x, y in spots[finite] if line.marked else ():
            yield _symbol(0, x, y, colour)
        for shape, k in enumerate(line.symbols):
            if k is not None and finite[k]:
                yield _symbol(shape, spots[k, 0], spots[k, 1], colour)

    def _bars(self, bars: Bars) -> Iterator[str]:
        for middle, count in zip(bars.x, bars.y, strict=True):
            low = self.y.ends[0]
            ends = [middle - bars.wide / 2, middle + bars.wide / 2]
            (left, foot), (right, top) = self.place(ends, [low, max(count, low)]).tolist()
            shape = f'width="{right - left:.1f}" height="{foot - top:.1f}"'
            yield f'<rect x="{left:.1f}" y="{top:.1f}" {shape} fill="{bars.colour}" fill-opacity="0.8"/>'
            spot = (
                f'x="{(left + right) / 2:.1f}" y="{top - 3:.1f}" font-size="{LABEL_PX}" text-anchor="middle"'
            )
            yield f"<text {spot}>{count}</text>"

    def _arrow(self, arrow: Arrow) -> str:
        start, end = self.place([arrow.start[0], arrow.end[0]], [arrow.start[1], arrow.end[1]])
        length = float(np.hypot(*(end - start)))
        if length < 1:
            return ""
        along = (end - start) / length
        across = np.array([-along[1], along[0]])
        corners = (end, end - 7 * along + 3.2 * across, end - 7 * along - 3.2 * across)
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
        ends = f'x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}"'
        return (
            f'<line {ends} stroke="{arrow.colour}" stroke-width="1.6"/>'
            f'<polygon points="{points}" fill="{arrow.colour}"/>'
        )

    def _around(self, band: Band) -> Array:
        return np.concatenate([self.place(band.x, band.high), self.place(band.x, band.low)[::-1]])


@dataclass(frozen=True)
class Chart:
    """Panels of one height with a title: below each other, or beside each other."""

    title: str
    panels: Sequence[Panel]
    across: int = 1
    standing_alone: bool = True
    """On paper of its own, with its title and the names of its lines; else the page around it has them."""
    font_px: int = 12
    legend_left: bool = False
    one_legend: bool = False
    """Whether the names of the first panel's lines, above all panels, stand for those of all."""

    def svg(self) -> str:
        """Return the chart as an SVG document, with its data inside."""
        size = self.panels[0].size
        top = HEADING_PX + LEGEND_PX * self.one_legend if self.standing_alone else 0
        rows = -(-len(self.panels) // self.across)
        lefts = np.cumsum([0, *(panel.size.width for panel in self.panels[: self.across])]).tolist()
        width = lefts[-1]
        above = self._legend_above()
        height = top + (size.height + above) * rows
        colour = INK if self.standing_alone else "currentColor"
        look = f'font-family="sans-serif" color="{INK}"' if self.standing_alone else ""
        shape = f'viewBox="0 0 {width} {height}" font-size="{self.font_px}" fill="{colour}" {look}'
        title = escape(shown(self.title, longest=None))
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" {shape} role="img" aria-label="{title}">',
            f"<metadata>{escape(json.dumps(self.data(), separators=(',', ':')), quote=False)}</metadata>",
        ]
        if self.standing_alone:
            parts.append(f'<rect width="{width}" height="{height}" fill="{PAPER}"/>')
            parts.append(f'<text x="{size.left}" y="20" font-size="15" font-weight="bold">{title}</text>')
            if self.one_legend:
                names = self.panels[0].legend(left=True, wrapped=False)
                parts.append(f'<g transform="translate(0 {HEADING_PX - size.top + LEGEND_PX})">{names}</g>')
        for number, panel in enumerate(self.panels):
            x = lefts[number % self.across]
            y = top + above + (size.height + above) * (number // self.across)
            named = self.standing_alone and not self.one_legend
            names = panel.legend(left=self.legend_left) if named else ""
            parts.append(f'<g transform="translate({x} {y})">{panel.body()}{names}</g>')
        return "\n".join([*parts, "</svg>\n"])

    def _legend_above(self) -> int:
        """Return the pixels above a panel for names that one row does not hold."""
        if not (self.standing_alone and self.legend_left) or self.one_legend:
            return 0
        return LEGEND_PX * max(len(panel.legend_rows()) - 1 for panel in self.panels)

    def _repr_svg_(self) -> str:
        """Show itself in a notebook."""
        return self.svg()

    def data(self) -> dict[str, dict[str, list[float | None]]]:
        """Return the numbers that are drawn, to six digits: for each line, the values along each axis."""
        data: dict[str, dict[str, list[float | None]]] = {}
        for panel in self.panels:
            for name, quantity, values in panel.series():
                columns = data.setdefault(name, {})
                written = [_six_digits(value) for value in np.asarray(values, np.float64).tolist()]
                if quantity not in columns:
                    columns[quantity] = written
                elif columns[quantity] != written:  # another panel has other points of the same line
                    columns[f"{quantity} ({panel.title})"] = written
        return data


def time_panel(
    title: str,
    x_label: str,
    lines: Sequence[Line],
    marks: Sequence[Mark] = (),
    *,
    width: int = PanelSize().width,
) -> Panel:
    """Return a panel whose axes hold all of its lines, with 0 on the upright one."""
    xs, ys = _finite(*(line.x for line in lines)), _finite(*(line.y for line in lines))
    x = round_ticks(float(xs.min()), float(xs.max()))
    y = round_ticks(min(0.0, float(ys.min())), float(ys.max()))
    axes = Axis(x_label, (x[0], x[-1]), tuple(x)), Axis("", (y[0], y[-1]), tuple(y))
    return Panel(title, *axes, lines, marks, size=PanelSize(width=width))


def _six_digits(value: float) -> float | None:
    return float(f"{value:.6g}") if np.isfinite(value) else None


def _finite(*columns: ArrayLike) -> Array:
    values = np.concatenate([np.asarray(column, np.float64).ravel() for column in columns])
    values = values[np.isfinite(values)]
    return values if len(values) else np.zeros(1)


def round_ticks(low: float, high: float) -> list[float]:
    """Return round numbers from at or below `low` to at or above `high`, about five of them."""
    span = max(high - low, 1e-9)
    step = 10.0 ** np.floor(np.log10(span / 4))
    step *= next(factor for factor in (1, 2, 5, 10) if span / (factor * step) <= 6)
    first, last = np.floor(low / step), np.ceil(high / step + 1e-9)
    return [float(round(step * k, 10)) for k in np.arange(first, max(last, first + 1) + 1)]


def _thinned(points: Array) -> list[tuple[float, float]]:
    """Drop points that lie, to a tenth of a pixel, on the line through their neighbours."""
    kept: list[tuple[float, float]] = []
    for x, y in points.round(1).tolist():
        if kept and kept[-1] == (x, y):
            continue
        if len(kept) > 1:
            (ax, ay), (bx, by) = kept[-2:]
            if abs((bx - ax) * (y - ay) - (by - ay) * (x - ax)) < 1e-6:
                kept.pop()
        kept.append((x, y))
    return kept


def _polygon(colour: str, corners: Array) -> str:
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners.tolist())
    return f'<polygon points="{points}" fill="{colour}" fill-opacity="0.15"/>'


def _symbol(shape: int, x: float, y: float, colour: str) -> str:
    look = f'fill="{colour}" stroke="white" stroke-width="0.8"'
    if shape == 0:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" {look}/>'
    if shape == 1:
        return f'<rect x="{x - 3.6:.1f}" y="{y - 3.6:.1f}" width="7.2" height="7.2" {look}/>'
    corners = f"{x:.1f},{y - 4.8:.1f} {x - 4.4:.1f},{y + 3.6:.1f} {x + 4.4:.1f},{y + 3.6:.1f}"
    return f'<polygon points="{corners}" {look}/>'

"""Line charts as SVG text: one file, no library in the browser, sharp at any size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import ArrayLike

WIDTH, HEIGHT = 760, 220
LEFT, RIGHT, TOP, BOTTOM = 58, 26, 26, 34
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9")
"""Okabe and Ito's, which colour-blind people can tell apart."""


BLANK = "\u00a0"
"""A space that is kept where others are run together."""


@dataclass(frozen=True)
class Line:
    """One line; gaps where a value is not finite."""

    name: str
    x: ArrayLike
    y: ArrayLike
    dashed: bool = False
    colour: str | None = None
    """None: by its place among the lines."""
    dashes: str = "6 4"
    """Of a dashed line."""


@dataclass(frozen=True)
class Mark:
    """A vertical line at a place, with a word."""

    name: str
    x: float


@dataclass(frozen=True)
class Panel:
    """One chart: lines over a common x, and marks."""

    title: str
    x_label: str
    lines: Sequence[Line]
    marks: Sequence[Mark] = ()


def svg(title: str, panels: Sequence[Panel]) -> str:
    """Return the charts below each other as one SVG document."""
    height = 34 + HEIGHT * len(panels)
    shape = f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {shape} role="img" aria-label="{escape(title)}">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="{LEFT}" y="20" font-size="15" font-weight="bold">{escape(title)}</text>',
    ]
    for number, panel in enumerate(panels):
        body = Chart(panel).body() + _legend(panel.lines)
        parts.append(f'<g transform="translate(0 {34 + HEIGHT * number})">{body}</g>')
    return "\n".join([*parts, "</svg>\n"])


class Chart:
    """A panel with its axes: draws it, and says where on it a point is, so that others can draw there too."""

    def __init__(self, panel: Panel, *, width: int = WIDTH) -> None:
        self.panel = panel
        self.width = width
        xs = _finite(*(line.x for line in panel.lines))
        ys = _finite(*(line.y for line in panel.lines))
        self.x_ticks = _ticks(float(xs.min()), float(xs.max()))
        self.y_ticks = _ticks(min(0.0, float(ys.min())), float(ys.max()))

    def place(self, x: float, y: float) -> tuple[float, float]:
        """Return a point in pixels of the chart."""
        across = (x - self.x_ticks[0]) / (self.x_ticks[-1] - self.x_ticks[0])
        up = (y - self.y_ticks[0]) / (self.y_ticks[-1] - self.y_ticks[0])
        return LEFT + across * (self.width - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    def body(self) -> str:
        """Return axes, marks and lines, without names of the lines."""
        panel, right = self.panel, self.width - RIGHT
        parts = [f'<text x="{LEFT}" y="16">{escape(panel.title)}</text>']
        for tick in self.y_ticks:
            _, y = self.place(self.x_ticks[0], tick)
            parts.append(f'<line x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
            parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
        for tick in self.x_ticks:
            x, _ = self.place(tick, self.y_ticks[0])
            parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 15}" text-anchor="middle">{tick:g}</text>')
        middle = (LEFT + right) / 2
        parts.append(
            f'<text x="{middle}" y="{HEIGHT - 3}" text-anchor="middle">{escape(panel.x_label)}</text>'
        )
        for number, mark in enumerate(panel.marks):
            x, _ = self.place(mark.x, self.y_ticks[0])
            ends = f'x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"'
            parts.append(f'<line {ends} stroke="#888" stroke-dasharray="2 3"/>')
            spot = f'x="{x - 4:.1f}" y="{HEIGHT - BOTTOM - 8 - 14 * number}" text-anchor="end"'
            parts.append(f'<text {spot} fill="#555">{escape(mark.name)}</text>')
        for number, line in enumerate(panel.lines):
            stroke = f'stroke="{line.colour or COLOURS[number % len(COLOURS)]}" stroke-width="1.8"'
            stroke += f' stroke-dasharray="{line.dashes}"' if line.dashed else ""
            for run in _runs(line):
                points = " ".join("{:.1f},{:.1f}".format(*self.place(x, y)) for x, y in run)
                parts.append(f'<polyline points="{points}" fill="none" {stroke}/>')
        return "".join(parts)


def _legend(lines: Sequence[Line]) -> str:
    """Name the lines in one row above the chart, each in its colour."""
    names = []
    for number, line in enumerate(lines):
        sample = "- - " if line.dashed else "\u2014 "
        colour = line.colour or COLOURS[number % len(COLOURS)]
        names.append(f'<tspan fill="{colour}">{sample}{escape(line.name)}</tspan>')
    return f'<text x="{WIDTH - RIGHT}" y="16" text-anchor="end">{(3 * BLANK).join(names)}</text>'


def _finite(*columns: ArrayLike) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    values = np.concatenate([np.asarray(column, np.float64).ravel() for column in columns])
    values = values[np.isfinite(values)]
    return values if len(values) else np.zeros(1)


def _ticks(low: float, high: float) -> list[float]:
    """Return round numbers from at or below `low` to at or above `high`, about five of them."""
    span = max(high - low, 1e-9)
    step = 10.0 ** np.floor(np.log10(span / 4))
    step *= next(factor for factor in (1, 2, 5, 10) if span / (factor * step) <= 6)
    first, last = np.floor(low / step), np.ceil(high / step + 1e-9)
    return [float(round(step * k, 10)) for k in np.arange(first, max(last, first + 1) + 1)]


def _runs(line: Line) -> list[list[tuple[float, float]]]:
    """Cut a line where a value is not finite."""
    runs: list[list[tuple[float, float]]] = [[]]
    for x, y in zip(np.asarray(line.x, np.float64), np.asarray(line.y, np.float64), strict=True):
        if np.isfinite(x) and np.isfinite(y):
            runs[-1].append((float(x), float(y)))
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]

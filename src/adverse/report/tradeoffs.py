"""Which trade-off curves a report draws: for every level and SUT the baseline and the worst that happens.

Trade-off curves as SVG: safety over efficiency, and both over sensitivity (001, figure 8).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from adverse.analysis.score import ANY, ANY_MILD
from adverse.report.tables import Cell, Table
from adverse.store.read import Store
from adverse.text import shown

Array = NDArray[np.float64]
MARKED = (0.001, 0.01, 0.1)
"""Sensitivities that are marked on every curve: the same shape is the same sensitivity."""
STYLES = (
    ("#0072b2", "", 2.4),
    ("#e69f00", "7 4", 2.0),
    ("#d55e00", "2 3", 2.0),
    ("#009e73", "", 1.1),
    ("#cc79a7", "", 1.1),
)
"""Colour (Okabe and Ito), dashes and width of the lines, in their order."""
SIZE, GAP, LEFT, TOP, BOTTOM = 230, 52, 46, 10, 44


@dataclass(frozen=True, eq=False)
class Curve:
    """One line: sensitivity, safety and efficiency, each (K,)."""

    name: str
    sensitivity: Array
    safety: Array
    efficiency: Array

    def at(self, sensitivity: float) -> tuple[float, float] | None:
        """Return (efficiency, safety) at the nearest level; None beyond the ends of the grid."""
        k = self.nearest(sensitivity)
        return None if k is None else (float(self.efficiency[k]), float(self.safety[k]))

    def nearest(self, sensitivity: float) -> int | None:
        """Return which level is nearest; None beyond the ends of the grid."""
        low, high = self.sensitivity.min(), self.sensitivity.max()
        if not low <= sensitivity * 1.001 or not sensitivity <= high * 1.001:
            return None
        return int(np.argmin(np.abs(np.log(self.sensitivity) - np.log(sensitivity))))


def curves_svg(title: str, curves: Sequence[Curve]) -> str:
    """Return three panels beside each other: the trade-off, safety and efficiency over sensitivity."""
    width, height = LEFT + 3 * SIZE + 2 * GAP + 12, TOP + SIZE + BOTTOM
    placed = [
        f'<g transform="translate({LEFT + number * (SIZE + GAP)} {TOP})">{panel}</g>'
        for number, panel in enumerate(Charts(curves).panels())
    ]
    shape = f'viewBox="0 0 {width} {height}" font-size="11" fill="currentColor"'
    shape += f' role="img" aria-label="{escape(title)}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {shape}>{"".join(placed)}</svg>'


class Charts:
    """The three panels of some curves, each SIZE wide and high, and where on them a curve's points are."""

    def __init__(self, curves: Sequence[Curve], *, marked: Sequence[float] = MARKED) -> None:
        self.curves = curves
        self.marked = marked
        levels = np.concatenate([curve.sensitivity for curve in curves])
        self.low, self.high = np.log10(levels.min()), np.log10(levels.max())

    def panels(self) -> list[str]:
        """Return the inside of each panel as SVG."""
        decades = [10.0**n for n in range(int(np.ceil(self.low)), int(self.high) + 1)]
        ticks = [(f"{value:g}", float(self._log(np.array([value]))[0])) for value in decades]
        unit = [(f"{value:g}", value) for value in (0, 0.5, 1)]
        axes = (("efficiency", "safety", unit), ("sensitivity", "safety", ticks))
        return [
            self._panel(number, *labels)
            for number, labels in enumerate((*axes, ("sensitivity", "efficiency", ticks)))
        ]

    def spots(self, curve: Curve) -> NDArray[np.float64]:
        """Return where each point of a curve is on each panel, in pixels: (3, K, 2)."""
        across = self._log(curve.sensitivity)
        pairs = ((curve.efficiency, curve.safety), (across, curve.safety), (across, curve.efficiency))
        return np.array([np.stack([x, 1 - y], axis=1) * SIZE for x, y in pairs])

    def _log(self, values: Array) -> Array:
        return np.asarray((np.log10(values) - self.low) / (self.high - self.low))

    def _panel(self, number: int, x_label: str, y_label: str, x_ticks: Sequence[tuple[str, float]]) -> str:
        parts = [f'<rect width="{SIZE}" height="{SIZE}" fill="none" class="frame"/>']
        for text, value in x_ticks:
            parts.append(f'<text x="{value * SIZE:.1f}" y="{SIZE + 14}" text-anchor="middle">{text}</text>')
        for value in (0.0, 0.5, 1.0):
            level = (1 - value) * SIZE
            parts.append(f'<line x1="0" x2="{SIZE}" y1="{level}" y2="{level}" class="grid"/>')
            parts.append(f'<text x="-5" y="{level + 4}" text-anchor="end">{value:g}</text>')
        middle = SIZE / 2
        parts.append(f'<text x="{middle}" y="{SIZE + 32}" text-anchor="middle">{x_label}</text>')
        turn = f'transform="translate(-32 {middle}) rotate(-90)"'
        parts.append(f'<text {turn} text-anchor="middle">{y_label}</text>')
        for place, curve in enumerate(self.curves):
            parts += self._line(self.spots(curve)[number], curve, style_of(place))
        return "".join(parts)

    def _line(self, spots: Array, curve: Curve, style: tuple[str, str, float]) -> Iterator[str]:
        colour, dashes, width = style
        known = np.all(np.isfinite(spots), axis=1)
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in _thinned(spots[known]))
        dash = f' stroke-dasharray="{dashes}"' if dashes else ""
        yield f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{width}"{dash}/>'
        for shape, level in enumerate(self.marked):
            k = curve.nearest(level)
            if k is not None and known[k]:
                yield _marker(shape, spots[k, 0], spots[k, 1], colour)


def style_of(number: int) -> tuple[str, str, float]:
    """Return colour, dashes and width of the line with this number."""
    return STYLES[number % len(STYLES)]


def _thinned(points: NDArray[np.float64]) -> list[tuple[float, float]]:
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


def _marker(shape: int, x: float, y: float, colour: str) -> str:
    look = f'fill="{colour}" stroke="white" stroke-width="0.8"'
    if shape == 0:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" {look}/>'
    if shape == 1:
        return f'<rect x="{x - 3.6:.1f}" y="{y - 3.6:.1f}" width="7.2" height="7.2" {look}/>'
    corners = f"{x:.1f},{y - 4.8:.1f} {x - 4.4:.1f},{y + 3.6:.1f} {x + 4.4:.1f},{y + 3.6:.1f}"
    return f'<polygon points="{corners}" {look}/>'


@dataclass(frozen=True)
class Figure:
    """The curves of one SUT at one level, and a legend that says what each line is."""

    level: str
    sut: str
    svg: str
    legend: tuple[tuple[str, str, str], ...]
    """Name, colour and dashes of each line."""
    numbers: Table


def figures(store: Store) -> Iterator[Figure]:
    """Yield for every level and SUT: the baseline, the worst cases, the worst mild and severe mutation."""
    path = store.result("curves.parquet")
    if path is None:
        return
    table = pq.read_table(path)
    levels, suts, settings = (_coded(table, name) for name in ("level", "sut", "setting"))
    numbers = [table[name].to_numpy() for name in ("sensitivity", "safety", "efficiency")]
    for level, level_name in enumerate(levels.names):
        for sut, sut_name in enumerate(suts.names):
            mine = np.flatnonzero((levels.codes == level) & (suts.codes == sut))
            drawn = {}
            for code in dict.fromkeys(settings.codes[mine].tolist()):
                rows = mine[settings.codes[mine] == code]
                curve = Curve(settings.names[code], *(column[rows] for column in numbers))
                if np.isfinite(curve.safety).all() and np.isfinite(curve.efficiency).all():
                    drawn[curve.name] = curve
            curves = list(_chosen(drawn, store.groups))
            if curves:
                legend = tuple((shown(curve.name), *style_of(n)[:2]) for n, curve in enumerate(curves))
                title = f"{sut_name} at level {level_name}"
                svg = curves_svg(title, curves)
                yield Figure(level_name, sut_name, svg, legend, _marked_table(title, curves))


@dataclass(frozen=True, eq=False)
class _Coded:
    """A column of names as numbers (N,), in the order in which names first stand there."""

    names: list[str]
    codes: NDArray[np.int64]


def _coded(table: pa.Table, column: str) -> _Coded:
    found = table[column].combine_chunks().dictionary_encode()
    return _Coded(found.dictionary.to_pylist(), found.indices.to_numpy().astype(np.int64))


def _chosen(drawn: dict[str, Curve], settings: dict[str, str]) -> Iterator[Curve]:
    yield from (drawn[name] for name in (next(iter(settings)), ANY_MILD, ANY) if name in drawn)
    for group in ("mild", "severe"):
        mine = [drawn[name] for name, of in settings.items() if of == group and name in drawn]
        if mine:
            yield min(mine, key=lambda curve: float(np.mean(curve.safety * curve.efficiency)))


def _marked_table(title: str, curves: list[Curve]) -> Table:
    """Return safety and efficiency of each line at the marked sensitivities, for those who cannot see it."""
    data = [
        {"line": curve.name, "sensitivity": level, "efficiency": at[0], "safety": at[1]}
        for curve in curves
        for level in MARKED
        if (at := curve.at(level)) is not None
    ]
    rows = tuple(
        (
            Cell(shown(row["line"])),
            Cell(f"{row['sensitivity']:g}"),
            Cell(f"{row['safety']:.3f}"),
            Cell(f"{row['efficiency']:.3f}"),
        )
        for row in data
    )
    return Table(f"curves {title}", title, ("line", "sensitivity", "safety", "efficiency"), rows, tuple(data))

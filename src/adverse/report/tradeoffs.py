"""Trade-off curves: safety over efficiency and both over sensitivity, the baseline and the worst cases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from adverse.analysis.score import ANY, ANY_MILD
from adverse.analysis.thresholds import MARKED, ROUNDING
from adverse.report.chart import Axis, Chart, Line, Panel, PanelSize
from adverse.report.table import Cell, Row, Table, columns
from adverse.store.read import Store
from adverse.text import shown

Array = NDArray[np.float64]
POINT = ("threshold", "sensitivity", "safety", "efficiency")
"""The columns of a curve's points."""
STYLES = (
    ("#0072b2", "", 2.4),
    ("#e69f00", "7 4", 2.0),
    ("#d55e00", "2 3", 2.0),
    ("#009e73", "", 1.1),
    ("#cc79a7", "", 1.1),
)
"""Colour (Okabe and Ito), dashes and width of the lines, in their order."""
SIZE, LEFT, RIGHT, TOP, BOTTOM = 230, 46, 12, 10, 44
PANEL_SIZE = PanelSize(LEFT + SIZE + RIGHT, TOP + SIZE + BOTTOM, LEFT, RIGHT, TOP, BOTTOM)
"""A panel is a square of SIZE pixels, with its words around it."""
FONT_PX = 11


@dataclass(frozen=True, eq=False)
class TradeOff:
    """One line: thresholds, falling, with the sensitivity, safety and efficiency of each, all (K,)."""

    name: str
    threshold: Array
    sensitivity: Array
    safety: Array
    efficiency: Array

    def at(self, sensitivity: float) -> tuple[float, float] | None:
        """Return (efficiency, safety) at a sensitivity; None where it has none as low as that."""
        k = self.reached(sensitivity)
        return None if k is None else (float(self.efficiency[k]), float(self.safety[k]))

    def reached(self, sensitivity: float) -> int | None:
        """Return the lowest threshold that is no more sensitive; None if there is none."""
        within = np.flatnonzero(self.sensitivity <= sensitivity * (1 + ROUNDING))
        return int(within[-1]) if len(within) else None

    def places(self, thresholds: Array) -> NDArray[np.int64]:
        """Return the points at which the curve is at other thresholds (they must be among its own)."""
        above = np.searchsorted(-self.threshold, -thresholds, side="right") - 1
        return np.maximum(above, 0)


def curve_panels(
    curves: Sequence[TradeOff], ends: tuple[float, float], *, marked: Sequence[float] = MARKED
) -> list[Panel]:
    """Return three panels: the trade-off, then safety and efficiency over sensitivities between `ends`."""
    decades = range(int(np.ceil(np.log10(ends[0]))), int(np.log10(ends[1])) + 1)
    sensitivity = Axis("sensitivity", ends, tuple(10.0**n for n in decades), log=True)
    safety, efficiency = (Axis(name, (0.0, 1.0), (0.0, 0.5, 1.0)) for name in ("safety", "efficiency"))
    axes = ((efficiency, safety), (sensitivity, safety), (sensitivity, efficiency))
    return [
        Panel("", x, y, [_line(curve, n, x, y, marked) for n, curve in enumerate(curves)], size=PANEL_SIZE)
        for x, y in axes
    ]


def style_of(number: int) -> tuple[str, str, float]:
    """Return colour, dashes and width of the line with this number."""
    return STYLES[number % len(STYLES)]


def _line(curve: TradeOff, number: int, x: Axis, y: Axis, marked: Sequence[float]) -> Line:
    colour, dashes, width = style_of(number)
    symbols = tuple(curve.reached(level) for level in marked)
    across, up = _drawn_at(curve, x), getattr(curve, y.label)
    return Line(shown(curve.name), across, up, colour, dashes, width, symbols)


def _drawn_at(curve: TradeOff, axis: Axis) -> Array:
    """Return where the points of a curve are on an axis; what is beyond its ends is at the end."""
    values: Array = getattr(curve, axis.label)
    return np.clip(values, *axis.ends)


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
    numbers = [table[name].to_numpy() for name in POINT]
    ends = store.run.sensitivity.lowest, store.run.sensitivity.highest
    for level, level_name in enumerate(levels.names):
        for sut, sut_name in enumerate(suts.names):
            mine = np.flatnonzero((levels.codes == level) & (suts.codes == sut))
            drawn = {}
            for code in dict.fromkeys(settings.codes[mine].tolist()):
                rows = mine[settings.codes[mine] == code]
                curve = TradeOff(settings.names[code], *(column[rows] for column in numbers))
                if np.isfinite(curve.safety).all() and np.isfinite(curve.efficiency).all():
                    drawn[curve.name] = curve
            curves = list(_chosen(drawn, store.groups))
            if curves:
                legend = tuple((shown(curve.name), *style_of(n)[:2]) for n, curve in enumerate(curves))
                title = f"{sut_name} at level {level_name}"
                chart = Chart(
                    title, curve_panels(curves, ends), across=3, standing_alone=False, font_px=FONT_PX
                )
                yield Figure(level_name, sut_name, chart.svg(), legend, _marked_table(title, curves))


@dataclass(frozen=True, eq=False)
class _Coded:
    """A column of names as numbers (N,), in the order in which names first stand there."""

    names: list[str]
    codes: NDArray[np.int64]


def _coded(table: pa.Table, column: str) -> _Coded:
    coded = table[column].combine_chunks().dictionary_encode()
    return _Coded(coded.dictionary.to_pylist(), coded.indices.to_numpy().astype(np.int64))


def _chosen(drawn: dict[str, TradeOff], settings: dict[str, str]) -> Iterator[TradeOff]:
    yield from (drawn[name] for name in (next(iter(settings)), ANY_MILD, ANY) if name in drawn)
    for group in ("mild", "severe"):
        mine = [drawn[name] for name, of in settings.items() if of == group and name in drawn]
        if mine:
            yield min(mine, key=lambda curve: float(np.mean(curve.safety * curve.efficiency)))


def _marked_table(title: str, curves: list[TradeOff]) -> Table:
    """Return safety and efficiency of each line at the marked sensitivities, for those who cannot see it."""
    records: tuple[Row, ...] = tuple(
        {"line": curve.name, "sensitivity": level, "efficiency": at[0], "safety": at[1]}
        for curve in curves
        for level in MARKED
        if (at := curve.at(level)) is not None
    )
    rows = tuple(
        (
            Cell(row["line"]),
            Cell(row["sensitivity"], f"{row['sensitivity']:g}"),
            Cell(row["safety"]),
            Cell(row["efficiency"]),
        )
        for row in records
    )
    headings = columns("line", "sensitivity", "safety", "efficiency", format=".3f")
    return Table(f"curves {title}", title, headings, rows, records)

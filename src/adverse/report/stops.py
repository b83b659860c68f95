"""How the logs of the closed loop end: how late, how near to people and how fast, as charts and tables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adverse.analysis.failed_suts import FAILED
from adverse.analysis.loop import EXAMPLE_SENSITIVITY, Stops, quantiles, read_stops
from adverse.analysis.results import Summary
from adverse.curves.interval import interval_cells
from adverse.report.chart import Axis, Band, Chart, Dots, Line, Mark, Panel, PanelSize, round_ticks
from adverse.report.intervals import summary_interval
from adverse.report.table import Cell, Table, columns, setting_cell
from adverse.store.read import Store
from adverse.text import setting_text, shown

NEVER, NOBODY = "never stops", "nobody in sight"
ROW_PX, NAMES_PX, PLOT_PX = 24, 215, 250
BEYOND = 0.25
"""How far to the right of the numbers infinite values are drawn, as a part of their span."""
FEW_LOGS = 40
"""So many logs are drawn one by one; of more, only those outside of 5 % to 95 %."""
MEDIAN_COLOUR, BOX_COLOUR, REACH_COLOUR, LOG_COLOUR = "currentColor", "#0072b2", "#888", "#d55e00"
BOX, REACH = "25 % to 75 %", "5 % to 95 %"
LEGEND = (("median of the logs", MEDIAN_COLOUR), (BOX, BOX_COLOUR), (REACH, REACH_COLOUR))


def tolerance_words(summary: Summary, level: str) -> str:
    """Say what is in time at a level, in metres; nothing where a level has no tolerance.

    >>> tolerance_words(Summary({"robot": None, "rows": []}), "image/ROC_A")
    ''
    """
    robot = summary.data.get("robot")
    if not robot or not any(row["level"] == level and row["area_at_0"] is not None for row in summary.rows):
        return ""
    return f"in time: up to {robot['tolerance_m']:g} m later than the truth"


@dataclass(frozen=True)
class StopFigure:
    """How the logs of one SUT end under each setting, at one level."""

    level: str
    sut: str
    svg: str
    legend: tuple[tuple[str, str], ...]
    """Name and colour of what is drawn."""
    numbers: Table


def stop_figures(
    store: Store, summary: Summary, tables: Mapping[tuple[str, str], Table]
) -> Iterator[StopFigure]:
    """Yield for every level that drives and every SUT: lateness, clearance, speed at the safety radius."""
    robot = summary.data.get("robot") or {}
    for stops in read_stops(store) if robot else ():
        if stops.sut in summary.failed_everywhere:
            continue
        svg = stop_chart(stops, robot).svg()
        most = max(len(values[0]) for values in stops.measured.values())
        dots = "a log" if most <= FEW_LOGS else "a log outside of 5 % to 95 %"
        legend = (*LEGEND, (dots, LOG_COLOUR))
        yield StopFigure(stops.level, shown(stops.sut), svg, legend, tables[stops.level, stops.sut])


def stop_chart(stops: Stops, robot: Mapping[str, float]) -> Chart:
    """Return the distributions as boxes with a row for each setting; marks say what is in time, and near."""
    late = f"{robot['tolerance_m']:g} m"
    marks: tuple[list[Mark], ...] = (
        [Mark("truth", 0.0), Mark(f"in time up to {late}", robot["tolerance_m"], side="right")],
        [
            Mark("safety radius", robot["safety_radius_m"]),
            Mark("control radius", robot["control_radius_m"], side="right"),
        ],
        [],
    )
    words = (
        ("lateness", "lateness, m", NEVER),
        ("clearance", "clearance, m", NOBODY),
        ("speed", "speed at the safety radius, m/s", ""),
    )
    panels = [
        _stop_panel(
            title,
            label,
            {setting: values[number] for setting, values in stops.measured.items()},
            marks[number],
            infinite=infinite,
            named=number == 0,
        )
        for number, (title, label, infinite) in enumerate(words)
    ]
    name = f"{shown(stops.sut)} at level {stops.level}: how late, how near, how fast"
    return Chart(name, panels, across=len(panels), standing_alone=False)


def _stop_panel(
    title: str,
    label: str,
    measured: Mapping[str, NDArray[np.float64]],
    marks: Sequence[Mark],
    *,
    infinite: str,
    named: bool,
) -> Panel:
    count = len(measured)
    every = np.concatenate([*measured.values(), [mark.x for mark in marks], [0.0]])
    ticks = round_ticks(float(every[np.isfinite(every)].min()), float(every[np.isfinite(every)].max()))
    beyond = infinite if infinite == NEVER or np.isinf(every).any() else ""
    place = BEYOND * (ticks[-1] - ticks[0]) if beyond else 0.0
    x = Axis(label, (ticks[0], ticks[-1] + place), tuple(ticks), infinite=beyond)
    rows = tuple(float(count - 1 - number) for number in range(count))
    names = tuple(setting_text(name, longest=30) if named else "" for name in measured)
    y = Axis("", (-1.6, count - 0.4), rows, names=names)
    left = NAMES_PX if named else 16
    size = PanelSize(left + PLOT_PX + 40, 26 + 34 + ROW_PX * (count + 1), left, 40)
    parts = [quantiles(values) for values in measured.values()]
    boxes = [
        Band(
            f"{BOX}: {setting_text(setting)}",
            [part["p25"], part["p75"]],
            [row - 0.25] * 2,
            [row + 0.25] * 2,
            BOX_COLOUR,
        )
        for setting, part, row in zip(measured, parts, rows, strict=True)
    ]
    lines = [_reaches(parts, rows), _ticked("median", [part["p50"] for part in parts], rows)]
    return Panel(title, x, y, lines, marks, [_logs(measured, rows)], boxes, size=size)


def _reaches(parts: Sequence[Mapping[str, float]], rows: Sequence[float]) -> Line:
    """Return a line along each row, with gaps between them."""
    x = [end for part in parts for end in (part["p05"], part["p95"], math.nan)]
    return Line(REACH, x, np.repeat(rows, 3), REACH_COLOUR, width=1.2)


def _ticked(name: str, places: Sequence[float], rows: Sequence[float]) -> Line:
    """Return a short upright line in each row."""
    x = [end for place in places for end in (place, place, math.nan)]
    y = [end for row in rows for end in (row - 0.3, row + 0.3, math.nan)]
    return Line(name, x, y, MEDIAN_COLOUR, width=2.6)


def _logs(measured: Mapping[str, NDArray[np.float64]], rows: Sequence[float]) -> Dots:
    """Return the logs as dots, each a little above or below its row, so that equal ones can be told."""
    xs, ys = [], []
    for row, values in zip(rows, measured.values(), strict=True):
        part = quantiles(values)
        kept = (values < part["p05"]) | (values > part["p95"]) | (len(values) <= FEW_LOGS)
        xs.append(values[kept])
        ys.append(row + 0.3 * np.linspace(-1, 1, len(values))[kept] if len(values) > 1 else [row])
    x = np.concatenate(xs)
    return Dots("a log", x, np.concatenate(ys), np.full(len(x), 2.2), LOG_COLOUR)


def stop_tables(summary: Summary) -> dict[tuple[str, str], Table]:
    """Return by level and SUT how the logs end under each setting; records have further sensitivities."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in summary.data.get("loop", ()):
        found.setdefault((row["level"], row["sut"]), []).append(row)
    tables = {}
    for (level, sut), rows in found.items():
        sensitivity = min(
            (row["sensitivity"] for row in rows), key=lambda at: abs(math.log(at / EXAMPLE_SENSITIVITY))
        )
        words = (
            f"{sut} at level {level}: how the logs end at {sensitivity:.2g} false positives per image",
            "medians, and 5 % to 95 %",
            tolerance_words(summary, level),
        )
        tables[level, sut] = Table(
            f"stops {level} {sut}",
            "; ".join(filter(None, words)),
            STOP_COLUMNS,
            tuple(_stop_cells(row) for row in rows if row["sensitivity"] == sensitivity),
            tuple(_flat(row) for row in rows),
        )
    return tables


STOP_COLUMNS = (
    *columns("mutation", "logs"),
    *columns("in time", "in time at 0 m", NEVER, "moved inside safety radius", format=".0%", left=0),
    *columns("lateness, m", format=".3f", left=0),
    *columns("clearance, m", "speed at safety radius, m/s", format=".2f", left=0),
)
"""The last three are medians; 5 % to 95 % stand below, and the worst in the note."""


def _stop_cells(row: Mapping[str, Any]) -> tuple[Cell, ...]:
    if row["status"] == FAILED:
        nothing = Cell(None, FAILED, tone="soft", note="the SUT failed on every image")
        return (setting_cell(row["setting"]), Cell(row["logs"]), *[nothing] * (len(STOP_COLUMNS) - 2))
    return (
        setting_cell(row["setting"]),
        Cell(row["logs"]),
        *(
            Cell(row[name], details=(summary_interval(row[f"{name}_interval"]),))
            for name in ("safety", "safety_at_0", "never_stops", "violations")
        ),
        _distribution(row, "lateness_m", "max", ".3f", NEVER),
        _distribution(row, "clearance_m", "min", ".2f", NOBODY),
        _distribution(row, "speed_at_safety_radius_mps", "max", ".2f", ""),
    )


def _distribution(row: Mapping[str, Any], name: str, worst: str, form: str, infinite: str) -> Cell:
    def text(part: str) -> str:
        value = row[f"{name}_{part}"]
        return infinite if value is None else format(value, form)

    median = row[f"{name}_p50"]
    reach = text("p05") if text("p05") == text("p95") else f"{text('p05')} to {text('p95')}"
    note = f"median {text('p50')}, {REACH} {reach}, worst {text(worst)}"
    return Cell(median, infinite if median is None else None, details=(reach,), note=note)


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if name.endswith("_interval"):
            flat |= interval_cells(name.removesuffix("_interval"), value)
        else:
            flat[name] = value
    return flat

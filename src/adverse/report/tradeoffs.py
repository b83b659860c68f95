"""Trade-off curves as charts: all SUTs on one ROC, the worst cases of each, and what a mutation leaves of it.

The first is as figures 4 and 5 of Pezzementi et al. 2018, the last as the Robustness ROC of Pezzementi et al.
2021: baseline, mutation and the worse of both at every threshold, whose area is what tables show.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adverse.analysis.choices import worst_settings
from adverse.analysis.results import Summary
from adverse.analysis.thresholds import MARKED
from adverse.analysis.tradeoffs import RunCurves, TradeOff, left_out_frames, read_curves, robust_curve
from adverse.errors import StudyError, suggestion
from adverse.report.chart import COLOURS, Axis, Band, Chart, Line, Panel, PanelSize
from adverse.report.table import Cell, Row, Table, columns, setting_cell
from adverse.store.read import Store
from adverse.text import CLEAN, WORST_CASES, setting_text, shown

Array = NDArray[np.float64]
STYLES = (
    ("#0072b2", "", 2.4),
    ("#e69f00", "7 4", 2.0),
    ("#d55e00", "2 3", 2.0),
    ("#009e73", "", 1.1),
    ("#cc79a7", "", 1.1),
)
"""Colour (Okabe and Ito), dashes and width of the lines, in their order."""
SUT_DASHES = ("", "7 4", "2 3", "9 3 2 3")
"""With as many SUTs as there are colours, the next ones are dashed."""
BASELINE_STYLE, MUTATED_STYLE = ("#0072b2", "", 2.2), ("#d55e00", "7 4", 1.8)
ROBUST_STYLE = ("#009e73", "", 1.4)
SIZE, LEFT, RIGHT, TOP, BOTTOM = 230, 46, 12, 10, 44
PANEL_SIZE = PanelSize(LEFT + SIZE + RIGHT, TOP + SIZE + BOTTOM, LEFT, RIGHT, TOP, BOTTOM)
"""A panel is a square of SIZE pixels, with its words around it."""
TITLED_SIZE = PANEL_SIZE._replace(height=PANEL_SIZE.height + 16, top=TOP + 16)
FONT_PX = 11
LONGEST_TITLE = 40
AXES = (("efficiency", "safety"), ("sensitivity", "safety"), ("sensitivity", "efficiency"))
"""What the three panels of a SUT draw, along and up."""


def axis_label(quantity: str, words: Mapping[str, Any]) -> str:
    """Return what stands along an axis, by the words of a level.

    >>> axis_label("safety", {"safety": "stops in time"}), axis_label("safety", {})
    ('safety: stops in time', 'safety')
    """
    more = words.get(quantity)
    return f"{quantity}: {more}" if more else quantity


def level_words(summary: Summary, level: str) -> Mapping[str, Any]:
    """Return how a level (or a row of it, `level/variant`) describes itself."""
    words: Mapping[str, Any] = summary.data.get("levels", {}).get(level.partition("/")[0], {})
    return words


def curve_panels(
    curves: Sequence[TradeOff],
    ends: tuple[float, float],
    words: Mapping[str, Any],
    *,
    marked: Sequence[float] = MARKED,
) -> list[Panel]:
    """Return three panels (AXES): the trade-off, then safety and efficiency over sensitivities in `ends`."""
    decades = range(int(np.ceil(np.log10(ends[0]))), int(np.log10(ends[1])) + 1)
    axes = {
        "sensitivity": Axis("sensitivity", ends, tuple(10.0**n for n in decades), log=True),
        "safety": _unit_axis("safety", words),
        "efficiency": _unit_axis("efficiency", words),
    }
    return [
        Panel(
            "",
            axes[x],
            axes[y],
            [_line(curve, style_of(n), x, y, axes[x], marked) for n, curve in enumerate(curves)],
            size=PANEL_SIZE,
        )
        for x, y in AXES
    ]


def style_of(number: int) -> tuple[str, str, float]:
    """Return colour, dashes and width of the line with this number."""
    return STYLES[number % len(STYLES)]


def sut_style(number: int) -> tuple[str, str, float]:
    """Return colour, dashes and width of a SUT on a chart of all of them."""
    dashes = SUT_DASHES[number // len(COLOURS) % len(SUT_DASHES)]
    return COLOURS[number % len(COLOURS)], dashes, 1.8


def suts_panel(
    curves: Sequence[TradeOff], words: Mapping[str, Any], title: str, *, numbers: Sequence[int] | None = None
) -> Panel:
    """Return all SUTs under one setting on one ROC; equal shapes are equal sensitivities.

    `numbers` are the places of the SUTs in the run, which choose their colours; by default 0, 1, ...
    """
    axes = _unit_axis("efficiency", words), _unit_axis("safety", words)
    lines = [
        _line(curve, sut_style(number), "efficiency", "safety", axes[0], MARKED)
        for number, curve in zip(numbers or range(len(curves)), curves, strict=True)
    ]
    return Panel(shown(title, longest=LONGEST_TITLE), *axes, lines, size=TITLED_SIZE)


def robust_panel(first: TradeOff, second: TradeOff, words: Mapping[str, Any], title: str) -> Panel:
    """Return two curves of one SUT and their Robustness ROC, with all that it dominates filled."""
    robust = robust_curve(first, second)
    axes = _unit_axis("efficiency", words), _unit_axis("safety", words)
    drawn = ((first, BASELINE_STYLE), (second, MUTATED_STYLE), (robust, ROBUST_STYLE))
    lines = [_line(curve, style, "efficiency", "safety", axes[0], ()) for curve, style in drawn]
    across, up = robust.dominated()
    area = Band("area of the Robustness ROC", across, np.zeros_like(up), up, ROBUST_STYLE[0])
    return Panel(shown(title, longest=LONGEST_TITLE), *axes, lines, bands=[area], size=TITLED_SIZE)


ROBUST_WITH = "Robustness ROC with "
"""What the name of such a curve begins with; the id of its mutation follows."""
ROBUST_LEGEND = ("Robustness ROC, its area filled", *ROBUST_STYLE[:2])


def _unit_axis(quantity: str, words: Mapping[str, Any]) -> Axis:
    return Axis(axis_label(quantity, words), (0.0, 1.0), (0.0, 0.5, 1.0))


def _line(
    curve: TradeOff, style: tuple[str, str, float], x: str, y: str, along: Axis, marked: Sequence[float]
) -> Line:
    across = np.clip(getattr(curve, x), *along.ends)  # what is beyond an end is drawn there
    places = [curve.reached(level) for level in marked]
    steps = Steps(across, getattr(curve, y))
    if x == "sensitivity":
        symbols = tuple(steps.mark(k, level) for k, level in zip(places, marked, strict=True))
    else:
        symbols = tuple(None if k is None else steps.place(k) for k in places)
    return Line(shown(curve.name), steps.x, steps.y, *style, symbols)


class Steps:
    """A curve as a staircase: a value holds until the next point, and nothing between two is credited.

    >>> steps = Steps(np.array([0.1, 0.2]), np.array([0.5, 1.0]))
    >>> steps.x, steps.y, steps.place(1)
    ([0.1, 0.2, 0.2], [0.5, 0.5, 1.0], 2)
    >>> steps.mark(0, 0.15), steps.x
    (1, [0.1, 0.15, 0.2, 0.2])
    """

    def __init__(self, x: Array, y: Array) -> None:
        self.x = [float(x[0]), *np.repeat(x[1:], 2).tolist()] if len(x) else []
        self.y = [*np.repeat(y[:-1], 2).tolist(), float(y[-1])] if len(y) else []
        self._added: list[int] = []

    def place(self, k: int) -> int:
        """Return where point k of the curve is among the corners."""
        return 2 * k + sum(added < k for added in self._added)

    def mark(self, k: int | None, x: float) -> int | None:
        """Add a corner to the step from point k on, marks from left to right; None where there is no step."""
        if k is None:
            return None
        at = self.place(k) + 1 + self._added.count(k)
        self.x.insert(at, x)
        self.y.insert(at, self.y[at - 1])
        self._added.append(k)
        return at


@dataclass(frozen=True)
class Figure:
    """A chart of one level, and a legend that says what each line is."""

    level: str
    heading: str
    svg: str
    legend: tuple[tuple[str, str, str], ...]
    """Name, colour and dashes of each line."""
    numbers: Table
    note: str = ""
    across: int = 3
    """Panels beside each other; the page makes room for three."""


@dataclass(frozen=True)
class LevelFigures:
    """The charts of one level, and its words."""

    level: str
    title: str
    sentence: str
    figures: tuple[Figure, ...]


def figures(store: Store, summary: Summary) -> Iterator[LevelFigures]:
    """Yield for every level: all SUTs together, then each by itself and under its worst mutations.

    One that failed on every image has no curve: that it finds nobody is no result.
    """
    failed = summary.failed_everywhere
    ends = store.run.sensitivity.lowest, store.run.sensitivity.highest
    left_out = left_out_frames(store)
    for level, group in groupby(read_curves(store), key=lambda read: read.level):
        whole = [read for read in group if store.run.baseline.id in read.curves]
        runs = [read for read in whole if read.sut not in failed]
        numbers = [number for number, read in enumerate(whole) if read.sut not in failed]
        words = level_words(summary, level)
        charts = [] if len(runs) < 2 else [_all_suts(store.run.baseline.id, level, runs, numbers, words)]
        for read in runs:
            worst = worst_settings(summary, level, read.sut)
            charts.append(_of_sut(store.run.baseline.id, read, worst, ends, words))
            uneven = {
                setting
                for setting in worst.values()
                if left_out.get((read.sut, setting)) != left_out.get((read.sut, store.run.baseline.id))
            }
            if robust := _robust(store.run.baseline.id, read, worst, summary, words, uneven):
                charts.append(robust)
        if charts:
            yield LevelFigures(level, words.get("title", ""), words.get("sentence", ""), tuple(charts))


def curves_chart(store: Store, summary: Summary, level: str, setting: str) -> Chart:
    """Return all SUTs at a level under a setting, AnyMild or Any, on one chart."""
    runs: dict[str, list[RunCurves]] = {}
    for read in read_curves(store):
        runs.setdefault(read.level, []).append(read)
    if level not in runs:
        raise StudyError(f"the run has no curves at level {level!r}", fix=suggestion(level, runs))
    drawn = [_renamed(read.curves[setting], read.sut) for read in runs[level] if setting in read.curves]
    if not drawn:
        known = dict.fromkeys(name for read in runs[level] for name in read.curves)
        raise StudyError(f"no SUT has a curve under {setting!r}", fix=suggestion(setting, known))
    panel = suts_panel(drawn, level_words(summary, level), "")
    return Chart(f"{level} under {setting_text(setting)}", [panel], legend_left=True)


def _all_suts(
    baseline: str, level: str, runs: Sequence[RunCurves], numbers: Sequence[int], words: Mapping[str, Any]
) -> Figure:
    """Return all SUTs on one ROC: clean, and in the worst cases."""
    panels, named = [], []
    for setting, title in ((baseline, CLEAN), *WORST_CASES.items()):
        suts = [_renamed(read.curves[setting], read.sut) for read in runs if setting in read.curves]
        if len(suts) == len(runs):
            panels.append(suts_panel(suts, words, title, numbers=numbers))
            named += [_renamed(curve, f"{curve.name}, {title}") for curve in suts]
    title = f"all SUTs at level {level}"
    legend = tuple(
        (shown(read.sut), *sut_style(number)[:2]) for number, read in zip(numbers, runs, strict=True)
    )
    chart = Chart(title, panels, across=3, standing_alone=False, font_px=FONT_PX)
    return Figure(level, "all SUTs", chart.svg(), legend, _marked_table(title, named))


def _of_sut(
    baseline: str,
    read: RunCurves,
    worst: Mapping[str, str],
    ends: tuple[float, float],
    words: Mapping[str, Any],
) -> Figure:
    wanted = (baseline, *WORST_CASES, *worst.values())
    curves = [read.curves[name] for name in wanted if name in read.curves]
    title = f"{read.sut} at level {read.level}"
    panels = curve_panels(curves, ends, words)
    chart = Chart(title, panels, across=3, standing_alone=False, font_px=FONT_PX)
    legend = tuple((setting_text(curve.name), *style_of(number)[:2]) for number, curve in enumerate(curves))
    return Figure(read.level, shown(read.sut), chart.svg(), legend, _marked_table(title, curves))


def _robust(
    baseline: str,
    read: RunCurves,
    worst: Mapping[str, str],
    summary: Summary,
    words: Mapping[str, Any],
    uneven: set[str],
) -> Figure | None:
    """Return the Robustness ROC of the worst mild and the worst severe mutation, beside each other.

    Of those under which other frames than clean ones could be used, the areas alone.
    """
    panels, notes, drawn = [], [], [_renamed(read.curves[baseline], CLEAN)]
    for group, setting in worst.items():
        if setting in read.curves:
            clean, mutated = read.curves[baseline], read.curves[setting]
            row = _row(summary, read.level, read.sut, setting)
            note = f"worst {group}: {setting_text(setting)} leaves {_areas(row, summary, baseline)}"
            notes.append(f"{note} on the frames used in both, not drawn" if setting in uneven else note)
            if setting not in uneven and np.array_equal(clean.threshold, mutated.threshold):
                panels.append(robust_panel(clean, mutated, words, setting_text(setting)))
                drawn += [mutated, _renamed(robust_curve(clean, mutated), ROBUST_WITH + setting)]
    if not notes:
        return None
    title = f"Robustness ROC of {read.sut} at level {read.level}"
    chart = Chart(title, panels, across=max(len(panels), 1), standing_alone=False, font_px=FONT_PX)
    legend = (
        (CLEAN, *BASELINE_STYLE[:2]),
        ("mutation", *MUTATED_STYLE[:2]),
        ROBUST_LEGEND,
    )
    heading = f"{shown(read.sut)}: Robustness ROC"
    numbers = _marked_table(title, drawn)
    told = "; ".join(notes)
    if not panels:
        return Figure(read.level, heading, "", (), numbers, told)
    return Figure(read.level, heading, chart.svg(), legend, numbers, told, len(panels))


def _row(summary: Summary, level: str, sut: str, setting: str) -> Row:
    wanted = (level, sut, setting)
    return next(row for row in summary.rows if (row["level"], row["sut"], row["setting"]) == wanted)


def _areas(row: Row, summary: Summary, baseline: str) -> str:
    """Return what is left of the area of the same frames clean."""
    if row["robust_area"] is None:
        return "nothing that could be told"
    if row["robustness"]:
        clean = row["robust_area"] / row["robustness"]
    else:
        clean = _row(summary, row["level"], row["sut"], baseline)["area"]
    return f"{row['robust_area']:.3f} of {clean:.3f}"


def _renamed(curve: TradeOff, name: str) -> TradeOff:
    return TradeOff(name, curve.threshold, curve.sensitivity, curve.safety, curve.efficiency)


def _marked_table(title: str, curves: Sequence[TradeOff]) -> Table:
    """Return safety and efficiency of each line at the marked sensitivities, for those who cannot see it."""
    records: tuple[Row, ...] = tuple(
        {"line": curve.name, "sensitivity": level, "efficiency": at[0], "safety": at[1]}
        for curve in curves
        for level in MARKED
        if (at := curve.at(level)) is not None
    )
    rows = tuple(
        (
            _line_cell(str(row["line"])),
            Cell(row["sensitivity"], f"{row['sensitivity']:g}"),
            Cell(row["safety"]),
            Cell(row["efficiency"]),
        )
        for row in records
    )
    headings = columns("line", "sensitivity", "safety", "efficiency", format=".3f")
    return Table(f"curves {title}", title, headings, rows, records)


def _line_cell(name: str) -> Cell:
    """Return the name of a curve as people read it."""
    setting = name.removeprefix(ROBUST_WITH)
    return setting_cell(name) if setting == name else Cell(name, ROBUST_WITH + setting_text(setting))

"""A measure over many runs, as a table, a chart and a page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from adverse.report.chart import Axis, Band, Chart, Line, Panel, PanelSize, round_ticks
from adverse.report.intervals import interval_text
from adverse.report.layout import rendered
from adverse.report.table import Cell, Column, Table
from adverse.report.tradeoffs import sut_style
from adverse.requirements.history import History, HistoryPoint
from adverse.requirements.rules import PERCENT
from adverse.requirements.run_figures import ON_CLEAN
from adverse.text import apart, counted, shown

ABREAST = 3
"""Figures beside each other that a terminal of 80 characters holds."""
COMMIT_SHOWN = 10
SIZE = PanelSize(760, 300, 52, 48, 40, 46)
MOST_TICKS = 12


def history_table(history: History) -> Table:
    """Return a row for each run, the oldest first, and a column for each SUT, level and setting."""
    rows = tuple(_row(history, folder) for folder in history.folders)
    heads = (Column("run", align="left"), Column("finished", align="left"), Column("commit", align="left"))
    columns = (*heads, *(Column(name) for name in _short_names(history).values()))
    records = tuple(point.plain() for point in history.points)
    return Table("history", title(history), columns, rows, records)


def in_terminal(history: History) -> list[Table]:
    """Return the table in parts that fit a terminal; a commit that no run has takes no room."""
    table = history_table(history)
    if not any(point.commit for point in history.points):
        table = table.only(*(column.heading for column in table.columns if column.heading != "commit"))
    table = table.stacked("run", "run", *(name for name in ("finished", "commit") if name in table.headings))
    return list(table.abreast(ABREAST))


def title(history: History) -> str:
    """Say what is shown."""
    measure = history.rule.words.rstrip(",")
    percent = ", in percent" if history.rule.measure in PERCENT else ""
    whole, short = next(iter(_short_names(history).items()), ("", ""))
    shared = whole.removeprefix(short) if whole.startswith(short) else ""
    return f"{measure}{percent}{_in_words(shared, measure)}, over {counted(len(history.folders), 'run')}"


def _short_names(history: History) -> dict[str, str]:
    """Return what each figure is called beside the others: its SUT, where all else is the same."""
    ends = (" at ", " under ", " in the worst case", ON_CLEAN)
    parts = {
        figure: figure.partition(next((end for end in ends if end in figure), ends[0]))
        for figure in history.figures
    }
    same = len({"".join(part[1:]) for part in parts.values()}) == 1
    return {figure: part[0] if same else _in_words(figure) for figure, part in parts.items()}


def _in_words(figure: str, measure: str = "") -> str:
    """Return what a figure is of; a worst-case area needs no second word that it is of the worst case."""
    return figure.replace(" in the worst case of all ", " of all ") if "worst-case" in measure else figure


def run_name(folder: Path, folders: Sequence[Path]) -> str:
    """Return what a run is called: its folder, with those around it where others are called the same.

    >>> runs = [Path("a/x/run"), Path("b/x/run"), Path("b/v2")]
    >>> [run_name(run, runs) for run in runs]
    ['a/x/run', 'b/x/run', 'v2']
    """
    others = [other.parts for other in folders if other != folder]
    for number in range(1, len(folder.parts) + 1):
        name = folder.parts[-number:]
        if all(parts[-number:] != name for parts in others):
            return "/".join(name)
    return str(folder)


def history_lines(history: History) -> list[str]:
    """Say what must be known of it: runs that are not comparable, and figures that are missing."""
    lines = []
    for folder in history.folders:
        point = next(point for point in history.points if point.folder == folder)
        if point.differs:
            reasons = ", ".join(point.differs)
            name = shown(run_name(folder, history.folders))
            lines.append(f"* {name} is not comparable with the newest: {reasons}")
    doubts: dict[str, dict[str, None]] = {}
    for point in history.points:
        if point.doubt:
            doubts.setdefault(point.doubt, {})[shown(run_name(point.folder, history.folders))] = None
    lines += [f"? {', '.join(names)}: {shown(doubt, longest=400)}" for doubt, names in doubts.items()]
    if any(point.interval and point.interval.status == "few logs" for point in history.points):
        lines.append("~ rests on fewer than 20 logs")
    return lines


def render_history(history: History) -> str:
    """Return the whole page."""
    return rendered(
        "history.html",
        title=title(history),
        study=" and ".join(dict.fromkeys(shown(point.run) for point in history.points)),
        chart=history_chart(history).svg(),
        table=history_table(history),
        lines=history_lines(history),
        newest=shown(run_name(history.folders[-1], history.folders)),
    )


def history_chart(history: History) -> Chart:
    """Draw every figure over the runs, with its interval."""
    runs = history.folders
    lines, bands, values = [], [], [0.0]
    names = _short_names(history)
    for number, figure in enumerate(history.figures):
        points = {point.folder: point for point in history.points if point.figure == figure}
        y, low, high = ([_end(points.get(run), name) for run in runs] for name in ("value", "low", "high"))
        colour, dashes, width = sut_style(number)
        places = tuple(range(len(runs)))
        lines.append(Line(shown(names[figure]), places, y, colour, dashes, width, marked=True))
        if len(runs) > 1 and all(math.isfinite(end) for end in (*low, *high)):
            bands.append(Band("", places, low, high, colour))
        values += [value for value in (*y, *low, *high) if math.isfinite(value)]
    ticks = round_ticks(min(values), max(values))
    ticks = [tick for tick in ticks if tick <= 1.0] if max(values) <= 1.0 < ticks[-1] else ticks
    across = Axis("runs, the oldest first", (0.0, max(len(runs) - 1.0, 1.0)), *_names(history))
    panel = Panel("", across, Axis("", (ticks[0], ticks[-1]), tuple(ticks)), lines, bands=bands, size=SIZE)
    return Chart(title(history), [panel], legend_left=True)


def _names(history: History) -> tuple[tuple[float, ...], bool, tuple[str, ...]]:
    """Return ticks of the axis of runs, that it is linear, and the names at them, marked as in the table."""
    runs = history.folders
    other = {point.folder for point in history.points if point.differs}
    step = -(-len(runs) // MOST_TICKS)
    shown_at = list(range(0, len(runs), step))
    short = apart([run_name(run, history.folders) for run in runs], longest=14)
    names = tuple(short[number] + ("*" if runs[number] in other else "") for number in shown_at)
    return tuple(map(float, shown_at)), False, names


def _row(history: History, folder: Path) -> tuple[Cell, ...]:
    points = {point.figure: point for point in history.points if point.folder == folder}
    any_point = next(iter(points.values()))
    commits = dict.fromkeys(point.commit[:COMMIT_SHOWN] for point in points.values() if point.commit)
    name = shown(run_name(folder, history.folders)) + ("*" if any_point.differs else "")
    when = (any_point.finished or "-").replace("T", " ").removesuffix("+00:00")
    heads = Cell(name, note=", ".join(any_point.differs)), Cell(when), Cell(", ".join(commits) or "-")
    return (*heads, *(_cell(points.get(figure)) for figure in history.figures))


def _cell(point: HistoryPoint | None) -> Cell:
    if point is None:
        return Cell(None, "-", tone="soft")
    if point.value is None:
        return Cell(None, "insufficient", marks="?" if point.doubt else "", note=point.doubt, tone="soft")
    interval = point.interval
    ends = interval_text(interval.low, interval.high, ".3g", status=interval.status) if interval else ""
    marks = "?" if point.doubt else ""
    details = (ends,) if ends else ()
    return Cell(point.value, f"{point.value:.3g}", marks=marks, details=details, note=point.doubt)


def _end(point: HistoryPoint | None, name: str) -> float:
    """Return the value of a point or an end of its interval; nan where there is none."""
    source = None if point is None else point if name == "value" else point.interval
    value = getattr(source, name, None)
    return math.nan if value is None else float(value)

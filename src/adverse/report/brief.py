"""What a run ends with in the terminal: one table, how the robot stops, what to know, where to look next."""

from __future__ import annotations

import math
from collections.abc import Sequence

from adverse.analysis.headline import Condition, Headline, Survival, headline, headline_levels, stopping
from adverse.analysis.results import Summary
from adverse.report.intervals import interval_text
from adverse.report.remarks import remarks, troubles
from adverse.report.table import Cell, Column, Table, Tone
from adverse.store.run import Run
from adverse.text import SCORE_WORDS, shown

MOST_CONDITIONS, MOST_LINES, WIDTH = 10, 30, 80
"""What a run ends with in a terminal, in all."""
AROUND = 8
"""Lines for the frame of the table, its heading, and where to look next."""
LEAST_TROUBLES = 8
"""So many lines on what went wrong are shown however long the rest is."""
ABREAST = 3
"""SUTs beside each other whose intervals a terminal of 80 characters holds."""


def brief_table(summary: Summary, run: Run) -> Table:
    """Return SUTs across, mutations down: what each keeps of its clean figure, the most harmful first."""
    level = (headline_levels(summary) or [""])[0]
    head = headline(summary, run, level)
    suts = list(head.clean)
    intervals = len(suts) <= ABREAST
    clean = [
        Cell(value, "insufficient" if value is None else f"{value:.3f}") for value in head.clean.values()
    ]
    rows = [(Cell("clean", tone="strong"), *clean)]
    groups = {1: ""}
    rows += [_row(condition, suts, intervals=intervals) for condition in head.conditions[:MOST_CONDITIONS]]
    groups[len(rows)] = ""
    rows += [_row(condition, suts, intervals=intervals) for condition in head.worst]
    more = len(head.conditions) - MOST_CONDITIONS
    return Table(
        "brief",
        _title(summary, head),
        (Column("mutation", align="left"), *(Column(sut) for sut in suts)),
        tuple(rows),
        groups=groups,
        caption=f"and {more} milder ones: --tables" if more > 0 else "",
    )


def _title(summary: Summary, head: Headline) -> str:
    name = f"area at level {head.level}" if head.level else SCORE_WORDS[str(summary.data["metric"])]
    grouped = any(condition.settings > 1 for condition in head.conditions)
    return f"{name}, clean, and the share of it that survives{' every strength' if grouped else ''}"


def _row(condition: Condition, suts: Sequence[str], *, intervals: bool) -> tuple[Cell, ...]:
    cells = (_cell(condition.by_sut.get(sut), intervals=intervals) for sut in suts)
    return Cell(condition.words), *cells


def _cell(one: Survival | None, *, intervals: bool) -> Cell:
    if one is None or one.share is None:
        return Cell(None, "-" if one is None else one.status, tone="soft")
    text = f"{one.share:.0%}"
    if intervals and one.interval and one.interval["low"] is not None:
        ends = (100 * one.interval["low"], 100 * one.interval["high"])
        text += f" ({interval_text(*ends, '.0f', status=one.interval['status'])})"
    marks = "?" if one.status == "incomplete" else ""
    tone: Tone = "bad" if one.share < 0.5 else "doubt" if one.share <= 0.9 else ""
    return Cell(one.share, text, marks=marks, tone=tone)


def brief_lines(summary: Summary, run: Run, table: Table) -> list[str]:
    """Return how often the robot stops in time, and what a reader must know first, below `brief_table`."""
    lines = []
    stops = stopping(summary, run)
    if stops is not None:
        counts = [f"{line.stopped} of {line.logs} {_under(line.words)}" for line in stops.lines]
        lines.append(f"{shown(stops.sut)} stops in time in {', '.join(counts)}")
        never = [line.words for line in stops.lines if math.isinf(line.latest_m)]
        latest = max((line.latest_m for line in stops.lines if math.isfinite(line.latest_m)), default=0.0)
        text = f"its latest stop is {latest:.1f} m behind the truth's"
        lines.append(f"{text}; in some logs it never stops under {', '.join(never)}" if never else text)
    left = MOST_LINES - AROUND - len(table.rows) - sum(map(_height, lines))
    told = remarks(summary)
    wrong = len(troubles(summary))
    for number, line in enumerate(told):
        left -= _height(line)
        if left <= 0 and number >= min(wrong, LEAST_TROUBLES):
            lines.append(f"- {len(told) - number} more remarks: --tables, or the report's data quality")
            break
        lines.append(line)
    return lines


def _height(line: str) -> int:
    """Return how many lines of a terminal a text takes."""
    return -(-len(line) // WIDTH)


def _under(words: str) -> str:
    return words if words == "clean" else f"under {words}"

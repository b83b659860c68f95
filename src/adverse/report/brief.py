"""What a run ends with in the terminal: one table, how the robot stops, what to know, where to look next."""

from __future__ import annotations

import io
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rich.console import Console

from adverse.analysis.headline import (
    Condition,
    Headline,
    StopCosts,
    Survival,
    headline,
    headline_levels,
    stop_costs,
)
from adverse.analysis.results import Summary
from adverse.report.agreement import basis, table_words, words
from adverse.report.answer import choices
from adverse.report.intervals import interval_or_reason, interval_text
from adverse.report.relations import relation_lines
from adverse.report.remarks import remarks, troubles
from adverse.report.run_tables import area_words, marked_name
from adverse.report.stopped import stopped_basis
from adverse.report.table import Cell, Column, Table, Tone, broken_heading
from adverse.robot.profile import Robot
from adverse.store.read import CONFIDENCE
from adverse.store.run import Run
from adverse.text import CLEAN, SCORE_WORDS, apart, counted, shown

MOST_CONDITIONS, MOST_LINES, WIDTH = 10, 30, 80
"""What a run ends with in a terminal, in all."""
MOST_DRIVEN, MOST_BESIDE_MANY = 4, 6
"""Conditions where a robot drives: what they cost in stops stands below; and beside SUTs whose names and
intervals take lines of their own."""
NEXT = 3
"""The lines that say where to look next."""
LEAST_TROUBLES = 8
"""So many lines on what went wrong are shown however long the rest is."""
MOST_COSTS = 3
"""Mutations that are named with what they cost a SUT in stops."""
LONGEST = 30
"""Characters of a mutation's name, which stands on one line beside any number of SUTs."""
SHORTEST = 18
"""Characters that a mutation's name has in any case."""
SHORT = 16
"""A SUT's name that is no wider than its figures."""
ROOMY = 2
"""SUTs beside each other whose clean figures have room for their intervals; of more they stand below."""
MOST_ACROSS = 6
"""SUTs beside each other whose figures 80 characters hold; more stand below each other."""
MOST_DOWN, NAME_DOWN, HARDEST_DOWN = 14, 16, 17
"""SUTs below each other, and the characters of their names and of what is hardest for them."""
ABREAST = 3
"""SUTs beside each other whose intervals a terminal of 80 characters holds."""


def brief_table(summary: Summary, run: Run) -> Table:
    """Return SUTs across, mutations down: what each keeps of its clean figure, the most harmful first.

    As many mutations as leave room for the lines that have to stand below it.
    """
    table = _brief_table(summary, run)
    for fewer in range(1, MOST_CONDITIONS):
        below = sum(map(_height, brief_lines(summary, run, table))) + NEXT
        if _table_height(table) + below <= MOST_LINES:
            break
        table = _brief_table(summary, run, fewer=fewer)
    return table


def _brief_table(summary: Summary, run: Run, *, fewer: int = 0) -> Table:
    level = (headline_levels(summary) or [""])[0]
    head = headline(summary, run, level)
    suts = list(head.clean)
    intervals, short = len(suts) <= ABREAST, all(len(shown(sut)) <= SHORT for sut in suts)
    failed = summary.failed_everywhere
    faulty = {sut for sut in suts if summary.data["counts"][sut]["fault"]}
    clean = [
        Cell(
            value,
            "failed"
            if sut in failed
            else _clean(head, sut, intervals=len(suts) <= ROOMY or len(suts) > MOST_ACROSS),
            marks="" if sut in failed or value is None else _marks(sut in faulty, sut in head.incomplete),
        )
        for sut, value in head.clean.items()
    ]
    if len(suts) > MOST_ACROSS:
        return _suts_down(summary, head, clean, faulty)
    rows = [(Cell(CLEAN, tone="strong"), *clean)]
    if len(suts) > ROOMY:
        rows += _clean_ends(head, [sut for sut in suts if sut not in failed], suts)
    groups = {len(rows): ""}
    many = MOST_BESIDE_MANY if len(suts) > ABREAST else MOST_CONDITIONS
    driven = MOST_DRIVEN - (len(suts) > ROOMY)  # the clean intervals have a row of their own
    most = driven if summary.data.get("loop") else many
    most += len(head.conditions) == most + 1  # the one that is left takes no more room than a word on it
    most = max(most - fewer, 1)
    told = [*head.conditions[:most], *head.worst]
    room = _mutation_room([marked_name(summary, sut) for sut in suts])
    names = apart([condition.words for condition in told], longest=room)
    rows += [_row(*named, suts, faulty, intervals=intervals) for named in zip(names, told, strict=True)]
    groups[len(rows) - len(head.worst)] = ""
    more = len(head.conditions) - most
    table = Table(
        "brief",
        _title(summary, head),
        (
            Column("mutation", align="left", no_wrap=not intervals),
            *(Column(marked_name(summary, sut), no_wrap=intervals and short) for sut in suts),
        ),
        tuple(rows),
        groups=groups,
        caption=f"and {counted(more, 'less harmful one')}: --tables" if more > 0 else "",
    )
    return table if run.truth is None else table_words(table)


def _mutation_room(suts: Sequence[str]) -> int:
    """Return the characters of a mutation's name that leave the words of many SUTs' names whole."""
    if len(suts) <= ABREAST:
        return LONGEST
    words = sum(max(map(len, broken_heading(sut, 1).splitlines())) for sut in suts)
    return min(LONGEST, max(SHORTEST, WIDTH - len(suts) - 2 - words))


def _suts_down(summary: Summary, head: Headline, clean: Sequence[Cell], faulty: Collection[str]) -> Table:
    """Return a line for each of many SUTs: clean, in the worst cases, and under what it keeps least."""
    rows = []
    names = apart([marked_name(summary, sut) for sut in head.clean], longest=NAME_DOWN)
    for sut, name, cell in zip(head.clean, names, clean, strict=True):
        worst = (
            _narrow(_cell(case.by_sut.get(sut), faulty=sut in faulty, intervals=False)) for case in head.worst
        )
        rows.append((Cell(sut, name), cell, *worst, Cell(_hardest(head, sut))))
    columns = (
        Column("SUT", align="left", no_wrap=True),
        Column(CLEAN, no_wrap=True),
        *(Column(case.words) for case in head.worst),
        Column("keeps least under", align="left", brief="least under", no_wrap=True),
    )
    more = f"and {len(rows) - MOST_DOWN} more SUTs: --tables" if len(rows) > MOST_DOWN else ""
    return Table("brief", _title(summary, head), columns, tuple(rows[:MOST_DOWN]), caption=more)


def _narrow(cell: Cell) -> Cell:
    """Return a share as six characters hold it: the clean 0 of which there is none stands beside it."""
    return cell if cell.value is not None else replace(cell, text="-")


def _hardest(head: Headline, sut: str) -> str:
    """Return the mutation that leaves a SUT least, as far as there is room for its name."""
    known = [
        (one.share, condition.words)
        for condition in head.conditions
        if (one := condition.by_sut.get(sut)) and one.share is not None
    ]
    if not known:
        return "-"
    words = shown(min(known)[1]).split(" ")
    fitting = [" ".join(words[:count]) for count in range(1, len(words) + 1)]
    return next((text for text in reversed(fitting) if len(text) <= HARDEST_DOWN), words[0][:HARDEST_DOWN])


def _clean(head: Headline, sut: str, *, intervals: bool) -> str:
    value = head.clean[sut]
    if value is None:
        return "insufficient"
    ends = interval_or_reason(head.clean_intervals.get(sut)) if intervals else ""
    words, _, _ = ends.partition(":")  # a line below the table says why there is none
    return f"{value:.3f} ({words})" if words else f"{value:.3f}"


def _clean_ends(head: Headline, told: Collection[str], suts: Sequence[str]) -> list[tuple[Cell, ...]]:
    """Return the intervals of the clean figures as lines of their own; of many SUTs one line for each end."""
    known = {
        sut: interval
        for sut in told
        if head.clean[sut] is not None and (interval := head.clean_intervals.get(sut))
    }
    if not known:
        return []
    if len(suts) <= ABREAST:
        sure = {interval["confidence"] for interval in known.values()}
        label = "95 % interval" if sure == {CONFIDENCE} else "repeated interval"
        texts = {sut: interval_or_reason(interval).partition(":")[0] for sut, interval in known.items()}
        return [_soft_row(f"  {label}", texts, suts)]
    ends = ("low", "  95 % from"), ("high", "  to")
    return [
        _soft_row(words, {sut: _end(interval, end) for sut, interval in known.items()}, suts)
        for end, words in ends
    ]


def _end(interval: Mapping[str, Any], end: str) -> str:
    if interval[end] is None:
        return "none"
    return interval_text(interval[end], interval[end], status=interval["status"]).partition(" ")[0]


def _soft_row(words: str, texts: Mapping[str, str], suts: Sequence[str]) -> tuple[Cell, ...]:
    cells = (Cell(texts.get(sut), texts.get(sut, "-"), tone="soft") for sut in suts)
    return Cell(words, tone="soft"), *cells


def _title(summary: Summary, head: Headline) -> str:
    name = f"area at level {head.level}" if head.level else SCORE_WORDS[str(summary.data["metric"])]
    grouped = any(condition.settings > 1 for condition in head.conditions)
    if not head.conditions:
        return f"{name}, {CLEAN}; no mutation was run"
    return f"{name}, {CLEAN}, and the share of it that survives{' every strength' if grouped else ''}"


def _row(
    name: str, condition: Condition, suts: Sequence[str], faulty: Collection[str], *, intervals: bool
) -> tuple[Cell, ...]:
    cells = (_cell(condition.by_sut.get(sut), faulty=sut in faulty, intervals=intervals) for sut in suts)
    return Cell(name), *cells


def _cell(one: Survival | None, *, faulty: bool, intervals: bool) -> Cell:
    """Return what a SUT keeps; without `intervals` a line below the table counts those that have none."""
    if one is None or one.share is None:
        return Cell(None, "-" if one is None else one.undefined, tone="soft")
    text = f"{one.share:.0%}"
    if intervals and one.interval and one.interval["low"] is not None:
        ends = (100 * one.interval["low"], 100 * one.interval["high"])
        text += f" ({interval_text(*ends, '.0f', status=one.interval['status'])})"
    elif intervals and one.interval and one.interval["low"] is None:
        text += " (no interval)"
    marks = _marks(faulty, one.status == "incomplete")
    tone: Tone = "bad" if one.share < 0.5 else "doubt" if one.share <= 0.9 else ""
    return Cell(one.share, text, marks=marks, tone=tone)


def _marks(faulty: bool, incomplete: bool) -> str:  # noqa: FBT001
    return ("*" if faulty else "") + ("?" if incomplete else "")


def brief_lines(summary: Summary, run: Run, table: Table) -> list[str]:
    """Return how often the robot stops in time, and what a reader must know first, below `brief_table`."""
    basis_of, stopped = basis(run), stopped_basis(summary)
    lines = [
        *([] if basis_of is None else [basis_of]),
        *([] if stopped is None else [stopped]),
        *_meaning(summary, table),
        *choices(summary, run),
        *stop_lines(summary, run),
        *relation_lines(summary, run),
    ]
    left = MOST_LINES - NEXT - _table_height(table) - sum(map(_height, lines))
    told, wrong = remarks(summary), len(troubles(summary))
    failing = sum(counts["fault"] > 0 for counts in summary.data["counts"].values())
    if failing > 1 and sum(map(_height, told)) > left:  # every SUT's trouble comes before lists of frames
        told = [line for line in told if not line.startswith(" ")]
        wrong = sum(not line.startswith(" ") for line in troubles(summary))
    for number, line in enumerate(told):
        left -= _height(line)
        if left <= 0 and number >= min(wrong, LEAST_TROUBLES):
            lines.append(
                f"- {counted(len(told) - number, 'more remark')}: --tables, or the report's data quality"
            )
            break
        lines.append(line)
    return lines if run.truth is None else [*lines[:1], *map(words, lines[1:])]


def _meaning(summary: Summary, table: Table) -> list[str]:
    """Say what an area is of, and what the mark of an interval means, for who reads it first here."""
    levels = headline_levels(summary)
    if not levels:
        return []
    few = any("~" in (cell.text or "") for row in table.rows for cell in row)
    text = f"area: {area_words(summary, levels[0], axes=False)}"
    ends = ("; best 1; ~ few logs", "; ~ few logs") if few else ("; best 1", "")
    return [text + next((end for end in ends if len(text + end) <= WIDTH), ends[-1])]


def stop_lines(summary: Summary, run: Run) -> list[str]:
    """Return how often each SUT stops in time, and what costs it most stops; nothing without a robot."""
    known = stop_costs(summary, run)[:ABREAST]
    if not known:
        return []
    rate = f"{known[0].sensitivity:.2g} false alarms per image"
    head = f"stops in time ({known[0].level}, at {rate}; areas: at any):"
    late = Robot(**run.robot).late_words if run.robot else ""
    return [head, *(_cost_line(one) for one in known), *([f"  the robot: {late}"] if late else [])]


def _cost_line(one: StopCosts) -> str:
    """Return what costs a SUT most stops, as much as fits on a line."""
    lines = [f"  {shown(one.sut)} {_cost_words(one, most)}" for most in range(MOST_COSTS, 0, -1)]
    return next((line for line in lines if len(line) <= WIDTH), lines[-1])


def stop_sentences(summary: Summary, run: Run) -> list[str]:
    """Return the same as sentences, of all SUTs and with all that costs a stop."""
    return [
        f"{shown(one.sut)} stops in time ({one.level}) in {_cost_words(one, len(one.costs))}."
        for one in stop_costs(summary, run)
    ]


def _cost_words(one: StopCosts, most: int) -> str:
    costs = [
        f"{cost.words} -{cost.lost}{'' if cost.logs == one.logs else f' of {cost.logs}'}"
        for cost in one.costs
        if cost.lost > 0
    ]
    more = [f"{len(costs) - most} more"] if len(costs) > most else []
    text = ", ".join([*costs[:most], *more]) or (
        "no mutation costs a stop" if one.costs or one.untested else "no mutation was run"
    )
    if one.untested:
        text += f"; {one.untested} not driven in all logs"
    return f"{one.stopped} of {one.logs} clean; {text}"


def _table_height(table: Table) -> int:
    """Return how many lines of a terminal a table takes, with its title and frame."""
    page = io.StringIO()
    Console(file=page, width=WIDTH).print(table.terminal())
    return page.getvalue().count("\n")


def _height(line: str) -> int:
    """Return how many lines of a terminal a text takes."""
    return -(-len(line) // WIDTH)

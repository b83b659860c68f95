"""The checklist of hazards as a table, in words, and on a page: a matrix for each place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

from adverse.marks import GUIDE_WORDS, LOCATIONS
from adverse.report.layout import rendered
from adverse.report.table import Cell, Column, Table, Tone, columns
from adverse.requirements.checklist import WORDS_OF_TIME, ChecklistEntry, Status
from adverse.text import shown

SIGNS: dict[Status, tuple[str, Tone]] = {
    "exercised": ("✓", "good"),
    "available": ("could", ""),
    "no mutation": ("-", "soft"),
    "not applicable": ("n/a", "soft"),
}
NAMED = 3
"""Mutations that a cell names; the rest are shown when it is looked at closely."""


def checklist_lines(entries: Sequence[ChecklistEntry]) -> list[str]:
    """Say how much of the checklist is covered, and what is not."""
    count = Counter(entry.status for entry in entries)
    words = ", ".join(f"{count[status]} {status}" for status in SIGNS if count[status])
    lines = [f"{len(entries)} entries: {words}"]
    stands = {(entry.location, entry.parameter) for entry in entries if entry.mutations or entry.settings}
    for place in LOCATIONS:
        open_words = Counter(
            entry.parameter for entry in entries if entry.location == place and entry.status == "no mutation"
        )
        names = dict.fromkeys(entry.parameter for entry in entries if entry.location == place)
        bare = [shown(name) for name in names if (place, name) not in stands and open_words[name]]
        if bare:
            owner = f"{place}'" if place.endswith("s") else f"{place}'s"
            lines.append(f"no mutation stands for any guide word of the {owner} {', '.join(bare)}")
    lines.append(f"guide words of time ({', '.join(WORDS_OF_TIME)}) cannot be shown by a single image")
    return lines


def checklist_table(entries: Sequence[ChecklistEntry]) -> Table:
    """Return the whole checklist, an entry on each line."""
    rows = tuple(
        (
            Cell(entry.location),
            Cell(entry.parameter),
            Cell(entry.guide_word),
            Cell(entry.status, tone=SIGNS[entry.status][1]),
            Cell(entry.reason or ", ".join(entry.settings or entry.mutations)),
        )
        for entry in entries
    )
    records = tuple(
        asdict(entry) | {"mutations": "; ".join(entry.mutations), "settings": "; ".join(entry.settings)}
        for entry in entries
    )
    headings = ("location", "parameter", "guide word", "status", "by, or why not")
    return Table("checklist", "Hazards of seeing", columns(*headings, left=5), rows, records)


def place_table(place: str, entries: Sequence[ChecklistEntry]) -> Table:
    """Return one place as a matrix: parameters down, guide words across."""
    by_parameter: dict[str, list[ChecklistEntry]] = {}
    for entry in entries:
        if entry.location == place:
            by_parameter.setdefault(entry.parameter, []).append(entry)
    rows = tuple((Cell(name), *map(_cell, row)) for name, row in by_parameter.items())
    heads = (
        Column("parameter", align="left"),
        *(Column(word, align="left") for word in GUIDE_WORDS),
    )
    return Table(place, place.capitalize(), heads, rows)


def _cell(entry: ChecklistEntry) -> Cell:
    sign, tone = SIGNS[entry.status]
    names = entry.settings or entry.mutations
    more = len(names) - NAMED
    details = [*map(shown, names[:NAMED]), *([f"and {more} more"] if more > 0 else [])]
    if entry.status == "not applicable":
        details = [shown(entry.reason, longest=80)]
    return Cell(entry.status, sign, tuple(details), entry.reason or ", ".join(names), tone=tone)


def checklist_page(entries: Sequence[ChecklistEntry]) -> str:
    """Return one self-contained HTML page."""
    return rendered(
        "checklist.html",
        lines=checklist_lines(entries),
        tables=[place_table(place, entries) for place in LOCATIONS],
        words=list(GUIDE_WORDS.items()),
        whole=checklist_table(entries),
    )

"""The words of a label-free run: what is compared with clean answers is agreement, and never called recall.

Nobody annotated its images. What the system, or a stronger one, answers to the clean frames stands in for the
truth, so a figure says what a mutation changes, and nothing of what is missed on clean frames already. Tables
and pages are made once, in the words of annotated data; here they get their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import fields, is_dataclass, replace
from typing import Any

from adverse.report.table import Cell, Column, Table
from adverse.store.run import Run

WORDS = {
    "recall is not known": "recall is not known",
    "truth file": "truth file",
    "loses a person": "loses an answer",
    "a person found before": "an answer found before",
    "finds the person": "finds it again",
    "people who are": "clean answers that are",
    "people": "clean answers",
    "targets found": "clean answers found again",
    "ground truth": "clean answers",
    "true boxes": "clean answers",
    "false positives": "new detections",
    "false positive": "new detection",
    "FP/image": "new/image",
    "false alarms": "new detections",
    "false alarm": "new detection",
    "true positives": "answers found again",
    "recall": "agreement",
    "missed": "lost",
    "miss": "lost",
    "misses": "lost",
    "truths": "clean answers",
    "truth": "clean answer",
}
"""What is said of annotated data, and what of clean answers; the first that fits."""
_SAID = re.compile(rf"(?<![\w/.-])({'|'.join(map(re.escape, WORDS))})(?![\w/=(-]|\.\w)", re.IGNORECASE)
_MARKUP = re.compile(r"(<(?:script|style)\b.*?</(?:script|style)>|<[^>]*>)", re.DOTALL | re.IGNORECASE)
_SPOKEN = re.compile(r'(\b(?:title|aria-label|alt)=")([^"]*)(")')


def basis(run: Run) -> str | None:
    """Return what the figures of a label-free run rest on, in a sentence; None where they rest on truth."""
    if run.truth is None:
        return None
    return (
        f"Label-free: nobody annotated these images. Figures are agreement with {run.truth.name}; they tell "
        "what a mutation changes, and nothing of what is wrong on clean frames already."
    )


def words(text: str) -> str:
    """Return a text about annotated data as one about clean answers.

    >>> words("Recall falls: 3 of 5 false positives; see recall=1")
    'Agreement falls: 3 of 5 new detections; see recall=1'
    >>> words("recall is not known; it loses 5 of 9 people who are far")
    'recall is not known; it loses 5 of 9 clean answers that are far'
    """
    return _SAID.sub(_one, text)


def _one(found: re.Match[str]) -> str:
    said = WORDS.get(found[0]) or WORDS[found[0].lower()]
    return said[0].upper() + said[1:] if found[0][0].isupper() else said


def page_words(page: str) -> str:
    """Return a page in these words: its text and what is read out of it, not its markup, style and script."""
    parts = _MARKUP.split(page)
    for number, part in enumerate(parts):
        if not number % 2:
            parts[number] = words(part)
        elif not part[:7].lower().startswith(("<script", "<style")):
            parts[number] = _SPOKEN.sub(lambda found: found[1] + words(found[2]) + found[3], part)
    return "".join(parts)


def table_words(table: Table) -> Table:
    """Return a table in these words: headings, title and notes; its records by the same names."""
    records = None if table.records is None else tuple(_renamed(row) for row in table.records)
    return replace(
        table,
        title=words(table.title),
        caption=words(table.caption),
        groups={number: words(text) for number, text in table.groups.items()},
        columns=tuple(_column(column) for column in table.columns),
        rows=tuple(tuple(_cell(cell) for cell in row) for row in table.rows),
        records=records,
    )


def _column(column: Column) -> Column:
    return replace(column, heading=words(column.heading), brief=words(column.brief))


def _cell(cell: Cell) -> Cell:
    return replace(
        cell,
        text=None if cell.text is None else words(cell.text),
        value=words(cell.value) if isinstance(cell.value, str) and cell.value in WORDS else cell.value,
        details=tuple(map(words, cell.details)),
        note=words(cell.note),
    )


def _renamed(row: Any) -> dict[str, Any]:
    """Return a record whose fields are called after what they are."""
    return {re.sub(r"^recall(?=$|_)", "agreement", name): value for name, value in row.items()}


def spoken(run: Run, lines: Iterable[str]) -> list[str]:
    """Return lines in the words of a run, those of a label-free one after what they rest on."""
    told = basis(run)
    return list(lines) if told is None else [told, *map(words, lines)]


def all_tables(tables: Any) -> Any:
    """Return a dataclass of tables, lists and mappings of them, with every table in these words."""
    if isinstance(tables, Table):
        return table_words(tables)
    if isinstance(tables, list | tuple) and all(isinstance(one, Table) for one in tables):
        return type(tables)(table_words(one) for one in tables)
    if isinstance(tables, dict) and all(isinstance(one, Table) for one in tables.values()):
        return {key: table_words(one) for key, one in tables.items()}
    if is_dataclass(tables) and not isinstance(tables, type):
        known = {field.name: getattr(tables, field.name) for field in fields(tables)}
        return replace(tables, **{name: _table_field(value) for name, value in known.items()})
    return tables


def _table_field(value: Any) -> Any:
    return all_tables(value) if isinstance(value, Table | list | tuple | dict) else value

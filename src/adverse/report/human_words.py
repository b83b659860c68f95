"""Thresholds of a human study in words and as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table as RichTable
from rich.text import Text

from adverse.reliability.estimate import Estimate
from adverse.reliability.thresholds import FOUND, INSUFFICIENT, Kind
from adverse.report.tables import Cell, Table
from adverse.report.words import shown

WORSE: dict[Kind, str] = {
    "correctness": "less often right than on the originals",
    "prediction": "less often of the opinion that most had on the original than for barely changed images",
}


def in_words(found: Estimate) -> str:
    """Say what was found, so that it can stand in a document.

    >>> in_words(Estimate("haze", "correctness", "insufficient", "vif", "2 bins with more than 10 answers"))
    't_c of haze: cannot be told; 2 bins with more than 10 answers'
    """
    head = f"{found.symbol} of {shown(found.transformation)}"
    if found.status == INSUFFICIENT:
        return f"{head}: cannot be told; {found.why}"
    compared = f"({found.base:.1%} of {found.base_answers} answers)"
    if found.tied:
        compared += f", {found.tied} answers left out because people are tied on the original"
    if found.status != FOUND:
        return (
            f"{head}: tolerated up to a visual change of {found.tolerated_to:g} by {found.backend}, the last "
            "populated bin. "
            f"Nowhere are people significantly {WORSE[found.kind]} {compared}, so there is no number."
        )
    if found.interval is None:
        sure = f"No interval: {found.why.removeprefix('no interval: ')}."
    else:
        low, high = found.interval
        end = "beyond the data" if high is None else f"{high:g}"
        sure = f"{found.confidence:.0%} interval of where the drop begins: {low:g} to {end}."
        sure += f" Note: {found.why}." if found.why else ""
    return (
        f"{head} = {found.value:g} by {found.backend}: from that visual change on people are significantly "
        f"{WORSE[found.kind]} {compared}. {sure}"
    )


def threshold_table(estimates: Sequence[Estimate]) -> Table:
    """Return the thresholds as a table; its plain rows hold everything but the bins."""
    rows = [
        (
            Cell(shown(found.transformation)),
            Cell(found.symbol),
            Cell(_threshold(found)),
            Cell(_span(found)),
            Cell("-" if found.base is None else f"{found.base:.3f}"),
            Cell(str(found.answers)),
        )
        for found in estimates
    ]
    columns = ("transformation", "kind", "threshold", "drop begins", "base rate", "answers")
    return Table(
        "thresholds",
        "What people tolerate",
        columns,
        tuple(rows),
        tuple(_plain(found) for found in estimates),
    )


def rich_table(estimates: Sequence[Estimate]) -> RichTable:
    """Return the table for the terminal."""
    table = threshold_table(estimates)
    made = RichTable(title=table.title)
    for number, column in enumerate(table.columns):
        made.add_column(column, overflow="fold", justify="left" if number == 0 else "right")
    for row in table.rows:
        made.add_row(*(Text(entry.text) for entry in row))
    return made


def _threshold(found: Estimate) -> str:
    if found.value is not None:
        return f"{found.value:.2f}"
    return found.status if found.tolerated_to is None else f"none up to {found.tolerated_to:.2f}"


def _span(found: Estimate) -> str:
    if found.interval is None:
        return "-"
    low, high = found.interval
    return f"{low:.2f} or later" if high is None else f"{low:.2f} to {high:.2f}"


def _plain(found: Estimate) -> dict[str, Any]:
    row = found.plain()
    del row["bins"]
    for name in ("interval", "spread"):
        row[f"{name}_low"], row[f"{name}_high"] = row.pop(name) or (None, None)
    return row

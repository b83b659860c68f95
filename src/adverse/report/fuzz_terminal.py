"""The end of a fuzz campaign in the terminal: counts at a glance, within 80 columns."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table as RichTable
from rich.text import Text

from adverse.fuzz.outcome import ALL, Outcome
from adverse.fuzz.scoring import BINS
from adverse.report.fuzz_tables import Row, number, span

HEADS = ("mutation", "tests", "mod", "sig", "ext", "per 1,000", "95 %", "paper")


def counts_tables(outcome: Outcome) -> list[RichTable]:
    """Return a table for each SUT."""
    rows = outcome.counts()
    made = []
    for sut in outcome.suts:
        table = RichTable(title=f"{sut}: drops of 1 point or more", title_justify="left")
        for place, head in enumerate(HEADS):
            table.add_column(head, justify="left" if place == 0 else "right")
        for row in rows:
            if row["sut"] != sut:
                continue
            if row["mutation"] == ALL:
                table.add_section()
            published = row["published_scorer"]
            table.add_row(
                Text(row["mutation"], style="bold" if row["mutation"] == ALL else ""),
                str(row["tests"]),
                *(str(row[name]) for name in BINS),
                number(row["per_1000"]),
                span(row["per_1000_low"], row["per_1000_high"]) or "-",
                "-" if published is None else str(published),
            )
        made.append(table)
    return made


def comparison_lines(comparison: Sequence[Row]) -> list[str]:
    """Return what guiding was worth, in words."""
    lines = []
    for row in comparison:
        interval = span(row["difference_low"], row["difference_high"])
        lines.append(
            f"{row['sut']}: guided {number(row['guided_per_1000'])}, unguided "
            f"{number(row['unguided_per_1000'])} inconsistencies per 1,000 tests; difference "
            f"{number(row['difference'])}" + (f" ({interval})" if interval else "") + f": {_meant(row)}"
        )
        lines.append(
            f"  distinct failing frames {row['guided_bases']} guided, {row['unguided_bases']} unguided; "
            f"objects {row['guided_objects']} and {row['unguided_objects']}"
        )
    return lines


def _meant(row: Row) -> str:
    low, high = row["difference_low"], row["difference_high"]
    if low is None or high is None:
        return "no interval, so nothing is claimed"
    if low > 0:
        return "guiding finds more"
    return "guiding finds fewer" if high < 0 else "no difference that these logs could show"

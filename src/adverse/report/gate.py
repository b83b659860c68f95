"""Verdicts in the terminal: a table that fits 80 columns, and what it means in one line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from adverse.requirements.verdicts import WORST_FIRST, Outcome, Verdict
from adverse.text import shown

STYLES = {Outcome.PASS: "green", Outcome.FAIL: "bold red", Outcome.INCONCLUSIVE: "yellow"}
ALONE = (
    "Each rule stands alone, at 95 % where it is judged by an interval. The gate passes only if all do, "
    "so more rules never make passing easier; but of many true rules one may fail by chance."
)


def verdict_table(verdicts: Sequence[Verdict]) -> Table:
    """Return the verdicts in the order of their rules."""
    table = Table(show_lines=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("requirement", overflow="fold", ratio=1)
    table.add_column("measured", overflow="fold", justify="right", max_width=20)
    for verdict in verdicts:
        words = Text(shown(verdict.name, longest=300), style="bold")
        if verdict.requirement != verdict.name:
            words.append(f"\n{shown(verdict.requirement, longest=400)}", style="not bold")
        if verdict.reason:
            words.append(f"\n{shown(verdict.reason, longest=400)}", style="not bold dim")
        table.add_row(
            Text(str(verdict.outcome), style=STYLES[verdict.outcome]), words, Text(_measured(verdict))
        )
    return table


def verdict_lines(verdicts: Sequence[Verdict]) -> list[str]:
    """Return what came out of all rules, and how to read it."""
    return [counted(verdicts), ALONE]


def counted(verdicts: Sequence[Verdict]) -> str:
    """Say how many rules came out how."""
    count = Counter(verdict.outcome for verdict in verdicts)
    return ", ".join(f"{count[outcome]} {outcome}" for outcome in WORST_FIRST if count[outcome]) + "."


def _measured(verdict: Verdict) -> str:
    if verdict.measured is None:
        return "-"
    interval = verdict.interval.text() if verdict.interval else ""
    return f"{verdict.measured:.4g}" + (f"\n{interval}" if interval else "")

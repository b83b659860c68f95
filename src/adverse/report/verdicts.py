"""Verdicts on a run: as a table for the terminal, the report and pull requests, and in sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from adverse.report.table import Cell, Column, Table, Tone, markdown_text
from adverse.requirements.verdicts import WORST_FIRST, Outcome, Verdict
from adverse.text import shown

MARKS = {Outcome.PASS: "✓", Outcome.FAIL: "✗", Outcome.INCONCLUSIVE: "?"}
"""Shapes besides words, for those who see no colours."""
TONES: dict[str, Tone] = {Outcome.PASS: "good", Outcome.FAIL: "bad", Outcome.INCONCLUSIVE: "doubt"}
NAMED = 4
"""Verdicts that a sentence names; the rest are counted."""
ALONE = (
    "Each rule stands alone, at 95 % where it is judged by an interval. The gate passes only if all do, "
    "so more rules never make passing easier; but of many true rules one may fail by chance."
)


def verdict_table(source: str, verdicts: Sequence[Verdict]) -> Table:
    """Return the verdicts as a table, in the order given."""
    rows = tuple(
        (
            Cell(
                str(verdict.outcome),
                f"{MARKS[verdict.outcome]} {verdict.outcome}",
                tone=TONES[verdict.outcome],
            ),
            Cell(
                verdict.name,
                shown(verdict.name, longest=300),
                details=(
                    "" if verdict.requirement == verdict.name else shown(verdict.requirement, longest=400),
                ),
            ),
            Cell(verdict.required),
            Cell(verdict.measured, details=(_interval(verdict),)),
            Cell(verdict.reason, shown(verdict.reason, longest=400)),
        )
        for verdict in verdicts
    )
    records = tuple(
        {
            "outcome": str(verdict.outcome),
            "name": verdict.name,
            "requirement": verdict.requirement,
            "required": verdict.required,
            "measured": verdict.measured,
            "low": verdict.interval.low if verdict.interval else None,
            "high": verdict.interval.high if verdict.interval else None,
            "reason": verdict.reason,
        }
        for verdict in verdicts
    )
    columns = (
        Column("verdict", align="left", no_wrap=True),
        Column(source.removesuffix("s"), align="left"),
        Column("required", ".4g"),
        Column("measured", ".4g"),
        Column("why", align="left"),
    )
    return Table(f"verdicts {source}", shown(source).capitalize(), columns, rows, records)


def verdict_tables(verdicts: Mapping[str, Sequence[Verdict]]) -> list[Table]:
    """Return what each command said of a run as a table, the worst first."""
    return [verdict_table(source, worst_first(said)) for source, said in verdicts.items() if said]


def worst_first(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Return the verdicts, failures before those that are open before those that pass."""
    return sorted(verdicts, key=lambda verdict: WORST_FIRST.index(verdict.outcome))


def verdict_lines(verdicts: Sequence[Verdict]) -> list[str]:
    """Return what came out of all rules, and how to read it."""
    return [f"{outcome_counts(verdicts)}.", ALONE]


def verdict_answers(verdicts: Mapping[str, Sequence[Verdict]]) -> list[str]:
    """Return one sentence for each command that judged the run, naming what does not pass."""
    lines = []
    for source, said in verdicts.items():
        not_passed = [verdict for verdict in worst_first(said) if verdict.outcome is not Outcome.PASS]
        named = "; ".join(f"{verdict.outcome}: {shown(verdict.name)}" for verdict in not_passed[:NAMED])
        more = f"; and {len(not_passed) - NAMED} more" if len(not_passed) > NAMED else ""
        rest = f" {named}{more}." if named else ""
        lines.append(f"{shown(source).capitalize()}: {outcome_counts(said) or 'none'}.{rest}")
    return lines


def to_markdown(verdicts: Sequence[Verdict], *, title: str) -> str:
    """Return a Markdown summary, worst first, as a pull request shows it."""
    head = f"## {markdown_text(title)}\n\n{outcome_counts(verdicts) or 'No rule was checked.'}\n"
    table = verdict_table("rules", worst_first(verdicts))
    return f"{head}\n{table.markdown()}" if verdicts else head


def _interval(verdict: Verdict) -> str:
    return verdict.interval.text() if verdict.interval else ""


def outcome_counts(verdicts: Sequence[Verdict]) -> str:
    """Say how many rules came out how."""
    count = Counter(verdict.outcome for verdict in verdicts)
    return ", ".join(f"{count[outcome]} {outcome}" for outcome in WORST_FIRST if count[outcome])

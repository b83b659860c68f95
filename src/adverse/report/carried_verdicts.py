"""The verdicts that a run carries, for its report: what passes, what does not, what is open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from adverse.report.gate import counted
from adverse.report.tables import Cell, Table
from adverse.requirements.verdicts import WORST_FIRST, Outcome, Verdict
from adverse.text import shown

MARKS = {Outcome.PASS: "✓", Outcome.FAIL: "✗", Outcome.INCONCLUSIVE: "?"}
"""Shapes besides words, for those who see no colours."""
NAMED = 4


def requirement_answers(verdicts: Mapping[str, Sequence[Verdict]]) -> list[str]:
    """Return one sentence for each command that judged the run, naming what does not pass."""
    lines = []
    for source, found in verdicts.items():
        open_ones = [one for outcome in WORST_FIRST[:2] for one in found if one.outcome is outcome]
        named = "; ".join(f"{one.outcome}: {shown(one.name)}" for one in open_ones[:NAMED])
        more = f"; and {len(open_ones) - NAMED} more" if len(open_ones) > NAMED else ""
        rest = f" {named}{more}." if named else ""
        lines.append(f"Requirements ({shown(source)}): {counted(found) if found else 'none.'}{rest}")
    return lines


def requirement_tables(verdicts: Mapping[str, Sequence[Verdict]]) -> list[Table]:
    """Return every verdict, the worst first."""
    return [_table(source, found) for source, found in verdicts.items() if found]


def _table(source: str, found: Sequence[Verdict]) -> Table:
    ordered = sorted(found, key=lambda one: WORST_FIRST.index(one.outcome))
    rows = tuple(
        (
            Cell(f"{MARKS[one.outcome]} {one.outcome}"),
            Cell(shown(one.name, longest=300), "" if one.requirement == one.name else shown(one.requirement)),
            Cell("-" if one.required is None else f"{one.required:.4g}"),
            Cell(
                "-" if one.measured is None else f"{one.measured:.4g}",
                one.interval.text() if one.interval else "",
            ),
            Cell(shown(one.reason, longest=300)),
        )
        for one in ordered
    )
    data = tuple(
        {
            "outcome": str(one.outcome),
            "name": one.name,
            "requirement": one.requirement,
            "required": one.required,
            "measured": one.measured,
            "low": one.interval.low if one.interval else None,
            "high": one.interval.high if one.interval else None,
            "reason": one.reason,
        }
        for one in ordered
    )
    columns = ("verdict", "requirement", "required", "measured", "why")
    return Table(f"requirements {source}", f"Requirements: {shown(source)}", columns, rows, data)

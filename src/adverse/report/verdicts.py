"""Verdicts on a run: as tables, in sentences, for pull requests."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from adverse.curves.interval import interval_cells
from adverse.report.table import Cell, Column, Table, Tone, markdown_text
from adverse.requirements.verdicts import WORST_FIRST, Outcome, Verdict
from adverse.text import shown

MARKS = {Outcome.PASS: "✓", Outcome.FAIL: "✗", Outcome.INCONCLUSIVE: "?"}
"""Shapes besides words, for those who see no colours."""
TONES: dict[str, Tone] = {Outcome.PASS: "good", Outcome.FAIL: "bad", Outcome.INCONCLUSIVE: "doubt"}
NAMED = 4
"""Verdicts that a sentence names; the rest are counted."""
BELOW = "  "
"""How far lines stand in that belong to the one above."""
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
            **interval_cells("measured", verdict.interval.plain() if verdict.interval else None),
            "reason": verdict.reason,
            "remarks": "; ".join(verdict.remarks),
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
    return [verdict_table(source, worst_first(judged)) for source, judged in verdicts.items() if judged]


def worst_first(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Return the verdicts, failures before those that are open before those that pass."""
    return sorted(verdicts, key=lambda verdict: WORST_FIRST.index(verdict.outcome))


def verdict_lines(verdicts: Sequence[Verdict]) -> list[str]:
    """Return what came out of all rules, what to know of SUTs and run, and how to read it."""
    return [f"{outcome_counts(verdicts)}.", *(f"- {line}" for line in remarks_of(verdicts)), ALONE]


def terminal_lines(
    verdicts: Sequence[Verdict], *, width: int, details: bool = False, most: int | None = None
) -> list[str]:
    """Return a verdict in a line or two; below it why, where it does not pass or `details` are wanted.

    Where all of them take more than `most` lines, the worst stand first, and the last line counts the others.
    """
    parts = [_terminal_part(verdict, width, details=details) for verdict in verdicts]
    if most is None or sum(map(len, parts)) <= most:
        return [line for part in parts for line in part]
    lines: list[str] = []
    order = worst_first(verdicts)
    for number, verdict in enumerate(order):
        part = _terminal_part(verdict, width, details=details)
        if len(lines) + len(part) > most - 1 and lines:
            return [*lines, f"and {len(order) - number} more: {outcome_counts(order[number:])}; --tables"]
        lines += part
    return lines


def _terminal_part(verdict: Verdict, width: int, *, details: bool) -> list[str]:
    figure = "not measured" if verdict.measured is None else f"{verdict.measured:.4g}"
    interval = f" ({text})" if (text := _interval(verdict)) else ""
    named = verdict.name != verdict.requirement
    wanted = verdict.requirement.rpartition(" is ")[2] if named and " is " in verdict.requirement else ""
    limit = f", wanted {shown(wanted)}" if wanted else ""
    head = f"{MARKS[verdict.outcome]} {verdict.outcome} {shown(verdict.name, longest=300)}"
    lines = textwrap.wrap(f"{head}: {figure}{interval}{limit}", width, subsequent_indent=BELOW)
    more = [shown(verdict.requirement, longest=400)] if named and details else []
    if details or verdict.outcome is not Outcome.PASS:
        more += [shown(verdict.reason, longest=400)] if verdict.reason else []
    for text in more:
        lines += textwrap.wrap(text, width, initial_indent=BELOW, subsequent_indent=BELOW)
    return lines


def remarks_of(verdicts: Sequence[Verdict]) -> list[str]:
    """Return what the reader of some verdicts must know of SUTs and run, each once."""
    return list(dict.fromkeys(shown(line, longest=400) for verdict in verdicts for line in verdict.remarks))


def briefly(verdicts: Sequence[Verdict]) -> tuple[list[Verdict], list[str]]:
    """Return the verdicts in fewer words, and what was left out of all of them once."""
    brief, few = [], 0
    for verdict in verdicts:
        reasons = [part for part in verdict.reason.split("; ") if not part.startswith("rests on fewer than")]
        few += "rests on fewer than" in verdict.reason
        words = verdict.requirement.removeprefix("the lower bound of ").removeprefix("the upper bound of ")
        name = words if verdict.name == verdict.requirement else verdict.name
        brief.append(replace(verdict, name=name, requirement=words, reason="; ".join(reasons)))
    lines = ["Judged by the bound of the interval, unless the rule says bound: point."]
    return brief, lines + (
        [f"{few} of {len(verdicts)} rest on fewer than 20 logs: read with care."] if few else []
    )


def verdict_answers(verdicts: Mapping[str, Sequence[Verdict]]) -> list[str]:
    """Return one sentence for each command that judged the run, naming what does not pass."""
    lines = []
    for source, judged in verdicts.items():
        not_passed = [verdict for verdict in worst_first(judged) if verdict.outcome is not Outcome.PASS]
        named = "; ".join(f"{verdict.outcome}: {shown(verdict.name)}" for verdict in not_passed[:NAMED])
        more = f"; and {len(not_passed) - NAMED} more" if len(not_passed) > NAMED else ""
        rest = f" {named}{more}." if named else ""
        lines.append(f"{shown(source).capitalize()}: {outcome_counts(judged) or 'none'}.{rest}")
    return lines


def to_markdown(verdicts: Sequence[Verdict], *, title: str) -> str:
    """Return a Markdown summary, worst first, as a pull request shows it."""
    head = f"## {markdown_text(title)}\n\n{outcome_counts(verdicts) or 'No rule was checked.'}\n"
    table = verdict_table("rules", worst_first(verdicts))
    notes = "".join(f"- {markdown_text(line)}\n" for line in remarks_of(verdicts))
    return "\n".join([head, table.markdown(), *([notes] if notes else [])]) if verdicts else head


def _interval(verdict: Verdict) -> str:
    return verdict.interval.text() if verdict.interval else ""


def outcome_counts(verdicts: Sequence[Verdict]) -> str:
    """Say how many rules came out how."""
    count = Counter(verdict.outcome for verdict in verdicts)
    return ", ".join(f"{count[outcome]} {outcome}" for outcome in WORST_FIRST if count[outcome])

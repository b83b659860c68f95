"""A run that was stopped when its rules were settled: verdicts with repeated intervals, logs per cell."""

from __future__ import annotations

from adverse.report.layout import rendered
from adverse.report.table import Cell, Column, Table, setting_cell
from adverse.requirements.until import LookVerdict
from adverse.requirements.until_run import UntilRun, verdict_row
from adverse.requirements.verdicts import Outcome
from adverse.text import counted, shown

TONES = {"PASS": "good", "FAIL": "bad", "INCONCLUSIVE": "doubt"}


def verdict_table(run: UntilRun) -> Table:
    """Return every verdict, at which look it was settled, and its repeated interval."""
    columns = (
        Column("rule", align="left"),
        Column("verdict", align="left"),
        Column("look"),
        Column("logs"),
        Column("measured", ".3f"),
        Column("repeated interval", align="left"),
    )
    rows = tuple(_row(one) for one in run.verdicts)
    records = tuple(verdict_row(one) for one in run.verdicts)
    return Table("until", "Verdicts", columns, rows, records)


def _row(one: LookVerdict) -> tuple[Cell, ...]:
    verdict, interval = one.verdict, one.verdict.interval
    ends = "" if interval is None else interval.text(".3f")
    below = f"at this look {100 * interval.confidence:.6g}%" if interval and ends else verdict.reason
    outcome = str(verdict.outcome)
    return (
        Cell(verdict.name),
        Cell(outcome, tone=TONES[outcome]),  # type: ignore[arg-type]
        Cell(one.look, "-" if one.look is None else str(one.look)),
        Cell(sum(one.logs), f"{one.logs[0]} + {one.logs[1]}"),
        Cell(verdict.measured),
        Cell(ends or "-", details=(below,), note=verdict.reason),
    )


def cells_table(run: UntilRun) -> Table:
    """Return how many logs were used under each mutation by each SUT."""
    suts = list(run.plan.facts["suts"])
    settings = list(run.plan.facts["settings"])
    whole = sum(run.plan.counts[-1])
    columns = (Column("mutation", align="left"), *(Column(shown(sut)) for sut in suts))
    rows = tuple(
        (
            setting_cell(setting),
            *(
                Cell(used := run.logs_used.get((sut, setting), 0), tone="soft" if used == whole else "")
                for sut in suts
            ),
        )
        for setting in settings
    )
    return Table("until logs", f"Logs used, of {whole}", columns, rows)


def until_lines(run: UntilRun) -> list[str]:
    """Say that the run was stopped, what it saved, and how its intervals are to be read."""
    whole, looks = run.images_of_all, len(run.plan.counts)
    share = f"{run.images} of {whole} test images ({run.images / whole:.0%})"
    if run.images < whole:
        first = f"Stopped early, after look {run.looks} of {looks}: {share} were shown to SUTs."
    else:
        first = f"Not stopped early: all {looks} looks were needed, {share}."
    unsettled = sum(one.verdict.outcome is Outcome.INCONCLUSIVE for one in run.verdicts)
    lines = [first]
    if unsettled:
        lines.append(f"{counted(unsettled, 'verdict')} cannot be settled with all logs there are.")
    lines.append(
        "Intervals are repeated ones: those of all looks hold together with 95 %, so each is wider than that "
        "of a run that was looked at once."
    )
    return lines


def render_until(run: UntilRun) -> str:
    """Return the whole page."""
    plan = run.plan
    looks = [
        f"look {k + 1}: {positive} logs with people, {negative} without, intervals at "
        f"{plan.confidence(k):.5%}" + ("" if plan.may_pass(k) else ", no PASS yet")
        for k, (positive, negative) in enumerate(plan.counts)
    ]
    return rendered(
        "until.html",
        study=shown(run.store.run.name),
        lines=until_lines(run),
        verdicts=verdict_table(run),
        cells=cells_table(run),
        spending={"obrien-fleming": "O'Brien and Fleming's", "pocock": "Pocock's"}[plan.spending],
        looks=looks,
    )

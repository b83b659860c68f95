"""Condition limits, in the terminal and as a page: the domain in which each SUT may be operated."""

from __future__ import annotations

from collections.abc import Sequence

from adverse.analysis.headline import option_words
from adverse.report.chart import Axis, Chart, Dots, Line, Panel, PanelSize
from adverse.report.layout import rendered
from adverse.report.table import Cell, Column, Table
from adverse.report.tradeoffs import sut_style
from adverse.requirements.boundaries import Boundary, ConditionPair
from adverse.requirements.conditions import Condition
from adverse.requirements.limits import ConditionLimit, rule_name
from adverse.requirements.limits_run import StudyLimits
from adverse.requirements.rules import Rule
from adverse.text import counted, shown

ABREAST = 2
SIZE = PanelSize(760, 260, 52, 20, 16, 46)
RADIUS_PX = 4.0
READING = (
    "Below each limit: up to where the rule holds for certain (95 %), and from where on it certainly does "
    "not, among the steps that were run."
)
BETWEEN = "A drop at one single step between those that were run can be missed."


def domain_table(found: StudyLimits, rule: Rule) -> Table:
    """Return up to which strength a rule holds: a row for each condition, a column for each SUT."""
    suts = list(dict.fromkeys(one.sut for one in found.limits))
    mine = {(one.sut, one.condition.name): one for one in found.limits if one.rule is rule}
    rows = tuple(
        (Cell(condition.name), *(_cell(mine.get((sut, condition.name))) for sut in suts))
        for condition in found.conditions
    )
    records = tuple(one.plain() for one in found.limits if one.rule is rule)
    columns = (Column("condition", align="left"), *(Column(shown(sut), align="left") for sut in suts))
    title = f"{shown(rule_name(rule))} holds up to"
    return Table(f"limits {rule_name(rule)}", title, columns, rows, records)


def boundary_table(found: StudyLimits, pair: ConditionPair, rule: Rule) -> Table:
    """Return up to which strength of the first condition a rule holds at each strength of the second."""
    mine = [one for one in found.boundaries if one.pair is pair and one.rule is rule]
    columns = (
        Column(pair.second.name, align="left"),
        *(Column(shown(one.sut), align="left") for one in mine),
    )
    rows = tuple(
        (Cell(step, pair.second.words(step)), *(_boundary_cell(one, step) for one in mine))
        for step in range(len(pair.second.values) + 1)
    )
    records = tuple(row for one in mine for row in one.rows())
    name = f"limits {rule_name(rule)} {pair.name}"
    title = f"{shown(rule_name(rule))}: {pair.first.name} may go up to, by {pair.second.name}"
    return Table(name, title, columns, rows, records)


def _boundary_cell(one: Boundary, step: int) -> Cell:
    limit = one.limits[step]
    if not one.measured(step):
        return Cell(None, "not measured", details=("not defined there",), tone="doubt")
    if limit is None:
        return Cell(None, "at no strength", tone="bad")
    beyond = " and beyond" if limit == len(one.pair.first.values) else ""
    return Cell(limit, one.pair.first.words(limit) + beyond, tone="good" if beyond else "")


def boundary_chart(found: StudyLimits, pair: ConditionPair, rule: Rule) -> Chart:
    """Draw the boundary of two conditions: the rule holds below and left of the line of a SUT."""
    axes = [
        Axis(
            f"{one.name}: {option_words(one.option)}",
            (0.0, float(len(one.values))),
            tuple(map(float, range(len(one.values) + 1))),
            False,
            ("clean", *(f"{value:.3g}" for value in one.values)),
        )
        for one in (pair.first, pair.second)
    ]
    lines = []
    mine = [one for one in found.boundaries if one.pair is pair and one.rule is rule]
    for number, one in enumerate(mine):
        known = [(float(limit), float(step)) for step, limit in enumerate(one.limits) if limit is not None]
        colour, dashes, width = sut_style(number)
        x, y = [point[0] for point in known], [point[1] for point in known]
        lines.append(Line(shown(one.sut), x, y, colour, dashes, width, marked=True))
    panel = Panel("", axes[0], axes[1], lines, size=SIZE)
    return Chart(f"{rule_name(rule)} holds up to", [panel], legend_left=True)


def whole_table(found: StudyLimits) -> Table:
    """Return every limit, for machines."""
    return Table("limits", "", (), (), tuple(one.plain() for one in found.limits))


def together_table(found: StudyLimits) -> Table:
    """Return every boundary, for machines."""
    return Table("limits together", "", (), (), tuple(row for one in found.boundaries for row in one.rows()))


def limit_lines(found: StudyLimits) -> list[str]:
    """Say how the limits are to be read, what was not monotone, and what the search cost."""
    lines = [READING]
    for one in found.limits:
        if one.result.reversals:
            steps = ", ".join(one.condition.words(step) for step in one.result.reversals)
            name = shown(rule_name(one.rule))
            lines.append(
                f"{shown(one.sut)}, {one.condition.name}: not monotone, so every step was run; {name} holds "
                f"again at {steps}."
            )
    for edge in found.boundaries:
        if edge.reversals:
            name = f"{shown(edge.sut)}, {edge.pair.name}, {shown(rule_name(edge.rule))}"
            lines.append(f"{name}: not monotone, the rule holds at {edge.reversals} points beyond a failure.")
    swept = sum(len(one.condition.settings) for one in _once(found.limits))
    pairs = {(edge.sut, edge.pair.name): len(edge.pair.ids) for edge in found.boundaries}
    swept += sum(pairs.values())
    ran = counted(found.settings, "setting")
    lines.append(f"{ran} were run, all frames each, where a sweep of all steps takes {swept}.")
    if found.settings < swept:
        lines.insert(1, BETWEEN)
    return lines


def _once(limits: Sequence[ConditionLimit]) -> list[ConditionLimit]:
    """Return one limit for each SUT and condition."""
    return list({(one.sut, one.condition.name): one for one in limits}.values())


def render_limits(found: StudyLimits) -> str:
    """Return the whole page."""
    sections = [
        (
            shown(rule_name(rule)),
            domain_table(found, rule),
            [(one.name, limit_chart(found, one, rule).svg()) for one in found.conditions],
        )
        for rule in found.rules
    ]
    pairs = list({id(one.pair): one.pair for one in found.boundaries}.values())
    together = [
        (boundary_table(found, pair, rule), boundary_chart(found, pair, rule).svg())
        for rule in found.rules
        for pair in pairs
    ]
    lines = limit_lines(found)
    return rendered(
        "limits.html", study=shown(found.study), lines=lines, sections=sections, together=together
    )


def limit_chart(found: StudyLimits, condition: Condition, rule: Rule) -> Chart:
    """Draw what was measured at the steps that were run, and the limit of the rule."""
    steps = len(condition.values)
    names = ("clean", *(f"{value:.3g}" for value in condition.values))
    ticks = tuple(map(float, range(steps + 1)))
    across = Axis(option_words(condition.option), (0.0, float(steps)), ticks, False, names)
    lines, dots, values = [], [], [rule.limit or 0.0, 1.0, 0.0]
    mine = [one for one in found.limits if one.rule is rule and one.condition is condition]
    for number, one in enumerate(mine):
        known = {step: value for step, value in sorted(one.values.items()) if value is not None}
        values += known.values()
        colour, dashes, width = sut_style(number)
        lines.append(
            Line(shown(one.sut), list(known), list(known.values()), colour, dashes, width, marked=True)
        )
        if one.result.limit is not None and one.result.limit in known:
            place = [one.result.limit], [known[one.result.limit]]
            dots.append(Dots(f"{shown(one.sut)}: limit", *place, [2 * RADIUS_PX], colour))
    limit = rule.limit or 0.0
    lines.append(Line("rule", (0.0, float(steps)), (limit, limit), "#555", "6 4", 1.0))
    top = max(values)
    up = (0.0, 0.25, 0.5, 0.75, 1.0) if top <= 1.0 else (0.0, top / 2, top)
    panel = Panel("", across, Axis(rule.measure, (0.0, up[-1]), up), lines, (), dots, size=SIZE)
    return Chart(f"{rule_name(rule)} under {condition.name}", [panel], legend_left=True)


def _cell(one: ConditionLimit | None) -> Cell:
    if one is None:
        return Cell(None, "-", tone="soft")
    found, condition = one.result, one.condition
    steps = len(condition.values)
    if one.values.get(0) is None:
        return Cell(None, "not measured", details=("not defined on clean images",), tone="doubt")
    words = condition.words(found.limit)
    if found.limit == steps:
        words += " and beyond"
    tone = "bad" if found.limit is None else "good" if found.limit == steps else ""
    certain = (
        "not certain anywhere"
        if found.certain_to is None
        else f"certain to {_short(condition, found.certain_to)}"
    )
    fails = "" if found.fails_from is None else f"fails from {_short(condition, found.fails_from)}"
    return Cell(
        found.limit,
        words,
        details=tuple(part for part in (certain, fails) if part),
        marks=" (not monotone)" if found.reversals else "",
        tone=tone,  # type: ignore[arg-type]
        note=f"{found.evaluations} of {steps} steps were run",
    )


def _short(condition: Condition, step: int) -> str:
    return "clean" if step == 0 else f"{condition.values[step - 1]:.4g}"

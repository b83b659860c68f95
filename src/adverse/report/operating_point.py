"""Operating points, in the terminal and as a page: the threshold to set, what it costs, how sure that is."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from adverse.analysis.score import ANY_MILD
from adverse.curves.interval import Interval, interval_cells
from adverse.curves.operating_point import POWER
from adverse.report.chart import BLANK, Axis, Band, Chart, Line, Mark, Panel, PanelSize
from adverse.report.intervals import interval_text
from adverse.report.layout import rendered
from adverse.report.table import Cell, Column, Table, setting_cell
from adverse.report.verdicts import MARKS, TONES
from adverse.requirements.operating_results import (
    OperatingPoints,
    PointFigures,
    RateAtPoint,
    SutOperatingPoint,
)
from adverse.requirements.rules import Rule
from adverse.requirements.verdicts import Outcome
from adverse.text import counted, setting_text, shown

SIZE = PanelSize(760, 264, 52, 20, 34, 46)
EDGE = 0.9
"""Part of the axis beyond which a word has no room to the right of its line."""
UNIT_TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)
RATE_COLOUR, EFFICIENCY_COLOUR = "#b2182b", "#2166ac"
ALL_OF_THEM = "every detection"
BAD_LOGS = "logs that end badly"
BRIEF = {BAD_LOGS: "end badly", "efficiency": "efficient"}
"""Headings that fit a narrow terminal."""
SAFEST = "The logs that choose are too few for a more efficient one."


def operating_table(found: OperatingPoints) -> Table:
    """Return two rows for each SUT and level: the threshold that was chosen, and the present one."""
    rows, records = [], []
    for point in found.points:
        for word, figures in (("chosen", point.chosen), ("present", point.present)):
            driven = f": {figures.operation.words()}" if _several_operations(found) else ""
            rows.append((Cell(f"{_title(found, point)}, {word}{driven}"), *_cells(figures)))
            records.append({"sut": point.sut, "level": point.level, "which": word, **_record(figures)})
    groups = dict.fromkeys(range(0, len(rows), 2), "")
    columns = _columns("SUT and threshold")
    return Table("operating point", "Operating points", columns, tuple(rows), tuple(records), groups)


def in_terminal(found: OperatingPoints) -> Table:
    """Return the same with intervals beside the rates and nowhere else, a line for each threshold."""
    table = operating_table(found)
    place = table.headings.index(BAD_LOGS)
    rows = tuple(
        tuple(
            _in_one_line(cell) if number == place else replace(cell, details=())
            for number, cell in enumerate(row)
        )
        for row in table.rows
    )
    return replace(table, title="", rows=rows)


def _in_one_line(cell: Cell) -> Cell:
    return replace(cell, text=" ".join((cell.text or "", *cell.details)), details=())


def condition_table(found: OperatingPoints, point: SutOperatingPoint) -> Table:
    """Return the threshold that each condition alone would have, and what the one for all costs there."""
    rows = tuple(
        (
            setting_cell(one.setting),
            *_cells(one.own),
            _rate_cell(one.shared.rates),
            _efficiency_cell(one.shared.efficiency),
        )
        for one in point.conditions
    )
    title = (
        f"{_title(found, point)}: the threshold by condition, and the one for all ({_score(point.chosen)})"
    )
    shared = (
        Column(f"{BAD_LOGS}, one for all", brief="end badly, one for all"),
        Column("efficiency, one for all", brief="efficient, one for all"),
    )
    columns = (
        *(replace(column, brief=BRIEF.get(column.heading, "")) for column in _columns("condition")),
        *shared,
    )
    name = f"conditions {point.sut} {point.level}"
    return Table(name, title, columns, rows, tuple(_condition_records(point)))


def pareto_table(found: OperatingPoints, point: SutOperatingPoint) -> Table:
    """Return the points that no other beats, by rising safety."""
    rows = tuple(
        (
            Cell(one.operation.words()),
            Cell(_plain(one.threshold), _threshold(one.threshold)),
            Cell(one.safety),
            Cell(one.efficiency),
        )
        for one in point.pareto.points
    )
    heads = {"sut": point.sut, "level": point.level}
    records = tuple(
        {
            **heads,
            **vars(one.operation),
            "threshold": _plain(one.threshold),
            "safety": one.safety,
            "efficiency": one.efficiency,
        }
        for one in point.pareto.points
    )
    columns = (
        Column("top speed, control radius, images in a row", align="left"),
        Column("threshold"),
        Column("worst safety", ".3f"),
        Column("worst efficiency", ".3f"),
    )
    title = f"{_title(found, point)}: {pareto_words(point)}"
    return Table(f"pareto {point.sut} {point.level}", title, columns, rows, records)


def pareto_words(point: SutOperatingPoint) -> str:
    """Say what all operations dominate, beside the threshold alone."""
    pareto = point.pareto
    if pareto.hypervolume is None or pareto.threshold_alone is None:
        return "no Pareto set: safety or efficiency is not defined"
    return (
        f"{counted(len(pareto.points), 'point')} that no other beats; hypervolume {pareto.hypervolume:.3f}, "
        f"with the threshold alone {pareto.threshold_alone:.3f}"
    )


def whole_table(found: OperatingPoints) -> Table:
    """Return every SUT, level and condition with its own threshold and the one for all, for machines."""
    records = tuple(record for point in found.points for record in _condition_records(point))
    return Table("operating points by condition", "", (), (), records)


def _condition_records(point: SutOperatingPoint) -> Iterator[dict[str, object]]:
    for one in point.conditions:
        shared = {f"shared_{name}": value for name, value in _record(one.shared).items()}
        yield {"sut": point.sut, "level": point.level, "setting": one.setting, **_record(one.own), **shared}


def operating_lines(found: OperatingPoints) -> list[str]:
    """Say for each SUT what follows, then how the logs were used."""
    lines = [sentence(found, point) for point in found.points]
    if found.points:
        logs = found.points[0].logs
        lines.append(
            f"{logs.choice_positive} logs with people and {logs.choice_negative} without choose, "
            f"{logs.check_positive} and {logs.check_negative} others check (seed {found.seed}); a rule holds "
            "where the upper end of the 95 % interval keeps it."
        )
    if _several_operations(found):
        lines += [f"{_title(found, point)}: {pareto_words(point)}." for point in found.points]
    if found.unused:
        names = ", ".join(dict.fromkeys(rule.measure for rule in found.unused))
        lines.append(f"Rules that have no say in a threshold here: {names}; see adverse check.")
    return lines


def sentence(found: OperatingPoints, point: SutOperatingPoint) -> str:
    """Return what follows for one SUT: set this threshold, or why not, and what would settle it."""
    who, chosen = _title(found, point), point.chosen
    worst = max(chosen.rates, key=_beyond)
    if chosen.outcome is Outcome.PASS:
        unsure = "" if point.chance >= POWER else f" {SAFEST}"
        driven = f" and drive at {chosen.operation.words()}" if _several_operations(found) else ""
        words = f"{_rate_words(worst)}{_gain_words(point)}.{unsure}"
        return f"{who}: set the threshold to {_score(chosen)}{driven}: {words}"
    if chosen.outcome is Outcome.FAIL:
        return (
            f"{who}: the rules cannot be kept: {_rate_words(worst)} at {_score(chosen)}"
            f"{f'; {chosen.reason}' if chosen.reason else ''}."
        )
    return f"{who}: not certain yet at {_score(chosen)}: {_rate_words(worst)}. {_needed_words(point)}"


def _needed_words(point: SutOperatingPoint) -> str:
    have = point.logs.check_positive
    if point.needed is None:
        return "More logs alone are not expected to help: the measured rate is not below the limit."
    if point.needed <= have:
        return f"{point.chosen.reason.capitalize()}."
    return (
        f"With {point.needed} logs with people to check on ({point.needed - have} more, and as many to "
        f"choose) it would pass {POWER:.0%} of the time, if the rate is what was measured."
    )


def _gain_words(point: SutOperatingPoint) -> str:
    gain, present = point.gain, point.present
    same = point.chosen.operation == present.operation
    if same and math.isclose(point.chosen.threshold, present.threshold):
        return "; it is the present one"
    if gain is None or gain.value is None:
        return ""
    ends = interval_text(gain.low, gain.high, "+.2f", status=gain.status)
    worst = max(present.rates, key=_beyond)
    return (
        f"; the present {_score(present)} comes to {_share(worst.rate)}, and efficiency changes by "
        f"{gain.value:+.2f}" + (f" ({ends})" if ends else "")
    )


def _rate_words(rate: RateAtPoint) -> str:
    under = f" under {setting_text(rate.setting)}" if rate.setting else " to be expected"
    return f"{rate.words}: {_share(rate.rate)}{under}"


def _share(rate: Interval) -> str:
    if rate.value is None:
        return "insufficient"
    ends = interval_text(rate.low, rate.high, status=rate.status)
    return f"{rate.value:.2f}" + (f" ({ends})" if ends else "")


def _beyond(rate: RateAtPoint) -> float:
    return (1.0 if rate.rate.high is None else rate.rate.high) - rate.at_most


def render_operating_points(found: OperatingPoints) -> str:
    """Return the whole page."""
    several = _several_levels(found)
    return rendered(
        "operating_point.html",
        study=shown(found.study),
        rules=[rule_words(rule) for rule in found.rules],
        lines=operating_lines(found),
        table=operating_table(found),
        suts=[
            (
                _title(found, point) if several else shown(point.sut),
                operating_chart(point).svg(),
                condition_table(found, point),
                pareto_table(found, point) if _several_operations(found) else None,
            )
            for point in found.points
        ],
    )


def rule_words(rule: Rule) -> str:
    """Return a rule in words."""
    limit = f"at least {rule.at_least:g}" if rule.at_least is not None else f"at most {rule.at_most:g}"
    if rule.conditions is not None:
        parts = ", ".join(f"{setting_text(name)} {chance:g}" for name, chance in rule.conditions.items())
        return f"{rule.words.rstrip(',')}, to be expected of {parts}: {limit}"
    under = "each mild mutation" if rule.setting == ANY_MILD else setting_text(rule.setting or "")
    return f"{rule.words.rstrip(',')}, under {under}: {limit}"


def operating_chart(point: SutOperatingPoint) -> Chart:
    """Draw the logs that end badly and the efficiency over all thresholds, on the logs that check."""
    curve, first = point.curve, point.chosen.rates[0]
    places = list(range(len(curve.sensitivity)))
    tick_at = [round(part * (len(places) - 1)) for part in (0.0, 0.25, 0.5, 0.75, 1.0)]
    names = tuple(f"{curve.sensitivity[place]:.2g}" for place in tick_at)
    ends = (0.0, max(len(places) - 1.0, 1.0))
    across = Axis(
        "false positives per clean validation image", ends, tuple(map(float, tick_at)), False, names
    )
    bad = [1.0 if math.isnan(value) else value for value in curve.rate]
    lines = (
        Line(f"{first.words.partition(' at most')[0]}, worst condition", places, bad, RATE_COLOUR),
        Line("efficiency", places, curve.efficiency, EFFICIENCY_COLOUR),
        Line("limit", ends, (first.at_most, first.at_most), RATE_COLOUR, "6 4", 1.0),
    )
    band = Band("up to the upper end of the interval", places, bad, curve.high, RATE_COLOUR)
    at = {
        word: float(curve.threshold.index(figures.threshold))
        for word, figures in (("chosen", point.chosen), ("present", point.present))
    }  # the present threshold has its place on the chosen operation's curve, too
    after = "chosen" if at["chosen"] > at["present"] else "present"
    marks = [
        Mark(word, place, above=True, side="right" if word == after and across.part(place) < EDGE else "left")
        for word, place in at.items()
    ]
    panel = Panel("", across, Axis("share", (0.0, 1.0), UNIT_TICKS), lines, marks, (), (band,), size=SIZE)
    return Chart(f"{point.sut}: what each threshold comes to", [panel], legend_left=True)


def _columns(first: str) -> tuple[Column, ...]:
    return (
        Column(first, align="left"),
        Column("threshold"),
        Column(BAD_LOGS),
        Column("efficiency"),
        Column("check", align="left", no_wrap=True),
    )


def _cells(figures: PointFigures) -> tuple[Cell, ...]:
    return (
        Cell(
            _plain(figures.threshold), _score(figures), details=(f"{figures.sensitivity:.2g} FP per image",)
        ),
        _rate_cell(figures.rates),
        _efficiency_cell(figures.efficiency),
        Cell(
            str(figures.outcome),
            f"{MARKS[figures.outcome]}{BLANK}{figures.outcome}",
            tone=TONES[figures.outcome],
            note=figures.reason,
        ),
    )


def _rate_cell(rates: Sequence[RateAtPoint]) -> Cell:
    worst = max(rates, key=_beyond)
    if worst.rate.value is None:
        return Cell(None, "insufficient", note=worst.rate.why, tone="soft")
    ends = interval_text(worst.rate.low, worst.rate.high, status=worst.rate.status)
    note = setting_text(worst.setting) if worst.setting else "to be expected"
    return Cell(worst.rate.value, f"{worst.rate.value:.2f}", details=(ends,) if ends else (), note=note)


def _efficiency_cell(efficiency: Interval) -> Cell:
    if efficiency.value is None:
        return Cell(None, "insufficient", note=efficiency.why, tone="soft")
    ends = interval_text(efficiency.low, efficiency.high, status=efficiency.status)
    return Cell(efficiency.value, f"{efficiency.value:.2f}", details=(ends,) if ends else ())


def _record(figures: PointFigures) -> dict[str, object]:
    record: dict[str, object] = {
        "threshold": _plain(figures.threshold),
        "sensitivity": _plain(figures.sensitivity),
        "outcome": str(figures.outcome),
        "reason": figures.reason,
    }
    for number, one in enumerate(figures.rates):
        name = "bad_logs" if number == 0 else f"bad_logs_{number + 1}"
        record |= {f"{name}_rule": one.words, f"{name}_setting": one.setting, name: one.rate.value}
        record |= interval_cells(name, one.rate.plain())
    efficiency = figures.efficiency
    record |= {"efficiency": efficiency.value, "efficiency_setting": figures.efficiency_setting}
    return record | interval_cells("efficiency", efficiency.plain())


def _plain(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _score(figures: PointFigures) -> str:
    return _threshold(figures.threshold)


def _threshold(score: float) -> str:
    if math.isfinite(score):
        return f"{score:.3g}"
    return ALL_OF_THEM if score < 0 else "no detection"


def _several_operations(found: OperatingPoints) -> bool:
    return found.operations > 1


def _several_levels(found: OperatingPoints) -> bool:
    return len({point.level for point in found.points}) > 1


def _title(found: OperatingPoints, point: SutOperatingPoint) -> str:
    return f"{shown(point.sut)} at {point.level}" if _several_levels(found) else shown(point.sut)

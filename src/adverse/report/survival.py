"""How much of the clean performance survives: one chart for all SUTs and conditions, with its numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from adverse.analysis.headline import Condition, Headline, Survival
from adverse.analysis.results import Summary
from adverse.analysis.score import ANY, ANY_MILD
from adverse.report.chart import COLOURS, Axis, Chart, Dots, Line, Mark, Panel, PanelSize
from adverse.report.intervals import FEW_LOGS, interval_or_reason, interval_text
from adverse.report.run_tables import area_words, level_label, marked_name
from adverse.report.table import Cell, Column, Table
from adverse.requirements.rules import Rule
from adverse.text import SCORE_WORDS, apart, counted, short_words, shown

MOST_SUTS, MOST_ROWS, FEW_SUTS = 5, 10, 3
ROW_PX, CHART_PX, LEGEND_PX = 14, 405, 22
ABREAST = 2
"""Names of SUTs that stand beside each other above the chart."""
SHORT_NAME, LONGEST_NAME = 18, 44
"""Characters of names that have room beside each other, and of one that has a line of its own."""
OVER_THE_EDGE = 1.005
"""A share that is read as more than 100%."""
WIDTHS = {"wide": (640, 204), "narrow": (372, 150)}
"""Width of the chart, and of the names in it at most, on a desk and on a phone."""
LETTER_PX, LEAST_NAMES_PX = 7, 90
MEANS = {"mean_iou": "overlap with the truth", "top1": "the first guess is right"}
"""What the scores of segmenters and classifiers mean."""
SHARES, MOST_LIMITS = ("robustness", "share"), 2
"""Measures of what survives, and how many limits of theirs are drawn."""
RIGHTMOST = 0.7
"""A limit up to which its words fit right of its line."""


@dataclass(frozen=True)
class SurvivalFigure:
    """What survives at one level, drawn for wide and for narrow screens, with its numbers."""

    level: str
    label: str
    """The level in plain words, with the name of its variant."""
    words: str
    lines: str
    """What the lines and marks mean."""
    drawings: Mapping[str, str]
    legend: tuple[tuple[str, str, int, str], ...]
    """Name, colour, symbol and clean figure of each SUT."""
    left_out: str
    numbers: Table


class Limit(NamedTuple):
    """The least share that a rule asks for, and under which conditions it does."""

    share: float
    conditions: frozenset[str]


def limits_of(rules: Sequence[Rule], head: Headline, mild: frozenset[str]) -> list[Limit]:
    """Return the limits of rules about the shares of a level, each where it applies: lines in its chart."""
    found: dict[float, set[str]] = {}
    for rule in rules:
        of_level = rule.level in (None, head.level, head.level.partition("/")[0])
        if rule.measure not in SHARES or rule.at_least is None or not of_level:
            continue
        names = {condition.name for condition in head.conditions if _applies(rule, condition, mild)}
        if names:
            found.setdefault(rule.at_least, set()).update(names)
    return [Limit(share, frozenset(found[share])) for share in sorted(found)[:MOST_LIMITS]]


def _applies(rule: Rule, condition: Condition, mild: frozenset[str]) -> bool:
    """Tell whether a rule is about a row of the chart, which shows the worst strength of a mutation."""
    if rule.setting in (None, ANY):
        return True
    worst = {one.worst_setting for one in condition.by_sut.values()}
    return bool(worst & mild) if rule.setting == ANY_MILD else rule.setting in (*worst, condition.name)


def mild_settings(summary: Summary) -> frozenset[str]:
    """Return the ids of the mild settings that were run."""
    return frozenset(str(row["setting"]) for row in summary.rows if row.get("group") == "mild")


def survival_figure(head: Headline, summary: Summary, limits: Sequence[Limit] = ()) -> SurvivalFigure:
    """Return what every SUT keeps of its clean figure under each condition, the most harmful first."""
    suts = sorted(head.clean, key=lambda sut: -(head.clean[sut] or 0.0))
    drawn = suts[:MOST_SUTS]
    names = apart([marked_name(summary, sut) for sut in drawn], longest=LONGEST_NAME)
    abreast = ABREAST if max(map(len, names), default=0) <= SHORT_NAME else 1
    room = CHART_PX - LEGEND_PX * -(-(len(drawn) + 1) // abreast)  # the last says what the lines are
    most = min(MOST_ROWS, room // _row_px(len(drawn)))
    rows = head.conditions[:most]
    left_out = [
        *([counted(len(suts) - MOST_SUTS, "more system")] if len(suts) > MOST_SUTS else []),
        *(
            [counted(len(head.conditions) - most, "less harmful condition")]
            if len(head.conditions) > most
            else []
        ),
    ]
    legend = tuple(
        (
            names[number],
            COLOURS[number],
            number % 3,
            _clean_words(head, sut, summary.data["counts"][sut]),
        )
        for number, sut in enumerate(drawn)
    )
    words = _measure_words(head, summary)
    if any(row.settings > 1 for row in rows):
        words += " At the worst strength of each."
    drawings = {kind: _chart(rows, drawn, *widths, limits).svg() for kind, widths in WIDTHS.items()}
    shares = [one.share for row in rows for sut in drawn if (one := row.by_sut.get(sut))]
    if any(share is not None and share > OVER_THE_EDGE for share in shares):
        words += " More than 100% is drawn at the edge."
    label = level_label(summary, head.level)
    return SurvivalFigure(
        head.level,
        label,
        words,
        _lines_words(head),
        drawings,
        legend,
        " and ".join(left_out),
        _numbers(head, suts),
    )


def _clean_words(head: Headline, sut: str, counts: Mapping[str, int]) -> str:
    clean = head.clean[sut]
    words = "-" if clean is None else f"{clean:.2f}{'?' if sut in head.incomplete else ''}"
    if ends := interval_or_reason(head.clean_intervals.get(sut)):
        words += f" ({ends})"
    if sut in head.incomplete:
        words += ", incomplete: frames could not be used"
    return f"{words}, failed on {counts['fault']} of {counts['planned']} images" if counts["fault"] else words


def _measure_words(head: Headline, summary: Summary) -> str:
    """Say what is measured, in one sentence without jargon."""
    if not head.level:
        metric = str(summary.data["metric"])
        score = SCORE_WORDS[metric]
        return f"{score[0].upper()}{score[1:]} ({MEANS[metric]})."
    return f"Area of {area_words(summary, head.level)}."


def doubt_mark(one: Survival) -> str:
    """Return the mark of a figure that rests on less than was planned."""
    return "?" if one.status == "incomplete" else ""


def _parts(
    limit: Limit, rows: Sequence[Condition], places: Sequence[float]
) -> tuple[tuple[float, float], ...]:
    """Return the rows beside which a limit is drawn; none where it is of all."""
    mine = [place for row, place in zip(rows, places, strict=True) if row.name in limit.conditions]
    return () if len(mine) == len(rows) else tuple((place - 0.5, place + 0.5) for place in mine)


def _chart(
    rows: Sequence[Condition], suts: Sequence[str], width: int, most_px: int, limits: Sequence[Limit]
) -> Chart:
    count = len(rows)
    names_px = min(most_px, max(LEAST_NAMES_PX, LETTER_PX * (1 + max(len(row.words) for row in rows))))
    top = 20 if limits else 6
    size = PanelSize(width, 6 + top + 24 + count * _row_px(len(suts)), names_px, 18, top, 24)
    places = [float(count - 1 - number) for number in range(count)]
    longest = most_px // LETTER_PX
    y = Axis(
        "",
        (-0.5, count - 0.5),
        tuple(places),
        names=tuple(_row_words(row, longest) for row in rows),
        striped=True,
    )
    ticks = (0.0, 0.25, 0.5, 0.75, 1.0)
    x = Axis("", (0.0, 1.0), ticks, names=tuple(f"{tick:.0%}" for tick in ticks))
    lines, dots = [], []
    spread = 0.3 if len(suts) > 1 else 0.0
    for number, sut in enumerate(suts):
        away = spread * (1 - 2 * number / max(len(suts) - 1, 1))
        shares = [row.by_sut.get(sut) for row in rows]
        ends = [_ends(one.interval) if one else (math.nan, math.nan) for one in shares]
        at = np.repeat([place + away for place in places], 3)
        reach = [end for low, high in ends for end in (low, high, math.nan)]
        lines.append(
            Line(f"{shown(sut)}, 95 % interval", reach, at, COLOURS[number], width=2.4, opacity=0.45)
        )
        known = [math.nan if one is None or one.share is None else min(one.share, 1.0) for one in shares]
        dots.append(
            Dots(
                shown(sut),
                known,
                [place + away for place in places],
                np.full(count, 4.0),
                COLOURS[number],
                number % 3,
            )
        )
    marks = [
        Mark(
            f"rule: at least {limit.share:.0%}",
            limit.share,
            "#d55e00",
            "4 3",
            side="right" if number and limit.share <= RIGHTMOST else "left",
            above=True,
            parts=_parts(limit, rows, places),
        )
        for number, limit in enumerate(limits)
    ]
    panel = Panel("", x, y, lines, marks, dots, size=size)
    return Chart("How much of the clean performance survives", [panel], standing_alone=False, font_px=13)


def _row_px(suts: int) -> int:
    """Return the height of a row; those of many SUTs stand closer, so that more of them fit a screen."""
    return ROW_PX + suts * (8 if suts <= FEW_SUTS else 7)


def _row_words(row: Condition, longest: int) -> str:
    return short_words(shown(row.words, longest=None), longest=longest - 1)


def _lines_words(head: Headline) -> str:
    """Say what the lines of the chart are, and the mark of the figures beside the names."""
    few = any(interval and interval["status"] == FEW_LOGS for interval in head.clean_intervals.values())
    return f"lines: 95 % intervals{'; ~ few logs' if few else ''}"


def _ends(interval: Mapping[str, Any] | None) -> tuple[float, float]:
    if not interval or interval["low"] is None:
        return math.nan, math.nan
    return interval["low"], min(interval["high"], 1.0)


def _numbers(head: Headline, suts: Sequence[str]) -> Table:
    rows, records = [], []
    for condition in (*head.conditions, *head.worst):
        cells = [Cell(condition.words)]
        for sut in suts:
            one = condition.by_sut.get(sut)
            if one is None or one.share is None:
                cells.append(Cell(None, one.undefined if one else "-", tone="soft"))
                continue
            cells.append(
                Cell(
                    one.share,
                    f"{one.share:.0%}",
                    details=(_percent_interval(one.interval),),
                    share=one.share,
                    marks=doubt_mark(one),
                )
            )
            records.append(
                {
                    "level": head.level,
                    "condition": condition.name,
                    "settings": condition.settings,
                    "sut": sut,
                    "value": one.value,
                    "share": one.share,
                    "share_low": (one.interval or {}).get("low"),
                    "share_high": (one.interval or {}).get("high"),
                    "worst_setting": one.worst_setting,
                }
            )
        rows.append(tuple(cells))
    headings = (Column("condition", align="left"), *(Column(sut) for sut in suts))
    name = f"survives {head.level}".strip()
    return Table(name, "Share of the clean figure that survives", headings, tuple(rows), tuple(records))


def _percent_interval(interval: Mapping[str, Any] | None) -> str:
    if not interval or interval["low"] is None:
        return interval_or_reason(interval)
    return interval_text(interval["low"], interval["high"], ".0%", status=interval["status"])

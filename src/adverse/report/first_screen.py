"""The first screen of a report: the verdict, what survives, how the robot stops, one failure, the gaps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from adverse.analysis.fault_rates import fault_remarks
from adverse.analysis.headline import (
    Condition,
    Headline,
    Stopping,
    Survival,
    headline,
    headline_levels,
    setting_names,
    stopping,
)
from adverse.analysis.results import Summary
from adverse.analysis.score import ANY, ANY_MILD
from adverse.mutations.hazards import HazardCoverage
from adverse.report.chart import COLOURS, Axis, Chart, Dots, Line, Mark, Panel, PanelSize
from adverse.report.galleries import Failure
from adverse.report.intervals import interval_or_reason, interval_text
from adverse.report.run_tables import marked_name
from adverse.report.table import Cell, Column, Table
from adverse.report.verdicts import MARKS, TONES, worst_first
from adverse.requirements.gate import BOUNDS, rules_of
from adverse.requirements.rules import Rule
from adverse.requirements.verdicts import Verdict
from adverse.store.run import Run
from adverse.text import SCORE_WORDS, counted, shown

CHIPS = 4
"""Rules, or conditions, that the banner names."""
MOST_SUTS, MOST_ROWS = 5, 10
ROW_PX, SUT_PX, CHART_PX, LEGEND_PX = 16, 9, 390, 22
OVER_THE_EDGE = 1.005
"""A share that is read as more than 100%."""
WIDTHS = {"wide": (640, 150), "narrow": (372, 140)}
"""Width of the chart and of the names in it, on a desk and on a phone."""
NOUNS = {"detection": "detector", "segmentation": "segmenter", "classification": "classifier"}
CAUTIONS = 4
"""Lines about SUTs that failed or were retried; the rest stand under data quality."""
UNTESTED_NAMED = 3
"""Mutations that were not run and are named as examples."""
UNCHECKED = "NO RULES"
SHARES, MOST_LIMITS = ("robustness", "share"), 2
"""Measures of what survives, and how many limits of theirs are drawn."""
RIGHTMOST = 0.7
"""A limit up to which its words fit right of its line."""
LONGEST_RULE = 120
NAMED_CLASSES = 3
LOSES_NOTHING = 0.995
"""A share from here on is shown as 100 %."""


@dataclass(frozen=True)
class Chip:
    """A rule and what came of it, or a condition and what it costs."""

    mark: str
    words: str
    detail: str
    tone: str


@dataclass(frozen=True)
class Banner:
    """The verdict on the run; without rules, what costs most."""

    outcome: str
    tone: str
    chips: tuple[Chip, ...]
    more: int


@dataclass(frozen=True)
class SurvivalFigure:
    """What survives at one level, drawn for wide and for narrow screens, with its numbers."""

    level: str
    words: str
    drawings: Mapping[str, str]
    legend: tuple[tuple[str, str, int, str], ...]
    """Name, colour, symbol and clean figure of each SUT."""
    left_out: str
    numbers: Table


@dataclass(frozen=True)
class FirstScreen:
    """All that is placed on it."""

    question: str
    tested: str
    banner: Banner
    figures: tuple[SurvivalFigure, ...]
    stops: Stopping | None
    stop_words: str
    failure: Failure | None
    failure_words: str
    untested: str
    cautions: tuple[str, ...]
    """What failed, was retried or could not be reached, for each SUT."""


def first_screen(
    summary: Summary,
    run: Run,
    verdicts: Mapping[str, Sequence[Verdict]],
    failure: Failure | None,
    coverage: HazardCoverage,
    rules: Sequence[Rule] = (),
) -> FirstScreen:
    """Return the first screen of a run; `rules` are those that the verdicts are about."""
    levels = headline_levels(summary) or [""]
    heads = [headline(summary, run, level) for level in levels]
    stops, logs = stopping(summary, run), _test_logs(summary, run)
    judged = [verdict for group in verdicts.values() for verdict in group]
    return FirstScreen(
        _question(summary, run, driven=stops is not None),
        _tested(run, logs),
        _verdict_banner(judged) if judged else _cost_banner(heads[0], logs, _recall_falls(summary, run)),
        tuple(
            survival_figure(head, summary, _limits(rules, head, _mild(summary)))
            for head in heads
            if head.conditions
        ),
        stops,
        _stop_words(stops) if stops else "",
        failure,
        _failure_words(failure) if failure else "",
        _untested(summary, coverage),
        _cautions(summary),
    )


def _cautions(summary: Summary) -> tuple[str, ...]:
    """Return what the figures of SUTs do not show; of many, the first few, and how many more there are."""
    lines = [
        shown(line, longest=200)
        for sut, counts in summary.data["counts"].items()
        for line in fault_remarks(sut, counts)
    ]
    more = len(lines) - CAUTIONS
    return (*lines[:CAUTIONS], *([f"{more} more of this kind"] if more > 0 else []))


def _question(summary: Summary, run: Run, *, driven: bool) -> str:
    name, noun = shown(summary.data["study"]), NOUNS[str(summary.data["task"])]
    if len(run.suts) == 1:
        return f"{name}: what breaks {shown(run.suts[0].name)}?"
    return f"{name}: which {noun} may drive?" if driven else f"{name}: which {noun} holds up?"


def _test_logs(summary: Summary, run: Run) -> int:
    """Return how many logs the figures rest on: those of the test split, not all of the data."""
    known = [int(row["logs"]) for row in summary.rows if row["group"] == "baseline" and row.get("logs")]
    return max(known, default=run.data.logs)


def _tested(run: Run, logs: int) -> str:
    judged = [shown(name) for name in run.targets]
    more = f" and {len(judged) - NAMED_CLASSES} more" if len(judged) > NAMED_CLASSES else ""
    kind = "class" if len(judged) == 1 else "classes"
    parts = (
        counted(len(run.suts), "system"),
        *([f"{kind} {', '.join(judged[:NAMED_CLASSES])}{more}"] if run.task == "detection" else []),
        counted(len(run.mutations), "condition"),
        counted(logs, "test log"),
        f"{run.data.frames.get('test', 0):,} test frames",
    )
    return ", ".join(parts)


def _verdict_banner(judged: Sequence[Verdict]) -> Banner:
    rules = {rule.folded: (name, len(rule.verdicts)) for name, rule in rules_of(judged)}
    order = worst_first(list(rules))
    outcome = order[0].outcome
    chips = tuple(_rule_chip(one, *rules[one]) for one in order[:CHIPS])
    return Banner(str(outcome), TONES[outcome], chips, max(0, len(order) - CHIPS))


def _rule_chip(verdict: Verdict, name: str, count: int) -> Chip:
    """Return a rule by the verdict that decides; of a rule over many mutations it says which that is."""
    detail = _measured(verdict)
    if count > 1:
        worst = verdict.name.removeprefix(name).strip().removeprefix("under ").removeprefix("on ")
        detail += f"; the worst of {count}: {shown(worst, longest=LONGEST_RULE)}"
    return Chip(MARKS[verdict.outcome], _rule_words(verdict, name), detail, TONES[verdict.outcome])


def _rule_words(verdict: Verdict, words: str) -> str:
    """Return the name of a rule; of one without a name what it is about, as its limit stands below."""
    if words == verdict.requirement:
        for bound in BOUNDS.values():
            words = words.removeprefix(bound)
        words = words.rpartition(" is at ")[0] or words
    return shown(words, longest=LONGEST_RULE)


def _measured(verdict: Verdict) -> str:
    if verdict.measured is None:
        return shown(verdict.reason, longest=LONGEST_RULE)
    text = f"{verdict.measured:.3g}"
    if verdict.interval is not None and (inner := verdict.interval.text(".3g")):
        text += f" ({inner})"
    return text if verdict.required is None else f"{text}, rule {verdict.required:.3g}"


Cost = tuple[Condition, str, Survival]


def _cost_banner(head: Headline, logs: int, falls: Sequence[Chip] = ()) -> Banner:
    """Return the conditions that cost most, with the SUT that each leaves least; none that costs nothing.

    Of those the certain ones come first, the others are marked. `falls` are told in place of shares where no
    SUT has any, as the clean figures are 0.
    """
    costs: list[Cost] = [
        (condition, *min(mine, key=lambda pair: (pair[1].share, pair[1].most)))
        for condition in head.conditions
        if (mine := [(sut, one) for sut, one in condition.by_sut.items() if one.share is not None])
    ]
    if not costs and head.conditions and not any(head.clean.values()):
        return Banner(UNCHECKED, "", tuple(falls)[:CHIPS], 0)
    costs = sorted(
        (cost for cost in costs if (cost[2].share or 0.0) < LOSES_NOTHING),
        key=lambda cost: (cost[2].share, cost[2].most),
    )
    chosen = costs[:CHIPS]
    certain = [cost for cost in costs if cost[2].tells and cost[2].most < LOSES_NOTHING]
    if certain and not any(cost in chosen for cost in certain):
        chosen = [*chosen[:-1], certain[0]]
    chosen.sort(key=lambda cost: not cost[2].tells)
    chips = [_cost_chip(*cost) for cost in chosen]
    if costs and not certain and not costs[0][2].tells:
        condition, sut, one = costs[0]
        example = f"{condition.words}: {shown(sut)} keeps {_kept(one)}"
        behind = int((one.interval or {}).get("logs", logs))  # those with somebody, or without, if fewer
        doubt = Chip(
            "?",
            f"Too few logs to tell: {f'{behind} of ' if behind < logs else ''}{counted(logs, 'log')}",
            f"{example}, too wide to rely on; add logs",
            "doubt",
        )
        chips = [doubt, *(_cost_chip(*cost) for cost in costs[1:CHIPS])]
    return Banner(UNCHECKED, "", tuple(chips), 0)


def _cost_chip(condition: Condition, sut: str, one: Survival) -> Chip:
    mark, tone = ("", "") if one.tells else ("?", "doubt")
    return Chip(mark, condition.words, f"{shown(sut)} keeps {_kept(one)}", tone)


def _recall_falls(summary: Summary, run: Run) -> list[Chip]:
    """Return how far recall falls under each setting, the furthest first; where it never does, that."""
    names, rows = setting_names(run), summary.data.get("plain_metrics", ())
    recalls = {(str(row["sut"]), str(row["setting"])): row.get("recall") for row in rows}
    falls = []
    for (sut, setting), after in recalls.items():
        before = recalls.get((sut, run.baseline.id))
        if setting in names and before is not None and after is not None and after < before:
            words = f"{shown(sut)}: clean area is 0, recall falls from {before:.2f} to {after:.2f}"
            falls.append((before - after, Chip("", names[setting], words, "")))
    falls.sort(key=lambda fall: -fall[0])
    nothing = Chip("?", "The clean figure is 0", "what survives of nothing cannot be told", "doubt")
    if recalls and all(recall is None for recall in recalls.values()):
        why = f"no {' or '.join(map(shown, run.targets))} is annotated on the test images"
        nothing = Chip("?", "There is no clean figure", why, "doubt")
    return [chip for _, chip in falls] or [nothing]


def _kept(one: Survival) -> str:
    text = f"{one.share:.0%}{_doubt(one)}"
    if one.interval is None:
        return text
    if one.interval["low"] is None:
        return f"{text} (no interval: {shown(one.interval['why'], longest=60)})"
    return f"{text} ({100 * one.interval['low']:.0f} to {100 * one.interval['high']:.0f})"


def _doubt(one: Survival) -> str:
    """Return the mark of a figure that rests on less than was planned."""
    return "?" if one.status == "incomplete" else ""


class Limit(NamedTuple):
    """The least share that a rule asks for, and under which conditions it does."""

    share: float
    conditions: frozenset[str]


def _limits(rules: Sequence[Rule], head: Headline, mild: frozenset[str]) -> list[Limit]:
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


def _mild(summary: Summary) -> frozenset[str]:
    return frozenset(str(row["setting"]) for row in summary.rows if row.get("group") == "mild")


def survival_figure(head: Headline, summary: Summary, limits: Sequence[Limit] = ()) -> SurvivalFigure:
    """Return what every SUT keeps of its clean figure under each condition, the most harmful first."""
    suts = sorted(head.clean, key=lambda sut: -(head.clean[sut] or 0.0))
    drawn = suts[:MOST_SUTS]
    room = CHART_PX - LEGEND_PX * (len(drawn) - 1)
    most = min(MOST_ROWS, room // (ROW_PX + SUT_PX * len(drawn)))
    rows = head.conditions[:most]
    left_out = [
        *([counted(len(suts) - MOST_SUTS, "more system")] if len(suts) > MOST_SUTS else []),
        *([counted(len(head.conditions) - most, "milder condition")] if len(head.conditions) > most else []),
    ]
    legend = tuple(
        (
            shown(marked_name(summary, sut)),
            COLOURS[number],
            number % 3,
            _clean_words(head, sut, summary.data["counts"][sut]),
        )
        for number, sut in enumerate(drawn)
    )
    drawings = {kind: _chart(rows, drawn, *widths, limits).svg() for kind, widths in WIDTHS.items()}
    words = _measure_words(head, summary)
    shares = [one.share for row in rows for sut in drawn if (one := row.by_sut.get(sut))]
    if any(share is not None and share > OVER_THE_EDGE for share in shares):
        words += " More than 100% is drawn at the edge."
    return SurvivalFigure(head.level, words, drawings, legend, " and ".join(left_out), _numbers(head, suts))


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
        return f"{SCORE_WORDS[summary.data['metric']].capitalize()}, as a share of that on clean images."
    level: Mapping[str, Any] = summary.data.get("levels", {}).get(head.level.partition("/")[0], {})
    safety, efficiency = (level.get(axis, axis) for axis in ("safety", "efficiency"))
    return f"Area of safety ({safety}) over efficiency ({efficiency}), as a share of clean."


def _parts(
    limit: Limit, rows: Sequence[Condition], places: Sequence[float]
) -> tuple[tuple[float, float], ...]:
    """Return the rows beside which a limit is drawn; none where it is of all."""
    mine = [place for row, place in zip(rows, places, strict=True) if row.name in limit.conditions]
    return () if len(mine) == len(rows) else tuple((place - 0.5, place + 0.5) for place in mine)


def _chart(
    rows: Sequence[Condition], suts: Sequence[str], width: int, names_px: int, limits: Sequence[Limit]
) -> Chart:
    count = len(rows)
    top = 20 if limits else 6
    size = PanelSize(width, 6 + top + 24 + count * (ROW_PX + SUT_PX * len(suts)), names_px, 18, top, 24)
    places = [float(count - 1 - number) for number in range(count)]
    longest = names_px // 7
    y = Axis("", (-0.5, count - 0.5), tuple(places), names=tuple(_row_words(row, longest) for row in rows))
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


def _row_words(row: Condition, longest: int) -> str:
    return shown(row.words, longest=longest)


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
                    marks=_doubt(one),
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


def _stop_words(stops: Stopping) -> str:
    worst = stops.lines[-1]
    late = (
        "never stops in some log"
        if math.isinf(worst.latest_m)
        else f"stops up to {worst.latest_m:.1f} m late"
    )
    text = f"At {stops.sensitivity:.2g} false alarms per image. With {worst.words} it {late}"
    return f"{text}; {shown(stops.better[0])} stops in {stops.better[1]}." if stops.better else f"{text}."


def _failure_words(failure: Failure) -> str:
    row = failure.row
    score = f"found with score {row['score_before']:.2f} on the clean frame"
    after = "missed at any threshold" if row["after"] is None else "missed at any usable threshold"
    return f"{score}, {after} in {shown(failure.setting_words)}."


def _untested(summary: Summary, coverage: HazardCoverage) -> str:
    missing = list(summary.data.get("levels_not_evaluated", {}))
    left = [row for row in coverage.rows if not row.settings]
    ran = {name for row in coverage.exercised for name in row.mutations}
    others = dict.fromkeys(
        name for row in left for name in row.mutations if "." not in name and name not in ran
    )
    names = [name.replace("_", " ") for name in others][:UNTESTED_NAMED]
    parts = [f"{', '.join([*names, ''])}{len(left)} of {len(coverage.rows)} hazards"] if left else []
    if missing:
        parts.append(f"what that means for people and robot (levels {', '.join(map(shown, missing))})")
    return "; ".join(parts)

"""The answer first: which SUT to choose, whether the choice survives, and what was not tested."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from adverse.analysis.choices import Best, best_sut
from adverse.analysis.headline import consequence_levels, headline_levels, setting_names
from adverse.analysis.results import Summary
from adverse.analysis.score import ANY
from adverse.curves.ranking import percent
from adverse.report.intervals import summary_interval
from adverse.report.run_tables import NO_ORDER
from adverse.report.stops import tolerance_words
from adverse.store.run import Run
from adverse.text import OVER_ALL, SCORE_WORDS, setting_text, shown

CONTEXTUAL = ("haze", "defocus")
SURE = 0.975
"""The probability of being best above which a choice is called the best.

The paired interval of the difference, at 95 %, leaves out 0 then; below, it cannot be told."""
MOST_NAMED, LONGEST_NAME = 3, 40
CLOSE = 0.05
"""Where no level can tell who is best, areas at the level of the table are told as close together when the
smallest is less than the largest by no more than this share of it: 0.01 is no match for 0.05."""


def answers(summary: Summary) -> list[str]:
    """Return the findings, one sentence or two for each level, the level with most context first."""
    if len(summary.failed_everywhere) == len(summary.data["counts"]):
        return ["Every SUT failed on every image: no figure is a result."]
    if summary.data["task"] != "detection":
        return list(_of_task(summary))
    levels = list(dict.fromkeys(str(row["level"]) for row in summary.rows))
    return [text for level in reversed(levels) if (text := _of_level(summary, level))]


def choices(summary: Summary, run: Run) -> list[str]:
    """Return who is best on clean frames, at the level that the table shows, and who when it matters.

    What matters is the worst case of all mutations; of the mild ones, where all of them leave no SUT of use.
    It is told for what comes of it: at the level with most context, in closed loop where a robot drives.
    Another level stands second: the one with most context at which it can be told, if that says more.
    Where no level can tell and all are close, the line says that, and who leads where that is most probable.
    A last line names who was trained with what was tried.
    """
    levels = headline_levels(summary)
    if not levels or len(run.suts) - len(summary.failed_everywhere) < 2:
        return []
    lines = [_choice("best on clean frames", "area", summary, levels, run.baseline.id)]
    for condition, words in reversed(OVER_ALL.items()):
        rows = [row for row in summary.rows if row["setting"] == condition and row["area"] is not None]
        if any(row["area"] for row in rows):
            area = "worst-case area" if condition == ANY else "worst area of mild mutations"
            levels = consequence_levels(summary)
            line = _choice("best when it matters", area, summary, levels, condition)
            lines.append(line + _undoing(summary, run, levels[0]) if line and condition == ANY else line)
            break
        if rows:
            lines.append(f"{words}: leaves no SUT of any use")
    return [line for line in (*lines, _trained(run)) if line]


def _undoing(summary: Summary, run: Run, level: str) -> str:
    """Name the one mutation that is the worst for all SUTs but the best; empty where it is not the same."""
    best = best_sut(summary, level, ANY)
    if best is None or not _told(best):
        return ""
    worst: dict[str, tuple[float, str]] = {}
    for row in summary.rows:
        if row["level"] == level and row["group"] in ("mild", "severe") and row["robust_area"] is not None:
            found = (float(row["robust_area"]), str(row["setting"]))
            worst[row["sut"]] = min(worst.get(row["sut"], found), found)
    settings = {setting for sut, (_, setting) in worst.items() if sut != best.sut}
    words = setting_names(run)
    return f"; the others lose most under {words[settings.pop()]}" if len(settings) == 1 else ""


def _trained(run: Run) -> str:
    """Say which SUTs were trained with how many of the mutations that were tried; nothing where none was."""
    tried = [{step.mutation for step in setting.steps} for setting in run.mutations]
    seen = {sut.name: sum(not names.isdisjoint(sut.trained_on) for names in tried) for sut in run.suts}
    told = [f"{shown(sut)} with {count} of {len(tried)}" for sut, count in seen.items() if count]
    return f"trained on what is tested: {', '.join(told)} mutations" if told else ""


def _choice(label: str, figure: str, summary: Summary, levels: Sequence[str], condition: str) -> str:
    known = [(level, best) for level in levels if (best := best_sut(summary, level, condition))]
    if not known:
        return ""
    (level, first), others = known[0], known[1:]
    told = next(((level, best) for level, best in reversed(others) if _told(best)), None)
    unequal = [one for one in known if len(one[1].equals) == 1]
    areas = [area for known_at, _, area in _areas(summary, condition) if known_at == level]
    if told is None and not _told(first) and unequal and max(areas) - min(areas) <= CLOSE * max(areas):
        return f"{label}: {_close(unequal, areas, level)}"
    line = f"{label}: {_who(first, figure, _area(summary, level, first.sut, condition), level)}"
    if told is None or (_told(first) and first.sut == told[1].sut):
        return line
    return f"{line}; at {told[0]} {shown(told[1].sut)}, probability {_chance(told[1])}"


def _told(best: Best) -> bool:
    """Tell whether a SUT may be called the best."""
    return len(best.equals) == 1 and (best.chance or 0.0) > SURE and best.apart


def _chance(best: Best) -> str:
    return f"{percent(best.chance or 0.0)}{best.few}"


def _close(known: Sequence[tuple[str, Best]], areas: Sequence[float], top: str) -> str:
    """Say that all are close together at a level, and who leads where that is most probable."""
    level, best = max(known, key=lambda one: one[1].chance or 0.0)
    least = math.floor(min(areas) * 1000) / 1000
    everyone = "both" if len(areas) == 2 else f"all {len(areas)}"
    words = f"no great difference ({everyone} have areas of {least:.3f} or more at {top})"
    if best.chance is None:
        return words
    return f"{words}; {shown(best.sut)} leads at {level}, probability {percent(best.chance)}{best.few}"


def _area(summary: Summary, level: str, sut: str, condition: str) -> float:
    (area,) = (area for *known, area in _areas(summary, condition) if known == [level, sut])
    return area


def _areas(summary: Summary, condition: str) -> list[tuple[str, str, float]]:
    """Return level, SUT and area of all rows of a condition that have one."""
    return [
        (row["level"], row["sut"], float(row["area"]))
        for row in summary.rows
        if row["setting"] == condition and row["area"] is not None
    ]


def _who(best: Best, figure: str, area: float, level: str) -> str:
    sut, measured = shown(best.sut), f"{figure} {area:.3f} at {level}"
    if len(best.equals) > 1:
        return f"{NO_ORDER}, {_named(best.equals)} are equal ({measured})"
    if best.chance is None:
        return f"{sut} ({measured}; {NO_ORDER})"
    if not _told(best):
        return f"cannot be told; {sut} leads, probability {_chance(best)} ({measured})"
    return f"{sut}, probability {_chance(best)} ({measured})"


def untested(summary: Summary, run: Run) -> list[str]:
    """Return what the run says nothing about, in plain words."""
    lines = []
    missing = [f"{name} ({title})" for name, title in summary.data.get("levels_not_evaluated", {}).items()]
    if missing:
        lines.append(f"Levels that were not evaluated: {', '.join(missing)}.")
    tried = {step.mutation for setting in run.mutations for step in setting.steps}
    gone = [name for name in CONTEXTUAL if name not in tried]
    if gone:
        lines.append(f"No {' and no '.join(gone)} by depth was tried.")
    groups = {setting.group for setting in run.mutations}
    lines += [f"No {group} mutation was tried." for group in ("mild", "severe") if group not in groups]
    weak = sorted(
        {str(row["level"]) for row in summary.rows if row["status"] == "insufficient" and "level" in row}
    )
    if weak:
        lines.append(f"The data cannot answer: {', '.join(weak)}.")
    return lines


def _of_level(summary: Summary, level: str) -> str:
    rows = {(row["sut"], row["setting"]): row for row in summary.rows if row["level"] == level}
    baseline = next(iter(rows))[1]
    best = best_sut(summary, level, baseline)
    if best is None:
        return ""
    sut = best.sut
    row = rows[sut, baseline]
    if not row["area"]:
        return f"At level {level} no SUT is of any use: safety and efficiency are never above 0 together."
    words = tolerance_words(summary, level)
    place = f"At level {level} ({words})" if words else f"At level {level}"
    text = f"{place} {_verdict(best, _value(row, 'area'))}."
    if len(best.equals) > 1:
        return f"{text}{_left_of_equals(rows, best)}"
    for condition, words in OVER_ALL.items():
        worst = rows.get((sut, condition))
        if worst is None or worst["robustness"] is None:
            continue
        text += f" {words.capitalize()} leaves {_share(worst)} of it"
        other = best_sut(summary, level, condition)
        text += f"; {_then(other)}." if other is not None and sut not in other.equals else "."
    return text


def _left_of_equals(rows: Mapping[tuple[str, str], Mapping[str, Any]], best: Best) -> str:
    """Say what the worst cases leave each of several SUTs that are equal on clean frames."""
    text = ""
    for condition, words in OVER_ALL.items():
        known = [(sut, rows.get((sut, condition))) for sut in best.equals]
        parts = [f"{shown(sut)} {_share(row)}" for sut, row in known if row and row["robustness"] is not None]
        text += f" {words.capitalize()} leaves {', '.join(parts)} of it." if parts else ""
    return text


def _verdict(best: Best, value: str) -> str:
    sut = shown(best.sut)
    if best.of == 1:
        return f"{sut} has an area of {value}"
    if len(best.equals) > 1:
        return f"{NO_ORDER}: {_named(best.equals)} have the same area, {value}"
    largest = f"{sut} has the largest area, {value}, but"
    if best.chance is None:
        return f"{largest} {NO_ORDER} ({shown(best.why, longest=400)})"
    if _told(best):
        return f"{sut} is the best choice (probability {_chance(best)}): area {value}"
    return f"{largest} these logs cannot tell which SUT is best ({_chance(best)})"


def _then(best: Best) -> str:
    """Say that another SUT is ahead under a condition, as surely as that is known."""
    sut = shown(best.sut)
    if not _told(best):
        return f"{sut} then has the largest area, but these logs cannot tell which SUT is best"
    return f"{sut} is then the best choice ({_chance(best)})"


def _of_task(summary: Summary) -> Iterator[str]:
    metric = summary.data["metric"]
    plain = [row for row in summary.rows if row["group"] == "baseline" and row["scores"][metric] is not None]
    for row in sorted(plain, key=lambda row: -row["scores"][metric]):
        mine = [other for other in summary.rows if other["sut"] == row["sut"] and other["share"] is not None]
        flat = {metric: row["scores"][metric], f"{metric}_interval": row.get(f"{metric}_interval")}
        text = f"{shown(row['sut'])} has {SCORE_WORDS[metric]} {_value(flat, metric)}"
        if not mine:
            yield f"{text}: it scores 0 on clean images."
            continue
        worst = min(mine, key=lambda other: other["share"])
        under = setting_text(worst["setting"])
        yield f"{text}; at worst, under {under}, {worst['share']:.0%} of that is left."


def _value(row: Mapping[str, Any], name: str) -> str:
    interval = summary_interval(row.get(f"{name}_interval"))
    return f"{row[name]:.3f} ({interval})" if interval else f"{row[name]:.3f}"


def _named(suts: Sequence[str]) -> str:
    """Return names of SUTs as one says them; of many the first few, and how many more there are.

    >>> _named(["a", "b"]), _named(["a", "b", "c", "d", "e"])
    ('a and b', 'a, b, c and 2 more')
    """
    names = [shown(sut, longest=LONGEST_NAME) for sut in suts]
    if len(names) > MOST_NAMED + 1:
        names = [*names[:MOST_NAMED], f"{len(names) - MOST_NAMED} more"]
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)


def _share(row: Mapping[str, Any]) -> str:
    interval = summary_interval(row.get("robustness_interval"))
    return f"{row['robustness']:.0%} ({interval})" if interval else f"{row['robustness']:.0%}"

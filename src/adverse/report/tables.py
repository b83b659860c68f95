"""The tables of the report, each with a CSV and a JSON twin that holds every digit."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from adverse.analysis.results import Summary
from adverse.analysis.score import ANY, ANY_MILD
from adverse.curves.interval import interval_cells
from adverse.curves.ranking import equal, percent
from adverse.text import SCORE_WORDS, cell, shown

Row = Mapping[str, Any]
SHADES = 10
NO_ORDER = "no order can be told"
GROUP_WORDS = {"baseline": "", "mild": "mild", "severe": "severe", "worst": "worst case"}


@dataclass(frozen=True)
class Cell:
    """One cell: what is read, what it says when looked at closely, and its shade (0 worst, 9 best)."""

    text: str
    more: str = ""
    note: str = ""
    shade: int | None = None


@dataclass(frozen=True)
class Table:
    """A table for people, and the plain rows behind it for machines."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    data: tuple[Row, ...]
    groups: Mapping[int, str] = field(default_factory=dict)
    """Words that head a part of the table, by the row they stand before."""

    def csv(self) -> str:
        """Return the plain rows as CSV."""
        names = list(dict.fromkeys(name for row in self.data for name in row))
        sink = io.StringIO()
        writer = csv.writer(sink, lineterminator="\n")
        writer.writerow([cell(name) for name in names])
        writer.writerows([cell(row.get(name)) for name in names] for row in self.data)
        return sink.getvalue()

    def json(self) -> str:
        """Return the plain rows as JSON."""
        lines = ",\n".join(json.dumps(row) for row in self.data)
        return f"[\n{lines}\n]" if lines else "[]"


def level_tables(summary: Summary) -> list[Table]:
    """Return mutations x SUTs for every level, or the one table of a segmentation or classification run."""
    if summary.data["task"] != "detection":
        return [_task_table(summary)]
    levels = dict.fromkeys(str(row["level"]) for row in summary.rows)
    return [_level_table(level, [row for row in summary.rows if row["level"] == level]) for level in levels]


def metric_tables(summary: Summary) -> list[Table]:
    """Return mutations x SUTs for every metric that the study names."""
    rows = summary.data.get("metrics", ())
    return [
        _matrix(
            name,
            f"{name}: {title}, shaded by the share of the SUT's own baseline that survives",
            [row for row in rows if row["metric"] == name],
            "value",
            "share",
        )
        for name, title in summary.data.get("metric_titles", {}).items()
    ]


def ranking_table(summary: Summary) -> Table | None:
    """Return who is best under which condition, with probabilities."""
    rankings = summary.data.get("rankings")
    if not rankings:
        return None
    rows, data = [], []
    for ranking in rankings:
        places = ranking["places"]
        order = "".join(
            f"{_between(places, number)}{place['sut']} {place['value']:.3f}"
            for number, place in enumerate(places)
        )
        chance, why = ranking["probability"], ranking["why"]
        first = places[0] if places and places[0]["best"] is not None else None
        best = f"{first['sut']} ({percent(first['best'])})" if first else "-"
        rows.append(
            (
                Cell(ranking["level"]),
                Cell(ranking["condition"]),
                Cell(best),
                Cell(shown(order, longest=400)),
                Cell(f"{NO_ORDER}: {shown(why, longest=400)}" if chance is None else percent(chance)),
            )
        )
        data += [
            {
                "level": ranking["level"],
                "condition": ranking["condition"],
                "place": number,
                "sut": place["sut"],
                "area": place["value"],
                "probability_best": place["best"],
                "probability_ahead_of_next": place["ahead"],
                "probability_of_order": chance,
                "why_no_order": why,
            }
            for number, place in enumerate(places, start=1)
        ]
    columns = ("level", "condition", "best (probability)", "order by area", "probability of the whole order")
    return Table("rankings", "Rankings", columns, tuple(rows), tuple(data))


def _between(places: Sequence[Row], number: int) -> str:
    if number == 0:
        return ""
    return " = " if equal(places[number]["value"], places[number - 1]["value"]) else " > "


def _level_table(level: str, rows: list[Row]) -> Table:
    title = f"{level}: area, shaded by the share of the SUT's own baseline that survives"
    return _matrix(level, title, rows, "area", "robustness")


def _task_table(summary: Summary) -> Table:
    metric = str(summary.data["metric"])
    rows = [{**row, **row["scores"]} for row in summary.rows]
    title = f"{SCORE_WORDS[metric]}, shaded by the share of the SUT's own baseline that survives"
    return _matrix(metric, title, rows, metric, "share")


def _matrix(name: str, title: str, rows: Sequence[Row], value: str, share: str) -> Table:
    suts = list(dict.fromkeys(str(row["sut"]) for row in rows))
    lines: list[tuple[Cell, ...]] = []
    groups: dict[int, str] = {}
    for group, words in GROUP_WORDS.items():
        mine = dict.fromkeys(str(row["setting"]) for row in rows if group_of(row) == group)
        if mine and words:
            groups[len(lines)] = words
        for setting in mine:
            found = {row["sut"]: row for row in rows if row["setting"] == setting}
            cells = (_figure(found.get(sut), value, share) for sut in suts)
            lines.append((Cell(shown(setting)), *cells))
    data = tuple(_plain(row) for row in rows)
    return Table(name, title, ("mutation", *suts), tuple(lines), data, groups)


def group_of(row: Row) -> str:
    """Return the part of a table that a row stands in."""
    return "worst" if row["setting"] in (ANY, ANY_MILD) else str(row["group"])


def _figure(row: Row | None, value: str, share: str) -> Cell:
    if row is None:
        return Cell("-", note="not run")
    if row[value] is None:
        return Cell(str(row["status"]), note=f"{row['status']}: the data cannot answer this")
    marks = ("*" if row["faults"] else "") + ("?" if row["status"] == "incomplete" else "")
    known = row[share]
    shade = None if known is None or row["group"] == "baseline" else shade_of(known)
    return Cell(
        f"{row[value]:.3f}{marks}", span(row.get(f"{value}_interval")), _note(row, value, share), shade
    )


def shade_of(share: float) -> int:
    """Return the shade of a share of the baseline, from 0 (nothing left) to 9 (all of it).

    >>> shade_of(0.0), shade_of(0.55), shade_of(1.3)
    (0, 5, 9)
    """
    return max(0, min(SHADES - 1, int(share * SHADES)))


def span(interval: Mapping[str, Any] | None) -> str:
    """Return an interval in few characters; empty where there is none."""
    if not interval or interval["low"] is None or interval["high"] is None:
        return ""
    mark = "~" if interval["status"] == "few logs" else ""
    return f"{mark}{interval['low']:.2f} to {interval['high']:.2f}"


def _note(row: Row, value: str, share: str) -> str:
    parts = [f"{row['sut']} under {shown(row['setting'])}: {row[value]:.4f}"]
    found = row.get(f"{value}_interval")
    if found:
        text = span(found)
        parts.append(f"95 % interval {text}" if text else f"no interval: {found['why']}")
    if row[share] is not None and row["group"] != "baseline":
        parts.append(f"{row[share]:.1%} of its baseline survives")
        if span(row.get(f"{share}_interval")):
            parts.append(f"interval of that {span(row[f'{share}_interval'])}")
    counts = [f"{row[name]} {name.replace('_', ' ')}" for name in COUNTED if row.get(name)]
    return "; ".join([*parts, ", ".join(counts)])


COUNTED = ("logs", "frames", "truths", "negative_frames", "quarantined", "faults")


def _plain(row: Row) -> dict[str, Any]:
    """Return a row without nesting: intervals have cells of their own."""
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if name.endswith("_interval"):
            flat |= interval_cells(name.removesuffix("_interval"), value)
        elif isinstance(value, Mapping):
            flat |= {f"{name}.{key}": inner for key, inner in value.items()}
        elif not isinstance(value, list):
            flat[name] = value
    return flat

"""A metric against the strength of a mutation: a line for each SUT, with intervals and pictures below."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adverse.analysis.headline import StrengthSeries, option_words, strength_series
from adverse.analysis.results import Summary
from adverse.report.chart import Axis, Band, Chart, Line, Panel, PanelSize, round_ticks
from adverse.report.pictures import Picture
from adverse.report.table import Cell, Column, Table
from adverse.report.tradeoffs import sut_style
from adverse.store.run import Run
from adverse.text import SCORE_WORDS, family_words, shown

SIZE = PanelSize(430, 250, 48, 14, 10, 40)
LOG_FROM = 8.0
"""Strengths that span more than this factor are drawn on a logarithmic axis."""


@dataclass(frozen=True)
class StrengthFigure:
    """Every metric over the strengths of one mutation, and a frame at each of them."""

    heading: str
    charts: Mapping[str, tuple[str, Table]]
    """By metric: the drawing and its numbers."""
    legend: tuple[tuple[str, str, str], ...]
    """Name, colour and dashes of each SUT."""
    pictures: tuple[tuple[str, Picture], ...]


def strength_metrics(summary: Summary) -> dict[str, list[dict[str, Any]]]:
    """Return the metrics that can be drawn, with rows of sut, setting, value and interval."""
    if summary.data["task"] != "detection":
        metric = str(summary.data["metric"])
        rows = [_row(row, row["scores"][metric], row.get(f"{metric}_interval")) for row in summary.rows]
        return {SCORE_WORDS[metric]: rows}
    plain = summary.data.get("plain_metrics", ())
    found = {
        name: [_row(row, row[key], row.get(f"{key}_interval")) for row in plain]
        for name, key in (("recall", "recall"), ("AP50", "ap50"))
    }
    for level in dict.fromkeys(str(row["level"]) for row in summary.rows):
        rows = [row for row in summary.rows if row["level"] == level]
        found[f"area {level}"] = [_row(row, row["area"], row.get("area_interval")) for row in rows]
    return {name: rows for name, rows in found.items() if any(row["value"] is not None for row in rows)}


def _row(row: Mapping[str, Any], value: float | None, interval: Mapping[str, Any] | None) -> dict[str, Any]:
    ends = interval or {}
    return {
        "sut": row["sut"],
        "setting": row["setting"],
        "value": value,
        "low": ends.get("low"),
        "high": ends.get("high"),
    }


def strength_figures(summary: Summary, run: Run, pictures: Mapping[str, Picture]) -> list[StrengthFigure]:
    """Return a figure for each series of strengths."""
    metrics = strength_metrics(summary)
    legend = tuple((shown(sut.name), *sut_style(number)[:2]) for number, sut in enumerate(run.suts))
    return [
        StrengthFigure(
            _heading(series),
            {metric: _chart(metric, series, rows, run) for metric, rows in metrics.items()},
            legend,
            tuple(
                (f"{value:g}", pictures[setting])
                for setting, value in zip(series.settings, series.values, strict=True)
                if setting in pictures
            ),
        )
        for series in strength_series(run)
    ]


def _heading(series: StrengthSeries) -> str:
    return family_words(series.family) + (f", {series.fixed}" if series.fixed else "")


def _chart(
    metric: str, series: StrengthSeries, rows: Sequence[Mapping[str, Any]], run: Run
) -> tuple[str, Table]:
    x, y = _strength_axis(series), Axis(metric, (0.0, 1.0), (0.0, 0.25, 0.5, 0.75, 1.0))
    lines: list[Line] = []
    bands: list[Band] = []
    records: list[dict[str, Any]] = []
    for number, sut in enumerate(one.name for one in run.suts):
        mine = {str(row["setting"]): row for row in rows if row["sut"] == sut}
        value, low, high = (
            [_number(mine, setting, name) for setting in series.settings] for name in ("value", "low", "high")
        )
        colour, dashes, width = sut_style(number)
        clean = _number(mine, run.baseline.id, "value")
        lines.append(Line(shown(sut), series.values, value, colour, dashes, width, marked=True))
        lines.append(Line(f"{shown(sut)}, clean", x.ends, (clean, clean), colour, "2 4", 1.0))
        if all(math.isfinite(end) for end in (*low, *high)):
            bands.append(Band(f"{shown(sut)}, 95 % interval", series.values, low, high, colour))
        records += [
            {"sut": sut, "setting": setting, series.option: strength}
            | {name: mine[setting][name] for name in ("value", "low", "high")}
            for setting, strength in zip(series.settings, series.values, strict=True)
            if setting in mine
        ]
    title = f"{metric} under {_heading(series)}"
    chart = Chart(title, [Panel("", x, y, lines, (), (), bands, size=SIZE)], standing_alone=False)
    name = f"{metric} {series.family} {series.option} {series.fixed}".strip()
    table = Table(name, title, _columns(series), _cells(series, records), tuple(records))
    return chart.svg(), table


def _strength_axis(series: StrengthSeries) -> Axis:
    """Return an axis over the strengths, logarithmic where they span orders of magnitude."""
    first, last = series.values[0], series.values[-1]
    words = option_words(series.option)
    if first > 0 and last / first > LOG_FROM:
        return Axis(words, (first, last), series.values, log=True)
    ticks = tuple(tick for tick in round_ticks(first, last) if first <= tick <= last)
    return Axis(words, (first, last), ticks)


def _number(rows: Mapping[str, Mapping[str, Any]], setting: str, name: str) -> float:
    value = rows.get(setting, {}).get(name)
    return math.nan if value is None else float(value)


def _columns(series: StrengthSeries) -> tuple[Column, ...]:
    return (
        Column("SUT", align="left"),
        Column(option_words(series.option), "g"),
        *(Column(name, ".3f") for name in ("value", "low", "high")),
    )


def _cells(series: StrengthSeries, records: Sequence[Mapping[str, Any]]) -> tuple[tuple[Cell, ...], ...]:
    names = ("sut", series.option, "value", "low", "high")
    return tuple(tuple(Cell(record[name]) for name in names) for record in records)

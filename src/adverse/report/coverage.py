"""How much of a battery people tolerate, on a page: histograms of visual change, and images at the border."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from adverse.report.chart import Axis, Chart, Line, Mark, Panel, PanelSize
from adverse.report.layout import rendered
from adverse.report.pictures import picture
from adverse.report.table import Cell, Table, columns
from adverse.requirements.coverage import BINS, Example, SettingCoverage, family_rows, histogram
from adverse.text import counted, setting_text, shown

SHADES = ("#9ecae1", "#6baed6", "#3182bd", "#08519c", "#08306b")
"""Light to dark blue: severities in their order."""
TOLERATED = "#d55e00"
TICKS = tuple(k / 5 for k in range(6))
WIDEST_PX = 240


def coverage_lines(rows: Sequence[SettingCoverage]) -> list[str]:
    """Say how much lies within what people tolerate, what is not known, and what could not be measured."""
    known = [row for row in rows if row.within is not None and row.visual_change]
    measured = sum(len(row.visual_change) for row in known)
    lines = []
    if measured:
        within = sum(row.within or 0 for row in known)
        least = "at least " if any(row.at_least for row in known) else ""
        lines.append(
            f"{least}{within} of {measured} images ({within / measured:.0%}) lie within what people "
            f"tolerate, in {_families(len(family_rows(known)))} with a threshold"
        )
        beyond = [row.setting for row in known if row.within == 0 and not row.at_least]
        if beyond:
            lines.append(f"beyond it on every image: {', '.join(shown(name) for name in beyond)}")
    doubts = {
        f"{shown(row.family)}: the threshold {shown(row.limit.doubt, longest=200)}": None
        for row in known
        if row.limit is not None and row.limit.doubt
    }
    lines += doubts
    lines += dict.fromkeys(shown(row.no_estimate, longest=300) for row in rows if row.no_estimate)
    unknown = list(family_rows([row for row in rows if row.limit is None and not row.no_estimate]))
    if unknown:
        lines.append(f"nobody was asked about {', '.join(map(shown, unknown))}: no threshold is known")
    lines += [
        f"{setting_text(row.setting)}: {counted(len(row.refused), 'image')} could not be measured "
        f"({shown(row.refused[0])})"
        for row in rows
        if row.refused
    ]
    return lines


def _families(count: int) -> str:
    return "the one family" if count == 1 else f"the {count} families"


def coverage_table(rows: Sequence[SettingCoverage]) -> Table:
    """Return every setting with the share of its images that people tolerate."""
    records = tuple(_plain(row) for row in rows)
    cells = tuple(
        (
            Cell(row.family),
            Cell(row.severity),
            Cell(record["median"]),
            Cell(
                None if row.limit is None else row.limit.tolerated_to,
                f"at least {row.limit.tolerated_to:.2f}" if row.limit and row.at_least else None,
            ),
            Cell(row.share, _share_words(row) or None),
            Cell(str(len(row.visual_change))),
        )
        for row, record in zip(rows, records, strict=True)
    )
    headings = ("family", "severity", "median visual change", "tolerated up to", "within", "images")
    title = "What of it people tolerate"
    return Table("coverage", title, columns(*headings, format=".2f", left=2), cells, records)


def _share_words(row: SettingCoverage) -> str:
    """Return the share within what people tolerate; empty where it is not known."""
    if row.share is None:
        return ""
    return f"at least {row.share:.0%}" if row.at_least and row.share < 1 else f"{row.share:.0%}"


def _plain(row: SettingCoverage) -> dict[str, Any]:
    seen = row.visual_change
    limit = row.limit
    return {
        "setting": row.setting,
        "family": row.family,
        "severity": row.severity,
        "images": len(seen),
        "refused": len(row.refused),
        "lowest": min(seen) if seen else None,
        "median": float(np.median(seen)) if seen else None,
        "highest": max(seen) if seen else None,
        "tolerated_to": None if limit is None else limit.tolerated_to,
        "backend": None if limit is None else limit.backend,
        "threshold_of": None if limit is None else limit.transformation,
        "threshold_doubt": None if limit is None else limit.doubt,
        "no_estimate": row.no_estimate or None,
        "at_least": row.at_least,
        "within": row.within,
        "share": row.share,
    }


def highest_share(rows: Sequence[SettingCoverage]) -> float:
    """Return where the axis of shares ends, for all charts of a page: the highest share, in fifths."""
    highest = max((max(histogram(row.visual_change)[1]) for row in rows), default=0.0)
    return max(math.ceil(highest * 5 - 1e-9), 1) / 5


def family_chart(family: str, rows: Sequence[SettingCoverage], top: float = 1.0) -> Chart:
    """Return the histograms of one family, a line for each severity, with the threshold; y ends at `top`."""
    lines = []
    for number, row in enumerate(rows):
        x, y = histogram(row.visual_change)
        shade = SHADES[min(number * len(SHADES) // max(len(rows), 1), len(SHADES) - 1)]
        share = "" if row.share is None else f": {_share_words(row)} within"
        lines.append(Line(shown(f"{row.severity}{share}"), x, y, shade, width=2))
    limit = next((row.limit for row in rows if row.limit is not None), None)
    marks = []
    if limit is not None:
        least = "at least " if rows[0].at_least else ""
        marks = [Mark(f"tolerated {least}up to {limit.tolerated_to:g}", limit.tolerated_to, TOLERATED, "")]
    axes = (
        Axis(f"visual change by {rows[0].backend}, in steps of {1 / BINS:g}", (0.0, 1.0), TICKS),
        Axis("share of the images", (0.0, top), tuple(round(top * k / 4, 2) for k in range(5))),
    )
    panel = Panel("", *axes, lines, marks, size=PanelSize(760, 260, 58, 16, 24, 46))
    return Chart(f"{shown(family)}: visual change by severity", [panel], legend_left=True)


@dataclass(frozen=True)
class FamilySection:
    """One family on the page."""

    name: str
    words: str
    chart: str
    examples: tuple[tuple[str, str, int, int], ...]
    """Words, image, width and height."""


def coverage_page(title: str, rows: Sequence[SettingCoverage]) -> str:
    """Return one self-contained HTML page."""
    return rendered(
        "coverage.html",
        title=shown(title),
        lines=coverage_lines(rows),
        table=coverage_table(rows),
        parts=[_section(family, group, highest_share(rows)) for family, group in family_rows(rows).items()],
    )


def _section(family: str, rows: Sequence[SettingCoverage], top: float) -> FamilySection:
    limit = next((row.limit for row in rows if row.limit is not None), None)
    if limit is None:
        words = rows[0].no_estimate or "No threshold is known: nobody was asked about it."
    else:
        words = f"{limit.words} of {limit.transformation} by {limit.backend}: {limit.origin}."
    chart = family_chart(family, rows, top).svg()
    return FamilySection(shown(family), shown(words, longest=400), chart, _examples(rows))


def _examples(rows: Sequence[SettingCoverage]) -> tuple[tuple[str, str, int, int], ...]:
    """Return the images nearest to the threshold on either side, over all severities."""
    inside = [(row.inside, row.severity) for row in rows if row.inside is not None]
    outside = [(row.outside, row.severity) for row in rows if row.outside is not None]
    chosen: list[tuple[str, Example, str]] = []
    if inside:
        example, severity = max(inside, key=lambda pair: pair[0].visual_change)
        chosen.append(("nearest inside", example, severity))
    if outside:
        example, severity = min(outside, key=lambda pair: pair[0].visual_change)
        chosen.append(("nearest outside", example, severity))
    found = []
    for side, example, severity in chosen:
        small = picture(example.image, widest=WIDEST_PX)
        limit = next(row.limit for row in rows if row.limit is not None)
        least = "at least " if rows[0].at_least else ""
        place = f"{example.visual_change:.2f}, tolerated {least}up to {limit.tolerated_to:g}"
        words = f"{side}: {place}, severity {shown(severity)}, {shown(example.name)}"
        found.append((words, small.source, small.width, small.height))
    return tuple(found)

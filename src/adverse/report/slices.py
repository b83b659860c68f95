"""Who is lost, and how far a SUT sees: slices by distance, size, place and class as tables and sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from adverse.analysis.headline import headline, headline_levels, setting_names
from adverse.analysis.results import Summary
from adverse.analysis.slices import WANTED
from adverse.analysis.tables import flat_row
from adverse.report.intervals import interval_text
from adverse.report.table import Cell, Column, Row, Table
from adverse.store.run import Run
from adverse.text import shown

MOST_SENTENCES, MOST_COLUMNS = 6, 5


def slice_sentences(summary: Summary, run: Run) -> list[str]:
    """Return the slices that stand out, one sentence each, the largest difference first."""
    words = setting_names(run)
    rows = summary.data.get("outstanding_slices", ())
    lines = [
        f"{shown(row['sut'])} loses {_share(row, 'lost')} of the people {_who(row)} under "
        f"{shown(words[row['setting']])}, {_share(row, 'lost_elsewhere')} of all others."
        for row in rows[:MOST_SENTENCES]
    ]
    more = len(rows) - MOST_SENTENCES
    return [*lines, f"{more} more stand out: outstanding_slices in summary.json."] if more > 0 else lines


def _share(row: Row, name: str) -> str:
    """Return a share with the interval that holds for all groups together."""
    interval = row.get(f"{name}_interval")
    if not interval or interval["low"] is None:
        return f"{row[name]:.0%}"
    return f"{row[name]:.0%} ({100 * interval['low']:.0f} to {100 * interval['high']:.0f})"


def _who(row: Row) -> str:
    part = shown(row["part"])
    return {
        "distance": f"at {part}",
        "height": f"who are {part} high",
        "place": f"in the {part} of the image",
        "class": f"of class {part}",
        "log": f"of log {part}",
    }.get(str(row["slice"]), f"with {shown(row['slice'])} {part}")


def slice_tables(summary: Summary, run: Run, rows: Sequence[Mapping[str, Any]]) -> list[Table]:
    """Return for each SUT its recall by slice: clean, and under the worst strength of each mutation."""
    level = (headline_levels(summary) or [""])[0]
    head = headline(summary, run, level)
    words = setting_names(run) | {run.baseline.id: "clean"}
    tables = []
    for sut in dict.fromkeys(str(row["sut"]) for row in rows):
        worst = [
            condition.by_sut[sut].worst_setting for condition in head.conditions if sut in condition.by_sut
        ]
        settings = [run.baseline.id, *(setting for setting in worst[:MOST_COLUMNS] if setting is not None)]
        mine = {(row["slice"], row["part"], row["setting"]): row for row in rows if row["sut"] == sut}
        tables.append(_table(sut, settings, words, mine))
    return tables


def _table(
    sut: str,
    settings: Sequence[str],
    words: Mapping[str, str],
    rows: Mapping[tuple[str, str, str], Mapping[str, Any]],
) -> Table:
    lines: list[tuple[Cell, ...]] = []
    groups: dict[int, str] = {}
    last = ""
    for by, part in dict.fromkeys((by, part) for by, part, _ in rows):
        if by != last:
            groups[len(lines)], last = f"by {by}", by
        cells = [_recall(rows.get((by, part, setting))) for setting in settings]
        people = next(row["people"] for key, row in rows.items() if key[:2] == (by, part))
        lines.append((Cell(part), Cell(people), *cells))
    headings = (
        Column("people", align="left"),
        Column("how many"),
        *(Column(words[setting], ".2f") for setting in settings),
    )
    records = tuple(flat_row(row) for row in rows.values())
    title = f"Recall of {sut} at its operating point"
    return Table(f"slices {sut}", title, headings, tuple(lines), records, groups)


def _recall(row: Mapping[str, Any] | None) -> Cell:
    if row is None or row["recall"] is None:
        return Cell(None)
    interval = row["recall_interval"]
    text = interval_text(interval["low"], interval["high"], status=interval["status"])
    note = f"{row['people']} people in {row['logs']} logs"
    if row["lost"] is not None:
        note += f"; {row['lost']:.0%} of {row['found_before']} found before are lost"
    return Cell(row["recall"], details=(text,), note=note, share=row["recall"])


def range_table(summary: Summary, run: Run) -> Table | None:
    """Return how far each SUT sees under every setting, and the highest safe speed; None if unknown."""
    rows = summary.data.get("detection_range")
    if not rows:
        return None
    words = setting_names(run) | {run.baseline.id: "clean"}
    suts = list(dict.fromkeys(str(row["sut"]) for row in rows))
    found = {(row["setting"], row["sut"]): row for row in rows}
    lines = tuple(
        (Cell(words[setting.id]), *(_range(found.get((setting.id, sut))) for sut in suts))
        for setting in run.settings
    )
    driven = any(row["safe_speed_mps"] is not None for row in rows)
    title = f"Detection range: the distance up to which {WANTED:.0%} of people are found"
    title += "; below it the highest speed from which the robot stops in time" if driven else ""
    headings = (Column("mutation", align="left"), *(Column(sut) for sut in suts))
    return Table("detection range", title, headings, lines, tuple(flat_row(row) for row in rows))


def _range(row: Mapping[str, Any] | None) -> Cell:
    if row is None:
        return Cell(None)
    interval = row.get("range_m_interval") or {"low": None, "high": None, "status": ""}
    reach = interval_text(interval["low"], interval["high"], ".1f", status=interval["status"])
    speed = row["safe_speed_mps"]
    more = "and more" if row["beyond"] else ""
    details = (reach and f"{reach} m", more, "" if speed is None else f"{speed:.1f} m/s")
    return Cell(row["range_m"], f"{row['range_m']:.1f} m", details=details, note=f"{row['people']} people")

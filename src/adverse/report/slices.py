"""Who is lost, and how far a SUT sees: slices by distance, size, place and class as tables and sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from adverse.analysis.detection_range import LEAST_PEOPLE, STEP_M, WANTED
from adverse.analysis.failed_suts import FAILED
from adverse.analysis.headline import headline, headline_levels, setting_names
from adverse.analysis.results import Summary
from adverse.analysis.tables import flat_row
from adverse.report.intervals import FEW_LOGS, interval_or_reason, interval_text
from adverse.report.plain_tables import operating_words
from adverse.report.table import Cell, Column, Row, Table
from adverse.store.run import Run
from adverse.text import shown

MOST_SENTENCES, MOST_MISSED, MOST_COLUMNS = 6, 3, 5


def slice_sentences(summary: Summary, run: Run) -> list[str]:
    """Return the slices that stand out, one sentence each, the largest difference first.

    Those whose people are already missed on clean frames come after those who are lost under mutations.
    """
    words = setting_names(run)
    rows = summary.data.get("outstanding_slices", ())
    lost = [row for row in rows if row.get("by", "lost") == "lost"]
    missed = [row for row in rows if row.get("by") == "missed"]
    lines = [
        f"{shown(row['sut'])} loses {_share(row, 'lost')} of the people {_who(row)} under "
        f"{shown(words[row['setting']])}, {_share(row, 'lost_elsewhere')} of all others."
        for row in lost[:MOST_SENTENCES]
    ]
    lines += [
        f"{shown(row['sut'])} misses {_share(row, 'missed')} of the people {_who(row)} on clean frames "
        f"already, {_share(row, 'missed_elsewhere')} of all others."
        for row in missed[:MOST_MISSED]
    ]
    more = len(rows) - len(lines)
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
    if row is not None and row["status"] == FAILED:
        return Cell(None, FAILED, tone="soft", note="the SUT failed on every image")
    if row is None or row["recall"] is None:
        return Cell(None, "insufficient", tone="soft", note="nobody of them in the frames that could be used")
    interval = row["recall_interval"]
    text = interval_text(interval["low"], interval["high"], status=interval["status"])
    note = f"{row['people']} people in {row['logs']} logs"
    if row["lost"] is not None:
        note += f"; {row['lost']:.0%} of {row['found_before']} found before are lost"
    if row["status"] == "incomplete":
        note += "; some frames could not be used"
    return Cell(row["recall"], details=(text,), note=note, share=row["recall"], marks=_marks(row))


def range_table(summary: Summary, run: Run) -> Table | None:
    """Return how far each SUT sees under every setting, and the highest safe speed; None if unknown."""
    rows = summary.data.get("detection_range")
    if not rows or "ends" not in rows[0]:  # older results have ranges that are too long
        return None
    words = setting_names(run) | {run.baseline.id: "clean"}
    suts = list(dict.fromkeys(str(row["sut"]) for row in rows))
    found = {(row["setting"], row["sut"]): row for row in rows}
    lines = tuple(
        (Cell(words[setting.id]), *(_range(found.get((setting.id, sut))) for sut in suts))
        for setting in run.settings
    )
    driven = bool(run.robot)
    title = f"Detection range: the distance up to which {WANTED:.0%} of people are found"
    title += "; below it the highest speed from which the robot stops in time" if driven else ""
    parts = [
        f"Read {operating_words(summary)}{'; stops are driven at a rate of their own' if driven else ''}.",
        f"It ends with the furthest found, or before {STEP_M:g} m with fewer than {LEAST_PEOPLE} people.",
        "The speed is that of the lower end of the interval." if driven else "",
        "0 m: nearby, too, more are missed; over several frames a robot may still see them."
        if any(row["range_m"] == 0 for row in rows)
        else "",
        "?: some frames could not be used." if any(map(_marks, rows)) else "",
    ]
    caption = " ".join(filter(None, parts))
    headings = (Column("mutation", align="left"), *(Column(sut) for sut in suts))
    records = tuple(flat_row(row) for row in rows)
    return Table("detection range", title, headings, lines, records, caption=caption)


ENDS = {
    "missed": "then too many are missed",
    "too few people": f"then a step with fewer than {LEAST_PEOPLE} people",
    "nobody further": "nobody is further away",
}


def _range(row: Mapping[str, Any] | None) -> Cell:
    if row is None or row["range_m"] is None:
        why = FAILED if row is not None and row["status"] == FAILED else "insufficient"
        return Cell(None, why, tone="soft", marks="" if row is None else _marks(row))
    reach = interval_or_reason(row["range_m_interval"], ".1f", " m")
    speed, why = row["safe_speed_mps"], row["no_speed"]
    few = "~" if row["range_m_interval"]["status"] == FEW_LOGS else ""
    fast = f"{few}{speed:.1f} m/s" if speed is not None else "" if why == "no robot" else f"no speed: {why}"
    note = f"{row['people']} people in {row['logs']} logs, the nearest at {row['nearest_m']:.1f} m"
    if row["speed_mps"] is not None:
        note += f"; {row['speed_mps']:.1f} m/s at the range itself"
    details = (reach, ENDS[row["ends"]], fast)
    return Cell(row["range_m"], f"{row['range_m']:.1f} m", details=details, note=note, marks=_marks(row))


def _marks(row: Mapping[str, Any]) -> str:
    return "?" if row["status"] == "incomplete" else ""

"""Recall, precision, F1, false positives per image and AP: a table for each SUT, and one for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from adverse.analysis.failed_suts import FAILED
from adverse.analysis.plain_metrics import PLAIN_METRICS
from adverse.analysis.results import Summary
from adverse.analysis.tables import flat_row
from adverse.report.intervals import summary_interval
from adverse.report.run_tables import marked_name
from adverse.report.table import Cell, Column, Row, Table, setting_cell
from adverse.text import setting_text, shown

HEADINGS = {
    "recall": "recall",
    "precision": "precision",
    "f1": "F1",
    "false_positives_per_image": "false positives per image",
    "ap50": "AP50",
    "ap": "AP",
}
BRIEF = {"precision": "prec.", "false_positives_per_image": "FP/image"}
WIDTH, LONGEST_ID, BORDERS = 80, 29, 4
"""Of a terminal, of the longest id that is not folded there, and of what stands around a first column."""
CELL_WIDTH = 12
NAMED_SUTS = 4
GROUP_WORDS = {"baseline": "", "mild": "mild", "severe": "severe"}


def plain_tables(summary: Summary) -> list[Table]:
    """Return a table for each SUT: a line for each setting, a column for each metric."""
    rows = summary.data.get("plain_metrics", ())
    suts = list(dict.fromkeys(str(row["sut"]) for row in rows))
    return [_table(summary, sut, [row for row in rows if row["sut"] == sut]) for sut in suts]


def terminal_tables(summary: Summary, plain: Sequence[Table]) -> list[Table]:
    """Return what fits the terminal: all metrics of a single SUT, of several recall and false positives.

    `plain` are the tables of each SUT.
    """
    rows = summary.data.get("plain_metrics", ())
    suts = list(dict.fromkeys(str(row["sut"]) for row in rows))
    if len(suts) <= 1:
        return list(plain)
    columns = (Column("mutation", align="left"), *(Column(marked_name(summary, sut)) for sut in suts))
    lines, groups = _lines(rows, lambda by_sut: [_brief(by_sut.get(sut)) for sut in suts])
    title = f"recall, and false positives per image, {operating_words(summary)}"
    more = "precision, F1 and AP: results/plain_metrics.csv and the report"
    width = min(LONGEST_ID, max(len(str(line[0].value)) for line in lines)) + BORDERS
    count = max(1, (WIDTH - width) // CELL_WIDTH)
    table = Table("plain metrics", title, columns, lines, (), groups, caption=more)
    return list(table.abreast(count))


def plain_answer(summary: Summary) -> list[str]:
    """Return one sentence: the recall of each SUT, clean and at worst; none where nothing is known."""
    parts = []
    rows = summary.data.get("plain_metrics", ())
    failed = summary.failed_everywhere
    suts = list(dict.fromkeys(str(row["sut"]) for row in rows if row["sut"] not in failed))
    for sut in suts[:NAMED_SUTS]:
        mine = [row for row in rows if row["sut"] == sut and row["recall"] is not None]
        baseline = next((row for row in mine if row["group"] == "baseline"), None)
        if baseline is None:
            continue
        text = f"{shown(sut)} {baseline['recall']:.2f}"
        worst = min(mine, key=lambda row: row["recall"])
        if worst is not baseline:
            text += f" (at worst {worst['recall']:.2f}, under {setting_text(worst['setting'])})"
        parts.append(text)
    if not parts:
        return []
    more = f", and {len(suts) - NAMED_SUTS} more SUTs below" if len(suts) > NAMED_SUTS else ""
    return [f"Recall {operating_words(summary)}: {', '.join(parts)}{more}."]


def operating_words(summary: Summary) -> str:
    """Say at which threshold metrics are read, as far as it is the same for all SUTs."""
    entries = list(summary.data["sensitivity"].values())
    points = [entry["operating_point"] for entry in entries]
    rates = {point["sensitivity"] for point in points}
    scores = {point["score"] for point in points}
    if len(rates) == 1 and None not in rates:
        return f"at {rates.pop():g} false positives per {_images(entries[0])}"
    if rates == {None} and len(scores) == 1:
        return f"from score {scores.pop():g} on"
    return "at each SUT's operating point"


def _table(summary: Summary, sut: str, rows: Sequence[Row]) -> Table:
    columns = (
        Column("mutation", align="left"),
        *(Column(HEADINGS[name], ".2f", brief=BRIEF.get(name, ""), no_wrap=True) for name in PLAIN_METRICS),
    )
    lines, groups = _lines(rows, lambda by_sut: [_cell(by_sut[sut], name) for name in PLAIN_METRICS])
    title = f"{marked_name(summary, sut)}: {_point_words(summary, sut)}"
    records = tuple(flat_row(row) for row in rows)
    return Table(f"plain metrics {sut}", title, columns, lines, records, groups)


def _point_words(summary: Summary, sut: str) -> str:
    entry = summary.data["sensitivity"][sut]
    point = entry["operating_point"]
    score = (
        "every detection counts"
        if point["score"] is None
        else f"detections from score {point['score']:.3g} on"
    )
    if point["sensitivity"] is None:
        return score
    text = f"{score}: {point['sensitivity']:g} false positives per {_images(entry)}"
    return text if point["resolved"] else f"{text} (too few images to tell that rate)"


def _images(entry: Mapping[str, Any]) -> str:
    """Say on which images thresholds were chosen."""
    return f"clean {'validation ' if entry['from'] == 'validation' else ''}image"


def _lines(rows: Sequence[Row], cells: Any) -> tuple[tuple[tuple[Cell, ...], ...], dict[int, str]]:
    """Return a line for each setting, those of a group together, and the words that head the groups."""
    lines: list[tuple[Cell, ...]] = []
    groups: dict[int, str] = {}
    for group, words in GROUP_WORDS.items():
        settings = list(dict.fromkeys(str(row["setting"]) for row in rows if row["group"] == group))
        if settings and words:
            groups[len(lines)] = words
        for setting in settings:
            by_sut = {row["sut"]: row for row in rows if row["setting"] == setting}
            lines.append((setting_cell(setting, tone="" if words else "strong"), *cells(by_sut)))
    return tuple(lines), groups


def _brief(row: Row | None) -> Cell:
    """Return recall and false positives per image in one cell."""
    if row is None or row["recall"] is None:
        return Cell(None, "-" if row is None else _undefined(row), tone="soft")
    return Cell(
        row["recall"], f"{row['recall']:.2f} {row['false_positives_per_image']:5.2f}", marks=_marks(row)
    )


def _undefined(row: Row) -> str:
    """Say in a word why a row has no figure.

    >>> _undefined({"status": "failed"}), _undefined({"status": "ok"})
    ('failed', 'insufficient')
    """
    return FAILED if row["status"] == FAILED else "insufficient"


def _cell(row: Row, name: str) -> Cell:
    if row["status"] == FAILED:
        return Cell(None, FAILED, note="the SUT failed on every image", tone="soft")
    if row[name] is None:
        nothing = (
            "nothing was detected" if name == "precision" and row["truths"] else "there is nothing to detect"
        )
        return Cell(None, note=f"not defined: {nothing}", tone="soft")
    interval: Mapping[str, Any] | None = row.get(f"{name}_interval")
    parts = [f"{HEADINGS[name]} {row[name]:.4f}"]
    if interval:
        text = summary_interval(interval)
        parts.append(f"95 % interval {text}" if text else f"no interval: {interval['why']}")
    counts = f"{row['true_positives']} of {row['truths']} found, {row['false_positives']} false positives"
    note = "; ".join([*parts, f"{counts}, {row['frames']} frames, {row['logs']} logs"])
    return Cell(row[name], details=(summary_interval(interval),), note=note, marks=_marks(row))


def _marks(row: Row) -> str:
    return ("*" if row["faults"] else "") + ("?" if row["status"] == "incomplete" else "")

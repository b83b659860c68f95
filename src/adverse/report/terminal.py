"""The end of a run in the terminal: areas and robustness at a glance, and what was odd, in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

from adverse.analysis.results import Summary

Row = Mapping[str, Any]


def tables(summary: Summary) -> list[Table]:
    """Return one table for each level: a row for each setting, a column for each SUT."""
    levels = dict.fromkeys(str(row["level"]) for row in summary.rows)
    return [_table(level, [row for row in summary.rows if row["level"] == level]) for level in levels]


def remarks(summary: Summary) -> list[str]:
    """Return what a reader must know before trusting the tables, one line each."""
    shared: dict[str, list[str]] = {}
    for sut, known in summary.data["sensitivity"].items():
        if known["from"] == "test":
            text = "no validation split; thresholds were chosen on the un-mutated test images"
            shared.setdefault(text, []).append(sut)
        if known["unresolved_levels"]:
            levels = f"{known['unresolved_levels']} sensitivity levels are finer"
            text = f"{levels} than 1 in {known['images']} images can show"
            shared.setdefault(text, []).append(sut)
    lines = [f"{', '.join(suts)}: {text}" for text, suts in shared.items()]
    for sut, counts in summary.data["counts"].items():
        for status, words in (("fault", "failed"), ("quarantined", "could not be used")):
            if counts[status]:
                lines.append(f"{sut}: {counts[status]} of {counts['planned']} images {words}")
        if counts["answered_differently_when_asked_twice"]:
            lines.append(f"{sut}: gave different answers to the same image; its figures are one draw of many")
    for status, words in (
        ("insufficient", "the data cannot answer it (no targets, or no images without any)"),
        ("incomplete", "too many frames could not be used"),
    ):
        cases = [row for row in summary.rows if row["status"] == status]
        if cases:
            levels = ", ".join(dict.fromkeys(str(row["level"]) for row in cases))
            lines.append(f"{len(cases)} figures of {levels} are {status}: {words}")
    lines += [f"{count} x {note}" for note, count in summary.data["notes"].items() if count]
    return lines


def _table(level: str, rows: list[Row]) -> Table:
    suts = list(dict.fromkeys(str(row["sut"]) for row in rows))
    table = Table(title=f"{level}: area, and share of the baseline that survives", title_justify="left")
    table.add_column("mutation", overflow="fold")
    table.add_column("group")
    for sut in suts:
        table.add_column(sut, justify="right")
    for setting in dict.fromkeys(str(row["setting"]) for row in rows):
        cells = {row["sut"]: row for row in rows if row["setting"] == setting}
        group = str(next(iter(cells.values()))["group"])
        worst = setting in ("Any", "AnyMild")
        table.add_row(
            Text(setting, style="bold" if worst or group == "baseline" else ""),
            "" if worst else group,
            *(_cell(cells.get(sut)) for sut in suts),
            end_section=group == "baseline",
        )
    return table


def _cell(row: Row | None) -> Text:
    if row is None:
        return Text("-")
    if row["area"] is None:
        return Text(str(row["status"]), style="dim")
    text = f"{row['area']:.3f}"
    if row["group"] != "baseline":
        text += f" {row['robustness']:4.0%}" if row["robustness"] is not None else "    -"
    if row["faults"]:
        text += "*"
    style = "" if row["robustness"] is None or row["robustness"] > 0.9 else "yellow"
    if row["robustness"] is not None and row["robustness"] < 0.5:
        style = "red"
    return Text(text + ("?" if row["status"] == "incomplete" else ""), style=style)

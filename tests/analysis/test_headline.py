"""What the first screen says is what the results say, for one level, the worst of each mutation first."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from adverse.analysis.headline import headline, headline_levels, stopping
from adverse.analysis.results import read_summary
from adverse.report.brief import brief_lines, brief_table
from adverse.store.read import finished


def test_shares_are_those_of_the_rows_the_most_harmful_first(driven: Path) -> None:
    store = finished(driven)
    summary = read_summary(store)
    level = headline_levels(summary)[0]
    assert level.startswith("located/")
    head = headline(summary, store.run, level)
    rows = {(row["sut"], row["setting"]): row for row in summary.rows if row["level"] == level}
    for condition in (*head.conditions, *head.worst):
        for sut, one in condition.by_sut.items():
            assert one.share == rows[sut, condition.name]["robustness"]
    least = [condition.least for condition in head.conditions]
    assert least == sorted(least)


def test_stops_are_counted_from_the_logs(driven: Path) -> None:
    store = finished(driven)
    stops = stopping(read_summary(store), store.run)
    assert stops is not None
    loop = json.loads((driven / "results" / "summary.json").read_text())["loop"]
    for line in stops.lines:
        (row,) = (
            row
            for row in loop
            if (row["level"], row["sut"], row["setting"], row["sensitivity"])
            == (stops.level, stops.sut, line.setting, stops.sensitivity)
        )
        np.testing.assert_allclose(line.stopped, row["safety"] * row["logs"])
    assert [line.stopped for line in stops.lines[1:]] == sorted(
        (line.stopped for line in stops.lines[1:]), reverse=True
    )


def test_the_terminal_ends_in_thirty_lines(driven: Path) -> None:
    store = finished(driven)
    summary = read_summary(store)
    table = brief_table(summary, store.run)
    assert len(table.rows) + len(table.groups) + 6 + len(brief_lines(summary, store.run, table)) + 3 <= 30

"""The outcome of a fuzz campaign as tables, each with its CSV and JSON twins, and its curves."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any

from adverse.fuzz.folder import CampaignFolder
from adverse.fuzz.outcome import Outcome
from adverse.fuzz.scoring import BINS
from adverse.report.plot import Line, Panel, svg
from adverse.report.tables import Cell, Table
from adverse.report.words import shown
from adverse.study.store.durable import write_file

Row = Mapping[str, Any]
REASONS = 12
"""Refusals that are shown; all are in the CSV."""
DISCOVERED = {"inconsistencies": "failing tests", "bases": "failing frames", "objects": "failing objects"}


def tables_of(outcome: Outcome, comparison: Sequence[Row] | None = None) -> list[Table]:
    """Return the tables that are a pure function of the campaign."""
    made = [counts_table(outcome), discovery_table(outcome), refusals_table(outcome)]
    if len(outcome.suts) > 1:
        made.append(overlap_table(outcome))
    if comparison:
        made.append(comparison_table(comparison))
    return made


def counts_table(outcome: Outcome) -> Table:
    """Return counts for each SUT x mutation x bin, and the rate."""
    data = outcome.counts()
    rows = [
        (
            Cell(shown(row["sut"])),
            Cell(row["mutation"]),
            Cell(str(row["tests"])),
            *(Cell(str(row[name])) for name in BINS),
            Cell(str(row["inconsistencies"])),
            Cell(number(row["per_1000"]), span(row["per_1000_low"], row["per_1000_high"])),
            Cell("-" if row["published_scorer"] is None else str(row["published_scorer"])),
            Cell(str(row["faults"])),
        )
        for row in data
    ]
    columns = (
        "SUT",
        "mutation",
        "tests",
        *(f"{name} {_range(name)}" for name in BINS),
        "all",
        "per 1,000 tests",
        "by the published scorer",
        "faults",
    )
    title = "Inconsistencies: tests whose score falls by 1 percentage point or more"
    return Table("counts", title, columns, tuple(rows), tuple(data))


def discovery_table(outcome: Outcome) -> Table:
    """Return what is known after so many tests, at a few of them; all points are in the twins."""
    data = outcome.discovery()
    at = sorted({row["tests"] for row in data})
    chosen = {at[round(part * (len(at) - 1) / 5)] for part in range(1, 6)}
    rows = [
        (
            Cell(shown(row["sut"])),
            Cell(DISCOVERED[row["of"]]),
            Cell(str(row["tests"])),
            Cell(f"{row['expected']:.1f}"),
            Cell(f"{row['permuted']:.1f}"),
        )
        for row in data
        if row["tests"] in chosen
    ]
    columns = ("SUT", "distinct", "after tests", "found, all orders", "found, mean of 10 orders")
    return Table(
        "discovery", "Found after so many tests: all points are in the CSV", columns, tuple(rows), tuple(data)
    )


def refusals_table(outcome: Outcome) -> Table:
    """Return what kept candidates from becoming tests."""
    data = outcome.refusals()
    rows = [
        (Cell(row["mutation"]), Cell(shown(row["reason"])), Cell(str(row["refused"])))
        for row in sorted(data, key=lambda row: -row["refused"])[:REASONS]
    ]
    title = "Candidates that were refused, by the check that refused them"
    return Table("refusals", title, ("mutation", "check", "refused"), tuple(rows), tuple(data))


def overlap_table(outcome: Outcome) -> Table:
    """Return how far SUTs fail on the same tests."""
    data = outcome.overlap()
    rows = [
        (
            Cell(shown(f"{row['first']} and {row['second']}", longest=160)),
            Cell(str(row["fail_first"])),
            Cell(str(row["fail_second"])),
            Cell(str(row["fail_both"])),
            Cell("-" if row["share_of_either"] is None else f"{row['share_of_either']:.1%}"),
        )
        for row in data
    ]
    columns = ("SUTs", "fail the first", "fail the second", "fail both", "both, of either")
    return Table("overlap", "Failures that SUTs share", columns, tuple(rows), tuple(data))


def comparison_table(comparison: Sequence[Row]) -> Table:
    """Return guided beside unguided."""
    rows = [
        (
            Cell(shown(row["sut"])),
            Cell(number(row["guided_per_1000"])),
            Cell(number(row["unguided_per_1000"])),
            Cell(number(row["difference"]), span(row["difference_low"], row["difference_high"])),
            Cell(f"{row['guided_bases']} / {row['unguided_bases']}"),
            Cell(f"{row['guided_objects']} / {row['unguided_objects']}"),
        )
        for row in comparison
    ]
    columns = ("SUT", "guided", "unguided", "difference", "failing frames", "failing objects")
    title = "Inconsistencies per 1,000 tests, guided beside unguided (same tests, same seed)"
    return Table("guided", title, columns, tuple(rows), tuple(comparison))


def times_of(folder: CampaignFolder) -> dict[str, dict[str, float]]:
    """Return mean and median milliseconds of making a test, by mutation, and of each SUT; none if unknown."""
    spent: dict[str, list[float]] = {}
    if folder.times.exists():
        for line in folder.times.read_text().splitlines():
            row = json.loads(line)
            spent.setdefault(f"making {row['mutation']}", []).append(row["generation_s"])
            for name, value in row.items():
                if name.startswith("sut "):
                    spent.setdefault(name.replace("sut ", "SUT ", 1), []).append(value)
    return {
        name: {"tests": len(values), "mean_ms": 1000 * fmean(values), "median_ms": 1000 * median(values)}
        for name, values in sorted(spent.items())
    }


def discovery_svg(outcome: Outcome) -> str:
    """Return the discovery curves: distinct failing frames and objects, and failing tests."""
    data = outcome.discovery()
    panels = []
    for kind, words in DISCOVERED.items():
        lines = []
        for sut in outcome.suts:
            mine = [row for row in data if row["sut"] == sut and row["of"] == kind]
            x, y = [row["tests"] for row in mine], [row["expected"] for row in mine]
            lines.append(Line(shown(sut), x, y))
        panels.append(Panel(f"distinct {words} found, mean over all orders of the tests", "tests", lines))
    return svg("Discovery", panels)


def write_results(folder: CampaignFolder, outcome: Outcome, tables: Sequence[Table]) -> list[Path]:
    """Write every table as CSV and JSON, the curves as SVG, and the numbers of every test."""
    made = []
    for table in (*tables, tests_table(outcome)):
        for ending, text in (("csv", table.csv()), ("json", table.json())):
            path = folder.results / f"{table.name}.{ending}"
            write_file(path, text.encode())
            made.append(path)
    write_file(folder.results / "discovery.svg", discovery_svg(outcome).encode())
    return made


def tests_table(outcome: Outcome) -> Table:
    """Return every test with each SUT's drop: all that is kept of what passed."""
    data: list[dict[str, Any]] = []
    for row in outcome.rows:
        flat = {"test": len(data) + 1, "key": row["key"], "mutation": row["arm"][0], "base": row["base"]}
        flat["picture"] = row["picture"]
        for sut, said in row["suts"].items():
            flat |= {f"drop.{sut}": said["drop"], f"fault.{sut}": said["fault"]}
        data.append(flat | {"recipe": row["recipe"]})
    return Table("tests", "Every test", (), (), tuple(data))


def number(value: float | None) -> str:
    """Return a rate in few characters."""
    return "-" if value is None else f"{value:.1f}"


def span(low: float | None, high: float | None) -> str:
    """Return an interval in few characters; empty where there is none."""
    return "" if low is None or high is None else f"{low:.1f} to {high:.1f}"


def _range(name: str) -> str:
    low, high = BINS[name]
    return f"[{low:g}, {high:g}{']' if high == 100 else ')'}"

"""The page of a fuzz campaign: what it found, and failures to look at; one file, nothing to fetch.

The outcome of a fuzz campaign as tables, each with its CSV and JSON twins, and its curves.

The end of a fuzz campaign in the terminal: counts at a glance, within 80 columns.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

from rich.table import Table as RichTable
from rich.text import Text

from adverse.fuzz.folder import CampaignFolder
from adverse.fuzz.outcome import ALL, CampaignOutcome, Case
from adverse.fuzz.scoring import BINS
from adverse.fuzz.votes import Votes, false_positives
from adverse.report.chart import Line, Panel, svg
from adverse.report.fuzz_pictures import VIEWS, FailurePictures, View
from adverse.report.layout import rendered
from adverse.report.tables import Cell, Table
from adverse.store.durable import write_file
from adverse.text import shown

Row = Mapping[str, Any]
REASONS = 12
"""Refusals that are shown; all are in the CSV."""
DISCOVERED = {"inconsistencies": "failing tests", "bases": "failing frames", "objects": "failing objects"}


def tables_of(outcome: CampaignOutcome, comparison: Sequence[Row] | None = None) -> list[Table]:
    """Return the tables that are a pure function of the campaign."""
    made = [counts_table(outcome), discovery_table(outcome), refusals_table(outcome)]
    if len(outcome.suts) > 1:
        made.append(overlap_table(outcome))
    if comparison:
        made.append(comparison_table(comparison))
    return made


def counts_table(outcome: CampaignOutcome) -> Table:
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


def discovery_table(outcome: CampaignOutcome) -> Table:
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


def refusals_table(outcome: CampaignOutcome) -> Table:
    """Return what kept candidates from becoming tests."""
    data = outcome.refusals()
    rows = [
        (Cell(row["mutation"]), Cell(shown(row["reason"])), Cell(str(row["refused"])))
        for row in sorted(data, key=lambda row: -row["refused"])[:REASONS]
    ]
    title = "Candidates that were refused, by the check that refused them"
    return Table("refusals", title, ("mutation", "check", "refused"), tuple(rows), tuple(data))


def overlap_table(outcome: CampaignOutcome) -> Table:
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


def discovery_svg(outcome: CampaignOutcome) -> str:
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


def write_results(folder: CampaignFolder, outcome: CampaignOutcome, tables: Sequence[Table]) -> list[Path]:
    """Write every table as CSV and JSON, the curves as SVG, and the numbers of every test."""
    made = []
    for table in (*tables, tests_table(outcome)):
        for ending, text in (("csv", table.csv()), ("json", table.json())):
            path = folder.results / f"{table.name}.{ending}"
            write_file(path, text.encode())
            made.append(path)
    write_file(folder.results / "discovery.svg", discovery_svg(outcome).encode())
    return made


def tests_table(outcome: CampaignOutcome) -> Table:
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


FILE = "fuzz.html"
HEADS = {
    "counts": "What fails",
    "discovery": "How fast it was found",
    "refusals": "What was refused",
    "overlap": "Failures that SUTs share",
    "guided": "Guided and unguided",
    "review": "What reviewers say",
}
SHOWN = 36
"""Failures on the page; all of them are in the folder and on the review page."""


@dataclass(frozen=True)
class Shown:
    """A failure as the page shows it."""

    sut: str
    test: Case
    views: tuple[View, ...]


def write_fuzz_page(
    folder: CampaignFolder,
    outcome: CampaignOutcome,
    *,
    comparison: Sequence[Row] | None = None,
    reviewed: Table | None = None,
) -> Path:
    """Write the page and the tables beside it; return the page's path."""
    tables = tables_of(outcome, comparison) + ([reviewed] if reviewed else [])
    write_results(folder, outcome, tables)
    chosen = in_turns(outcome, SHOWN)
    pictures = FailurePictures(folder)
    items = [
        Shown(sut, test, tuple(pictures.view(test.key, test.base, sut, view) for view in VIEWS))
        for sut, test in chosen
    ]
    page = rendered(
        "fuzz.html",
        title=shown(outcome.campaign.study),
        words=summary_words(outcome),
        tables=tables,
        heads=HEADS,
        curves=discovery_svg(outcome),
        items=items,
        total=sum(any(test.bin for test in tests) for tests in zip(*outcome.tests.values(), strict=True)),
        legend=pictures.legend([(test.key, sut) for sut, test in chosen]),
        facts=_facts(outcome),
    )
    path = folder.path / FILE
    write_file(path, page.encode())
    return path


def times_table(folder: CampaignFolder) -> Table | None:
    """Return how long things took; kept apart from results, since it is never the same twice."""
    times = times_of(folder)
    if not times:
        return None
    data = tuple({"what": name, **values} for name, values in times.items())
    rows = tuple(
        (Cell(shown(row["what"])), Cell(str(row["tests"])), Cell(f"{row['mean_ms']:.1f}")) for row in data
    )
    return Table("times", "Milliseconds for each test", ("what", "tests", "mean ms"), rows, data)


def reviewed_table(folder: CampaignFolder, outcome: CampaignOutcome) -> Table | None:
    """Return the false-positive rates by SUT and bin; None before anybody reviewed anything."""
    votes = Votes(folder.votes)
    if not votes.entries:
        return None
    data = false_positives(outcome, votes)
    rows = tuple(
        (
            Cell(shown(row["sut"])),
            Cell(row["bin"]),
            Cell(str(row["failures"])),
            *(Cell(str(row[name])) for name in ("true", "false", "unsure", "not_reviewed")),
            Cell(_share(row["false_positive_rate"]), _ends(row["low"], row["high"]) or _not_seen(row)),
        )
        for row in data
    )
    columns = ("SUT", "bin", "failures", "true", "false", "unsure", "not reviewed", "false-positive rate")
    title = "What reviewers say; one vote for false makes a failure a false positive"
    return Table("review", title, columns, rows, tuple(data))


def _not_seen(row: Mapping[str, Any]) -> str:
    """Say why failures that were reviewed have no rate."""
    return str(row["why"]) if row["false_positive_rate"] is None and row["true"] + row["false"] else ""


def summary_words(outcome: CampaignOutcome) -> list[str]:
    """Return the campaign in a few sentences."""
    campaign, count = outcome.campaign, outcome.count
    kept = campaign.pruned
    why = f"where {shown(kept['best'])} scores below {kept['below']:g} % un-mutated"
    dropped = f"{kept['too_hard']} more were dropped" if kept["too_hard"] else "there are none"
    empty = f" {kept['not_scored']} have nothing that is judged." if kept["not_scored"] else ""
    lines = [f"{count} tests on {kept['kept']} base frames; {dropped} {why}.{empty}"]
    for sut in outcome.suts:
        failed = [test for test in outcome.tests[sut] if test.bin]
        frames = len({test.base for test in failed})
        lines.append(
            f"{shown(sut)}: {len(failed)} of {count} tests lower its score by 1 point or more; "
            f"distinct frames among them: {frames}."
        )
    share = outcome.saturation
    lines.append(
        f"{outcome.duplicates} draws made a picture that was a test already, and were not run"
        + ("." if share is None else f" ({share:.2%} of all drawn).")
    )
    if campaign.status == "saturated":
        lines.append(
            f"No more than {count} of the {campaign.asked} tests that were asked for could be made: the "
            "checks refuse the rest, or everything was drawn before."
        )
    return lines


def in_turns(outcome: CampaignOutcome, count: int) -> list[tuple[str, Case]]:
    """Return failures to look at: SUTs and mutations take turns, each with its worst first."""
    turns: list[tuple[int, int, str, Case]] = []
    for order, sut in enumerate(outcome.suts):
        for mutation in outcome.campaign.mutations:
            mine = [test for test in outcome.tests[sut] if test.bin and test.mutation == mutation]
            mine.sort(key=lambda test: (-(test.drop or 0.0), test.number))
            turns += [(turn, order, sut, test) for turn, test in enumerate(_various(mine))]
    turns.sort(key=lambda one: (one[0], one[1], one[3].mutation, one[3].number))
    return [(sut, test) for _, _, sut, test in turns[:count]]


def _various(tests: Sequence[Case]) -> list[Case]:
    """Return one test of each frame; those with an object that was shown before come last."""
    frames: set[str] = set()
    things: set[str] = set()
    first: list[Case] = []
    later: list[Case] = []
    for test in tests:
        if test.base not in frames:
            (later if test.thing in things else first).append(test)
            frames.add(test.base)
            things.add(test.thing)
    return [*first, *later]


def _facts(outcome: CampaignOutcome) -> list[tuple[str, str]]:
    campaign = outcome.campaign
    facts: list[tuple[str, Any]] = [
        ("adverse", campaign.made_by),
        ("data", f"{campaign.data}, {campaign.frames} frames"),
        ("seed", campaign.seed),
        ("scorer", campaign.scorer),
        ("choice of tests", "guided" if campaign.guided else "unguided"),
        ("resource set", campaign.resources),
        ("campaign", campaign.key),
        *((f"SUT {name}", f"fingerprint {print_[:16]}") for name, print_ in campaign.suts.items()),
    ]
    return [(shown(name), shown(value)) for name, value in facts]


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def _ends(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{low:.0%} to {high:.0%}"


TERMINAL_HEADS = ("mutation", "tests", "mod", "sig", "ext", "per 1,000", "95 %", "paper")


def counts_tables(outcome: CampaignOutcome) -> list[RichTable]:
    """Return a table for each SUT."""
    rows = outcome.counts()
    made = []
    for sut in outcome.suts:
        table = RichTable(title=f"{sut}: drops of 1 point or more", title_justify="left")
        for place, head in enumerate(TERMINAL_HEADS):
            table.add_column(head, justify="left" if place == 0 else "right")
        for row in rows:
            if row["sut"] != sut:
                continue
            if row["mutation"] == ALL:
                table.add_section()
            published = row["published_scorer"]
            table.add_row(
                Text(row["mutation"], style="bold" if row["mutation"] == ALL else ""),
                str(row["tests"]),
                *(str(row[name]) for name in BINS),
                number(row["per_1000"]),
                span(row["per_1000_low"], row["per_1000_high"]) or "-",
                "-" if published is None else str(published),
            )
        made.append(table)
    return made


def comparison_lines(comparison: Sequence[Row]) -> list[str]:
    """Return what guiding was worth, in words."""
    lines = []
    for row in comparison:
        interval = span(row["difference_low"], row["difference_high"])
        lines.append(
            f"{row['sut']}: guided {number(row['guided_per_1000'])}, unguided "
            f"{number(row['unguided_per_1000'])} inconsistencies per 1,000 tests; difference "
            f"{number(row['difference'])}" + (f" ({interval})" if interval else "") + f": {_meant(row)}"
        )
        lines.append(
            f"  distinct failing frames {row['guided_bases']} guided, {row['unguided_bases']} unguided; "
            f"objects {row['guided_objects']} and {row['unguided_objects']}"
        )
    return lines


def _meant(row: Row) -> str:
    low, high = row["difference_low"], row["difference_high"]
    if low is None or high is None:
        return "no interval, so nothing is claimed"
    if low > 0:
        return "guiding finds more"
    return "guiding finds fewer" if high < 0 else "no difference that these logs could show"

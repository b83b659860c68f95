"""The page of a fuzz campaign: what it found, and failures to look at; one file, nothing to fetch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adverse.fuzz.folder import CampaignFolder
from adverse.fuzz.outcome import Case, Outcome
from adverse.fuzz.votes import Votes, false_positives
from adverse.report.fuzz_pictures import VIEWS, FailurePictures, View
from adverse.report.fuzz_tables import Row, discovery_svg, tables_of, times_of, write_results
from adverse.report.sheet import rendered
from adverse.report.tables import Cell, Table
from adverse.report.words import shown
from adverse.study.store.durable import write_file

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
    outcome: Outcome,
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
        title=shown(outcome.manifest["study"]),
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


def reviewed_table(folder: CampaignFolder, outcome: Outcome) -> Table | None:
    """Return the false-positive rates by SUT and bin; None before anybody reviewed anything."""
    votes = Votes(folder.votes)
    if not votes.all:
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


def summary_words(outcome: Outcome) -> list[str]:
    """Return the campaign in a few sentences."""
    manifest, count = outcome.manifest, outcome.count
    kept = manifest["pruned"]
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
    if manifest["status"] == "saturated":
        lines.append(
            f"No more than {count} of the {manifest['asked']} tests that were asked for could be made: the "
            "checks refuse the rest, or everything was drawn before."
        )
    return lines


def in_turns(outcome: Outcome, count: int) -> list[tuple[str, Case]]:
    """Return failures to look at: SUTs and mutations take turns, each with its worst first."""
    turns: list[tuple[int, int, str, Case]] = []
    for order, sut in enumerate(outcome.suts):
        for mutation in outcome.manifest["mutations"]:
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


def _facts(outcome: Outcome) -> list[tuple[str, str]]:
    manifest: Any = outcome.manifest
    facts = [
        ("adverse", manifest["adverse"]),
        ("data", f"{manifest['data']['name']}, {manifest['data']['frames']} frames"),
        ("seed", manifest["seed"]),
        ("scorer", manifest["scorer"]),
        ("choice of tests", "guided" if manifest["guided"] else "unguided"),
        ("resource set", manifest["resources"]),
        ("campaign", manifest["key"]),
        *((f"SUT {name}", f"fingerprint {print_[:16]}") for name, print_ in manifest["suts"].items()),
    ]
    return [(shown(name), shown(value)) for name, value in facts]


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def _ends(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{low:.0%} to {high:.0%}"

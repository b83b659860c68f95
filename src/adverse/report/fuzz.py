"""A fuzz campaign: its tables, its curves, and its end in the terminal."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median, pstdev
from typing import Any

from adverse.curves.interval import Interval
from adverse.fuzz.causes import causes_of
from adverse.fuzz.compare import GuidedGain
from adverse.fuzz.folder import CampaignFolder
from adverse.fuzz.objects import KINDS, ObjectVerdict
from adverse.fuzz.outcome import CampaignOutcome, weights_text
from adverse.fuzz.plan import unanswered_words
from adverse.fuzz.scoring import ALL, Bins, bin_range, least_drop
from adverse.fuzz.votes import SAYS, ReviewedBin, Votes, false_positives
from adverse.report.fuzz_charts import DISCOVERED, counts_chart, discovery_chart
from adverse.report.table import Cell, Column, Table, columns
from adverse.text import counted, shown

REASONS = 12
"""Refusals that are shown; all are in the CSV."""
GENERATION = "test generation"


def tables_of(outcome: CampaignOutcome, comparison: Sequence[GuidedGain] | None = None) -> list[Table]:
    """Return the tables that are a pure function of the campaign."""
    made = [
        counts_table(outcome),
        objects_table(outcome),
        causes_table(outcome),
        discovery_table(outcome),
        refusals_table(outcome),
    ]
    if len(outcome.suts) > 1:
        made.append(overlap_table(outcome))
    if comparison:
        made.append(guiding_table(comparison))
    return made


def counts_table(outcome: CampaignOutcome) -> Table:
    """Return counts for each SUT x mutation x bin, and the rate."""
    counts = outcome.counts()
    bins = outcome.campaign.bins
    rows = tuple(
        (
            Cell(row.sut),
            Cell(
                row.mutation,
                details=(f"rate: {weights_text(row.weights)}",) if row.weights else (),
                tone="strong" if row.mutation == ALL else "",
            ),
            Cell(row.tests),
            *(Cell(row.bins[name]) for name in bins),
            Cell(row.inconsistencies),
            _interval_cell(row.per_1000, ".1f"),
            Cell(row.published_scorer),
            Cell(row.faults),
        )
        for row in counts
    )
    headings = (
        *columns("SUT", "mutation", "tests", left=2),
        *(Column(heading, brief=name[:3]) for name, heading in _headings(bins).items()),
        Column(ALL),
        Column(RATE, ".1f", brief="per 1,000"),
        Column(PUBLISHED, brief="paper"),
        Column("faults"),
    )
    groups = {number: "" for number, row in enumerate(counts) if row.mutation == ALL}
    title = f"Inconsistencies: tests whose score falls by {points_words(bins)} or more"
    return Table("counts", title, headings, rows, tuple(row.record() for row in counts), groups)


def objects_table(outcome: CampaignOutcome) -> Table:
    """Return what goes wrong with objects, for each SUT x mutation."""
    counts = outcome.object_counts()
    rows = tuple(
        (
            Cell(row.sut),
            Cell(row.mutation),
            Cell(row.answered),
            *(Cell(row.kinds[kind]) for kind in KINDS),
            _interval_cell(row.per_1000, ".1f"),
            Cell(row.added, text=None if row.added is None else f"{row.added:.2f}"),
        )
        for row in counts
    )
    headings = (
        *columns("SUT", "mutation", "tests", left=2),
        *columns(*OBJECT_HEADS, left=0),
        Column(RATE, ".1f", brief="per 1,000"),
        Column("added object, median IoU", ".2f", brief="IoU"),
    )
    title = "Objects: tests in which one is missed, lost or made up, whatever the image scores"
    return Table("objects", title, headings, rows, tuple(row.record() for row in counts))


def causes_table(outcome: CampaignOutcome) -> Table:
    """Return what failures share, for each SUT, with what no cause holds as a last row."""
    rows: list[tuple[Cell, ...]] = []
    records: list[dict[str, Any]] = []
    for found in (causes_of(outcome, sut) for sut in outcome.suts):
        for cause in found.causes:
            counts = f"{cause.failures} of {cause.tests}", f"{cause.other_failures} of {cause.other_tests}"
            words = Cell(shown(cause.words, longest=300))
            rows.append((Cell(cause.sut), words, *map(Cell, counts), _interval_cell(cause.rate, ".1f")))
            records.append(cause.record())
        rest = f"{found.unexplained} of {found.failures} failures share nothing that stands out."
        rows.append((Cell(found.sut), Cell(rest), Cell(), Cell(), Cell()))
    headings = (
        *columns("SUT", "cause", "failing", "of the others", left=4),
        Column(RATE, ".1f", brief="per 1,000"),
    )
    title = "What failures share, against the tests that do not; each without the tests of those above it"
    return Table("causes", title, headings, tuple(rows), tuple(records))


def cause_lines(outcome: CampaignOutcome) -> list[str]:
    """Return what failures share, a sentence for each cause."""
    lines = []
    for found in (causes_of(outcome, sut) for sut in outcome.suts):
        lines += [f"{shown(found.sut)}: {shown(cause.words, longest=300)}" for cause in found.causes]
    return lines


def object_tables(outcome: CampaignOutcome) -> Iterator[Table]:
    """Yield the verdicts about objects for each SUT, narrow enough for a terminal."""
    whole = objects_table(outcome)
    for sut in outcome.suts:
        table = whole.where("SUT", sut).only("mutation", "tests", *OBJECT_HEADS, RATE)
        yield replace(table, title=f"{shown(sut)}: objects missed, lost or made up")


def _interval_cell(interval: Interval, spec: str) -> Cell:
    """Return a value with its interval below it; why it has none, or a doubtful one, on a closer look."""
    return Cell(interval.value, details=(interval.text(spec),), note=interval.why)


def counts_tables(outcome: CampaignOutcome) -> Iterator[Table]:
    """Yield the counts of each SUT, narrow enough for a terminal."""
    whole = counts_table(outcome)
    bins = outcome.campaign.bins
    for sut in outcome.suts:
        table = whole.where("SUT", sut).only("mutation", "tests", *_headings(bins).values(), RATE, PUBLISHED)
        yield replace(table, title=f"{shown(sut)}: drops of {points_words(bins)} or more")


OBJECT_HEADS = ("added, not found", "lost", "phantom")
"""One for each kind of verdict."""
RATE, PUBLISHED = "per 1,000 tests", "by the published scorer"


def discovery_table(outcome: CampaignOutcome) -> Table:
    """Return what is known after so many tests, at a few of them; CSV and JSON have all points."""
    records = outcome.discovery()
    at = sorted({row["tests"] for row in records})
    chosen = {at[round(part * (len(at) - 1) / 5)] for part in range(1, 6)}
    rows = tuple(
        (
            Cell(row["sut"]),
            Cell(DISCOVERED[row["of"]]),
            Cell(row["severity"]),
            Cell(str(row["tests"])),
            Cell(row["expected"]),
            Cell(row["permuted"]),
        )
        for row in records
        if row["tests"] in chosen
    )
    headings = (
        "SUT",
        "distinct",
        "this bad or worse",
        "after tests",
        "found, all orders",
        "found, mean of 10 orders",
    )
    title = "Found after so many tests: all points are in the CSV"
    return Table("discovery", title, columns(*headings, format=".1f", left=3), rows, tuple(records))


def refusals_table(outcome: CampaignOutcome) -> Table:
    """Return what kept candidates from becoming tests."""
    records = outcome.refusals()
    rows = tuple(
        (Cell(row["mutation"]), Cell(row["reason"]), Cell(row["refused"]))
        for row in sorted(records, key=lambda row: -row["refused"])[:REASONS]
    )
    title = "Candidates that were refused, by the check that refused them"
    headings = columns("mutation", "check", "refused", left=2)
    return Table("refusals", title, headings, rows, tuple(records))


def overlap_table(outcome: CampaignOutcome) -> Table:
    """Return how far SUTs fail on the same tests."""
    records = outcome.overlap()
    rows = tuple(
        (
            Cell(shown(f"{row['first']} and {row['second']}", longest=160)),
            Cell(row["fail_first"]),
            Cell(row["fail_second"]),
            Cell(row["fail_both"]),
            Cell(row["share_of_either"]),
        )
        for row in records
    )
    headings = (
        *columns("SUTs", "fail the first", "fail the second", "fail both"),
        Column("both, of either", ".1%"),
    )
    return Table("overlap", "Failures that SUTs share", headings, rows, tuple(records))


def guiding_table(comparison: Sequence[GuidedGain]) -> Table:
    """Return guided beside unguided."""
    rows = tuple(
        (
            Cell(row.sut),
            Cell(row.guided.value, details=(weights_text(row.guided_weights),)),
            Cell(row.unguided.value, details=(weights_text(row.unguided_weights),)),
            _interval_cell(row.difference, ".1f"),
            Cell(f"{row.guided_bases} / {row.unguided_bases}"),
            Cell(f"{row.guided_objects} / {row.unguided_objects}"),
            Cell(f"{row.guided_kinds} / {row.unguided_kinds}"),
        )
        for row in comparison
    )
    headings = (
        "SUT",
        "guided",
        "unguided",
        "difference",
        "failing frames",
        "failing objects",
        "kinds of failure",
    )
    title = "Inconsistencies per 1,000 tests, guided beside unguided (same tests, same seed)"
    return Table(
        "guided", title, columns(*headings, format=".1f"), rows, tuple(row.record() for row in comparison)
    )


def times_table(folder: CampaignFolder) -> Table | None:
    """Return how long things took, as table 3 of the paper; kept apart from results: never the same twice.

    None where no time was written down.
    """
    spent: dict[str, dict[str, list[float]]] = {GENERATION: {}}
    if folder.times.exists():
        for line in folder.times.read_text().splitlines():
            row = json.loads(line)
            for name, value in row.items():
                if name != "mutation":
                    activity = GENERATION if name == "generation_s" else name.removeprefix("sut ")
                    spent.setdefault(activity, {}).setdefault(row["mutation"], []).append(1000 * value)
    mutations = list(spent[GENERATION])
    if not mutations:
        return None
    records = [
        {
            "activity": activity,
            "mutation": name,
            "tests": len(values),
            "mean_ms": fmean(values),
            "deviation_ms": pstdev(values),
            "median_ms": median(values),
        }
        for activity, by_mutation in spent.items()
        for name, values in by_mutation.items()
    ]
    rows = tuple(
        (Cell(activity), *(_time_cell(by_mutation.get(name)) for name in mutations))
        for activity, by_mutation in spent.items()
    )
    title = "Milliseconds for a test, mean (standard deviation)"
    return Table("times", title, columns("activity", *mutations), rows, tuple(records))


def _time_cell(values: Sequence[float] | None) -> Cell:
    if not values:
        return Cell()
    return Cell(fmean(values), text=f"{fmean(values):.1f} ({pstdev(values):.1f})")


def write_results(folder: CampaignFolder, outcome: CampaignOutcome, tables: Sequence[Table]) -> list[Path]:
    """Write every table as CSV and JSON, the curves as SVG, and the numbers of every test."""
    files: dict[str, bytes] = {}
    for table in (*tables, tests_table(outcome)):
        for ending, text in (("csv", table.csv()), ("json", table.json())):
            files[f"results/{table.name}.{ending}"] = text.encode()
    for name, chart in (("discovery", discovery_chart(outcome)), ("counts", counts_chart(outcome))):
        files[f"results/{name}.svg"] = chart.svg().encode()
    return folder.write_derived(files)


def tests_table(outcome: CampaignOutcome) -> Table:
    """Return every test with each SUT's drop: all that is kept of what passed."""
    data: list[dict[str, Any]] = []
    for number, row in enumerate(outcome.rows):
        flat = {"test": number + 1, "key": row["key"], "mutation": row["arm"][0], "base": row["base"]}
        flat["picture"] = row["picture"]
        for sut, result in row["suts"].items():
            said = "; ".join(ObjectVerdict.read(verdict).words for verdict in result["verdicts"])
            flat |= {f"drop.{sut}": result["drop"], f"fault.{sut}": outcome.tests[sut][number].fault}
            flat |= {f"objects.{sut}": said, f"added.{sut}": result["added"]}
        data.append(flat | {"recipe": row["recipe"]})
    return Table("tests", "Every test", (), (), tuple(data))


def _headings(bins: Bins) -> dict[str, str]:
    """Return the heading of each bin: its name and where it begins and ends."""
    return {name: f"{name} {bin_range(name, bins)}" for name in bins}


def points_words(bins: Bins) -> str:
    """Return from how many percentage points on a drop is an inconsistency."""
    least = least_drop(bins)
    return f"{least:g} percentage point{'s' if least != 1 else ''}"


def reviewed_table(folder: CampaignFolder, outcome: CampaignOutcome) -> Table | None:
    """Return the false-positive rates by SUT and bin; None before anybody reviewed anything."""
    votes = Votes(folder.votes)
    if not votes.entries:
        return None
    reviewed = false_positives(outcome, votes)
    rows = tuple(
        (
            Cell(row.sut),
            Cell(row.bin),
            Cell(row.failures),
            *(Cell(row.votes[says]) for says in (*SAYS, None)),
            Cell(
                row.false_positive_rate.value,
                details=(row.false_positive_rate.text(".0%") or _not_rated(row),),
                note=row.false_positive_rate.why,
            ),
        )
        for row in reviewed
    )
    headings = (
        *columns("SUT", "bin", "failures", "true", "false", "unsure", "not reviewed", left=2),
        Column("false-positive rate", ".0%"),
    )
    title = "What reviewers say; one vote for false makes a failure a false positive"
    return Table("review", title, headings, rows, tuple(row.record() for row in reviewed))


def _not_rated(row: ReviewedBin) -> str:
    """Say why failures that were reviewed have no rate."""
    rate = row.false_positive_rate
    return rate.why if rate.value is None and row.votes["true"] + row.votes["false"] else ""


def summary_words(outcome: CampaignOutcome) -> list[str]:
    """Return the campaign in a few sentences."""
    campaign, count = outcome.campaign, outcome.count
    pruned = campaign.pruned
    why = f"{shown(pruned['best'])} scores below {pruned['below']:g} % on the clean image"
    dropped = f"{pruned['too_hard']} more were dropped, where" if pruned["too_hard"] else "on none of them"
    none = pruned["not_scored"]
    empty = f" {none} {'has' if none == 1 else 'have'} no ground truth to score against." if none else ""
    unanswered = "".join(f" {line}." for line in unanswered_words(pruned["unanswered"]))
    lines = [f"{count} tests on {pruned['kept']} base frames; {dropped} {why}.{empty}{unanswered}"]
    if campaign.replays is not None:
        lines = [
            f"{count} tests on {pruned['kept']} base frames, those of the campaign that is replayed."
            + unanswered
        ]
    for sut in outcome.suts:
        failed = [test for test in outcome.tests[sut] if test.bin]
        scored = sum(test.drop is not None for test in outcome.tests[sut])
        frames = len({test.base for test in failed})
        faults = sum(test.fault is not None for test in outcome.tests[sut])
        silent = (
            f" {counted(faults, 'test')} without an answer, or with none to the frame before."
            if faults
            else ""
        )
        lines.append(
            f"{shown(sut)}: {len(failed)} of {counted(scored, 'scored test')} lower its score by "
            f"{points_words(campaign.bins)} or more; distinct frames among them: {frames}.{silent}"
        )
        wrong = [test for test in outcome.tests[sut] if test.verdicts]
        kinds = Counter(kind for test in wrong for kind in {verdict.kind for verdict in test.verdicts})
        words = ", ".join(f"{kinds[kind]} {head}" for kind, head in zip(KINDS, OBJECT_HEADS, strict=True))
        small = sum(test.bin is None for test in wrong)
        lines.append(
            f"{shown(sut)}: {counted(len(wrong), 'test')} with a wrong object ({words}); {small} of them "
            "hardly move the score."
        )
        unseen = sum(bool(test.says_nothing and test.unseen) for test in outcome.tests[sut])
        if unseen:
            lines.append(
                f"{shown(sut)}: {counted(unseen, 'test')} without a failure that "
                f"{'says' if unseen == 1 else 'say'} nothing: most of the unmutated frame is wrong, or "
                "what is repainted, or any object at all, is not found in it."
            )
    if campaign.replays is None:
        lines.append(
            f"{outcome.duplicates} of {counted(outcome.draws, 'draw')} gave no test, as what the few frames "
            "that a draw tries made of it was a test already."
        )
    if outcome.short:
        which = ", ".join(f"{made} of {wanted} of {name}" for name, (made, wanted) in outcome.short.items())
        lines.append(
            f"No more than {count} of the {campaign.requested} requested tests could be made ({which}): the "
            "checks refuse the rest, or everything was drawn before."
        )
    return lines


def guiding_lines(comparison: Sequence[GuidedGain]) -> list[str]:
    """Return what guiding was worth, in words."""
    lines = []
    for row in comparison:
        interval = row.difference.text(".1f")
        rates = [_rate(rate.value) for rate in (row.guided, row.unguided, row.difference)]
        lines.append(
            f"{row.sut}: guided {rates[0]} ({weights_text(row.guided_weights)}), unguided {rates[1]} "
            f"({weights_text(row.unguided_weights)}) inconsistencies per 1,000 tests; "
            f"difference {rates[2]}"
            + (f" ({interval})" if interval else "")
            + f": {_meaning(row.difference)}"
        )
        lines.append(
            f"  distinct failing frames {row.guided_bases} guided, {row.unguided_bases} unguided; "
            f"objects {row.guided_objects} and {row.unguided_objects}; "
            f"kinds of failure {row.guided_kinds} and {row.unguided_kinds}"
        )
    return lines


def _rate(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _meaning(difference: Interval) -> str:
    if difference.low is None or difference.high is None:
        return f"no interval ({difference.why}), so nothing is claimed"
    if difference.low > 0:
        return "guiding finds more"
    return "guiding finds fewer" if difference.high < 0 else "no difference that these logs could show"

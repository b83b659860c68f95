"""The report of a run: one HTML file that opens from disk, with nothing to fetch and nothing to trust."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from adverse.analysis.results import Summary, read_summary
from adverse.benchmarks.mpc import CORRUPTIONS, SEVERITIES
from adverse.benchmarks.table import cells_of
from adverse.mutations.hazards import HazardCoverage, hazard_coverage
from adverse.report.answer import answers, untested
from adverse.report.carried_verdicts import requirement_answers, requirement_tables
from adverse.report.closed_loop import drives
from adverse.report.galleries import failures, mutation_gallery
from adverse.report.hazards import hazard_table
from adverse.report.layout import rendered
from adverse.report.pictures import Looker
from adverse.report.scores import benchmark_tables, class_tables
from adverse.report.tables import Cell, Table, level_tables, metric_tables, ranking_table
from adverse.report.terminal import quality
from adverse.report.tradeoffs import MARKED, figures
from adverse.report.visual import visual_change_table
from adverse.requirements.verdicts import read_verdicts
from adverse.store.finished import finished
from adverse.store.folder import BENCHMARK
from adverse.store.read import Store
from adverse.store.seals import drop_derived, read_seals
from adverse.text import shown

FILE, TABLES = "report.html", "report_tables"
"""Beside the results rather than among them: no command reads them."""
UNCHECKED = (
    "No requirement was checked; adverse check with --save does, and its verdicts are then shown here."
)


def write_report(run: Path, *, trust: bool = False, tell: Callable[[str], None] | None = None) -> Path:
    """Write report.html into the run folder, beside it every table as CSV and JSON; return its path.

    Frames are shown by reading the data set again; the plug-ins that the run's study names for that are only
    run with `trust`, and `tell` hears of what is not shown without them.
    """
    store = finished(run)
    summary = read_summary(store)
    looker = Looker(store, trust=trust)
    files = {FILE: render(looker, summary).encode()}
    if tell is not None and looker.withheld and (words := looker.why_not() or looker.not_pictured()):
        tell(words)
    for table in _tables(looker, summary):
        stem = "".join(char if char.isalnum() else "_" for char in table.name)
        files[f"{TABLES}/{stem}.csv"] = table.csv().encode()
        files[f"{TABLES}/{stem}.json"] = table.json().encode()
    before = [name for name in read_seals(store.folder) if name.startswith(f"{TABLES}/")]
    drop_derived(store.folder, [name for name in before if name not in files])
    store.write(files)
    return store.folder.path / FILE


def render(looker: Looker, summary: Summary) -> str:
    """Return the whole page."""
    store = looker.store
    verdicts = read_verdicts(store)
    detection = summary.data["task"] == "detection"
    no_pictures = looker.why_not()
    hazards = hazards_of(looker)
    return rendered(
        "report.html",
        title=shown(summary.data["study"]),
        run=store.run,
        answers=[*answers(summary), *requirement_answers(verdicts)],
        untested=[*untested(summary), *hazards.sentences(), *([] if verdicts else [UNCHECKED])],
        hazards=hazard_table(hazards),
        seen=visual_change_table(summary),
        requirements=requirement_tables(verdicts),
        benchmark=benchmark_tables(store),
        no_benchmark=_could_be_benchmarked(store),
        classes=class_tables(summary),
        class_suts=store.suts,
        remarks=[*(line.removeprefix("- ") for line in quality(summary)), *_not_pictured(looker)],
        changes=list(summary.data.get("ranking_changes", ())),
        levels=[*level_tables(summary), *metric_tables(summary)],
        rankings=ranking_table(summary),
        told_all=all(one["probability"] is not None for one in summary.data.get("rankings", ())),
        predictions=list(prediction_tables(summary)) if detection else [],
        figures=list(figures(store)) if detection else [],
        marked=MARKED,
        failures=failures(summary, looker) if detection and no_pictures is None else [],
        gallery=list(mutation_gallery(store, looker)) if no_pictures is None else [],
        no_pictures=no_pictures,
        drives=drives(store) if detection else [],
        facts=_facts(store, summary),
    )


def _not_pictured(looker: Looker) -> list[str]:
    words = None if looker.why_not() else looker.not_pictured()
    return [shown(words, longest=500)] if words else []


def hazards_of(looker: Looker) -> HazardCoverage:
    """Return which hazards a run exercised, by what its mutations say; untrusted plug-ins are not asked."""
    return hazard_coverage(looker.store.groups, looker.known_plugins())


def _tables(looker: Looker, summary: Summary) -> list[Table]:
    store = looker.store
    rankings = ranking_table(summary)
    predicted = prediction_tables(summary) if summary.data["task"] == "detection" else ()
    maybe = (rankings, visual_change_table(summary))
    return [
        *level_tables(summary),
        *metric_tables(summary),
        *(table for table in maybe if table),
        hazard_table(hazards_of(looker)),
        *predicted,
        *benchmark_tables(store),
        *class_tables(summary),
        *requirement_tables(read_verdicts(store)),
    ]


def _could_be_benchmarked(store: Store) -> bool:
    """Tell whether a run has the whole battery of the corruption benchmark, but not its numbers."""
    whole = len(cells_of(store)) == len(CORRUPTIONS) * len(SEVERITIES)
    return whole and store.result(f"{BENCHMARK}.json") is None


def prediction_tables(summary: Summary) -> Iterator[Table]:
    """Yield how well contextual mutations can be predicted from simple ones."""
    predictions = summary.data["predictions"]
    for contextual in dict.fromkeys(row["contextual"] for row in predictions):
        data = tuple(row for row in predictions if row["contextual"] == contextual)
        rows = tuple(
            (Cell(row["sut"]), Cell(_number(row["r2"])), Cell(_number(row["squared_correlation"])))
            for row in data
        )
        title = f"{contextual} from {data[0]['simple']}, at level {data[0]['level']}"
        yield Table(f"predict {contextual}", title, ("SUT", "R²", "squared correlation"), rows, data)


def _facts(store: Store, summary: Summary) -> list[tuple[str, str]]:
    """Return what the numbers rest on."""
    run, data, made = store.run, store.run.data, store.run.provenance
    frames = ", ".join(f"{count} {split} frames" for split, count in data.frames.items())
    counts = summary.data["counts"]
    facts = [
        ("adverse", f"{made.version}, commit {made.commit or 'of a release'}"),
        ("study", f"seed {run.seed}, task {run.task}"),
        ("data", f"{data.format}, {data.logs} logs, {frames}, fingerprint {data.fingerprint[:16]}"),
        *(
            (f"SUT {sut.name}", f"fingerprint {sut.fingerprint[:16]}, {counts[sut.name]['planned']} images")
            for sut in run.suts
        ),
        ("machine", f"{made.cpu}, {made.system}, Python {made.python}"),
        ("libraries", ", ".join(f"{name} {version}" for name, version in made.libraries.items())),
        ("engine", f"{made.engine}, {made.workers} workers"),
    ]
    return [(shown(name), shown(value, longest=400)) for name, value in facts]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"

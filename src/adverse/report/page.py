"""The report of a run: one HTML file that opens from disk, with nothing to fetch and nothing to trust."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from adverse.analysis.results import Summary, read_summary
from adverse.analysis.stopped import opened
from adverse.analysis.thresholds import MARKED, SLACK
from adverse.benchmarks.mpc import CORRUPTIONS, SEVERITIES
from adverse.benchmarks.table import cells_of
from adverse.content import NOT_NOTICED
from adverse.mutations.hazards import HazardCoverage, hazard_coverage
from adverse.report import agreement
from adverse.report.answer import answers, choices, untested
from adverse.report.benchmark import benchmark_tables, class_tables, saved_benchmark
from adverse.report.benchmark_figures import page_figures
from adverse.report.brief import stop_sentences
from adverse.report.closed_loop import drives
from adverse.report.film import Film, film_of
from adverse.report.first_screen import first_screen
from adverse.report.galleries import (
    EXPLORER_PORT,
    failures,
    mutation_gallery,
    telling_failure,
    telling_image,
)
from adverse.report.layout import rendered
from adverse.report.pictures import Looker
from adverse.report.plain_tables import operating_words, plain_answer, plain_tables
from adverse.report.prediction_figures import prediction_figures
from adverse.report.relations import relation_tables, violations
from adverse.report.remarks import quality
from adverse.report.run_tables import (
    adr_table,
    hazard_table,
    level_tables,
    levels_table,
    metric_label,
    metric_tables,
    prediction_tables,
    ranking_table,
    unseen_table,
    visual_change_table,
)
from adverse.report.slices import range_table, slice_sentences, slice_tables
from adverse.report.stopped import looks_table, stopped_basis
from adverse.report.stops import stop_figures, stop_tables
from adverse.report.strength_figures import strength_figures, strength_metrics
from adverse.report.table import Table
from adverse.report.tradeoffs import figures, level_words
from adverse.report.verdicts import verdict_answers, verdict_tables
from adverse.requirements.gate import saved_rules, saved_verdicts
from adverse.requirements.verdicts import Verdict
from adverse.robot.profile import Robot
from adverse.store.folder import BENCHMARK, sut_log
from adverse.store.read import Store
from adverse.store.run import kill_remarks
from adverse.store.seal_list import read_seals
from adverse.store.seals import broken_seal, drop_derived, made_by
from adverse.text import shown

FILE, FILM, TABLES = "report.html", "report_film.webp", "report_tables"
"""Beside the results rather than among them: no command reads them."""
UNCHECKED = (
    "The run was not checked against rules; adverse check RUN RULES --save does that, and its verdicts are "
    "shown here."
)


def write_report(run: Path, *, trust: bool = False, tell: Callable[[str], None] | None = None) -> Path:
    """Write report.html into the run folder, every table as CSV and JSON and the film beside it; return it.

    Frames are shown by reading the data set again; the plug-ins that the run's study names for that are only
    run with `trust`, and `tell` hears of what is not shown without them.
    """
    looker = Looker(opened(run, rewrites=(FILE, f"{TABLES}/")), trust=trust)
    summary = read_summary(looker.store)
    for error in looker.store.tolerated:
        (tell or _silent)(f"{error.what}: {error.where}; it is made again")
    return write_report_of(looker, summary, page_tables(looker, summary), tell=tell)


def _silent(_: str) -> None:
    pass


def write_report_of(
    looker: Looker, summary: Summary, tables: PageTables, *, tell: Callable[[str], None] | None = None
) -> Path:
    """Do the same for a run that is open already."""
    store = looker.store
    files = report_files(looker, summary, tables)
    if tell is not None and looker.withheld and (words := looker.why_not() or looker.not_pictured()):
        tell(words)
    if tell is not None and (words := looker.changed_words()):
        tell(words)
    before = [name for name in read_seals(store.folder) if name.startswith((f"{TABLES}/", FILM))]
    drop_derived(store.folder, [name for name in before if name not in files])
    store.write(files)
    return store.folder.path / FILE


def report_files(looker: Looker, summary: Summary, tables: PageTables) -> dict[str, bytes]:
    """Return the page, the film and every table as CSV and JSON, by path below the run folder."""
    film = film_of(looker) if summary.data["task"] == "detection" and looker.why_not() is None else None
    files = {FILE: render(looker, summary, tables, film).encode()}
    if film is not None:
        files[FILM] = film.data
    for table in tables.all():
        stem = "".join(char if char.isalnum() else "_" for char in table.name)
        files[f"{TABLES}/{stem}.csv"] = table.csv().encode()
        files[f"{TABLES}/{stem}.json"] = table.json().encode()
    return files


def current_report(store: Store) -> Path | None:
    """Return the page if it is as it was written: from this state of the run, after results and verdicts."""
    folder = store.folder
    seals, path = read_seals(folder), folder.path / FILE
    if FILE not in seals or broken_seal(folder, FILE, seals[FILE], store.state, made_by(folder, FILE)):
        return None
    shown_in_it = [folder.path / name for name in seals if name.startswith(("results/", "verdicts/"))]
    written = path.stat().st_mtime_ns
    current = all(other.exists() and other.stat().st_mtime_ns <= written for other in shown_in_it)
    return path if current else None


@dataclass(frozen=True)
class PageTables:
    """The tables of a report, each made once: for the page, and for the CSV and JSON files beside it."""

    coverage: HazardCoverage
    verdicts: Mapping[str, Sequence[Verdict]]
    side_by_side: Table | None
    levels: Sequence[Table]
    adr: Table | None
    plain: Sequence[Table]
    relations: Sequence[Table]
    rankings: Table | None
    visual_change: Table | None
    hazards: Table
    predictions: Sequence[Table]
    unseen: Table | None
    benchmark: Sequence[Table]
    classes: Sequence[Table]
    requirements: Sequence[Table]
    stops: Mapping[tuple[str, str], Table]
    slices: Sequence[Table]
    detection_range: Table | None
    looks: Table | None
    """Logs used by each SUT under each mutation, where a run stopped early."""

    def all(self) -> list[Table]:
        """Return all of them, in the order of their files."""
        optional = (
            self.side_by_side,
            self.adr,
            self.rankings,
            self.unseen,
            self.visual_change,
            self.detection_range,
            self.looks,
        )
        return [
            *self.levels,
            *self.plain,
            *self.relations,
            *(table for table in optional if table),
            self.hazards,
            *self.predictions,
            *self.benchmark,
            *self.classes,
            *self.requirements,
            *self.stops.values(),
            *self.slices,
        ]


def page_tables(looker: Looker, summary: Summary, *, computed: bool = False) -> PageTables:
    """Make the tables of a run's report; `computed`: the summary was computed just now, not read."""
    coverage, registry = hazards_of(looker), looker.known_plugins()
    just_now = summary if computed else None
    verdicts = saved_verdicts(looker.store, registry=registry, summary=just_now)
    summary = summary.without_failed()
    tables = PageTables(
        coverage,
        verdicts,
        levels_table(summary),
        [*level_tables(summary), *metric_tables(summary)],
        adr_table(summary),
        plain_tables(summary),
        relation_tables(summary),
        ranking_table(summary),
        visual_change_table(summary),
        hazard_table(coverage),
        list(prediction_tables(summary)) if summary.data["task"] == "detection" else [],
        unseen_table(summary),
        benchmark_tables(saved_benchmark(looker.store)),
        class_tables(summary),
        verdict_tables(verdicts),
        stop_tables(summary),
        slice_tables(summary, looker.store.run, summary.data.get("slices", ())),
        range_table(summary, looker.store.run),
        looks_table(summary),
    )
    return tables if looker.store.run.truth is None else agreement.all_tables(tables)


def render(looker: Looker, summary: Summary, tables: PageTables, film: Film | None = None) -> str:
    """Return the whole page."""
    store, summary = looker.store, summary.without_failed()
    verdicts = tables.verdicts
    detection = summary.data["task"] == "detection"
    no_pictures = looker.why_not()
    pictured = failures(summary, looker) if detection and no_pictures is None else []
    telling = telling_failure(summary, looker) if detection and no_pictures is None else None
    lost_image = telling_image(summary, looker) if not detection and no_pictures is None else None
    gallery = list(mutation_gallery(store, looker)) if no_pictures is None else []
    page = rendered(
        "report.html",
        basis=agreement.basis(store.run) or stopped_basis(summary),
        looks=tables.looks,
        robot_words=Robot(**store.run.robot).words if store.run.robot else "",
        title=shown(summary.data["study"]),
        run=store.run,
        first=first_screen(
            summary,
            store.run,
            verdicts,
            telling,
            tables.coverage,
            saved_rules(store) if verdicts else (),
            film_of=None if film is None else (film.sut, film.setting),
        ),
        answers=[
            *(f"{line[0].upper()}{line[1:]}." for line in choices(summary, store.run)),
            *stop_sentences(summary, store.run),
            *answers(summary),
            *plain_answer(summary),
            *verdict_answers(verdicts),
        ],
        untested=[
            *untested(summary, store.run),
            *tables.coverage.sentences(),
            *([] if verdicts else [UNCHECKED]),
        ],
        hazards=tables.hazards,
        seen=tables.visual_change,
        requirements=tables.requirements,
        benchmark=tables.benchmark,
        benchmark_figures=page_figures(saved_benchmark(store)),
        no_benchmark=_could_be_benchmarked(store),
        classes=tables.classes,
        class_suts=store.suts,
        remarks=[
            *kill_remarks(store.run.kills),
            *(line.removeprefix("- ") for line in quality(summary)),
            *_not_pictured(looker),
        ],
        fault_logs=[
            (sut, quote(f"{store.folder.logs.name}/{sut_log(sut)}"))
            for sut, counts in summary.data["counts"].items()
            if counts["failed_attempts"] and (store.folder.logs / sut_log(sut)).exists()
        ],
        changes=list(summary.data.get("ranking_changes", ())),
        side_by_side=tables.side_by_side,
        levels=tables.levels,
        level_labels=[metric_label(summary, table.name) for table in tables.levels],
        level_words={table.name: level_words(summary, table.name) for table in tables.levels},
        adr=tables.adr,
        plain=tables.plain,
        relations=tables.relations,
        violations=violations(summary, looker) if detection and no_pictures is None else [],
        operating_words=operating_words(summary) if tables.plain else "",
        rankings=tables.rankings,
        all_ranked=all(ranking["probability"] is not None for ranking in summary.data.get("rankings", ())),
        predictions=tables.predictions,
        unseen=tables.unseen,
        prediction_figures=list(prediction_figures(store, summary)) if detection else [],
        figures=list(figures(store, summary)) if detection else [],
        marked=MARKED,
        slack=SLACK,
        slices=tables.slices,
        slice_sentences=slice_sentences(summary, store.run),
        detection_range=tables.detection_range,
        strengths=strength_figures(summary, store.run, {one.setting: one.thumb for one in gallery}),
        strength_metrics=list(strength_metrics(summary)),
        failures=pictured,
        lost_image=lost_image,
        film=film,
        film_file=FILM,
        explorer_port=EXPLORER_PORT,
        gallery=gallery,
        no_pictures=no_pictures,
        drives=drives(store) if detection else [],
        stops=list(stop_figures(store, summary, tables.stops)) if detection else [],
        facts=_facts(store, summary),
    )
    if store.several_looks:
        page = page.replace("95 % interval", "repeated interval")
    return page if store.run.truth is None else agreement.page_words(page)


def _not_pictured(looker: Looker) -> list[str]:
    if looker.why_not():
        return []
    return [shown(words, longest=500) for words in (looker.not_pictured(), looker.changed_words()) if words]


def hazards_of(looker: Looker) -> HazardCoverage:
    """Return which hazards a run exercised, by what its mutations say; untrusted plug-ins are not loaded."""
    return hazard_coverage(looker.store.groups, looker.known_plugins())


def _could_be_benchmarked(store: Store) -> bool:
    """Tell whether a run has the whole battery of the corruption benchmark, but not its numbers."""
    whole = len(cells_of(store)) == len(CORRUPTIONS) * len(SEVERITIES)
    return whole and store.result(f"{BENCHMARK}.json") is None


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
        *((f"places of {sut}", _placed(entry)) for sut, entry in summary.data.get("places", {}).items()),
        ("files of SUTs", NOT_NOTICED),
        ("machine", f"{made.cpu}, {made.system}, Python {made.python}"),
        ("libraries", ", ".join(f"{name} {version}" for name, version in made.libraries.items())),
        ("engine", f"{made.engine}, {made.workers} workers"),
    ]
    return [(shown(name), shown(value, longest=400)) for name, value in facts]


def _placed(entry: Mapping[str, Any]) -> str:
    """Say by what the detections of a SUT are placed in the world."""
    reported, detections = entry["reported"], entry["detections"]
    by_depth = f"the localizer {entry['localizer']} on the {entry['localize_on']} depth"
    if not reported:
        return by_depth
    own = "as the SUT reports them"
    return own if reported == detections else f"{reported} of {detections} {own}, the others by {by_depth}"

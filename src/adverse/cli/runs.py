"""run, analyze: a study and its run folder."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from adverse.cli.console import Console, ProgressWatcher, show_error, under_way
from adverse.cli.engines import EngineName, Scheduler, open_engine
from adverse.cli.options import Fresh, Json, Quiet, Trust, Workers, at_hand, to_write
from adverse.cli.plan import OUT, Estimate, StudyPath, default_folder, time_words
from adverse.cli.sealing import say_remade, say_stale
from adverse.errors import EXIT_CANNOT_RUN, EXIT_INCOMPLETE, EXIT_INTERRUPTED, EXIT_PASS

if TYPE_CHECKING:
    from adverse.analysis.results import Summary
    from adverse.plugins import Registry
    from adverse.report.page import PageTables
    from adverse.report.pictures import Looker
    from adverse.store.run import Run
    from adverse.study.engines import Stop
    from adverse.study.spec import StudyFile
    from adverse.study.time_estimate import TimeEstimate

RunPath = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.", callback=at_hand)]
Out = Annotated[Path | None, typer.Option("--out", "-o", help=OUT, callback=to_write)]
STOPPING = b"\n- stopping after the units under way; press Ctrl-C again to stop at once\n"
LEVELS_ABREAST = 5
"""Columns of a table of levels that fit a terminal of 80 characters."""
Tables = Annotated[bool, typer.Option("--tables", help="Print every table, not only the short one.")]
RetryFaults = Annotated[
    bool, typer.Option("--retry-faults", help="Also ask again where a SUT failed or a mutation was ended.")
]
Until = Annotated[
    Path | None, typer.Option("--until", metavar="RULES", help="Stop when these rules are settled.")
]
Looks = Annotated[int, typer.Option("--looks", help="With --until: how often the rules are looked at.")]
SpendingName = Annotated[
    Literal["obrien-fleming", "pocock"],
    typer.Option(
        help="With --until: how errors are spent; pocock stops sooner, and is less sure at the end."
    ),
]


def run(
    study: StudyPath,
    out: Out = None,
    workers: Workers = None,
    engine: EngineName = "local",
    scheduler: Scheduler = None,
    fresh: Fresh = False,  # noqa: FBT002
    retry_faults: RetryFaults = False,  # noqa: FBT002
    tables: Tables = False,  # noqa: FBT002
    estimate: Estimate = True,  # noqa: FBT002
    until: Until = None,
    looks: Looks = 5,
    spending: SpendingName = "obrien-fleming",
    quiet: Quiet = False,  # noqa: FBT002
    as_json: Json = False,  # noqa: FBT002
) -> None:
    """Run or resume a study.

    Finished work is not repeated. The results are printed and a report is written. Where many images are
    left, it first says how long they take, from a few that are run for it; then every few seconds how far it
    is.

    \b
    Examples:
        adverse run study.yaml
        adverse run study.yaml --out runs/night --workers 4
        adverse run study.yaml --fresh
        adverse run study.yaml --scheduler tcp://node1:8786      # on a Dask cluster (docs/clusters.md)
        adverse run study.yaml --out s3://fleet/runs/orchard     # into an object store
        adverse run study.yaml --until rules.yaml                # no further than the rules need

    Ctrl-C once finishes the work under way and stops; twice stops at once. Both can be resumed.
    With --until, logs are run part by part until every rule is settled (docs/operation.md); the exit code is
    then that of adverse check.
    """
    from adverse.study.spec import read_study

    file = read_study(study)
    folder = out or default_folder(file.folder, file.study.name)
    if until is not None:
        how = engine, scheduler, workers
        raise typer.Exit(
            _run_until(file, until, folder, how, (looks, spending), fresh=fresh, quiet=quiet, as_json=as_json)
        )
    code = run_and_show(
        file,
        folder,
        workers,
        engine=engine,
        scheduler=scheduler,
        fresh=fresh,
        retry_faults=retry_faults,
        tables=tables,
        estimate=estimate and not (quiet or as_json),
        quiet=quiet,
        as_json=as_json,
    )
    raise typer.Exit(code)


def _run_until(
    file: StudyFile,
    rules: Path,
    out: Path,
    how: tuple[str, str | None, int | None],
    looking: tuple[int, Literal["obrien-fleming", "pocock"]],
    *,
    fresh: bool,
    quiet: bool,
    as_json: bool,
) -> int:
    """Run a study until rules are settled, print and write what was found, and return the exit code."""
    from adverse.report.until import cells_table, render_until, until_lines, verdict_table
    from adverse.report.verdicts import terminal_lines
    from adverse.requirements.until_run import run_until, until_verdicts
    from adverse.requirements.verdicts import exit_code
    from adverse.study.engines import Stop

    console = Console(quiet=quiet or as_json)
    watch, stop = ProgressWatcher(console), Stop()
    engine, scheduler, workers = how
    found = None
    with (
        contextlib.suppress(KeyboardInterrupt),
        open_engine(file, out / "logs", workers, engine, scheduler) as opened,
        interrupts(stop),
    ):
        found = run_until(
            file,
            rules,
            out,
            opened,
            looks=looking[0],
            spending=looking[1],
            watch=watch,
            stop=stop,
            fresh=fresh,
        )
    if found is None:
        watch.note(f"stopped; finished work is kept in {out}. Run the same command to resume.")
        return EXIT_INTERRUPTED
    table = verdict_table(found)
    facts = json.dumps(found.plain(), indent=1, allow_nan=False) + "\n"
    found.store.write(
        {
            "until.html": render_until(found).encode(),
            "until.csv": table.csv().encode(),
            "until.json": facts.encode(),
        }
    )
    for line in terminal_lines(until_verdicts(found), width=console.width, details=True):
        console.say(line)
    console.print(cells_table(found).terminal())
    for line in until_lines(found):
        console.say(f"- {line}")
    console.say(f"page: {out / 'until.html'}")
    console.say(f"The whole study, using what is there: adverse run {file.source.path} --out {out}")
    if as_json:
        typer.echo(facts, nl=False)
    return exit_code(until_verdicts(found))


def analyze(
    folder: RunPath,
    trust: Trust = False,  # noqa: FBT002
    tables: Tables = False,  # noqa: FBT002
    quiet: Quiet = False,  # noqa: FBT002
    as_json: Json = False,  # noqa: FBT002
) -> None:
    """Recompute the results of a finished run and print them.

    \b
    Example:
        adverse analyze runs/orchard
    """
    from adverse.analysis.stopped import opened
    from adverse.report.pictures import Looker
    from adverse.store.seals import EVERYTHING

    looker = Looker(opened(folder, rewrites=EVERYTHING), trust=trust)
    say_remade(looker.store)
    registry = looker.registry if trust else None
    console = Console(quiet=quiet or as_json)
    code = _analyze_and_show(looker, console, registry=registry, every_table=tables, as_json=as_json)
    raise typer.Exit(code)


def run_and_show(
    study: StudyFile,
    out: Path,
    workers: int | None,
    *,
    engine: str = "local",
    scheduler: str | None = None,
    fresh: bool = False,
    retry_faults: bool = False,
    tables: bool = False,
    estimate: bool = True,
    quiet: bool = False,
    as_json: bool = False,
) -> int:
    """Run a study with progress, print its results, briefly or as all tables, and return the exit code."""
    from adverse.study.engines import Stop
    from adverse.study.run import run_study

    console = Console(quiet=quiet or as_json)
    watch = ProgressWatcher(console)
    stop = Stop()
    ran = None

    def tell_time(time: TimeEstimate | None) -> None:
        watch.note(f"time: {time_words(time)}")

    with (
        contextlib.suppress(KeyboardInterrupt),
        open_engine(study, out / "logs", workers, engine, scheduler) as opened,
        interrupts(stop),
        watch.before_work(),
    ):
        ran = run_study(
            study,
            out,
            opened,
            watch=watch,
            stop=stop,
            fresh=fresh,
            retry_faults=retry_faults,
            tell_time=tell_time if estimate else None,
        )
    if ran is not None and ran.problem is not None:
        show_error(ran.problem)
    if ran is None or ran.status == "interrupted":
        watch.note(f"stopped; finished work is kept in {out}. Run the same command to resume.")
        say_stale(out)
        return EXIT_INTERRUPTED
    if ran.status == "incomplete":
        say_stale(out)
        return EXIT_INCOMPLETE
    from adverse.report.pictures import Looker
    from adverse.store.finished_run import finished
    from adverse.store.seals import EVERYTHING

    looker = Looker(finished(out, rewrites=EVERYTHING), plan=ran.plan)  # the study's plug-ins ran just now
    if retry_faults and ran.units_run == 0:
        console.say("- nothing to ask again: no SUT failed, and no mutation was ended")
    kept = ran.units_run == 0 and not study.plugin_files
    registry = ran.plan.registry
    try:
        return _analyze_and_show(
            looker, console, registry=registry, every_table=tables, kept=kept, as_json=as_json
        )
    except KeyboardInterrupt:
        watch.note(f"stopped; all units are done and kept in {out}. Run the same command to resume.")
        return EXIT_INTERRUPTED


def _analyze_and_show(
    looker: Looker,
    console: Console,
    *,
    registry: Registry | None,
    every_table: bool,
    kept: bool = False,
    as_json: bool = False,
) -> int:
    """Analyse a run and print its results; results and report of this very state serve again if `kept`."""
    from adverse.analysis.results import analyze_store, current_summary
    from adverse.report.brief import brief_lines, brief_table
    from adverse.report.page import current_report, page_tables, write_report_of
    from adverse.store.verify import still_broken

    store = looker.store
    folder = store.folder.path
    known = current_summary(store) if kept else None
    page = current_report(store) if known is not None else None
    if known is not None:
        console.say(f"- already complete: these are the saved results (again: adverse analyze {folder})")
    with under_way(console, "working out the results"):
        summary = known or analyze_store(store, registry=registry)
        tables = page_tables(looker, summary, computed=known is None)
    try:  # before anything is printed, so that the answer stands together at the end
        with under_way(console, "drawing the report"):
            page = page or write_report_of(looker, summary, tables)
    finally:
        if every_table:
            _print_tables(console, summary, tables, store.run)
        else:
            brief = brief_table(summary, store.run)
            console.print(brief.terminal())
            for line in brief_lines(summary, store.run, brief):
                console.say(line)
    console.say(f"results: {folder / 'results' / 'summary.json'}")
    console.say(f"report:  {page}")
    console.say(f"explore: adverse view {folder}")
    say_stale(folder)
    left = still_broken(store.folder, store.state)
    for problem in left:
        show_error(problem)
    code = EXIT_CANNOT_RUN if left else EXIT_PASS if summary.trusted else EXIT_INCOMPLETE
    if as_json:
        facts = {
            "run": str(folder),
            "results": str(folder / "results" / "summary.json"),
            "report": str(page),
            "answer": brief_lines(summary, store.run, brief_table(summary, store.run)),
            "counts": summary.data["counts"],
            "exit_code": code,
        }
        typer.echo(json.dumps(facts, indent=1))
    return code


def _print_tables(console: Console, summary: Summary, tables: PageTables, run: Run) -> None:
    from adverse.report.agreement import spoken, table_words
    from adverse.report.plain_tables import terminal_tables
    from adverse.report.remarks import remarks

    for table in tables.levels:
        console.print(table.terminal(shares=True))
    if tables.side_by_side:
        for table in tables.side_by_side.abreast(LEVELS_ABREAST):
            console.print(table.terminal())
    if tables.adr:
        console.print(tables.adr.terminal(shares=True))
    for table in terminal_tables(summary.without_failed(), tables.plain):
        console.print((table if run.truth is None else table_words(table)).terminal())
    for table in tables.relations:
        console.print(table.terminal())
    for line in spoken(run, remarks(summary)):
        console.say(line)


@contextlib.contextmanager
def interrupts(stop: Stop) -> Iterator[None]:
    """Let Ctrl-C (and a polite kill) stop the run softly the first time and at once the second.

    At once means wherever we are: also while files are hashed or a SUT hangs in this very process.
    """

    def heard(_number: int, _frame: FrameType | None) -> None:
        if stop.soft:
            stop.hard = True
            if stop.heeded:
                return
            raise KeyboardInterrupt
        stop.soft = True
        with contextlib.suppress(OSError):  # straight to the terminal: a handler must not import or lock
            os.write(2, STOPPING)

    before = {number: signal.signal(number, heard) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

"""plan, run, analyze, verify: a study and its run folder."""

from __future__ import annotations

import contextlib
import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from adverse.cli.console import Console, ProgressWatcher, show_error
from adverse.cli.options import Fresh, Trust, Workers
from adverse.errors import EXIT_CANNOT_RUN, EXIT_INCOMPLETE, EXIT_INTERRUPTED, EXIT_PASS

if TYPE_CHECKING:
    from adverse.analysis.results import Summary
    from adverse.plugins import Registry
    from adverse.report.page import PageTables
    from adverse.report.pictures import Looker
    from adverse.study.engines import Stop
    from adverse.study.spec import StudyFile

StudyPath = Annotated[Path, typer.Argument(metavar="STUDY", help="The study file (YAML).")]
RunPath = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")]
Out = Annotated[
    Path | None, typer.Option("--out", "-o", help="The run folder. [default: runs/NAME beside the study]")
]
STOPPING = b"\n- stopping after the units under way; press Ctrl-C again to stop at once\n"
LEVELS_ABREAST = 5
"""Columns of a table of levels that fit a terminal of 80 characters."""
Tables = Annotated[bool, typer.Option("--tables", help="Print every table, not only the short one.")]
NoInputs = Annotated[bool, typer.Option("--no-inputs", help="Skip the data files.")]


def plan(study: StudyPath, out: Out = None) -> None:
    """Print what a study would run and what is already done.

    It also says what cannot run, and why.

    \b
    Example:
        adverse plan study.yaml
    """
    from adverse.study.run import plan_study
    from adverse.study.spec import read_study

    file = read_study(study)
    folder = out or _default_folder(file.folder, file.study.name)
    made = plan_study(file, folder)
    console = Console()
    groups = Counter(setting.group for setting in made.job.settings)
    left = made.to_do
    say = console.say
    say(f"study     {file.study.name}, seed {file.study.seed}, into {folder}")
    say(
        f"data      {file.study.data.format} {made.dataset.name}: {len(made.dataset.logs)} logs, "
        f"{made.frames('validation')} validation and {made.frames('test')} test frames"
    )
    for note, count in made.dataset.notes.items():
        say(f"          {count} x {note}")
    say(f"mutations {len(made.job.settings) - 1}: {groups['mild']} mild, {groups['severe']} severe")
    for setting in made.job.settings[1:]:
        say(f"          {setting.id}")
    for task in made.job.suts:
        say(f"sut       {task.name}: {task.adapter}, fingerprint {task.fingerprint[:12]}")
    total, to_do = made.pictures(made.units), made.pictures(left)
    say(f"work      {total} images to judge, {total - to_do} done, {to_do} to do in {len(left)} units")
    for warning in made.warnings:
        say(f"warning   {warning}")
    for problem in made.blocked:
        show_error(problem)
    raise typer.Exit(EXIT_CANNOT_RUN if made.blocked else EXIT_PASS)


def run(
    study: StudyPath,
    out: Out = None,
    workers: Workers = None,
    fresh: Fresh = False,  # noqa: FBT002
    tables: Tables = False,  # noqa: FBT002
) -> None:
    """Run or resume a study.

    Finished work is not repeated. The results are printed and a report is written.

    \b
    Examples:
        adverse run study.yaml
        adverse run study.yaml --out runs/night --workers 4
        adverse run study.yaml --fresh

    Ctrl-C once finishes the work under way and stops; twice stops at once. Both can be resumed.
    """
    from adverse.study.spec import read_study

    file = read_study(study)
    raise typer.Exit(
        run_and_show(
            file, out or _default_folder(file.folder, file.study.name), workers, fresh=fresh, tables=tables
        )
    )


def analyze(folder: RunPath, trust: Trust = False, tables: Tables = False) -> None:  # noqa: FBT002
    """Recompute the results of a finished run and print them.

    \b
    Example:
        adverse analyze runs/orchard
    """
    from adverse.report.pictures import Looker
    from adverse.store.read import finished

    looker = Looker(finished(folder, results=False), trust=trust)
    registry = looker.registry if trust else None
    raise typer.Exit(_analyze_and_show(looker, Console(), registry=registry, every_table=tables))


def verify(folder: RunPath, no_inputs: NoInputs = False) -> None:  # noqa: FBT002
    """Recompute every hash of a run and name changed files.

    The data files are checked too, unless --no-inputs is given.

    \b
    Example:
        adverse verify runs/orchard
    """
    from adverse.store.folder import existing_run
    from adverse.store.seals import verify as check

    checked = check(existing_run(folder), inputs=not no_inputs)
    for problem in checked.problems:
        show_error(problem)
    if checked.problems:
        raise typer.Exit(EXIT_CANNOT_RUN)
    typer.echo(f"{checked.files} files match their recorded hashes")


def run_and_show(
    study: StudyFile, out: Path, workers: int | None, *, fresh: bool = False, tables: bool = False
) -> int:
    """Run a study with progress, print its results, briefly or as all tables, and return the exit code."""
    from adverse.processes import all_cores
    from adverse.study.engines import Engine, Stop
    from adverse.study.engines.local import InlineEngine, LocalEngine
    from adverse.study.run import run_study

    console = Console()
    watch = ProgressWatcher(console)
    stop = Stop()
    count = all_cores() if workers is None else workers
    engine: Engine = LocalEngine(count, out / "logs") if count else InlineEngine()
    ran = None
    with contextlib.suppress(KeyboardInterrupt), interrupts(stop):
        ran = run_study(study, out, engine, watch=watch, stop=stop, fresh=fresh)
    if ran is not None and ran.problem is not None:
        show_error(ran.problem)
    if ran is None or ran.status == "interrupted":
        watch.note(f"stopped; finished work is kept in {out}. Run the same command to resume.")
        return EXIT_INTERRUPTED
    if ran.status == "incomplete":
        return EXIT_INCOMPLETE
    from adverse.report.pictures import Looker
    from adverse.store.read import finished

    looker = Looker(finished(out, results=False), plan=ran.plan)  # the study's plug-ins ran just now
    return _analyze_and_show(looker, console, registry=ran.plan.registry, every_table=tables)


def _analyze_and_show(
    looker: Looker, console: Console, *, registry: Registry | None, every_table: bool
) -> int:
    from adverse.analysis.results import analyze_store
    from adverse.report.brief import brief_lines, brief_table
    from adverse.report.page import page_tables, write_report_of

    store = looker.store
    folder = store.folder.path
    summary = analyze_store(store, registry=registry)
    tables = page_tables(looker, summary)
    if every_table:
        _print_tables(console, summary, tables)
    else:
        brief = brief_table(summary, store.run)
        console.print(brief.terminal())
        for line in brief_lines(summary, store.run, brief):
            console.say(line)
    page = write_report_of(looker, summary, tables)
    console.say(f"results: {folder / 'results' / 'summary.json'}")
    console.say(f"report:  {page}")
    return EXIT_PASS if summary.trusted else EXIT_INCOMPLETE


def _print_tables(console: Console, summary: Summary, tables: PageTables) -> None:
    from adverse.report.plain_tables import terminal_tables
    from adverse.report.remarks import remarks

    for table in tables.levels:
        console.print(table.terminal(shares=True))
    if tables.side_by_side:
        for table in tables.side_by_side.abreast(LEVELS_ABREAST):
            console.print(table.terminal())
    if tables.adr:
        console.print(tables.adr.terminal(shares=True))
    for table in terminal_tables(summary, tables.plain):
        console.print(table.terminal())
    for line in remarks(summary):
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


def _default_folder(study_folder: Path, name: str) -> Path:
    return study_folder / "runs" / name
